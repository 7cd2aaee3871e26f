"""What reaches over barriers, in the checker and in the engines: two programs that walk the paths in opposite ways."""

import random
from collections import Counter
from dataclasses import replace

from benchmarks.multiprocessors import machine, program
from makespan.model.instance import Instance
from makespan.model.machine import Latency, Machine, PortResource, UnitClass, Use
from makespan.model.program import BARRIER, Program, ProgramPlace
from makespan.proof.bounds.phases import awaited_within, number_tokens
from makespan.proof.bounds.phases import phases as engine_phases
from makespan.verify import crossing, phases
from makespan.verify.refusal import ProofSteps


def test_what_is_pending_at_a_barrier() -> None:
    draw, found = random.Random(27), Counter[bool]()
    for _ in range(900):
        ahead = program(draw, "CL", 9, barriers=True, runs_ahead=True)
        try:
            timings = crossing.timings(ahead, ProofSteps(10_000))
        except crossing.UnevenCrossing:
            timings = None
        assert timings == awaited_within(ahead), ahead
        found[timings is None] += 1
        inside = sorted(draw.sample(range(ahead.end), draw.randint(1, ahead.end)))
        assert crossing.of_phase(inside, ahead.timings) == number_tokens(inside, ahead.timings)
    assert min(found.values()) > 200


def held_for_long(draw: random.Random) -> Machine:
    drawn = machine(draw)
    units = tuple(replace(unit, interval=draw.choice((1, unit.interval, 5))) for unit in drawn.units)
    return replace(drawn, units=units, partitions=draw.choice((1, 1, 1, drawn.partitions)))


def test_ports_that_are_held_when_a_barrier_opens() -> None:
    draw, lags = random.Random(27), Counter[int | None]()
    while lags.total() < 1300:
        chosen, ahead = held_for_long(draw), draw.random() < 0.25
        classes = "".join(chosen.capacities)
        kinds = [program(draw, classes, 8, barriers=True, runs_ahead=ahead) for _ in range(draw.choice((1, 1, 2)))]
        instance = Instance.merged([(kind, draw.randint(1, 2)) for kind in kinds], chosen)
        if not instance.has_barriers or not instance.is_multiprocessor:
            continue
        own, theirs = phases.cut(instance), engine_phases(instance)
        assert own == (theirs and [(phase.instance, phase.lag) for phase in theirs]), instance
        lags[sum(lag for _, lag in own) if own else None] += 1
    assert sum(count for lag, count in lags.items() if lag) > 30
    assert lags[0] > 350
    assert lags[None] > 350


def loading(*resources: str) -> Machine:
    """A store holds the bus for four cycles, a load one of these."""
    store, load = (UnitClass(name, 1, uses=(Use(of, 4, 4),)) for name, of in (("S", ("bus",)), ("L", resources)))
    pools = tuple(PortResource(name, 1) for name in ("bus", "pipe"))
    return Machine("loading", (UnitClass("C", 1, latency=Latency(2, 2)), load, store), resources=pools)


def test_who_finds_another_port_does_not_wait_for_the_one_that_is_held() -> None:
    one, either = (Instance.of("S|L", 1, loading(*names)) for names in (("bus",), ("bus", "pipe")))
    assert [lag for _, lag in phases.cut(one) or ()] == [0, 3]
    assert phases.cut(either) is None


def test_a_port_is_wanted_when_the_shortest_path_comes_to_it() -> None:
    """The bus is held for three cycles behind the barrier: paths that take two miss it, those that take one do not."""
    for behind, is_cut in (
        ("2: C 3 C 4 L 5", True),
        ("2: C 3,4 C 4 L 5", False),
        ("2,5: C 3 C 4 L 6 L 6", False),  # the load that is nearer comes later in the text
        ("2,4: C 3 C 5 C 5 L 6", False),  # and so does the shorter way to a load
    ):
        first, _, rest = behind.partition(": ")
        words = f"L 1 {BARRIER} {first} {rest}".split()
        rows = zip(words[::2], words[1::2], strict=True)
        places = tuple(ProgramPlace(unit, tuple(map(int, after.split(",")))) for unit, after in rows)
        instance = Instance.of(Program(places), 1, loading("bus"))
        assert (phases.cut(instance) is not None) is (engine_phases(instance) is not None) is is_cut


def test_a_port_is_held_by_whoever_holds_it_for_longest() -> None:
    """One of two for five cycles, and meanwhile the other one for one: behind the barrier only the first is held."""
    units = tuple(UnitClass(name, 1, uses=(Use(("bus",), cycles, cycles),)) for name, cycles in (("S", 6), ("L", 1)))
    for string, is_cut in (("SL|L", False), ("LL|L", True)):
        instance = Instance.of(string, 1, Machine("two", units, resources=(PortResource("bus", 2),)))
        assert (phases.cut(instance) is not None) is (engine_phases(instance) is not None) is is_cut
