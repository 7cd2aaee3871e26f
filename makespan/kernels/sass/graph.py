"""The control flow of machine code: its subroutines inlined, its instructions in basic blocks.

A subroutine, such as a division, stands in place of each of its calls. It returns to wherever a register says, and is
followed only if that is proven to be the instruction behind its call, as compilers have it.

Where lanes meet. `BSSY B0, A` puts the lanes that execute it into B0, and at A they go on together: each of them that
has not ended must come to a `BSYNC B0`, where it waits for the others. So lanes that part meet at the address of the
innermost BSSY before, or never. That is sure where every way to an instruction has opened the same BSSYs; others are
refused.

Source: M. Abaie Shoushtary, J. Tubella and A. Gonzalez, "Control Flow Management in Modern GPUs", arXiv 2407.02944, on
BSSY, BSYNC, BREAK, YIELD, WARPSYNC and BMOV.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple, TypeAlias

from makespan.host.errors import InputError, UnsupportedError
from makespan.kernels.flow import BasicBlock, Flow, reach
from makespan.kernels.sass.effects import (
    ENDS,
    SassAccess,
    conditions,
    ends_block,
    refuse_steering,
    register_accesses,
    sass_effect,
)
from makespan.kernels.sass.module import INSTRUCTION_BYTES, Address, SassInstruction, SassKernel
from makespan.kernels.sass.semantics import SassSemantics

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
            self._reachable[entry] = tuple(sorted(reach([entry], self._followed)))
        return self._reachable[entry]

    def _followed(self, address: int) -> tuple[int, ...]:
        refuse_steering(self.at[address], self._kernel.file)
        return self.after(self.at[address])

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


class _Region(NamedTuple):
    """A region that a BSSY opens: its register, and where its lanes go on together."""

    name: str
    behind: CopyAddress


_Regions: TypeAlias = tuple[_Region, ...]


@dataclass(frozen=True, slots=True)
class SassFlow(Flow):
    """The control flow graph of machine code, whose calls are replaced by what they call."""

    kernel: SassKernel
    code: tuple[SassInstruction, ...]


def flow(kernel: SassKernel | SassFlow) -> SassFlow:
    """Return the control flow of a kernel; a flow is returned as it is, with all that was found out of it.

    Raises:
        InputError: a branch to nowhere.
        UnsupportedError: an instruction that is not known or steers lanes in a way that is not followed, recursion.
    """
    if isinstance(kernel, SassFlow):
        return kernel
    placed = inline_subroutines(kernel)
    code = tuple(item.instruction for item in placed)
    found = register_accesses(replace(kernel, code=code))
    blocks = tuple(_blocks(placed))
    ptx = (kernel.ptx_text or "").split("\n")
    return SassFlow(
        kernel,
        code,
        tuple(sass_effect(instruction, access, ptx) for instruction, access in zip(code, found, strict=True)),
        blocks,
        SassSemantics(kernel, code, found),
        meetings=_meetings(kernel, placed, blocks),
    )


def _blocks(placed: Sequence[InlinedInstruction]) -> Iterator[BasicBlock]:
    number_at = {item.place: number for number, item in enumerate(placed)}
    afters = [tuple(number_at[place] for place in item.after) for item in placed]
    begins = {0}
    for number, item in enumerate(placed):
        if ends_block(item.instruction) or afters[number] != (number + 1,):  # copies of subroutines are not in sequence
            begins |= {number + 1, *afters[number]}
    firsts = sorted(begins - {len(placed)})
    block_at = {first: block for block, first in enumerate(firsts)}
    for first, stop in zip(firsts, [*firsts[1:], len(placed)], strict=True):
        last, begin = placed[stop - 1].instruction, placed[first].instruction
        successors = tuple(block_at[number] for number in afters[stop - 1])
        if last.name in ENDS and ends_block(last):
            successors = (len(firsts), *successors)  # an end first, then where it goes on if its guard fails
        yield BasicBlock(first, stop, str(begin.address), begin.address, successors, begin.source)


def _meetings(
    kernel: SassKernel, placed: Sequence[InlinedInstruction], blocks: Sequence[BasicBlock]
) -> Mapping[int, int]:
    """Return where lanes that part at the end of a block meet, by block; the virtual exit for nowhere."""
    opened: dict[int, _Regions] = {0: ()}
    innermost: dict[int, _Regions] = {}
    closed = set[CopyAddress]()
    waiting = [0]
    while waiting:
        block = waiting.pop()
        regions = opened[block]
        for item in placed[blocks[block].first : blocks[block].stop]:
            if item.instruction.name == "BSYNC" and regions:
                closed.add(regions[-1].behind)  # only there do lanes wait for each other
            regions = _open_regions(kernel, item, regions)
        innermost[block] = regions
        for after in blocks[block].successors:
            if after < len(blocks) and after not in opened:
                opened[after] = regions
                waiting.append(after)
            elif after < len(blocks) and opened[after] != regions:  # the meeting point would depend on the way
                raise steering_error(
                    kernel, placed[blocks[after].first].instruction, "is come to with different BSSYs open"
                )
    number_at = {placed[block.first].place: number for number, block in enumerate(blocks)}
    return {
        block: next((number_at[region.behind] for region in regions[::-1] if region.behind in closed), len(blocks))
        for block, regions in innermost.items()
        if len(blocks[block].successors) > 1
    }


def _open_regions(kernel: SassKernel, item: InlinedInstruction, regions: "_Regions") -> "_Regions":
    instruction, names = item.instruction, [region.name for region in regions]
    match instruction.name:
        case "BSSY":
            if instruction.guard is not None or instruction.operands[0] in names:
                raise steering_error(kernel, instruction, "opens what may be open, or has a guard")
            return (
                *regions,
                _Region(instruction.operands[0], CopyAddress(item.place.copy, _address(kernel, instruction))),
            )
        case "BSYNC":
            if instruction.guard is not None or not regions or instruction.operands != (regions[-1].name,):
                raise steering_error(kernel, instruction, "closes another BSSY than the innermost, or has a guard")
            if item.after != (regions[-1].behind,):
                raise steering_error(
                    kernel, instruction, f"does not stand before {Address(regions[-1].behind.address)}"
                )
            return regions[:-1]  # its lanes go on together from here
        case "BMOV" if "CLEAR" in instruction.modifiers and instruction.operands[1] in names:
            raise steering_error(kernel, instruction, "changes which lanes wait for each other")
        case _:
            return regions


def _address(kernel: SassKernel, instruction: SassInstruction) -> int:
    try:
        return int(instruction.operands[-1], 16)
    except ValueError:
        raise steering_error(kernel, instruction, "names no address") from None
