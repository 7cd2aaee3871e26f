"""The pessimistic bound M^L + M^C, for any machine, strings and automata."""

from collections.abc import Callable
from itertools import zip_longest

from makespan.bounds.phases import segments_of, sums
from makespan.instance import Instance
from makespan.machine import UnitClass


def pessimistic(instance: Instance) -> int:
    """An upper bound, in cycles, on every work-conserving schedule.

    Let z be the warp that finishes last. In each cycle the latency of one of its instructions passes, or it waits for
    a class X all of whose ports are held, or `issue width` instructions of *other* warps are issued. Of the ports of X,
    the others hold one for `interval` cycles with each of their instructions, and z itself, while it waits, for
    `interval - latency` at most. So it waits for X at most floor((interval N_X + own) / capacity) cycles, and not at
    all for a class that it does not use or of which so many ports cannot be held at the same time; and it waits at
    most floor(N / issue width) cycles for an issue slot, where N counts all instructions of the others.

    Source: Berezovskyi, Bletsas and Andersson, ECRTS 2012 (M = M^L + M^C); generalised to different
    warps as the maximum over z, to automata by the most that any path holds, and to intervals, latencies and an
    issue width (docs/theory.md, 9).
    """
    if instance.has_barriers:
        return _with_barriers(instance)
    machine = instance.machine
    latencies = {unit.name: unit.latency.most for unit in machine.units}
    most = [{unit.name: group.program.most(unit.name) for unit in machine.units} for group in instance.groups]

    def with_last(last: int) -> int:
        total = instance.groups[last].program.heaviest(latencies)
        others = [group.warps - (number == last) for number, group in enumerate(instance.groups)]
        for unit in machine.units:
            if own := most[last][unit.name]:
                users = sum(warps for warps, counts in zip(others, most, strict=True) if counts[unit.name])
                work = sum(warps * counts[unit.name] for warps, counts in zip(others, most, strict=True))
                total += _waiting(unit, users, work, own)
        if machine.issue_width is not None and sum(others) >= machine.issue_width:
            everything = (warps * group.program.most() for warps, group in zip(others, instance.groups, strict=True))
            total += sum(everything) // machine.issue_width
        return total

    return max(map(with_last, range(len(instance.groups))))


def _waiting(unit: UnitClass, users: int, work: int, own: int) -> int:
    """Cycles for which all ports can be held against a warp with `own` instructions, by it and `users` others."""
    at_once = -(-unit.interval // unit.latency.least)  # ports that one warp can hold
    if users * at_once + at_once - 1 < unit.capacity:
        return 0
    return (unit.interval * work + max(0, unit.interval - unit.latency.least) * own) // unit.capacity


def _with_barriers(instance: Instance) -> int:
    """The same along a chain of warps: z since its last barrier, before that the warp that came to this barrier last.

    In every cycle the latency of an instruction of the chain passes, or its warp waits for ports or an issue slot; it
    never waits at a barrier. In phase k it executes at most the most, and of X at least the least, that any warp
    executes there; all other instructions are others'.
    """
    machine = instance.machine
    segments = [segments_of(group.program) for group in instance.groups]
    cut = [(group, own) for group, own in zip(instance.groups, segments, strict=True) if own is not None]
    if len(cut) < len(segments):  # too many phases: in each cycle a latency passes or a port is held
        longest = {unit.name: max(unit.interval, unit.latency.most) for unit in machine.units}
        return sum(group.warps * group.program.heaviest(longest) for group in instance.groups)

    def chain(weights: dict[str, int], choose: Callable[..., int]) -> int:
        rows = [sums(group.program, own, weights, choose) for group, own in cut]
        return sum(map(choose, zip_longest(*rows, fillvalue=0)))

    total = chain({unit.name: unit.latency.most for unit in machine.units}, max)
    for unit in machine.units:
        users = sum(group.warps for group, _ in cut if unit.name in group.program.units)
        work = sum(group.warps * group.program.most(unit.name) for group, _ in cut)
        own = chain({unit.name: 1}, min)
        if users:
            total += _waiting(unit, users - 1, work - own, own)
    if machine.issue_width is not None:
        work = sum(group.warps * group.program.most() for group in instance.groups)
        total += (work - chain(dict.fromkeys(machine.capacities, 1), min)) // machine.issue_width
    return total
