"""Theorem 1S against the definition: partitions, resources, and warps that run ahead."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from importlib import import_module
from itertools import chain, combinations, product
from typing import NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from makespan.host.errors import UnsupportedError
from makespan.model.instance import Instance
from makespan.model.lowered import ISSUE_SLOT, Reservation
from makespan.model.machine import Latency, Machine, PortResource, UnitClass, Use, WarpAssignment
from makespan.model.program import BARRIER, InstructionTiming, Program, ProgramPlace
from makespan.model.result import Anomaly, robust_anomalies
from makespan.model.schedule import Schedule
from makespan.model.simulate.semantics import (
    SmState,
    has_finished,
    issue_outcomes,
    issue_sets,
    next_state,
    next_states,
    settled_states,
    start_states,
)
from makespan.model.strings import parse_string
from makespan.proof.bounds import alone, closed_form, gates, least_possible, pessimistic, theorem_1s
from makespan.proof.bounds.gates import Gate, PortGates, gate_of
from tests.oracle import brute_force
from tests.strategies import instances, multiprocessor_instances, runs


@given(st.one_of(multiprocessor_instances(), multiprocessor_instances(barriers=False)))
@settings(max_examples=60)
def test_no_schedule_is_longer_than_the_bound_or_shorter_than_the_least_possible(instance: Instance) -> None:
    truth = brute_force(instance)
    assert pessimistic(instance) >= truth.upper
    assert closed_form(instance).upper >= truth.upper
    assert least_possible(instance) <= truth.lower


@given(multiprocessor_instances(most_warps=1, most=5, barriers=False))
@settings(max_examples=40)
def test_one_warp_alone_is_known_exactly_where_every_pool_has_one_port(instance: Instance) -> None:
    machine = instance.machine
    units = tuple(
        replace(unit, capacity=1, uses=tuple(replace(use, resources=use.resources[:1]) for use in unit.uses))
        for unit in machine.units
    )
    single = replace(
        machine, units=units, resources=tuple(replace(resource, capacity=1) for resource in machine.resources)
    )
    alone = Instance(instance.groups, replace(single, partitions=2))
    truth = brute_force(alone)
    assert pessimistic(alone) == truth.upper
    if alone.groups[0].program.is_chain:
        assert least_possible(alone) == truth.lower


@pytest.mark.parametrize(
    ("slow", "least"), [(InstructionTiming(5, (5, 5), (0,)), 3), (InstructionTiming(1, (9, 9), (0,)), 4)]
)
def test_the_least_is_that_of_the_quicker_of_two_paths_that_join(slow: InstructionTiming, least: int) -> None:
    """The quick one is there in cycle 2, its result in 3; a slow one in 6, or its result in 10."""
    places = ProgramPlace("C", (1, 2)), ProgramPlace("C", (3,)), ProgramPlace("C", (3,)), ProgramPlace("C", (4,))
    timings = InstructionTiming(), InstructionTiming(1, (2, 2), (0,)), slow, InstructionTiming(1, (1, 1), (), (0,))
    instance = Instance.of(Program(places, timings=timings), 1)
    assert least_possible(instance) == least <= brute_force(instance).lower == 4


def decided(instance: Instance) -> Instance:
    """The instance with nothing left to choose but who issues: upper ends, one path, one resource of several."""
    units = tuple(
        replace(
            unit,
            latency=Latency(unit.latency.most, unit.latency.most),
            uses=tuple({use.resources[0]: Use(use.resources[:1], use.most, use.most) for use in unit.uses}.values()),
        )
        for unit in instance.machine.units
    )
    machine = replace(instance.machine, units=units, assignment=WarpAssignment.MODULO)
    return Instance.merged(((_first_path(group.program), group.warps) for group in instance.groups), machine)


def _first_path(program: Program) -> Program:
    walked, at = [], min(program.starts)
    while at < program.end:
        walked.append(at)
        at = program.places[at].successors[0]
    places = tuple(ProgramPlace(program.places[at].unit, (number,)) for number, at in enumerate(walked, start=1))
    timings = [program.timings[at] for at in walked] if program.timings else []
    return Program(places, timings=tuple(one._replace(latency=(one.latency[1], one.latency[1])) for one in timings))


@given(multiprocessor_instances(barriers=False).map(decided))
@settings(max_examples=60)
def test_it_adds_the_best_case_once_for_every_pool_at_most(instance: Instance) -> None:
    ports, best = PortGates.of(instance.machine), brute_force(instance).lower
    users, longest = Counter[Gate](), Counter[Gate]()
    for group in instance.groups:
        holds = [hold for each in ports.reservations(group.program) for hold in each.holds]
        users.update(dict.fromkeys((gate_of(hold) for hold in holds), group.warps))
        longest |= Counter({gate_of(hold): hold.most for hold in sorted(holds, key=lambda hold: hold.most)})
    pools = [gate for gate in users if users[gate] > 1 or not ports.is_own(gate)]
    assert theorem.bound(instance) <= best + sum(best + longest[gate] - 1 for gate in pools)


@given(instances())
@settings(max_examples=20)
def test_it_leaves_other_machines_to_theorem_1(instance: Instance) -> None:
    assert theorem_1s(instance) is None


def test_delays_need_no_slot_which_it_does_not_know() -> None:
    units = UnitClass("C", 1), UnitClass.of_delays(3)
    delayed = Instance.of("C~C", 3, Machine("delays", units, issue_width=1, partitions=2))
    assert theorem_1s(delayed) is None
    with pytest.raises(UnsupportedError, match="delay"):
        pessimistic(delayed)


def machine(capacity: int = 1, interval: int = 1, width: int | None = None, *, shared: bool = False) -> Machine:
    """Two partitions with a class C; warps belong to them as the adversary likes."""
    return Machine("two", (UnitClass("C", capacity, interval, shared=shared),), width, partitions=2)


def question(string: str, warps: int, on: Machine, blocks: int = 1) -> Instance:
    return Instance.of(parse_string(string, on), warps, on, blocks=blocks)


theorem = import_module("makespan.proof.bounds.theorem_1s")  # the package has the function under this name

TWO_PORTS = Machine("two ports", (UnitClass("C", 2, interval=3),))
PIPES = Machine(
    "pipes",
    (UnitClass("C", 1, uses=(Use(("a", "b"), 3, 3),)),),
    1,
    resources=(PortResource("a", 1), PortResource("b", 1)),
)

PENDING = question("C()@5|C(1)", 1, machine())
HELD = question("C|C", 1, machine(interval=3))
BESIDE = question("C", 3, machine())
DIFFERENT = Instance.merged([(Program.chain("CCCC"), 2), (Program.chain("C"), 1)], machine())
NUMBERED = replace(DIFFERENT, machine=replace(machine(), assignment=WarpAssignment.MODULO))
APART = question("C", 2, replace(machine(shared=True), assignment=WarpAssignment.MODULO))
EMPTY = question("|C", 1, machine())
TOKENS = question("C()@2C()@2C()@20C(1,2)C(3)", 1, machine())
JOINED = Instance.of(
    Program(
        (ProgramPlace("C", (2,)), ProgramPlace("C", (2,)), ProgramPlace("C", (3,))),
        (0, 1),
        timings=(
            InstructionTiming(1, (9, 9), (0,)),
            InstructionTiming(1, (2, 2), (1,)),
            InstructionTiming(1, (1, 1), (), (0, 1)),
        ),
    ),
    1,
    machine(),
)
PARTED = Instance.of(
    Program(
        (
            ProgramPlace("C", (1, 3)),
            ProgramPlace("C", (2,)),
            ProgramPlace("C", (3,)),
            ProgramPlace(BARRIER, (4,)),
            ProgramPlace("C", (5,)),
        ),
        timings=(
            InstructionTiming(1, (10, 10), (0,)),
            InstructionTiming(),
            InstructionTiming(),
            InstructionTiming(0, (0, 0)),
            InstructionTiming(1, (1, 1), (), (0,)),
        ),
    ),
    1,
    machine(),
)
SEVERAL = question("CC|C", 1, machine(2, interval=3))
SHARED = question("C()@4", 2, machine(interval=2, shared=True))
SLOT = question("C()@3", 4, machine(2, width=1))
ALTERNATIVES = question("C", 3, PIPES)
OWN = question("C()C()C()", 1, TWO_PORTS)
LAST = question("C()@5", 1, machine())
BLOCKS = question("C()|C()", 4, Machine("one port", (UnitClass("C", 1),)), blocks=2)

PORTS = machine(2, interval=3)
LONELY = Instance.merged([(Program.chain("CCCC"), 1), (parse_string("C()@19", PORTS), 1)], PORTS)
THIRD = Instance.merged(
    [(Program.chain("CCCCC"), 1), (parse_string("CCC()@20", machine()), 1), (Program.chain("C"), 4)], machine()
)
BUS = UnitClass("C", 1, uses=(Use(("bus",), 9, 9),)), UnitClass("L", 2, uses=(Use(("bus", "pipe"), 3, 3),))
BEHIND = Instance.merged(
    [(Program.chain("C|L"), 1), (Program.chain("|L"), 1)],
    Machine("bus", BUS, resources=(PortResource("bus", 1), PortResource("pipe", 1))),
)


@pytest.mark.parametrize(
    ("instance", "longest", "upper"),
    [
        (PENDING, 6, 6),  # issued in 0, at the barrier in 1, the next one in 5
        (HELD, 4, 4),  # the port is free again in 3
        (BESIDE, 2, 2),
        (DIFFERENT, 8, 8),  # the longer ones in one partition
        (NUMBERED, 5, 5),  # one of them, with the short one
        (APART, 2, 2),  # by the warp of the other partition
        (EMPTY, 1, 1),  # nothing before the barrier
        (TOKENS, 23, 23),  # the fourth is issued in 3, the fifth when the third one's result is there
        (JOINED, 10, 10),  # by the path with the later result
        (PARTED, 11, 13),  # 3 to the barrier on the long path, and on the short one 10 - 1 more until the result
        (SEVERAL, 4, 8),  # 2 + 2 * 2/2 for its own ports; then ports are held for 2 more, and 3 + 2/2
        (SHARED, 6, 6),
        (SLOT, 4, 4),
        (ALTERNATIVES, 4, 6),
        (OWN, 4, 6),  # the third one waits for the port of the first
        (LAST, 5, 5),
        (BLOCKS, 8, 8),
        (LONELY, 19, 20),  # the other one is in the other partition: 19 and (3 - 1) / 2 for its own port
        (THIRD, 28, 28),  # 22 alone, 5 and 1 of the two that are in its partition
        (BEHIND, 5, 15),  # of two pipes the later one counts, which the C holds for 8 cycles of the second phase
    ],
)
def test_by_hand(instance: Instance, longest: int, upper: int) -> None:
    assert (brute_force(instance).upper, pessimistic(instance)) == (longest, upper)


def test_of_too_many_tokens_all_that_are_left_are_waited_for_together(monkeypatch: pytest.MonkeyPatch) -> None:
    """The last instruction awaits two results, of which the later one is there in 2 + 9, and not the first one's."""
    two = question("C()@30C()@2C()@9C(2,3)@25", 1, machine())
    assert brute_force(two).upper == pessimistic(two) == 11 + 25
    monkeypatch.setattr(alone, "MOST_WORK", 1)
    assert pessimistic(two) == 11 + 25


