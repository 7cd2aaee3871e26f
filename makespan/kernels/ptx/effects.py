"""The effects of PTX instructions on registers and on the way of a warp, in the words of control flow.

An instruction that is not known to write only its first operand is taken to write every register that it mentions.
A barrier of the block is such an effect, too; `barrier_obstacle` says which barriers a program cannot express.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple, TypeAlias

from makespan.kernels.flow import (
    SHARED_REGISTER,
    Barrier,
    ControlTransfer,
    Effect,
    Guard,
    InstructionSet,
    SourceLine,
    ThreadRegisters,
)
from makespan.kernels.ptx.module import Brace, Declaration, PtxInstruction, PtxKernel, declares, names_in


def _axes(name: str) -> tuple[str, str, str]:
    return f"{name}.x", f"{name}.y", f"{name}.z"


PTX = InstructionSet(
    ThreadRegisters(
        thread=_axes("%tid"),
        block_size=_axes("%ntid"),
        block=_axes("%ctaid"),
        grid_size=_axes("%nctaid"),
        lane="%laneid",
        lane_masks={relation: f"%lanemask_{relation}" for relation in ("eq", "lt", "le", "gt", "ge")},
    ),
    ends="ret or exit",
    aligned_barrier="bar.sync",
)


_SILENT = frozenset(
    """
    bra brkpt cp discard exit fence griddepcontrol membar nanosleep pmevent prefetch prefetchu red ret setmaxnreg st
    stmatrix sust trap
    """.split()  # noqa: SIM905 - a list of so many strings cannot be read
)
_WRITES_FIRST = frozenset(
    """
    abs activemask add addc and atom bfe bfi bfind bmsk brev clz cnot copysign cos cvt cvta div dp2a dp4a elect ex2 fma
    fns isspacep ld ldmatrix ldu lg2 lop3 mad mad24 madc mapa match max min mma mov movmatrix mul mul24 neg not or popc
    prmt rcp redux rem rsqrt sad selp set setp shf shfl shl shr sin slct sqrt sub subc suld suq szext tanh testp tex
    tld4 txq vote xor
    """.split()  # noqa: SIM905 - likewise
)
_AXIS = re.compile(r"%[a-z_]+\.[xyzw](?![A-Za-z0-9_])")
_NOTHING: Mapping[str, str] = MappingProxyType({})
_DeclaredRegisters: TypeAlias = dict[str, int | None]


class PtxAccess(NamedTuple):
    """The registers of one instruction, each by a name that is its own in the whole kernel.

    Args:
        writes: what it may write. With a guard, it may also leave them as they are.
        reads: what it may read, guard included, special registers as `%tid` and as `%tid.x`; names of
            variables and labels may be among them.
        renamed: the own names, by name in the text, of registers that an inner `{ }` block or the module declares.
        is_partial: whether it may write a part of a vector register and leave the rest.
    """

    writes: tuple[str, ...]
    reads: tuple[str, ...]
    renamed: Mapping[str, str]
    is_partial: bool = False

    def own(self, name: str) -> str:
        """Return the own name of a register that the text of the instruction mentions."""
        return self.renamed.get(name, name)


def register_accesses(kernel: PtxKernel) -> tuple[PtxAccess, ...]:
    """Return what each instruction reads and writes, in text order."""
    module, own = _registers(kernel.variables), _registers((*(kernel.parameters or ()), *(kernel.returns or ())))
    found = []
    inner: list[tuple[_DeclaredRegisters, int]] = []
    blocks = 0
    for statement in kernel.statements:
        match statement:
            case Brace(opens=True):
                blocks += 1  # every block has a number, so names inside become its own
                inner.append(({}, blocks))
            case Brace():
                inner.pop()
            case Declaration() if statement.is_register:
                (inner[-1][0] if inner else own).update(statement.names)
            case PtxInstruction():
                renamed = _own_names(statement, inner, own, module) if inner or module else _NOTHING
                found.append(_access(statement, renamed))
            case _:
                pass
    return tuple(found)


def _registers(declarations: Iterable[Declaration]) -> _DeclaredRegisters:
    return {name: count for declared in declarations if declared.is_register for name, count in declared.names}


def _own_names(
    instruction: PtxInstruction,
    inner: Sequence[tuple[_DeclaredRegisters, int]],
    own: _DeclaredRegisters,
    module: _DeclaredRegisters,
) -> Mapping[str, str]:
    found = {}
    for name in {name for text in (*instruction.operands, instruction.guard or "") for name in names_in(text)}:
        block = next((number for names, number in reversed(inner) if declares(names, name)), None)
        if block is not None:
            found[name] = f"{name}@{block}"  # the innermost declaration hides others
        elif not declares(own, name) and declares(module, name):
            found[name] = SHARED_REGISTER  # a register of the module, which other functions may write
    return found


def _access(instruction: PtxInstruction, renamed: Mapping[str, str]) -> PtxAccess:
    mentioned = [names_in(operand) for operand in instruction.operands]
    everything = tuple(renamed.get(name, name) for names in mentioned for name in names)
    axes = tuple(name for operand in instruction.operands for name in _AXIS.findall(operand))
    guard = tuple(renamed.get(name, name) for name in names_in(instruction.guard or ""))
    is_partial = bool(mentioned) and "." in instruction.operands[0]
    if instruction.name in _SILENT:
        return PtxAccess((), everything + axes + guard, renamed, is_partial)
    if instruction.name not in _WRITES_FIRST:  # unknown: it may write whatever it mentions
        return PtxAccess(everything, everything + axes + guard, renamed, is_partial)
    first = tuple(renamed.get(name, name) for name in mentioned[0]) if mentioned else ()
    kept = first if is_partial else ()  # the rest of a vector register is kept, so it is read
    return PtxAccess(first, everything[len(first) :] + axes + kept + guard, renamed, is_partial)


RETURN = "%return_"
"""The beginning of the labels behind inlined functions."""

_MOST_OPERANDS = {"sync": 1, "red": 3}
"""Without the number of threads that take part."""


def is_inlined(instruction: PtxInstruction) -> bool:
    """Return whether this is the call or the return of a function that was inlined."""
    last = "".join(instruction.operands[-1:])
    return instruction.name in ("call", "ret") and last.startswith(RETURN)


def call_name(instruction: PtxInstruction) -> str:
    """Return the name of the function that a call calls, or the register that points to it."""
    return next((text for text in instruction.operands if not text.startswith("(")), "")


def is_indirect(kernel: PtxKernel, call: PtxInstruction) -> bool:
    """Return whether a call goes to wherever a register points."""
    declared = (s for s in (*kernel.variables, *kernel.statements) if isinstance(s, Declaration) and s.is_register)
    registers = {name: count for declaration in declared for name, count in declaration.names}
    return declares(registers, call_name(call))


def is_barrier(instruction: PtxInstruction) -> bool:
    """Return whether an instruction lets warps of a block or cluster wait for each other."""
    return instruction.name in ("bar", "barrier") and not instruction.opcode.startswith("bar.warp")


def is_aligned(instruction: PtxInstruction) -> bool:
    """Return whether all lanes of a warp execute a barrier together; otherwise each arrives for itself.

    Source: PTX ISA, "Parallel Synchronization and Communication Instructions: bar, barrier": `bar{.cta}.sync` is
        `barrier{.cta}.sync.aligned`, and in conditional code it is for conditions that all threads evaluate alike.
    """
    return instruction.name == "bar" or "aligned" in instruction.opcode.split(".")


def barrier_obstacle(instruction: PtxInstruction, threads: int | None) -> str | None:
    """Return why a barrier is no place at which all warps of a block wait; None if it is one."""
    parts = instruction.opcode.split(".")
    if "cluster" in parts:  # one SM does not hold the other blocks
        return "waits for other blocks of a cluster, and one SM is looked at; leave it out to look at the parts"
    kind = next((part for part in parts if part in _MOST_OPERANDS), None)
    if kind is None:
        return "only arrives and does not wait, which a program cannot say; use bar.sync"
    if instruction.guard:
        return "has a guard, and a warp whose lanes all fail it does not wait; use a branch around it"
    if len(instruction.operands) <= _MOST_OPERANDS[kind]:
        return None
    count = instruction.operands[1 if kind == "sync" else 2]
    # all threads of the block, rounded up to whole warps
    if threads is not None and count == str(-(-threads // 32) * 32):
        return None
    return "waits for some threads of the block; only if it is for all, --block says so"


JUMPS = frozenset({"ret", "exit", "trap", "bra", "brx"})
"""Instructions that end a block, besides guarded calls that are inlined; the first three end the warp."""

END = "exit"
"""The target of a conditional branch that ends the warp."""


def ptx_effect(instruction: PtxInstruction, access: PtxAccess, source: SourceLine | None) -> Effect:
    """Return the effect of one instruction.

    Args:
        access: what `register_accesses` says of it.
        source: where its `.loc` says that it comes from.
    """
    parts, guard = instruction.opcode.split("."), None
    if instruction.guard is not None:
        plain = instruction.guard.lstrip("!")
        guard = Guard(access.own(next(iter(names_in(plain)), plain)), is_negated=plain != instruction.guard)
    kind = Barrier.ALIGNED if is_aligned(instruction) else Barrier.BY_LANE
    exchanges = instruction.name in ("shfl", "vote", "match", "redux", "elect")
    return Effect(
        writes=access.writes,
        reads=access.reads,
        is_partial=access.is_partial,
        guard=guard,
        transfer=(transfer := _transfer(instruction)),
        target=_target(instruction) if transfer else "",
        is_uniform="uni" in parts,  # the programmer promises it
        barrier=kind if is_barrier(instruction) else None,
        joins_lanes=exchanges or parts[:2] == ["bar", "warp"],
        source=source,
    )


def _transfer(instruction: PtxInstruction) -> ControlTransfer | None:
    if is_inlined(instruction):
        return ControlTransfer.INLINED
    if instruction.name == "brx":
        return ControlTransfer.INDIRECT
    return ControlTransfer.DIRECT if instruction.name in JUMPS else None


def _target(instruction: PtxInstruction) -> str:
    if instruction.name == "call":
        return call_name(instruction)
    return (instruction.operands or ("",))[-1] if instruction.name in ("bra", "brx") else END
