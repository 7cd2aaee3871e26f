"""The bounds with lapses against numbers that are added up by hand, and all others, which must refuse."""

from collections.abc import Callable
from dataclasses import replace
from importlib import import_module
from typing import Any

import pytest

from makespan.host.errors import UnsupportedError
from makespan.model.instance import Group, Instance
from makespan.model.lapses import CacheLine, PlaceLapses
from makespan.model.machine import Latency, Machine, SchedulerPromise, UnitClass, WarpAssignment
from makespan.model.program import BARRIER, Program, ProgramPlace
from makespan.model.result import Upper
from makespan.proof.bounds import (
    any_units,
    closed_form,
    issue_slots,
    lapse_proof,
    lapse_proofs,
    pessimistic,
    phases,
    theorem_1s,
    theorem_e,
    theorem_f,
    theorem_l,
    tightest,
)
from makespan.proof.bounds.first_cycles import front
from makespan.proof.bounds.partitions import partitions
from makespan.proof.engines.backends import ENGINES
from makespan.proof.engines.engine import Engine, refusal
from makespan.proof.engines.limits import Limits

ONE = PlaceLapses(credit=1)
TWO = Machine("two schedulers", (UnitClass("C", 1),), issue_width=1, partitions=2)
"""Two partitions, each with a port and a slot of its own; theorem 1S counts the instructions of one partition."""


def lapsing(letters: str, *lapses: PlaceLapses) -> Program:
    """Return the program of a string with these lapses of its places, the others without any."""
    return Program.chain(letters).lapsing((*lapses, *[PlaceLapses()] * (len(letters) - len(lapses))))


def line(name: str, window: int) -> PlaceLapses:
    return PlaceLapses(lines=(CacheLine(name, window),))


def parts(instance: Instance) -> tuple[int, int, int, int]:
    """Return what the proof by theorem 1' or 1S adds up."""
    proof = lapse_proofs(instance)[0]
    assert proof.upper == sum((proof.base.upper, *proof[1:]))
    return proof.base.upper, proof.credits, proof.windows, proof.misses


def test_with_one_partition_all_warps_give_credit() -> None:
    program = lapsing("CL", PlaceLapses(credit=2, fence=5), ONE)
    # 2 cycles alone, 2 for each of the other two; three times 3 of credit and 5 of the fence
    assert parts(Instance.of(program, 3)) == (6, 9 + 15, 0, 0)


def test_with_several_partitions_the_warps_of_the_last_one_give_credit_and_all_give_fences() -> None:
    # warps 0, 2 and 4 share a partition: 6 instructions, and 3 times 1 of credit; 5 fences stop the whole SM
    program = lapsing("CC", ONE, PlaceLapses(fence=7))
    assert parts(Instance.of(program, 5, TWO)) == (6, 3 * 1 + 5 * 7, 0, 0)


@pytest.mark.parametrize(("assignment", "expected"), [(WarpAssignment.MODULO, (5, 7)), (WarpAssignment.ANY, (6, 11))])
def test_different_warps_give_credit_where_they_are_or_may_be(
    assignment: WarpAssignment, expected: tuple[int, int]
) -> None:
    machine = replace(TWO, assignment=assignment)
    warps = Instance.merged([(lapsing("C", PlaceLapses(credit=5)), 2), (lapsing("CC", ONE), 3)], machine)
    # modulo: warps 0, 2 and 4 are C, CC and CC; any: the worst three of five are two C and a CC for credit
    assert parts(warps)[:2] == expected


def test_a_window_counts_once_for_each_line_of_the_last_warp_at_its_longest() -> None:
    short = lapsing("CCC", line("code 0", 20), line("code 0", 20), line("code 1", 30))
    other = lapsing("CL", line("code 0", 25), line("code 2", 9))
    assert parts(Instance.of(short, 4))[2] == 20 + 30
    # the lines of the two programs are the same memory, so the longer window of `code 0` counts for both
    assert parts(Instance((Group(short, 1), Group(other, 1))))[2] == 25 + 30


