"""The choices that no policy makes: the path and partition of every warp, and times where there is a range.

All choices are made before a run begins and do not depend on the schedule, so that policies are compared on equal
terms.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from makespan.host.errors import InputError
from makespan.model.feature import BARRIERS, LAPSES, MULTIPROCESSOR, PROGRAMS, TIMES
from makespan.model.instance import Instance, requires
from makespan.model.lowered import LoweredMachine, Reservation
from makespan.model.program import BARRIER, Program

LATENCIES = ("most", "least", "random")
PATHS = ("longest", "shortest", "first", "random")
ASSIGNMENTS = ("modulo", "random")
KNOWS = PROGRAMS | TIMES | BARRIERS | MULTIPROCESSOR | LAPSES
GROUP_SIZE = 8
"""Source: Narasiman et al., MICRO 2011: 32 warps in fetch groups of 8."""

_MASK = (1 << 64) - 1
_STEP = 0x9E3779B97F4A7C15
_POLICY, _LATENCY, _PATH, _USE, _PARTITION = range(5)


@dataclass(frozen=True, slots=True)
class Choices:
    """The choices that the caller of a simulation makes, because no policy makes them.

    Args:
        latency: the latency of every instruction that has a range: `most`, `least` or `random`.
        path: the path through an automaton: `longest` (the most cycles alone at the largest latencies), `shortest` (the
            fewest at the smallest), always the `first` successor, or `random`. Of equal paths the first is taken.
        seed: the seed of everything random, 0 .. 2**64 - 1.
        group_size: the number of warps in a fetch group of the policy `two-level`.
        interval: the cycles for which an instruction holds a resource, if there is a range: `most`, `least` or
            `random`. If it may use one of several resources, it takes the first free one, in a circle from the first
            one or, with `random`, from a random one.
        assignment: the assignment of warps to partitions if the machine leaves it open: `modulo` or `random`.

    Raises:
        InputError: a name that is not known, or a number out of range.
    """

    latency: str = LATENCIES[0]
    path: str = PATHS[0]
    seed: int = 0
    group_size: int = GROUP_SIZE
    interval: str = LATENCIES[0]
    assignment: str = ASSIGNMENTS[0]

    def __post_init__(self) -> None:
        if self.latency not in LATENCIES:
            raise InputError(f"unknown choice of latencies {self.latency!r}; known: {', '.join(LATENCIES)}")
        if self.interval not in LATENCIES:
            raise InputError(f"unknown choice of intervals {self.interval!r}; known: {', '.join(LATENCIES)}")
        if self.assignment not in ASSIGNMENTS:
            raise InputError(f"unknown choice of partitions {self.assignment!r}; known: {', '.join(ASSIGNMENTS)}")
        if self.path not in PATHS:
            raise InputError(f"unknown choice of paths {self.path!r}; known: {', '.join(PATHS)}")
        if not 0 <= self.seed <= _MASK:
            raise InputError(f"a seed is a whole number from 0 to 2**64 - 1, not {self.seed}")
        if self.group_size < 1:
            raise InputError(f"a fetch group has at least 1 warp, not {self.group_size}")


UseChoices = tuple[tuple[int, int], ...]
"""For each use of a class, the resource at which the search for a free one begins, and the cycles of the hold."""


class WarpRoutes(NamedTuple):
    """The routes of all warps: their paths, barriers included, and the times of their instructions.

    Args:
        paths: the places that each warp visits.
        latencies: the latency of each executed instruction, by warp.
        partitions: the partition of each warp.
        uses: the uses of each executed instruction, by warp; empty if the machine leaves no choice.
    """

    paths: tuple[tuple[int, ...], ...]
    latencies: tuple[tuple[int, ...], ...]
    partitions: tuple[int, ...]
    uses: tuple[tuple[UseChoices, ...], ...] = ()


class SplitMix:
    """SplitMix64: random numbers that are the same in any language.

    Source: Steele, Lea and Flood, OOPSLA 2014.
    """

    def __init__(self, seed: int, *stream: int) -> None:
        self.state = seed
        for number in stream:
            # streams of different numbers are independent, so one more warp does not change the draws of others
            self.state = mix_bits(self.state + (number + 1) * _STEP)

    def below(self, n: int) -> int:
        """Return a number in 0 .. n - 1: the next 64 bits, modulo n."""
        self.state = (self.state + _STEP) & _MASK
        return mix_bits(self.state) % n


def mix_bits(number: int) -> int:
    """Return the finaliser of SplitMix64: a permutation of the numbers of 64 bits in which each bit depends on all."""
    number &= _MASK
    number = ((number ^ (number >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
    number = ((number ^ (number >> 27)) * 0x94D049BB133111EB) & _MASK
    return number ^ (number >> 31)


def policy_draws(seed: int, partition: int = 0) -> SplitMix:
    """Return the random numbers of the policy `random` in a partition."""
    return SplitMix(seed, _POLICY, *((partition,) if partition else ()))


@requires(KNOWS, "the simulator")
def choose_routes(instance: Instance, choices: Choices) -> WarpRoutes:
    """Return the routes of all warps. Equal paths and latencies within a group are the same object."""
    machine, lowered = instance.machine, LoweredMachine.of(instance.machine)
    paths: list[tuple[int, ...]] = []
    latencies: list[tuple[int, ...]] = []
    uses: list[tuple[UseChoices, ...]] = []
    for group in instance.groups:
        first, program = len(paths), group.program
        if choices.path == "random" and not program.is_chain:
            paths += [_random_path(program, SplitMix(choices.seed, _PATH, first + n)) for n in range(group.warps)]
        else:
            paths += [_choose_path(lowered, program, choices.path)] * group.warps
        own = paths[first:]  # those of this group
        # equal paths are one object, so the identity is the key and each path is read once
        executed = {id(path): [at for at in path if program.places[at].unit != BARRIER] for path in own}
        taken = {key: tuple(lowered.latency(program, at) for at in places) for key, places in executed.items()}
        latencies += _choose_latencies([taken[id(path)] for path in own], choices, first)
        if not machine.fixed_uses:
            used = {key: [lowered.reservation(program, at) for at in places] for key, places in executed.items()}
            uses += _choose_uses([used[id(path)] for path in own], choices, first)
    return WarpRoutes(tuple(paths), tuple(latencies), assign_partitions(instance, choices), tuple(uses))


def _choose_latencies(taken: list[tuple[tuple[int, int], ...]], choices: Choices, first: int) -> list[tuple[int, ...]]:
    distinct = {id(own): own for own in taken}.values()
    if choices.latency == "random" and any(least < most for own in distinct for least, most in own):
        return [
            tuple(least + draws.below(most - least + 1) for least, most in own)
            for own, draws in ((own, SplitMix(choices.seed, _LATENCY, first + n)) for n, own in enumerate(taken))
        ]
    end = 0 if choices.latency == "least" else 1
    rows = {id(own): tuple(latency[end] for latency in own) for own in taken}
    return [rows[id(own)] for own in taken]


def _choose_uses(used: list[list[Reservation]], choices: Choices, first: int) -> list[tuple[UseChoices, ...]]:
    if choices.interval == "random":
        return [_draw_uses(held, SplitMix(choices.seed, _USE, first + n)) for n, held in enumerate(used)]
    is_least = choices.interval == "least"
    rows = {
        id(held): tuple(tuple((0, use.least if is_least else use.most) for use in each.uses) for each in held)
        for held in used
    }
    return [rows[id(held)] for held in used]


def _draw_uses(held: Sequence[Reservation], draws: SplitMix) -> tuple[UseChoices, ...]:
    return tuple(
        tuple((draws.below(len(use.pools)), use.least + draws.below(use.most - use.least + 1)) for use in each.uses)
        for each in held
    )


def assign_partitions(instance: Instance, choices: Choices) -> tuple[int, ...]:
    """Return the partition of every warp."""
    if (fixed := instance.partition_of_warp) is not None:
        return fixed
    spread = [number % instance.machine.partitions for number in instance.number_of_warp()]
    if choices.assignment == "random":
        draws = SplitMix(choices.seed, _PARTITION)
        for last in range(len(spread) - 1, 0, -1):
            # Fisher-Yates: every permutation has the same probability, up to the modulo of `below`
            other = draws.below(last + 1)
            spread[last], spread[other] = spread[other], spread[last]  # Fisher-Yates keeps the sizes
    return tuple(spread)


def _choose_path(lowered: LoweredMachine, program: Program, rule: str) -> tuple[int, ...]:
    if rule == "first":
        return _follow_choices(program, lambda options: options[0])
    choose = min if rule == "shortest" else max
    alone = _cycles_alone(lowered, program, choose)
    return _follow_choices(program, lambda options: choose(options, key=alone.__getitem__))


def _cycles_alone(lowered: LoweredMachine, program: Program, choose: Callable[..., int]) -> list[int]:
    """Return, for every place and the end, the cycles of the quickest (`min`) or slowest path from there on, alone.

    For a warp that runs ahead this is an estimate: its latencies do not overlap here.
    """
    end = 0 if choose is min else 1
    cycles = [max(lowered.latency(program, at)[end], lowered.stall(program, at)[end]) for at in range(program.end)]
    return program.sums(cycles, choose)


def _random_path(program: Program, draws: SplitMix) -> tuple[int, ...]:
    return _follow_choices(program, lambda options: options[draws.below(len(options))])


def _follow_choices(program: Program, choose: Callable[[Sequence[int]], int]) -> tuple[int, ...]:
    path = [choose(program.starts)]
    while (after := choose(program.places[path[-1]].successors)) != program.end:
        path.append(after)
    return tuple(path)
