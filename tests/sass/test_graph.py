"""The control flow of machine code: blocks, subroutines, where lanes meet; and refusals by name."""

from contextlib import nullcontext
from dataclasses import replace

import pytest

from makespan.host.errors import InputError, UnsupportedError
from makespan.kernels.flow import Barrier, ControlTransfer, KernelWarps, Launch, SourceLine, TimedCode, reconvergences
from makespan.kernels.flow.barriers import refuse_parted_barriers
from makespan.kernels.sass import SassFlow, flow, loops
from makespan.kernels.sass.module import Address, KernelResources, SassInstruction, SassKernel
from makespan.model.machine import PAPER
from makespan.model.program import Program


def kernel(*lines: str, jumps: dict[int, tuple[int, ...]] | None = None) -> SassKernel:
    code = []
    for number, line in enumerate(lines):
        guard, _, text = line.removeprefix("@").partition(" ") if line.startswith("@") else ("", "", line)
        opcode, _, operands = text.partition(" ")
        listed = tuple(filter(None, operands.replace(" ", "").split(",")))
        code.append(SassInstruction(Address(16 * number), opcode, listed, guard or None))
    return SassKernel("k", "k.cubin", "k.cubin", 86, tuple(code), KernelResources(8), jumps=jumps or {})


def shape(found: SassFlow) -> list[tuple[str | None, int, int, tuple[int, ...]]]:
    return [(block.label, block.first, block.stop, block.successors) for block in found.blocks]


IF = (
    "ISETP.GE.AND P0, PT, R0, R1, PT",  # 0x0
    "BSSY B0, 0x50",  # 0x10
    "@P0 BRA 0x40",  # 0x20
    "IADD3 R0, R0, 0x1, RZ",  # 0x30
    "BSYNC B0",  # 0x40
    "EXIT",  # 0x50
)


def test_a_block_begins_at_every_target_and_behind_every_jump() -> None:
    assert shape(flow(kernel(*IF))) == [
        ("0x0", 0, 3, (2, 1)),
        ("0x30", 3, 4, (2,)),
        ("0x40", 4, 5, (3,)),
        ("0x50", 5, 6, (4,)),
    ]


def test_a_flow_is_its_own_flow() -> None:
    found = flow(kernel(*IF))
    assert flow(found) is found


def test_lanes_meet_where_the_innermost_bssy_says_behind_its_bsync() -> None:
    found = flow(kernel(*IF))
    assert found.meetings == {0: 3}
    (rule,) = reconvergences(found)
    assert rule.points == {0: 3}
    assert rule.drops


def test_lanes_without_a_bssy_never_meet_again() -> None:
    found = flow(kernel("@P0 BRA 0x20", "IADD3 R0, R0, 0x1, RZ", "EXIT"))
    assert found.meetings == {0: found.exit}


def test_a_bssy_without_a_bsync_lets_nobody_wait() -> None:
    found = flow(kernel("BSSY B0, 0x30", "@P0 BRA 0x30", "IADD3 R0, R0, 0x1, RZ", "EXIT"))
    assert found.meetings == {0: found.exit}


def test_a_guarded_exit_is_a_branch_to_the_end() -> None:
    found = flow(kernel("@!P0 EXIT", "EXIT"))
    assert shape(found) == [("0x0", 0, 1, (2, 1)), ("0x10", 1, 2, (2,))]
    guard = found.effects[0].guard
    assert guard is not None
    assert (guard.register, guard.is_negated, found.is_branch(0)) == ("P0", True, True)


def test_code_that_cannot_be_reached_is_left_out() -> None:
    assert len(flow(kernel("EXIT", "BRA 0x10", "NOP")).code) == 1


def test_a_uniform_branch_has_its_predicate_among_its_operands() -> None:
    effect = flow(kernel("BRA.U !UP0, 0x20", "NOP", "EXIT")).effects[0]
    assert effect.is_uniform
    assert (effect.guard, effect.target) == (("UP0", True), "0x20")


@pytest.mark.parametrize("branch", ["@P0 BRA P1, 0x20", "BRA.DIV UR4, 0x20"])
def test_a_branch_that_no_single_predicate_decides_may_go_either_way(branch: str) -> None:
    found = flow(kernel(branch, "NOP", "EXIT"))
    assert found.blocks[0].successors == (2, 1)
    assert (found.effects[0].guard, found.effects[0].transfer) == (None, ControlTransfer.INDIRECT)
    assert not found.is_branch(0)


def test_an_indirect_branch_goes_where_the_file_says() -> None:
    code = ("BRX R2, -0x10", "NOP", "EXIT", "EXIT")
    assert flow(kernel(*code, jumps={0: (0x20, 0x30)})).blocks[0].successors == (1, 2)
    with pytest.raises(UnsupportedError, match="0x0: `BRX R2, -0x10;` goes wherever a register points"):
        flow(kernel(*code))


