"""Which operation an instruction is, for machines that time them: what opcodes.tsv says, and what it leaves open."""

import re
from functools import cache

from makespan.host.errors import UnsupportedError
from makespan.kernels.ptx.isa import NO_UNIT, PtxOpcodeRow, opcodes, prefixes, unknown_opcode
from makespan.kernels.ptx.module import Declaration, PtxInstruction, PtxKernel, names_in
from makespan.kernels.ptx.suffixes import unknown_suffix

_SPACES = {"shared": "shared", "local": "local", "param": "constant", "const": "constant"}
_HALF = frozenset({"f16", "f16x2", "bf16", "bf16x2"})
_FLOAT = _HALF | {"f32", "f32x2", "f64", "tf32"}
_SPECIAL = re.compile(
    r"%(tid|ntid|ctaid|nctaid|laneid|warpid|nwarpid|smid|nsmid|gridid|lanemask_(eq|le|lt|ge|gt)|clock(_hi|64)?|pm[0-7](_64)?"
    r"|envreg([0-9]|[12][0-9]|3[01])|globaltimer(_lo|_hi)?|(n?clusterid|cluster_n?ctaid|cluster_n?ctarank"
    r"|is_explicit_cluster|reserved_smem_offset_[a-z0-9]+|total_smem_size|aggr_smem_size|dynamic_smem_size"
    r"|current_graph_exec))"
)


def operations(kernel: PtxKernel) -> tuple[str, ...]:
    """Return the operation of every instruction, in text order: a name in `machine.OPERATIONS`.

    Raises:
        ParseError: an opcode that the table does not have.
        UnsupportedError: an instruction that takes a time that nobody bounds.

    >>> from makespan.kernels.ptx import parse
    >>> operations(parse(".entry k() { mov.u32 %r1, %tid.x; add.f32 %f1, %f2, %f3; ret; }", "k.ptx").kernel())
    ('special', 'fp32', 'branch')
    """
    return tuple(_operation(kernel, instruction) for instruction in kernel.instructions)


def expands(instruction: PtxInstruction) -> bool:
    """Return whether the assembler makes many machine instructions of it, while it counts as one."""
    written = _of_opcode(instruction.opcode)
    return written is not None and written.endswith("+") and "approx" not in instruction.opcode.split(".")


def _operation(kernel: PtxKernel, instruction: PtxInstruction) -> str:
    found = _of_opcode(instruction.opcode)
    if found is None:
        remedy = "only a machine without operations takes it, with --classes FILE or --unknown C"
        raise unknown_opcode(kernel.file, instruction, remedy)
    if found == NO_UNIT:
        raise UnsupportedError(
            f"{kernel.file}:{instruction.line}: `{instruction}`: nobody bounds how long it takes, so no machine that"
            " times operations takes it"
        )
    sources = (name for operand in instruction.operands[1:] for name in names_in(operand))
    if instruction.name in ("mov", "cvt") and any(_SPECIAL.fullmatch(name) for name in sources):
        return "special"
    if found == "constant" and "param" in instruction.opcode.replace("::", ".").split("."):
        return _of_parameter(kernel, instruction)
    return found.removesuffix("+")


def _of_parameter(kernel: PtxKernel, instruction: PtxInstruction) -> str:
    """Return the operation of a load of a parameter: parameters of the entry are constants, those of a call are not.

    All lanes read a parameter that the text names from one address; an address in a register may differ. Parameters of
    other functions, and those that an entry declares for its calls, lie in the memory of a thread.

    Source: PTX ISA, "Parameter State Space", Device Function Parameters.
    """
    own = {name for declared in kernel.parameters or () if kernel.is_entry for name, _ in declared.names}
    names = names_in(instruction.operands[1])
    if len(names) == 1 and names[0] in own:
        return "parameter"
    declared = any(isinstance(each, Declaration) and each.space == ".param" for each in kernel.statements)
    # an address in a register may be that of a parameter of the entry, or of one that it declares for a call
    return "local" if not kernel.is_entry or (declared and not own.intersection(names)) else "constant"


@cache
def _of_opcode(opcode: str) -> str | None:
    """Return the operation of an opcode, a "+" kept; None if the table does not have it."""
    table = opcodes() if unknown_suffix(opcode) is None else {}
    row = next((table[prefix] for prefix in prefixes(opcode) if prefix in table), None)
    return None if row is None else _operation_of_row(row, frozenset(opcode.replace("::", ".").split(".")[1:]))


def _operation_of_row(row: PtxOpcodeRow, suffixes: frozenset[str]) -> str:
    """What a row leaves to the suffixes: types and state spaces."""
    plain, _, floating = row.operation.partition("/")
    found = floating if floating and suffixes & _FLOAT else plain
    if "f64" in suffixes and row.f64 != NO_UNIT:
        return "fp64" + "+" * found.endswith("+")
    if found == "fp32" and suffixes & _HALF and not suffixes & {"f32", "f32x2"}:
        return "fp16"
    if found == "int" and "pred" in suffixes:
        return "predicate"
    if found == "global" and "global" not in suffixes:
        return next((operation for space, operation in _SPACES.items() if space in suffixes), found)
    return "shared" if found == "atomic" and "shared" in suffixes and "global" not in suffixes else found
