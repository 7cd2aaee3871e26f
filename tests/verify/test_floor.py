"""Schedules of all kinds of machines, right and damaged: who judges them for the engines is of one mind with the checker."""

import random
from collections import Counter
from collections.abc import Callable
from dataclasses import replace

from benchmarks.multiprocessors import machine, program
from makespan.errors import InvalidScheduleError, MakespanError
from makespan.instance import Instance
from makespan.machine import Scheduler
from makespan.schedule import Schedule
from makespan.simulate import Choices, run
from makespan.simulate import replay as engine_replay
from makespan.verify import Refused
from makespan.verify.witness import replay
from tests.verify.test_multiprocessor import changed


def drawn(draw: random.Random) -> Instance:
    """Up to a dozen warps of three programs, in one block or two."""
    chosen = replace(machine(draw), scheduler=draw.choice((Scheduler.ANY, Scheduler.FAIR)))
    classes, barriers, blocks = "".join(chosen.capacities), draw.random() < 0.4, draw.choice((1, 2))
    programs = (
        program(draw, classes, 6, barriers=barriers, runs_ahead=draw.random() < 0.6) for _ in range(draw.randint(1, 3))
    )
    return Instance.merged([(one, blocks * draw.randint(1, 2)) for one in programs], chosen, blocks=blocks)


def simulated(draw: random.Random, instance: Instance) -> Schedule:
    """By a policy that is not fair, but now and then makes a fair schedule."""
    seed = draw.randrange(1000)
    choices = Choices("random", "random", seed, interval="random", assignment="random")
    return run(instance.relaxed, draw.choice(("random", "lrr")), choices)


def verdict(
    judge: Callable[[Instance, Schedule], int], wrong: type[MakespanError], instance: Instance, schedule: Schedule
) -> int | None:
    try:
        return judge(instance, schedule)
    except wrong:
        return None


def test_a_schedule_that_one_refuses_is_refused_by_the_other() -> None:
    draw, found = random.Random(27), Counter[bool]()
    for _ in range(400):
        instance = drawn(draw)
        schedule = simulated(draw, instance)
        for _ in range(5):
            accepted = verdict(engine_replay, InvalidScheduleError, instance, schedule)
            assert verdict(replay, Refused, instance, schedule) == accepted, (instance, schedule)
            found[accepted is not None] += 1
            schedule = changed(draw, instance, schedule)
    assert min(found.values()) > 400
