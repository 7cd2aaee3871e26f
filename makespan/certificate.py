"""What is written down so that others can re-check an upper bound exactly: potentials, or the weights of pairs.

docs/theory.md (theorem B) says what a certificate proves and why. In short: a *kind* counts the ready warps of each
class up to a threshold; a *node* is a kind, with a label where all classes are saturated; each node has a potential,
linear in the state; if every cycle lowers the potential by at least d > 0, a state of potential R is at
most floor(R / d) cycles from its end.

Places are those of the instance with its latencies as delay places (`bounds.delays`), which belong to no class here.
Where classes have intervals longer than one cycle, kinds also count their free ports, and potentials the held ones.
"""

from dataclasses import dataclass, field

Kind = tuple[int, ...]
"""Ready warps per class, counted up to the class's threshold, which then means "that many or more"; behind them, for
each class with an interval longer than one cycle, its free ports."""

FINISHED: Kind = ()
"""The label and the node of "all warps have finished"."""


def rank(kind: Kind, thresholds: Kind) -> int:
    """The number of a kind among all kinds with these thresholds, in lexicographic order from 0."""
    number = 0
    for count, threshold in zip(kind, thresholds, strict=True):
        number = number * (threshold + 1) + count
    return number


@dataclass(frozen=True, slots=True)
class Node:
    """A kind and, where every class is saturated, the coarse kind of the first later state where not every class is.

    A class is saturated where it has at least as many ready warps as ports; a coarse kind counts ready warps up to
    the number of ports, and no free ports. `label` is None where some class is not saturated, and `FINISHED` where the
    warps finish before such a state.
    """

    kind: Kind
    label: Kind | None = None


@dataclass(frozen=True, slots=True)
class Table:
    """A potential: integers, all in the same unit.

    Args:
        others: for every group and place, the contribution of each warp there that does not finish last.
        last: for every place of the last finisher's group, the contribution of that warp.
        constant: contribution of the state as a whole.
        ports: for every class with an interval longer than one cycle, the contribution of each port that will be held
            for 1, 2, ..., interval - 1 more cycles; empty if there is no such class.
    """

    others: tuple[tuple[int, ...], ...]
    last: tuple[int, ...]
    constant: int
    ports: tuple[tuple[int, ...], ...] = ()


@dataclass(frozen=True, slots=True)
class Potential:
    """Proof of an upper bound for the case that the last finisher belongs to group `last_group`.

    Args:
        classes: unit classes in the order in which kinds count them; delays are none of them.
        thresholds: per class, at least its capacity.
        front: the states after so many cycles are enumerated, and the bound taken from there.
        nodes: the table of every node.
    """

    last_group: int
    classes: tuple[str, ...]
    thresholds: Kind
    front: int
    nodes: tuple[tuple[Node, Table], ...] = field(repr=False)


@dataclass(frozen=True, slots=True)
class Certificate:
    """One potential for every group that may hold the last finisher; the bound is the largest of theirs."""

    upper: int
    potentials: tuple[Potential, ...]

    def __repr__(self) -> str:
        count = len(self.potentials)
        return f"Certificate(at most {self.upper} cycles, by {count} potential{'s' * (count != 1)})"


@dataclass(frozen=True, slots=True)
class Weights:
    """Theorem E for a set of classes: what each instruction has left for the next one, once the pair before it is paid.

    An instruction has the mass interval / capacity, here in units of 1 / lcm of the capacities of `classes`; one of any
    other class, or a barrier, has none. A pair takes its weight of one instruction, and again of the next ones, all of
    one other class: no more than the cap of that class. A warp comes to each place with one of its reserves: that much
    of the mass there, and of the equal instructions behind it, is left to the pair before. From a place of mass m with
    the reserve r, r - m remains for an equal instruction; before one of another class, a pair could take the lesser of
    m - r and that cap. The warp comes to the next place with the least reserve that is enough, or with the largest, and
    a pair takes no more than that. It begins with the least. Any numbers prove a bound of which all reserves are used
    up where a run of equal instructions ends (docs/theory.md, 9).

    Args:
        classes: those whose ports the theorem counts; each has one port, or an interval of one cycle.
        caps: by class, from its mass up to the largest mass of all; what exceeds its mass has a price.
        reserves: for every group and place, what may be reserved there, increasing; in a string, one number.
    """

    classes: tuple[str, ...]
    caps: tuple[int, ...]
    reserves: tuple[tuple[tuple[int, ...], ...], ...] = field(repr=False)