def test_the_least_possible_counts_what_all_partitions_share_and_the_fullest_one() -> None:
    for ports, interval, cycles in ((1, 1, 5), (2, 1, 3), (1, 2, 4 * 2 + 1)):
        both = question("C", 5, machine(ports, interval, shared=True))
        assert least_possible(both) == brute_force(both).lower == cycles
    by_number = replace(machine(), assignment=WarpAssignment.MODULO)
    uneven = Instance.merged([(Program.chain("C" * length), 1) for length in (2, 1, 3)], by_number)
    assert least_possible(uneven) == brute_force(uneven).lower == 2 + 3


def _nothing_later(self: PortGates, reservation: Reservation, prices: object, *, since: int = 0) -> int:
    return 0 if since else _CHARGE(self, reservation, prices, since=since)  # type: ignore[arg-type]


def _without(wanted: Callable[[Gate], bool]) -> Callable[[PortGates, Iterable[Reservation]], tuple[Gate, ...]]:
    return lambda self, held: tuple(gate for gate in _GATES(self, held) if not wanted(gate))


_CHARGE, _GATES, _OTHERS, _OF = PortGates.charge, PortGates.gates, theorem.Crowd.others, PortGates.of


@pytest.mark.parametrize(
    ("instance", "where", "name", "wrong"),
    [
        (PENDING, theorem, "residues", lambda program, todo: {}),
        (HELD, theorem, "_occupations", lambda instance, ports, segments: [{}, {}]),
        (BESIDE, theorem.Crowd, "others", lambda self, *held: _OTHERS(self._replace(beside=0), *held)),
        (DIFFERENT, theorem.Crowd, "others", lambda self, here, elsewhere: [self.beside * min(here)] * len(here)),
        (JOINED, alone, "_latest", lambda one, other: other),
        (SHARED, PortGates, "of", lambda machine: _OF(machine)._replace(shared=frozenset())),
        (SHARED, gates, "sum_over_cycles", lambda ends, value, since: value(since)),
        (SLOT, PortGates, "gates", _without(lambda gate: gate == (ISSUE_SLOT,))),
        (ALTERNATIVES, PortGates, "gates", _without(lambda gate: len(gate) > 1)),
        (OWN, PortGates, "charge", _nothing_later),
        (LAST, alone, "UNAWAITED", ("no number",)),
    ],
)
def test_without_any_of_its_conditions_it_is_too_small(
    monkeypatch: pytest.MonkeyPatch, instance: Instance, where: object, name: str, wrong: object
) -> None:
    monkeypatch.setattr(where, name, wrong)
    assert pessimistic(instance) < brute_force(instance).upper


