"""Bounds that need no evidence: the checker computes what the engines do, for many groups, warps and ports."""

import random
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from importlib import import_module
from itertools import chain, product

import pytest

from benchmarks import closed_form, multiprocessors
from makespan.model.instance import Instance
from makespan.model.machine import DELAY, Latency, Machine, PortResource, SchedulerPromise, UnitClass, Use
from makespan.model.program import BARRIER, InstructionTiming, Program, ProgramPlace
from makespan.model.strings import parse_string
from makespan.proof.bounds import issue_slots, pessimistic, phases, theorem_1s
from makespan.proof.bounds.best_case import least_possible
from makespan.proof.bounds.gates import PortGates
from makespan.proof.bounds.pessimistic import Rivals
from makespan.proof.bounds.pessimistic import waiting as theirs_of
from makespan.proof.bounds.theorem_1s import one_after_another, paths_of, scale_of, ways_to_price
from makespan.verify import gates as gates_of_checker
from makespan.verify import interference, lower_bounds
from makespan.verify import issue_slots as slots
from makespan.verify import pessimistic as again
from makespan.verify import phases as checked
from makespan.verify.refusal import ProofSteps, TooMuchWork
from tests.oracle import brute_force
from tests.verify.test_weights import KIND, WITH_BARRIERS, paths, several


def multiprocessor(draw: random.Random) -> Instance:
    """Several groups of several warps each, on up to four partitions, and with up to four ports of a name."""
    machine = multiprocessors.machine(draw)
    ports = (1, 1, 1, 2, 3, 4)
    units = tuple(replace(unit, capacity=draw.choice(ports)) for unit in machine.units)
    resources = tuple(replace(one, capacity=draw.choice(ports)) for one in machine.resources)
    scheduler = draw.choice((*[SchedulerPromise.ANY] * 4, SchedulerPromise.FAIR))
    partitions = draw.choice((1, 2, 3, 4))
    machine = replace(machine, units=units, resources=resources, partitions=partitions, scheduler=scheduler)
    has_barriers = draw.random() < 0.4
    blocks = draw.choice((1, 1, 2, 3)) if has_barriers else 1
    groups = []
    for _ in range(draw.randint(1, 3)):
        ahead = draw.random() < 0.6
        program = multiprocessors.program(draw, "".join(machine.capacities), 7, barriers=has_barriers, runs_ahead=ahead)
        groups.append((program, blocks * draw.randint(1, 4)))
    return Instance.merged(groups, machine, blocks=blocks)


def test_theorem_1s() -> None:
    draw, found = random.Random(3), 0
    for _ in range(500):
        one = multiprocessor(draw)
        theirs, own = theorem_1s(one), interference.bound(one)
        if theirs is not None:
            found += 1
            if any(group.program.timings and not group.program.is_chain for group in one.groups):
                assert own <= theirs.upper, one
            else:
                assert own == theirs.upper, one
    assert found >= 400


def test_what_theorem_1s_is_made_of() -> None:
    """What a warp takes alone, holds at one time, and pays, also where the bound would not tell."""
    draw = random.Random(10)
    for _ in range(300):
        one = multiprocessor(draw)
        question, ports = interference.HitBound(one, ProofSteps(10**7)), PortGates.of(one.machine)
        held = [[ports.by_class[unit] for unit in classes] for classes in question.classes]
        gates = {gate: frozenset(gate) for gate in ports.gates(chain.from_iterable(held))}
        assert set(gates.values()) == set(question.gates.every)
        chosen = [gate for gate in gates if draw.random() < 0.7]
        scale = scale_of(ports, gates)
        ways = list(ways_to_price(ports, gates, scale))
        prices = draw.choice(ways)
        tried = list(question.gates.prices())
        assert tried[0].scale % scale == 0
        factor = tried[0].scale // scale
        costs = {gates[gate]: {name: price * factor for name, price in some.items()} for gate, some in prices.items()}
        given = gates_of_checker.GatePrices(tried[0].scale, costs)
        assert given in tried
        priced = [{gate: prices[gate] for gate in chosen}]
        priced.append({gate: {r: p for r, p in some.items() if r in ports.shared} for gate, some in priced[0].items()})
        for among, some in zip((None, question.gates.shared), priced, strict=True):
            paid = question.price([gates[gate] for gate in chosen], given, among)
            assert paid == {unit: ports.charge(ports.by_class[unit], some) * factor for unit in paid}
        for classes, own in zip(question.classes, held, strict=True):
            for gate, since in product(gates, (0, 1)):
                most = ports.most_held(own, gate, since=since)
                assert question.gates.most_held(classes, gates[gate], since) == most
        found = paths_of(one, ports, 1)
        assert found is not None
        for number, path in enumerate(found[0]):
            if path.program.is_chain or not path.program.timings:
                assert question.alone(number) == [phase.alone for phase in path.phases], one


