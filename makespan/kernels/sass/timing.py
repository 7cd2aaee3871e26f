"""The unit class that serves each machine instruction and, where operations are timed, its timing by control bits.

A counter of the scoreboard is a token of a program: pending until everything that counts on it is there. What the
bits leave open is a range, from which the adversary chooses (docs/machine_code.md, "What the control bits promise").
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple, Unpack

from makespan.host.errors import MissingInput, UnsupportedError
from makespan.kernels.flow import (
    SECTOR,
    Barrier,
    Effect,
    KernelWarps,
    LanguageAnalysis,
    TimedCode,
    WarpOptions,
    dram_access,
    kernel_warps,
    missing_fetches,
    missing_latencies,
    serving_operations,
)
from makespan.kernels.sass.cache_lines import KernelLines
from makespan.kernels.sass.graph import SassFlow, flow
from makespan.kernels.sass.lapses import about_lapses, code_lapses
from makespan.kernels.sass.module import COUNTERS, Control, SassInstruction, SassKernel
from makespan.kernels.sass.opcodes import operation
from makespan.model import assumptions
from makespan.model.assumptions import Assumption
from makespan.model.lapses import PlaceLapses
from makespan.model.machine import OPERANDS, GivenRange, Machine, TimedOperation, timed_operations
from makespan.model.program import BARRIER, Access, InstructionTiming

_MEMORY = frozenset({"constant", "parameter", "shared", "global", "local", "atomic", "texture"})
_FENCED = frozenset({"shared", "global", "local", "atomic", "texture"})
"""The operations that a fence waits for."""

_WAY, _ACCESSES, _FIRST_RECONVERGENCE = COUNTERS, COUNTERS + 1, COUNTERS + 2
"""Tokens behind the counters: pending while it is unknown when the warp goes on; accesses to memory; B0 and so on."""

_MOVED = {
    **dict.fromkeys(("LD", "LDG", "LDL", "LDGSTS"), SECTOR),
    **dict.fromkeys(("ST", "STG", "STL", "ATOM", "ATOMG", "RED", "REDG"), 2 * SECTOR),
}
"""Bytes that DRAM moves for a lane, at most: a sector that is written in part may be read before."""

_MAY_BE_LOCAL = frozenset({"LD", "ST", "LDL", "STL"})

_HINT = re.compile(r"LTC([0-9]{1,3})B")
"""The modifier that asks L2 for more than the sector."""

_DEPBAR = re.compile(r"(?:SB([0-5]),0x([0-9a-f]{1,2}))?,?(?:\{([0-5](?:,[0-5])*)\})?")
_RECONVERGENCE = re.compile(r"B([0-9]{1,2})")

_LONGEST_PAUSE = 46
"""Cycles of a stall of 0.

