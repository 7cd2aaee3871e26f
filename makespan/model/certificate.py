"""Certificates, by which others can re-check an upper bound exactly: potentials, or the weights of pairs.

docs/theory.md (theorem H) says what a certificate proves and why. In short: fix the warp z that finishes last. A *kind*
counts the ready warps of each class, z aside, up to a threshold; a *node* is what z is ready for and a kind, with a
label that looks ahead in some of them; each node has a potential, linear in the state; if every cycle lowers the
potential by at least d > 0, a state of potential R is at most floor(R / d) cycles from its end.

Places are those of the instance with its latencies as delay places (`bounds.delays`), which belong to no class here.
Where classes have intervals longer than one cycle, kinds also count their free ports, and potentials the held ones.
"""

from dataclasses import dataclass, field

SituationKind = tuple[int, ...]
"""Ready warps per class, other than the last finisher, counted up to the class's threshold, which then means "that many
or more"; behind them, for each class with an interval longer than one cycle, its free ports."""

DELAYED_LABEL, FINISHED_LABEL = -1, -2
"""Labels besides the numbers of classes: the last finisher will be delayed, or all will have finished."""


@dataclass(frozen=True, slots=True)
class PotentialNode:
    """A situation that a potential tells apart, with a label or without.

    A node without a label is a *stop*; from the others the table looks ahead to the next stop. Any stops will do, and
    the better they are chosen, the lower is the bound.

    Args:
        last: the number in `Potential.classes` of the class that the last finisher is ready for; None where it is
            delayed.
        kind: of the other warps.
        label: what `last` will be at the next stop, with `DELAYED_LABEL` for None, and `FINISHED_LABEL` where none
            comes before the end; None at a stop.
    """

    last: int | None
    kind: SituationKind
    label: int | None = None


def rank(node: PotentialNode, thresholds: SituationKind) -> int:
    """Return the number of a node's `last` and `kind` among all with these thresholds, where no class has an interval.

    It is mixed-radix, the last class being the lowest digit; while the last finisher is delayed, `last` counts as one
    class more.
    """
    number = len(thresholds) if node.last is None else node.last
    for count, threshold in zip(node.kind, thresholds, strict=True):
        number = number * (threshold + 1) + count
    return number


@dataclass(frozen=True, slots=True)
class PotentialTable:
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
        front: the number of first cycles whose states are enumerated; the bound is taken from there.
        tables: those that the nodes have.
        nodes: for every node the number of its table, which others may share.
    """

    last_group: int
    classes: tuple[str, ...]
    thresholds: SituationKind
    front: int
    tables: tuple[PotentialTable, ...] = field(repr=False)
    nodes: tuple[tuple[PotentialNode, int], ...] = field(repr=False)


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
    up where a run of equal instructions ends (docs/theory.md, 3).

    Args:
        classes: those whose ports the theorem counts; each has one port, or an interval of one cycle.
        caps: by class, from its mass up to the largest mass of all; what exceeds its mass has a price.
        reserves: for every group and place, what may be reserved there, increasing; in a string, one number.
        thresholds: by class, the cycles within which a warp is always ready again behind an instruction; only with such
            an instruction a pair begins. None without an issue slot that binds and warps that run ahead; else a pair
            takes nothing of the cycle in which an instruction takes the slot, and mass and cap are less by it.
    """

    classes: tuple[str, ...]
    caps: tuple[int, ...]
    reserves: tuple[tuple[tuple[int, ...], ...], ...] = field(repr=False)
    thresholds: tuple[int, ...] = ()