@st.composite
def departures(draw: st.DrawFn, instance: Instance) -> Instance:
    """The same with shorter times and more ports, and with warps that are fewer or ahead where that is outlasted."""
    outlasts, flags = robust_anomalies(instance), st.booleans()
    machine = instance.machine
    more = {ports.name: ports.capacity + draw(st.integers(0, 1)) for ports in machine.ports}
    units = tuple(
        replace(
            unit,
            capacity=more[unit.name],
            interval=draw(st.integers(1, unit.interval)),
            latency=Latency(*[draw(st.integers(1, unit.latency.most))] * 2),
            uses=tuple(Use(use.resources, *[draw(st.integers(1, use.most))] * 2) for use in unit.uses),
        )
        for unit in machine.units
    )
    resources = tuple(replace(resource, capacity=more[resource.name]) for resource in machine.resources)
    width = machine.issue_width and machine.issue_width + draw(st.integers(0, 1))
    changed = replace(machine, units=units, resources=resources, issue_width=width)
    ahead = Anomaly.RUN_AHEAD in outlasts
    groups = [(draw(_hastier(group.program, ahead=ahead)), group.warps) for group in instance.groups]
    if Anomaly.FEWER_WARPS in outlasts and instance.blocks == 1 and instance.warps > 1 and draw(flags):
        (first, warps), *rest = groups
        groups = [(first, warps - 1)] * (warps > 1) + rest
    return Instance.merged(groups, changed, blocks=instance.blocks)


