"""Bounds that need no evidence: the checker computes what the engines do, for many groups, warps and ports."""

import random
from collections.abc import Iterator
from dataclasses import replace

import pytest

from benchmarks import closed_form, multiprocessors
from makespan.bounds import issue_slots, pessimistic, theorem_1s
from makespan.bounds.pessimistic import Rivals
from makespan.bounds.pessimistic import waiting as theirs_of
from makespan.bounds.phases import phases
from makespan.instance import Instance
from makespan.machine import Latency, Machine, Scheduler, UnitClass
from makespan.program import Program
from makespan.verify import bounds, interference, waiting
from makespan.verify import issue_slots as slots
from makespan.verify import phases as checked
from tests.verify.test_weights import KIND, WITH_BARRIERS, several


def multiprocessor(draw: random.Random) -> Instance:
    """Several groups of several warps each, on up to four partitions, and with up to four ports of a name."""
    machine = multiprocessors.machine(draw)
    units = tuple(replace(unit, capacity=draw.randint(1, 4)) for unit in machine.units)
    resources = tuple(replace(one, capacity=draw.randint(1, 4)) for one in machine.resources)
    scheduler = draw.choice((*[Scheduler.ANY] * 4, Scheduler.FAIR))
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
    while found < 400:
        one = multiprocessor(draw)
        theirs, own = theorem_1s(one), interference.bound(one)
        if theirs is None:
            continue
        found += 1
        if any(group.program.timings and not group.program.is_chain for group in one.groups):
            assert own <= theirs.upper, one
        else:
            assert own == theirs.upper, one


@pytest.mark.parametrize("kind", [KIND, WITH_BARRIERS], ids=["plain", "barriers"])
def test_the_pessimistic_bound(kind: closed_form.Kind) -> None:
    draw = random.Random(4)
    for _ in range(200):
        machine = replace(closed_form.machine(draw, kind), issue_width=draw.choice((None, 1, 2, 3)))
        one = several(draw, kind, machine)
        assert bounds.pessimistic(one) == pessimistic(one), one


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
        own = waiting.most_waiting(machine, others, {name: waiting.Share(*of) for name, of in shares.items()})
        assert own == theirs_of(machine, {name: Rivals(*of) for name, of in shares.items()}, others)


def test_issue_slots() -> None:
    draw, found = random.Random(6), 0
    for _ in range(600):
        units = []
        width = draw.choice((None, 1, 1, 2, 3))
        for name in "CLS"[: draw.choice((1, 2, 3))]:
            interval = draw.choice((1, 1, 2, 3))
            least = draw.choice((1, 2, 4, 9, 20))
            latency = Latency(least, least + draw.choice((0, 0, 1, 3)))
            ports = interval * (width or 1) + draw.choice((-1, 0, 0, 0, 1))
            units.append(UnitClass(name, max(ports, 1), interval, latency))
        machine = Machine("m", tuple(units), width)
        names = "".join(machine.capacities)
        groups = [
            (Program.chain("".join(draw.choices(names, k=draw.randint(1, 12)))), draw.randint(1, 5))
            for _ in range(draw.choice((1, 1, 2, 3)))
        ]
        one = Instance.merged(groups, machine)
        theirs = issue_slots(one)
        assert slots.bound(one) == (theirs and theirs.upper), one
        found += theirs is not None
    assert found > 200


def cuts(draw: random.Random) -> Iterator[Instance]:
    for _ in range(200):
        yield several(draw, WITH_BARRIERS, closed_form.machine(draw, WITH_BARRIERS._replace(interval=2)))
    for _ in range(200):
        yield multiprocessor(draw)


def test_the_questions_of_phases() -> None:
    found = 0
    for one in cuts(random.Random(7)):
        theirs, own = phases(one), checked.cut(one)
        if theirs is None:
            assert own is None
        else:
            assert own == [(phase.instance, phase.lag) for phase in theirs]
            found += len(theirs) > 1
    assert found > 20