CALLED = (
    "MOV R4, 0x20",  # 0x0
    "CALL.REL.NOINC 0x60",  # 0x10
    "MOV R4, 0x40",  # 0x20
    "@P0 CALL.REL.NOINC 0x60",  # 0x30
    "EXIT",  # 0x40
    "NOP",  # 0x50
    "IMAD.MOV.U32 R2, RZ, RZ, R4",  # 0x60
    "MOV R3, 0x0",  # 0x70
    "RET.REL.NODEC R2, 0x0",  # 0x80
)


def test_each_call_has_a_copy_of_the_subroutine_behind_it() -> None:
    found = flow(kernel(*CALLED))
    assert shape(found) == [
        ("0x0", 0, 2, (1,)),
        ("0x60", 2, 5, (2,)),
        ("0x20", 5, 7, (3, 4)),
        ("0x60", 7, 10, (4,)),
        ("0x40", 10, 11, (5,)),
    ]
    assert [found.effects[number].transfer for number in (1, 4, 6)] == [ControlTransfer.DIRECT] * 3
    assert found.is_plain


def test_loops_around_and_within_calls_are_bounded_by_the_code() -> None:
    code = (
        "MOV R5, RZ",  # 0x0
        "MOV R4, 0x30",  # 0x10
        "CALL.REL.NOINC 0x70",  # 0x20
        "IADD3 R5, R5, 0x1, RZ",  # 0x30
        "ISETP.GE.U32.AND P0, PT, R5, 0x3, PT",  # 0x40
        "@!P0 BRA 0x10",  # 0x50
        "EXIT",  # 0x60
        "MOV R6, RZ",  # 0x70
        "IADD3 R6, R6, 0x1, RZ",  # 0x80
        "ISETP.GE.U32.AND P0, PT, R6, 0x5, PT",  # 0x90
        "@!P0 BRA 0x80",  # 0xa0
        "MOV R7, RZ",  # 0xb0
        "MOV R6, R4",  # 0xc0
        "RET.REL.NODEC R6, 0x0",  # 0xd0
    )
    bounds = {info.label: info.bound for info in loops(kernel(*code))}
    assert {label: bound and (bound.maximum, bound.exact) for label, bound in bounds.items()} == {
        "0x10": (3, True),
        "0x80": (5, True),
    }


@pytest.mark.parametrize("zero", ["IMAD.MOV.U32 R3, RZ, RZ, 0x0", "HFMA2.MMA R3, -RZ, RZ, 0, 0", "MOV R3, RZ"])
def test_a_return_is_proven_however_a_zero_is_written(zero: str) -> None:
    assert len(flow(kernel(*(zero if line.startswith("MOV R3") else line for line in CALLED))).blocks) == 5


@pytest.mark.parametrize(
    ("line", "instead"),
    [
        (0, "MOV R4, 0x30"),
        (0, "@P0 MOV R4, 0x20"),
        (6, "IMAD.MOV.U32 R2, RZ, RZ, R5"),
        (6, "IADD3 R2, R4, RZ, RZ"),
        (7, "MOV R3, 0x1"),
        (7, "NOP"),
        (8, "RET.REL.NODEC R2, 0x10"),
    ],
)
def test_a_return_that_is_not_proven_to_come_back_is_refused(line: int, instead: str) -> None:
    code = [*CALLED]
    code[line] = instead
    with pytest.raises(UnsupportedError, match=r"0x80: `RET.* is not proven to return behind its call"):
        flow(kernel(*code))


def test_recursion_is_refused() -> None:
    with pytest.raises(UnsupportedError, match=r"0x0: `CALL.REL.NOINC 0x0;` is recursive"):
        flow(kernel("CALL.REL.NOINC 0x0", "EXIT"))


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        (("BREAK P0, B0", "EXIT"), "lets lanes leave"),
        (("YIELD", "EXIT"), "take turns"),
        (("JMP 0x100",), "outside of the kernel"),
        (("BRX.FOO R2, 0x0",), "in a way that is not known"),
        (("CALL.ABS.NOINC 0x0", "EXIT"), "in a way that is not known"),
        (("CALL.REL.NOINC 0x90", "EXIT"), "outside of the kernel"),
        (("CALL.REL.NOINC R4, 0x10", "EXIT"), "calls what a register says"),
        (("RET.REL.NODEC R2, 0x0",), "returns from the kernel"),
        (("BRA !PT, 0x10", "EXIT"), "condition that never holds"),
        (("WARPSYNC.COLLECTIVE R5, 0x10", "EXIT"), "in a way that is not known"),
        (("BMOV.32 B0, R4", "EXIT"), "sets which lanes"),
        (("BSYNC B0", "EXIT"), "closes another BSSY"),
        (("BSSY B0, 0x30", "BSYNC B0", "NOP", "EXIT"), "does not stand before 0x30"),
        (("BSSY B0, 0x30", "BSSY B1, 0x40", "BSYNC B0", "NOP", "EXIT"), "closes another BSSY"),
        (("BSSY B0, 0x20", "BSSY B0, 0x20", "EXIT"), "opens what may be open"),
        (("@P0 BRA 0x20", "BSSY B0, 0x30", "NOP", "EXIT"), "with different BSSYs open"),
        (("BSSY B0, 0x20", "BMOV.32.CLEAR RZ, B0", "EXIT"), "changes which lanes"),
        (("FROB R1", "EXIT"), "is not known with these operands"),
    ],
)
def test_what_is_not_followed_is_refused_by_name(lines: tuple[str, ...], message: str) -> None:
    with pytest.raises(UnsupportedError, match=f"^k.cubin:0x[0-9a-f]+: .*{message}"):
        flow(kernel(*lines))


