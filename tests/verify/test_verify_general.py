"""The independent checker on machines with latencies, intervals and an issue width."""

import copy
import os
import random
import re
import secrets
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cache
from itertools import accumulate, pairwise, product
from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from makespan.bounds import delays as engine_delays
from makespan.bounds import least_possible, pessimistic
from makespan.bounds import phases as engine_phases
from makespan.certificate import FINISHED, Certificate, Kind, Node, Potential, Table
from makespan.engines import Limits
from makespan.engines.certificate import improve
from makespan.engines.search import plain as search
from makespan.errors import InvalidScheduleError
from makespan.instance import Instance
from makespan.machine import DELAY, Latency, Machine, UnitClass
from makespan.program import Program
from makespan.report.result.bundle import bundle
from makespan.result import Bounds, Result, Upper
from makespan.schedule import Schedule
from makespan.simulate import replay as engine_replay
from makespan.simulate.semantics import State, moved
from makespan.verify import Outcome, Refused, bounds, delays, digest, phases, potential, proofs, reading, states, verify
from makespan.verify.refusal import TooMuchWork, Work
from makespan.verify.witness import replay
from tests.forgery import Document, forged, mutated, set_bounds
from tests.oracle import brute_force, obeys, standing
from tests.strategies import barrier_instances, general_barrier_instances, general_instances, instances, runs

ANY = st.one_of(general_instances(), general_barrier_instances(), instances(), barrier_instances())
CACHED = Machine("cached", (UnitClass("C", 1), UnitClass("L", 1, 2, Latency(2, 4))))
NARROW = Machine("narrow", (UnitClass("C", 2, 1, Latency(2, 2)), UnitClass("L", 1, 3, Latency(1, 3))), issue_width=1)
HELD = Machine("held", (UnitClass("C", 1), UnitClass("L", 2, 4, Latency(2, 2))))


# What it computes


@given(general_instances())
@settings(deadline=None)
def test_latencies_become_the_places_that_certificates_speak_of(instance: Instance) -> None:
    found = delays.expanded(instance)
    expansion = engine_delays.expanded(instance)
    assert expansion is not None
    assert found == expansion.instance
    assert delays.sizes(instance) == [group.program.end for group in found.groups]


def test_latencies_of_more_places_than_an_instance_may_have_are_refused() -> None:
    slow = Machine("slow", (UnitClass("C", 1, 1, Latency(10_000, 10_000)),))
    for string, warps in (("C" * 101, 1), ("C" * 9, 60)):
        with pytest.raises(TooMuchWork):
            delays.expanded(Instance.of(string, warps, slow))
        assert states.shortest_and_longest(Instance.of(string, warps, slow), 10) is None


@given(ANY)
@settings(max_examples=400, deadline=None)
def test_its_bounds_are_those_of_the_engines(instance: Instance) -> None:
    assert bounds.pessimistic(instance) == pessimistic(instance)
    assert bounds.best_case_floor(instance) == least_possible(instance)
    if not instance.machine.is_basic:
        assert bounds.theorem_a(instance) is None


@given(st.one_of(general_instances(), general_barrier_instances()))
@settings(max_examples=200, deadline=None)
def test_its_enumeration_finds_both_extremes(instance: Instance) -> None:
    truth = brute_force(instance)
    assert states.shortest_and_longest(instance, 10**6) == (truth.lower, truth.upper)
    assert bounds.best_case_floor(instance) <= truth.lower
    assert bounds.pessimistic(instance) >= truth.upper
    if instance.warps == 2 and not instance.has_barriers:
        assert bounds.two_warps(instance) == truth.upper
        assert bounds.two_warps(instance, min) == truth.lower


@given(general_barrier_instances())
@settings(deadline=None)
def test_phases_are_questions_where_no_port_is_held_over_a_barrier(instance: Instance) -> None:
    assume(instance.has_barriers)
    cut, questions = engine_phases(instance), phases.questions(instance)
    if any(unit.interval > unit.latency.least for unit in instance.machine.units):
        assert questions is None
    assert questions == (None if cut is None else [phase.instance for phase in cut])
    if questions is not None:
        assert brute_force(instance).upper <= sum(brute_force(question).upper for question in questions)


def test_a_port_that_is_held_over_a_barrier_joins_the_phases() -> None:
    instance = Instance.of("L|L", 1, Machine("m", (UnitClass("L", 1, 3),)))
    assert brute_force(instance).upper == 4
    assert phases.questions(instance) is None
    assert phases.questions(Instance.of("L|L", 1, Machine("m", (UnitClass("L", 1, 3, Latency(3, 3)),)))) is not None


# Witnesses


