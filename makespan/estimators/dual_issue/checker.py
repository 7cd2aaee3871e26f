"""What a listing does cycle by cycle: issues, register reads, the operand cache, bank conflicts, and its pattern."""

from collections.abc import Collection, Iterator
from dataclasses import dataclass

from makespan.errors import InputError
from makespan.estimators.dual_issue.arbiter import Pattern, spell
from makespan.estimators.dual_issue.codec import PER_BLOCK
from makespan.estimators.dual_issue.gaps import GK110_DUAL
from makespan.estimators.dual_issue.listing import Block, Line, Listing
from makespan.estimators.dual_issue.registers import Banks, ways

_WHOLE = [1, 1, 2, 2]


@dataclass(frozen=True, slots=True)
class CycleReport:
    """An issue cycle. Only arithmetic instructions count: addresses are not read through the ports of the banks.

    Args:
        block: which block the instructions are of, from 0.
        reads: registers that the banks have to deliver, rising.
        banks: the bank of each of them.
        cached: registers that the operand cache still has from the issue cycle before.
        shared: registers that both instructions need.
        ways: the most reads of one bank; 0 or 1 is free of conflicts.
    """

    block: int
    lines: tuple[Line, ...]
    reads: tuple[int, ...]
    banks: tuple[int, ...]
    cached: tuple[int, ...]
    shared: tuple[int, ...]
    ways: int

    @property
    def issued(self) -> int:
        """Arithmetic instructions."""
        return sum(line.is_arithmetic for line in self.lines)


def check(
    listing: Listing, banks: Banks, *, dual: Collection[int] = (GK110_DUAL,), cache: bool = True
) -> tuple[CycleReport, ...]:
    """Go through a listing.

    Args:
        dual: control codes that open a dual issue.
        cache: whether there is an operand cache.

    Raises:
        InputError: a dual issue that no hardware does (over the end of a block, of dependent instructions), or a
            pattern of single and dual issues that does not fit its block.
    """
    reports: list[CycleReport] = []
    before: frozenset[int] = frozenset()
    for number, block in enumerate(listing.blocks):
        for lines in _cycles(block, number, dual):
            needed = [frozenset(line.sources) for line in lines if line.is_arithmetic]
            need = frozenset().union(*needed)
            cached = need & before if cache else frozenset()
            reads = tuple(sorted(need - cached))
            shared = needed[0] & needed[1] if len(needed) > 1 else frozenset()
            reports.append(
                CycleReport(
                    number, lines, reads, tuple(map(banks, reads)), tuple(sorted(cached)), tuple(sorted(shared)),
                    ways(reads, banks),
                )
            )  # fmt: skip
            before = need
    for number in range(len(listing.blocks)):
        _check_pattern(pattern_of(reports, number), listing.pattern, number)
    return tuple(reports)


def pattern_of(reports: Collection[CycleReport], block: int) -> Pattern:
    """How many arithmetic instructions each issue cycle of a block has, those without any left out."""
    return tuple(report.issued for report in reports if report.block == block and report.issued)


def _cycles(block: Block, number: int, dual: Collection[int]) -> Iterator[tuple[Line, ...]]:
    """Instructions of a block by issue cycle."""
    if len(block) == PER_BLOCK and block[-1].code in dual:
        raise InputError(
            f"line {block[-1].number}: a dual code on the last slot of block {number}: nothing can issue with"
            f" {block[-1]}"
        )
    at = 0
    while at < len(block):
        first = block[at]
        if first.code not in dual:
            yield (first,)
            at += 1
            continue
        if at + 1 == len(block):
            raise InputError(f"line {first.number}: a dual code on the last instruction of the listing")
        second = block[at + 1]
        if hazard := set(first.written) & {*second.sources, *second.written}:
            raise InputError(
                f"line {second.number}: {second} depends on {first} by R{min(hazard)}: they cannot issue together"
            )
        yield (first, second)
        at += 2


def _check_pattern(found: Pattern, stated: Pattern | None, block: int) -> None:
    """A block with dual issues of arithmetic has a whole pattern; one that the listing states has that one."""
    if 2 not in found and stated is None:
        return
    if (stated is None and sorted(found) != _WHOLE) or (stated is not None and found and found != stated):
        wanted = "two single and two dual issues" if stated is None else spell(stated)
        raise InputError(
            f"block {block} has the FFMA pattern {spell(found)} instead of {wanted}: a pattern must not cross the"
            " boundary of an 8-word block; align it, six FFMAs and a free slot to a block"
        )
