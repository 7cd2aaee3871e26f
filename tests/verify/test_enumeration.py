"""Random multiprocessors, too large for brute force: the checker's enumeration finds the extremes of the engines'."""

import random
from collections import Counter
from dataclasses import replace
from math import factorial, prod

import pytest

from makespan.host.errors import InputError
from makespan.model.instance import Instance
from makespan.model.machine import Latency, Machine, PortResource, UnitClass, Use, WarpAssignment
from makespan.model.program import BARRIER, InstructionTiming, Program, ProgramPlace
from makespan.proof.engines import Limits
from makespan.proof.engines.search import sm_states
from makespan.verify import interference, lower_bounds, partitions, states
from makespan.verify.refusal import ProofSteps

MOST_STATES = 400


def machine(draw: random.Random) -> Machine:
    """Up to three classes and partitions, and two resources."""
    names = ("bus", "pipe")[: draw.randint(0, 2)]
    resources = tuple(PortResource(name, draw.randint(1, 2), draw.random() < 0.4) for name in names)
    units = []
    for name in "CLS"[: draw.randint(1, 3)]:
        least, held = draw.randint(1, 3), draw.randint(1, 2)
        use = Use(draw.choice((names, names[:1])), held, held + draw.randint(0, 1)) if names else None
        latency = Latency(least, least + draw.choice((0, 0, 2)))
        uses = (use,) if use and draw.random() < 0.6 else ()
        interval = draw.choice((1, 1, 2, 4))
        units.append(UnitClass(name, draw.randint(1, 2), interval, latency, draw.random() < 0.3, uses))
    return Machine(
        "random",
        tuple(units),
        draw.choice((None, 1, 1, 2)),
        partitions=draw.choice((1, 2, 2, 3)),
        assignment=draw.choice(tuple(WarpAssignment)),
        resources=resources,
    )


def program(draw: random.Random, units: str, *, has_barriers: bool) -> Program:
    """A few places, most of them in a row, of warps most of which run ahead."""
    end = draw.randint(1, 5)
    places, timings = [], []

    def tokens(share: float) -> tuple[int, ...]:
        return tuple(token for token in range(3) if draw.random() < share)

    for at in range(end):
        unit = BARRIER if has_barriers and draw.random() < 0.25 else draw.choice(units)
        parts = at + 2 <= end and draw.random() < 0.15
        places.append(ProgramPlace(unit, (at + 1, at + 2) if parts else (at + 1,)))
        least = draw.randint(1, 4)
        timing = InstructionTiming(
            draw.randint(1, 3), (least, least + draw.choice((0, 0, 2))), tokens(0.4), tokens(0.3)
        )
        timings.append(InstructionTiming(0, (0, 0), (), tokens(0.3)) if unit == BARRIER else timing)
    starts = (0, 1) if end > 1 and draw.random() < 0.2 else (0,)
    return Program(tuple(places), starts, timings=tuple(timings) if draw.random() < 0.7 else ())


def instance(draw: random.Random) -> Instance:
    machine_ = machine(draw)
    blocks, has_barriers = draw.choice((1, 1, 2)), draw.random() < 0.4
    groups = [
        (
            program(draw, "".join(machine_.capacities), has_barriers=has_barriers),
            blocks if blocks > 1 else draw.randint(1, 3),
        )
        for _ in range(draw.choice((1, 1, 2)))
    ]
    return Instance.merged(groups, machine_, blocks=blocks)


@pytest.mark.parametrize("seed", range(8))
def test_it_finds_the_extremes_that_the_engines_find(seed: int) -> None:
    draw, wide = random.Random(seed), 0
    for _ in range(25):
        try:
            asked = instance(draw)
        except InputError:
            continue  # a path of barriers only
        found = states.shortest_and_longest(asked, MOST_STATES)
        if found is None:
            continue
        truth = sm_states.solve(asked, Limits())
        assert truth.best_case is not None
        assert found == (truth.best_case.lower, truth.upper)
        assert lower_bounds.least_makespan(asked) <= found[0]
        assert found[1] <= interference.bound(asked)
        if (questions := partitions.questions(asked)) is not None:
            alone = [states.shortest_and_longest(one, MOST_STATES) for one in questions]
            assert found[1] == max(one[1] for one in alone if one is not None)
        wide += found[0] < found[1]
    assert wide > 5


ONE_UNIT = Machine("one unit", (UnitClass("C", 1),), 1)


def test_a_result_is_pending_for_whichever_way_needs_it() -> None:
    """The load of cycle 0 is there in cycle 5; after the C of cycle 1 only the second of two ways waits for it."""
    places = ProgramPlace("L", (1,)), ProgramPlace("C", (2, 3)), ProgramPlace("C", (4,)), ProgramPlace("C", (4,))
    plain = InstructionTiming(1, (1, 1))
    load, waiting = InstructionTiming(1, (5, 5), sets=(0,)), InstructionTiming(1, (1, 1), awaits=(0,))
    fork = Program(places, (0,), timings=(load, plain, plain, waiting))
    asked = Instance.merged([(fork, 1)], Machine("two", (UnitClass("C", 1), UnitClass("L", 1)), 1))
    assert states.shortest_and_longest(asked, 100) == (5, 6)


def test_one_resource_of_several_is_enough() -> None:
    """The second C takes b in cycle 1, as a is held by the first one up to cycle 4."""
    either = UnitClass("C", 2, uses=(Use(("a", "b"), 4, 4),))
    asked = Instance.of("CC", 1, Machine("either", (either,), resources=(PortResource("a", 1), PortResource("b", 1))))
    assert states.shortest_and_longest(asked, 100) == (2, 2)


@pytest.mark.parametrize(
    ("warps", "parts", "sizes"),
    [(1, 3, (0, 0, 1)), (3, 2, (1, 2)), (4, 2, (2, 2)), (4, 3, (1, 1, 2)), (5, 3, (1, 2, 2)), (5, 4, (1, 1, 1, 2))],
)
def test_warps_are_spread_evenly(warps: int, parts: int, sizes: tuple[int, ...]) -> None:
    machine_ = replace(ONE_UNIT, partitions=parts)
    walker = states.StateWalker(Instance.of("C", warps, machine_), ProofSteps(10**6))
    (spread,) = walker.assignments([(0, 0)] * warps)
    assert tuple(sorted(map(len, spread))) == sizes
    each = {tuple(sorted(spread)) for spread in walker.assignments([(n, 0) for n in range(warps)])}
    assert all(tuple(sorted(map(len, spread))) == sizes for spread in each)
    assert len(each) == factorial(warps) // prod(map(factorial, sizes)) // prod(
        map(factorial, Counter(filter(None, sizes)).values())
    )