def changed_schedule(draw: random.Random, instance: Instance, schedule: Schedule) -> Schedule:
    cycles = [list(warps) for warps in schedule.cycles]
    latencies = [list(row) for row in schedule.latencies]
    for _ in range(draw.choice((1, 1, 2))):
        a, b = draw.randrange(len(cycles)), draw.randrange(len(cycles))
        match draw.choice(("drop", "add", "insert", "cut", "latency", "swap", "move", "row")):
            case "drop" if cycles[a]:
                cycles[a].pop()
            case "add":
                cycles[a].append(draw.randrange(instance.warps))
            case "insert":
                cycles.insert(draw.randrange(len(cycles) + 1), [])
            case "cut" if len(cycles) > 1:
                del cycles[a]
            case "latency" if latencies:
                row = draw.choice(latencies)
                if row:
                    row[draw.randrange(len(row))] += draw.choice((-1, 1))
            case "swap":
                cycles[a], cycles[b] = cycles[b], cycles[a]
            case "move" if cycles[a]:
                cycles[b].append(cycles[a].pop())
            case "row" if latencies and draw.random() < 0.3:
                draw.choice((lambda: latencies.pop(), lambda: latencies[0].append(1)))()
    return Schedule(tuple(tuple(sorted(w)) for w in cycles), schedule.paths, tuple(map(tuple, latencies)))


@given(st.data(), ANY, st.integers(0, 2**32))
@settings(max_examples=500, deadline=None)
def test_a_witness_is_judged_as_by_the_definition(data: st.DataObject, instance: Instance, seed: int) -> None:
    schedule = data.draw(runs(instance))
    assert replay(instance, schedule) == schedule.makespan
    changed = changed_schedule(random.Random(seed), instance, schedule)
    try:
        expected: int | None = engine_replay(instance, changed)
    except InvalidScheduleError:
        expected = None
    if len(changed.latencies) == len(schedule.latencies) and list(map(len, changed.latencies)) == list(
        map(len, schedule.latencies)
    ):
        assert (expected is not None) == obeys(instance, changed)
    try:
        assert replay(instance, changed) == expected
    except Refused as refusal:
        assert expected is None, refusal  # noqa: PT017


@pytest.mark.parametrize(
    ("machine", "cycles", "latencies", "why"),
    [
        (CACHED, [(0,), (), (0, 1), (), (1,)], ((2, 1), (2, 1)), None),
        (CACHED, [(0,), (), (0, 1), (), (), (1,)], ((2, 1), (3, 1)), None),
        (CACHED, [(0,), (0,), (1,), (), (1,)], ((2, 1), (2, 1)), "cycle 1: warp 0 waits for a latency"),
        (CACHED, [(0,), (1,)], ((2, 1), (2, 1)), "1 instructions of class L execute where 1 are ready for 0 free"),
        (CACHED, [(0,), (), (), (0, 1)], ((3, 1), (2, 1)), "cycle 2: 0 instructions of class L execute where 1 are"),
        (CACHED, [(0,), (), (0, 1), (), (1,)], ((1, 1), (2, 1)), "a latency of 1 for class L of warp 0"),
        (CACHED, [(0,), (), (0, 1), (), (1,)], ((2, 1), (5, 1)), "a latency of 5 for class L of warp 1"),
        (CACHED, [(0,), (), (0, 1), (), (1,)], ((2, 1), (2,)), "1 latencies for 2 instructions of warp 1"),
        (CACHED, [(0,), (), (0, 1), (), (1,)], ((2, 1),), "latencies of 1 warps for 2 warps"),
        (CACHED, [(0,), (), (0, 1), (), (1,)], (), "latencies of 0 warps for 2 warps"),
        (CACHED, [(0,), (), (0, 1), (), (1,), ()], ((2, 1), (2, 1)), "cycle 5: all warps have finished already"),
        (CACHED, [(0,), (), (0, 1), ()], ((2, 1), (2, 1)), "1 warps have not finished after 4 cycles"),
        (NARROW, [(0,), (0,), (), (1,), (1,), ()], ((1, 2), (1, 2)), None),
        (NARROW, [(0,), (), (0,), (1,), (1,), ()], ((2, 2), (1, 2)), None),
        (NARROW, [(0,), (0,), (), (), (1,), (1,), ()], ((1, 2), (1, 2)), "0 instructions execute where 1 could"),
        (NARROW, [(0,), (), (), (0,)], ((1, 2), (1, 2)), "cycle 1: 0 instructions execute where 1 could, and the i"),
        (NARROW, [(0,), (), (), (0, 1)], ((3, 2), (1, 2)), "cycle 3: 2 instructions execute where 2 could, and the"),
    ],
)
def test_every_rule_of_a_general_machine_is_checked(
    machine: Machine, cycles: list[tuple[int, ...]], latencies: tuple[tuple[int, ...], ...], why: str | None
) -> None:
    instance = Instance.of("LC", 2, machine)
    schedule = Schedule(tuple(cycles), ((0, 1), (0, 1)), latencies)
    if [len(row) for row in latencies] == [2, 2]:
        assert obeys(instance, schedule) is (why is None)
    if why is None:
        assert replay(instance, schedule) == len(cycles)
    else:
        with pytest.raises(Refused, match=why):
            replay(instance, schedule)


def test_idle_cycles_after_a_full_one_are_checked_although_nothing_happens_between() -> None:
    """The issue width held warp 1 back in cycle 0; in cycle 1 nothing holds it back, although nothing has changed."""
    instance = Instance.of("C", 2, Machine("m", (UnitClass("C", 2, 1, Latency(9, 9)),), issue_width=1))
    late = Schedule(((0,), (), (1,), *[()] * 8), ((0,), (0,)))
    with pytest.raises(Refused, match="cycle 1: 0 instructions execute where 1 could, and the issue width is 1"):
        replay(instance, late)
    assert replay(instance, Schedule(((0,), (1,), *[()] * 8), ((0,), (0,)))) == 10