Source: R. Huerta et al., "Analyzing Modern NVIDIA GPU Cores", MICRO 2025 (arXiv 2503.20481), and its simulator,
num_stall_cycles_wait_after_bits_stall_0_and_yield in the configurations of all its GPUs.
"""

_LONGEST_PLAIN = 11
"""Larger stalls are kept only where the scheduler is asked to take another warp: the same, section on control bits."""


class _TokenUse(NamedTuple):
    """The tokens that an instruction sets and awaits.

    Args:
        holds: pending while it holds its warp up.
        results: pending until its result is there.
        reads: pending until its operands have been read.
    """

    holds: frozenset[int]
    results: frozenset[int]
    reads: frozenset[int]
    awaits: frozenset[int]

    @property
    def sets(self) -> frozenset[int]:
        return self.holds | self.results | self.reads


@dataclass(frozen=True)
class SassCode(TimedCode):
    """The instructions of machine code on a machine, and what control bits leave open of their operands.

    Args:
        late: the instructions whose operands are read when their result is there, and not before.
        behind: the instructions from which on it is counted until operands of earlier ones have been read.
        lines: the lines of code and constants that they need; None where nothing is known of lapses.
    """

    flow: SassFlow
    late: frozenset[int] = frozenset()
    behind: frozenset[int] = frozenset()
    lines: KernelLines | None = None

    def remarks(self, numbers: Sequence[int], branches: bool) -> Iterator[Assumption]:
        """Yield how these instructions are timed, what they wait for, and what else is supposed of them."""
        found = self.flow
        effects = [found.effects[number] for number in numbers]
        lanes = ["no data race makes lanes that load one address see two values"] * branches
        aligned = sorted({found.code[n].line for n in numbers if found.effects[n].barrier is Barrier.ALIGNED})
        if branches and aligned:
            lanes.append(
                f"the lanes of a warp come together to the barriers at {found.at(*aligned)}, as their PTX promises"
            )
        yield from self._about_timing(numbers)
        yield from assumptions.about_code(
            found.kernel.compilation,
            assumptions.as_compiled(found.kernel.sm, self.machine.name),
            lanes,
            sum(effect.guard is not None and effect.transfer is None for effect in effects),
            ", and may be done after one cycle, as where they do nothing" if self.timings else "",
        )
        if self.lines is not None:
            yield from about_lapses(self.lines, numbers, self.given, warm=self.warm)
        if (self.lines is None or self.lines.known.constants is None) and any(
            "c[" in operand for number in numbers for operand in found.code[number].operands
        ):
            yield assumptions.instructions("constants among the operands are in the cache of constants")

    def _about_timing(self, numbers: Sequence[int]) -> Iterator[Assumption]:
        if not self.timings:
            yield assumptions.instructions(
                "accesses to memory are of class L, all else is of class C; control bits are not used"
            )
            return
        used = {self.operations[number] for number in numbers}
        awaited = {self.operations[number] for number in numbers if self.timings[number].sets}
        if any(self.flow.code[number].control.read_counter is not None for number in numbers):
            used, awaited = used | {OPERANDS}, awaited | {OPERANDS}
        yield from self.about_operations(used, awaited)
        yield assumptions.instructions(
            "control bits: a warp goes on when the stall of its last instruction has passed and the counters that the"
            " next one awaits are down; at its end it waits for all counters, but for no access without one"
        )
        code = [self.flow.code[number] for number in numbers]
        if any(_WAY in self.timings[number].sets for number in numbers):
            yield assumptions.instructions(
                "a branch, barrier or fence holds its warp up for its stall at least and for its cycles at most, be the"
                " branch taken or not"
            )
        if open_stalls := sorted({str(i.control.stall) for i in code if _is_open(i.control)}):
            yield assumptions.instructions(
                f"stalls that nobody documents take a range of cycles: {', '.join(open_stalls)}"
            )
        if self.late & set(numbers):
            yield assumptions.read_late()
        if self.behind & set(numbers):
            yield assumptions.read_behind()
        if any(self.flow.effects[number].barrier for number in numbers):
            yield assumptions.pending_at_barriers()


def timed_code(flow: SassFlow, machine: Machine, given: Mapping[str, GivenRange], warm: bool = False) -> SassCode:
    """Return the instructions of a kernel on a machine: by control bits where it times operations, else blocking.

    Raises:
        InputError: an operation that the machine lacks.
        UnsupportedError: an opcode that is not in the table, or waiting that control bits do not say.
    """
    table = timed_operations(machine, given)
    names = tuple(operation(instruction, flow.kernel.file) for instruction in flow.code)
    lines = None if machine.lapses is None else KernelLines(flow, machine.lapses)
    lapses, missed = _lapses(machine, lines, names, given, warm=warm)
    if not table:
        letters = ["L" if name in _MEMORY else "C" for name in names]
        plain = tuple(None if effect.barrier else name for effect, name in zip(flow.effects, letters, strict=True))
        return SassCode(flow, machine, given, plain, lapses=lapses, missing=missed, lines=lines, warm=warm)
    is_fenced = "fence" in names  # accesses are awaited by fences alone
    found = [_tokens(flow, number, name, is_fenced=is_fenced and name in _FENCED) for number, name in enumerate(names)]
    awaited = {number for number, tokens in enumerate(found) if tokens.sets}
    rows = [row for row in serving_operations(flow, machine, table, names) if row is not None]
    units = tuple(
        f"{row.unit}{BARRIER}" if effect.barrier else row.unit for effect, row in zip(flow.effects, rows, strict=True)
    )
    if missing := (*missing_latencies(flow, machine, rows, awaited), *missed):
        return SassCode(flow, machine, given, units, names, table, missing=missing, warm=warm)
    carriers = _carriers(flow, found)
    reading = [_reading(table, row) for row in rows]
    timings = [_timing(flow, number, row, reading[number], found[number]) for number, row in enumerate(rows)]
    for number, carrier in carriers.items():
        timings[number] = timings[number]._replace(sets=tuple(sorted(found[number].results)))
        ahead = sum(timing.stall for timing in timings[number:carrier])  # the least cycles between the two issues
        most = max(timings[carrier].latency[1], reading[number] - ahead)  # a carrier may serve several instructions
        timings[carrier] = timings[carrier]._replace(latency=(1, most), sets=tuple(found[number].reads))
    apart = {number for number, tokens in enumerate(found) if tokens.reads and tokens.results}
    # a warp ends without waiting for its stores
    results = frozenset().union(*(timing.sets for timing in timings)) - {_ACCESSES}
    late = frozenset(apart - carriers.keys())  # their operands count as read with the result: the safe side
    behind = frozenset(carrier for carrier in carriers.values() if timings[carrier].latency[1] > 1)
    accesses = tuple(_access(instruction, name) for instruction, name in zip(flow.code, names, strict=True))
    return SassCode(
        flow, machine, given, units, names, table, tuple(timings), results, accesses, lapses, late, behind, lines,
        warm=warm,
    )  # fmt: skip


def _lapses(
    machine: Machine,
    lines: KernelLines | None,
    operations: Sequence[str],
    given: Mapping[str, GivenRange],
    *,
    warm: bool,
) -> tuple[tuple[PlaceLapses, ...], tuple[MissingInput, ...]]:
    """Return the lapses by instruction, or what has to be given before they are known."""
    if lines is None:
        return (), ()
    if missing := missing_fetches(machine, given, lines.used, lines.far, warm=warm):
        return (), missing
    first = {name: given[name].most for name in machine.fetches if name in given}
    return code_lapses(lines, operations, first, partitions=machine.partitions, warm=warm), ()


def _access(instruction: SassInstruction, operation: str) -> Access | None:
    if instruction.opcode == "CCTL.IVALL":  # L1 forgets all that it has, which is nowhere else newer
        return None
    hints = [int(hint[1]) for modifier in instruction.modifiers if (hint := _HINT.fullmatch(modifier))]
    moved = _MOVED.get(instruction.name)
    per_lane = None if moved is None else max((moved, *hints))
    widths = [int(modifier) for modifier in instruction.modifiers if modifier in ("64", "128", "256")]
    words = max(widths, default=32) // 32 if instruction.name in _MAY_BE_LOCAL else 1
    return dram_access(operation, per_lane, is_awaited=instruction.control.write_counter is not None, words=words)


def _reading(table: Mapping[str, TimedOperation], row: TimedOperation) -> int:
    """Return the most cycles until operands have been read: never more than until the result is there."""
    ends = (row.most, table[OPERANDS].most if OPERANDS in table else None)
    return min((end for end in ends if end is not None), default=1)


def _carriers(flow: SassFlow, found: Sequence[_TokenUse]) -> dict[int, int]:
    """Return, by instruction with operands and a result to count, a later one that counts the operands for it.

    A place has one latency for all that it sets. The later one is of the same block, sets nothing else, and no
    instruction up to it awaits the counter, so that to be pending from there on is to be pending: if the operands are
    read x cycles after the issue of the first, then max(1, x less the cycles between the two) after that of the later.
    Between the two are their stalls at least.
    """
    carriers, carried = dict[int, int](), dict[int, frozenset[int]]()
    for block in range(flow.exit):
        for number in flow.numbers(block):
            reads = found[number].reads
            if not (reads and found[number].results):
                continue
            for later in range(number + 1, flow.blocks[block].stop):
                if reads & found[later].awaits:  # the operands are awaited before a later place could carry them
                    break
                if (
                    carried.get(later, reads) == reads
                    and not found[later].sets
                    and not _is_open(flow.code[later].control)
                ):
                    carriers[number], carried[later] = later, reads
                    break
    return carriers


def _tokens(flow: SassFlow, number: int, operation: str, *, is_fenced: bool) -> _TokenUse:
    instruction, effect = flow.code[number], flow.effects[number]
    bits = instruction.control
    # BSSY and BMOV set reconvergence registers, which BSYNC awaits
    results = _reconvergences(effect.writes) | _counters(bits.write_counter)
    awaits = {_WAY, *bits.awaited, *_reconvergences(effect.reads), *_depbar(flow, instruction)}
    if is_fenced:
        results.add(_ACCESSES)
    if operation == "fence":
        awaits.add(_ACCESSES)
    if instruction.name == "LDGDEPBAR":
        raise _unsupported_error(flow, instruction, "its counter is up until the copies before it are done")
    return _TokenUse(
        frozenset({_WAY}) if _holds_up(effect, operation) else frozenset(),
        frozenset(results),
        frozenset(_counters(bits.read_counter) - results),  # one counter for both is up until the result is there
        frozenset(awaits),
    )


def _counters(counter: int | None) -> set[int]:
    return set() if counter is None else {counter}


def _holds_up(effect: Effect, operation: str) -> bool:
    return effect.transfer is not None or effect.barrier is not None or effect.joins_lanes or operation == "fence"


def _timing(flow: SassFlow, number: int, row: TimedOperation, reading: int, tokens: _TokenUse) -> InstructionTiming:
    instruction = flow.code[number]
    bits = instruction.control
    stall, longest = _stall(bits)
    holds, most = tokens.holds, reading if tokens.reads else 1  # operands alone are read sooner than results come
    if holds or tokens.results:
        most = row.most or 1
    if stall < longest:
        if tokens.results or tokens.reads:
            raise _unsupported_error(flow, instruction, f"a stall of {bits.stall} beside a counter, of unknown length")
        holds, most = frozenset({_WAY}), max(most, longest)  # the adversary chooses the length of an open stall
    # only then is the least latency a promise
    is_sure = bits.write_counter is not None and instruction.guard is None and not holds
    sets = tuple(sorted(holds | tokens.sets))
    return InstructionTiming(stall, (min(row.least, most) if is_sure else 1, most), sets, tuple(sorted(tokens.awaits)))


def _stall(bits: Control) -> tuple[int, int]:
    """Return the least and most cycles from issue to the next of the same warp, counters apart.

    Source: Huerta et al., as above: the control bits, and what large stalls and a stall of 0 mean.
    """
    if bits.stall == 0:
        return 1, _LONGEST_PAUSE
    if bits.stall > _LONGEST_PLAIN and not bits.yields:
        return 1, bits.stall
    if bits.stall == 1 and bits.yields:
        return 1, 2
    return bits.stall, bits.stall


def _is_open(bits: Control) -> bool:
    least, most = _stall(bits)
    return least < most


def _reconvergences(registers: Sequence[str]) -> set[int]:
    """Return the tokens of reconvergence registers.

    Source: Mesa, src/nouveau/compiler/nak/sm70.rs: "Barriers have a HW scoreboard".
    """
    return {_FIRST_RECONVERGENCE + int(found[1]) for name in registers if (found := _RECONVERGENCE.fullmatch(name))}


def _depbar(flow: SassFlow, instruction: SassInstruction) -> set[int]:
    """Return the counters that DEPBAR awaits.

    Source: CuAssembler, UserGuide.md, "Scoreboard Set": it waits until a counter has fallen to a number.
    """
    if instruction.name != "DEPBAR":
        return set()
    found = _DEPBAR.fullmatch(",".join(instruction.operands))
    if found is None:
        raise _unsupported_error(flow, instruction, "waits for what nobody has written down")
    one, left, several = found.groups()
    if left is not None and int(left, 16) > 0:
        raise _unsupported_error(
            flow, instruction, "waits for some of its counter, and nobody says which of them come first"
        )
    return {int(counter) for counter in [*([one] if one else ()), *(several or "").split(",")] if counter}


def _unsupported_error(flow: SassFlow, instruction: SassInstruction, why: str) -> UnsupportedError:
    return UnsupportedError(
        f"{flow.kernel.file}:{instruction.line}: `{instruction}`: {why}; only a machine without operations takes it"
    )


def warps(kernel: SassKernel | SassFlow, **options: Unpack[WarpOptions]) -> KernelWarps:
    """Return the warps of a launch, which tell what is missing before there can be programs; see `WarpOptions`.

    Control bits say what an instruction waits for if the machine times operations.

    Raises:
        InputError: a launch that does not fit, or an operation that the machine does not time.
        UnsupportedError: control flow, an opcode, or waiting that cannot be followed.
    """
    found = flow(kernel)
    return kernel_warps(found, partial(timed_code, found), **options)


ANALYSIS = LanguageAnalysis(SassKernel, flow, warps, "machine code")
