"""Schedules on all kinds of machines, right and damaged: the checker and the engines are of one mind on them."""

import random
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import combinations, permutations
from typing import Any, cast

from benchmarks.multiprocessors import machine, program
from makespan.host.errors import InvalidScheduleError, MakespanError
from makespan.model.instance import Instance
from makespan.model.machine import Machine, SchedulerPromise, UnitClass
from makespan.model.schedule import Schedule
from makespan.model.simulate import POLICIES, Choices, run
from makespan.model.simulate import replay as engine_replay
from makespan.model.simulate.floor import Floor as EngineFloor
from makespan.model.simulate.floor import walks
from makespan.model.simulate.replay import IssueJudge, check_conduct
from makespan.verify import Refused
from makespan.verify.sm_execution import SmExecution
from makespan.verify.witness import replay, scripts
from tests.verify.test_multiprocessor import changed


def drawn(draw: random.Random) -> Instance:
    """Up to a dozen warps of three programs, in one block or two."""
    chosen = replace(machine(draw), scheduler=draw.choice((SchedulerPromise.ANY, SchedulerPromise.FAIR)))
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
    for _ in range(300):
        instance = drawn(draw)
        schedule = simulated(draw, instance)
        for _ in range(5):
            accepted = verdict(engine_replay, InvalidScheduleError, instance, schedule)
            assert verdict(replay, Refused, instance, schedule) == accepted, (instance, schedule)
            found[accepted is not None] += 1
            schedule = changed(draw, instance, schedule)
    assert min(found.values()) > 300


Standing = tuple[object, object]
"""What a floor of the checker says of all that may follow, and what one of the engines says."""


def ranks(cycles: Mapping[int, int], never: Sequence[int] = ()) -> list[tuple[int, int]]:
    """Who of these warps came first: cycles by their order."""
    order = sorted({*cycles.values(), *never})
    return sorted((warp, order.index(cycle)) for warp, cycle in cycles.items())


class Both:
    """One floor of each kind, on which the same happens."""

    def __init__(self, instance: Instance, schedule: Schedule) -> None:
        partitions = schedule.partitions or instance.partition_of_warp or ()
        self.blocks = instance.block_of_warp()
        self.floor = SmExecution(instance.machine, partitions, self.blocks)
        self.engine = EngineFloor(instance.machine, instance.warps)
        self.judge = IssueJudge(instance.machine, self.engine)
        programs = tuple(instance.programs())
        self.walks = walks(instance.machine, programs, schedule.paths, partitions)
        self.scripts = scripts(
            instance.machine, programs, schedule.paths, schedule.latencies or None, schedule.uses or None
        )
        self.conduct = check_conduct(instance, programs, schedule.paths, schedule.latencies, schedule.uses)
        self.clock = 0

    def play(self, schedule: Schedule) -> Iterator[Standing]:
        """All warps come and do what the schedule says, then the ports are released."""
        for warp, (walk, script) in enumerate(zip(self.walks, self.scripts, strict=True)):
            self.engine.put(self.clock, warp, walk, self.blocks[warp])
            self.judge.put(warp, self.conduct.latencies[warp], self.conduct.uses[warp] if self.conduct.uses else None)
            self.floor.admit(self.clock, warp, script)
        for executing in schedule.cycles:
            yield self.standing()
            self.floor.begin(self.clock)
            self.engine.begin(self.clock)
            self.floor.execute(self.clock, executing)
            self.judge.check(self.clock, executing)
            self.clock += 1
        for _ in range(8):
            yield self.standing()
            self.floor.begin(self.clock)
            self.engine.begin(self.clock)
            self.clock += 1
        assert sorted(self.floor.ended) == sorted(self.engine.ended) == sorted(set(self.blocks))
        self.floor.ended.clear()
        self.engine.ended.clear()

    def standing(self) -> Standing:
        at, arrivals, releases, pending, waiting = cast(Any, self.engine.state(self.clock))
        there = {warp for warp in range(len(at)) if not self.engine.has_finished(warp)}
        issued = ranks({warp: rank for warp, rank in cast(Any, self.judge.state()) if warp in there}, [0])
        return self.floor.state(self.clock), (at, arrivals, releases, pending, ranks(dict(waiting)), issued)


def test_what_is_the_same_state_to_the_checker_is_the_same_to_the_engines() -> None:
    draw, found = random.Random(27), Counter[bool]()
    for _ in range(60):
        instance = drawn(draw)
        choices = Choices("random", "random", draw.randrange(1000), interval="random", assignment="random")
        runs = [run(instance.relaxed, policy, choices) for policy in POLICIES]
        same = [one for one in runs if replace(one, cycles=()) == replace(runs[0], cycles=())]
        both, seen = Both(instance, runs[0]), list[Standing]()
        for schedule in dict.fromkeys(same):
            if verdict(replay, Refused, instance, schedule) is not None:
                seen += both.play(schedule)
        for (own, theirs), (other, those) in combinations(seen, 2):
            assert (own == other) is (theirs == those), instance
            found[own == other] += 1
    assert min(found.values()) > 1000


def test_who_issued_before_whom_is_part_of_the_state_of_a_fair_scheduler() -> None:
    slot = Machine("slot", (UnitClass("C", 1),), issue_width=1, scheduler=SchedulerPromise.FAIR)
    instance = Instance.of("CCC", 3, slot)
    turns = [Schedule(tuple((warp,) for warp in order) * 3, ((0, 1, 2),) * 3) for order in permutations(range(3))]
    both, later = Both(instance, turns[0]), list[Standing]()
    for schedule in turns:
        assert replay(instance, schedule) == 9
        later.append(list(both.play(schedule))[3])
    for (own, theirs), (other, those) in combinations(later, 2):
        assert own != other
        assert theirs != those
