"""Random task sets as the literature draws them: utilisations, periods, deadlines, priorities.

All functions draw from a `random.Random` that the caller seeds. Utilisations are exact fractions whose sum is exactly
what was asked for.
"""

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from math import exp, log, prod
from random import Random
from sys import float_info

from makespan.deadlines.task import GpuTask, one_kernel

MOST_DISCARDED = 100_000
_TINY = float_info.min
PRIME_POWERS = ((1, 2, 4, 8, 16), (1, 3, 9), (1, 5, 25), (1, 7))
"""Each period takes one number of each row; so the hyperperiod is at most 16 * 9 * 25 * 7 = 25,200 times the unit."""


def uunifast(random: Random, tasks: int, total: Fraction) -> tuple[Fraction, ...]:
    """Utilisations of `tasks` tasks, uniform among all that sum to `total`.

    Source: Bini and Buttazzo, Measuring the performance of schedulability tests, Real-Time Systems 30, 2005, fig. 3.
    """
    _check(tasks, total)
    left, found = total, []
    for others in range(tasks - 1, 0, -1):
        rest = left * Fraction(random.random() ** (1 / others))
        found.append(left - rest)
        left = rest
    return (*found, left)


def uunifast_discard(random: Random, tasks: int, total: Fraction, most: Fraction = Fraction(1)) -> tuple[Fraction, ...]:
    """The same, uniform among those that sum to `total` and of which none is above `most`.

    Source: Davis and Burns, Improved priority assignment for global fixed priority pre-emptive scheduling in
    multiprocessor real-time systems, Real-Time Systems 47, 2011, section 6.1 (UUniFast-Discard).

    Raises:
        ValueError: no such utilisations, or so few that 100,000 draws held none; `rand_fixed_sum` finds them.
    """
    _check(tasks, total)
    if total > tasks * most:
        raise ValueError(f"{tasks} utilisations of at most {most} cannot sum to {total}")
    for _ in range(MOST_DISCARDED):
        found = uunifast(random, tasks, total)
        if max(found) <= most:
            return found
    raise ValueError(f"{MOST_DISCARDED} draws held no utilisations of at most {most}: use rand_fixed_sum")


def rand_fixed_sum(random: Random, tasks: int, total: Fraction) -> tuple[Fraction, ...]:
    """Utilisations of 0..1, uniform among all that sum to `total`, without discarding.

    The cube's slice is cut into simplices; walking up from one task, a table says with which probability the next
    coordinate is the one that takes the fractional step.

    Source: Stafford's RandFixedSum (2006) as in Emberson, Stafford and Davis, Techniques for the synthesis of
    multiprocessor tasksets, WATERS 2010, section III.

    Raises:
        ValueError: `total` is more than `tasks`.
    """
    _check(tasks, total)
    if total > tasks:
        raise ValueError(f"{tasks} utilisations of at most 1 cannot sum to {total}")
    whole = min(int(total), tasks - 1)
    chances = _simplex_chances(tasks, float(total), whole)
    level, rest, product, sum_so_far = whole + 1, float(total), 1.0, 0.0
    found = []
    for row in range(tasks - 1, 0, -1):
        is_step = random.random() < chances[row - 1][level - 1]
        root = random.random() ** (1 / row)
        sum_so_far += (1 - root) * product * rest / (row + 1)
        product *= root
        found.append(sum_so_far + product * is_step)
        rest -= is_step
        level -= is_step
    found.append(sum_so_far + product * rest)
    return _summing_to(total, random.sample(found, tasks))


def _simplex_chances(tasks: int, total: float, whole: int) -> list[list[float]]:
    """For each number of coordinates and each level, the share of the simplices in which the next one steps down.

    Weights are kept as floats of equal scale: a row's volumes are divided by its largest.
    """
    below = [total - (whole - k) for k in range(tasks)]
    above = [(whole + tasks - k) - total for k in range(tasks)]
    volumes = [0.0, 1.0, *[0.0] * tasks]
    chances = []
    for size in range(2, tasks + 1):
        low = [volumes[k + 1] * below[k] / size for k in range(size)]
        high = [volumes[k] * above[tasks - size + k] / size for k in range(size)]
        sums = [a + b for a, b in zip(low, high, strict=True)]
        whole_of = [max(both, _TINY) for both in sums]
        chances.append(
            [
                high[k] / whole_of[k] if above[tasks - size + k] > below[k] else 1 - low[k] / whole_of[k]
                for k in range(size)
            ]
        )
        scale = max(sums)
        volumes = [0.0, *(value / scale for value in sums), *[0.0] * (tasks + 1 - size)]
    return chances


