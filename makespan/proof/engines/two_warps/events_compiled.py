"""The inner loop of the table of two warps on any machine, in arrays and integers so that it compiles.

Words used here; the recursion stands in docs/theory.md, section 8:

leg        of a warp: the instruction that it issued last, and the one that comes next; -1 where there is none
mover      the warp that issued in cycle 0, the latest cycle in which one did
other      the other warp; its `age` is the cycles since its own last issue. It was not ready up to cycle 0, or it was
           left out then and waits: its age is set to the longest latency of its leg, so that it is ready in cycle 1
holding    number of a state of the ports that are counted one by one; 0 if all are free
event      the next cycle, from 1 on, in which a warp issues
sense      1 for the longest schedule, -1 for the shortest; tables hold `sense` times the cycles that remain
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from makespan.host.compiled import NIL, Ints, compiled

Flags = NDArray[np.bool_]
Values = NDArray[np.int32]

NONE = -(1 << 40)
"""Less than any value."""

OTHER_IS_LATER, OTHER_WAITS, MOVER_IS_LATER, MOVER_WAITS, BOTH = range(5)
"""What happens in an event: the mover issues, the other warp is not ready yet, or left out; or vice versa; or both."""


class Warp(NamedTuple):
    """The legs of one warp, and the table of the states in which it is the mover.

    `least` and `most` are the latencies of the instruction issued last, `last` and `next` classes, `first` to `beyond`
    the legs that may follow. A row of `table` belongs to one leg of the mover and has `width` entries; `column` is
    where in a row of the other warp's table the entries for a leg of this warp begin: by holding, and then by age.
    """

    least: Ints
    most: Ints
    last: Ints
    next: Ints
    first: Ints
    beyond: Ints
    column: Ints
    table: Values
    width: int


class Ports(NamedTuple):
    """The ports of each class: its interval, whether it has only one, and whether holdings count them.

    By class and holding: the holding once a port is taken, and the cycles until one or two ports are free. By cycles
    and holding: the holding so much later. After `span` cycles every port is free. `single` is an issue width of 1.
    """

    interval: Ints
    sole: Flags
    counted: Flags
    taken: Ints
    one: Ints
    two: Ints
    after: Ints
    span: int
    single: bool


class Scratch(NamedTuple):
    """Space for what is the same for all holdings of a pair of legs: by age, the best of the late events."""

    far: Ints
    rise: Ints
    best: Ints
    queue: Ints


@compiled
def entry(a: int, b: int, holding: int, age: int, mover: Warp, other: Warp) -> int:
    """Return the entry of the mover's table that has the state."""
    return int(a * mover.width + other.column[b] + holding * (other.most[b] + 1) + age)


@compiled
def port(unit: int, last: int, age: int, holding: int, ports: Ports) -> int:
    """The cycle in which a warp finds a port of `unit`; the other warp issued to class `last` `age` cycles ago."""
    if ports.counted[unit]:
        return int(ports.one[unit, holding])
    if unit == last and ports.sole[unit]:
        return int(ports.interval[unit] - age)
    return 0


@compiled
def clash(unit: int, unit_of_other: int, cycle: int, holding: int, ports: Ports) -> bool:
    """Return whether of two warps that could issue in `cycle` only one can."""
    if ports.single:
        return True
    if unit != unit_of_other:
        return False
    return bool(ports.two[unit, holding] > cycle if ports.counted[unit] else ports.sole[unit])


@compiled
def issue(
    a: int, b: int, holding: int, age: int, later: bool, waits: bool, own: Warp, other: Warp
) -> tuple[int, bool, int]:
    """The best value once a warp has issued what follows leg `a`, whether the other one then waits, and the next leg.

    With `later` the other warp can be not ready, `age` cycles after its own issue; with `waits` it can be left out.
    """
    found, waiting, to = NONE, False, a
    for leg in range(own.first[a], own.beyond[a]):
        at = entry(leg, b, holding, NIL, own, other)
        if later and own.table[at + age] > found:
            found, waiting, to = own.table[at + age], False, leg
        if waits and own.table[at + other.most[b]] > found:
            found, waiting, to = own.table[at + other.most[b]], True, leg
    return found, waiting, to


