"""Barriers of a block as places of a program, and instructions that no program can express."""

from collections.abc import Iterable, Sequence, Set
from itertools import accumulate

from makespan.host.errors import UnsupportedError
from makespan.kernels.flow.automaton import Automaton
from makespan.kernels.flow.graph import Flow, Reconvergence, closure
from makespan.kernels.flow.grid import Launch
from makespan.kernels.flow.instruction_set import Barrier
from makespan.model.program import BARRIER, InstructionTiming, ProgramPlace

_AT_BARRIER = InstructionTiming(0, (0, 0))


def with_barriers(flow: Flow, units: Sequence[str | None], launch: Launch) -> tuple[str | None, ...]:
    """Return the units of all instructions, with `BARRIER` for the barriers that all threads of a block wait at.

    One that needs a unit before its warp has come to the barrier has a class and then `BARRIER`, and keeps both.
    """
    return tuple(
        (unit if unit is not None and unit.endswith(BARRIER) else BARRIER)
        if effect.barrier and flow.semantics.refusal(number, launch.threads_per_block) is None
        else unit
        for number, (effect, unit) in enumerate(zip(flow.effects, units, strict=True))
    )


def with_arrivals(made: Automaton) -> Automaton:
    """Return the same automaton with two places for a barrier that needs a unit: its service, and the arrival."""
    parted = [len(place.unit) > len(BARRIER) and place.unit.endswith(BARRIER) for place in made.places]
    if not any(parted):
        return made
    first = list(accumulate((1 + is_parted for is_parted in parted), initial=0))
    places, timings, behind = list[ProgramPlace](), list[InstructionTiming](), list[tuple[int, ...]]()
    for is_parted, (unit, after), timing, numbers in zip(
        parted, made.places, made.timings, made.instructions, strict=True
    ):
        if is_parted:
            places.append(ProgramPlace(unit.removesuffix(BARRIER), (len(places) + 1,)))
            timings.append(timing)
            behind.append(numbers)
        places.append(ProgramPlace(BARRIER if is_parted else unit, tuple(first[place] for place in after)))
        # the warp arrives once the barrier has been served
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

    Where the code itself says where lanes meet, this holds for instructions at which the lanes of a warp wait, too, and
    for aligned barriers, to which lanes may have been promised to come together: one side of a branch at most may lead
    to any before the lanes meet.

    Raises:
        UnsupportedError: a barrier that is not aligned between a branch and its point of reconvergence, or such a one.
    """
    is_told = flow.meetings is not None
    found = {
        (flow.effects[number].barrier is Barrier.ALIGNED, block): flow.code[number]
        for block in range(flow.exit)
        for number in flow.numbers(block)
        if flow.effects[number].barrier is Barrier.BY_LANE
        or (is_told and (flow.effects[number].joins_lanes or flow.effects[number].barrier))
    }
    together = f"use {flow.semantics.instruction_set.aligned_barrier}, which all lanes execute together, or "
    for rule in rules if found else ():
        for branch in sorted(parting & rule.points.keys()):
            afters = sorted(set(flow.blocks[branch].successors))
            sides = [closure(flow, [after], [rule.points[branch]]) for after in afters]
            parted = frozenset[int]().union(*sides)
            leading = sum(any(is_aligned and block in side for is_aligned, block in found) for side in sides)
            # an aligned barrier on one side only is one to which all lanes come together
            loose = (place for place in found if place[1] in parted and (not place[0] or leading > 1))
            for instruction in (found[place] for place in sorted(loose)):
                raise UnsupportedError(
                    f"{flow.kernel.file}:{instruction.line}: lanes that part at {flow.at(flow.last(branch).line)} may"
                    f" come to `{instruction}` one after another, and then run interleaved;"
                    f" {'' if is_told else together}say with --param, --block and --grid what makes the branch uniform"
                )
