"""`solve_gpu`: the worst case on a whole GPU, from what is proven of its SMs or, of several waves, from theorem G."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TypeVar

from makespan.host.errors import BrokenPromiseError, InputError
from makespan.model.gpu import BlockStart, BlockTrace, GpuInstance, GpuResult, GpuSchedule, RepeatedCycles, SmHistory
from makespan.model.machine.values import shown
from makespan.model.result import Bounds, Result, Status, Step, Upper
from makespan.model.schedule import Schedule
from makespan.model.simulate import gpu_run
from makespan.model.simulate.gpu_replay import replay_gpu
from makespan.proof.bounds import lapse_proofs
from makespan.proof.bounds.best_case import least_possible_gpu
from makespan.proof.bounds.theorem_g import theorem_g
from makespan.proof.engines.limits import Limits
from makespan.proof.engines.phased import add_lapses, solve

_WarpRow = TypeVar("_WarpRow")

ONE_WAVE, THEOREM_G = "one-wave", "theorem-g"

SHARE_OF_FIRST_RUN = 0.5
"""Of the time, what policies may take until one shows how short several waves may be; how long they may be, a run shows
that is made whatever the time."""
SHARE_OF_RUNS = 1 / 60
"""The same of all others, that may show more: a second by default, and as much of less time, but a tenth at most."""


def solve_gpu(gpu: GpuInstance, *, best_case: bool = False, limits: Limits | None = None) -> GpuResult:
    """Return the worst case on a whole GPU under every work-conserving dispatcher and scheduler, as a proven interval.

    Args:
        best_case: also an interval for the shortest schedule.
        limits: time, memory, progress; by default 60 seconds. Of more than one wave a tenth or two are used, and one
            schedule is made whatever the limits are.

    >>> from makespan import Machine, Program
    >>> block = ((Program.chain("CLLCLL"), 2),)
    >>> gpu = GpuInstance.of(block, 46, Machine.of({"C": 1, "L": 1}), sms=46, resident=1)
    >>> solve_gpu(gpu).bounds  # as of two warps on one SM
    Bounds(lower=10, upper=10)

    Raises:
        InputError: no `GpuInstance`.
        BrokenPromiseError: proofs contradict each other, or a witness does not replay; always a bug.
    """
    if not isinstance(gpu, GpuInstance):
        how = "make one of a kernel with gpu_instance(question, 'rtx-3070'), where the second is your GPU"
        raise InputError(f"solve_gpu takes a GpuInstance, not {shown(gpu)}: {how}")
    budget = limits or Limits()
    found = (_with_lapses if gpu.has_lapses else _without_lapses)(gpu, best_case=best_case, budget=budget)
    # what is shown has to be what the definition of the GPU allows, whoever made it; no scheduler lapses in it
    for schedule in found.witness, found.shortest:
        if schedule is not None and (length := replay_gpu(gpu.without_lapses, schedule)) != schedule.makespan:
            raise BrokenPromiseError(f"a schedule takes {length} cycles when it is replayed, not {schedule.makespan}")
    return found


def _without_lapses(gpu: GpuInstance, *, best_case: bool, budget: Limits) -> GpuResult:
    return (_one_wave if gpu.has_lone_sms else _waves)(gpu, best_case=best_case, budget=budget)


def _with_lapses(gpu: GpuInstance, *, best_case: bool, budget: Limits) -> GpuResult:
    """Return the longest schedule that is found without lapses, and the upper bound that holds with them."""
    last = None if gpu.has_lone_sms else theorem_g(gpu)  # refuses what it does not know before any time is spent
    # a search for a smaller upper bound without lapses says nothing about the one with them, which is known already
    sms = {} if last else {blocks: gpu.sm(blocks) for blocks in _block_counts(gpu)}
    proofs = {blocks: lapse_proofs(sm) for blocks, sm in sms.items()}
    most = last.upper if last else max(min(proof.upper for proof in each) for each in proofs.values())
    evidence = THEOREM_G if last else Upper.LAPSES
    with budget.rewording(lambda step: step._replace(upper=most, evidence=evidence)):
        found = _without_lapses(gpu.without_lapses, best_case=best_case, budget=budget)
    best = found.best_case
    if best is not None:  # a lapse may make a schedule shorter, but not shorter than its work
        best = Bounds(least_possible_gpu(found.instance), best.upper)
    counts = (result.instance.warps // gpu.grid.warps for result in found.sms)
    return replace(
        found,
        instance=gpu,
        bounds=Bounds(found.bounds.lower, most),
        last_dispatch=last,
        sms=tuple(add_lapses(sms[n], result, proofs[n]) for n, result in zip(counts, found.sms, strict=True)),
        best_case=best,
        assumptions=gpu.assumptions,
        without_lapses=found,
    )


def _waves(gpu: GpuInstance, *, best_case: bool, budget: Limits) -> GpuResult:
    last, least = theorem_g(gpu), least_possible_gpu(gpu)
    budget.improved(Step(round(budget.elapsed, 6), THEOREM_G, least, last.upper, THEOREM_G))
    longest = _run(gpu_run.longest_gpu_run, gpu, budget)
    quickest = _run(gpu_run.shortest_gpu_run, gpu, budget) if best_case else None
    lengths = [one.schedule.makespan for one in (longest, quickest) if one]
    shortest = quickest.schedule if quickest and quickest.schedule.makespan == min(lengths) else None
    return GpuResult(
        instance=gpu,
        bounds=Bounds(longest.schedule.makespan if longest else least, last.upper),
        witness=longest.schedule if longest else None,
        upper_evidence=THEOREM_G,
        last_dispatch=last,
        sms=(),
        best_case=Bounds(least, min(lengths, default=last.upper)) if best_case else None,
        seconds=budget.elapsed,
        assumptions=gpu.assumptions,
        interrupted=budget.interrupted,
        policy=longest.policy if longest else "",
        shortest=shortest,
    )


def _run(runs: Callable[..., gpu_run.FoundRun | None], gpu: GpuInstance, budget: Limits) -> gpu_run.FoundRun | None:
    first = budget.part(SHARE_OF_FIRST_RUN)
    others = budget.part(min(0.1, max(SHARE_OF_RUNS, 1 / max(1.0, budget.remaining))))
    return runs(gpu, lambda: first.expired, enough=lambda: others.expired)


def _one_wave(gpu: GpuInstance, *, best_case: bool, budget: Limits) -> GpuResult:
    """Return the worst of the SMs with each number of blocks that there may be; docs/theory.md, "One wave"."""
    found = _of_sms(gpu, _block_counts(gpu), best_case=best_case, budget=budget)
    worst = max(found, key=lambda blocks: found[blocks].bounds.lower)
    best, shortest = _shortest(gpu, found, budget) if best_case else (None, None)
    return GpuResult(
        instance=gpu,
        bounds=Bounds(found[worst].bounds.lower, max(result.bounds.upper for result in found.values())),
        witness=_side_by_side(gpu, found, worst),
        upper_evidence=ONE_WAVE,
        last_dispatch=None,
        sms=tuple(found.values()),
        best_case=best,
        seconds=budget.elapsed,
        assumptions=gpu.assumptions,
        interrupted=budget.interrupted,
        shortest=shortest,
    )


def _block_counts(gpu: GpuInstance) -> range:
    """Return how many blocks an SM may have in one wave, largest first."""
    least = max(1, gpu.blocks - (gpu.sms - 1) * gpu.resident)
    return range(gpu.resident, least - 1, -1)


def _of_sms(gpu: GpuInstance, counts: range, *, best_case: bool, budget: Limits) -> dict[int, Result]:
    """Return a result for each number of blocks; no search for those with a bound below what another one attains."""
    if len(counts) == 1:
        return {counts[0]: solve(gpu.sm(counts[0]), best_case=best_case, limits=budget)}
    # closed forms first, for no time; a worst case need not grow with the blocks, so no number can be left out
    found = {blocks: solve(gpu.sm(blocks), best_case=best_case, limits=budget.part(0)) for blocks in counts}
    untried = set(counts)
    while not budget.expired:
        attained = max(result.bounds.lower for result in found.values())
        untried = {blocks for blocks in untried if _matters(gpu, found[blocks], blocks, attained)}
        if not untried:
            break
        # the number that holds the upper bound up is the one from which most can be won
        blocks = max(untried, key=lambda blocks: (found[blocks].bounds.upper, blocks))
        budget.progress(f"SMs with {blocks} of {gpu.blocks} blocks; {len(untried)} such numbers left")
        share = budget.part(1 / len(untried))
        untried.remove(blocks)
        found[blocks] = solve(gpu.sm(blocks), best_case=best_case, limits=share)
    return found


def _matters(gpu: GpuInstance, result: Result, blocks: int, attained: int) -> bool:
    """Return whether a sharper bound for these blocks on an SM might be a sharper bound for the GPU."""
    best = result.best_case
    may_be_shortest = best is not None and best.status is not Status.EXACT and blocks >= gpu.blocks // gpu.sms
    return result.bounds.upper > attained or may_be_shortest


def _side_by_side(gpu: GpuInstance, found: dict[int, Result], worst: int) -> GpuSchedule:
    """Return the worst number of blocks on one SM, and the rest spread evenly over the others."""
    sms: dict[int, int] = {worst: 1}
    if gpu.sms > 1:
        least, more = divmod(gpu.blocks - worst, gpu.sms - 1)
        sms[least] = sms.get(least, 0) + gpu.sms - 1 - more
        sms[least + 1] = sms.get(least + 1, 0) + more
    courses: dict[BlockTrace, int] = {}
    some = [(blocks, count) for blocks, count in sms.items() if blocks and count]
    histories = tuple(_history(gpu, found[blocks].witness, blocks, count, courses) for blocks, count in some)
    return GpuSchedule(tuple(courses), histories)


def _history(gpu: GpuInstance, witness: Schedule, blocks: int, sms: int, courses: dict[BlockTrace, int]) -> SmHistory:
    """Return a schedule of an SM by slot and warp; what its blocks do is looked up in `courses`, or added there."""
    places = gpu.slots_of_warps(blocks)
    warp_at = {place: warp for warp, place in enumerate(places)}

    def of_slot(rows: Sequence[_WarpRow], slot: int) -> tuple[_WarpRow, ...]:
        return tuple(rows[warp_at[slot, number]] for number in range(gpu.grid.warps)) if rows else ()

    begins = []
    for slot in range(blocks):
        rows = (of_slot(witness.paths, slot), of_slot(witness.latencies, slot), of_slot(witness.uses, slot))
        begins.append(BlockStart(0, slot, courses.setdefault(BlockTrace(0, *rows), len(courses))))
    cycles = tuple(tuple(sorted(places[warp] for warp in warps)) for warps in witness.cycles)
    partitions = tuple(of_slot(witness.partitions, slot) for slot in range(blocks)) if witness.partitions else ()
    return SmHistory(sms, (RepeatedCycles(cycles, tuple(begins)),), partitions)


def _shortest(gpu: GpuInstance, found: dict[int, Result], budget: Limits) -> tuple[Bounds, GpuSchedule | None]:
    """Return the shortest schedule: some SM has the mean number of blocks at least, and blocks may be spread evenly.

    With a run that is as short as is known, if there is one: what an SM takes at least may come without a schedule.
    """
    each, more = divmod(gpu.blocks, gpu.sms)  # some SM has the mean, rounded up
    best = {blocks: result.best_case for blocks, result in found.items() if result.best_case is not None}
    most_loaded = [best[blocks].lower for blocks in best if blocks >= each + bool(more)]
    even = [best[blocks].upper for blocks, sms in ((each, gpu.sms - more), (each + 1, more)) if blocks and sms]
    run = _run(gpu_run.shortest_gpu_run, gpu, budget)
    most = max(even) if run is None else min(max(even), run.schedule.makespan)
    shown = run.schedule if run is not None and run.schedule.makespan == most else None
    return Bounds(max(min(most_loaded), least_possible_gpu(gpu)), most), shown
