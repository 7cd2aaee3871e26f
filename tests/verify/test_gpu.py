"""The checker of whole GPUs: what it accepts is true, and what was changed it rejects or cannot prove."""

import copy
import json
import random
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cache, partial
from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from makespan.model.assumptions import Assumption, dram_rate
from makespan.model.certificate import Weights
from makespan.model.gpu import BlockStart, BlockTrace, GpuInstance, GpuResult, GpuSchedule, RepeatedCycles, SmHistory
from makespan.model.machine import Latency, Machine, PortResource, SchedulerPromise, UnitClass, Use
from makespan.model.program import Program
from makespan.model.result import Bounds
from makespan.model.simulate import gpu_replay
from makespan.model.simulate.choices import Choices
from makespan.model.simulate.gpu_run import DISPATCH, run_gpu
from makespan.model.simulate.policies import POLICIES
from makespan.model.strings import parse_string
from makespan.proof.bounds.theorem_g import theorem_g
from makespan.proof.engines import solve
from makespan.report.gpu.bundle import gpu_bundle, gpu_question_data
from makespan.report.result.bundle import canonical_json
from makespan.verify import Outcome, Verdict, digest, gpu_reading, pairs, verify
from makespan.verify import theorem_g as theorem_g_again
from makespan.verify.gpu_witness import replay
from makespan.verify.lower_bounds import least_makespan_of_gpu
from makespan.verify.refusal import Refused
from tests.oracle import brute_force_gpu
from tests.schemas import published
from tests.strategies import gpus

Document = dict[str, Any]
"""Of ordinary bundles, of which that of a GPU has parts."""
PAPER = Machine.of({"C": 1, "L": 1})
SLOW = Machine("slow", (UnitClass("C", 1, 2, Latency(3, 3)), UnitClass("L", 1)), 1)


PARTS = Machine("parts", (UnitClass("C", 1, 1, Latency(1, 2)), UnitClass("L", 1, shared=True)), 1, partitions=2)
HELD = Machine(
    "held",
    (UnitClass("C", 1, uses=(Use(("a", "b"), 1, 2),)),),
    1,
    resources=(PortResource("a", 1), PortResource("b", 1)),
)
RICH = ((PARTS, "CL", 0), (HELD, "CC", 0), (PAPER, "C|L", 1), (SLOW, "L()@2C(1)", 0))
ANYHOW = Choices(latency="random", interval="random", assignment="random", seed=5)


def chains(gpu: GpuInstance, draw: random.Random) -> GpuSchedule:
    """A run of strings on a machine without latencies: whoever draws well goes first."""
    programs = [program for program, warps in gpu.grid.block for _ in range(warps)]
    course = BlockTrace(0, tuple(tuple(range(program.end)) for program in programs))
    left, clock = gpu.blocks, 0
    slots: list[dict[int, tuple[int, list[int]]]] = [{} for _ in range(gpu.sms)]  # when its warps begin, where they are
    cycles: list[list[tuple[tuple[int, int], ...]]] = [[] for _ in slots]
    begins: list[list[BlockStart]] = [[] for _ in slots]
    while left or any(slots):
        while left and (free := [sm for sm, own in enumerate(slots) if len(own) < gpu.resident]):
            sm, left = draw.choice(free), left - 1
            slot = min(set(range(gpu.resident)) - set(slots[sm]))
            delay = draw.randint(0, gpu.dispatch)
            slots[sm][slot] = clock + delay, [0] * len(programs)
            begins[sm].append(BlockStart(clock, slot, 0, delay))
        for sm, own in enumerate(slots):
            if not own:
                continue
            ready = [(slot, w) for slot, (since, at) in own.items() for w in range(len(at)) if since <= clock]
            ready = [(slot, w) for slot, w in ready if own[slot][1][w] < programs[w].end]
            free_ports, issuing = dict(gpu.machine.capacities), []
            for slot, w in draw.sample(ready, len(ready)):
                unit = programs[w].places[own[slot][1][w]].unit
                if free_ports[unit]:
                    free_ports[unit] -= 1
                    own[slot][1][w] += 1
                    issuing.append((slot, w))
            cycles[sm].append(tuple(sorted(issuing)))
            for slot in [slot for slot, (_, at) in own.items() if at == [program.end for program in programs]]:
                del own[slot]
        clock += 1
    histories = [SmHistory(1, (RepeatedCycles(tuple(own), tuple(begins[sm])),)) for sm, own in enumerate(cycles) if own]
    return GpuSchedule((course,), tuple(histories))


