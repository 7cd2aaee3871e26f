"""What no policy decides: the path of every warp, and the latency of every instruction where there is a range.

Both are fixed before a run begins and do not depend on the schedule, so that policies are compared on equal terms.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from makespan.errors import InputError
from makespan.feature import BARRIERS, PROGRAMS, TIMES
from makespan.instance import Instance
from makespan.machine import UnitClass
from makespan.program import BARRIER, Program

LATENCIES = ("most", "least", "random")
PATHS = ("longest", "shortest", "first", "random")
KNOWS = PROGRAMS | TIMES | BARRIERS
GROUP_SIZE = 8
"""Source: Narasiman et al., MICRO 2011: 32 warps in fetch groups of 8."""

_MASK = (1 << 64) - 1
_STEP = 0x9E3779B97F4A7C15
_POLICY, _LATENCY, _PATH = range(3)


@dataclass(frozen=True, slots=True)
class Choices:
    """What whoever asks for a simulation has to say, for no policy says it.

    Args:
        latency: of every instruction whose class has a range: `most`, `least` or `random`.
        path: through an automaton: `longest` (the most cycles alone at the largest latencies), `shortest` (the fewest
            at the smallest), always the `first` successor, or `random`; of several that are equal the first.
        seed: of everything random, 0 .. 2**64 - 1.
        group_size: warps in a fetch group of the policy `two-level`.

    Raises:
        InputError: a name that is not known, or a number out of range.
    """

    latency: str = LATENCIES[0]
    path: str = PATHS[0]
    seed: int = 0
    group_size: int = GROUP_SIZE

    def __post_init__(self) -> None:
        if self.latency not in LATENCIES:
            raise InputError(f"unknown choice of latencies {self.latency!r}; known: {', '.join(LATENCIES)}")
        if self.path not in PATHS:
            raise InputError(f"unknown choice of paths {self.path!r}; known: {', '.join(PATHS)}")
        if not 0 <= self.seed <= _MASK:
            raise InputError(f"a seed is a whole number from 0 to 2**64 - 1, not {self.seed}")
        if self.group_size < 1:
            raise InputError(f"a fetch group has at least 1 warp, not {self.group_size}")


class Routes(NamedTuple):
    """For every warp the places on its path, barriers included, and the latency of each of its instructions."""

    paths: tuple[tuple[int, ...], ...]
    latencies: tuple[tuple[int, ...], ...]


class Draws:
    """SplitMix64: random numbers that are the same in any language.

    Source: Steele, Lea and Flood, OOPSLA 2014.
    """

    def __init__(self, seed: int, *stream: int) -> None:
        self.state = seed
        for number in stream:
            self.state = mixed(self.state + (number + 1) * _STEP)

    def below(self, n: int) -> int:
        """A number 0 .. n - 1: the next of 64 bits, modulo n."""
        self.state = (self.state + _STEP) & _MASK
        return mixed(self.state) % n


def mixed(number: int) -> int:
    """The finaliser of SplitMix64: a permutation of the numbers of 64 bits in which every bit depends on all."""
    number &= _MASK
    number = ((number ^ (number >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
    number = ((number ^ (number >> 27)) * 0x94D049BB133111EB) & _MASK
    return number ^ (number >> 31)


def draws_of_policy(seed: int) -> Draws:
    """The random numbers of the policy `random`."""
    return Draws(seed, _POLICY)


def routes(instance: Instance, choices: Choices) -> Routes:
    """Paths and latencies of all warps; equal ones within a group are the same object."""
    instance.require(KNOWS, "the simulator")
    units = {unit.name: unit for unit in instance.machine.units}
    paths: list[tuple[int, ...]] = []
    latencies: list[tuple[int, ...]] = []
    for group in instance.groups:
        first = len(paths)
        if choices.path == "random" and not group.program.is_chain:
            paths += [_random_path(group.program, Draws(choices.seed, _PATH, first + n)) for n in range(group.warps)]
        else:
            paths += [_path(group.program, units, choices.path)] * group.warps
        used = {id(path): _units(group.program, units, path) for path in paths[first:]}
        latencies += _latencies([used[id(path)] for path in paths[first:]], choices, first)
    return Routes(tuple(paths), tuple(latencies))


def _units(program: Program, units: dict[str, UnitClass], path: Sequence[int]) -> tuple[UnitClass, ...]:
    letters = (program.places[place].unit for place in path)
    return tuple(units[letter] for letter in letters if letter != BARRIER)


def _latencies(used: list[tuple[UnitClass, ...]], choices: Choices, first: int) -> list[tuple[int, ...]]:
    """The latencies of warps that use these units, of which the first has the number `first`."""
    if choices.latency == "random" and any(unit.latency.least < unit.latency.most for unit in set(used[0])):
        return [_drawn(own, Draws(choices.seed, _LATENCY, first + n)) for n, own in enumerate(used)]
    rows = {
        id(own): tuple(unit.latency.least if choices.latency == "least" else unit.latency.most for unit in own)
        for own in used
    }
    return [rows[id(own)] for own in used]


def _drawn(units: Sequence[UnitClass], draws: Draws) -> tuple[int, ...]:
    return tuple(unit.latency.least + draws.below(unit.latency.most - unit.latency.least + 1) for unit in units)


def _path(program: Program, units: dict[str, UnitClass], rule: str) -> tuple[int, ...]:
    if rule == "first":
        return _walk(program, lambda options: options[0])
    if rule == "shortest":
        fewest = program.sums({name: unit.latency.least for name, unit in units.items()}, min)
        return _walk(program, lambda options: min(options, key=fewest.__getitem__))
    most = program.sums({name: unit.latency.most for name, unit in units.items()}, max)
    return _walk(program, lambda options: max(options, key=most.__getitem__))


def _random_path(program: Program, draws: Draws) -> tuple[int, ...]:
    return _walk(program, lambda options: options[draws.below(len(options))])


def _walk(program: Program, choose: Callable[[Sequence[int]], int]) -> tuple[int, ...]:
    path = [choose(program.starts)]
    while (after := choose(program.places[path[-1]].successors)) != program.end:
        path.append(after)
    return tuple(path)
