"""Potentials without bundles: the abstract cycles of the checker cover all real ones, and what it lets pass is true."""

import os
import random
import secrets
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cache
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from makespan.model.certificate import Certificate, Potential, PotentialNode, PotentialTable, SituationKind
from makespan.model.instance import Instance
from makespan.model.machine import Latency, Machine, UnitClass
from makespan.model.program import Program
from makespan.verify import Refused, potential
from makespan.verify.potential import Beginning, Passing, PotentialCheck, SituationCycle
from makespan.verify.potential_terms import DELAYED, FINISH, STAY, ClassMove
from makespan.verify.refusal import ProofBudget, ProofSteps, TooMuchWork
from makespan.verify.states import StateWalker
from tests import adversary
from tests.mutation import mutated
from tests.oracle import brute_force
from tests.potentials import END, Looking, Shape, by_hand, closed_by_hand, random_tables, scaled, trace
from tests.strategies import general_instances, instances, runs

ANY = st.one_of(instances(), general_instances())
HELD = Machine("held", (UnitClass("C", 1), UnitClass("L", 2, 4, Latency(2, 2))))


def accepted(instance: Instance, made: Certificate) -> int | None:
    try:
        return potential.bound(instance, made)
    except Refused:
        return None


def stopping(draw: random.Random, shape: Shape) -> Looking:
    """Which nodes look ahead: any will do. None, those that are not short, or just some."""
    some = {situation for situation in shape.situations() if draw.random() < 0.5}
    return draw.choice((lambda situation: False, lambda situation: not shape.short(situation), some.__contains__))


# Its abstract cycles


@given(st.data())
@settings(max_examples=120, deadline=None)
def test_no_real_cycle_falls_by_less_than_the_computed_least_decrease(data: st.DataObject) -> None:
    """Random tables, random schedules: the abstraction covers every cycle that occurs, whoever finishes last."""
    instance = data.draw(st.one_of(instances(most_warps=5), general_instances(most_warps=4)))
    passed = list(trace(instance, data.draw(runs(instance))))
    draw = random.Random(data.draw(st.integers(0, 2**32)))
    shape = Shape(instance, tuple(draw.randrange(2) for _ in Shape(instance).units))
    groups, looking = instance.group_of_warp(), stopping(draw, shape)
    unfinished = [warp for warp, at in enumerate(passed[-2][1]) if at < shape.whole.groups[groups[warp]].program.end]
    last_warp = draw.choice(unfinished)
    tables = random_tables(draw, shape, groups[last_warp], shape.nodes(looking))
    check = PotentialCheck(
        shape.whole,
        shape.potential(groups[last_warp], tables),
        potential.CertificateBudget(ProofSteps(10**6), ProofSteps(3 * 10**5), ProofSteps(10**9)),
    )
    nodes = shape.passed(passed, last_warp, looking)
    situations = [replace(node, label=None) for node in nodes]
    least: dict[tuple[PotentialNode, PotentialNode], int] = {}
    try:
        cycles = check._cycles({situations[0]})
        labels = check._labels(cycles)
        for decrease, u, v in check._all_decreases(cycles, labels):
            least[u, v] = min(decrease, least.get((u, v), decrease))
    except (Refused, TooMuchWork) as refusal:
        assert isinstance(refusal, TooMuchWork) or "raise it" in str(refusal)  # noqa: PT017
        assume(False)
    values = [
        shape.value(tables[node], state, on, last_warp) if node != END else 0
        for node, (state, on) in zip(nodes, passed, strict=True)
    ]
    assert all(node.label in labels[situation] for node, situation in zip(nodes[:-1], situations, strict=False))
    for t, (u, v) in enumerate(pairwise(nodes)):
        assert values[t] - values[t + 1] >= least[u, v]


# The least bound that passes