RATE = dram_rate("448 GB/s, its peak", "nothing else uses it")


def assumed(gpu: GpuInstance) -> tuple[Assumption, ...]:
    """What a result about these SMs assumes, with how much DRAM moves where it may be busy."""
    return (*gpu.assumptions, *[RATE] * bool(gpu.dram))


def make_busy(document: Document) -> None:
    """Let DRAM be busy for a cycle, and say how much it moves."""
    document["instance"].update(dram=1)
    document["result"]["assumptions"].append(RATE.document)


def of_theorem_g(gpu: GpuInstance, witness: GpuSchedule, best_case: int | None = None) -> GpuResult:
    """A result that rests on theorem G."""
    proof = theorem_g(gpu)
    best = None if best_case is None else Bounds(best_case, witness.makespan)
    bounds = Bounds(witness.makespan, proof.upper)
    return GpuResult(gpu, bounds, witness, "theorem-g", proof, (), best, 1.0, assumed(gpu))


def of_one_wave(gpu: GpuInstance) -> GpuResult:
    """A result that rests on those of one SM with each number of blocks that it may have."""
    least = max(1, gpu.blocks - (gpu.sms - 1) * gpu.resident)
    sms = tuple(solve(gpu.sm(blocks)) for blocks in range(gpu.resident, least - 1, -1))
    upper = gpu.dispatch + max(result.bounds.upper for result in sms)
    witness = chains(gpu, random.Random(1))
    bounds = Bounds(witness.makespan, upper)
    return GpuResult(gpu, bounds, witness, "one-wave", None, sms, None, 1.0, gpu.assumptions)


def of(block: str, blocks: int, sms: int, resident: int, *, machine: Machine = PAPER, dispatch: int = 0) -> GpuInstance:
    """Of one warp of each of some strings."""
    programs = [(Program.chain(letters), 1) for letters in block.split()]
    return GpuInstance.of(programs, blocks, machine, sms=sms, resident=resident, dispatch=dispatch)


def alone(blocks: int, sms: int) -> GpuResult:
    """Blocks `CLC` one after another on each SM, of which each has to wait for a port that it holds itself."""
    gpu = of("CLC", blocks * sms, sms, 1, machine=SLOW)
    stretch = RepeatedCycles((((0, 0),), (), (), ((0, 0),), ((0, 0),), (), ()), (BlockStart(0, 0, 0),), blocks)
    return of_theorem_g(gpu, GpuSchedule((BlockTrace(0, ((0, 1, 2),)),), (SmHistory(sms, (stretch,)),)), 7 * blocks)


@cache
def honest() -> tuple[Document, ...]:
    """Tiny bundles of every kind."""
    draw = random.Random(2)
    waves = [
        of("CLL", 5, 2, 1), of("CL C", 3, 1, 2), of("CL CL", 4, 2, 1), of("LC", 4, 1, 2, dispatch=1), of("C", 7, 2, 2),
    ]  # fmt: skip
    results = [of_theorem_g(gpu, chains(gpu, draw), 1) for gpu in waves]
    results += [of_one_wave(of("CLC LLC", 2, 2, 2)), of_one_wave(of("CLL", 3, 2, 2)), alone(3, 1), alone(2, 2)]
    results += [of_one_wave(of("CL C", 4, 2, 2)), of_one_wave(of("LC", 2, 2, 1, dispatch=1))]
    for machine, block, dispatch in RICH:
        rich = GpuInstance.of([(parse_string(block, machine), 2)], 3, machine, sms=1, resident=2, dispatch=dispatch)
        results.append(of_theorem_g(rich, run_gpu(rich, "random", "random", ANYHOW), 1))
    busy = replace(of("L L", 3, 2, 1), dram=1)
    results.append(of_theorem_g(busy, chains(busy, draw), 1))
    return tuple(json.loads(json.dumps(gpu_bundle(result))) for result in results)


def forged(document: Document, change: Callable[[Document], None]) -> Document:
    """A changed copy with a digest that fits."""
    copied = copy.deepcopy(document)
    change(copied)
    return {**copied, "sha256": digest(copied)}


# Accepted


def test_honest_bundles_are_accepted() -> None:
    for document in honest():
        verdict = verify(document)
        assert verdict.outcome is Outcome.ACCEPTED, verdict
        assert verdict.lower == document["result"]["lower"]
        assert verdict.upper is not None
        assert verdict.upper <= document["result"]["upper"]