# Potentials


def trace(instance: Instance, schedule: Schedule) -> Iterator[tuple[State, list[int]]]:
    """By the definition: every state of a schedule, and where each warp stands once latencies are places."""
    latencies = {unit.name: unit.latency for unit in instance.machine.units}
    programs = tuple(instance.programs())
    first = [list(accumulate((latencies[place.unit].most for place in p.places), initial=0)) for p in programs]
    paths = [[*path, program.end] for path, program in zip(schedule.paths, programs, strict=True)]
    chosen = [list(row) for row in schedule.latencies] or [
        [latencies[program.places[place].unit].most for place in path]
        for path, program in zip(schedule.paths, programs, strict=True)
    ]
    state, done = standing(instance, *(path[0] for path in paths)), [0] * len(paths)
    for cycle in (None, *schedule.cycles):
        moves = []
        for warp in cycle or ():
            done[warp] += 1
            moves.append((warp, paths[warp][done[warp]], chosen[warp][done[warp] - 1]))
        state = state if cycle is None else moved(instance, state, moves)
        on = []
        for warp, (place, wait) in enumerate(zip(state.places, state.waits, strict=True)):
            on.append(first[warp][place] if not wait else first[warp][paths[warp][done[warp] - 1] + 1] - wait)
        yield state, on


def kind_of(instance: Instance, classes: tuple[str, ...], thresholds: Kind, state: State) -> Kind:
    ready = dict.fromkeys(classes, 0)
    for program, place, wait in zip(instance.programs(), state.places, state.waits, strict=True):
        if not wait and place < program.end:
            ready[program.places[place].unit] += 1
    free = {
        unit.name: unit.capacity - len(held)
        for unit, held in zip(instance.machine.units, state.held, strict=True)
        if unit.interval > 1
    }
    return (*map(min, ready.values(), thresholds), *(free[name] for name in classes if name in free))


def node_at(kinds: list[Kind], t: int, capacities: Kind) -> Node:
    """By the definition: the last state is the end, and a label is what really comes later."""
    coarse = [tuple(map(min, kind, capacities)) for kind in kinds[:-1]] + [FINISHED]
    if t == len(kinds) - 1:
        return Node(FINISHED)
    return Node(kinds[t], None if coarse[t] != capacities else next(kind for kind in coarse[t:] if kind != capacities))


class Shape:
    """The kinds of a certificate.

    Args:
        instance: as it is, without delays as places.
        extra: thresholds above the capacities.
    """

    def __init__(self, instance: Instance, extra: tuple[int, ...] | int = 0) -> None:
        used = set().union(*(group.program.units for group in instance.groups))
        self.units = [unit for unit in instance.machine.units if unit.name in used]
        self.classes = tuple(unit.name for unit in self.units)
        self.capacities = tuple(unit.capacity for unit in self.units)
        above = (extra,) * len(self.units) if isinstance(extra, int) else extra
        self.thresholds = tuple(capacity + more for capacity, more in zip(self.capacities, above, strict=True))
        self.slow = [unit for unit in self.units if unit.interval > 1]

    def nodes(self) -> Iterator[Node]:
        """All there can be."""
        coarse = list(product(*(range(capacity + 1) for capacity in self.capacities)))
        for ready in product(*(range(most + 1) for most in self.thresholds)):
            full = all(map(int.__ge__, ready, self.capacities))
            labels = [FINISHED, *(kind for kind in coarse if kind != self.capacities)] if full else [None]
            for free in product(*(range(unit.capacity + 1) for unit in self.slow)):
                yield from (Node((*ready, *free), label) for label in labels)

    def potential(self, last_group: int, tables: dict[Node, Table]) -> Potential:
        return Potential(last_group, self.classes, self.thresholds, 0, tuple(tables.items()))


def random_tables(draw: random.Random, whole: Instance, last_group: int, shape: Shape) -> dict[Node, Table]:
    """Tables that differ from node to node; those of the others fall on delays, and little where warps stay."""
    equal = draw.random() < 0.5
    shared = [
        [
            draw.randint(-50, 50) + (1000 * (group.program.end - number) if place.unit == DELAY else 0)
            for number, place in enumerate(group.program.places)
        ]
        for group in whole.groups
    ]
    tables = {}
    for node in shape.nodes():
        noise = 0 if equal else draw.randint(-3, 3)
        others = tuple(tuple(number + noise for number in row) for row in shared)
        last = tuple(draw.randint(-50, 50) for _ in shared[last_group])
        ports = tuple(tuple(draw.randint(-50, 50) for _ in range(unit.interval - 1)) for unit in shape.slow)
        tables[node] = Table(others, last, draw.randint(-50, 50), ports)
    return tables


