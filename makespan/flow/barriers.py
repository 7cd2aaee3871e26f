"""Barriers of a block: which of them a program can express, and which it cannot."""

from collections.abc import Iterable, Sequence, Set

from makespan.errors import UnsupportedError
from makespan.flow.divergence import Reconvergence, parted
from makespan.flow.graph import Flow
from makespan.flow.launch import Launch
from makespan.program import BARRIER
from makespan.ptx.module import Instruction

_MOST_OPERANDS = {"sync": 1, "red": 3}
"""Without the number of threads that take part."""


def is_barrier(instruction: Instruction) -> bool:
    """Whether an instruction lets warps of a block or cluster wait for each other."""
    return instruction.name in ("bar", "barrier") and not instruction.opcode.startswith("bar.warp")


def is_aligned(instruction: Instruction) -> bool:
    """Whether all lanes of a warp execute a barrier together or not at all; otherwise each arrives for itself.

    Source: PTX ISA, "Parallel Synchronization and Communication Instructions: bar, barrier": `bar{.cta}.sync` is
        `barrier{.cta}.sync.aligned`, and in conditional code it is for conditions that all threads evaluate alike.
    """
    return instruction.name == "bar" or "aligned" in instruction.opcode.split(".")


def with_barriers(flow: Flow, units: Sequence[str | None], launch: Launch) -> tuple[str | None, ...]:
    """The units of all instructions, with `BARRIER` for the barriers that all threads of a block wait at."""
    threads = None if launch.block is None else launch.block[0] * launch.block[1] * launch.block[2]
    return tuple(
        BARRIER if is_barrier(instruction) and _obstacle(instruction, threads) is None else unit
        for instruction, unit in zip(flow.code, units, strict=True)
    )


def refuse_barriers(flow: Flow, blocks: Iterable[int], launch: Launch) -> None:
    """Refuse barriers in some blocks that are no places of a program.

    Raises:
        UnsupportedError: a barrier that not all threads of the block wait at, or that a guard may leave out.
    """
    threads = None if launch.block is None else launch.block[0] * launch.block[1] * launch.block[2]
    for instruction in (i for block in blocks for i in flow.instructions(block) if is_barrier(i)):
        if obstacle := _obstacle(instruction, threads):
            raise UnsupportedError(f"{flow.kernel.file}:{instruction.line}: `{instruction}` {obstacle}")


def refuse_parted_barriers(flow: Flow, parting: Set[int], rules: Iterable[Reconvergence]) -> None:
    """Refuse barriers that lanes may come to one by one, given the branches at which they may part.

    Raises:
        UnsupportedError: a barrier that is not aligned between a branch and its point of reconvergence.
    """
    loose = {
        block: instruction
        for block in range(flow.exit)
        for instruction in flow.instructions(block)
        if is_barrier(instruction) and not is_aligned(instruction)
    }
    for rule in rules if loose else ():
        for branch in sorted(parting & rule.points.keys()):
            for block in sorted(loose.keys() & parted(flow, branch, rule.points[branch])):
                raise UnsupportedError(
                    f"{flow.kernel.file}:{loose[block].line}: lanes that part at line {flow.last(branch).line} may come"
                    f" to `{loose[block]}` one after another, and then run interleaved; use bar.sync, which all lanes"
                    " execute together, or say with --param, --block and --grid what makes the branch uniform"
                )


def _obstacle(instruction: Instruction, threads: int | None) -> str | None:
    """Why a barrier is no place at which all warps of a block wait; None if it is one."""
    parts = instruction.opcode.split(".")
    if "cluster" in parts:
        return "waits for other blocks of a cluster, and one SM is looked at; leave it out to look at the parts"
    kind = next((part for part in parts if part in _MOST_OPERANDS), None)
    if kind is None:
        return "only arrives and does not wait, which a program cannot say; use bar.sync"
    if instruction.guard:
        return "has a guard, and a warp whose lanes all fail it does not wait; use a branch around it"
    if len(instruction.operands) <= _MOST_OPERANDS[kind]:
        return None
    count = instruction.operands[1 if kind == "sync" else 2]
    if threads is not None and count == str(-(-threads // 32) * 32):
        return None
    return "waits for some threads of the block; only if it is for all, --block says so"
