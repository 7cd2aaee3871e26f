"""The lapses of a scheduler on account of machine instructions, and the lines of code and constants that these need.

A line *stays* if no other line can take its place: at most as many lines fall into a set of its cache as the set holds.
Lines are counted, not bytes, and all that may be fetched counts: the kernel with what it calls, the padding behind it,
and what a prefetcher fetches behind its end. A line that does not stay may be late at each execution. Another warp of
the same partition may take its place at any time, so that holds for each instruction of a line, not for the first.

Source: R. Huerta et al., "Analyzing Modern NVIDIA GPU Cores", MICRO 2025 (arXiv 2503.20481), sections 5.1 to 5.4, and
its simulator, `remodeling/subcore.cc`; the numbers are those of a machine file.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from functools import cached_property
from math import gcd
from typing import NamedTuple

from makespan.kernels.sass.effects import register_reads
from makespan.kernels.sass.graph import SassFlow
from makespan.kernels.sass.module import INSTRUCTION_BYTES, SassInstruction, SassKernel
from makespan.kernels.sass.operands import constant_place
from makespan.model import assumptions
from makespan.model.assumptions import Assumption
from makespan.model.lapses import NO_LAPSES, CacheLine, PlaceLapses, longest_windows
from makespan.model.machine import CONSTANT_MISS, FETCH, GivenRange, KnownLapses, LineCache, RegisterReads

FIXED = frozenset({"fp32", "int", "int-multiply", "predicate", "fp16", "tensor", "vote"})
"""The operations whose instructions read their operands on their way, and never from a queue.

An instruction among them that counts its result or its operands by a counter is of variable latency all the same, such
as MATCH and FCHK. Source: Huerta et al., as above, 4.1 and 5.1.1.
"""

_REGISTER = re.compile(r"R([0-9]+)")
_LOADS_OF_CONSTANTS = frozenset({"LDC", "ULDC", "LDCU"})
"""These go through another cache than constants among operands, as loads do; their latency covers it."""

_CONSTANT_OPERAND = re.compile(r"(?<![A-Za-z0-9_])cx?\[")
_FENCES = frozenset({"MEMBAR", "FENCE"})
_SCOPES = {"CTA": "block", "GPU": "gpu", "SYS": "system"}

_PREFETCHED = 8
"""Lines behind the end of a kernel that may be fetched.

Source: Huerta et al., as above, 5.2 and 7.3: a stream buffer of eight lines, a size that is fitted and not measured.
"""

_BANK_ALIGNMENT = 64
"""Bytes of which the address of a bank of constants is a multiple.