def _summing_to(total: Fraction, found: Sequence[float]) -> tuple[Fraction, ...]:
    """The same numbers but for rounding: exact, within 0..1, and with that sum."""
    exact = [min(max(Fraction(value), Fraction(0)), Fraction(1)) for value in found]
    for at, value in enumerate(exact):
        exact[at] = min(max(value + total - sum(exact), Fraction(0)), Fraction(1))
    return tuple(exact)


def log_uniform_periods(random: Random, tasks: int, least: int, most: int, grain: int = 1) -> tuple[int, ...]:
    """Periods of `least` to `most` ticks, multiples of `grain`, as many in each order of magnitude.

    Source: Emberson, Stafford and Davis, WATERS 2010, section IV: floor(exp(U(log least, log(most + grain))) / grain).
    """
    if not (0 < grain <= least <= most and least % grain == most % grain == 0):
        raise ValueError(f"not a range of multiples of {grain} ticks: {least}..{most}")
    low, high = log(least), log(most + grain)
    drawn = (int(exp(random.uniform(low, high)) / grain) * grain for _ in range(tasks))
    return tuple(min(max(period, least), most) for period in drawn)


def harmonised_periods(random: Random, tasks: int, unit: int = 1) -> tuple[int, ...]:
    """Periods with many common divisors, so that the hyperperiod is at most 25,200 `unit` ticks, however many tasks.

    Source: Goossens and Macq, Limitation of the hyper-period in real-time periodic task set generation, RTS 2001: a
    period is a product of one number of each row of a matrix of prime powers. The matrix here is `PRIME_POWERS`.
    """
    return tuple(unit * prod(random.choice(row) for row in PRIME_POWERS) for _ in range(tasks))


def with_deadlines(random: Random, tasks: Sequence[GpuTask], tightest: Fraction = Fraction(0)) -> tuple[GpuTask, ...]:
    """Constrained deadlines: uniform between the execution time, plus `tightest` of what is left, and the period.

    `tightest` of 1 means implicit deadlines: the periods. Execution time is all segments, their launches, and jitter.
    """
    made = []
    for task in tasks:
        least = min(task.period, task.jitter + sum(segment.delay + segment.wcet for segment in task.segments))
        least += int((task.period - least) * tightest)
        made.append(replace(task, deadline=random.randint(least, task.period)))
    return tuple(made)


def tasks_of(utilisations: Sequence[Fraction], periods: Sequence[int], partition: str) -> tuple[GpuTask, ...]:
    """Tasks `t1`, `t2`, ... with implicit deadlines on one partition.

    The execution time is the utilisation times the period, rounded down, and at least one tick.
    """
    return tuple(
        one_kernel(f"t{number}", max(1, int(share * period)), period, period, partition=partition)
        for number, (share, period) in enumerate(zip(utilisations, periods, strict=True), 1)
    )


def rate_monotonic(tasks: Sequence[GpuTask]) -> tuple[GpuTask, ...]:
    """Priorities by period, the shortest first; all different, equal periods in the order given.

    Source: Liu and Layland, Journal of the ACM 20(1), 1973.
    """
    return _ranked(tasks, [task.period for task in tasks])


def deadline_monotonic(tasks: Sequence[GpuTask]) -> tuple[GpuTask, ...]:
    """Priorities by deadline less jitter, the shortest first; all different, equal ones in the order given.

    Source: Leung and Whitehead, Performance Evaluation 2(4), 1982; with jitter Zuhily and Burns, ECRTS 2007.
    """
    return _ranked(tasks, [task.deadline - task.jitter for task in tasks])


def _ranked(tasks: Sequence[GpuTask], keys: Sequence[int]) -> tuple[GpuTask, ...]:
    by_urgency = sorted(range(len(tasks)), key=lambda number: keys[number])
    priority = {number: len(tasks) - place for place, number in enumerate(by_urgency)}
    return tuple(replace(task, priority=priority[number]) for number, task in enumerate(tasks))


def _check(tasks: int, total: Fraction) -> None:
    if tasks < 1 or total <= 0:
        raise ValueError(f"{tasks} tasks cannot have a utilisation of {total}")