def test_a_line_that_does_not_stay_counts_at_each_visit_of_the_heaviest_path() -> None:
    places = (ProgramPlace("C", (1, 2)), ProgramPlace("C", (3,)), ProgramPlace("L", (3,)), ProgramPlace("L", (4,)))
    branch = Program(places, lapses=tuple(PlaceLapses(misses=cycles) for cycles in (5, 50, 70, 5)))
    assert parts(Instance.of(branch, 3))[3] == 5 + 70 + 5
    assert parts(Instance((Group(branch, 1), Group(lapsing("C", PlaceLapses(misses=90)), 1))))[3] == 90


def test_with_barriers_all_warps_give_credit_and_windows_count_in_each_partition_of_the_chain() -> None:
    program = lapsing("C|C", PlaceLapses(1, 2, 0, (CacheLine("a", 10),)), ONE, line("b", 20))
    for partitions_, times in (1, 1), (2, 2), (4, 2):  # two phases: the chain is in two partitions at most
        whole = Instance.of(program, 4, replace(TWO, partitions=partitions_))
        assert parts(whole)[1:] == (4 * 2 + 4 * 2, 30 * times, 0)
    blocks = Instance.of(program, 4, TWO, blocks=2)
    assert parts(blocks)[1:] == (4 * 2 + 4 * 2, 60, 0)


def test_with_barriers_misses_are_those_of_the_worst_warp_in_each_phase() -> None:
    one = lapsing("C|C", PlaceLapses(misses=10), PlaceLapses(misses=3), PlaceLapses(misses=1))
    other = lapsing("L|L", PlaceLapses(misses=5), PlaceLapses(misses=1), PlaceLapses(misses=9))
    assert parts(Instance((Group(one, 2), Group(other, 2))))[3] == (10 + 3) + 9
    # a warp that may come to its barrier without an instruction is withheld at the barrier all the same
    places = (ProgramPlace("C", (1,)), ProgramPlace(BARRIER, (2,)), ProgramPlace(BARRIER, (3,)))
    twice = Program(places, lapses=tuple(PlaceLapses(misses=cycles) for cycles in (1, 20, 300)))
    assert parts(Instance.of(twice, 2))[3] == 321


def test_too_many_phases_count_all_partitions_and_all_misses(monkeypatch: pytest.MonkeyPatch) -> None:
    program = lapsing("C|C", PlaceLapses(misses=10), line("a", 7))
    four = Instance.of(program, 6, replace(TWO, partitions=4))
    assert parts(four)[2:] == (7 * 2, 10)
    monkeypatch.setattr(import_module("makespan.proof.bounds.phases"), "MOST_PLACES", 1)
    assert parts(four)[2:] == (7 * 4, 6 * 10)


def test_theorem_e_counts_lapses_once_and_what_may_withhold_warps_twice() -> None:
    program = lapsing("CL", PlaceLapses(2, 3, 4, (CacheLine("a", 10),)))
    plain, paired = lapse_proofs(Instance.of(program, 5))
    assert plain[1:] == (5 * 2 + 5 * 3, 10, 4)
    # 2 cycles alone and 1 for each other pair; fences twice, C(z) and C, misses of z and of all five
    assert (paired.base.evidence, paired.base.upper) == (Upper.THEOREM_E, 2 + 4)
    assert paired[1:] == (5 * 2 + 2 * 5 * 3, 10 + 10, 4 + 5 * 4)
    assert lapse_proof(Instance.of(program, 5)) == plain
    other = lapsing("C", line("b", 6))
    mixed = lapse_proofs(Instance((Group(program, 1), Group(other, 1))))[1]
    assert mixed.windows == max(10, 6) + (10 + 6)
    barriers = Instance((Group(lapsing("C|L", line("a", 10)), 2), Group(lapsing("C|C", line("b", 6)), 2)))
    assert lapse_proofs(barriers)[1].windows == 2 * (10 + 6)


def test_theorem_e_would_be_too_small_if_only_the_misses_of_the_last_warp_counted() -> None:
    """A schedule takes 6 cycles in which warp 0 is withheld in cycle 1, and warp 1 in cycle 4.

    By cycles: C of warp 0; C of warp 1; L of warp 0 and C of warp 2; L of warp 2; nothing; L of warp 1.
    """
    _, paired = lapse_proofs(Instance.of(lapsing("CL", PlaceLapses(), PlaceLapses(misses=1)), 3))
    last = 1
    assert paired.base.upper + last < 6 <= paired.upper == paired.base.upper + last + 3


