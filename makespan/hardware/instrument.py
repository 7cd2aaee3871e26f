"""A copy of a PTX kernel that records when each of its threads begins and ends, and on which SM.

A thread finds its record, of `RECORD_BYTES`, waits at a barrier for its block, reads the clock of the SM, and stores it
with the numbers of the SM and of the slot of its warp. Before it ends, wherever that is, it reads the clock once more.
All of this is code of the kernel like any other: a bound of the copy includes what was added.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cache

from makespan.host.errors import UnsupportedError
from makespan.kernels import ptx
from makespan.kernels.ptx import Declaration, PtxInstruction, PtxKernel, PtxLabel, PtxModule, Statement

RECORD_BYTES = 32
"""The bytes of a record: the clock at the start (8), the numbers of SM and slot (4 each), the clock at the end (8), and
8 unused bytes."""

PREFIX = "makespan_"

_ENDS = ("ret", "exit")
_HOW = "measure a kernel without it"

_ADDED = """
.entry added(.param .u64 makespan_records)
{
    .reg .u64 %makespan_at, %makespan_clock;
    .reg .u32 %makespan_a, %makespan_b, %makespan_c;
    mov.u32 %makespan_a, %ctaid.z;
    mov.u32 %makespan_b, %nctaid.y;
    mov.u32 %makespan_c, %ctaid.y;
    mad.lo.u32 %makespan_a, %makespan_a, %makespan_b, %makespan_c;
    mov.u32 %makespan_b, %nctaid.x;
    mov.u32 %makespan_c, %ctaid.x;
    mad.lo.u32 %makespan_a, %makespan_a, %makespan_b, %makespan_c;
    mov.u32 %makespan_b, %ntid.z;
    mov.u32 %makespan_c, %tid.z;
    mad.lo.u32 %makespan_a, %makespan_a, %makespan_b, %makespan_c;
    mov.u32 %makespan_b, %ntid.y;
    mov.u32 %makespan_c, %tid.y;
    mad.lo.u32 %makespan_a, %makespan_a, %makespan_b, %makespan_c;
    mov.u32 %makespan_b, %ntid.x;
    mov.u32 %makespan_c, %tid.x;
    mad.lo.u32 %makespan_a, %makespan_a, %makespan_b, %makespan_c;
    ld.param.u64 %makespan_at, [makespan_records];
    cvta.to.global.u64 %makespan_at, %makespan_at;
    mul.wide.u32 %makespan_clock, %makespan_a, 32;
    add.s64 %makespan_at, %makespan_at, %makespan_clock;
    bar.sync 0;
    mov.u64 %makespan_clock, %clock64;
    st.global.u64 [%makespan_at], %makespan_clock;
    mov.u32 %makespan_a, %smid;
    mov.u32 %makespan_b, %warpid;
    st.global.v2.u32 [%makespan_at+8], {%makespan_a,%makespan_b};
makespan_end:
    mov.u64 %makespan_clock, %clock64;
    st.global.u64 [%makespan_at+16], %makespan_clock;
}
"""
"""The added code: a parameter, registers, the instructions before those of a thread and, from the label on, after."""


@dataclass(frozen=True, slots=True)
class RecordedModule:
    """A module whose kernel `name` takes one parameter more and keeps records.

    `ends` counts the places at which it ends.
    """

    module: PtxModule
    name: str
    ends: int


def add_records(module: PtxModule, name: str | None = None) -> RecordedModule:
    """Return the module with records in this kernel, or in its only one. Other kernels stay as they are.

    Raises:
        InputError: no such kernel.
        UnsupportedError: a kernel whose threads cannot all keep records. The message says why.

    >>> from pathlib import Path
    >>> harness = add_records(ptx.read(Path("ptx/vecadd.ptx")))
    >>> harness.name, harness.ends
    ('vecadd', 1)
    """
    kernel = module.kernel(name)
    _check(module, kernel)
    body = tuple(_body(kernel))
    # the parameter is last, so that the positions of all others stay
    copy = replace(kernel, parameters=(*(kernel.parameters or ()), *(_added_kernel().parameters or ())), body=body)
    items = tuple(copy if item is kernel else item for item in module.items)
    made = replace(module, items=items)
    ends = sum(s.name in _ENDS for s in body if isinstance(s, PtxInstruction))
    return RecordedModule(replace(made, text=ptx.render(made)), kernel.name, ends)


def _check(module: PtxModule, kernel: PtxKernel) -> None:
    """Refuse a kernel with threads that begin or end where no record is kept, or that cannot be measured on its own."""
    where = f"{kernel.source}: kernel {kernel.name}"
    # added registers and labels must not meet names of the kernel
    if PREFIX in ptx.render(module):
        raise UnsupportedError(
            f"{where}: names with {PREFIX} are those of the records: give the kernel as it was before"
        )
    if cluster := next((text for text in kernel.attributes if "cluster" in text), None):
        raise UnsupportedError(f"{where}: {cluster}: a cluster runs on several SMs, whose clocks differ; {_HOW}")
    for function in module.functions:
        if end := next((i for i in function.instructions if i.name == "exit"), None):
            raise UnsupportedError(
                f"{function.source}:{end.line}: function {function.name}: exit ends a thread where it keeps no record;"
                f" {_HOW}"
            )
    for instruction in kernel.instructions:
        if instruction.name in ("trap", "brkpt"):
            raise UnsupportedError(f"{where}, line {instruction.line}: {instruction.name} ends the launch; {_HOW}")
        if instruction.name == "call" and any(word in str(instruction) for word in ("cudaLaunchDevice", "cudaGraph")):
            raise UnsupportedError(f"{where}, line {instruction.line}: a launch from the GPU; {_HOW}")


def _body(kernel: PtxKernel) -> Iterator[Statement]:
    """Yield the statements with records: the declarations first, which stand before what is executed."""
    added = _added_kernel()
    cut = next(n for n, s in enumerate(added.statements) if isinstance(s, PtxLabel))
    begin, end = added.statements[:cut], added.instructions[-2:]
    first = next((n for n, s in enumerate(kernel.statements) if not isinstance(s, Declaration)), 0)
    yield from (*kernel.statements[:first], *begin)
    for statement in kernel.statements[first:]:
        if isinstance(statement, PtxInstruction) and statement.name in _ENDS:
            yield from (replace(each, guard=statement.guard) for each in end)
        yield statement
    last = next((s for s in reversed(kernel.statements) if isinstance(s, PtxInstruction | PtxLabel)), None)
    if not isinstance(last, PtxInstruction) or last.guard is not None or last.name not in (*_ENDS, "bra"):
        yield from (*end, PtxInstruction("ret"))  # a body that runs out ends as with ret


@cache
def _added_kernel() -> PtxKernel:
    return ptx.parse(_ADDED, "records").kernel()