def test_honest_bundles_are_valid_by_the_published_schema() -> None:
    validator = published("gpu-bundle-2")
    for document in (*honest(), {**honest()[0], "witness": None, "shortest": honest()[0]["witness"]}):
        validator.validate(document)
        assert not validator.is_valid({**document, "more": 1})


def test_without_a_witness_no_schedule_is_shorter_than_the_lower_bound() -> None:
    gpu = of("CLL CL", 9, 2, 2)
    shown = of_theorem_g(gpu, run_gpu(gpu, "lrr"), 6)
    without = replace(
        shown, witness=None, bounds=Bounds(6, shown.bounds.upper), best_case=Bounds(6, shown.bounds.upper)
    )
    document = gpu_bundle(without)
    verdict = verify(document)
    assert (verdict.outcome, verdict.lower) == (Outcome.ACCEPTED, least_makespan_of_gpu(gpu))
    assert "no schedule is shorter, and none is shown" in verdict.reason
    higher = gpu_bundle(replace(without, bounds=Bounds(least_makespan_of_gpu(gpu) + 1, shown.bounds.upper)))
    assert verify(higher).outcome is Outcome.UNPROVEN
    shorter = gpu_bundle(replace(without, best_case=Bounds(6, least_makespan_of_gpu(gpu) + 1)))
    assert verify(shorter).outcome is Outcome.UNPROVEN


def test_the_shortest_schedule_is_executed() -> None:
    gpu = of("CLC LLL", 30, 1, 3)
    quick, slow = sorted((run_gpu(gpu, policy) for policy in ("oldest", "gty")), key=lambda one: one.makespan)
    assert quick.makespan < slow.makespan
    shown = of_theorem_g(gpu, slow, least_makespan_of_gpu(gpu))
    shown = replace(shown, best_case=Bounds(least_makespan_of_gpu(gpu), quick.makespan), shortest=quick)
    assert verify(gpu_bundle(shown)).outcome is Outcome.ACCEPTED
    assert verify(gpu_bundle(shown)).best_case == (least_makespan_of_gpu(gpu), quick.makespan)
    assert verify(gpu_bundle(replace(shown, shortest=None))).outcome is Outcome.UNPROVEN
    document = gpu_bundle(shown)
    document["shortest"]["histories"][0]["stretches"][0]["cycles"][0][1].pop()
    document["sha256"] = digest(document)
    assert verify(document).outcome is Outcome.REJECTED


def test_a_million_repeats_cost_as_much_as_one() -> None:
    verdict = verify(gpu_bundle(alone(10**15, 80)))
    assert (verdict.outcome, verdict.lower) == (Outcome.ACCEPTED, 7 * 10**15)


def test_a_stretch_that_settles_later_is_unfolded_until_then() -> None:
    """Two slots, whose blocks end in turns: the first blocks begin together, so the first two passes differ."""
    gpu = of("CL", 22, 1, 2)
    course = BlockTrace(0, ((0, 1),))
    first = RepeatedCycles((((0, 0),), ((0, 0), (1, 0))), (BlockStart(0, 0, 0), BlockStart(0, 1, 0)))
    settled = RepeatedCycles((((0, 0), (1, 0)), ((0, 0), (1, 0))), (BlockStart(0, 0, 0), BlockStart(1, 1, 0)), 10)
    end = RepeatedCycles((((1, 0),),), ())
    schedule = GpuSchedule((course,), (SmHistory(1, (first, settled, end)),))
    assert replay(gpu, schedule) == 23
    assert verify(gpu_bundle(of_theorem_g(gpu, schedule))).outcome is Outcome.ACCEPTED


@given(gpus(most_slots=4, most_blocks=12), st.sampled_from(sorted(POLICIES)), st.sampled_from(DISPATCH), st.booleans())
@settings(max_examples=25, deadline=None)
def test_runs_and_bounds_of_any_gpu_are_accepted(gpu: GpuInstance, policy: str, dispatch: str, is_random: bool) -> None:
    assume(gpu.machine.scheduler is SchedulerPromise.ANY)
    schedule = run_gpu(gpu, policy, dispatch, ANYHOW if is_random else None)
    document = json.loads(canonical_json(gpu_bundle(of_theorem_g(gpu, schedule))))
    read = gpu_reading.bundle(document)
    assert (gpu_question_data(read.gpu), read.witness) == (gpu_question_data(gpu), schedule)
    verdict = verify(document)
    assert verdict.outcome is Outcome.ACCEPTED, verdict


# Rejected


