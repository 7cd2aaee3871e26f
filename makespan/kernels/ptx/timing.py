"""The unit class that serves each instruction of PTX and, where warps run ahead, its timing and what it awaits.

A machine that times operations decides by the operation of an instruction, any other by the class of its opcode.

A warp that runs ahead stalls on use: it waits for a result where it needs it. The names of what is pending are those of
registers, and of what no text shows: the carry, accesses to memory, fences, asynchronous copies, and the way of a warp.

Sources: PTX ISA, "membar, fence" (prior ld, st, atom and red are performed before later ones), "Asynchronous Data
Copy", and "Memory Consistency Model" for .acquire and .release.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, replace
from enum import StrEnum
from typing import NamedTuple, TypeAlias, Unpack

from makespan.host.errors import InputError, UnsupportedError
from makespan.kernels.flow import (
    SECTOR,
    Effect,
    KernelWarps,
    LanguageAnalysis,
    TimedCode,
    WarpOptions,
    dram_access,
    kernel_warps,
    missing_latencies,
    serving_operations,
)
from makespan.kernels.ptx.effects import JUMPS, is_barrier, is_inlined
from makespan.kernels.ptx.graph import PtxFlow, flow
from makespan.kernels.ptx.isa import PROFILES, Classes, expands, operations, prefixes, units_of
from makespan.kernels.ptx.module import PtxInstruction, PtxKernel
from makespan.model import assumptions
from makespan.model.assumptions import Assumption
from makespan.model.machine import FETCHES, GivenRange, Machine, timed_operations
from makespan.model.program import Access, InstructionTiming

_CARRY, ACCESSES, _FENCE, _COPIES = "<carry>", "<accesses>", "<fence>", "<copies>"

WAY = "<way>"
"""Pending while it is unknown where a warp goes on, so that all its instructions await it."""

UNREAD = frozenset({ACCESSES, _COPIES})
"""Names that a warp does not wait for at its end: its stores and copies go on without it."""

_SINK = "_"
_READS_CARRY = frozenset({"addc", "subc", "madc"})
_ACCESS = frozenset({"ld", "ldu", "st", "atom", "red", "multimem", "ldmatrix", "stmatrix"})
_FENCES = frozenset({"membar", "fence"})
_HOLDS_UP = JUMPS | {"call", "nanosleep"}
_WAITS_FOR_COPIES = frozenset({"wait_group", "wait_all"})


class PtxNeeds(NamedTuple):
    """The names that are pending until the result is there, and those that must not be pending at issue."""

    sets: frozenset[str]
    awaits: frozenset[str]


def needs(instruction: PtxInstruction, effect: Effect) -> PtxNeeds:
    """Return the needs of one instruction; registers by the names of its effect, perhaps names of variables, too.

    >>> from makespan.kernels import ptx
    >>> load = ptx.flow(ptx.parse(".entry k() { ld.global.v2.u32 {%r1, %r2}, [%rd1]; ret; }", "k.ptx").kernel())
    >>> sorted(needs(load.code[0], load.effects[0]).sets)
    ['%r1', '%r2', '<accesses>']
    """
    name, suffixes = instruction.name, frozenset(instruction.opcode.replace("::", ".").split(".")[1:])
    sets = set() if name == "call" else set(effect.writes) - {_SINK}  # what is called writes for itself
    awaits = {*sets, *effect.reads, WAY} - {_SINK}  # a register that is written must not be pending either
    if name in _HOLDS_UP or instruction.opcode.startswith("bar.warp"):
        sets.add(WAY)
    if "cc" in suffixes:
        sets.add(_CARRY)
    if "cc" in suffixes or name in _READS_CARRY:
        awaits.add(_CARRY)
    if name in _ACCESS and not suffixes & {"param", "const"}:
        sets.add(ACCESSES)
        awaits.add(_FENCE)
    if name in _FENCES or suffixes & {"acquire", "acq_rel"}:  # later accesses wait for the fence
        sets.add(_FENCE)
    if name in _FENCES or suffixes & {"release", "acq_rel"}:  # the fence waits for earlier accesses
        awaits |= {ACCESSES, _FENCE}
    if name == "cp" and suffixes & _WAITS_FOR_COPIES:
        awaits.add(_COPIES)
    elif name == "cp" and "commit_group" not in suffixes:
        sets.add(_COPIES)
    # results stay pending past a barrier, which sets none itself
    return PtxNeeds(frozenset() if is_barrier(instruction) else frozenset(sets), frozenset(awaits))


_SetsAndAwaits: TypeAlias = tuple[tuple[int, ...], tuple[int, ...]]
_NO_LATENCIES: Mapping[str, GivenRange] = {}

_LINE = 128
"""Bytes of a line, which a prefetch asks for, and in a few of which a lane's share of a matrix lies."""