def least_bound(instance: Instance, seed: int) -> int | None:
    """What the adversary makes the checker accept, with some stops, thresholds and front."""
    draw = random.Random(seed)
    extra, steps = draw.choice((0, 0, 1)), draw.choice((0, 0, 0, 1, 2))
    shape = Shape(instance, extra)
    assume(len(list(shape.situations())) <= 100)
    try:
        made = adversary.best(instance, stopping(draw, shape), extra, steps)
    except TooMuchWork:
        return None
    return None if made is None else accepted(instance, made)


@given(st.one_of(instances(), general_instances()), st.integers(0, 2**32))
@settings(max_examples=100, deadline=None)
def test_no_potential_that_passes_proves_less_than_the_truth(instance: Instance, seed: int) -> None:
    bound = least_bound(instance, seed)
    assert bound is None or bound >= brute_force(instance).upper


@pytest.mark.soak
def test_no_potential_that_passes_proves_less_than_the_truth_in_a_long_campaign() -> None:
    found: list[int] = []

    @given(st.one_of(instances(most_warps=5), general_instances(most_warps=4)), st.integers(0, 2**32))
    @settings(max_examples=2000, deadline=None, suppress_health_check=list(HealthCheck))
    def campaign(instance: Instance, seed: int) -> None:
        bound = least_bound(instance, seed)
        if bound is not None:
            found.append(bound - brute_force(instance).upper)
            assert found[-1] >= 0

    campaign()
    print(f"{len(found)} best potentials, {found.count(0)} of them exact")


KEPT: dict[str, Callable[..., Any]] = {
    name: getattr(PotentialCheck, name)
    for name in ("_beginnings", "_ended", "_labels", "_nodes", "_ports", "_roles", "_stays")
}
Roles = Iterator[tuple[tuple[int, ...], list[ClassMove]]]


def z_is_counted(check: PotentialCheck, walker: StateWalker, state: int) -> Iterator[Beginning]:
    """Among those whom a kind counts."""
    for beginning in KEPT["_beginnings"](check, walker, state):
        last, kind = beginning.situation.last, list(beginning.situation.kind)
        if last is not None:
            kind[last] = min(kind[last] + 1, check.thresholds[last])
        yield beginning._replace(situation=PotentialNode(last, tuple(kind)))


def z_leaves_its_port_to_others(check: PotentialCheck, situation: PotentialNode, issued: tuple[int, ...]) -> Roles:
    for _, roles in KEPT["_roles"](check, situation, issued):
        yield tuple(map(min, issued, situation.kind)), roles


def z_never_waits(check: PotentialCheck, situation: PotentialNode, issued: tuple[int, ...]) -> Roles:
    for others, roles in KEPT["_roles"](check, situation, issued):
        if roles[:1] != [(situation.last, STAY)]:
            yield others, roles


def without_end(check: PotentialCheck, *arguments: Any) -> Iterator[SituationCycle]:
    """z may finish last, but not together with others."""
    return (one for one in KEPT["_ended"](check, *arguments) if one.after != END or not one.moves)


def without(forgotten: Callable[[ClassMove], bool]) -> Callable[..., Iterator[SituationCycle]]:
    def ended(check: PotentialCheck, *arguments: Any) -> Iterator[SituationCycle]:
        for cycle in KEPT["_ended"](check, *arguments):
            yield cycle._replace(more=tuple(move for move in cycle.more if not forgotten(move)))

    return ended


def one_warp_too_few(check: PotentialCheck, *arguments: Any) -> Iterator[SituationCycle]:
    check.others -= 1
    found = list(KEPT["_ended"](check, *arguments))
    check.others += 1
    return iter(found)


def no_fixpoint(
    check: PotentialCheck, cycles: dict[PotentialNode, list[SituationCycle]]
) -> dict[PotentialNode, set[int | None]]:
    """Only the labels that one cycle can lead to."""
    labels = KEPT["_labels"](check, cycles)
    return {
        situation: labels[situation]
        & (
            {None}.union(
                *(check._seen(one.after, labels) for one in cycles[situation] if one.after not in check.looking)
            )
        )
        for situation in labels
    }