@compiled
def event(
    cycle: int, a: int, b: int, age: int, holding: int, mover: Warp, other: Warp, ports: Ports
) -> tuple[int, int, int, int]:
    """Return the best value after the event, if it can be in `cycle`, what happens, and the legs of both warps then."""
    unit, unit_of_other = mover.next[a], other.next[b]
    free = port(unit, other.last[b], age, holding, ports)
    free_for_other = port(unit_of_other, mover.last[a], NIL, holding, ports)
    # a warp may issue once its latency has passed, and must not stay idle after the largest one with a free port
    soonest, latest = max(1, other.least[b] - age), max(1, other.most[b] - age)
    may = max(mover.least[a], free) <= cycle <= max(mover.most[a], free)
    other_may = max(soonest, free_for_other) <= cycle <= max(latest, free_for_other)
    clashing = clash(unit, unit_of_other, cycle, holding, ports)
    now = ports.after[min(cycle, ports.span), holding]
    found, kind, to, to_of_other = NONE, OTHER_IS_LATER, a, b
    if may:
        # the other one does not issue in this cycle: its latency passes still, or it finds no port
        later = other.most[b] - age > cycle
        waits = soonest <= cycle and (free_for_other > cycle or (clashing and other_may))
        found, waiting, to = issue(a, b, ports.taken[unit, now], age + cycle, later, waits, mover, other)
        kind = OTHER_WAITS if waiting else OTHER_IS_LATER
    if other_may:
        later = mover.most[a] > cycle
        waits = mover.least[a] <= cycle and (free > cycle or (clashing and may))
        value, waiting, leg = issue(b, a, ports.taken[unit_of_other, now], cycle, later, waits, other, mover)
        if value > found:
            found, to_of_other = value, leg
            kind = MOVER_WAITS if waiting else MOVER_IS_LATER
    if may and other_may and not clashing:  # work conservation: both must
        both = ports.taken[unit_of_other, ports.taken[unit, now]]
        for leg in range(mover.first[a], mover.beyond[a]):
            for leg_of_other in range(other.first[b], other.beyond[b]):
                value = mover.table[entry(leg, leg_of_other, both, NIL, mover, other)]
                if value > found:
                    found, kind, to, to_of_other = value, BOTH, leg, leg_of_other
    return found, kind, to, to_of_other


@compiled
def span_of_events(a: int, b: int, age: int, holding: int, mover: Warp, other: Warp, ports: Ports) -> tuple[int, int]:
    """No event can be before the first or after the second of these cycles."""
    free = port(mover.next[a], other.last[b], age, holding, ports)
    free_for_other = port(other.next[b], mover.last[a], NIL, holding, ports)
    soonest, latest = max(1, other.least[b] - age), max(1, other.most[b] - age)
    return (
        min(max(mover.least[a], free), max(soonest, free_for_other)),
        min(max(mover.most[a], free), max(latest, free_for_other)),
    )


