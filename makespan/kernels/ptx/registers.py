"""The registers of PTX: those that every thread has, and those that an instruction reads and writes.

An instruction that is not known to write only its first operand is taken to write every register that it mentions.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple, TypeAlias

from makespan.kernels.flow import SHARED_REGISTER, InstructionSet, ThreadRegisters
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