def _histories(document: Document) -> list[Any]:
    histories: list[Any] = document["witness"]["histories"]
    return histories


def _first(document: Document, key: str) -> list[Any]:
    """Of the first stretch."""
    found: list[Any] = _histories(document)[0]["stretches"][0][key]
    return found


def _exact(document: Document) -> None:
    document["result"].update(upper=document["result"]["lower"], status="exact")


CHANGES: dict[str, tuple[int, Callable[[Document], None]]] = {
    "reported by theorem-g, re-proved only to": (1, _exact),
    "the witness takes . cycles, the lower bound says": (4, lambda d: d["result"].update(lower=1, status="bounded")),
    "slot 0 is taken": (1, lambda d: _first(d, "begins").insert(2, [1, 0, 0, 0])),
    "the blocks that come are not in their order": (1, lambda d: _first(d, "begins").append([1, 0, 0, 0])),
    "blocks of grid 0 are executed, not 6": (0, lambda d: d["instance"]["grids"][0].update(blocks=6)),
    "there is no course 7": (0, lambda d: _first(d, "begins").append([5, 0, 7, 0])),
    "more than 2 SMs": (0, lambda d: _histories(d)[0].update(sms=2)),
    "all blocks that are left would fit, and none of them comes": (0, lambda d: d["instance"].update(sms=3)),
    "there must be a result for each": (5, lambda d: d["sms"][0].update(blocks=1)),
    "an SM may take up to": (5, lambda d: d["sms"][0].update(upper=d["sms"][0]["upper"] + 1)),
    "upper is not a whole number": (5, lambda d: d["sms"][0].update(upper=0)),
    "one-wave proves nothing where blocks of an SM may begin": (5, lambda d: d["instance"].update(dispatch=1)),
    "one-wave proves nothing where DRAM may be busy": (5, make_busy),
    "dram is not a whole number": (-1, lambda d: d["instance"].update(dram=-1)),
    "reported by theorem-g, re-proved only to 9": (-1, lambda d: d["instance"].update(dram=3)),
    "results of SMs are the evidence of one-wave": (0, lambda d: d["result"].update(evidence="one-wave")),
    "groups is not a list of": (0, lambda d: d["weights"].append({"classes": ["C"], "caps": [1], "groups": []})),
    "all warps have finished already": (0, lambda d: _first(d, "cycles").append([1, []])),
    "the executing warps are not in increasing order": (
        1, lambda d: _first(d, "cycles")[0].__setitem__(1, [[1, 0], [0, 0]]),
    ),
    "there is no such slot or warp": (
        1, lambda d: _first(d, "cycles")[0].__setitem__(1, [[0, 5]]),
    ),
    "grid is not a whole number in 0..0": (0, lambda d: d["witness"]["courses"][0].update(grid=1)),
    "leaves no choice of a latency": (0, lambda d: d["witness"]["courses"][0].update(latencies=[[1, [1]]])),
    "delay is not a whole number": (0, lambda d: _first(d, "begins")[0].__setitem__(3, 1)),
    "is of another makespan": (0, lambda d: d.update(schema="makespan.gpu-bundle/3")),
}  # fmt: skip


@pytest.mark.parametrize("reason", CHANGES)
def test_what_was_changed_is_not_accepted(reason: str) -> None:
    number, change = CHANGES[reason]
    verdict = verify(forged(honest()[number], change))
    assert verdict.outcome is not Outcome.ACCEPTED
    assert _without_digits(reason) in _without_digits(verdict.reason), verdict


def _without_digits(text: str) -> str:
    return "".join("." if letter.isdigit() else letter for letter in text)


C_HELD = Machine("held", (UnitClass("C", 1, 3), UnitClass("L", 1)))
ONE, TWICE, SECOND = BlockTrace(0, ((0,),)), BlockTrace(0, ((0, 1),)), BlockTrace(0, ((0,), (0,)))
SCHEDULES = {
    "1 warps have not finished": (of("L C", 1, 1, 1, machine=SLOW), SECOND, [(1, [[(0, 0)]], 1)]),
    "finds no free port of C": (of("C", 3, 1, 1, machine=C_HELD), ONE, [(1, [[(0, 0)]], 3)]),
    "all blocks that are left would fit": (of("C", 4, 2, 1), ONE, [(1, [[(0, 0)]], 1), (1, [[(0, 0)]], 3)]),
    "not in increasing order": (of("CC", 1, 1, 1, machine=Machine.of({"C": 2})), TWICE, [(1, [[(0, 0), (0, 0)]], 1)]),
    "of class C is left out although": (of("C", 3, 1, 1), ONE, [(1, [[], [(0, 0)]], 3)]),
}
"""A GPU, the course of all blocks, and of each SM the cycles of a block that comes to slot 0, and how often it does."""