def test_an_automaton_takes_as_long_alone_as_the_longest_of_its_paths() -> None:
    draw = random.Random(11)
    for _ in range(150):
        machine = multiprocessors.machine(draw)
        classes = "".join(machine.capacities)
        program = multiprocessors.program(draw, classes, 9, barriers=False, runs_ahead=draw.random() < 0.9)
        further = (
            place._replace(successors=tuple(sorted({*place.successors, draw.randint(at + 1, program.end)})))
            for at, place in enumerate(program.places)
        )
        program = replace(program, places=tuple(further))
        of_paths = []
        for path in paths(program):
            places = tuple(ProgramPlace(program.places[at].unit, (number,)) for number, at in enumerate(path, start=1))
            timings = tuple(program.timings[at] for at in path) if program.timings else ()
            of_paths.append(alone(Program(places, timings=timings), machine))
        assert alone(program, machine) == max(of_paths)
        found = paths_of(Instance.of(program, 1, machine), PortGates.of(machine), 1)
        assert found is not None
        assert found[0][0].phases[0].alone >= max(of_paths)


def alone(program: Program, machine: Machine) -> int:
    (cycles,) = interference.HitBound(Instance.of(program, 1, machine), ProofSteps(10**6)).alone(0)
    return cycles


def test_what_is_pending_behind_a_barrier_is_not_where_a_warp_begins_there() -> None:
    """It begins with the load, or behind the barrier with what awaits the load if there was one."""
    load, use = InstructionTiming(1, (9, 9), (0,)), InstructionTiming(1, (1, 1), (), (0,))
    places = ProgramPlace("L", (1,)), ProgramPlace(BARRIER, (2,)), ProgramPlace("C", (3,))
    program = Program(places, (0, 2), timings=(load, InstructionTiming(0, (0, 0)), use))
    question = interference.HitBound(Instance.of(program, 2), ProofSteps(1000))
    assert question.alone(0) == [1, 8 + 1]


def test_behind_a_barrier_every_port_of_a_gate_is_waited_for() -> None:
    """X holds the second bus for 8 cycles more; hits come behind them, on whichever bus."""
    buses = PortResource("one", 1), PortResource("two", 1)
    units = UnitClass("M", 1, uses=(Use(("one", "two"), 1, 1),)), UnitClass("X", 1, uses=(Use(("two",), 9, 9),))
    question = interference.HitBound(Instance.of("X|M", 1, Machine("m", units, resources=buses)), ProofSteps(1000))
    assert question.alone(0) == [1, 8 + 1]


def test_prices_are_tried_as_long_as_there_is_time() -> None:
    """M holds one of two buses, X the second one for 9 cycles; an M that comes last waits only if both are held."""
    buses = PortResource("one", 1), PortResource("two", 1)
    loads = UnitClass("M", 2, 1, Latency(50, 50), uses=(Use(("one", "two"), 1, 1),))
    machine = Machine("m", (loads, UnitClass("X", 1, uses=(Use(("two",), 9, 9),))), resources=buses)
    one = Instance.merged([(Program.chain("MM"), 2), (Program.chain("XXX"), 1)], machine)
    found = []
    for steps in range(0, 1000, 20):
        with suppress(TooMuchWork):
            found.append(interference.HitBound(one, ProofSteps(steps)).bound())
    evenly, by_the_first_alone = 100 + (2 + 27) // 2, 100 + 2
    assert found == sorted(found, reverse=True)
    assert {*found} == {evenly, by_the_first_alone}
    assert len(found) < 50


def test_without_the_time_for_theorem_1s_all_instructions_are_summed_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(interference, "MOST_STEPS", 0)
    draw = random.Random(9)
    for _ in range(100):
        one = multiprocessor(draw)
        assert interference.bound(one) == one_after_another(one, PortGates.of(one.machine)), one


@pytest.mark.parametrize("kind", [KIND, WITH_BARRIERS], ids=["plain", "barriers"])
def test_the_pessimistic_bound_and_the_least_possible(kind: closed_form.Kind) -> None:
    draw = random.Random(4)
    for _ in range(200):
        machine = replace(closed_form.machine(draw, kind), issue_width=draw.choice((None, 1, 2, 3)))
        one = several(draw, kind, machine)
        assert again.pessimistic(one) == pessimistic(one), one
        assert lower_bounds.least_makespan(one) == least_possible(one), one


def test_waiting_by_any_shares() -> None:
    draw = random.Random(5)
    for _ in range(1000):
        units = tuple(
            UnitClass(name, draw.randint(1, 5), draw.randint(1, 4), Latency(1, draw.randint(1, 4))) for name in "CLS"
        )
        machine, others = Machine("m", units, draw.choice((None, 1, 2, 3, 4))), draw.randint(0, 5)
        shares = {
            name: (draw.randint(0, 4), draw.randint(0, 9), draw.randint(0, 5), draw.random() < 0.8) for name in "CLS"
        }
        own = again.most_waiting(machine, others, {name: again.ClassShare(*of) for name, of in shares.items()})
        assert own == theirs_of(machine, {name: Rivals(*of) for name, of in shares.items()}, others)


