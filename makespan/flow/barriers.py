"""Barriers of a block as places of a program, and instructions that no program can express."""

from collections.abc import Iterable, Sequence, Set
from itertools import accumulate

from makespan.errors import UnsupportedError
from makespan.flow.automaton import Automaton
from makespan.flow.divergence import Reconvergence, parted
from makespan.flow.graph import Flow
from makespan.flow.grid import Launch
from makespan.flow.instruction_set import Barrier
from makespan.program import BARRIER, Place, Timing

_AT_BARRIER = Timing(0, (0, 0))


def with_barriers(flow: Flow, units: Sequence[str | None], launch: Launch) -> tuple[str | None, ...]:
    """The units of all instructions, with `BARRIER` for the barriers that all threads of a block wait at.

    One that needs a unit before its warp has come to the barrier has a class and then `BARRIER`, and keeps both.
    """
    return tuple(
        (unit if unit is not None and unit.endswith(BARRIER) else BARRIER)
        if effect.barrier and flow.semantics.refusal(number, launch.threads_per_block) is None
        else unit
        for number, (effect, unit) in enumerate(zip(flow.effects, units, strict=True))
    )


def with_arrivals(made: Automaton) -> Automaton:
    """The same, a barrier that needs a unit in two places: its warp is at the barrier when what it sets is there."""
    parted = [len(place.unit) > len(BARRIER) and place.unit.endswith(BARRIER) for place in made.places]
    if not any(parted):
        return made
    first = list(accumulate((1 + is_parted for is_parted in parted), initial=0))
    places, timings, behind = list[Place](), list[Timing](), list[tuple[int, ...]]()
    for is_parted, (unit, after), timing, numbers in zip(
        parted, made.places, made.timings, made.instructions, strict=True
    ):
        if is_parted:
            places.append(Place(unit.removesuffix(BARRIER), (len(places) + 1,)))
            timings.append(timing)
            behind.append(numbers)
        places.append(Place(BARRIER if is_parted else unit, tuple(first[place] for place in after)))
        timings.append(_AT_BARRIER._replace(awaits=timing.sets) if is_parted else timing)
        behind.append(numbers)
    starts = tuple(first[place] for place in made.starts)
    return made._replace(places=tuple(places), starts=starts, instructions=tuple(behind), timings=tuple(timings))


def refuse_inexpressible(flow: Flow, blocks: Iterable[int], launch: Launch) -> None:
    """Refuse instructions in some blocks that no program can express, barriers last.

    Raises:
        UnsupportedError: code that is not followed, or a barrier that not all threads of the block wait at.
    """
    numbers = [number for block in blocks for number in flow.numbers(block)]
    for number in sorted(numbers, key=lambda number: flow.effects[number].barrier is not None):
        if why := flow.semantics.refusal(number, launch.threads_per_block):
            instruction = flow.code[number]
            raise UnsupportedError(f"{flow.kernel.file}:{instruction.line}: `{instruction}` {why}")


def refuse_parted_barriers(flow: Flow, parting: Set[int], rules: Iterable[Reconvergence]) -> None:
    """Refuse barriers that lanes may come to one by one, given the branches at which they may part.

    Where the code itself says where lanes meet, this holds for instructions at which the lanes of a warp wait, too.

    Raises:
        UnsupportedError: a barrier that is not aligned between a branch and its point of reconvergence.
    """
    is_told = flow.meetings is not None
    loose = {
        block: flow.code[number]
        for block in range(flow.exit)
        for number in flow.numbers(block)
        if flow.effects[number].barrier is Barrier.BY_LANE or (is_told and flow.effects[number].joins_lanes)
    }
    together = f"use {flow.semantics.instruction_set.aligned_barrier}, which all lanes execute together, or "
    for rule in rules if loose else ():
        for branch in sorted(parting & rule.points.keys()):
            for block in sorted(loose.keys() & parted(flow, branch, rule.points[branch])):
                raise UnsupportedError(
                    f"{flow.kernel.file}:{loose[block].line}: lanes that part at {flow.at(flow.last(branch).line)} may"
                    f" come to `{loose[block]}` one after another, and then run interleaved;"
                    f" {'' if is_told else together}say with --param, --block and --grid what makes the branch uniform"
                )