@pytest.mark.parametrize("reason", SCHEDULES)
def test_no_schedule_is_refused_by_its_reason(reason: str) -> None:
    gpu, course, written = SCHEDULES[reason]
    histories = [
        SmHistory(sms, (RepeatedCycles(tuple(map(tuple, cycles)), (BlockStart(0, 0, 0),), repeat),))
        for sms, cycles, repeat in written
    ]
    with pytest.raises(Refused, match=reason):
        replay(gpu, GpuSchedule((course,), tuple(histories)))


def test_a_stretch_is_not_as_before_while_a_warp_that_waits_has_gone_on() -> None:
    """Its warp issues, and waits for the port in the cycle behind; so again, from a later place."""
    gpu = of("LLL", 1, 1, 1, machine=Machine("held", (UnitClass("L", 1, 2),)))

    def again(times: int) -> GpuSchedule:
        issue, wait = ((0, 0),), ()
        stretches = (
            RepeatedCycles((issue, wait), (BlockStart(0, 0, 0),)),
            RepeatedCycles((issue, wait), (), times),
            RepeatedCycles((issue,), ()),
        )
        return GpuSchedule((BlockTrace(0, ((0, 1, 2),)),), (SmHistory(1, stretches),))

    assert replay(gpu, again(1)) == 5
    with pytest.raises(Refused, match="finished already"):
        replay(gpu, again(100))


def test_a_machine_that_leaves_no_choice_of_a_partition_is_given_none() -> None:
    stretch = RepeatedCycles((((0, 0),),), (BlockStart(0, 0, 0),))
    with pytest.raises(Refused, match="leaves no choice of a partition"):
        replay(of("C", 1, 1, 1), GpuSchedule((ONE,), (SmHistory(1, (stretch,), ((0,),)),)))


@pytest.mark.parametrize(
    "gpu",
    [
        of("C|L", 3, 1, 1),
        of("CLL", 3, 1, 1, machine=C_HELD),
        of("CLL", 3, 1, 1, machine=Machine("held", (UnitClass("C", 1, 2), UnitClass("L", 1)))),
        of("CLL", 3, 1, 1, machine=replace(PAPER, partitions=2)),
        of("CLL CLL", 3, 1, 2, machine=replace(PAPER, issue_width=1)),
        of("CLL CLL", 3, 1, 2, machine=PARTS),
    ],
)
def test_weights_of_pairs_prove_nothing_of_other_gpus(gpu: GpuInstance) -> None:
    proof = pairs.disjoint(replace(gpu.sm(1), machine=PAPER))
    assert theorem_g_again.bound(of("CLL", 3, 1, 1), [pairs.disjoint(of("CLL", 3, 1, 1).sm(1))])
    with pytest.raises(Refused, match="theorem E does not apply to this GPU"):
        theorem_g_again.bound(gpu, [proof])


def test_weights_with_thresholds_prove_nothing_of_a_gpu() -> None:
    gpu = of("CLL", 3, 1, 1)
    with pytest.raises(Refused, match="theorem E does not apply to this GPU"):
        theorem_g_again.bound(gpu, [replace(pairs.disjoint(gpu.sm(1)), thresholds=(1, 1))])


def test_a_class_counts_where_it_can_be_full_or_has_weights() -> None:
    """Three blocks CSS in two slots; and CS, which never wait for one of two ports and need 2 + 2, to either end."""
    gpu = of("CSS", 3, 1, 2, machine=Machine.of({"C": 1, "S": 1}))
    assert theorem_g_again.bound(gpu, [Weights((), (), (((0,),) * 3,))]) >= brute_force_gpu(gpu).upper == 7
    free = of("CS", 3, 1, 2, machine=Machine.of({"C": 2, "S": 2}))
    nothing, cost = Weights((), (), (((0,),) * 2,)), theorem_g_again._LapseCharge.of(free, free.sm(1))
    assert list(theorem_g_again._bounds_by_pairs(free, free.sm(2), cost, nothing)) == [2 + 2, 2 + 2]
    by_pairs = theorem_g_again._bounds_by_pairs(free, free.sm(2), cost, pairs.disjoint(free.sm(2)))
    assert list(by_pairs) == [3 + 2, 3 + 3]  # the last two as an SM that begins, or with pairs that others have open