def any_label_will_do(
    check: PotentialCheck, situation: PotentialNode, after: PotentialNode, labels: Any
) -> Iterator[tuple[PotentialNode, PotentialNode]]:
    """Where a cycle leads to a stop, the table of its label alone need not be larger."""
    return (
        (u, v)
        for u, v in KEPT["_nodes"](check, situation, after, labels)
        if situation not in check.looking or after in check.looking or u.label == min(labels[situation])
    )


def a_port_is_not_released(check: PotentialCheck, *arguments: Any) -> list[tuple[tuple[Passing, ...], SituationKind]]:
    """But for intervals of two."""
    return [
        (passing, free)
        for passing, free in KEPT["_ports"](check, *arguments)
        if all(not port.released or slow.held == 1 for port, slow in zip(passing, check.slow, strict=True))
    ]


def a_count_is_exact(check: PotentialCheck, kind: SituationKind, x: int, moved: int, arrived: int) -> range:
    return range(kind[x] - moved, kind[x] - moved + 1)


SOME_DELAYS = Machine("m", (UnitClass("C", 1), UnitClass("L", 3, 1, Latency(2, 2))))
LONG = Machine("m", (UnitClass("C", 2, 1, Latency(3, 3)),), issue_width=2)
BROKEN: list[tuple[str, Callable[..., Any], Instance, int]] = [
    ("_beginnings", z_is_counted, Instance.of("LC", 3, HELD), 1),
    ("_roles", z_leaves_its_port_to_others, Instance.of("CLLCCC", 4, Machine.of({"C": 2, "L": 1})), 0),
    ("_roles", z_never_waits, Instance.of("CLC", 3), 0),
    ("_ended", without_end, Instance.of("C", 2, Machine.of({"C": 3})), 0),
    ("_ended", without(lambda move: move[1] == STAY), Instance.of("LCC", 4, Machine.of({"C": 2, "L": 1})), 0),
    ("_ended", without(lambda move: move[0] == DELAYED and move[1] >= 0), Instance.of("LC", 4, SOME_DELAYS), 0),
    ("_ended", without(lambda move: move == (DELAYED, DELAYED)), Instance.of("C", 2, LONG), 0),
    ("_ended", without(lambda move: move[1] == FINISH), Instance.of("CL", 3, SOME_DELAYS), 0),
    ("_ended", one_warp_too_few, Instance.of("CLC", 3), 0),
    ("_labels", no_fixpoint, Instance.of("LCC", 4, Machine.of({"C": 2, "L": 1})), 0),
    ("_nodes", any_label_will_do, Instance.of("CLLCCC", 4, Machine.of({"C": 2, "L": 1})), 0),
    ("_ports", a_port_is_not_released, Instance.of("LC", 3, HELD), 0),
    ("_stays", a_count_is_exact, Instance.of("CLC", 3), 0),
]


