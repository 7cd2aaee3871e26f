"""The lines of code and constants that machine instructions need, and those of them that stay in their caches.

A line *stays* if no other line can take its place: at most as many lines fall into a set of its cache as the set holds,
and lines of anything else, which may be there from before, go first.
Lines are counted, not bytes, and all that may be fetched counts: the kernel with what it calls, the padding behind it,
and what is fetched ahead. Code and each bank of constants are runs of lines of their own, and the first line of a run
may be in any set. A line that does not stay may be late at each visit. Another warp of the same partition may take its
place at any time, so that holds for each instruction of a line, not for the first.

Source: R. Huerta et al., "Analyzing Modern NVIDIA GPU Cores", MICRO 2025 (arXiv 2503.20481), 5.1.1, 5.2 and 5.4, on the
caches; docs/machines.md, "Lines that do not stay".
"""

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from functools import cached_property
from math import gcd
from typing import NamedTuple, TypeAlias, TypeVar

from makespan.kernels.flow import WARP_LANES
from makespan.kernels.sass.effects import register_reads
from makespan.kernels.sass.graph import SassFlow
from makespan.kernels.sass.module import INSTRUCTION_BYTES, SassInstruction, SassKernel
from makespan.kernels.sass.operands import constant_place
from makespan.model.machine import CONSTANT_MISS, FETCH, CacheSize, KnownLapses, LineCache

_LOADS = frozenset({"LDC", "ULDC", "LDCU"})
"""Loads of constants, which go through another cache of the partition; their latency has what that takes."""

_BY_LANE = re.compile(r"(?<!U)R[0-9]")
_OPERAND = re.compile(r"(?<![A-Za-z0-9_])cx?\[")
_KNOWN = re.compile(r"(?<![A-Za-z0-9_])c\[0x[0-9a-f]{1,4}\]\[(?:0x[0-9a-f]{1,8}|U?RZ)\]")
_BANK = re.compile(r"(?<![A-Za-z0-9_])c\[0x([0-9a-f]{1,4})\]")

_BUFFERED = 3
"""Instructions that a buffer has for its warp before it issues them.

Source: the simulator of Huerta et al., ibuffer_remodeled_size in the configurations of all its GPUs.
"""

_BANK_BYTES = 65_536
"""The largest bank of constants. Source: CUDA C++ Programming Guide, technical specifications, constant memory."""

_BANK_ALIGNMENT = 64
"""Bytes of which the address of a bank of constants is a multiple.

Source: Mesa, src/nouveau/vulkan/nvk_private.h, NVK_MIN_UBO_ALIGNMENT, what Vulkan asks of a uniform buffer there.
"""

_WORD_BYTES = 4

_Line = TypeVar("_Line")
_Places: TypeAlias = frozenset[tuple[int, int]]
"""Words or lines of constants, as pairs of a bank and a place in it."""


class NeededLines(NamedTuple):
    """The lines of one kind that an instruction needs.

    Args:
        staying: the names of those that stay in the cache of the partition.
        leaving: the names of those that do not.
        late: the number of lines that do not stay and that one visit needs.
        unknown: the number of lines of unknown addresses that one visit needs.
    """

    staying: frozenset[str] = frozenset()
    leaving: frozenset[str] = frozenset()
    late: int = 0
    unknown: int = 0