def value(instance: Instance, table: Table, shape: Shape, state: State, on: list[int], last_warp: int) -> int:
    total = table.constant
    for warp, (group, place) in enumerate(zip(instance.group_of_warp(), on, strict=True)):
        if place < len(table.others[group]):
            total += table.last[place] if warp == last_warp else table.others[group][place]
    held = {unit.name: ports for unit, ports in zip(instance.machine.units, state.held, strict=True)}
    for unit, row in zip(shape.slow, table.ports, strict=True):
        total += sum(row[left - 1] for left in held[unit.name])
    return total


@given(st.data())
@settings(max_examples=500, deadline=None)
def test_no_real_cycle_falls_by_less_than_the_computed_least_decrease(data: st.DataObject) -> None:
    """Random tables, random schedules: the abstraction covers every cycle that occurs, whoever finishes last."""
    instance = data.draw(general_instances(most_warps=4))
    schedule = data.draw(runs(instance))
    draw = random.Random(data.draw(st.integers(0, 2**32)))
    shape = Shape(instance, tuple(draw.randrange(2) for _ in Shape(instance).units))
    passed = list(trace(instance, schedule))
    ends = [group.program.end for group in delays.expanded(instance).groups]
    groups = instance.group_of_warp()
    before_last = passed[-2][1] if len(passed) > 1 else []
    last_warp = draw.choice([warp for warp, place in enumerate(before_last) if place < ends[groups[warp]]])
    whole = delays.expanded(instance)
    tables = random_tables(draw, whole, groups[last_warp], shape)
    check = potential._Check(
        whole, shape.potential(groups[last_warp], tables), potential.Limits(Work(10**6), Work(3 * 10**5), Work(10**9))
    )
    kinds = [kind_of(instance, shape.classes, shape.thresholds, state) for state, _ in passed]
    least: dict[tuple[Node, Node], int] = {}
    try:
        cycles = check._cycles({kinds[0]})
        labels = check._labels(cycles)
        for decrease, u, v in check._all_decreases(cycles, labels):
            least[u, v] = min(decrease, least.get((u, v), decrease))
    except (Refused, TooMuchWork) as refusal:
        assert isinstance(refusal, TooMuchWork) or "raise it" in str(refusal)  # noqa: PT017
        assume(False)
    nodes = [node_at(kinds, t, shape.capacities) for t in range(len(kinds))]
    values = [
        value(instance, tables[node], shape, state, on, last_warp) if node != Node(FINISHED) else 0
        for node, (state, on) in zip(nodes, passed, strict=True)
    ]
    assert all(node.label in labels.get(node.kind, {None}) for node in nodes)
    for t, (u, v) in enumerate(pairwise(nodes)):
        assert values[t] - values[t + 1] >= least[u, v]


def by_hand(instance: Instance, extra: int = 0) -> Certificate:
    """For any machine: what is left to issue, weighed with its interval, the delays that are left, and held ports.

    In every cycle somebody issues (interval down, interval - 1 up for the port) or z is on a delay, or z waits for
    ports that are held for one cycle less afterwards.
    """
    whole, shape = delays.expanded(instance), Shape(instance, extra)
    weights = {unit.name: unit.interval for unit in whole.machine.units}
    left = []
    for group in whole.groups:
        row = [0] * (group.program.end + 1)
        for place in range(group.program.end - 1, -1, -1):
            unit, after = group.program.places[place]
            row[place] = weights[unit] + max(row[then] for then in after)
        left.append(tuple(row[:-1]))
    ports = tuple(tuple(range(1, unit.interval)) for unit in shape.slow)
    potentials = [
        shape.potential(last, dict.fromkeys(shape.nodes(), Table(tuple(left), left[last], 0, ports)))
        for last in range(len(whole.groups))
    ]
    begun = zip(whole.groups, left, strict=True)
    upper = sum(group.warps * max(row[start] for start in group.program.starts) for group, row in begun)
    return Certificate(upper, tuple(potentials))


@given(general_instances(), st.integers(0, 1))
@settings(max_examples=150, deadline=None)
def test_a_certificate_by_hand_holds_on_every_machine(instance: Instance, extra: int) -> None:
    made = by_hand(instance, extra)
    assert brute_force(instance).upper <= potential.bound(instance, made) <= made.upper


def accepted(instance: Instance, made: Certificate) -> int | None:
    try:
        return potential.bound(instance, made)
    except Refused:
        return None


def mutated_with_ports(draw: random.Random, chosen: Potential, unit: int) -> Potential:
    nodes = list(mutated(draw, chosen, unit).nodes)
    if draw.random() < 0.3:
        number = draw.randrange(len(nodes))
        node, table = nodes[number]
        ports = [[value + draw.choice((-unit, 0, 0, unit)) for value in row] for row in table.ports]
        nodes[number] = node, replace(table, ports=tuple(map(tuple, ports)))
    front = draw.choice((0, 0, 0, 1, 2))
    return replace(chosen, nodes=tuple(nodes), front=front)


