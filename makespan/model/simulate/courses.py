"""What the warps of a schedule do on their own, checked: their paths, and what each of their instructions takes."""

from collections.abc import Sequence
from typing import NamedTuple

from makespan.host.errors import InvalidScheduleError
from makespan.model.instance import Instance
from makespan.model.machine import Machine, UnitClass
from makespan.model.program import BARRIER, Program
from makespan.model.simulate.floor import latencies

HeldUses = tuple[tuple[int, int], ...]
"""For each use of a class which of its resources an instruction holds, and for how many cycles."""


class WarpConduct(NamedTuple):
    """For every warp the latencies of what it executes, in order, and what that uses; no uses if there is no choice."""

    latencies: Sequence[Sequence[int]]
    uses: Sequence[Sequence[HeldUses]]


def check_conduct(
    instance: Instance,
    programs: Sequence[Program],
    paths: Sequence[tuple[int, ...]],
    latencies: Sequence[Sequence[int]],
    uses: Sequence[Sequence[HeldUses]],
) -> WarpConduct:
    """Check the rows of warps that run these programs.

    Args:
        instance: says what is left as a choice.
        programs: of the warps, in the order of the rows.
        paths: as in `Schedule`, and so are the others.

    Raises:
        InvalidScheduleError: a path that its program does not have, or a latency, resource or interval that is not
            left as a choice.
    """
    executed = _executed_places(programs, paths)
    return WarpConduct(
        _checked_latencies(instance, programs, latencies, executed),
        _checked_uses(instance.machine, programs, uses, executed),
    )


def _executed_places(programs: Sequence[Program], paths: Sequence[tuple[int, ...]]) -> list[tuple[int, ...]]:
    """Return the places that every warp executes, without barriers; equal paths are read once."""
    if len(paths) != len(programs):
        raise InvalidScheduleError(f"{len(paths)} paths for {len(programs)} warps")
    executed: dict[tuple[int, int], tuple[int, ...]] = {}
    for program, path in zip(programs, paths, strict=True):
        if (id(program), id(path)) not in executed:
            _check_path(program, path)
            places = tuple(place for place in path if program.places[place].unit != BARRIER)
            executed[id(program), id(path)] = path if len(places) == len(path) else places
    return [executed[id(program), id(path)] for program, path in zip(programs, paths, strict=True)]


def _check_path(program: Program, path: tuple[int, ...]) -> None:
    if not path or path[0] not in program.starts:
        raise InvalidScheduleError(f"a path begins at {path[:1]}, not at one of {program.starts}")
    if not all(0 <= place < program.end for place in path):
        raise InvalidScheduleError("a path visits a place that its program does not have")
    for place, after in zip(path, (*path[1:], program.end), strict=True):
        if after not in program.places[place].successors:
            raise InvalidScheduleError(f"a path goes from place {place} to {after}, which does not follow it")


def _checked_latencies(
    instance: Instance,
    programs: Sequence[Program],
    given: Sequence[Sequence[int]],
    executed: Sequence[tuple[int, ...]],
) -> list[Sequence[int]]:
    """For every warp the latencies of what it executes, in order."""
    if (given or not instance.fixed_latencies) and len(given) != len(executed):
        raise InvalidScheduleError(f"latencies of {len(given)} warps are given, of {len(executed)}")
    ranges: dict[tuple[int, int], list[tuple[int, int]]] = {}
    most: dict[tuple[int, int], tuple[int, ...]] = {}
    found = list[Sequence[int]]()
    for warp, (program, places) in enumerate(zip(programs, executed, strict=True)):
        key = id(program), id(places)
        if key not in ranges:
            ranges[key] = list(latencies(instance.machine, program, places))
            most[key] = tuple(most for _, most in ranges[key])
        if given:
            _check_latencies(warp, given[warp], ranges[key])
        found.append(given[warp] if given else most[key])
    return found


def _check_latencies(warp: int, chosen: Sequence[int], ranges: Sequence[tuple[int, int]]) -> None:
    if len(chosen) != len(ranges):
        raise InvalidScheduleError(f"warp {warp} has {len(chosen)} latencies for {len(ranges)} instructions")
    for latency, (least, most) in zip(chosen, ranges, strict=True):
        if not least <= latency <= most:
            allowed = str(least) if least == most else f"{least}..{most}"
            raise InvalidScheduleError(f"warp {warp} has a latency of {latency}, which is not in {allowed}")


def _checked_uses(
    machine: Machine,
    programs: Sequence[Program],
    given: Sequence[Sequence[HeldUses]],
    executed: Sequence[tuple[int, ...]],
) -> Sequence[Sequence[HeldUses]]:
    """For every warp what its instructions hold of the uses of their classes, in order; empty if there is no choice."""
    if not given and machine.fixed_uses:
        return ()
    if len(given) != len(executed):
        raise InvalidScheduleError(f"uses of {len(given)} warps are given, of {len(executed)}")
    units = {unit.name: unit for unit in machine.units}
    allowed = set[tuple[str, HeldUses]]()
    for warp, (program, places, rows) in enumerate(zip(programs, executed, given, strict=True)):
        if len(rows) != len(places):
            raise InvalidScheduleError(f"warp {warp} has uses of {len(rows)} instructions, of {len(places)}")
        for place, chosen in zip(places, rows, strict=True):
            name = program.places[place].unit
            if (name, chosen) not in allowed:
                if not _is_a_choice(units[name], chosen):
                    raise InvalidScheduleError(
                        f"warp {warp} uses {chosen} at place {place}, which {units[name]} does not allow"
                    )
                allowed.add((name, chosen))
    return given


def _is_a_choice(unit: UnitClass, chosen: HeldUses) -> bool:
    return len(chosen) == len(unit.uses) and all(
        0 <= which < len(use.resources) and use.least <= cycles <= use.most
        for use, (which, cycles) in zip(unit.uses, chosen, strict=True)
    )
