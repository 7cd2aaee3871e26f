"""Theorem 1Q against all schedules of small machines with queues, and against the checker's own of it."""

from dataclasses import replace
from importlib import import_module

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from makespan.host.errors import UnsupportedError
from makespan.model.instance import Group, Instance
from makespan.model.lapses import PlaceLapses
from makespan.model.machine import Machine, PortResource, UnitClass, UnitQueue, Use
from makespan.model.program import InstructionTiming, Program
from makespan.model.result import Bounds, Upper
from makespan.model.strings import parse_string
from makespan.proof.bounds import lapse_proof, lapse_proofs, least_possible, theorem_1s
from makespan.proof.engines import solve
from makespan.report.result.bundle import result_bundle
from makespan.verify import Outcome, verify
from makespan.verify import queues as checked
from makespan.verify.lower_bounds import least_with_queues
from tests.lapsing import behind, never_lapsing
from tests.oracle import brute_force
from tests.queue_oracle import best_with_queues, worst_with_queues
from tests.strategies import multiprocessor_instances

theorem = import_module("makespan.proof.bounds.theorem_1q")


@st.composite
def queued_instances(draw: st.DrawFn, *, most_warps: int = 3, most: int = 2) -> Instance:
    """A few warps on a multiprocessor, some of whose classes have queues of different sizes."""
    instance = draw(multiprocessor_instances(most_warps=most_warps, most=most, barriers=False))
    used = sorted(set().union(*(group.program.units for group in instance.groups)))
    first = draw(st.lists(st.sampled_from(used), min_size=1, unique=True))
    second = [unit for unit in used if unit not in first and draw(st.booleans())]
    queues = tuple(
        UnitQueue(name, tuple(units), draw(st.integers(0, 3)), draw(st.booleans()))
        for name, units in (("first", first), ("second", second))
        if units
    )
    return behind(queues, instance)


def lapsing(draw: st.DrawFn, instance: Instance) -> Instance:
    """The same warps; some of their places give credit for a lapse, or miss."""

    def draw_lapses(program: Program) -> tuple[PlaceLapses, ...]:
        return tuple(
            PlaceLapses(credit=draw(st.integers(0, 1)), misses=draw(st.integers(0, 1))) for _ in program.places
        )

    groups = (replace(group, program=group.program.lapsing(draw_lapses(group.program))) for group in instance.groups)
    return replace(instance, groups=tuple(groups))


def upper(instance: Instance) -> int:
    found: int = theorem.theorem_1q(instance).upper
    return found


@given(queued_instances())
@settings(max_examples=25)
def test_no_schedule_with_queues_is_longer(instance: Instance) -> None:
    truth = worst_with_queues(instance)
    assert upper(instance) == lapse_proof(instance).upper >= truth
    assert truth >= brute_force(instance.without_lapses).upper


@given(queued_instances())
@settings(max_examples=25)
def test_no_schedule_with_queues_is_shorter_than_the_least_possible(instance: Instance) -> None:
    assert least_possible(instance) == least_with_queues(instance) <= best_with_queues(instance)


def test_a_warp_may_end_before_its_instruction_is_served() -> None:
    machine = Machine("store", (UnitClass("L", 1, 9),), queues=(UnitQueue("memory", ("L",), 4, blocks=False),))
    without_results = (InstructionTiming(1, (1, 1), (), ()),) * 3
    stores = Instance.of(never_lapsing(replace(Program.chain("LLL"), timings=without_results)), 1, machine)
    assert least_possible(stores.without_lapses) == 2 * 9 + 1
    assert least_possible(stores) == 3 <= best_with_queues(stores)
    result = solve(stores, best_case=True)
    assert result.best_case == Bounds(3, 19)
    verdict = verify(result_bundle(result))
    assert (verdict.outcome, verdict.best_case) == (Outcome.ACCEPTED, (3, 19))
    # what holds without queues is not taken for a bound with them
    assert verify(result_bundle(replace(result, best_case=Bounds(19, 19)))).outcome is not Outcome.ACCEPTED


@given(st.data())
@settings(max_examples=15)
def test_no_schedule_with_queues_and_lapses_is_longer(data: st.DataObject) -> None:
    instance = data.draw(st.composite(lapsing)(data.draw(queued_instances(most_warps=2))))
    assert lapse_proof(instance).upper >= worst_with_queues(instance)


@given(queued_instances(most_warps=40, most=9))
@settings(max_examples=60)
def test_the_checker_finds_the_same_bound(instance: Instance) -> None:
    assert upper(instance) == checked.bound(instance)


@given(queued_instances(most_warps=9, most=6), st.integers(1, 9))
@settings(max_examples=20)
def test_it_is_no_less_than_theorem_1s_and_the_same_for_all_sizes_of_queues(instance: Instance, places: int) -> None:
    without = theorem_1s(instance.without_lapses)
    assert without is None or upper(instance) >= without.upper
    queues = tuple(queue._replace(places=places, blocks=not queue.blocks) for queue in instance.machine.queues)
    assert upper(replace(instance, machine=replace(instance.machine, queues=queues))) == upper(instance)


# --- where a smaller bound would be false ----------------------------------------------------------------------


def of_warps(machine: Machine, *strings: str) -> Instance:
    return Instance.merged([(never_lapsing(parse_string(string, machine)), 1) for string in strings], machine)


def memory(units: str, *, blocks: bool) -> tuple[UnitQueue, ...]:
    return (UnitQueue("memory", tuple(units), 2, blocks),)


