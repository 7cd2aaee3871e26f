"""What control flow is told of PTX instructions."""

import pytest

from makespan.kernels.flow import Barrier, ControlTransfer, Effect, Guard, SourceLine
from makespan.kernels.ptx import flow
from tests.ptx.texts import kernel

GUARD = Guard("%p1")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("bra L;", Effect(reads=("L",), transfer=ControlTransfer.DIRECT, target="L")),
        (
            "@!%p1 bra.uni L;",
            Effect(
                (), ("L", "%p1"), guard=Guard("%p1", True), transfer=ControlTransfer.DIRECT, target="L", is_uniform=True
            ),
        ),
        ("@%p1 exit;", Effect(reads=("%p1",), guard=GUARD, transfer=ControlTransfer.DIRECT, target="exit")),
        ("bar.sync 0;", Effect(barrier=Barrier.ALIGNED)),
        ("barrier.sync 0;", Effect(barrier=Barrier.BY_LANE)),
        ("bar.warp.sync -1;", Effect(joins_lanes=True)),
        ("vote.sync.any.pred %p2, %p1, -1;", Effect(("%p2",), ("%p1",), joins_lanes=True)),
        ("mov.u32 v.x, %r1;", Effect(("v",), ("%r1", "v"), is_partial=True)),
        ("@%p1 add.u32 %r1, %r2, 1;", Effect(("%r1",), ("%r2", "%p1"), guard=GUARD)),
    ],
)
def test_effects_of_instructions(text: str, expected: Effect) -> None:
    assert flow(kernel(f"{text}\nL: ret;")).effects[0] == expected


def test_an_indirect_branch_goes_to_its_table() -> None:
    found = flow(kernel("t: .branchtargets L;\nbrx.idx a, t;\nL: ret;"))
    assert found.effects[0] == Effect(("a", "t"), ("a", "t"), transfer=ControlTransfer.INDIRECT, target="t")


def test_calls_of_functions_in_the_file_and_their_returns_are_inlined() -> None:
    found = flow(kernel("@%p1 call f;\nret;", after=".func f() { ret; }"))
    assert [effect.transfer for effect in found.effects] == [
        ControlTransfer.INLINED,
        ControlTransfer.INLINED,
        ControlTransfer.DIRECT,
    ]
    assert (found.ending(0).target, found.ending(0).guard) == ("f", GUARD)


def test_effects_know_the_line_of_the_source() -> None:
    found = flow(kernel("ret;\n.loc 1 7 1\nret;", after='.file 1 "a.cu"\n'))
    assert [effect.source for effect in found.effects] == [None, SourceLine("a.cu", 7)]