_MOVED = {
    **dict.fromkeys(("ld", "ldu", "cp"), SECTOR),
    **dict.fromkeys(("st", "atom", "red", "multimem"), 2 * SECTOR),
    **dict.fromkeys(("prefetch", "prefetchu"), _LINE),
    "wmma": 2 * _LINE,
}
"""Bytes that DRAM moves for a lane, at most: a sector that is written in part may be read before."""

_HINT = re.compile(r"L2::([0-9]{1,3})B")


class Dependences(StrEnum):
    """The results that an instruction waits for: of registers that it reads and writes, or all before it."""

    REGISTERS = "registers"
    BLOCKING = "blocking"


@dataclass(frozen=True)
class PtxCode(TimedCode):
    """The instructions of PTX on a machine: by which classes of opcodes, and what they wait for."""

    flow: PtxFlow
    _: KW_ONLY
    classes: Classes
    dependences: Dependences

    def remarks(self, numbers: Sequence[int], branches: bool) -> Iterator[Assumption]:
        """Yield how these instructions are timed, what they wait for, and what else is supposed of them."""
        classes, code = self.classes, [self.flow.code[number] for number in numbers]
        guarded = sum(i.guard is not None and i.name not in JUMPS and not is_inlined(i) for i in code)
        lanes = ["branches marked .uni are uniform, and no data race makes lanes that load one address see two values"]
        yield from self._about_timing(numbers)
        yield from assumptions.about_code(
            self.flow.kernel.compilation,
            assumptions.as_written(),
            lanes * branches,
            guarded,
            ", and take one cycle at least, as where they do nothing" if self.timings else "",
        )
        if classes.overrides:
            yield assumptions.classes(classes.overrides)
        if not self.operations and (unknown := sorted(classes.unclassified(i.opcode for i in code))):
            yield assumptions.unknown_opcodes(str(classes.unknown), unknown)

    def _about_timing(self, numbers: Sequence[int]) -> Iterator[Assumption]:
        if not self.operations:
            letters = ", ".join(PROFILES[self.classes.profile])
            yield assumptions.instructions(f"profile {self.classes.profile}: unit classes {letters}")
        else:
            yield from self._about_operations(numbers)
        if not self.timings:
            return
        if self.dependences is Dependences.BLOCKING:
            yield assumptions.waits_for_all()
            return
        yield assumptions.stall_on_use()
        if any(is_barrier(self.flow.code[number]) for number in numbers):
            yield assumptions.pending_at_barriers()

    def _about_operations(self, numbers: Sequence[int]) -> Iterator[Assumption]:
        used = {self.operations[number] for number in numbers if not is_barrier(self.flow.code[number])}
        yield from self.about_operations(used, used)
        if several := sorted({self.flow.code[number].opcode for number in numbers if expands(self.flow.code[number])}):
            listed = ", ".join(several)
            yield assumptions.instructions(f"one instruction each, although the assembler makes many of it: {listed}")