@compiled
def alone(
    a: int, b: int, age: int, holding: int, mover: Warp, other: Warp, ports: Ports, sense: int
) -> tuple[int, int, int, int]:
    """The best value where one warp has issued all, the cycle of the next issue, and the legs of both warps then.

    Later is longer here: no warp competes any more.
    """
    latency = mover.most[a] if sense > 0 else mover.least[a]
    latency_of_other = other.most[b] if sense > 0 else other.least[b]
    found, cycle, to, to_of_other = NONE, 0, a, b
    if mover.next[a] >= 0:
        unit = mover.next[a]
        cycle = max(latency, port(unit, other.last[b], age, holding, ports))
        now = ports.taken[unit, ports.after[min(cycle, ports.span), holding]]
        for leg in range(mover.first[a], mover.beyond[a]):
            value = mover.table[entry(leg, b, now, min(age + cycle, other.most[b]), mover, other)]
            if value > found:
                found, to = value, leg
    elif other.next[b] >= 0:
        unit = other.next[b]
        cycle = max(1, latency_of_other - age, port(unit, mover.last[a], NIL, holding, ports))
        now = ports.taken[unit, ports.after[min(cycle, ports.span), holding]]
        for leg in range(other.first[b], other.beyond[b]):
            value = other.table[entry(leg, a, now, min(cycle, mover.most[a]), other, mover)]
            if value > found:
                found, to_of_other = value, leg
    else:
        return sense * max(latency, latency_of_other - age), 0, a, b
    return found + sense * cycle, cycle, to, to_of_other


@compiled
def slide(values: Ints, low: int, floor: int, high: int, ceiling: int, count: int, best: Ints, queue: Ints) -> None:
    """Set for n < `count` the largest of `values` from max(n + low, floor) to min(n + high, ceiling), or NONE.

    The queue has, in falling order of their values, those positions that no later one surpasses.
    """
    head = tail = 0
    coming = max(low, floor)
    for n in range(count):
        while coming <= min(n + high, ceiling):
            while tail > head and values[queue[tail - 1]] <= values[coming]:
                tail -= 1
            queue[tail] = coming
            tail += 1
            coming += 1
        while head < tail and queue[head] < max(n + low, floor):
            head += 1
        best[n] = values[queue[head]] if head < tail else NONE


@compiled
def held_until(a: int, b: int, mover: Warp, other: Warp, ports: Ports) -> tuple[int, int]:
    """Two cycles, of which the second counts from the last issue of the other warp: no port matters after both."""
    if ports.after.shape[1] > 1:
        return ports.span, 0
    aging = port(mover.next[a], other.last[b], NIL, NIL, ports)
    return port(other.next[b], mover.last[a], NIL, NIL, ports), aging


@compiled
def fill_far(a: int, b: int, mover: Warp, other: Warp, ports: Ports, sense: int, scratch: Scratch) -> None:
    """Set, by age, the best of the events after no port matters any more: three windows of cycles."""
    unit, unit_of_other = mover.next[a], other.next[b]
    least, most, least_of_other, most_of_other = mover.least[a], mover.most[a], other.least[b], other.most[b]
    far, rise, best = scratch.far, scratch.rise, scratch.best
    until, aging = held_until(a, b, mover, other, ports)
    # first window: the mover issues again, in a cycle of its range of latencies, while the other one is still late;
    # `rise` is free of the age, so one sliding maximum serves all ages
    after = ports.taken[unit, 0]
    after_other = ports.taken[unit_of_other, 0]
    for age in range(most_of_other):
        rise[age] = NONE
    for leg in range(mover.first[a], mover.beyond[a]):
        at = entry(leg, b, after, NIL, mover, other)
        for age in range(most_of_other):
            rise[age] = max(rise[age], mover.table[at + age] + sense * age)
    slide(rise, max(least, until + 1), aging + 1, most, most_of_other - 1, most_of_other + 1, best, scratch.queue)
    for age in range(most_of_other + 1):
        far[age] = best[age] - sense * age
    # second window: the other one issues while the mover is still late
    for age in range(most):
        rise[age] = NONE
    for leg in range(other.first[b], other.beyond[b]):
        at = entry(leg, a, after_other, NIL, other, mover)
        for age in range(most):
            rise[age] = max(rise[age], other.table[at + age] + sense * age)
    low = max(least_of_other, aging + 1) - most_of_other
    slide(rise, low, until + 1, 0, most - 1, most_of_other + 1, best, scratch.queue)
    # third window: both issue in the same cycle, the latest or soonest of those that both ranges allow
    meeting = best_meeting(a, b, mover, other, ports)
    for age in range(most_of_other + 1):
        far[age] = max(far[age], best[most_of_other - age])
        low = max(least, least_of_other - age, until + 1, aging - age + 1)
        high = min(most, most_of_other - age)
        if low <= high:
            far[age] = max(far[age], meeting + sense * (high if sense > 0 else low))