@pytest.mark.parametrize(("method", "broken", "instance", "extra"), BROKEN)
def test_every_condition_is_needed(
    method: str, broken: Callable[..., Any], instance: Instance, extra: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A checker that lacks it accepts something false, and this one does not."""
    shape, truth = Shape(instance, extra), brute_force(instance).upper
    proven = []
    for replaced in (KEPT[method], broken):
        monkeypatch.setattr(PotentialCheck, method, replaced)
        made = adversary.best(instance, lambda situation: not shape.short(situation), extra)
        assert made is not None
        proven.append(potential.bound(instance, made))
    assert proven[0] >= truth > proven[1]


# By hand


@given(ANY, st.integers(0, 1), st.integers(0, 2**32))
@settings(max_examples=100, deadline=None)
def test_a_certificate_by_hand_holds_on_every_machine(instance: Instance, extra: int, seed: int) -> None:
    made = by_hand(instance, extra, stopping(random.Random(seed), Shape(instance, extra)))
    assert brute_force(instance).upper <= potential.bound(instance, made) <= made.upper


def test_the_bound_is_that_of_the_group_that_may_take_longest() -> None:
    """Both warps issue in both cycles. R is 4, falls by 2, and may begin higher if it falls more at the end."""
    instance = Instance.merged([(Program.chain("CL"), 1), (Program.chain("LC"), 1)])
    made = by_hand(instance)
    assert potential.bound(instance, made) == 2
    for number, one in enumerate(made.potentials):
        later = replace(one, tables=tuple(replace(table, constant=7) for table in one.tables))
        potentials = (*made.potentials[:number], later, *made.potentials[number + 1 :])
        assert potential.bound(instance, replace(made, potentials=potentials)) == (4 + 7) // 2


def test_the_last_warp_may_stand_wherever_one_of_its_group_does() -> None:
    """After a cycle one warp is at either C: R is 3 + 1 or 1 + 2, by which of them is the last."""
    instance = Instance.of("CC", 2, Machine.of({"C": 1}))
    shape = Shape(instance)
    tables = dict.fromkeys(shape.situations(), PotentialTable(((2, 1),), (3, 1), 0))
    assert potential.bound(instance, Certificate(9, (shape.potential(0, tables, 1),))) == 1 + 4


def test_a_port_that_is_held_at_the_end_does_not_count() -> None:
    """R is 2, for the interval, and falls to 0 in the only cycle."""
    instance = Instance.of("C", 1, Machine("m", (UnitClass("C", 1, 2),)))
    assert potential.bound(instance, by_hand(instance)) == 1


def test_a_port_that_is_kept_to_the_end_takes_the_least_with_it_that_it_may_be_worth() -> None:
    """R is 3 at C and 1 at D, where a port of C that is held for one or two more cycles is worth 1, and for three 0."""
    instance = Instance.of("CD", 1, Machine("m", (UnitClass("C", 1, 4), UnitClass("D", 1))))
    shape = Shape(instance)
    tables = dict.fromkeys(shape.situations(), PotentialTable(((3, 1),), (3, 1), 0, ((1, 1, 0),)))
    assert potential.bound(instance, Certificate(9, (shape.potential(0, tables),))) == 3


PORTS = [(1, 1), (2, 1), (1, 2), (2, 2), (3, 1), (3, 2), (4, 2)]


def test_pairs_of_neighbours_are_a_potential() -> None:
    """Theorem S+: what a letter may be owed costs a fee for each class change of z; a step of 0 is theorem S."""
    draw, tight = random.Random(1), 0
    for number in range(60):
        c, l = PORTS[number % len(PORTS)]  # noqa: E741
        strings = {"".join(draw.choices("CL", k=draw.randint(1, 4))) + draw.choice(("CL", "LC")) for _ in range(2)}
        groups = [(Program.chain(string), draw.randint(1, 2)) for string in sorted(strings)]
        instance = Instance.merged(groups, Machine.of({"C": c, "L": l}))
        made = closed_by_hand(instance, draw.randint(0, abs(c - l)), draw.randint(0, 1))
        truth = brute_force(instance).upper
        assert truth <= potential.bound(instance, made) <= made.upper
        tight += truth == made.upper
    assert tight > 10


def test_the_fee_is_needed() -> None:
    """With half of it the bound would be 13; but then not every cycle falls by a whole one."""
    instance = Instance.of("CLLCCC", 4, Machine.of({"C": 2, "L": 1}))
    assert potential.bound(instance, closed_by_hand(instance, 1)) == 14 == brute_force(instance).upper
    wrong = closed_by_hand(instance, 1, halves=1)
    assert wrong.upper == 13 < potential.bound(instance, wrong)


# Forged


def climb(instance: Instance, made: Certificate, unit: int, draw: random.Random, steps: int) -> int:
    """Change a certificate again and again, keeping what lowers its bound; how many changed ones are accepted."""
    exact, best, found = brute_force(instance).upper, potential.bound(instance, made), 0
    for _ in range(steps):
        potentials = list(made.potentials)
        number = draw.randrange(len(potentials))
        potentials[number] = mutated(draw, potentials[number], unit)
        if draw.random() < 0.05:
            potentials = exchanged(draw, potentials)
        changed = replace(made, potentials=tuple(potentials))
        proven = accepted(instance, changed)
        if proven is not None:
            found += 1
            assert proven >= exact, (instance, changed)
            if proven <= best:
                made, best = changed, proven
    return found


def exchanged(draw: random.Random, potentials: list[Potential]) -> list[Potential]:
    """Each for the last finisher of the other's group, where their programs are as long."""
    a, b = draw.choice(potentials), draw.choice(potentials)
    if not a.tables or not b.tables or len(a.tables[0].last) != len(b.tables[0].last):
        return potentials
    groups = {a.last_group: b.last_group, b.last_group: a.last_group}
    return [replace(one, last_group=groups.get(one.last_group, one.last_group)) for one in potentials]


@given(ANY, st.integers(0, 2**32))
@settings(max_examples=30, deadline=None)
def test_a_forged_certificate_never_proves_a_bound_below_the_truth(instance: Instance, seed: int) -> None:
    """From the best ones, where one inequality that slips would lead below the truth at once, and from plain ones."""
    draw = random.Random(seed)
    shape = Shape(instance)
    assume(len(list(shape.situations())) <= 60)
    plain = scaled(by_hand(instance, 0, stopping(draw, shape)), 12)
    climb(instance, plain, 12, draw, 20)
    made = adversary.best(instance, stopping(draw, shape))
    if made is not None and accepted(instance, made):
        climb(instance, made, adversary.SCALE, draw, 20)


@pytest.mark.soak
def test_forged_certificates_in_a_long_campaign() -> None:
    seed = int(os.environ.get("MAKESPAN_SEED", "0")) or secrets.randbits(32)
    print(f"MAKESPAN_SEED={seed}")
    draw, tried, kept = random.Random(seed), 0, 0

    @given(st.one_of(instances(most_warps=5), general_instances(most_warps=4)))
    @settings(max_examples=500, deadline=None, suppress_health_check=list(HealthCheck))
    def campaign(instance: Instance) -> None:
        nonlocal tried, kept
        shape = Shape(instance)
        assume(len(list(shape.situations())) <= 100)
        made = adversary.best(instance, stopping(draw, shape))
        if made is not None and accepted(instance, made):
            kept += climb(instance, made, adversary.SCALE, draw, 60)
            tried += 60

    campaign()
    print(f"{tried} forged certificates, {kept} with a valid bound, none below the truth")


# Refused

SMALL = Instance.of("CL", 3, Machine.of({"C": 1, "L": 1}))


def small(**changes: Any) -> Certificate:
    made = closed_by_hand(SMALL)
    return replace(made, potentials=(replace(made.potentials[0], **changes),))


def test_the_small_certificate_is_good() -> None:
    assert potential.bound(SMALL, small()) == 4 == brute_force(SMALL).upper


def everywhere(node: PotentialNode) -> tuple[tuple[PotentialNode, int], ...]:
    return (*small().potentials[0].nodes, (node, 0))


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"classes": ("C",)}, "the classes are not C, L, each once"),
        ({"classes": ("C", "L", "L")}, "the classes are not C, L, each once"),
        ({"classes": ("C", "X")}, "the classes are not C, L, each once"),
        ({"thresholds": (1, 0)}, "a threshold for each class, at least its capacity, is needed"),
        ({"thresholds": (1,)}, "a threshold for each class, at least its capacity, is needed"),
        ({"thresholds": (2, 1)}, "it has no table for kind \\(2, 0\\) and class 0"),
        ({"nodes": ()}, "it has no table for kind \\(1, 0\\) and class 0"),
        (
            {"nodes": everywhere(PotentialNode(0, (0, 0), -2))},
            "it has tables with and without a label for kind \\(0, 0\\) and",
        ),
        (
            {"nodes": everywhere(PotentialNode(1, (1, 0)))},
            "it has tables with and without a label for kind \\(1, 0\\) and",
        ),
        ({"last_group": 1}, "the certificate has potentials for groups \\[1\\] of 1 groups"),
    ],
)
def test_a_malformed_potential_is_rejected(changes: dict[str, Any], why: str) -> None:
    with pytest.raises(Refused, match=why):
        potential.bound(SMALL, small(**changes))


