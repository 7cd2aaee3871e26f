"""What instructions read and write."""

import pytest

from makespan.kernels import ptx
from makespan.kernels.flow import SHARED_REGISTER
from makespan.kernels.ptx import PtxKernel, register_accesses


def kernel(body: str, outside: str = "") -> PtxKernel:
    text = f".version 8.0\n.target sm_80\n{outside}\n.visible .entry k() {{ {body} }}"
    return ptx.parse(text, "k.ptx").kernel()


@pytest.mark.parametrize(
    ("text", "writes", "reads"),
    [
        ("add.s32 %r1, %r2, %tid.x;", {"%r1"}, {"%r2", "%tid", "%tid.x"}),
        ("@!%p1 setp.lt.and.s32 %p2|%p3, %r1, 5, %p4;", {"%p2", "%p3"}, {"%r1", "%p4", "%p1"}),
        ("st.global.u32 [%rd1+4], %r1;", set(), {"%rd1", "%r1"}),
        ("ld.global.v2.u32 {%r1, %r2}, [%rd1];", {"%r1", "%r2"}, {"%rd1"}),
        ("mov.b64 {%r1, %r2}, %rd1;", {"%r1", "%r2"}, {"%rd1"}),
        ("frobnicate.u32 %r1, %r2;", {"%r1", "%r2"}, {"%r1", "%r2"}),
        ("call (%r1), f, (%r2);", {"%r1", "f", "%r2"}, {"%r1", "f", "%r2"}),
        ("mov.u32 v.x, %r1;", {"v"}, {"v", "%r1"}),
    ],
)
def test_reads_and_writes(text: str, writes: set[str], reads: set[str]) -> None:
    (found,) = register_accesses(kernel(text))
    assert (set(found.writes), set(found.reads)) == (writes, reads)


def test_registers_of_inner_blocks_are_their_own() -> None:
    body = ".reg .u32 a; mov.u32 a, 1; { .reg .u32 a; mov.u32 a, 2; } { .reg .u32 a; mov.u32 a, 3; } mov.u32 a, 4;"
    assert [found.writes for found in register_accesses(kernel(body))] == [("a",), ("a@1",), ("a@2",), ("a",)]


def test_registers_outside_the_kernel_are_never_known() -> None:
    found = register_accesses(kernel("mov.u32 a, 1; { .reg .u32 a; mov.u32 a, 2; }", outside=".reg .u32 a;"))
    assert [access.writes for access in found] == [(SHARED_REGISTER,), ("a@1",)]
