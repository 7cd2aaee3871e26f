"""What the paths of a program add up to."""

from collections.abc import Callable, Iterable, Mapping, Sequence

from makespan.model.program import Program

Choose = Callable[[Iterable[int]], int]
PhasePlaces = tuple[tuple[int, ...], tuple[int, ...]]
"""Where a warp may stand when a phase begins, and the instructions that it may execute in it, both increasing."""


def along(program: Program, weights: Sequence[int], choose: Choose = max, phase: PhasePlaces | None = None) -> int:
    """Return the largest (or smallest) sum of what places weigh on a path, or on its part in a phase."""
    begins, inside = phase or (program.starts, range(program.end))
    ahead = dict[int, int]()
    for at in reversed(inside):
        ahead[at] = weights[at] + choose(ahead.get(after, 0) for after in program.places[at].successors)
    return choose(ahead.get(begin, 0) for begin in begins)


def total(program: Program, weights: Mapping[str, int], choose: Choose = max) -> int:
    """Return the same for the weights of the classes of instructions; 0 where none is given."""
    return along(program, [weights.get(place.unit, 0) for place in program.places], choose)