@st.composite
def _hastier(draw: st.DrawFn, program: Program, *, ahead: bool) -> Program:
    timings = []
    for timing in program.timings:
        stall, awaits = timing.stall, timing.awaits
        if ahead and stall:
            stall = draw(st.integers(1, stall))
            awaits = tuple(token for token in awaits if draw(st.booleans()))
        cycles = draw(st.integers(min(1, timing.latency[1]), timing.latency[1]))
        timings.append(timing._replace(stall=stall, awaits=awaits, latency=(cycles, cycles)))
    return replace(program, timings=tuple(timings))


@given(st.data(), st.one_of(multiprocessor_instances(), multiprocessor_instances(barriers=False)))
@settings(max_examples=30)
def test_it_outlasts_what_it_says(data: st.DataObject, instance: Instance) -> None:
    if theorem_1s(instance) is not None:
        assert brute_force(data.draw(departures(instance))).upper <= pessimistic(instance)


def lapses(instance: Instance, state: SmState) -> Iterator[SmState]:
    """What may follow a cycle in which less issues than could: any part of what a work-conserving one issues."""
    for issuing in issue_sets(instance, state):
        for kept in chain.from_iterable(combinations(issuing.items(), size) for size in range(len(issuing))):
            for moves in product(*(issue_outcomes(instance, state, warp, pools) for warp, pools in kept)):
                yield from settled_states(instance, next_state(instance, state, moves))


@given(st.one_of(multiprocessor_instances(most=3), multiprocessor_instances(most=4, barriers=False)))
@settings(max_examples=15)
def test_each_cycle_in_which_less_issues_than_could_adds_one_at_most(instance: Instance) -> None:
    most, bound = 2, pessimistic(instance)
    frontier, cycles = {(state, 0) for state in start_states(instance)}, 0
    while frontier:
        ended = [lapsed for state, lapsed in frontier if has_finished(instance, state)]
        assert cycles <= bound + min(ended, default=most)
        left = [(state, lapsed) for state, lapsed in frontier if not has_finished(instance, state)]
        lapsing = {(after, lapsed + 1) for state, lapsed in left if lapsed < most for after in lapses(instance, state)}
        frontier = lapsing | {(after, lapsed) for state, lapsed in left for after in next_states(instance, state)}
        cycles += 1


def test_what_leans_on_waits_at_barriers_or_on_places_of_warps_does_not_outlast_all() -> None:
    assert set(Anomaly) - set(robust_anomalies(PENDING)) == {Anomaly.RUN_AHEAD}
    by_number = replace(machine(), assignment=WarpAssignment.MODULO)
    different = Instance.merged([(parse_string(string, by_number), 1) for string in ("C", "CC")], by_number)
    assert set(Anomaly) - set(robust_anomalies(different)) == {Anomaly.FEWER_WARPS}
    assert robust_anomalies(HELD) == robust_anomalies(BESIDE) == tuple(Anomaly)


