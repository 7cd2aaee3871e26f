"""Test B: which registers share a bank, from the throughput of `FMUL Rd, Ra, Rb` in single-issue mode."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import combinations, pairwise
from statistics import fmean, median, pstdev
from typing import Any

from makespan.host.errors import MeasurementError

REGISTERS = 255  # R0..R254; RZ reads as zero and needs no port of a bank
PATENT_LIMIT = 0.995  # of what single issue gives in theory: at or below is a conflict. Source: the patent
_SURE_GAP = 3  # standard deviations of a measurement that the two groups of throughputs must be apart
_LEVEL_MARGIN, _LEAST_MARGIN = 6, 0.002  # standard deviations, and a share of the throughput without conflicts
_SAME = 1e-6  # relative: equal but for rounding
_ENOUGH = 8  # values that tell their own noise
_DEVIATION = 1.4826  # standard deviation over median absolute deviation, of normal noise
_INDEX_BITS, _MOST_BITS = 8, 3

Pair = tuple[int, int]


class Threshold(StrEnum):
    """The throughput at or below which a pair of registers counts as a conflict."""

    PATENT = "patent"  # at 99.5 % of the theoretical throughput of single issue
    AUTO = "auto"  # in the middle of the largest gap between sorted throughputs


@dataclass(frozen=True, slots=True)
class BankFunction:
    """A bank number made of some bits of the register number, given in rising order: the lowest bit comes first.

    >>> [BankFunction((0, 2))(register) for register in (0, 1, 4, 7, 8)]
    [0, 1, 2, 3, 0]
    """

    bits: tuple[int, ...]

    def __call__(self, register: int) -> int:
        """Return the number of the bank."""
        return sum((register >> bit & 1) << place for place, bit in enumerate(self.bits))

    def __str__(self) -> str:
        taken = [f"(r >> {bit}) & 1" if bit else "r & 1" for bit in self.bits]
        terms = [f"({bit}) << {place}" if place else f"({bit})" for place, bit in enumerate(taken)]
        return " | ".join(terms) or "0"


@dataclass(frozen=True, slots=True)
class BankResult:
    """The registers of each bank, as the test finds them.

    Args:
        classes: registers that conflict, by their lowest register; a bank each.
        function: bits of the register number that give the bank, if any do.
        limit: throughput at or below which a pair is a conflict, as a share of theory.
        slowdown: issue time of a pair with a conflict over that of one without, less 1; None if one kind is missing.
        runs: measured pairs.
    """

    classes: tuple[tuple[int, ...], ...]
    function: BankFunction | None
    limit: float
    slowdown: float | None
    runs: int


def find_banks(shares: Mapping[Pair, float], clean: float, threshold: Threshold = Threshold.AUTO) -> BankResult:
    """Return the banks: the connected components of the graph of the pairs that conflict.

    Args:
        shares: the throughput of every pair, the lower register first, as a share of single issue in theory.
        clean: the same of instructions that are known to have no conflict.

    Raises:
        MeasurementError: noise hides conflicts, or the relation is not that of banks.
    """
    from networkx import Graph, connected_components

    limit = PATENT_LIMIT if threshold is Threshold.PATENT else auto_limit([*shares.values(), clean])
    _check_levels(shares.values(), limit)
    graph = Graph()
    graph.add_nodes_from(register for pair in shares for register in pair)
    graph.add_edges_from(pair for pair, share in shares.items() if share <= limit)
    classes = tuple(sorted(tuple(sorted(members)) for members in connected_components(graph)))
    if violations := [triple for members in classes for triple in _violations(graph, members)]:
        a, b, c = violations[0]
        raise MeasurementError(
            f"R{a} conflicts with R{b} and R{b} with R{c}, but R{a} not with R{c}: noisy or not bank-like"
            f" ({len(violations)} such triples); measure again, or with the other threshold"
        )
    slow = [share for share in shares.values() if share <= limit]
    fast = [share for share in shares.values() if share > limit]
    slowdown = fmean(fast) / fmean(slow) - 1 if slow and fast else None
    return BankResult(classes, function_of(classes), limit, slowdown, len(shares))


def _violations(graph: Any, members: Sequence[int]) -> Iterator[tuple[int, int, int]]:
    """Yield two registers of a class that do not conflict, with one between them; a class of a bank has none."""
    for a, c in combinations(members, 2):
        between = set(graph[a]) & set(graph[c])
        if between and not graph.has_edge(a, c):
            yield a, min(between), c


def auto_limit(shares: Sequence[float]) -> float:
    """Return the middle of the largest gap between sorted throughputs; below all of them if they are all equal.

    Args:
        shares: of theory, one of them known to be free of conflicts.

    Raises:
        MeasurementError: a gap below three standard deviations of what lies on either side of it.
    """
    ranked = sorted(shares)
    if ranked[-1] - ranked[0] <= _SAME * ranked[-1]:
        return ranked[0] / 2  # all are equal, and one is known to be clean: no conflict
    gap, low, high = max((high - low, low, high) for low, high in pairwise(ranked))
    groups = [[share for share in ranked if share <= low], [share for share in ranked if share >= high]]
    noise = max(pstdev(group) / high for group in groups)
    if gap < _SURE_GAP * noise:
        raise MeasurementError(
            f"unresolved: the largest gap between throughputs is {gap:.2%} of theory, below {_SURE_GAP} times the noise"
            f" of {noise:.2%}; either no two registers conflict, or noise hides it: quieten the device"
        )
    return (low + high) / 2


def _check_levels(shares: Collection[float], limit: float) -> None:
    """Refuse throughputs above the limit that are no measurements of one value: some of them may be conflicts, too.

    Raises:
        MeasurementError: a pair between conflict and none.
    """
    above = [share for share in shares if share > limit]
    if len(above) < _ENOUGH:
        return
    clean = median(above)
    # robust: conflicts among the values do not move a median
    noise = _DEVIATION * median(abs(share - clean) for share in above) / clean
    least = clean * (1 - max(_LEVEL_MARGIN * noise, _LEAST_MARGIN))
    if doubtful := [share for share in above if share < least]:
        raise MeasurementError(
            f"unresolved: {len(doubtful)} of {len(shares)} pairs lie between conflict and none, such as"
            f" {min(doubtful):.2%} of theory, where {clean:.2%} is free of conflicts; conflicts of different cost?"
        )


def function_of(classes: Sequence[Sequence[int]]) -> BankFunction | None:
    """Return the fewest register number bits, at most three, that tell the classes apart; None if no choice does."""
    home = {register: number for number, members in enumerate(classes) for register in members}
    for size in range(_MOST_BITS + 1):
        for bits in combinations(range(_INDEX_BITS), size):
            function = BankFunction(bits)
            images = {(number, function(register)) for register, number in home.items()}
            if len(images) == len(classes) == len({bank for _, bank in images}):
                return function
    return None