def slotted(draw: random.Random, kind: closed_form.Kind) -> Instance:
    """Short gaps and long ones; of most classes as many ports as there are slots while they are held."""
    units, width = list[UnitClass](), draw.choice((None, 1, 1, 2, 3))
    for name in "CLS"[: draw.choice((1, 2, 3))]:
        interval, least = draw.choice((1, 1, 2, 3)), draw.choice((1, 2, 4, 9, 20))
        ports = interval * (width or 1) + draw.choice((-1, 0, 0, 0, 1))
        units.append(UnitClass(name, max(ports, 1), interval, Latency(least, least + draw.choice((0, 0, 1, 3)))))
    return several(draw, kind, Machine("m", tuple(units), width))


def test_issue_slots() -> None:
    draw, found = random.Random(6), 0
    for number in range(800):
        barriers, automata = number % 4 == 1, number % 4 == 2
        one = slotted(draw, closed_form.Kind(letters=12, barriers=barriers, automata=automata))
        theirs = issue_slots(one)
        assert slots.bound(one) == (theirs and theirs.upper), one
        found += theirs is not None
    assert found > 200


def test_issue_slots_of_places_that_need_none() -> None:
    one = Instance.of(f"C{DELAY}C", 2, Machine("m", (UnitClass("C", 1), UnitClass.of_delays(2)), 1))
    assert slots.bound(one) is None
    assert issue_slots(one) is None


def test_issue_slots_as_far_as_there_is_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two strings of three letters in all, each seen by both."""
    one = Instance.merged([(Program.chain("C"), 2), (Program.chain("CC"), 2)])
    for most, upper in ((6, 2 * 1 + 2 * 2), (5, None)):
        monkeypatch.setattr(slots, "MOST_GAPS", most)
        assert slots.bound(one) == upper


def cuts(draw: random.Random) -> Iterator[Instance]:
    for _ in range(200):
        kind = WITH_BARRIERS._replace(interval=draw.choice((1, 2)), automata=draw.random() < 0.5)
        scheduler = draw.choice((SchedulerPromise.ANY, SchedulerPromise.FAIR))
        yield several(draw, kind, replace(closed_form.machine(draw, kind), scheduler=scheduler))
        yield multiprocessor(draw)


def test_the_questions_of_phases() -> None:
    found = 0
    for one in cuts(random.Random(7)):
        theirs, own = phases(one), checked.cut(one)
        if theirs is None:
            assert own is None
            assert checked.questions(one) is None
            assert checked.lag(one) == 0
        else:
            assert own == [(phase.instance, phase.lag) for phase in theirs]
            assert checked.questions(one) == [phase.instance for phase in theirs]
            assert checked.lag(one) == sum(phase.lag for phase in theirs)
            found += len(theirs) > 1
    assert found > 20


def test_a_port_that_is_held_over_a_barrier_makes_the_next_phase_later() -> None:
    """Issued in cycle 0, past the barrier in 1, and the port is free again in 3."""
    held = Machine("held", (UnitClass("C", 1, 3),))
    one = Instance.of(parse_string("C()|C()", held), 1, held)
    assert checked.lag(one) == 2
    assert brute_force(one).upper == 1 + 2 + 1


def test_phases_that_are_too_many_to_tell_apart_are_added_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checked, "MOST_VISITS", 0)
    monkeypatch.setattr(import_module("makespan.proof.bounds.phases"), "MOST_PLACES", 0)
    draw = random.Random(12)
    for _ in range(50):
        one = several(draw, WITH_BARRIERS, closed_form.machine(draw, WITH_BARRIERS))
        assert checked.cut(one) is None
        assert again.pessimistic(one) == pessimistic(one), one


def test_paths_that_meet_again_are_followed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of forty choices in a row, between two barriers."""
    monkeypatch.setattr(checked, "MOST_VISITS", 1000)
    places = [ProgramPlace("C", (1,)), ProgramPlace(BARRIER, (2,))]
    for at in range(2, 122, 3):
        places += [ProgramPlace("C", (at + 1, at + 2)), ProgramPlace("C", (at + 3,)), ProgramPlace("C", (at + 3,))]
    one = Instance.of(Program((*places, ProgramPlace(BARRIER, (123,)), ProgramPlace("C", (124,)))), 3)
    assert [len(inside) for _, inside in checked.phases(one)[0]] == [1, 120, 1]
    assert [len(phase.inside) for phase in interference.HitBound(one, ProofSteps(1000)).cut[0]] == [1, 120, 1]