def test_a_certificate_needs_every_node_that_can_occur() -> None:
    """z waits for C with the others, then alone while they are at L, then for L. It does not go before them."""
    ahead = {PotentialNode(0, (0, 1), 1), PotentialNode(0, (1, 1), 1)}
    needed = {PotentialNode(0, (1, 0)), *ahead, PotentialNode(1, (0, 1)), PotentialNode(1, (0, 0))}
    nodes = small().potentials[0].nodes
    for left_out, _ in nodes:
        fewer = accepted(SMALL, small(nodes=tuple(one for one in nodes if one[0] != left_out)))
        assert fewer == (None if left_out in needed else 4)


def test_warps_that_stay_must_not_raise_the_potential() -> None:
    """Too little to hurt in any cycle of few warps; but arbitrarily many may stay."""
    instance = Instance.of("CLLC", 40, Machine.of({"C": 2, "L": 1}))
    made = scaled(closed_by_hand(instance, 1), 40)
    (only,) = made.potentials
    assert potential.bound(instance, made) == made.upper == 82
    refused = 0
    for number, (node, table) in enumerate(only.nodes):
        others = tuple(tuple(value + 1 for value in row) for row in only.tables[table].others)
        changed = replace(only.tables[table], others=others, constant=only.tables[table].constant - 3)
        nodes = (*only.nodes[:number], (node, len(only.tables)), *only.nodes[number + 1 :])
        chosen = replace(only, nodes=nodes, tables=(*only.tables, changed))
        try:
            potential.bound(instance, replace(made, potentials=(chosen,)))
        except Refused as refusal:
            assert str(refusal).startswith("potential: warps that stay raise it in a cycle from kind")  # noqa: PT017
            refused += 1
    assert refused


