"""The evidence of a bundle, part by part: the largest that is read, and the smallest that is not."""

from typing import Any

import pytest

from makespan.model.certificate import Certificate, Potential, PotentialNode, PotentialTable, Weights
from makespan.model.instance import Instance
from makespan.model.machine import Latency, Machine, UnitClass
from makespan.model.program import Program
from makespan.model.result import UpperBound
from makespan.verify import Refused, partitions, phases, proofs
from makespan.verify.refusal import ProofSteps, TooMuchWork

MOST = 10**100
TWO = Instance.merged(
    [(Program.chain("CL"), 1), (Program.chain("L"), 1)],
    Machine("slow", (UnitClass("C", 1, 3), UnitClass("L", 1, 1, Latency(4, 4)))),
)
PHASES = Instance.of("CL|CL|C", 2)


def table(**changes: Any) -> dict[str, Any]:
    """C is one place and L four, and a port of C can be held for two more cycles."""
    return {
        "others": [[5, [4, -1, 4]], [4, 3, 2, 1]],
        "last": [5, 4, 3, 2, 1],
        "constant": 0,
        "ports": [[1, 2]],
        **changes,
    }


def potential(**changes: Any) -> dict[str, Any]:
    read = {"last_group": 0, "classes": ["C", "L"], "thresholds": [1, 1], "front": 0, "tables": [table()]}
    return {**read, "nodes": [[0, [1, 0, 1], None, 0], [None, [0, 0, 1], -2, 0]], **changes}


def read(*potentials: dict[str, Any], room: int = 1000, **changes: Any) -> Certificate:
    return proofs.certificate({"upper": 9, "potentials": list(potentials), **changes}, TWO, ProofSteps(room))


def test_a_certificate_is_read_as_it_is_written() -> None:
    tables = (PotentialTable(((5, 4, 3, 2, 1), (4, 3, 2, 1)), (5, 4, 3, 2, 1), 0, ((1, 2),)),)
    nodes = (PotentialNode(0, (1, 0, 1)), 0), (PotentialNode(None, (0, 0, 1), -2), 0)
    one = Potential(0, ("C", "L"), (1, 1), 0, tables, nodes)
    assert read(potential()) == Certificate(9, (one,))
    other = potential(last_group=1, tables=[table(last=[4, 3, 2, 1])], front=10**12)
    assert read(potential(), other, upper=1).potentials[1].front == 10**12


@pytest.mark.parametrize(
    "changes",
    [
        {"last_group": 1, "tables": [table(last=[4, 3, 2, 1])]},
        {"nodes": [[1, [0], 1, 0]]},
        {"nodes": [[1, [0], -2, 0], [1, [0], -1, 0], [1, [0], None, 0]]},
        {"tables": [table(), table()], "nodes": [[0, [0], None, 1]]},
        {"tables": [table(constant=MOST)]},
        {"tables": [table(constant=-MOST)]},
        {"tables": [table(others=[[5, [4, -1, 4]], [[MOST, -1, 4]]])]},
        {"tables": [table(last=[[MOST, -1, 5]])]},
        {"tables": [table(last=[-MOST, 0, 0, 0, 0])]},
        {"tables": [], "nodes": []},
    ],
)
def test_what_is_just_within_its_limits_is_read(changes: dict[str, Any]) -> None:
    assert read(potential(**changes))


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"last_group": 2}, "last_group is not a whole number in 0..1"),
        ({"last_group": -1}, "last_group is not a whole number in 0..1"),
        ({"last_group": 1}, "last has 5 numbers|last is not a list of 1..4"),
        ({"classes": []}, "classes is not a list of 1"),
        ({"classes": ["C", 1]}, "class is not a text"),
        ({"thresholds": []}, "thresholds is not a list of 1"),
        ({"thresholds": [-1]}, "thresholds holds something that is not"),
        ({"front": -1}, "front is not a whole number in 0"),
        ({"front": 10**12 + 1}, "front is not a whole number in 0"),
        ({"nodes": [[2, [0], None, 0]]}, "the last warp's class is not a whole number in 0..1"),
        ({"nodes": [[-1, [0], None, 0]]}, "the last warp's class is not a whole number in 0..1"),
        ({"nodes": [[0, [0], 2, 0]]}, "label is not a whole number in -2..1"),
        ({"nodes": [[0, [0], -3, 0]]}, "label is not a whole number in -2..1"),
        ({"nodes": [[0, [0], None, 1]]}, "table is not a whole number in 0..0"),
        ({"nodes": [[0, [0], None, -1]]}, "table is not a whole number in 0..0"),
        ({"nodes": [[0, [0], None]]}, "node is not a list of 4..4"),
        ({"nodes": [[0, [0], None, 0, 0]]}, "node is not a list of 4..4"),
        ({"nodes": [[0, [], None, 0]]}, "kind is not a list of 1"),
        ({"nodes": [[0, [0], None, 0], [0, [0], None, 0]]}, "a node of the potential is given twice"),
        ({"tables": [table(constant=MOST + 1)]}, "constant is not a whole number in"),
        ({"tables": [table(constant=-MOST - 1)]}, "constant is not a whole number in"),
        ({"tables": [table(others=[[5, 4, 3, 2, 1]])]}, "others is not a list of 2..2"),
        ({"tables": [table(others=[[5, [4, -1, 3]], [4, 3, 2, 1]])]}, "the length of a progression in others"),
        ({"tables": [table(others=[[5, [4, -1, 5]], [4, 3, 2, 1]])]}, "the length of a progression in others"),
        ({"tables": [table(others=[[5, [4, -1]], [4, 3, 2, 1]])]}, "others is not a list of 3..3"),
        ({"tables": [table(last=[[MOST, 1, 5]])]}, "last holds something that is not a whole number"),
        ({"tables": [table(last=[MOST + 1, 0, 0, 0, 0])]}, "last holds something that is not a whole number"),
        ({"tables": [table(last=[-MOST - 1, 0, 0, 0, 0])]}, "last holds something that is not a whole number"),
        ({"tables": [table(last=[True, 0, 0, 0, 0])]}, "last holds something that is not a whole number"),
        ({"tables": [table(last=[[1, True, 5]])]}, "last holds something that is not a whole number"),
        ({"tables": [table(last=[1, 0, 0, 0])]}, "last has 4 numbers, not 5"),
        ({"tables": [table(last=[1, 0, 0, 0, 0, 0])]}, "last is not a list of 1..5"),
        ({"tables": [table(ports=[[1]])]}, "ports has 1 numbers, not 2"),
        ({"tables": [table(ports=[])]}, "ports is not a list of 1..1"),
    ],
)
def test_what_a_potential_may_not_hold_is_refused(changes: dict[str, Any], why: str) -> None:
    with pytest.raises(Refused, match=why):
        read(potential(**changes))