def scaled(made: Certificate, factor: int) -> Certificate:
    """The same proof in finer units."""

    def of(table: Table) -> Table:
        others, ports = (
            tuple(tuple(factor * value for value in row) for row in rows) for rows in (table.others, table.ports)
        )
        return Table(others, tuple(factor * value for value in table.last), factor * table.constant, ports)

    tables: dict[int, Table] = {}
    potentials = []
    for item in made.potentials:
        tables = {id(table): of(table) for table in {id(table): table for _, table in item.nodes}.values()}
        potentials.append(replace(item, nodes=tuple((node, tables[id(table)]) for node, table in item.nodes)))
    return Certificate(made.upper, tuple(potentials))


@given(general_instances(), st.integers(0, 2**32))
@settings(max_examples=60, deadline=None)
def test_a_forged_certificate_never_proves_a_bound_below_the_truth(instance: Instance, seed: int) -> None:
    climb(instance, scaled(by_hand(instance), 12), 12, random.Random(seed), 25)


def climb(instance: Instance, made: Certificate, unit: int, draw: random.Random, steps: int) -> int:
    """Change a certificate again and again, keeping what lowers its bound; how many changed ones are accepted."""
    exact, best, found = brute_force(instance).upper, potential.bound(instance, made), 0
    for _ in range(steps):
        potentials = list(made.potentials)
        number = draw.randrange(len(potentials))
        potentials[number] = mutated_with_ports(draw, potentials[number], unit)
        changed = replace(made, potentials=tuple(potentials))
        proven = accepted(instance, changed)
        if proven is not None:
            found += 1
            assert proven >= exact, (instance, changed)
            if proven <= best:
                made, best = changed, proven
    return found


@pytest.mark.soak
def test_forged_certificates_of_general_machines_in_a_long_campaign() -> None:
    """The engine's certificates are optimal, so a checker that lets one inequality slip is soon below the truth."""
    seed = int(os.environ.get("MAKESPAN_SEED", "0")) or secrets.randbits(32)
    print(f"MAKESPAN_SEED={seed}")
    draw, tried, kept = random.Random(seed), 0, 0

    @given(general_instances(most_warps=4))
    @settings(max_examples=400, deadline=None)
    def campaign(instance: Instance) -> None:
        nonlocal tried, kept
        made = next((found.certificate for found in improve.improve(instance, Limits(20)) if found.certificate), None)
        assume(made is not None)
        assert made is not None
        largest = max(abs(value) for item in made.potentials for _, table in item.nodes for value in table.last)
        kept += climb(instance, made, max(1, largest // made.upper), draw, 60)
        tried += 60

    campaign()
    print(f"{tried} forged certificates, {kept} with a valid bound, none below the truth")


@cache
def good() -> tuple[Instance, Certificate]:
    instance = Instance.of("LC", 3, HELD)
    return instance, by_hand(instance)


def with_tables(change: Callable[[Node, Table], Table]) -> Certificate:
    _, made = good()
    (only,) = made.potentials
    return replace(made, potentials=(replace(only, nodes=tuple((n, change(n, table)) for n, table in only.nodes)),))


def test_the_good_certificate_is_good() -> None:
    instance, made = good()
    assert potential.bound(instance, made) == made.upper == 3 * (4 + 1 + 1)
    assert brute_force(instance).upper == 7


def test_a_front_knows_which_ports_are_held() -> None:
    """After one cycle two warps are on delays and hold both ports for three more cycles, and z is still to load."""
    instance, made = good()
    (only,) = scaled(made, 12).potentials
    for constant, more in ((0, 0), (11, 1)):  # and another twelfth by z
        nodes = tuple(
            (node, replace(table, last=(73, 24, 12), constant=0 if node.kind[2] else constant))
            for node, table in only.nodes
        )
        later = replace(made, potentials=(replace(only, front=1, nodes=nodes),))
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
        (lambda n, t: replace(t, constant=1) if n.kind[:2] == (0, 0) else t, "it does not fall in a cycle from kind"),
        (lambda n, t: replace(t, constant=-5) if n.kind[2] == 0 else t, "it does not fall in a cycle from kind"),
    ],
)
def test_a_table_that_is_wrong_somewhere_is_refused(change: Callable[[Node, Table], Table], why: str) -> None:
    with pytest.raises(Refused, match=why):
        potential.bound(good()[0], with_tables(change))


@pytest.mark.parametrize("kind", [(0, 0, 0), (0, 0, 1), (0, 1, 0), (1, 1, 1), (0, 2, 2)])
def test_every_kind_that_can_occur_needs_a_table(kind: Kind) -> None:
    instance, made = good()
    (only,) = made.potentials
    kept = tuple((node, table) for node, table in only.nodes if node.kind != kind)
    with pytest.raises(Refused, match="it has no table for kind"):
        potential.bound(instance, replace(made, potentials=(replace(only, nodes=kept),)))


@pytest.mark.parametrize(
    "units",
    [
        (UnitClass("C", 1), UnitClass("L", 2, 4, Latency(2, 3))),
        (UnitClass("C", 1), UnitClass("L", 2, 5, Latency(2, 2))),
        (UnitClass("C", 1, 2), UnitClass("L", 2, 4, Latency(2, 2))),
        (UnitClass("C", 1), UnitClass("L", 3, 4, Latency(2, 2))),
    ],
)
def test_the_certificate_of_another_machine_is_refused_in_a_bundle(units: tuple[UnitClass, ...]) -> None:
    instance, made = good()
    result = replace(by_search(instance), certificate=made)
    assert verify(bundle(result)).outcome is Outcome.ACCEPTED

    def change(document: Document) -> None:
        set_machine(document, Machine("held", units))

    assert verify(forged(bundle(result), change)).outcome is Outcome.REJECTED