def test_every_group_that_may_hold_the_last_finisher_needs_a_potential() -> None:
    instance = Instance.merged([(Program.chain("CL"), 2), (Program.chain("LC"), 2)])
    made = by_hand(instance)
    for potentials in ((made.potentials[0],), (made.potentials[1],), (made.potentials[0],) * 2):
        with pytest.raises(Refused, match="the certificate has potentials for groups"):
            potential.bound(instance, replace(made, potentials=potentials))


def test_a_front_behind_the_end_proves_the_exact_value() -> None:
    assert potential.bound(SMALL, small(front=10, nodes=())) == 4


def test_absurd_certificates_are_refused_quickly() -> None:
    instance = Instance.of("CLLC" * 40, 64, Machine.of({"C": 20, "L": 20}))
    made = Certificate(9, (Potential(0, ("C", "L"), (10**9, 10**9), 0, (), ()),))
    with pytest.raises(Refused, match="too large for this checker"):
        potential.bound(instance, made)


def test_all_certificates_share_an_effort() -> None:
    with pytest.raises(Refused, match="too large for this checker"):
        potential.bound(SMALL, small(), ProofBudget(0))


def test_absurd_machines_are_refused_quickly(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(potential, "MOST_DECREASES", 10**5)
    letters = "CDEFGH"
    machine = Machine("m", tuple(UnitClass(name, 1024, 9, Latency(1, 9)) for name in letters), issue_width=100)
    instance = Instance.of(letters, 10_000, machine)
    made = Certificate(9, (Potential(0, tuple(letters), (1024,) * 6, 0, (), ()),))
    with pytest.raises(Refused, match=r"too large for this checker|it has no table"):
        potential.bound(instance, made)


def test_a_certificate_for_an_instance_with_barriers_is_refused() -> None:
    with pytest.raises(Refused, match="a certificate knows no barriers"):
        potential.bound(Instance.of("C|L", 2), Certificate(4, (Potential(0, ("C", "L"), (1, 1), 0, (), ()),)))


@cache
def good() -> tuple[Instance, Certificate]:
    instance = Instance.of("LC", 3, HELD)
    return instance, by_hand(instance)


def with_tables(change: Callable[[PotentialNode, PotentialTable], PotentialTable]) -> Certificate:
    """A table for each node of the good certificate."""
    instance, made = good()
    (only,) = made.potentials
    changed = Shape(instance).potential(0, {node: change(node, only.tables[number]) for node, number in only.nodes})
    return replace(made, potentials=(changed,))


def test_the_good_certificate_is_good() -> None:
    instance, made = good()
    assert potential.bound(instance, made) == made.upper == 3 * (4 + 1 + 1)
    assert brute_force(instance).upper == 7


def test_a_front_knows_which_ports_are_held() -> None:
    """After one cycle two warps are on delays and hold both ports for three more cycles, and z is still to load."""
    instance, made = good()
    (only,) = scaled(made, 12).potentials
    for constant, more in ((0, 0), (11, 1)):  # and another twelfth by z
        tables = {
            node: replace(only.tables[number], last=(73, 24, 12), constant=0 if node.kind[2] else constant)
            for node, number in only.nodes
        }
        later = replace(made, potentials=(Shape(instance).potential(0, tables, 1),))
        assert potential.bound(instance, later) == 1 + (2 + 2 + 6) + (3 + 3) + more


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (lambda n, t: replace(t, others=((6, 0, 1),)), "warps on delays raise it in a cycle from kind"),
        (lambda n, t: replace(t, ports=((0, 0, 0),)), "it does not fall in a cycle from kind"),
        (lambda n, t: replace(t, ports=((1, 2, 9),)), "it does not fall in a cycle from kind"),
        (lambda n, t: replace(t, ports=((1, 1, 3),)), "it does not fall in a cycle from kind"),
        (lambda n, t: replace(t, ports=((1, 2),)), "it needs a term for every port that can be held"),
        (lambda n, t: replace(t, ports=()), "it needs a term for every port that can be held"),
        (lambda n, t: replace(t, last=(4, 1, 1)), "it does not fall in a cycle from kind"),
        (lambda n, t: replace(t, constant=1) if n.last is None else t, "it does not fall in a cycle from kind"),
        (lambda n, t: replace(t, constant=1) if n.kind[:2] == (0, 0) else t, "it does not fall in a cycle from kind"),
        (lambda n, t: replace(t, constant=-5) if n.kind[2] == 0 else t, "it does not fall in a cycle from kind"),
    ],
)
def test_a_table_that_is_wrong_somewhere_is_refused(
    change: Callable[[PotentialNode, PotentialTable], PotentialTable], why: str
) -> None:
    with pytest.raises(Refused, match=why):
        potential.bound(good()[0], with_tables(change))


@pytest.mark.parametrize(
    ("last", "kind"), [(None, (0, 0, 0)), (None, (0, 0, 1)), (1, (0, 0, 0)), (0, (1, 0, 1)), (1, (0, 2, 2))]
)
def test_every_node_that_can_occur_needs_a_table(last: int | None, kind: SituationKind) -> None:
    instance, made = good()
    (only,) = made.potentials
    kept = tuple((node, table) for node, table in only.nodes if (node.last, node.kind) != (last, kind))
    assert len(kept) == len(only.nodes) - 1
    with pytest.raises(Refused, match="it has no table for kind"):
        potential.bound(instance, replace(made, potentials=(replace(only, nodes=kept),)))