def port(name: str, most: int = 1) -> tuple[Use, ...]:
    return (Use((name,), most, most),)


@pytest.mark.parametrize("blocks", [False, True])
def test_a_later_instruction_of_a_warp_may_take_the_port_of_an_earlier_one(blocks: bool) -> None:
    """The second L waits in its queue while N takes the port that both need. Alone the warp takes 5 cycles."""
    units = UnitClass("L", 1, interval=3, uses=port("r")), UnitClass("N", 1, uses=port("r", 12))
    machine = Machine("late", units, 1, resources=(PortResource("r", 1),), queues=memory("L", blocks=blocks))
    instance = of_warps(machine, "L()L()N()")
    assert worst_with_queues(instance) == 16
    # L holds a port for 3 cycles twice, and N one for 12, although it goes through no queue
    assert upper(instance) == 5 + 3 + 3 + 12
    plain = theorem_1s(instance.without_lapses)
    assert plain is not None
    assert plain.upper == 5


@pytest.mark.parametrize("credit", [0, 1])
def test_with_lapses_queues_still_count(credit: int) -> None:
    units = UnitClass("L", 1, interval=3, uses=port("r")), UnitClass("N", 1, uses=port("r", 12))
    machine = Machine("late", units, 1, resources=(PortResource("r", 1),), queues=memory("L", blocks=False))
    program = parse_string("L()L()N()", machine).lapsing((PlaceLapses(credit=credit),) * 3)
    result = solve(Instance.of(program, 1, machine))
    assert worst_with_queues(result.instance) == 16 + 3 * credit
    assert result.bounds == Bounds(5, 23 + 3 * credit)
    assert result.lapses is not None
    assert (result.lapses.base.upper, result.lapses.credits) == (23, 3 * credit)
    assert verify(result_bundle(result)).outcome is Outcome.ACCEPTED


@pytest.mark.parametrize(("blocks", "rival"), [(False, "L"), (True, "C")])
def test_the_head_of_a_queue_may_wait_for_a_port_that_the_last_warp_does_not_need(blocks: bool, rival: str) -> None:
    units = UnitClass("P", 1, interval=5), UnitClass("L", 1), UnitClass("C", 1)
    machine = Machine("head", units, 1, partitions=2, queues=memory("PL", blocks=blocks))
    alone = replace(machine, partitions=1, resources=(PortResource("unused", 1),))
    instance = of_warps(alone, "P()P()", f"{rival}()@10")
    assert worst_with_queues(instance) == 16
    assert upper(instance) == 10 + 5 + 5 + (rival == "L")
    # the issue slots of the two P are all that theorem 1S counts
    of_two = of_warps(replace(machine, queues=()), "P()P()", "P()", f"{rival}()@10")
    plain = theorem_1s(of_two)
    assert plain is not None
    assert plain.upper < 16


def test_a_slot_and_a_port_of_an_instruction_in_a_queue_keep_a_warp_out_at_different_times() -> None:
    """No class of the last warp has a queue, and no queue blocks: it waits for the slot of L, later for its port."""
    units = UnitClass("P", 1, interval=4), UnitClass("L", 1, uses=port("r", 3)), UnitClass("N", 1, uses=port("r"))
    machine = Machine("slots", units, 1, resources=(PortResource("r", 1),), queues=memory("PL", blocks=False))
    instance = of_warps(machine, "P", "P", "L", "N()@2N(1)@30")
    # alone 32 cycles; one for the slot of each P and one for that of L, then three for its port
    assert worst_with_queues(instance) == 38
    assert upper(instance) == 32 + 4 + 4 + 3 + 2


# --- what it knows ---------------------------------------------------------------------------------------------

TWO = Machine("two", (UnitClass("C", 1), UnitClass("L", 1, interval=2)), 1, queues=memory("L", blocks=True))


def of_eight(string: str, machine: Machine = TWO) -> Instance:
    return Instance.of(never_lapsing(Program.chain(string)), 8, machine)


def test_only_theorem_1q_counts_queues() -> None:
    queued = of_eight("CLLC")
    (proof,) = lapse_proofs(queued)
    assert proof.base.evidence == Upper.THEOREM_1S
    assert (proof.base.upper, proof[1:]) == (upper(queued), (0, 0, 0))
    evidence = [proof.base.evidence for proof in lapse_proofs(Instance.of("CLLC", 8))]
    assert evidence == [Upper.PESSIMISTIC, Upper.THEOREM_E]


def test_barriers_leave_queues_out_and_say_so() -> None:
    instance = of_eight("CL|L")
    with pytest.raises(UnsupportedError, match="barriers"):
        theorem.theorem_1q(instance)
    assert lapse_proof(instance).upper == lapse_proof(replace(instance, machine=replace(TWO, queues=()))).upper
    said = [note.about for note in instance.assumptions if note.kind == "queues"]
    assert said == [("memory",)]
    assert not [note for note in of_eight("CLL").assumptions if note.kind == "queues"]
    assert not [note for note in of_eight("C|C").assumptions if note.kind == "queues"]


def test_too_many_paths_to_tell_apart_leave_a_bound_that_counts_stalls_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    """A stall of 3 cycles passes in the queue, and the 9 cycles of the result only afterwards."""
    monkeypatch.setattr(import_module("makespan.proof.bounds.theorem_1s"), "MOST_WORK", 0)
    instance = Instance((Group(never_lapsing(parse_string("L()@9+3C(1)", TWO)), 2),), TWO)
    assert upper(instance) == 2 * 2 * (9 + 1) >= worst_with_queues(instance)