def test_what_a_pair_takes_is_open_and_not_what_it_leaves() -> None:
    """C gives a third of a cycle to L, of which nobody takes the rest.

    A block begins when 1 cycle for its chain, 4 for what 4 warps have left, and half of 4/3 that are open have passed,
    and ends after 1 + 4 + 4/3 - 1/3; two later blocks follow each other in two slots: 17/3 + 6.
    """
    gpu = GpuInstance.of([(Program.chain("CL"), 2)], 3, Machine.of({"C": 3, "L": 1}), sms=1, resident=2)
    weights = [Weights(("C", "L"), (1, 3), (((0,), (reserve,)),)) for reserve in (1, 2)]
    assert [theorem_g_again.bound(gpu, [one]) for one in weights] == [17 // 3 + 6] * 2
    assert brute_force_gpu(gpu).upper < 11 < theorem_g_again.bound(gpu, [])


def test_partitions_of_later_blocks_are_those_of_their_slots_and_even() -> None:
    gpu = GpuInstance.of([(Program.chain("C"), 2)], 2, PARTS, sms=1, resident=1)
    stretch = RepeatedCycles((((0, 0), (0, 1)), ()), (BlockStart(0, 0, 0),), 2)
    course = BlockTrace(0, ((0,), (0,)), ((2,), (2,)))
    assert replay(gpu, GpuSchedule((course,), (SmHistory(1, (stretch,), ((0, 1),)),))) == 4
    with pytest.raises(Refused, match="not spread evenly"):
        replay(gpu, GpuSchedule((course,), (SmHistory(1, (stretch,), ((0, 0),)),)))


# Any change


def places(value: object) -> Iterator[tuple[Any, Any]]:
    """Every list or object of a document with every index or key in it."""
    pairs = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in list(pairs):
        yield value, key
        yield from () if key == "assumptions" else places(item)


def changed(draw: random.Random, document: Document) -> None:
    """Some numbers, letters or items, anywhere but in what is not checked."""
    for _ in range(draw.randint(1, 3)):
        change(draw, document)


def change(draw: random.Random, document: Document) -> None:
    """One of them."""
    parts = [document[part] for part in ("instance", "result", "witness", "weights", "sms")]
    known = [(where, key) for part in parts for where, key in places(part) if key not in ("seconds", "versions")]
    where, key = draw.choice([one for one in known if one[1] != "assumptions"])
    value, kind = where[key], draw.randrange(4)
    if type(value) is int:
        where[key] = draw.choice([value + 1, value - 1, 2 * value, 0, 1])
    elif isinstance(value, str) and value:
        at = draw.randrange(len(value))
        where[key] = value[:at] + draw.choice("CL") + value[at + 1 :]
    elif isinstance(value, list) and value and kind == 0:
        value.append(copy.deepcopy(draw.choice(value)))
    elif isinstance(value, list) and value and kind == 1:
        value.pop(draw.randrange(len(value)))
    elif isinstance(value, list) and value:
        a, b = draw.randrange(len(value)), draw.randrange(len(value))
        value[a], value[b] = value[b], value[a]


@cache
def truth(instance: str) -> Bounds:
    return brute_force_gpu(gpu_reading.instance(json.loads(instance)))


def is_true(document: Document, verdict: Verdict) -> bool:
    """Whether an accepted claim encloses all schedules, and its witness, if there is one, is one of them."""
    claim, every, read = verdict.claim, truth(json.dumps(document["instance"])), gpu_reading.bundle(document)
    assert claim is not None
    if read.witness is None:
        assert claim.lower <= every.lower
    else:
        assert gpu_replay.replay_gpu(read.gpu, read.witness) == claim.lower
    best = claim.best_case or (every.lower, every.lower)
    return claim.lower <= every.upper <= claim.upper and best[0] <= every.lower <= best[1]


@pytest.mark.parametrize("count", [300, pytest.param(20_000, marks=pytest.mark.soak)])
def test_any_forgery_is_rejected_unproven_or_still_true(count: int) -> None:
    draw, outcomes = random.Random(3), set()
    for number in range(count):
        document = honest()[number % len(honest())]
        forgery = forged(document, partial(changed, draw))
        verdict = verify(forgery, most_states=2000)
        outcomes.add(verdict.outcome)
        if verdict.outcome is Outcome.ACCEPTED:
            assert is_true(forgery, verdict), (verdict, forgery)
    assert outcomes == set(Outcome)
