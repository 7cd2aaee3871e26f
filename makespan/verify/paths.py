"""What the paths of a program add up to."""

from collections.abc import Callable, Iterable, Mapping

from makespan.program import Program

Choose = Callable[[Iterable[int]], int]


def total(program: Program, weights: Mapping[str, int], choose: Choose = max) -> int:
    """The largest (or smallest) sum of the weights of the classes of instructions on a path; 0 where none is given."""
    ahead = [0] * (program.end + 1)
    for number in range(program.end - 1, -1, -1):
        place = program.places[number]
        ahead[number] = weights.get(place.unit, 0) + choose(ahead[after] for after in place.successors)
    return choose(ahead[start] for start in program.starts)


def instructions(program: Program, choose: Choose = max) -> int:
    """The largest (or smallest) number of instructions on a path."""
    return total(program, dict.fromkeys(program.units, 1), choose)