def test_a_fair_scheduler_is_bounded_as_any_other_one() -> None:
    fair = replace(TWO, partitions=1, scheduler=SchedulerPromise.FAIR)
    any_scheduler = replace(fair, scheduler=SchedulerPromise.ANY)
    program = lapsing("CC", ONE)
    assert lapse_proofs(Instance.of(program, 4, fair)) == lapse_proofs(Instance.of(program, 4, any_scheduler))


def test_nothing_is_added_where_nothing_lapses() -> None:
    for program in (Program.chain("CLLC"), lapsing("CLLC")):
        proof = lapse_proof(Instance.of(program, 8))
        assert (proof.base, *proof[1:]) == (theorem_e(Instance.of("CLLC", 8)), 0, 0, 0)


# --- all other bounds and engines ------------------------------------------------------------------------------

SLOW = Machine("slow", (UnitClass("C", 1), UnitClass("L", 1, 1, Latency(400, 400))))
FAIR = Machine(
    "fair",
    (UnitClass("C", 1, 1, Latency(4, 4)), UnitClass("L", 1, 1, Latency(20, 30))),
    issue_width=1,
    scheduler=SchedulerPromise.FAIR,
)
SLOTS = Machine("slots", (UnitClass("C", 1, 1, Latency(4, 4)), UnitClass("L", 1, 1, Latency(9, 9))), issue_width=1)
ALMOST = Instance.of("CLLC", 3)
BOUNDS: dict[str, tuple[Callable[[Instance], Any], Instance]] = {
    "pessimistic": (pessimistic, ALMOST),
    "theorem 1S as the pessimistic bound": (pessimistic, Instance.of("CC", 5, TWO)),
    "any units": (any_units, ALMOST),
    "closed form": (closed_form, ALMOST),
    "tightest": (lambda one: tightest(one, 9) if theorem_e(one) else None, ALMOST),
    "theorem 1S": (theorem_1s, Instance.of("CC", 5, TWO)),
    "theorem E": (theorem_e, ALMOST),
    "theorem F": (theorem_f, Instance.of("CCLCC", 4, FAIR)),
    "theorem L": (theorem_l, Instance.of("CCLCL", 8, SLOW)),
    "issue slots": (issue_slots, Instance.of("CLLC", 4, SLOTS)),
    "phases": (phases, Instance.of("C|L", 2)),
    "partitions": (partitions, Instance.of("CC", 5, TWO)),
    "front": (lambda one: (found := front(one, 100)) and found.cycles, ALMOST),
}
ENGINE_OF = {
    "two-warp-dp": Instance.of("CL", 2),
    "certificate": ALMOST,
    "levels": Instance.of("CLLC", 3, SLOTS),
    "search": Instance.of("CC", 3, TWO),
    "cpsat": ALMOST,
    "ilp": ALMOST,
}


def _with_lapses(instance: Instance) -> Instance:
    (group,) = instance.groups
    return replace(instance, groups=(replace(group, program=group.program.lapsing((ONE,) * group.program.end)),))


def _answer(bound: Callable[[Instance], Any], instance: Instance) -> Any:
    try:
        return bound(instance)
    except UnsupportedError as error:
        if "lapses of schedulers" not in str(error):
            raise
        return None


@pytest.mark.parametrize("name", BOUNDS)
def test_a_bound_without_lapses_refuses_them(name: str) -> None:
    bound, instance = BOUNDS[name]
    assert _answer(bound, instance)
    assert not _answer(bound, _with_lapses(instance))


@pytest.mark.parametrize("engine", ENGINES, ids=lambda engine: engine.name)
def test_an_engine_refuses_lapses(engine: Engine) -> None:
    instance = ENGINE_OF[engine.name]
    assert refusal(engine, instance, Limits()) is None
    assert "lapses of schedulers" in str(refusal(engine, _with_lapses(instance), Limits()))