@dataclass(frozen=True)
class KernelLines:
    """The lines of code and constants that a kernel needs.

    Args:
        known: the caches, of which a machine may know none.
    """

    flow: SassFlow
    known: KnownLapses

    @property
    def used(self) -> frozenset[str]:
        """Return those of `FETCHES` of whose lines the kernel needs any."""
        found = {FETCH} if self.known.code is not None else set[str]()
        if self.known.constants is not None and any(map(_has_constants, self.flow.code)):
            found.add(CONSTANT_MISS)
        return frozenset(found)

    @property
    def far(self) -> frozenset[str]:
        """Return those of `FETCHES` of whose lines some stay in no cache that is known."""
        return frozenset(
            name
            for number in range(len(self.flow.code))
            for name, _, needed in self.needed(number)
            if needed.unknown or (needed.late and not self.stay_near)
        )

    def needed(self, number: int) -> Iterator[tuple[str, LineCache, NeededLines]]:
        """Yield the lines of an instruction for each cache that is known, with the name in `FETCHES`."""
        if self.known.code is not None:
            yield FETCH, self.known.code, self.code(number)
        if self.known.constants is not None:
            yield CONSTANT_MISS, self.known.constants, self.constants(number)

    def code(self, number: int) -> NeededLines:
        """Return the line of code of an instruction, or the two of which one may be its line.

        Only the alignment of the address of a kernel is known. So an instruction has a line for each place in a line
        at which the kernel may begin.
        """
        return self._code_at(int(self.flow.code[number].address))

    def _code_at(self, address: int) -> NeededLines:
        cache, kernel = self.known.code, self.flow.kernel
        if cache is None:
            return NeededLines()
        found = range(address // cache.line, (address + _lead(cache.line, kernel.alignment)) // cache.line + 1)
        staying = {line for line in found if self._code_sets[line % cache.sets] <= cache.ways}
        names = {line: f"{kernel.name} code {line * cache.line:#x}" for line in found}
        return _needed(names, staying, at_once=1)

    def constants(self, number: int) -> NeededLines:
        """Return the lines of constants that an instruction has among its operands."""
        found, kernel, size = self._constant_lines[number], self.flow.kernel, self._line_of_constants
        if found is None:
            return NeededLines(unknown=1)
        if _BANK_ALIGNMENT % size:  # a line could begin before its bank, anywhere in it
            return NeededLines(unknown=len(found))
        names = {(bank, at): f"{kernel.name} c[{bank:#x}] {at * size:#x}" for bank, at in found}
        return _needed(names, set(filter(self._stays, found)), at_once=len(found))

    def besides(self, number: int) -> Iterator[tuple[LineCache, NeededLines]]:
        """Yield the lines for which an instruction sends requests although its warp does not wait for them to issue it.

        Where a warp leaves the straight line, its buffer has asked for the instructions behind in vain. Loads of
        constants have a cache of their own, which may lack each line, but its lines come the same way. They count where
        some other line does not stay, as nothing waits for them elsewhere.
        """
        code, constants, instruction = self.known.code, self.known.constants, self.flow.code[number]
        if code is not None and self.flow.effects[number].transfer is not None:
            address = int(instruction.address)
            behind = [self._code_at(address + INSTRUCTION_BYTES * at) for at in range(1, _BUFFERED + 1)]
            staying = frozenset[str]().union(*(each.staying for each in behind))
            yield code, NeededLines(staying, late=sum(each.late for each in behind))
        if constants is not None and self._is_crowded and instruction.name in _LOADS:
            by_lane = any(map(_BY_LANE.search, instruction.operands[-1:]))
            yield constants, NeededLines(late=WARP_LANES if by_lane else 1)

    @cached_property
    def _is_crowded(self) -> bool:
        """Return whether a line that does not stay may be on its way."""
        every = (needed for number in range(len(self.flow.code)) for _, _, needed in self.needed(number))
        return any(needed.late or needed.unknown for needed in every)

    @cached_property
    def stay_near(self) -> bool:
        """Return whether the next cache, from which those of partitions get their lines, keeps all lines at once."""
        known = self.known
        cache = next((each.next for each in (known.code, known.constants) if each is not None), None)
        if cache is None:
            return False
        kernel, size, lead = self.flow.kernel, self._line_of_constants, _lead(cache.line, _BANK_ALIGNMENT)
        ahead = 0 if known.constants is None else known.constants.ahead
        before = _lead(size, _BANK_ALIGNMENT)
        banks = defaultdict[int, set[int]](set)
        for instruction in self.flow.code:
            if any("cx[" in operand for operand in instruction.operands):
                return False
            for bank, first, last in _constant_bytes(instruction, kernel):
                # whole lines of the first cache are fetched, and those ahead of them
                begin = (first - before) // size * size
                end = ((last + before) // size + 1 + ahead) * size - 1
                banks[bank].update(range(begin // cache.line, (end + lead) // cache.line + 1))
        own = [_most(Counter(line % cache.sets for line in lines)) for lines in banks.values()]
        return _most(self._sets_of_code(cache)) + sum(own) <= cache.ways

    @property
    def most_in_a_set(self) -> tuple[int | None, int | None]:
        """Return the most lines of code, and of constants, that may be in one set; None for any number of them."""
        sets = self._constant_sets
        return _most(self._code_sets), None if sets is None else sum(map(_most, sets.values()))

    @cached_property
    def _code_sets(self) -> Counter[int]:
        return Counter() if self.known.code is None else self._sets_of_code(self.known.code)

    def _sets_of_code(self, cache: LineCache | CacheSize) -> Counter[int]:
        """Return how many lines of code may be fetched into each set of a cache, for any first set."""
        kernel, own = self.flow.kernel, self.known.code
        line = cache.line if own is None else own.line  # whole lines of the first cache are fetched
        stop = max([kernel.padded_bytes, *(int(each.address) + INSTRUCTION_BYTES for each in kernel.code)])
        # an instruction buffer runs ahead of its warp, so into the line behind the end, and a fetch ahead goes on there
        ahead = 1 + (0 if own is None else own.ahead)
        fetched = (-(-(stop + _lead(line, kernel.alignment)) // line) + ahead) * line
        lines = -(-(fetched + _lead(cache.line, line)) // cache.line)
        return Counter(each % cache.sets for each in range(lines))

    @property
    def _line_of_constants(self) -> int:
        return self.known.constants.line if self.known.constants is not None else _WORD_BYTES

    @cached_property
    def _constant_lines(self) -> tuple[_Places | None, ...]:
        """Return the lines of constants among operands by instruction; None for one whose address is not known."""
        kernel, size = self.flow.kernel, self._line_of_constants
        words = (_operand_words(instruction, kernel) for instruction in self.flow.code)
        return tuple(None if own is None else frozenset((bank, at // size) for bank, at in own) for own in words)

    @cached_property
    def _constant_sets(self) -> Mapping[int, Counter[int]] | None:
        """Return how many lines of each bank are in each set of the cache of constants, for any first set of the bank.

        None means that lines of unknown addresses may fill all sets.
        """
        cache = self.known.constants
        if cache is None or _BANK_ALIGNMENT % cache.line:
            return None
        found = set[tuple[int, int]]()
        for lines in self._constant_lines:
            if lines is None:
                return None
            found |= {(bank, line + more) for bank, line in lines for more in range(cache.ahead + 1)}
        banks = {bank for bank, _ in found}
        return {bank: Counter(line % cache.sets for own, line in found if own == bank) for bank in banks}

    def _stays(self, place: tuple[int, int]) -> bool:
        cache, sets = self.known.constants, self._constant_sets
        if cache is None or sets is None:
            return False
        bank, line = place
        beside = sum(_most(own) for other, own in sets.items() if other != bank)
        return sets[bank][line % cache.sets] + beside <= cache.ways


def leave_room(known: KnownLapses, others: Iterable[KernelLines | None]) -> KnownLapses:
    """Return the caches as other kernels leave them, which are on the SM, too: their lines may be in any sets.

    What all of them need of the next cache is not counted, so no line is supposed to stay there.

    Args:
        others: the lines of these kernels; None for a kernel whose lines are not known.
    """
    taken = [(None, None) if lines is None else lines.most_in_a_set for lines in others]
    code, constants = ([each[at] for each in taken] for at in range(2))
    return replace(known, code=_less(known.code, code), constants=_less(known.constants, constants))


def _less(cache: LineCache | None, taken: Sequence[int | None]) -> LineCache | None:
    if cache is None:
        return None
    left = 0 if None in taken else cache.ways - sum(count or 0 for count in taken)
    return cache._replace(ways=max(0, left), next=None)


def _needed(names: Mapping[_Line, str], staying: Set[_Line], *, at_once: int) -> NeededLines:
    """Return lines by their names, of which a visit needs `at_once`."""
    leaving = frozenset(name for line, name in names.items() if line not in staying)
    stay = frozenset(names[line] for line in staying)
    return NeededLines(stay, leaving, min(at_once, len(leaving)))


def _lead(line: int, alignment: int) -> int:
    """Return the most bytes of a line before the first byte of what is aligned so."""
    return line - gcd(line, alignment)


def _most(sets: Counter[int]) -> int:
    return max(sets.values(), default=0)


def _has_constants(instruction: SassInstruction) -> bool:
    return instruction.name not in _LOADS and any(map(_OPERAND.search, instruction.operands))


def _operand_words(instruction: SassInstruction, kernel: SassKernel) -> _Places | None:
    """Return the words of constants among the operands of an instruction; None where a register says which."""
    if not _has_constants(instruction):
        return frozenset()
    if any(map(_is_unknown, instruction.operands)):
        return None
    return frozenset(_known_words(instruction, kernel))


def _is_unknown(operand: str) -> bool:
    """Return whether a register has a say in which word of constants an operand is."""
    return len(_OPERAND.findall(operand)) > len(_KNOWN.findall(operand))


def _known_words(instruction: SassInstruction, kernel: SassKernel) -> list[tuple[int, int]]:
    return [place for name in register_reads(instruction, kernel) if (place := constant_place(name)) is not None]


def _constant_bytes(instruction: SassInstruction, kernel: SassKernel) -> Iterator[tuple[int, int, int]]:
    """Yield bank, first and last byte of constants that an instruction may read, loads of constants, too."""
    yield from ((bank, at, at + _WORD_BYTES - 1) for bank, at in _known_words(instruction, kernel))
    for operand in instruction.operands:
        if _is_unknown(operand):
            yield from ((int(bank, 16), 0, _BANK_BYTES - 1) for bank in _BANK.findall(operand))