@pytest.mark.parametrize("lines", [("BRA 0x10",), ("NOP",), ("BRA 0x8", "EXIT")])
def test_a_way_that_leaves_the_code_is_an_error(lines: tuple[str, ...]) -> None:
    with pytest.raises(InputError):
        flow(kernel(*lines))


@pytest.mark.parametrize("waits", ["BAR.SYNC.DEFER_BLOCKING 0x0", "WARPSYNC 0xffffffff"])
def test_what_parted_lanes_may_wait_at_one_by_one_is_refused(waits: str) -> None:
    inside, behind = [*IF], [*IF[:-1], waits, "EXIT"]
    inside[3] = waits
    refuse_parted_barriers(flow(kernel(*behind)), {0}, reconvergences(flow(kernel(*behind))))
    found = flow(kernel(*inside))
    with pytest.raises(UnsupportedError, match="one after another"):
        refuse_parted_barriers(found, {0}, reconvergences(found))


@pytest.mark.parametrize(
    ("line", "kind"),
    [
        ("bar.sync 0;", Barrier.ALIGNED),
        ("@p bar.cta.red.popc.u32 a, 0, q; // barrier.sync", Barrier.ALIGNED),
        ("barrier.sync.aligned 0;", Barrier.ALIGNED),
        ("bar.sync 0; barrier.sync 0;", Barrier.BY_LANE),
        ("barrier.cta.sync 0;", Barrier.BY_LANE),
        ("bar.warp.sync -1;", Barrier.BY_LANE),
        ("// bar.sync 0;", Barrier.BY_LANE),
        ("call %bar.sync;", Barrier.BY_LANE),
    ],
)
def test_a_barrier_is_aligned_if_the_line_of_its_ptx_says_so(line: str, kind: Barrier) -> None:
    assert flow(with_ptx(kernel("BAR.SYNC 0x0", "EXIT"), f"first\n{line}")).effects[0].barrier is kind


def test_a_barrier_is_one_for_each_lane_where_nobody_says_more() -> None:
    found = with_ptx(kernel("BAR.SYNC 0x0", "EXIT"), "first\nbar.sync 0;")
    for other in (
        replace(found, ptx_text=None),
        replace(found, ptx_text="bar.sync 0;"),
        kernel("BAR.SYNC 0x0", "EXIT"),
    ):
        assert flow(other).effects[0].barrier is Barrier.BY_LANE


EARLY = ("@P0 EXIT", "BAR.SYNC 0x0", "EXIT")
LATE = ("IADD3 R0, R0, 0x1, RZ", "@P0 BRA 0x0", "BAR.SYNC 0x0", "EXIT")
TWICE = ("@P0 BRA 0x30", "BAR.SYNC 0x0", "EXIT", "BAR.SYNC 0x0", "EXIT")


@pytest.mark.parametrize(("lines", "is_fine"), [(EARLY, True), (LATE, False), (TWICE, False)])
def test_lanes_are_together_at_an_aligned_barrier_if_one_side_alone_leads_to_any(
    lines: tuple[str, ...], is_fine: bool
) -> None:
    for found, fine in ((with_ptx(kernel(*lines), "first\nbar.sync 0;"), is_fine), (kernel(*lines), False)):
        code = flow(found)
        parting = {block for block in range(code.exit) if code.has_sides(block)}
        with nullcontext() if fine else pytest.raises(UnsupportedError, match="one after another"):
            refuse_parted_barriers(code, parting, reconvergences(code))


def with_ptx(found: SassKernel, text: str) -> SassKernel:
    """All of whose instructions come from line 2 of a text."""
    code = tuple(replace(instruction, ptx=SourceLine("k.ptx", 2)) for instruction in found.code)
    return replace(found, code=code, ptx_text=text)


def test_lanes_that_part_issue_both_sides_and_each_its_bsync() -> None:
    code = TimedCode(flow(kernel(*IF)), PAPER, {}, tuple("CSCCYC"))
    warps = KernelWarps(code, Launch(), ())
    assert words(warps.program()) == {"CSCYC", "CSCCYC", "CSCYCYC", "CSCCYYC"}


def words(program: Program) -> set[str]:
    found, waiting = set[str](), [("", start) for start in program.starts]
    while waiting:
        before, at = waiting.pop()
        if at == len(program.places):
            found.add(before)
        else:
            waiting += [(before + program.places[at].unit, after) for after in program.places[at].successors]
    return found
