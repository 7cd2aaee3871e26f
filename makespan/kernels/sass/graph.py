"""The control flow of machine code: its subroutines inlined, its instructions in basic blocks; its loops and branches.

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

from makespan.kernels.flow import BasicBlock, Flow, LanguageAnalysis
from makespan.kernels.sass.calls import CopyAddress, InlinedInstruction, inline_subroutines, steering_error
from makespan.kernels.sass.effects import ENDS, ends_block, sass_effect
from makespan.kernels.sass.module import Address, SassInstruction, SassKernel
from makespan.kernels.sass.registers import register_accesses
from makespan.kernels.sass.semantics import SassSemantics


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


_OF_MACHINE_CODE = LanguageAnalysis[SassKernel, SassFlow](flow, "machine code")
loops = _OF_MACHINE_CODE.loops
branches = _OF_MACHINE_CODE.branches
bounds_for = _OF_MACHINE_CODE.bounds_for
bounds_template = _OF_MACHINE_CODE.bounds_template