def timed_code(
    flow: PtxFlow,
    classes: Classes,
    machine: Machine,
    dependences: Dependences | None = None,
    given: Mapping[str, GivenRange] = _NO_LATENCIES,
    *,
    warm: bool = False,
) -> PtxCode:
    """Return the instructions of a kernel on a machine; by default they wait for registers where it times operations.

    Raises:
        InputError: an opcode that nothing classifies, an operation that the machine lacks, classes for a machine that
            needs none, or warm caches and fetches, which PTX does not have.
        UnsupportedError: an instruction without unit, for whose operands nothing can wait.
    """
    if warm or FETCHES.keys() & given.keys():
        raise InputError(
            f"{flow.kernel.file}: --warm, --latency fetch and --latency constant-miss are for machine code: PTX does"
            " not tell which lines of code and constants there are"
        )
    table = timed_operations(machine, given)
    if not table:
        units = units_of(flow.kernel, classes)
        _refuse_sleep(flow, classes)  # a class would count a sleep as one short instruction
        chosen = dependences or Dependences.BLOCKING
        plain = PtxCode(flow, machine, given, units, classes=classes, dependences=chosen)
        if chosen is Dependences.BLOCKING:
            return plain
        of_class = {unit.name: (unit.latency.least, unit.latency.most) for unit in machine.units}
        latencies = [of_class.get(unit or "", (1, 1)) for unit in units]  # without a unit there is nothing to wait for
        return _running_ahead(plain, latencies)
    if classes != Classes():
        raise InputError(
            f"machine {machine.name!r} times operations, and they decide the class of an instruction:"
            " leave out --profile, --classes and --unknown"
        )
    found = operations(flow.kernel)
    needed = [None if is_barrier(instruction) else name for instruction, name in zip(flow.code, found, strict=True)]
    rows = serving_operations(flow, machine, table, needed)  # barriers are places of their own, without operation
    missing = missing_latencies(flow, machine, rows, range(len(rows)))
    units = tuple(None if row is None else row.unit for row in rows)
    chosen = dependences or Dependences.REGISTERS
    code = PtxCode(flow, machine, given, units, found, table, missing=missing, classes=classes, dependences=chosen)
    if missing:
        return code
    latencies = [(1, 1) if row is None else (row.least, row.most or row.least) for row in rows]
    return replace(_running_ahead(code, latencies), accesses=tuple(_accesses(code)))


def _accesses(code: PtxCode) -> Iterator[Access | None]:
    blocks = code.dependences is Dependences.BLOCKING
    for name, instruction, effect in zip(code.operations, code.flow.code, code.flow.effects, strict=True):
        hints = [int(hint[1]) for suffix in instruction.opcode.split(".") if (hint := _HINT.fullmatch(suffix))]
        moved = _MOVED.get(instruction.name)
        per_lane = None if moved is None else max((moved, *hints))  # a hint asks L2 for more than the sector
        is_awaited = blocks or bool(needs(instruction, effect).sets - {ACCESSES})
        words = _words(instruction.opcode)
        yield None if is_barrier(instruction) else dram_access(name, per_lane, is_awaited=is_awaited, words=words)