def test_only_a_class_with_an_interval_has_ports() -> None:
    """Of X the machine has no units; whoever judges the potential refuses it."""
    held = Instance.of("C", 1, Machine("held", (UnitClass("C", 1, 2),)))
    numbers = {"others": [[1]], "last": [1], "constant": 0, "ports": [[7]]}
    written = {"upper": 1, "potentials": [potential(classes=["X", "C"], tables=[numbers])]}
    (one,) = proofs.certificate(written, held, ProofSteps(100)).potentials
    assert one.tables == (PotentialTable(((1,),), (1,), 0, ((7,),)),)


def test_the_numbers_around_potentials_are_limited() -> None:
    for upper in 0, True, 10**12 + 1:
        with pytest.raises(Refused, match="upper is not a whole number in 1"):
            read(potential(), upper=upper)
    with pytest.raises(Refused, match="potentials is not a list"):
        read(potential(), potential(), potential())
    with pytest.raises(Refused, match="potentials is not a list"):
        read()


def test_coefficients_are_counted_before_they_are_unfolded() -> None:
    """A table has 5 + 4 of others and 5 of the last warp, and each of two nodes takes the memory of 16."""
    assert read(potential(), room=14 + 2 * 16)
    with pytest.raises(TooMuchWork):
        read(potential(), room=14 + 2 * 16 - 1)


def weights(room: int = 100, **changes: Any) -> tuple[Weights, ...]:
    one = {"classes": ["C", "L"], "caps": [1, 3], "groups": [[0, [0, 1]], [2]], "thresholds": [], **changes}
    return proofs.weights([one], TWO, ProofSteps(room))