Source: Mesa, src/nouveau/vulkan/nvk_private.h, NVK_MIN_UBO_ALIGNMENT, what Vulkan asks of a uniform buffer there.
"""


class _ConstantLine(NamedTuple):
    """A line of a bank of constants, by its number in the bank."""

    bank: int
    number: int


@dataclass(frozen=True)
class KernelLines:
    """The lines of code and constants that a kernel needs, and those of them that stay in their caches.

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
    def leaving(self) -> frozenset[str]:
        """Return those of `FETCHES` of whose lines some do not stay."""
        numbers = range(len(self.flow.code))
        found = set[str]()
        if any(self.code(number).late for number in numbers):
            found.add(FETCH)
        if any(self.constants(number).late for number in numbers):
            found.add(CONSTANT_MISS)
        return frozenset(found)

    def code(self, number: int) -> "NeededLines":
        """Return the lines of code of an instruction. It has one, or either of two if the kernel begins inside a line.

        The address of a kernel is a multiple of its alignment, and only that is known of it. So the line of an
        instruction is the number of whole lines before it, for any of the possible places of the first line.
        """
        cache, kernel = self.known.code, self.flow.kernel
        if cache is None:
            return NOTHING_NEEDED
        address = int(self.flow.code[number].address)
        found = {address // cache.line, (address + _lead(cache, kernel)) // cache.line}
        staying = {line for line in found if self._code_lines[line % cache.sets] <= cache.ways}
        names = frozenset(f"{kernel.name} code {line * cache.line:#x}" for line in staying)
        return NeededLines(names, late=int(staying != found))

    @cached_property
    def _code_lines(self) -> Counter[int]:
        """Return how many lines may be fetched into each set of the cache of code."""
        cache = self.known.code
        if cache is None:
            return Counter()
        kernel = self.flow.kernel
        behind = -(-(code_bytes(kernel) + _lead(cache, kernel)) // cache.line)
        return Counter(line % cache.sets for line in range(behind + _PREFETCHED))

    def constants(self, number: int) -> "NeededLines":
        """Return the lines of constants that an instruction has among its operands."""
        found = self._constants[number]
        if found is None:
            return NeededLines(frozenset(), late=1)
        staying = {line for line in found if self._stays(line)}
        kernel, size = self.flow.kernel, self._constant_bytes
        names = frozenset(f"{kernel.name} c[{line.bank:#x}] {line.number * size:#x}" for line in staying)
        return NeededLines(names, late=len(found - staying))

    @property
    def _constant_bytes(self) -> int:
        return self.known.constants.line if self.known.constants is not None else 4  # each word for itself

    @cached_property
    def _constants(self) -> tuple[frozenset[_ConstantLine] | None, ...]:
        """Return the lines of constants by instruction; None for one whose address is not known."""
        kernel = self.flow.kernel
        return tuple(_constant_lines(instruction, kernel, self._constant_bytes) for instruction in self.flow.code)

    @cached_property
    def _constant_sets(self) -> Counter[int] | None:
        """Return how many lines of bank 0 are in each set of the cache of constants, and under -1 those of other banks.

        None means that lines of unknown addresses may fill all sets. The sets of bank 0 are known up to a rotation, as
        its lines follow each other. Those of another bank are not: its first line may be in any set.
        """
        cache, found = self.known.constants, set[_ConstantLine]()
        if cache is None or _BANK_ALIGNMENT % cache.line:  # a line could begin before its bank
            return None
        for lines in self._constants:
            if lines is None:
                return None
            found |= lines
        return Counter(line.number % cache.sets if line.bank == 0 else -1 for line in found)

    def _stays(self, line: _ConstantLine) -> bool:
        cache, sets = self.known.constants, self._constant_sets
        if cache is None or sets is None:
            return False
        own = (
            sets[line.number % cache.sets]
            if line.bank == 0
            else max((count for number, count in sets.items() if number >= 0), default=0)
        )
        return own + sets[-1] <= cache.ways

    @property
    def most_in_a_set(self) -> tuple[int | None, int | None]:
        """Return the most lines of code, and of constants, that are in one set; None for any number of them."""
        sets = self._constant_sets
        if not any(map(_has_constants, self.flow.code)):
            return max(self._code_lines.values(), default=0), 0
        own = None if sets is None else sets[-1] + max((count for at, count in sets.items() if at >= 0), default=0)
        return max(self._code_lines.values(), default=0), own


def leave_room(known: KnownLapses, others: Iterable[KernelLines | None]) -> KnownLapses:
    """Return the caches as other kernels leave them, which are on the SM, too: their lines may be in any sets.

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
    return cache._replace(ways=max(0, left))


class NeededLines(NamedTuple):
    """The lines that an instruction needs.

    Args:
        staying: the names of those that stay in their cache.
        late: the number of those that do not.
    """

    staying: frozenset[str]
    late: int = 0


NOTHING_NEEDED = NeededLines(frozenset())
"""The lines of an instruction that needs none, or whose cache is not known."""


def code_bytes(kernel: SassKernel) -> int:
    """Return the bytes of a kernel with the padding behind it."""
    return max([kernel.padded_bytes, *(int(each.address) + INSTRUCTION_BYTES for each in kernel.code)])


def _lead(cache: LineCache, kernel: SassKernel) -> int:
    """Return the most bytes of a line of code before the first instruction of a kernel."""
    return cache.line - gcd(cache.line, kernel.alignment)


def _has_constants(instruction: SassInstruction) -> bool:
    return instruction.name not in _LOADS_OF_CONSTANTS and any(map(_CONSTANT_OPERAND.search, instruction.operands))


def _constant_lines(instruction: SassInstruction, kernel: SassKernel, size: int) -> frozenset[_ConstantLine] | None:
    if not _has_constants(instruction):
        return frozenset()
    words = [place for name in register_reads(instruction, kernel) if (place := constant_place(name)) is not None]
    named = sum(len(_CONSTANT_OPERAND.findall(operand)) for operand in instruction.operands)
    if len(words) < named or "cx[" in "".join(instruction.operands):  # a register has a say in the address
        return None
    return frozenset(_ConstantLine(bank, offset // size) for bank, offset in words)


def code_lapses(
    lines: KernelLines, operations: Sequence[str], first: Mapping[str, int], *, warm: bool
) -> tuple[PlaceLapses, ...]:
    """Return the lapses of each instruction of a kernel, and the lines that it needs.

    Args:
        operations: by instruction, its operation.
        first: for each of `FETCHES` that is not left out, the most cycles until a line comes for the first time. Where
            caches are warm and all lines stay, none need be known.
        warm: whether all lines that stay are in their caches from the start.
    """
    windows = {name: max(cycles, _near(lines.known, name)) for name, cycles in first.items()}
    missed = _first_uses(lines, warm=warm)
    return tuple(
        _place(lines, number, operation, windows, missed[number], warm=warm)
        for number, operation in enumerate(operations)
    )


def _near(known: KnownLapses, name: str) -> int:
    """Return the cycles for which a line is late that the next cache has: another partition may have asked for it."""
    cache = known.code if name == FETCH else known.constants
    return 0 if cache is None else cache.window


def _place(
    lines: KernelLines, number: int, operation: str, windows: Mapping[str, int], missed: int, *, warm: bool
) -> PlaceLapses:
    known, instruction = lines.known, lines.flow.code[number]
    credit = (known.multiply or 0) * ("IMAD" in instruction.name) + (known.constant or 0) * missed
    if known.registers is not None:
        credit += _read_lapses(instruction, lines.flow.kernel, operation, known.registers)
    needed = {FETCH: lines.code(number), CONSTANT_MISS: lines.constants(number)}
    # what holds the lines that do not stay is not known: each of them may come from as far as for the first time
    misses = sum(windows.get(name, 0) * need.late for name, need in needed.items())
    window = {} if warm else {name: need.staying for name, need in needed.items()}
    found = PlaceLapses(
        credit,
        _fence_lapses(instruction, known.fence),
        misses,
        longest_windows(CacheLine(line, windows[name]) for name, staying in window.items() for line in staying),
    )
    return NO_LAPSES if found == NO_LAPSES else found


def _read_lapses(instruction: SassInstruction, kernel: SassKernel, operation: str, registers: RegisterReads) -> int:
    """Return the cycles for which the scheduler may stand still until the registers of an instruction have been read.

    An operand that is named twice is read twice, and one of 64 bits is two registers. What a bit keeps for the next
    instruction is read all the same, as another warp may take its place.
    """
    numbers = [int(found[1]) for name in register_reads(instruction, kernel) if (found := _REGISTER.fullmatch(name))]
    banks = Counter(number % registers.banks for number in numbers)
    cycles = -(-max(banks.values(), default=0) // registers.ports)
    bits = instruction.control
    is_fixed = operation in FIXED
    is_queued = not is_fixed or bits.write_counter is not None or bits.read_counter is not None
    if is_queued and registers.is_variable:
        return cycles
    # the first cycle of its reads is one in which an instruction of fixed latency goes through in any case
    return max(0, cycles - 1) if is_fixed else 0


def _fence_lapses(instruction: SassInstruction, fence: Mapping[str, int]) -> int:
    if instruction.name not in _FENCES or not fence:
        return 0
    scopes = {scope for modifier in instruction.modifiers if (scope := _SCOPES.get(modifier)) in fence}
    return max(cycles for scope, cycles in fence.items() if not scopes or scope in scopes)


def _first_uses(lines: KernelLines, *, warm: bool) -> tuple[int, ...]:
    """Return how many lines of constants an instruction may be the first of its warp to ask for, or asks for in vain.

    A warp that has issued an instruction with a constant has found its line, and what stays it finds again. That holds
    on each way to an instruction, so a line is left out only if it was asked for on all of them. Instructions with a
    guard may ask for nothing.
    """
    flow = lines.flow
    needed = [lines.constants(number) for number in range(len(flow.code))]
    every = frozenset[str]().union(*(need.staying for need in needed))
    at_start: dict[int, Set[str]] = dict.fromkeys(range(flow.exit), every)
    if not warm:
        at_start[0] = frozenset()
    waiting = [0]
    while waiting:  # sets only lose lines, so this ends
        block = waiting.pop()
        *_, last = _asked_for(lines, needed, block, at_start[block])
        for after in flow.blocks[block].successors:
            if after != flow.exit and not at_start[after] <= last:
                at_start[after] &= last
                waiting.append(after)
    found = [0] * len(flow.code)
    for block in range(flow.exit):
        # the lines behind the block are of no use here
        for number, before in zip(flow.numbers(block), _asked_for(lines, needed, block, at_start[block]), strict=False):
            found[number] = len(needed[number].staying - before) + needed[number].late
    return tuple(found)


def _asked_for(lines: KernelLines, needed: Sequence[NeededLines], block: int, before: Set[str]) -> Iterator[Set[str]]:
    """Yield the lines that have been asked for before each instruction of a block, and at last those behind it."""
    yield before
    for number in lines.flow.numbers(block):
        if lines.flow.code[number].guard is None:
            before = before | needed[number].staying
        yield before


def about_lapses(
    lines: KernelLines,
    numbers: Sequence[int],
    given: Mapping[str, GivenRange],
    *,
    warm: bool,
) -> Iterator[Assumption]:
    """Yield what lapses of a kernel suppose, and how late its lines may be.

    Args:
        numbers: the instructions that may be executed.
    """
    known = lines.known
    counted = {
        "reads of registers": known.registers is not None,
        "integer multiply-adds": known.multiply is not None,
        "constants among operands": known.constant is not None,
        "fences": bool(known.fence),
    }
    yield assumptions.counted_lapses(
        [name for name, is_known in counted.items() if is_known], is_verified=known.is_verified
    )
    if known.carried_over:
        yield assumptions.carried_over(known.carried_over)
    caches = {FETCH: ("code", known.code), CONSTANT_MISS: ("constants", known.constants)}
    listed = [
        f"of {what} ({cache.sets} sets of {cache.ways} lines of {cache.line} bytes)"
        for what, cache in caches.values()
        if cache is not None
    ]
    if listed:
        yield assumptions.line_caches(" and ".join(listed))
    if listed and warm:
        yield assumptions.warm_caches()
    for name, (what, _) in caches.items():
        needed = [lines.code(number) if name == FETCH else lines.constants(number) for number in numbers]
        is_late = any(need.late for need in needed)
        if name in given and name in lines.used and (is_late or (not warm and any(need.staying for need in needed))):
            yield assumptions.first_fetch(what, str(given[name]))
        if name in lines.used and is_late:
            yield assumptions.late_lines(what)
