"""A bundle of a whole GPU read strictly: its grids and SMs, the claim, the schedule and what proves the upper bound.

The writer is `makespan.report.gpu.bundle`; both follow docs/schema/gpu-bundle-2.schema.json and share no code.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import chain, repeat
from typing import Any, TypeGuard

from makespan.model.assumptions import Assumption
from makespan.model.certificate import Weights
from makespan.model.gpu import BlockStart, BlockTrace, GpuInstance, GpuSchedule, Grid, RepeatedCycles, SmHistory
from makespan.model.gpu.instance import MAX_BLOCKS, MAX_DISPATCH, MAX_DRAM, MAX_GRIDS, MAX_ROOM
from makespan.model.instance import MAX_CYCLES, MAX_WARPS, Instance
from makespan.model.machine import MAX_LATENCY, KnownLapses, Machine, WarpAssignment
from makespan.model.machine.values import MAX_SMS
from makespan.model.result import Status
from makespan.verify import conditions, fields, instances, proofs, reading
from makespan.verify.machine_form import has_lapses
from makespan.verify.outcome import BundleClaim
from makespan.verify.refusal import ProofSteps, Refused, TooMuchWork
from makespan.verify.rule import ClaimedBound

SCHEMA = "makespan.gpu-bundle/2"
OLDER_SCHEMA = "makespan.gpu-bundle/1"  # its assumptions are words
ONE_WAVE, THEOREM_G = "one-wave", "theorem-g"
MOST_RESOURCES = 16
MOST_QUESTIONS = 64  # different numbers of blocks on an SM, in one wave; GPUs have room for 32

_MOST = 10**fields.MOST_DIGITS


@dataclass(frozen=True, slots=True)
class GpuBundle:
    """A claim and its evidence: the weights of pairs for theorem G; in one wave the bounds of SMs, by blocks.

    Without a witness, the claim is that no schedule is shorter than its lower bound. `said` is None where an older
    bundle says in words what the result assumes. Where there are lapses, `asked` is the GPU without them, of which the
    evidence is, and `without_lapses` the claim about it; else both are those of the question.
    """

    gpu: GpuInstance
    asked: GpuInstance
    claim: BundleClaim
    without_lapses: BundleClaim
    witness: GpuSchedule | None
    shortest: GpuSchedule | None
    weights: tuple[Weights, ...]
    sms: dict[int, ClaimedBound]
    said: tuple[Assumption, ...] | None


def speaks_of(document: object) -> TypeGuard[dict[str, Any]]:
    """Return whether it is a bundle of a whole GPU, of any version."""
    schema = document.get("schema") if isinstance(document, dict) else None
    return isinstance(schema, str) and schema.startswith("makespan.gpu-bundle/")


def bundle(document: dict[str, Any]) -> GpuBundle:
    """Return the claim and the evidence in `document`.

    Raises:
        Refused: a key or type is wrong, a value contradicts the instance, or the digest does not match.
    """
    keys = "schema instance result witness shortest weights sms sha256"
    parts = fields.table(document, "bundle", *keys.split())
    if parts["schema"] not in (SCHEMA, OLDER_SCHEMA):
        remedy = "is of another makespan; verify it with that one, or solve anew"
        fields.bad(f"schema is not {SCHEMA!r}: {parts['schema']!r:.40} {remedy}")
    gpu = instance(parts["instance"])
    is_older = parts["schema"] == OLDER_SCHEMA
    asked = _leave_out_lapses(gpu)
    claim, inner = _claims(parts["result"], is_older=is_older, is_lapsing=asked is not gpu)
    said = None if is_older else conditions.assumptions(parts["result"]["assumptions"])
    witness, shortest = (schedule(parts[name], name, gpu) for name in ("witness", "shortest"))
    room = ProofSteps(reading.MOST_COEFFICIENTS)
    try:
        weights = _weights(parts["weights"], asked, room)
        sms = _sms(parts["sms"], asked, room)
    except TooMuchWork:
        most = reading.MOST_COEFFICIENTS
        raise Refused(f"the evidence is too large for this checker: over {most} coefficients") from None
    if bool(sms) != (claim.evidence == ONE_WAVE):
        fields.bad(f"results of SMs are the evidence of {ONE_WAVE}, and of nothing else")
    if fields.text(parts["sha256"], "sha256") != reading.digest(document):
        raise Refused("the digest does not match the content: the file was changed after it was written")
    if said is not None:
        blocks = [of_block(gpu, grid) for grid in gpu.grids]
        conditions.check(said, gpu.machine, blocks, dram=gpu.dram, is_whole_gpu=claim.evidence != ONE_WAVE)
    return GpuBundle(gpu, asked, claim, inner, witness, shortest, weights, sms, said)


# Question


def instance(value: object) -> GpuInstance:
    """Return the question in `value`.

    Raises:
        Refused: a key or type is wrong, something is none of the values, or there is too much of it.
    """
    some = [key for key in ("dram", "expiry") if key in fields.entries(value)]
    parts = fields.table(value, "instance", "machine", "grids", "sms", "room", "dispatch", *some)
    places = ProofSteps(instances.MOST_PLACES)
    with instances.refuse_invalid():
        written = fields.items(parts["grids"], "grids", most=MAX_GRIDS)
        machine = instances.machine(parts["machine"])
        if "expiry" in parts:
            expiry = fields.whole(parts["expiry"], "expiry", 0, MAX_LATENCY + MAX_DRAM)
            machine = replace(machine, lapses=KnownLapses(expiry=expiry))
        grids = tuple(_grid(grid, places, machine) for grid in written)
        instances.check_queues(machine, [program for grid in grids for program, _ in grid.block])
        return GpuInstance(
            grids,
            machine,
            fields.whole(parts["sms"], "sms", 1, MAX_SMS),
            _amounts(parts["room"], "room"),
            fields.whole(parts["dispatch"], "dispatch", 0, MAX_DISPATCH),
            fields.whole(parts.get("dram", 0), "dram", 0, MAX_DRAM),
        )


def _grid(value: object, places: ProofSteps, machine: Machine) -> Grid:
    some = ["order"] if "order" in fields.entries(value) else []
    parts = fields.table(value, "grid", "block", "blocks", "takes", *some)
    groups = instances.groups(fields.items(parts["block"], "block", most=MAX_WARPS), places, machine)
    block = tuple((group.program, group.warps) for group in groups)
    if some:
        launched = instances.runs(parts["order"], [group.warps for group in groups])
        block = tuple((groups[group].program, warps) for group, warps in launched)
    return Grid(block, fields.whole(parts["blocks"], "blocks", 1, MAX_BLOCKS), _amounts(parts["takes"], "takes"))


def _amounts(value: object, name: str) -> tuple[int, ...]:
    return fields.wholes(fields.items(value, name, 1, MOST_RESOURCES), name, MAX_ROOM)


def _leave_out_lapses(gpu: GpuInstance) -> GpuInstance:
    """Return the GPU without lapses, late lines and queues; the same object if it has none of them."""
    if not any(has_lapses(of_block(gpu, grid)) for grid in gpu.grids):
        return gpu
    blocks = [tuple((replace(program, lapses=()), warps) for program, warps in grid.block) for grid in gpu.grids]
    grids = tuple(replace(grid, block=block) for grid, block in zip(gpu.grids, blocks, strict=True))
    return replace(gpu, grids=grids, machine=replace(gpu.machine, queues=()))


def of_block(gpu: GpuInstance, grid: Grid) -> Instance:
    """Return an SM with one block of a grid."""
    return Instance.merged(grid.block, gpu.machine)


# Result


_NUMBERS = ("status", "lower", "upper", "evidence", "best_case")


def _claims(value: object, *, is_older: bool, is_lapsing: bool) -> tuple[BundleClaim, BundleClaim]:
    """Return the claim about the GPU, and that about it without lapses."""
    some = ["without_lapses"] if is_lapsing else []
    keys = (*_NUMBERS, "seconds", "interrupted", "assumptions", "versions", *some)
    result = fields.table(value, "result", *keys)
    reading.check_remarks(result, is_older=is_older)
    claim = _claim(result)
    if not is_lapsing:
        return claim, claim
    inner = _claim(fields.table(result["without_lapses"], "without_lapses", *_NUMBERS))
    if claim.lower != inner.lower:
        raise Refused(f"lower is {claim.lower}, but without lapses {inner.lower}, by the same witness")
    if claim.evidence != inner.evidence:
        raise Refused(f"upper is reported by {claim.evidence}, but without lapses by {inner.evidence}")
    return claim, inner


def _claim(result: Mapping[str, Any]) -> BundleClaim:
    lower, upper = (fields.whole(result[side], side, 1, _MOST) for side in ("lower", "upper"))
    if lower > upper:
        raise Refused(f"lower {lower} exceeds upper {upper}")
    if result["status"] != str(Status.EXACT if lower == upper else Status.BOUNDED):
        raise Refused("result: status does not follow from the bounds")
    evidence = fields.text(result["evidence"], "evidence")
    if evidence not in (ONE_WAVE, THEOREM_G):
        raise Refused(f"unknown evidence: {evidence!r:.40}")
    return BundleClaim(lower, upper, evidence, reading.best_case(result["best_case"], _MOST))


# Witness


def fixed_latencies(gpu: GpuInstance, grid: Grid) -> bool:
    """Return whether the adversary has no latency to choose in blocks of this grid."""
    return of_block(gpu, grid).fixed_latencies


def schedule(value: object, name: str, gpu: GpuInstance) -> GpuSchedule | None:
    """Return a schedule of a whole GPU, or none.

    Raises:
        Refused: a key or type is wrong, or it is too large.
    """
    if value is None:
        return None
    parts = fields.table(value, name, "courses", "histories")
    room, cycles = ProofSteps(fields.MOST_INSTRUCTIONS), ProofSteps(MAX_CYCLES)
    try:
        courses = tuple(_course(course, gpu, room) for course in fields.items(parts["courses"], "courses"))
        written = fields.items(parts["histories"], "histories", most=gpu.sms)
        return GpuSchedule(courses, tuple(_history(history, gpu, room, cycles) for history in written))
    except TooMuchWork:
        most = f"over {fields.MOST_INSTRUCTIONS} warp-instructions, or {MAX_CYCLES} cycles"
        raise Refused(f"the {name} is too large for this checker: {most}") from None


def _course(value: object, gpu: GpuInstance, room: ProofSteps) -> BlockTrace:
    has_uses = not gpu.machine.fixed_uses
    parts = fields.table(value, "course", "grid", "paths", "latencies", *["uses"] * has_uses)
    number = fields.whole(parts["grid"], "grid", 0, len(gpu.grids) - 1)
    grid = gpu.grids[number]
    room.spend(sum(warps * program.end for program, warps in grid.block))
    latencies = reading.latencies(parts["latencies"], grid.warps, is_fixed=fixed_latencies(gpu, grid))
    uses = reading.uses(parts["uses"], grid.warps) if has_uses else ()
    return BlockTrace(number, reading.paths(parts["paths"], grid.block), latencies, uses)


def _history(value: object, gpu: GpuInstance, room: ProofSteps, cycles: ProofSteps) -> SmHistory:
    machine = gpu.machine
    is_free = machine.partitions > 1 and (len(gpu.grids) > 1 or machine.assignment is WarpAssignment.ANY)
    parts = fields.table(value, "history", "sms", "stretches", *["partitions"] * is_free)
    sms = fields.whole(parts["sms"], "sms", 1, gpu.sms)
    stretches = (_stretch(one, gpu, room, cycles) for one in fields.items(parts["stretches"], "stretches"))
    rows = fields.items(parts["partitions"], "partitions", most=MAX_WARPS) if is_free else []
    room.spend(sum(len(row) for row in rows if type(row) is list))
    partitions = tuple(fields.wholes(row, "partitions", machine.partitions - 1) for row in rows)
    return SmHistory(sms, tuple(stretches), partitions)


def _stretch(value: object, gpu: GpuInstance, room: ProofSteps, cycles: ProofSteps) -> RepeatedCycles:
    parts = fields.table(value, "stretch", "repeat", "begins", "cycles")
    runs: list[tuple[int, tuple[tuple[int, int], ...]]] = []
    for entry in fields.items(parts["cycles"], "cycles"):
        times, issuing = fields.items(entry, "cycle", 2, 2)
        times = fields.whole(times, "repeat", 1, MAX_CYCLES)
        cycles.spend(times)  # before they are unfolded
        room.spend(times * len(fields.items(issuing, "warps", 0)))
        runs.append((times, tuple(map(_warp, issuing))))
    begins = tuple(_begin(begin, gpu) for begin in fields.items(parts["begins"], "begins", 0))
    unfolded = tuple(chain.from_iterable(repeat(issuing, times) for times, issuing in runs))
    return RepeatedCycles(unfolded, begins, fields.whole(parts["repeat"], "repeat", 1, MAX_BLOCKS))


def _warp(value: object) -> tuple[int, int]:
    slot, warp = fields.items(value, "warp", 2, 2)
    return fields.whole(slot, "slot", 0, MAX_WARPS), fields.whole(warp, "warp", 0, MAX_WARPS)


def _begin(value: object, gpu: GpuInstance) -> BlockStart:
    cycle, slot, course, delay = fields.items(value, "begin", 4, 4)
    return BlockStart(
        fields.whole(cycle, "cycle", 0, MAX_CYCLES),
        fields.whole(slot, "slot", 0, MAX_WARPS),
        fields.whole(course, "course"),
        fields.whole(delay, "delay", 0, gpu.dispatch),
    )


# Evidence


def _weights(value: object, gpu: GpuInstance, room: ProofSteps) -> tuple[Weights, ...]:
    if not fields.items(value, "weights", 0):
        return ()
    if len(gpu.grids) > 1:
        raise Refused("weights of pairs are of one grid only")
    return proofs.weights(value, gpu.sm(gpu.resident), room)


def _sms(value: object, gpu: GpuInstance, room: ProofSteps) -> dict[int, ClaimedBound]:
    entries = fields.items(value, "sms", 0)
    if not entries:
        return {}
    if not gpu.is_one_wave:
        raise Refused("results of SMs prove nothing: the blocks of all grids are more than fit on the GPU")
    least = max(1, gpu.blocks - (gpu.sms - 1) * gpu.resident)
    # an SM that has fewer blocks than `least` leaves more than the others have room for
    may_be = range(least, gpu.resident + 1)
    if len(may_be) > MOST_QUESTIONS:
        raise Refused(f"the evidence is too large for this checker: over {MOST_QUESTIONS} numbers of blocks on an SM")
    found = dict(_of_sm(entry, gpu, room) for entry in fields.items(entries, "sms", len(may_be), len(may_be)))
    if found.keys() != set(may_be):
        raise Refused(f"an SM has {least}..{gpu.resident} blocks: there must be a result for each of these numbers")
    return found


def _of_sm(value: object, gpu: GpuInstance, room: ProofSteps) -> tuple[int, ClaimedBound]:
    some = ["partitions"] if "partitions" in fields.entries(value) else []
    keys = ("blocks", "upper", "evidence", "certificate", "weights", "phases", *some)
    parts = fields.table(value, "result of an SM", *keys)
    blocks = fields.whole(parts["blocks"], "blocks", 1, gpu.resident)
    question = gpu.sm(blocks)
    proof = parts["certificate"]
    return blocks, ClaimedBound(
        question,
        fields.whole(parts["upper"], "upper", 1),
        proofs.name_of_proof(parts["evidence"]),
        None if proof is None else proofs.certificate(proof, question, room),
        proofs.weights(parts["weights"], question, room),
        proofs.phase_bounds(parts["phases"], question, room),
        proofs.partition_bounds(parts.get("partitions", []), question, room),
    )