def test_weights_are_read_as_they_are_written() -> None:
    assert weights() == (Weights(("C", "L"), (1, 3), (((0,), (0, 1)), ((2,),))),)
    assert weights(thresholds=[MOST, -MOST])[0].thresholds == (MOST, -MOST)
    assert weights(classes=[], caps=[])[0].classes == ()
    assert proofs.weights([], TWO, ProofSteps(0)) == ()
    old = {"classes": ["C"], "caps": [1], "groups": [[0, 0], [0]]}
    assert proofs.weights([old], TWO, ProofSteps(100))[0].thresholds == ()


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"caps": [1]}, "caps is not a list of 2..2"),
        ({"caps": [1, 2, 3]}, "caps is not a list of 2..2"),
        ({"caps": [1, MOST + 1]}, "caps holds something that is not a whole number"),
        ({"caps": [1, True]}, "caps holds something that is not a whole number"),
        ({"thresholds": [1, 2, 3]}, "thresholds is not a list of 0..2"),
        ({"thresholds": [1, MOST + 1]}, "caps holds something that is not a whole number"),
        ({"thresholds": ["1"]}, "caps holds something that is not a whole number"),
        ({"groups": [[0, 0]]}, "groups is not a list of 2..2"),
        ({"groups": [[0, 0], [0], [0]]}, "groups is not a list of 2..2"),
        ({"groups": [[0], [0]]}, "weights is not a list of 2..2"),
        ({"groups": [[0, 0, 0], [0]]}, "weights is not a list of 2..2"),
        ({"groups": [[0, 0], [MOST + 1]]}, "weights holds something that is not a whole number"),
        ({"groups": [[0, 0], [[0, 1.0]]]}, "weights holds something that is not a whole number"),
    ],
)
def test_what_weights_may_not_hold_is_refused(changes: dict[str, Any], why: str) -> None:
    with pytest.raises(Refused, match=why):
        weights(**changes)


def test_weights_are_counted() -> None:
    """Three places, and four numbers."""
    assert weights(3 + 4)
    with pytest.raises(TooMuchWork):
        weights(3 + 4 - 1)


@pytest.mark.parametrize("name", ["search", "a", "x-9", "a" * 40, "theorem-e"])
def test_whoever_may_vouch_for_a_bound_is_read(name: str) -> None:
    assert proofs.name_of_proof(name) == name


@pytest.mark.parametrize("name", ["", "A", "-a", "9", "a" * 41, "a_b", "theorem-z", "theorem-", "search\n"])
def test_nobody_else_may_vouch_for_a_bound(name: str) -> None:
    with pytest.raises(Refused, match="unknown evidence"):
        proofs.name_of_proof(name)


def piece(**changes: Any) -> dict[str, Any]:
    return {"upper": 3, "evidence": "search", "certificate": None, "weights": [], **changes}


def test_equal_phases_share_what_is_said_of_them() -> None:
    questions = phases.questions(PHASES) or []
    said = proofs.phase_bounds([piece(), piece(upper=2)], PHASES, ProofSteps(100))
    assert said == tuple(zip(questions, (UpperBound(u, "search") for u in (3, 3, 2)), strict=True))
    assert proofs.phase_bounds([], PHASES, ProofSteps(0)) == ()
    old = {key: value for key, value in piece().items() if key != "weights"}
    assert proofs.phase_bounds([old, piece()], PHASES, ProofSteps(100))[0][1] == UpperBound(3, "search")


@pytest.mark.parametrize(
    ("entries", "why"),
    [
        ([piece()], "1 phases are given, but barriers make 2 different ones"),
        ([piece()] * 3, "3 phases are given, but barriers make 2 different ones"),
        ([piece(upper=0), piece()], "upper is not a whole number in 1"),
        ([piece(), piece(evidence="theorem-z")], "unknown evidence"),
        ([piece(), piece(more=1)], "phase has the unknown key 'more'"),
        ([piece(), {"upper": 1}], "phase lacks"),
        ([piece(), 1], "an object was expected"),
        ([piece(), piece(partitions=[piece()])], "1 partitions are given, but the machine makes 0 different ones"),
    ],
)
def test_what_may_not_be_said_of_phases_is_refused(entries: list[Any], why: str) -> None:
    with pytest.raises(Refused, match=why):
        proofs.phase_bounds(entries, PHASES, ProofSteps(100))


HALVES = Machine("halves", (UnitClass("C", 1), UnitClass("L", 1)), partitions=2)


def test_phases_may_have_partitions_and_partitions_none() -> None:
    instance = Instance.of("C|CC", 2, HALVES)
    cut = phases.questions(instance)
    assert cut is not None
    entries = [piece(upper=upper, partitions=[piece(upper=upper)]) for upper in (1, 2)]
    said = proofs.phase_bounds(entries, instance, ProofSteps(100))
    assert [bound.partitions for _, bound in said] == [(UpperBound(1, "search"),), (UpperBound(2, "search"),)]
    assert all(len(set(partitions.questions(question) or ())) == 1 for question in cut)
    halves = Instance.of("CC", 2, HALVES)
    said = proofs.partition_bounds([piece(upper=2)], halves, ProofSteps(9))
    assert {bound for _, bound in said} == {UpperBound(2, "search")}
    with pytest.raises(Refused, match="partition has the unknown key 'partitions'"):
        proofs.partition_bounds([piece(partitions=[])], halves, ProofSteps(9))
    with pytest.raises(Refused, match="2 partitions are given, but the machine makes 1 different ones"):
        proofs.partition_bounds([piece(), piece()], halves, ProofSteps(9))
