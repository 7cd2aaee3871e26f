"""The lapses of a scheduler on account of machine instructions, and how late the lines are that these need.

Source: R. Huerta et al., "Analyzing Modern NVIDIA GPU Cores", MICRO 2025 (arXiv 2503.20481), sections 5.1 to 5.4, and
its simulator, `remodeling/subcore.cc`; the numbers are those of a machine file (docs/machines.md, "Lapses and queues").
"""

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence, Set

from makespan.kernels.sass.cache_lines import KernelLines, NeededLines
from makespan.kernels.sass.effects import register_reads
from makespan.kernels.sass.module import SassInstruction, SassKernel
from makespan.model import assumptions
from makespan.model.assumptions import Assumption
from makespan.model.lapses import CacheLine, PlaceLapses, longest_windows
from makespan.model.machine import CONSTANT_MISS, FETCH, GivenRange, LineCache, RegisterReads

FIXED = frozenset({"fp32", "int", "int-multiply", "predicate", "fp16", "tensor", "vote"})
"""The operations whose instructions read their operands on their way, and never from a queue.

An instruction among them that counts its result or its operands by a counter is of variable latency all the same, such
as MATCH and FCHK. Source: Huerta et al., as above, 4.1 and 5.1.1.
"""

_REGISTER = re.compile(r"R([0-9]+)")
_FENCES = frozenset({"MEMBAR", "FENCE"})
_SCOPES = {"CTA": "block", "GPU": "gpu", "SYS": "system"}


def code_lapses(
    lines: KernelLines, operations: Sequence[str], first: Mapping[str, int], *, partitions: int, warm: bool
) -> tuple[PlaceLapses, ...]:
    """Return the lapses of each instruction of a kernel, and the lines that it needs.

    Args:
        operations: by instruction, its operation.
        first: the most cycles until a line comes for the first time, by the name in `FETCHES`. A name may be left out
            where `far` of the lines has it not, and caches are warm or `used` has it not.
        partitions: the number of partitions of the SM, each with caches of its own.
        warm: whether all lines that stay in some cache are there from the start.
    """
    crowding = partitions * _crowding(lines, warm=warm)
    missed = _first_uses(lines, warm=warm)
    found = []
    for number, operation in enumerate(operations):
        own = _lateness(lines, number, first, crowding, warm=warm)
        credit = _credit(lines, number, operation) + (lines.known.constant or 0) * missed[number]
        fence = own.fence + _fence_lapses(lines.flow.code[number], lines.known.fence)
        found.append(own._replace(credit=credit, fence=fence))
    return tuple(found)


def _crowding(lines: KernelLines, *, warm: bool) -> int:
    """Return for how many cycles a partition's first fetches of lines that stay may keep other fetches waiting.

    In warm caches there are all lines that instructions need, but perhaps not those that are fetched in vain.
    """
    numbers = range(len(lines.flow.code))
    staying = {(line, cache.crowd) for at in numbers for cache, own in _requests(lines, at) for line in own.staying}
    if warm:
        staying -= {(line, cache.crowd) for at in numbers for _, cache, own in lines.needed(at) for line in own.staying}
    return sum(crowd for _, crowd in staying)


def _requests(lines: KernelLines, number: int) -> Iterator[tuple[LineCache, NeededLines]]:
    """Yield all lines for which an instruction may send requests."""
    yield from ((cache, needed) for _, cache, needed in lines.needed(number))
    yield from lines.besides(number)


def _lateness(lines: KernelLines, number: int, first: Mapping[str, int], crowding: int, *, warm: bool) -> PlaceLapses:
    """Return how late an instruction is on account of its lines, and how long its fetches may keep others waiting."""
    fence = sum(cache.crowd * (needed.late + needed.unknown) for cache, needed in _requests(lines, number))
    misses, windows = 0, list[CacheLine]()
    for name, cache, needed in lines.needed(number):
        # where another partition came first, the line comes from the next cache
        longest = max(first.get(name, 0), cache.window)
        misses += (cache.window if lines.stay_near else longest) * needed.late + longest * needed.unknown
        if not warm:
            once = needed.staying | (needed.leaving if lines.stay_near else frozenset())
            windows += [CacheLine(line, longest) for line in once]
    if misses and crowding:  # the window of a line that does not stay has no room for others that come first
        windows.append(CacheLine(f"{lines.flow.kernel.name} first fetches", crowding))
    return PlaceLapses(0, fence, misses, longest_windows(windows))


def _credit(lines: KernelLines, number: int, operation: str) -> int:
    """Return the cycles of lapses on account of an instruction, constants aside."""
    known, instruction = lines.known, lines.flow.code[number]
    multiplies = (known.multiply or 0) * ("IMAD" in instruction.name)
    if known.registers is None:
        return multiplies
    return multiplies + _read_lapses(instruction, lines.flow.kernel, operation, known.registers)


def _read_lapses(instruction: SassInstruction, kernel: SassKernel, operation: str, registers: RegisterReads) -> int:
    """Return the cycles for which the scheduler may stand still until the registers of an instruction have been read.

    An operand that is named twice is read twice, and one of 64 bits is two registers. What a bit keeps for the next
    instruction is read all the same, as another warp may take its place.
    """
    numbers = [int(found[1]) for name in register_reads(instruction, kernel) if (found := _REGISTER.fullmatch(name))]
    most = max(Counter(number % registers.banks for number in numbers).values(), default=0)
    bits, is_fixed = instruction.control, operation in FIXED
    is_queued = not is_fixed or bits.write_counter is not None or bits.read_counter is not None
    on_its_way = registers.credit(most, from_queue=False) if is_fixed else 0
    return max(on_its_way, registers.credit(most, from_queue=True) if is_queued else 0)


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
            own = needed[number]
            found[number] = len(own.staying - before) + own.late + own.unknown
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
    needed = [(name, own) for number in numbers for name, _, own in lines.needed(number) if own != NeededLines()]
    for name, (what, _) in caches.items():
        own = [each for kind, each in needed if kind == name]
        if own and name in given and (name in lines.far or not warm):
            yield assumptions.first_fetch(what, str(given[name]))
        if any(each.late or each.unknown for each in own):
            yield assumptions.late_lines(what, near=lines.stay_near)