@compiled
def best_meeting(a: int, b: int, mover: Warp, other: Warp, ports: Ports) -> int:
    """Return the best value after an event in which both warps become ready, all ports being free."""
    unit, unit_of_other = mover.next[a], other.next[b]
    after = ports.taken[unit, 0]
    found = NONE
    if clash(unit, unit_of_other, ports.span, NIL, ports):
        for leg in range(mover.first[a], mover.beyond[a]):
            found = max(found, mover.table[entry(leg, b, after, other.most[b], mover, other)])
        after = ports.taken[unit_of_other, 0]
        for leg in range(other.first[b], other.beyond[b]):
            found = max(found, other.table[entry(leg, a, after, mover.most[a], other, mover)])
        return found
    both = ports.taken[unit_of_other, after]
    for leg in range(mover.first[a], mover.beyond[a]):
        for leg_of_other in range(other.first[b], other.beyond[b]):
            found = max(found, mover.table[entry(leg, leg_of_other, both, NIL, mover, other)])
    return found


@compiled
def fill_pair(a: int, b: int, mover: Warp, other: Warp, ports: Ports, sense: int, scratch: Scratch) -> None:
    """All states of a pair of legs, once those after each of them are there."""
    ages, holdings = other.most[b] + 1, ports.after.shape[1]
    if mover.last[a] < 0:  # the mover has issued something
        return
    if mover.next[a] < 0 or other.next[b] < 0:
        for holding in range(holdings):
            at = entry(a, b, holding, NIL, mover, other)
            for age in range(ages):
                mover.table[at + age] = alone(a, b, age, holding, mover, other, ports, sense)[0]
        return
    fill_far(a, b, mover, other, ports, sense, scratch)
    until, aging = held_until(a, b, mover, other, ports)
    for holding in range(holdings):
        at = entry(a, b, holding, NIL, mover, other)
        for age in range(ages):
            found = scratch.far[age]
            near = max(until, aging - age, 1 if age == other.most[b] else 0)
            if near > 0:
                first, last = span_of_events(a, b, age, holding, mover, other, ports)
                for cycle in range(first, min(last, near) + 1):
                    found = max(found, event(cycle, a, b, age, holding, mover, other, ports)[0] + sense * cycle)
            mover.table[at + age] = found


@compiled
def fill(
    a: int, begin: int, end: int, same: bool, first: Warp, second: Warp, ports: Ports, sense: int, scratch: Scratch
) -> None:
    """All states with leg `a` of the first warp and the legs from `begin` down to `end` of the second.

    With the `same` program there is one table, and the order of the two legs does not matter.
    """
    for b in range(begin, end - 1, -1):
        fill_pair(a, b, first, second, ports, sense, scratch)
        if not same or a != b:
            fill_pair(b, a, second, first, ports, sense, scratch)


@compiled
def follow(
    a: int, b: int, age: int, holding: int, mover: Warp, other: Warp, ports: Ports, sense: int
) -> tuple[int, int, int, int]:
    """The first event that gives the state its value: its cycle (0: there is none), what happens, and the legs then."""
    wanted = mover.table[entry(a, b, holding, age, mover, other)]
    first, last = span_of_events(a, b, age, holding, mover, other, ports)
    for cycle in range(first, last + 1):
        found, kind, to, to_of_other = event(cycle, a, b, age, holding, mover, other, ports)
        if found + sense * cycle == wanted:
            return cycle, kind, to, to_of_other
    return 0, 0, a, b
