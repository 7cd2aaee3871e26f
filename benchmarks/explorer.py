"""The shortest and the longest schedule of small instances, by explorer.cpp, which has nothing of makespan."""

import subprocess
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from benchmarks import cpp
from makespan import Instance, Program
from makespan.model.machine import Machine, SchedulerPromise, WarpAssignment
from makespan.model.program import BARRIER


class Truth(NamedTuple):
    """Cycles of the shortest and of the longest schedule, and what it took to know them."""

    shortest: int
    longest: int
    states: int
    steps: int


def built(folder: Path) -> Path:
    """The program, compiled.

    Raises:
        FileNotFoundError: there is no compiler.
    """
    return cpp.built("explorer.cpp", folder, "-O2")


def _lines(machine: Machine, programs: Sequence[Program], warps: Iterable[tuple[int, int]]) -> Iterator[str]:
    """Warps in the order of their numbers, each with the number of its program and its block."""
    width = machine.issue_width or 0
    assigned = "modulo" if machine.assignment is WarpAssignment.MODULO else "any"
    promised = "fair" if machine.scheduler is SchedulerPromise.FAIR else "any"
    yield f"machine {machine.partitions} {assigned} {width} {promised}"
    resources = [resource.name for resource in machine.resources]
    for resource in machine.resources:
        yield f"resource {resource.capacity} {_shared(resource.shared)}"
    for unit in machine.units:
        latency = unit.latency
        yield f"class {unit.capacity} {_shared(unit.shared)} {unit.interval} {latency.least} {latency.most}"
        for use in unit.uses:
            yield f"use {use.least} {use.most} {_list([resources.index(name) for name in use.resources])}"
    classes = list(machine.capacities)
    for program in programs:
        yield from _of_program(program, classes)
    yield from (f"warp {program} {block}" for program, block in warps)


def _of_program(program: Program, classes: list[str]) -> Iterator[str]:
    yield f"program {'ahead' if program.runs_ahead else 'blocks'} {_list(program.starts)}"
    for at, place in enumerate(program.places):
        yield f"place {-1 if place.unit == BARRIER else classes.index(place.unit)} {_list(place.successors)}"
        if program.timings:
            stall, (least, most), sets, awaits = program.timings[at]
            yield f"timing {stall} {least} {most} {_list(sets)} {_list(awaits)}"


def _shared(is_shared: bool) -> str:
    return "shared" if is_shared else "private"


def _list(numbers: Sequence[int]) -> str:
    return " ".join(map(str, (len(numbers), *numbers)))


def written(instance: Instance) -> str:
    """The instance as the program reads it."""
    crews = [group.warps // instance.blocks for group in instance.groups]
    order = instance.order or [number for number, warps in enumerate(crews) for _ in range(warps)]
    warps = [(number, block) for block in range(instance.blocks) for number in order]
    return "\n".join(_lines(instance.machine, [group.program for group in instance.groups], warps))


def launched(block: Sequence[Program], blocks: int, machine: Machine) -> str:
    """So many blocks of warps that run these programs, launched one after another, as the program reads it."""
    programs = list(dict.fromkeys(block))
    warps = [(programs.index(program), number) for number in range(blocks) for program in block]
    return "\n".join(_lines(machine, programs, warps))


class Explorer:
    """The running program."""

    def __init__(self, program: Path) -> None:
        self._process = subprocess.Popen([program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def __call__(self, instances: Iterable[Instance], steps: int) -> list[Truth | None]:
        """All schedules of some hundred instances; None where these are more than so many steps from state to state."""
        return self.explore(map(written, instances), steps)

    def explore(self, texts: Iterable[str], steps: int) -> list[Truth | None]:
        """The same of texts that `written` or `launched` made."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        asked = [f"{text}\nexplore {steps}\n" for text in texts]
        self._process.stdin.write("".join(asked))  # the answers fit into the pipe until they are read
        self._process.stdin.flush()
        answers = [self._process.stdout.readline().split() for _ in asked]
        return [None if answer == ["large"] else Truth(*map(int, answer)) for answer in answers]

    def close(self) -> None:
        """End the program."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        self._process.wait()
        self._process.stdout.close()