class _Issued(NamedTuple):
    """An instruction in a schedule: when, of which place, and the ports that it holds, by name, for how many cycles."""

    cycle: int
    warp: int
    place: int
    ports: dict[str, int]


def _issued(instance: Instance, schedule: Schedule) -> Iterator[_Issued]:
    units, programs = {unit.name: unit for unit in instance.machine.units}, tuple(instance.programs())
    done = [0] * instance.warps
    for op in schedule.ops(instance):
        unit = units[programs[op.warp].places[op.place].unit]
        chosen = schedule.uses[op.warp][done[op.warp]] if schedule.uses else [(0, use.least) for use in unit.uses]
        taken = {use.resources[which]: held for use, (which, held) in zip(unit.uses, chosen, strict=True)}
        yield _Issued(op.cycle, op.warp, op.place, {unit.name: unit.interval, ISSUE_SLOT: 1, **taken})
        done[op.warp] += 1


@given(st.data(), multiprocessor_instances(barriers=False))
@settings(max_examples=60)
def test_in_every_hit_a_gate_is_full_and_nothing_else_makes_a_warp_late(
    data: st.DataObject, instance: Instance
) -> None:
    """Lemmas D and G, cycle by cycle; the time alone is that of the path taken, by the equations as they stand."""
    schedule = data.draw(runs(instance))
    ports = PortGates.of(instance.machine)
    every = list(_issued(instance, schedule))
    parts = schedule.partitions or instance.partition_of_warp or (0,) * instance.warps
    units = {unit.name: unit for unit in instance.machine.units}
    for z, program in enumerate(instance.programs()):
        own = [one for one in every if one.warp == z]
        names = [program.places[one.place].unit for one in own]
        times = [
            program.timings[one.place]
            if program.timings
            else InstructionTiming(units[name].latency.most, (1, units[name].latency.most))
            for one, name in zip(own, names, strict=True)
        ]
        alone_at: list[int] = []
        hits = 0
        for j, (one, name) in enumerate(zip(own, names, strict=True)):
            gates, waits = ports.gates([ports.by_class[name]]), []  # (i, cycles that have to pass since i)
            for i in range(j):
                waits.append((i, sum(timing.stall for timing in times[i:j])))
                if set(times[i].sets) & set(times[j].awaits):
                    waits.append((i, times[i].latency[1]))
                for hold, gate in product(ports.by_class[names[i]].holds, gates):
                    if ports.is_own(gate) and gate[0] in hold.pools:
                        waits.append((i, hold.most))
            alone_at.append(max((alone_at[i] + cycles for i, cycles in waits), default=0))
            begin = max((own[i].cycle + cycles for i, cycles in waits), default=0)
            for cycle in range(begin, one.cycle):
                held = Counter(
                    port
                    for other in every
                    for port, cycles in other.ports.items()
                    if other.cycle <= cycle < other.cycle + cycles
                    if parts[other.warp] == parts[z] or port in ports.shared
                )
                assert any(all(held[port] >= ports.capacities[port] for port in gate) for gate in gates)
                hits += 1
            assert one.cycle <= alone_at[-1] + hits


@given(st.one_of(multiprocessor_instances(), multiprocessor_instances(barriers=False)))
@settings(max_examples=20)
def test_limits_of_work_only_make_it_larger(instance: Instance) -> None:
    exact = pessimistic(instance)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(alone, "MOST_WORK", 1)
        patch.setattr(theorem, "MOST_FAMILIES", 0)
        patch.setattr(theorem, "MOST_PRICES", 1)
        assert pessimistic(instance) >= exact
        if theorem_1s(instance) is not None:
            assert least_possible(instance) <= brute_force(instance).lower
            patch.setattr(theorem, "MOST_WORK", 0)
            assert pessimistic(instance) >= brute_force(instance).upper


def test_where_a_warp_may_begin_behind_a_barrier_nothing_is_pending_at_the_start() -> None:
    """It takes C, the barrier, and 9 cycles later the C that awaits the first one, and needs 10; or only the last C."""
    timings = InstructionTiming(1, (9, 9), (0,)), InstructionTiming(0, (0, 0)), InstructionTiming(1, (1, 1), (), (0,))
    skipping = Program(
        (ProgramPlace("C", (1,)), ProgramPlace(BARRIER, (2,)), ProgramPlace("C", (3,))), (0, 2), timings=timings
    )
    one = Instance.of(skipping, 1, Machine("m", (UnitClass("C", 1),), 1))
    assert pessimistic(one) == brute_force(one).upper == 9 + 1