def _words(opcode: str) -> int:
    """Return the words of 32 bits that a lane accesses, if they may be in local memory; else 1."""
    suffixes = opcode.replace("::", ".").split(".")
    if "global" in suffixes:
        return 1
    vector = next((int(suffix[1:]) for suffix in suffixes if suffix in ("v2", "v4", "v8")), 1)
    bits = max((int(suffix[1:]) for suffix in suffixes if re.fullmatch("[bsuf][0-9]{1,3}", suffix)), default=32)
    return max(1, vector * bits // 32)


def _refuse_sleep(flow: PtxFlow, classes: Classes) -> None:
    for instruction in flow.code:
        if instruction.name == "nanosleep" and not any(p in classes.overrides for p in prefixes(instruction.opcode)):
            raise InputError(
                f"{flow.kernel.file}:{instruction.line}: `{instruction}` sleeps, and classes of units do not tell for"
                " how long: take a machine that times operations, with --latency sleep=..N, or say a class by --classes"
            )


def _running_ahead(code: PtxCode, latencies: Sequence[tuple[int, int]]) -> PtxCode:
    instructions = code.flow.code
    if code.dependences is Dependences.BLOCKING:
        # one token for all: each instruction waits for the one before
        tokens: list[_SetsAndAwaits] = [((0,), (0,))] * len(instructions)
        results = frozenset({0})
    else:
        found = [needs(*both) for both in zip(instructions, code.flow.effects, strict=True)]
        _refuse_without_unit(code, found)
        tokens, results = _tokens(found)
    timings = tuple(
        InstructionTiming(0, (0, 0), (), awaits)
        if is_barrier(instruction)
        # a guard that fails for all lanes leaves nothing to wait for
        else InstructionTiming(1, (1 if _may_do_nothing(instruction) else latency[0], latency[1]), sets, awaits)
        for instruction, latency, (sets, awaits) in zip(instructions, latencies, tokens, strict=True)
    )
    return replace(code, timings=timings, results=results)


def _may_do_nothing(instruction: PtxInstruction) -> bool:
    """Return whether a guard may fail for all lanes and leave nothing to wait for; a branch is always decided."""
    return instruction.guard is not None and instruction.name not in (*JUMPS, "call")


def _tokens(found: Sequence[PtxNeeds]) -> tuple[list[_SetsAndAwaits], frozenset[int]]:
    """Return what every instruction sets and awaits as numbers, and the numbers of results.

    Names that the same instructions set are pending together, so they are one: all registers of a vector load are.
    """
    setters: dict[str, list[int]] = {}
    for number, need in enumerate(found):
        for name in sorted(need.sets):
            setters.setdefault(name, []).append(number)
    alike: dict[tuple[int, ...], int] = {}
    # names with the same setters are always pending together
    token = {name: alike.setdefault(tuple(numbers), len(alike)) for name, numbers in setters.items()}
    tokens = [
        (
            tuple(sorted({token[name] for name in need.sets})),
            tuple(sorted({token[name] for name in need.awaits if name in token})),
        )
        for need in found
    ]
    return tokens, frozenset(number for name, number in token.items() if name not in UNREAD)


def _refuse_without_unit(code: PtxCode, found: Sequence[PtxNeeds]) -> None:
    known = frozenset().union(*(need.sets for need in found)) - {WAY}
    for unit, instruction, need in zip(code.units, code.flow.code, found, strict=True):
        if unit is None and not is_barrier(instruction) and known & (need.sets | need.awaits):
            raise UnsupportedError(
                f"{code.flow.kernel.file}:{instruction.line}: `{instruction}` needs no unit here, so nothing can wait"
                f' for its operands; give it one with --classes FILE ({instruction.name} = "C"), or take'
                " --dependences blocking"
            )


def warps(
    kernel: PtxKernel | PtxFlow,
    *,
    profile: str = "paper",
    classes: Mapping[str, str] | None = None,
    unknown: str | None = None,
    dependences: Dependences | None = None,
    **options: Unpack[WarpOptions],
) -> KernelWarps:
    """Return the warps of a launch, which tell what is missing before there can be programs.

    >>> from makespan.kernels import ptx
    >>> text = ".version 8.0 .target sm_80 .entry k() { ld.global.u32 %r1, [%rd1]; add.u32 %r1, %r1, 1; ret; }"
    >>> ptx.program(ptx.parse(text, "k.ptx").kernel()).letters
    'LC'

    Args:
        profile: which unit classes there are, see `ptx.PROFILES`.
        classes: own unit classes by opcode prefix, see `Classes`.
        unknown: the class of opcodes that nothing classifies.
        dependences: what an instruction waits for; None for registers where the machine times operations, else for
            whatever is before it.
        options: see `WarpOptions`.

    Raises:
        InputError: a launch that does not fit, an unknown opcode, an operation that the machine does not time, or what
            is about the lines of machine code.
        UnsupportedError: control flow that has no natural loops.
    """
    found = flow(kernel)

    def code(machine: Machine, given: Mapping[str, GivenRange], warm: bool) -> PtxCode:
        return timed_code(found, Classes(profile, classes or {}, unknown), machine, dependences, given, warm=warm)

    return kernel_warps(found, code, **options)


ANALYSIS = LanguageAnalysis(PtxKernel, flow, warps, "PTX")
