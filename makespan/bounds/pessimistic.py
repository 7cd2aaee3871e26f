"""The pessimistic bound M^L + M^C, for any capacities, strings and automata."""

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
