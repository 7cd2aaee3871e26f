"""Which registers have a say in where a warp goes."""

from makespan.kernels.flow.dataflow import influential_registers, live_registers
from makespan.kernels.ptx import flow
from tests.ptx.texts import kernel


def test_only_what_leads_to_a_branch_has_influence() -> None:
    body = """
        mov.u32 %r1, 1; add.u32 %r2, %r1, 1; mov.u32 %r3, 5; mul.lo.u32 %r4, %r3, %r3;
        @%p2 mov.u32 %r2, %r5; setp.eq.u32 %p1, %r2, 0; @%p1 bra L; L: ret;
    """
    found = flow(kernel(body))
    assert influential_registers(found) == {"%p1", "%p2", "%r1", "%r2", "%r5"}


def test_a_register_is_live_until_it_is_surely_written() -> None:
    body = """
        mov.u32 a, 1; mov.u32 b, 2; mov.u32 d, 3;
        H: @q mov.u32 a, 4; mov.u32 b, 5; add.u32 c, a, b; setp.eq.u32 p, c, d; @p bra H; ret;
    """
    found = flow(kernel(body))
    assert live_registers(found, influential_registers(found)) == ({"q"}, {"a", "d", "q"}, set())
