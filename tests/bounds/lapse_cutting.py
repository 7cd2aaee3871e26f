"""Lemma K as a program: a schedule without the cycles of its lapses, on a machine with shorter times.

Each instruction keeps the time that is left of its stall, its latency and what it holds. So it gets a class of its own
on the new machine: the ports of the classes become resources, which are held for as long as is left.
"""

from collections.abc import Iterator
from dataclasses import replace
from string import ascii_uppercase

from makespan.model.instance import Group, Instance
from makespan.model.machine import ONE_CYCLE, PortResource, UnitClass, Use
from makespan.model.program import BARRIER, InstructionTiming, Program, ProgramPlace
from makespan.model.schedule import WHOLE_SM, Schedule
from tests.bounds.lapse_ledger import LapseStep, LapsingRun


class CutSchedule:
    """What is left of a partition of a schedule without the cycles of its lapses.

    Args:
        run: the schedule, in which no warp is withheld.
        part: the partition.
        without: what keeps its length on purpose although a lapse is cut out of it.
    """

    def __init__(self, run: LapsingRun, part: int, without: str = "") -> None:
        self.run, self.part, self.without = run, part, without
        self.warps = [warp for warp, own in enumerate(run.parts) if own == part]
        self.end = max(run.ends[warp] for warp in self.warps)
        own = (cycle for cycle, parts in run.lapses.items() if {part, WHOLE_SM} & set(parts))
        self.lapses = {cycle for cycle in own if cycle < self.end}
        self.units: dict[tuple[int, ...], UnitClass] = {}
        self.programs = tuple(run.instance.programs())

    def left_of(self, begin: int, cycles: int, what: str) -> int:
        """What is left of so many cycles from an issue on."""
        if what == self.without:
            return cycles
        return sum(cycle not in self.lapses for cycle in range(begin, begin + cycles))

    def cut(self) -> tuple[Instance, Schedule]:
        """The instance with shorter times, and the schedule without lapses."""
        by_program: dict[Program, list[int]] = {}
        for warp in self.warps:
            by_program.setdefault(self._program(warp), []).append(warp)
        machine = self.run.instance.machine
        ports = tuple(PortResource(_port(unit.name), unit.capacity) for unit in machine.units)
        instance = Instance(
            tuple(Group(program, len(warps)) for program, warps in by_program.items()),
            replace(
                machine,
                units=tuple(self.units.values()),
                partitions=1,
                resources=(*ports, *(replace(resource, shared=False) for resource in machine.resources)),
                lapses=None,
            ),
        )
        order = [warp for warps in by_program.values() for warp in warps]
        kept = [cycle for cycle in range(self.end) if cycle not in self.lapses]
        issued = {(step.cycle, warp) for warp in order for step in self.run.steps[warp]}
        uses = [
            [((0, unit.uses[0].most), *self._chosen(unit, step)) for step, unit in self._issued(warp)] for warp in order
        ]
        return instance, Schedule.of(
            instance,
            [[n for n, warp in enumerate(order) if (cycle, warp) in issued] for cycle in kept],
            [range(program.end) for program in instance.programs()],
            [[latency for _, (latency, _), *_ in _timed(program)] for program in instance.programs()],
            uses,
            [0] * len(order),
        )

    def _chosen(self, unit: UnitClass, step: LapseStep) -> list[tuple[int, int]]:
        return [(which, use.most) for use, (which, _) in zip(unit.uses[1:], step.uses, strict=True)]

    def _issued(self, warp: int) -> Iterator[tuple[LapseStep, UnitClass]]:
        for step in self.run.steps[warp]:
            yield step, self._unit(step)

    def _unit(self, step: LapseStep) -> UnitClass:
        units = self.run.instance.machine.units
        name = self.programs[step.warp].places[step.place].unit
        number, unit = next((n, unit) for n, unit in enumerate(units) if unit.name == name)
        holds = [unit.interval, *(cycles for _, cycles in step.uses)]
        left = tuple(self.left_of(step.cycle, cycles, "hold") for cycles in holds)
        if (number, *left) not in self.units:
            uses = ((_port(name),), *(use.resources for use in unit.uses))
            self.units[number, *left] = UnitClass(
                ascii_uppercase[len(self.units)],
                self.run.instance.warps,
                1,
                ONE_CYCLE,
                uses=tuple(Use(names, cycles, cycles) for names, cycles in zip(uses, left, strict=True)),
            )
        return self.units[number, *left]

    def _program(self, warp: int) -> Program:
        """The path of a warp as a string, with what is left of its times."""
        program, found = self.programs[warp], dict[int, tuple[str, InstructionTiming]]()
        for barrier in self.run.barriers[warp]:
            awaits = program.timings[barrier.place].awaits if program.timings else ()
            found[barrier.place] = BARRIER, InstructionTiming(0, (0, 0), (), awaits)
        for step, unit in self._issued(warp):
            latency = self.left_of(step.cycle, step.latency, "latency")
            timing = InstructionTiming(latency, (1, 1))
            if program.timings:
                own = program.timings[step.place]
                stall = self.left_of(step.cycle, own.stall, "stall")
                timing = own._replace(stall=stall, latency=(latency, latency))
            found[step.place] = unit.name, timing
        places = [found[place] for place in sorted(found)]
        return Program(
            tuple(ProgramPlace(unit, (n,)) for n, (unit, _) in enumerate(places, start=1)),
            timings=tuple(timing for _, timing in places),
        )


def _port(unit: str) -> str:
    return f"port-{unit.lower()}"


def _timed(program: Program) -> list[InstructionTiming]:
    return [timing for place, timing in zip(program.places, program.timings, strict=True) if place.unit != BARRIER]