def test_a_certificate_for_an_instance_with_barriers_is_refused() -> None:
    with pytest.raises(Refused, match="a certificate knows no barriers"):
        potential.bound(Instance.of("C|L", 2), Certificate(4, (Potential(0, ("C", "L"), (1, 1), 0, ()),)))


def test_absurd_machines_are_refused_quickly(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(potential, "MOST_DECREASES", 10**5)
    letters = "CDEFGH"
    machine = Machine("m", tuple(UnitClass(name, 1024, 9, Latency(1, 9)) for name in letters), issue_width=100)
    instance = Instance.of(letters, 10_000, machine)
    made = Certificate(9, (Potential(0, tuple(letters), (1024,) * 6, 0, ()),))
    with pytest.raises(Refused, match=r"too large for this checker|it has no table"):
        potential.bound(instance, made)


@given(general_instances(most_warps=4), st.integers(1, 3))
@settings(max_examples=25, deadline=None)
def test_what_the_engine_certifies_is_proven_again(instance: Instance, number: int) -> None:
    """Or less, as only what can be reached is checked."""
    truth = brute_force(instance).upper
    for _, finding in zip(range(number), improve.improve(instance, Limits(20)), strict=False):
        if finding.certificate is not None:
            assert truth <= potential.bound(instance, finding.certificate) <= finding.certificate.upper


# Bundles


def by_search(instance: Instance, *, best_case: bool = False) -> Result:
    found = search.solve(instance, Limits())
    assert found.witness is not None
    assert found.upper is not None
    return Result(
        instance=instance,
        bounds=Bounds(found.upper, found.upper),
        witness=found.witness,
        upper_evidence=Upper.SEARCH,
        pessimistic=pessimistic(instance),
        best_case=found.best_case if best_case else None,
        backend="search",
        seconds=0.0,
        assumptions=(),
    )


def by_potential(instance: Instance) -> Result:
    made = by_hand(instance)
    upper = potential.bound(instance, made)
    result = by_search(instance)
    return replace(
        result,
        bounds=Bounds(result.bounds.lower, upper),
        upper_evidence=Upper.POTENTIAL,
        certificate=replace(made, upper=upper),
    )


@cache
def results() -> tuple[Result, ...]:
    mixed = Instance.merged([(Program.chain("LCL"), 1), (Program.chain("CL"), 2)], CACHED)
    return (
        by_search(Instance.of("LCL", 2, CACHED), best_case=True),
        by_search(mixed),
        by_search(Instance.of("CLC", 3, NARROW), best_case=True),
        by_search(Instance.of("LC|L", 2, HELD)),
        replace(by_search(Instance.of("CLLC", 2, CACHED)), upper_evidence=Upper.TWO_WARP_DP),
        by_potential(Instance.of("LCL", 3, HELD)),
        by_potential(Instance.of("LC", 3, CACHED)),
        by_potential(mixed),
    )


@cache
def bundles() -> tuple[Document, ...]:
    return tuple(map(bundle, results()))


def set_machine(document: Document, machine: Machine) -> None:
    """Another machine of the same name, everywhere."""
    said = {
        "capacity": machine.capacities,
        "interval": {unit.name: unit.interval for unit in machine.units},
        "latency": {unit.name: [unit.latency.least, unit.latency.most] for unit in machine.units},
        "issue_width": machine.issue_width,
    }
    document["instance"]["machine"].update(copy.deepcopy(said))
    document["result"].update(said)


def test_bundles_of_general_machines_are_accepted() -> None:
    for result, document in zip(results(), bundles(), strict=True):
        checked = verify(document)
        assert checked.outcome is Outcome.ACCEPTED, checked
        assert checked.lower == result.bounds.lower
        assert checked.upper is not None
        assert result.bounds.lower <= checked.upper <= result.bounds.upper


@given(st.one_of(general_instances(), general_barrier_instances()), st.booleans())
@settings(max_examples=60, deadline=None)
def test_a_search_on_a_general_machine_is_proven_again(instance: Instance, best_case: bool) -> None:
    checked = verify(bundle(by_search(instance, best_case=best_case)))
    assert checked.outcome is Outcome.ACCEPTED, checked


def other_machine(draw: random.Random, machine: Machine) -> Machine:
    """One number of the machine changed by one, or the issue width given or taken away."""
    number = draw.randrange(len(machine.units))
    unit = machine.units[number]
    least, most = unit.latency.least, unit.latency.most
    width = machine.issue_width
    match draw.randrange(5):
        case 0:
            unit = replace(unit, interval=max(1, unit.interval + draw.choice((-1, 1))))
        case 1:
            unit = replace(unit, latency=Latency(max(1, least - draw.randrange(2)), most + draw.randrange(2)))
        case 2:
            unit = replace(unit, latency=Latency(min(most, least + draw.randrange(2)), max(least + 1, most - 1)))
        case 3:
            unit = replace(unit, capacity=unit.capacity + 1)
        case _:
            width = draw.choice([chosen for chosen in (None, 1, 2) if chosen != width])
    return Machine(machine.name, (*machine.units[:number], unit, *machine.units[number + 1 :]), width)


def test_another_machine_is_rejected_unless_all_claims_hold_for_it() -> None:
    draw, rejected = random.Random(1), 0
    for number in range(200):
        chosen = number % len(bundles())
        machine = results()[chosen].instance.machine
        other = other_machine(draw, machine)
        if other == machine:
            continue
        everywhere = forged(bundles()[chosen], lambda document, other=other: set_machine(document, other))  # type: ignore[misc]
        checked = verify(everywhere)
        if checked.outcome is Outcome.ACCEPTED:
            truth = brute_force(reading.bundle(everywhere).instance).upper
            assert everywhere["result"]["lower"] <= truth <= everywhere["result"]["upper"]
        else:
            assert checked.outcome is Outcome.REJECTED
            rejected += 1
        for part in ("instance", "result"):
            halved = {**everywhere, part: bundles()[chosen][part]}
            assert verify({**halved, "sha256": digest(halved)}).outcome is Outcome.REJECTED
    assert rejected > 100


def at(document: Any, *path: Any) -> Any:
    for key in path:
        document = document[key]
    return document


def cut_an_empty_cycle(document: Document) -> None:
    row = next(row for row in document["witness"]["cycles"] if not row[1])
    row[0] -= 1
    if not row[0]:
        document["witness"]["cycles"].remove(row)
    lower, upper = document["result"]["lower"] - 1, document["result"]["upper"] - 1
    set_bounds(document, lower, upper)


FORGERIES: list[tuple[Callable[[Document], object], str]] = [
    (lambda d: d["witness"].update(latencies=None), "latencies is not a list"),
    (lambda d: d["witness"].pop("latencies"), "witness lacks 'latencies'"),
    (lambda d: d["witness"]["latencies"].pop(), "1 latencies for 2 warps|latencies is not a list"),
    (lambda d: at(d, "witness", "latencies", 0, 1).pop(), "2 latencies for 3 instructions of warp 0"),
    (lambda d: at(d, "witness", "latencies", 0, 1).__setitem__(0, 5), "a latency of 5 for class L of warp 0"),
    (lambda d: at(d, "witness", "latencies", 0, 1).__setitem__(0, 0), "a latency of 0 for class L of warp 0"),
    (lambda d: at(d, "witness", "latencies", 0, 1).__setitem__(0, 10**6), "latencies holds something that is not"),
    (cut_an_empty_cycle, "witness: "),
    (lambda d: d["witness"]["cycles"].append([1, []]), "cycles, the lower bound says"),
    (lambda d: at(d, "witness", "cycles", 0).__setitem__(0, 10**9), "too large for this checker: over"),
    (lambda d: d["witness"]["cycles"].append([10**9, []]), "too large for this checker: over 50000000 cycles"),
    (lambda d: at(d, "instance", "machine").pop("interval"), "machine lacks 'interval'"),
    (lambda d: at(d, "instance", "machine", "interval").pop("L"), "interval lacks 'L'"),
    (lambda d: at(d, "instance", "machine", "latency").update(L=4), "latency is not a list of 2"),
    (lambda d: at(d, "instance", "machine", "latency").update(L=[4, 2]), r"a range of latencies is \[least, most\]"),
    (lambda d: at(d, "instance", "machine", "latency").update(X=[1, 1]), "latency has the unknown key 'X'"),
    (lambda d: at(d, "instance", "machine").update(issue_width=0), "issue_width is not a whole number in 1"),
    (lambda d: at(d, "instance", "machine").update(issue_width=True), "issue_width is not a whole number in 1"),
    (lambda d: d["result"]["evidence"].update(upper="theorem-a"), "theorem A does not apply"),
]


@pytest.mark.parametrize(("change", "why"), FORGERIES)
def test_a_forged_bundle_of_a_general_machine_is_rejected(change: Callable[[Document], object], why: str) -> None:
    def apply(document: Document) -> None:
        change(document)

    checked = verify(forged(bundles()[0], apply))
    assert checked.outcome is Outcome.REJECTED
    assert re.search(why, checked.reason), checked


def test_a_machine_without_choice_needs_no_latencies() -> None:
    document = bundle(by_search(Instance.of("LCL", 2, HELD)))
    assert document["witness"]["latencies"] is None
    changed = forged(document, lambda copied: copied["witness"].update(latencies=[[2, [2, 1, 2]]]))
    assert "leaves no choice of a latency: latencies must be null" in verify(changed).reason


def test_a_shortened_row_or_a_wrong_progression_is_rejected() -> None:
    document = bundles()[6]
    node = ("certificate", "potentials", 0, "nodes", 0)
    assert at(document, *node, "others") == [[6, [4, -1, 4]]]
    for row, why in [
        ([6, [4, -1, 3]], "the length of a progression in others is not a whole number in 4..4"),
        ([6, [4, -1, 5]], "the length of a progression in others is not a whole number in 4..4"),
        ([6, 5, [4, -1, 4]], "the length of a progression in others is not a whole number in 4..3"),
        ([6, [4, -1]], "others is not a list of 3..3 items"),
        ([6, [4, True, 4]], "others holds something that is not a whole number"),
        ([6, [10**100, 1, 4]], "others holds something that is not a whole number"),
        ([6, [4.0, -1, 4]], "others holds something that is not a whole number"),
        ([6, 4, 3, 2], "others has 4 numbers, not 5"),
        ([6, 4, 3, 2, 1, 0], "others is not a list of 1..5 items"),
    ]:
        changed = forged(document, lambda copied, row=row: at(copied, *node).update(others=[row]))  # type: ignore[misc]
        assert why in verify(changed).reason
    plain = forged(document, lambda copied: at(copied, *node).update(others=[[6, 4, 3, 2, 1]]))
    assert verify(plain).outcome is Outcome.ACCEPTED
    for ports in ([], [[1, 2]], [[1], [1]], None):
        changed = forged(document, lambda copied, ports=ports: at(copied, *node).update(ports=ports))  # type: ignore[misc]
        assert "ports" in verify(changed).reason


def test_a_changed_term_of_a_port_or_a_delay_is_rejected() -> None:
    for number in (5, 6, 7):
        document = bundles()[number]
        for name, changed in [("ports", lambda rows: [[0] * 3 for _ in rows]), ("others", lambda rows: rows)]:

            def apply(copied: Document, name: str = name, changed: Callable[[Any], Any] = changed) -> None:
                for item in copied["certificate"]["potentials"]:
                    for node in item["nodes"]:
                        if name == "ports":
                            node["ports"] = [[0] * (3 if number == 5 else 1)]  # noqa: B023
                        else:
                            node["others"] = [[0] * n for n in delays.sizes(results()[number].instance)]  # noqa: B023
                            node["others"][0][1] = -1

            checked = verify(forged(document, apply))
            assert checked.outcome is Outcome.REJECTED, (number, name)
            assert checked.reason.startswith("potential: "), checked


def test_a_certificate_with_too_many_coefficients_is_not_unfolded() -> None:
    slow = Machine("slow", (UnitClass("C", 1, 1, Latency(100_000, 100_000)),))
    instance = Instance.of("C" * 9, 1, slow)
    node = {"kind": [1], "label": None, "others": [[[0, 0, 900_000]]], "last": [[0, 0, 900_000]]}
    nodes = [{**node, "constant": 0, "ports": []}] * 12
    item = {"last_group": 0, "classes": ["C"], "thresholds": [1], "front": 0, "nodes": nodes}
    with pytest.raises(TooMuchWork):
        proofs.certificate({"upper": 1, "potentials": [item]}, instance, Work(reading.MOST_COEFFICIENTS))


SURPLUS = {  # others, last, constant; places: L and a delay, L and a delay, C and four delays
    (0, 0): ([0] * 9, [0, 16, 0, 12, 0, 8, 6, 4, 2], 0),
    (0, 1): ([0] * 9, [10, 8, 6, 4, 0, 0, -2, -4, -6], 8),
    (0, 2): ([0] * 9, [18, 16, 14, 12, 0, 8, 6, 4, 2], 0),
    (0, 3): ([0] * 9, [18, 0, 14, 0, 0, 0, 0, 0, 0], 0),
    (1, 0): ([0, 0, 0, 0, 12, 0, 0, 0, 0], [0, 4, 0, 0, 10, -4, -6, -8, -10], 0),
    (1, 1): ([0] * 9, [8, 6, 4, 2, 0, -2, -4, -6, -8], 10),
    (1, 2): ([5, 0, 5, 0, 0, 0, 0, 0, 0], [13, 0, 9, 0, 0, 0, 0, 0, 0], 0),
    (2, 0): ([0, 0, 0, 0, 421, 0, 0, 0, 0], [0, -415, 0, -419, 0, -423, -425, -427, -429], -411),
    (2, 1): ([2, 0, 2, 0, 0, 0, 0, 0, 0], [18, 0, 14, 0, 8, 0, 0, 0, 0], 0),
}
"""The best tables if more warps than a kind can tell apart were not counted when they come from delays."""


def test_more_warps_may_come_from_delays_than_a_kind_can_tell_apart() -> None:
    """Where three come, a kind with a threshold of two sees two: the third must not raise the potential."""
    instance = Instance.of(
        "LLC", 3, Machine("m", (UnitClass("C", 2, 1, Latency(2, 5)), UnitClass("L", 4, 1, Latency(2, 2))))
    )
    nodes = tuple(
        (Node(kind), Table((tuple(o),), tuple(last), constant)) for kind, (o, last, constant) in SURPLUS.items()
    )
    made = Certificate(9, (Potential(0, ("C", "L"), (2, 4), 0, nodes),))
    assert brute_force(instance).upper == 10
    with pytest.raises(Refused, match="warps on delays raise it in a cycle from kind"):
        potential.bound(instance, made)
