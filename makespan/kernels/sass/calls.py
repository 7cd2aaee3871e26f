"""Calls of subroutines, such as divisions, replaced by the code that they call, as often as they are called.

A subroutine returns to wherever a register says. It is followed only if that is proven to be the instruction behind its
call, as compilers have it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from makespan.host.errors import InputError, UnsupportedError
from makespan.kernels.sass.effects import ENDS, conditions, ends_block, refuse_steering
from makespan.kernels.sass.module import INSTRUCTION_BYTES, Address, SassInstruction, SassKernel
from makespan.kernels.sass.registers import SassAccess, register_accesses

MAX_INSTRUCTIONS = 2**17
_MAX_DEPTH = 64


class CopyAddress(NamedTuple):
    """An address in one copy of a subroutine; copy 0 is the kernel itself."""

    copy: int
    address: int


class InlinedInstruction(NamedTuple):
    """An instruction with its successors; if it has a condition, the last is where it goes without it."""

    instruction: SassInstruction
    place: CopyAddress
    after: tuple[CopyAddress, ...]


class _SubroutineCopy(NamedTuple):
    number: int
    entry: int
    behind: CopyAddress | None
    outer: tuple[int, ...]


def inline_subroutines(kernel: SassKernel) -> tuple[InlinedInstruction, ...]:
    """Return the instructions that can be reached, in order of addresses, each subroutine behind its call.

    Raises:
        InputError: a branch to nowhere, or no end.
        UnsupportedError: what steers lanes in a way that is not followed, recursion, or too much code.
    """
    text = _CodeMap(kernel)
    found: list[InlinedInstruction] = []
    opened = [_SubroutineCopy(0, 0, None, ())]
    walks = [iter(text.reachable(0))]
    copies = 0
    while opened:
        copy = opened[-1]
        address = next(walks[-1], None)
        if address is None:
            opened.pop()
            walks.pop()
            continue
        instruction = text.at[address]
        after = tuple(CopyAddress(copy.number, after) for after in text.after(instruction))
        if instruction.name == "RET" and ends_block(instruction):
            if copy.behind is None:
                raise steering_error(kernel, instruction, "returns from the kernel")
            after = (copy.behind, *after)  # the return that `_check_returns` proves below
        elif instruction.name == "CALL" and ends_block(instruction):
            copies += 1
            callee = _SubroutineCopy(copies, text.target(instruction), after[0], (*copy.outer, copy.entry))
            if callee.entry in callee.outer or len(callee.outer) > _MAX_DEPTH:
                raise steering_error(kernel, instruction, "is recursive, or calls are nested too deeply")
            after = (CopyAddress(copies, callee.entry), *(after if conditions(instruction) else ()))
            opened.append(callee)
            walks.append(iter(text.reachable(callee.entry)))
        found.append(InlinedInstruction(instruction, CopyAddress(copy.number, address), after))
        if len(found) > MAX_INSTRUCTIONS:
            raise UnsupportedError(
                f"{kernel.file}: with what it calls, {kernel.name} has more than {MAX_INSTRUCTIONS} instructions"
            )
    if copies:
        _check_returns(kernel, found)  # inlining assumed that every return goes behind its call
    return tuple(found)


class _CodeMap:
    """The instructions of a kernel by address, and where they go within a subroutine."""

    def __init__(self, kernel: SassKernel) -> None:
        self.at = {int(instruction.address): instruction for instruction in kernel.code}
        self._kernel = kernel
        self._reachable: dict[int, tuple[int, ...]] = {}

    def reachable(self, entry: int) -> tuple[int, ...]:
        """Return the addresses of a subroutine, without those of what it calls."""
        if entry not in self._reachable:
            found, waiting = set[int](), [entry]
            while waiting:
                address = waiting.pop()
                if address not in found:
                    found.add(address)
                    refuse_steering(self.at[address], self._kernel.file)
                    waiting += self.after(self.at[address])
            self._reachable[entry] = tuple(sorted(found))
        return self._reachable[entry]

    def after(self, instruction: SassInstruction) -> tuple[int, ...]:
        """Return where an instruction may go; a call is taken to come back."""
        behind = instruction.address + INSTRUCTION_BYTES
        if not ends_block(instruction) or instruction.name in ("CALL", "BSYNC"):
            found: tuple[int, ...] = (behind,)
        else:
            # BRA.DIV may go on behind itself
            is_sure = not conditions(instruction) and "DIV" not in instruction.modifiers
            found = (*self._taken(instruction), *(() if is_sure else (behind,)))
        for address in found:
            if address not in self.at:
                raise InputError(
                    f"{self._kernel.file}:{instruction.line}: `{instruction}` leads to {Address(address)}, where"
                    f" {self._kernel.name} has no instruction"
                )
        return found

    def target(self, instruction: SassInstruction) -> int:
        try:
            address = int(instruction.operands[-1], 16)
        except (ValueError, IndexError):
            raise steering_error(self._kernel, instruction, "names no address") from None
        if instruction.name == "CALL" and len(instruction.operands) > 1:
            raise steering_error(self._kernel, instruction, "calls what a register says")
        if address not in self.at:
            raise steering_error(self._kernel, instruction, "goes to code outside of the kernel")
        return address

    def _taken(self, instruction: SassInstruction) -> tuple[int, ...]:
        if instruction.name in ENDS or instruction.name == "RET":
            return ()
        if instruction.name != "BRX":
            return (self.target(instruction),)
        if not (targets := self._kernel.jumps.get(instruction.address)):
            raise steering_error(
                self._kernel, instruction, "goes wherever a register points, and the file does not say where"
            )
        return tuple(dict.fromkeys(targets))


def _check_returns(kernel: SassKernel, placed: Sequence[InlinedInstruction]) -> None:
    """Refuse a return for which the constants in registers do not prove that it goes behind its call."""
    found = register_accesses(replace(kernel, code=tuple(item.instruction for item in placed)))
    number_at = {item.place: number for number, item in enumerate(placed)}
    known: dict[int, Mapping[str, int]] = {0: {}}
    waiting = [0]
    while waiting:
        number = waiting.pop()
        after = _constants_after(placed[number].instruction, found[number], known[number])
        for place in placed[number].after:
            to = number_at[place]
            before = known.get(to)
            merged = after if before is None else {k: v for k, v in before.items() if after.get(k) == v}
            if merged != before:
                known[to] = merged
                waiting.append(to)
    for number in known:
        instruction = placed[number].instruction
        if instruction.name == "RET" and ends_block(instruction):
            low, high = list(map(known[number].get, found[number].reads[-2:]))
            if (low, high) != (placed[number].after[0].address, 0) or instruction.operands[-1] != "0x0":
                raise steering_error(kernel, instruction, "is not proven to return behind its call")


def _constants_after(instruction: SassInstruction, access: SassAccess, known: Mapping[str, int]) -> Mapping[str, int]:
    kept = {name: value for name, value in known.items() if name not in access.writes}  # any write forgets the constant
    value = _moved_constant(instruction, known)
    if value is not None and instruction.guard is None and len(access.writes) == 1:
        kept[access.writes[0]] = value
    return kept


def _moved_constant(instruction: SassInstruction, known: Mapping[str, int]) -> int | None:
    # -0 * 0 + 0: compilers write 0 through another pipe
    if instruction.name == "HFMA2" and instruction.operands[1:] == ("-RZ", "RZ", "0", "0"):
        return 0
    is_move = instruction.name == "MOV" and len(instruction.operands) == 2
    if not is_move and (instruction.opcode != "IMAD.MOV.U32" or instruction.operands[1:3] != ("RZ", "RZ")):
        return None
    text = instruction.operands[-1]
    if text.startswith("0x"):
        return int(text, 16)
    return 0 if text == "RZ" else known.get(text)


def steering_error(kernel: SassKernel, instruction: SassInstruction, why: str) -> UnsupportedError:
    """Return the error about an instruction that steers lanes in a way that the analysis does not follow."""
    return UnsupportedError(
        f"{kernel.file}:{instruction.line}: `{instruction}` {why}, which is not followed; analyse the PTX instead"
    )
