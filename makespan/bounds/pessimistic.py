"""The pessimistic bound M^L + M^C, for any capacities, strings and automata."""

from collections.abc import Callable
from itertools import zip_longest

from makespan.bounds.phases import counts, segments_of
from makespan.instance import Instance


def pessimistic(instance: Instance) -> int:
    """An upper bound, in cycles, on every work-conserving schedule.

    Let z be the warp that finishes last. In each cycle it executes, or it waits for a class X whose
    sigma_X units are then all used by *other* warps; so it waits at most floor(N_X / sigma_X) cycles
    for X, where N_X counts the X-instructions of the others, and not at all for a class that it does
    not use or that fewer than sigma_X others use.

    Source: Berezovskyi, Bletsas and Andersson, ECRTS 2012 (M = M^L + M^C); generalised to different
    warps as the maximum over z, and to automata by the most that any path holds.
    """
    if instance.has_barriers:
        return _with_barriers(instance)
    capacities = instance.machine.capacities
    groups = [(group.warps, {unit: group.program.most(unit) for unit in capacities}) for group in instance.groups]

    def with_last(last: int) -> int:
        total = instance.groups[last].program.most()
        for unit, capacity in capacities.items():
            rivals = [(warps - (number == last), most[unit]) for number, (warps, most) in enumerate(groups)]
            if groups[last][1][unit] and sum(warps for warps, most in rivals if most) >= capacity:
                total += sum(warps * most for warps, most in rivals) // capacity
        return total

    return max(map(with_last, range(len(groups))))


def _with_barriers(instance: Instance) -> int:
    """The same along a chain of warps: z since its last barrier, before that the warp that came to this barrier last.

    In every cycle the warp of the chain executes, or it waits for a class X that others saturate; it never waits at a
    barrier. In phase k it executes at most the most, and of X at least the least, that any warp executes there. So
    with N_X of all warps, at most floor((N_X - least of X) / sigma_X) cycles are spent waiting for X.
    """
    segments = [segments_of(group.program) for group in instance.groups]
    cut = [(group, own) for group, own in zip(instance.groups, segments, strict=True) if own is not None]
    if len(cut) < len(segments):  # too many phases: a cycle executes one instruction at least
        return sum(group.warps * group.program.most() for group in instance.groups)
    total = _along(max, [counts(group.program, own, None, most=True) for group, own in cut])
    for unit, capacity in instance.machine.capacities.items():
        if sum(group.warps for group, _ in cut if unit in group.program.units) > capacity:
            work = sum(group.warps * group.program.most(unit) for group, _ in cut)
            total += (
                work - _along(min, [counts(group.program, own, unit, most=False) for group, own in cut])
            ) // capacity
    return total


def _along(choose: Callable[[tuple[int, ...]], int], per_group: list[list[int]]) -> int:
    """The sum over the phases of what one of the groups executes in each."""
    return sum(map(choose, zip_longest(*per_group, fillvalue=0)))
