"""Loop bounds from the code and the launch: the traps, and a model that executes single threads naively."""

import random
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from makespan.host.errors import InputError
from makespan.kernels import ptx, sass
from makespan.kernels.flow import execution, inference, runs
from makespan.kernels.flow.execution import Execution, LoopEffort
from makespan.kernels.flow.graph import Flow
from makespan.kernels.flow.grid import Launch
from makespan.kernels.flow.inference import ProvenIterations, infer_iterations
from makespan.kernels.flow.loops import BoundBasis, LoopBound, LoopNest, loop_nest
from makespan.kernels.flow.uniformity import decided_sides, uniform_branches
from makespan.kernels.ptx import flow
from makespan.kernels.ptx.module import PtxKernel
from tests.ptx_interpreter import CASES, Case, Issue, parsed
from tests.ptx_random import random_body
from tests.sass.coded import coded

SAMPLES = Path(__file__).parents[2] / "ptx"


def kernel(body: str, parameters: str = ".param .u32 n, .param .u64 wide") -> PtxKernel:
    return ptx.parse(f".version 8.0\n.target sm_80\n.visible .entry k({parameters}) {{ {body} }}", "k.ptx").kernel()


def inferred_bounds(graph: Flow, loops: LoopNest, launch: Launch, warp: int | None = None) -> dict[int, LoopBound]:
    """The bounds among what is proven, by number of the loop."""
    proven = infer_iterations(graph, loops, launch, warp).items()
    return {number: bound for number, one in proven if (bound := one.bound) is not None}


def bounds(
    found: PtxKernel | str, launch: Launch | None = None, warp: int | None = None
) -> dict[str, tuple[int, bool] | None]:
    """The maximum of each loop and whether it is exact, by label; None without a bound."""
    graph = flow(kernel(found) if isinstance(found, str) else found)
    loops = loop_nest(graph)
    bounds = inferred_bounds(graph, loops, launch or Launch(), warp)
    names = [graph.name(loop.header) for loop in loops.loops]
    return {name: (bounds[n].maximum, bounds[n].exact) if n in bounds else None for n, name in enumerate(names)}


def bound(body: str, launch: Launch | None = None, warp: int | None = None) -> tuple[int, bool] | None:
    return bounds(body, launch, warp)["L"]


def counted(first: str, step: str, test: str, kind: str = "s32") -> str:
    """do { i += step } while (test)"""
    return f"mov.{kind} i, {first}; L: add.{kind} i, i, {step}; setp.{test} p, i, BOUND; @p bra L; ret;"


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("mov.u32 i, 0; L: add.u32 i, i, 1; setp.lt.u32 p, i, 10; @p bra L; ret;", (10, True)),
        ("mov.u32 i, 0; L: add.u32 i, i, 3; setp.lt.u32 p, i, 10; @p bra L; ret;", (4, True)),
        ("mov.u32 i, 10; L: add.s32 i, i, -1; setp.gt.s32 p, i, 0; @p bra L; ret;", (10, True)),
        ("mov.u32 i, 12; L: sub.u32 i, i, 4; setp.ne.u32 p, i, 0; @p bra L; ret;", (3, True)),
        ("mov.u64 i, 0; L: add.s64 i, i, 1; setp.lt.s64 p, i, 9; @p bra L; ret;", (9, True)),
        ("mov.u32 i, 0; L: setp.ge.u32 p, i, 10; @p bra E; add.u32 i, i, 1; bra L; E: ret;", (10, True)),
        ("mov.u32 i, 128; L: shr.u32 i, i, 1; setp.ne.s32 p, i, 0; @p bra L; ret;", (8, True)),
        ("mov.u32 i, 1; L: mul.lo.u32 i, i, 3; setp.lt.u32 p, i, 100; @p bra L; ret;", (5, True)),
    ],
)
def test_counted_loops(body: str, expected: tuple[int, bool]) -> None:
    assert bound(body) == expected


def test_a_signed_test_and_an_unsigned_one_differ() -> None:
    down = "mov.u32 i, 3; L: add.s32 i, i, -1; setp.ge.{} p, i, 0; @p bra L; ret;"
    assert bound(down.format("s32")) == (4, True)
    assert bound(down.format("u32")) is None  # every unsigned number is at least 0


def test_a_counter_that_wraps_around() -> None:
    assert bound("mov.u32 i, -3; L: add.u32 i, i, 1; setp.ne.u32 p, i, 2; @p bra L; ret;") == (5, True)
    assert bound("mov.u16 i, 65530; L: add.u16 i, i, 1; setp.gt.u16 p, i, 5; @p bra L; ret;") == (6, True)
    # 16 bits come round to 0 where 32 bits would not
    assert bound("mov.u16 i, 0; L: add.u16 i, i, 4096; setp.ne.u16 p, i, 0; @p bra L; ret;") == (16, True)


def test_a_stride_that_misses_its_end() -> None:
    assert bound("mov.u32 i, 0; L: add.u32 i, i, 2; setp.ne.u32 p, i, 7; @p bra L; ret;") is None
    assert bound("mov.u16 i, 1; L: add.u16 i, i, 3; setp.ne.u16 p, i, 0; @p bra L; ret;") == (21845, True)


def test_the_type_is_that_of_the_opcode() -> None:
    # a 64-bit counter compared in its low half alone
    body = "mov.u64 i, 0xFFFFFFF0; L: add.u64 i, i, 1; cvt.u32.u64 j, i; setp.ne.u32 p, j, 0; @p bra L; ret;"
    assert bound(body) == (16, True)


def test_a_64_bit_counter_does_not_wrap_at_32() -> None:
    body = "mov.u64 i, 0xFFFFFFF0; L: add.u64 i, i, 1; setp.lt.u64 p, i, 0x100000008; @p bra L; ret;"
    assert bound(body) == (24, True)


@pytest.fixture
def few_iterations(monkeypatch: pytest.MonkeyPatch) -> None:
    """A loop may have 1,000 iterations: the 65,536 that it may have take seconds."""
    for module in (execution, inference):
        monkeypatch.setattr(module, "MAX_ITERATIONS", 1000)


@pytest.mark.usefixtures("few_iterations")
def test_no_end_within_the_limit() -> None:
    assert bound("mov.u32 i, 0; L: add.u32 i, i, 1; setp.lt.u32 p, i, 1001; @p bra L; ret;") is None
    assert bound("mov.u32 i, 0; L: add.u32 i, i, 1; setp.lt.u32 p, i, 1000; @p bra L; ret;") == (1000, True)
    assert bound("mov.u32 i, 0; L: bra L; ret;") is None


def test_a_guarded_step_may_not_happen() -> None:
    body = "mov.u32 i, 0; {} L: @q add.u32 i, i, 1; setp.lt.u32 p, i, 4; @p bra L; ret;"
    assert bound(body.format("")) is None  # q is unknown
    assert bound(body.format("setp.eq.u32 q, 1, 1;")) == (4, True)
    assert bound(body.format("setp.eq.u32 q, 1, 2;")) is None


def test_a_guarded_way_out() -> None:
    body = "mov.u32 i, 0; L: add.u32 i, i, 1; setp.eq.u32 q, i, 3; @q exit; setp.lt.u32 p, i, 9; @p bra L; ret;"
    assert bound(body) == (2, True)  # left in the middle of its third pass, after two jumps back


def test_two_ways_out() -> None:
    body = """
        mov.u32 i, 0; L: ld.global.u32 x, [a]; setp.eq.u32 q, x, 0; @q bra E;
        add.u32 i, i, 1; setp.lt.u32 p, i, 10; @p bra L; E: ret;
    """
    assert bound(body) == (9, False)
    both = """
        mov.u32 i, 0; L: setp.gt.u32 q, i, 4; @q bra E;
        add.u32 i, i, 1; setp.lt.u32 p, i, 10; @p bra L; E: ret;
    """
    assert bound(both) == (5, True)


@pytest.mark.parametrize("opcode", ["ld.global.u32 i, [i]", "atom.global.add.u32 i, [a], 1", "call (i), f, (i)"])
def test_what_comes_from_outside_is_unknown(opcode: str) -> None:
    assert bound(f"mov.u32 i, 0; L: {opcode}; add.u32 i, i, 1; setp.lt.u32 p, i, 4; @p bra L; ret;") is None


def test_an_unknown_instruction_may_write_all_that_it_mentions() -> None:
    body = "mov.u32 i, 0; L: frobnicate j, {}; add.u32 i, i, 1; setp.lt.u32 p, i, 4; @p bra L; ret;"
    assert bound(body.format("k")) == (4, True)
    assert bound(body.format("i")) is None


def test_memory_carries_nothing() -> None:
    body = """
        mov.u32 i, 0; st.local.u32 [a], i;
        L: ld.local.u32 i, [a]; add.u32 i, i, 1; st.local.u32 [a], i; setp.lt.u32 p, i, 4; @p bra L; ret;
    """
    assert bound(body) is None


def test_a_register_of_an_inner_block_is_another_one() -> None:
    body = """
        .reg .u32 i; .reg .pred p; mov.u32 i, 0;
        L: {{ .reg .u32 {}; mov.u32 i, 0; }} add.u32 i, i, 1; setp.lt.u32 p, i, 4; @p bra L; ret;
    """
    assert bound(body.format("i")) == (4, True)
    assert bound(body.format("j")) is None


def test_two_values_that_reach_a_loop() -> None:
    body = """
        mov.u32 i, {}; ld.global.u32 x, [a]; setp.eq.u32 q, x, 0; @q bra L; mov.u32 i, 5;
        L: add.u32 i, i, 1; setp.lt.u32 p, i, 10; @p bra L; ret;
    """
    assert bound(body.format(2)) is None
    assert bound(body.format(5)) == (5, True)


def test_two_values_that_may_reach_some_threads_alone() -> None:
    body = """
        mov.u32 i, 2; mov.u32 t, %tid.x; setp.gt.u32 r, t, 3; @r bra E;
        ld.global.u32 x, [a]; setp.eq.u32 q, x, 0; @q bra L; mov.u32 i, {};
        L: add.u32 i, i, 1; setp.lt.u32 p, i, 10; @p bra L; E: ret;
    """
    assert bound(body.format(1), Launch((8, 1, 1))) is None
    assert bound(body.format(2), Launch((8, 1, 1))) == (8, True)
    parted = body.replace("ld.global.u32 x, [a]; setp.eq.u32 q, x, 0;", "setp.eq.u32 q, t, 1;")
    assert bound(parted.format(1), Launch((8, 1, 1))) == (9, False)


def test_a_branch_that_the_launch_decides() -> None:
    body = """
        ld.param.u32 n, [n]; mov.u32 i, 2; setp.gt.u32 q, n, 7; @q bra L; mov.u32 i, 5;
        L: add.u32 i, i, 1; setp.lt.u32 p, i, 10; @p bra L; ret;
    """
    assert bound(body) is None
    assert bound(body, Launch(parameters={"n": 8})) == (8, True)
    assert bound(body, Launch(parameters={"n": 7})) == (5, True)


@pytest.mark.parametrize("n", range(12))
def test_an_unrolled_loop_and_its_remainder(n: int) -> None:
    found = ptx.read(SAMPLES / "nbody.ptx").kernel()
    main, rest = divmod(n, 4)
    expected = {"$L__BB0_3": (max(main, 1), main > 0), "$L__BB0_6": (max(rest, 1), rest > 0)}
    assert bounds(found, Launch(parameters={"2": n})) == expected


def test_a_loop_that_is_never_entered_says_so() -> None:
    graph = flow(ptx.read(SAMPLES / "nbody.ptx").kernel())
    found = inferred_bounds(graph, loop_nest(graph), Launch(parameters={"2": 4}))
    assert found[1][:3] == (1, False, "inferred: nbody_param_2=4, never entered")
    assert found[0].source == "inferred: nbody_param_2=4"


GRID_STRIDE = """
    mov.u32 a, %ctaid.x; mov.u32 b, %ntid.x; mov.u32 t, %tid.x; mad.lo.u32 i, a, b, t; ld.param.u32 m, [n];
    setp.ge.u32 q, i, m; @q bra E; mov.u32 c, %nctaid.x; mul.lo.u32 s, c, b;
    L: add.u32 i, i, s; setp.lt.u32 p, i, m; @p bra L; E: ret;
"""


@pytest.mark.parametrize(
    ("n", "expected"), [(128, (1, True)), (129, (2, False)), (256, (2, True)), (1000, (8, False)), (1, (1, True))]
)
def test_a_bound_that_depends_on_thread_and_block(n: int, expected: tuple[int, bool]) -> None:
    assert bound(GRID_STRIDE, Launch((64, 1, 1), (2, 1, 1), {"n": n})) == expected


def test_without_the_launch_nothing_is_known_of_threads() -> None:
    assert bound(GRID_STRIDE, Launch(parameters={"n": 100})) is None
    assert bound(GRID_STRIDE, Launch((64, 1, 1), None, {"n": 100})) is None
    assert bound(GRID_STRIDE, Launch((64, 1, 1), (2, 1, 1))) is None


def test_the_bound_of_one_warp() -> None:
    body = "mov.u32 i, %tid.x; L: add.u32 i, i, 1; setp.lt.u32 p, i, 100; @p bra L; ret;"
    launch = Launch((96, 1, 1))
    assert bound(body, launch) == (100, False)
    assert bound(body, launch, warp=2) == (36, False)
    with pytest.raises(InputError, match="no warp 3: a block of this launch has 3 warps"):
        bound(body, launch, warp=3)


def test_a_bound_in_the_last_block_alone() -> None:
    body = "mov.u32 i, %ctaid.{}; setp.eq.u32 q, i, 69; mov.u32 m, 2; @q mov.u32 m, 9; mov.u32 j, 0;"
    loop = "L: add.u32 j, j, 1; setp.lt.u32 p, j, m; @p bra L; ret;"
    assert bound(body.format("y") + loop, Launch(grid=(1, 70, 1))) == (9, False)
    assert bound(body.format("y") + loop, Launch(grid=(70, 69, 1))) == (2, True)
    assert bound(body.format("x") + loop, Launch((1024, 1, 1), (70, 1, 1))) == (9, False)


def test_many_blocks_are_taken_in_groups() -> None:
    body = """
        mov.u32 a, %ctaid.x; mov.u32 t, %tid.x; mad.lo.u32 i, a, 1024, t; shr.u32 i, i, 17; mov.u32 j, 0;
        L: add.u32 j, j, 1; setp.lt.u32 p, j, i; @p bra L; ret;
    """
    assert bound(body, Launch((1024, 1, 1), (1000, 1, 1))) == (7, False)


def test_too_many_blocks_count_as_unknown() -> None:
    body = "mov.u32 i, %ctaid.x; mov.u32 j, 0; L: add.u32 j, j, 1; setp.lt.u32 p, j, {}; @p bra L; ret;"
    launch = Launch(grid=(2**31 - 1, 1, 1))
    assert bound(body.format("i"), launch) is None
    assert bound(body.format("3"), launch) == (3, True)


TRIANGLE = """
    mov.u32 i, 0;
    O: mov.u32 j, i;
    L: add.u32 j, j, 1; setp.lt.u32 p, j, 20; @p bra L;
    add.u32 i, i, 1; setp.lt.u32 q, i, {}; @q bra O; ret;
"""


def test_an_inner_bound_that_depends_on_the_outer_loop() -> None:
    assert bounds(TRIANGLE.format(20)) == {"O": (20, True), "L": (20, False)}
    assert bounds(TRIANGLE.format(1)) == {"O": (1, True), "L": (20, True)}


def test_an_outer_loop_of_which_nothing_is_known() -> None:
    body = """
        mov.u32 i, 0; O: mov.u32 j, {}; L: add.u32 j, j, 1; setp.lt.u32 p, j, 20; @p bra L;
        add.u32 i, i, 1; ld.global.u32 x, [a]; setp.lt.u32 q, i, x; @q bra O; ret;
    """
    assert bounds(body.format("i")) == {"O": None, "L": None}
    assert bounds(body.format("4")) == {"O": None, "L": (16, True)}


def test_a_value_that_an_inner_loop_leaves_behind() -> None:
    body = """
        mov.u32 i, 0; mov.u32 j, 0;
        A: add.u32 i, i, 1; setp.lt.u32 p, i, 6; @p bra A;
        B: add.u32 j, j, 1; setp.lt.u32 p, j, i; @p bra B; ret;
    """
    assert bounds(body) == {"A": (6, True), "B": (6, True)}


def test_a_way_out_of_two_loops() -> None:
    body = """
        mov.u32 i, 0; mov.u32 k, 0;
        O: mov.u32 j, 0;
        L: add.u32 k, k, 1; setp.eq.u32 r, k, 17; @r bra E; add.u32 j, j, 1; setp.lt.u32 p, j, 5; @p bra L;
        add.u32 i, i, 1; setp.lt.u32 q, i, 100; @q bra O; E: ret;
    """
    assert bounds(body) == {"O": (3, True), "L": (4, False)}


def test_a_nest_too_large_to_run_is_taken_loop_by_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runs, "MAX_STEPS", 100_000)
    body = """
        mov.u32 i, 0; O: mov.u32 j, 0; L: add.u32 j, j, 1; setp.lt.u32 p, j, 6000; @p bra L;
        add.u32 i, i, 1; setp.lt.u32 q, i, 6000; @q bra O; ret;
    """
    assert bounds(body) == {"O": (6000, True), "L": (6000, True)}


def test_no_bound_is_made_up_when_the_steps_run_out(monkeypatch: pytest.MonkeyPatch) -> None:
    body = "mov.u32 i, 0; L: add.u32 i, i, 1; setp.lt.u32 p, i, 1000; @p bra L; ret;"
    for steps in (0, 10, 100, 1000, 4000, 10_000):
        monkeypatch.setattr(runs, "MAX_STEPS", steps)
        assert bound(body) in (None, (1000, True))
    assert bound(body) == (1000, True)


def proven(body: str, launch: Launch | None = None, warp: int | None = None) -> ProvenIterations:
    graph = flow(kernel(body))
    return infer_iterations(graph, loop_nest(graph), launch or Launch(), warp)[0]


SPREAD = "mov.u32 i, 0; mov.u32 t, %tid.x; shr.u32 t, t, 5; add.u32 t, t, 4; {} setp.lt.u32 p, i, t; @p bra L; ret;"
BY_WARP = SPREAD.format("L: add.u32 i, i, 1;")


@pytest.mark.parametrize(
    ("said", "is_exact", "disproof"),
    [
        (3, False, "at least 4 iterations (inferred: block 128x1x1)"),
        (4, False, None),
        (9, False, None),
        (3, True, "at least 4 iterations (inferred: block 128x1x1)"),
        (5, True, None),
        (8, True, "at most 7 iterations (inferred: block 128x1x1)"),
    ],
)
def test_what_contradicts_a_count_that_differs_between_threads(said: int, is_exact: bool, disproof: str | None) -> None:
    assert proven(BY_WARP, Launch((128, 1, 1))).disproof(LoopBound(said, is_exact, "", BoundBasis.USER)) == disproof


def test_one_warp_may_contradict_what_another_allows() -> None:
    of_last = proven(BY_WARP, Launch((128, 1, 1)), 3)
    assert (
        of_last.disproof(LoopBound(5, exact=False, source="", by=BoundBasis.USER))
        == "exactly 7 iterations (inferred: block 128x1x1)"
    )


def test_a_loop_that_is_never_entered_contradicts_nothing() -> None:
    body = "setp.eq.u32 q, 1, 1; @q bra E; mov.u32 i, 0; L: add.u32 i, i, 1; setp.lt.u32 p, i, 8; @p bra L; E: ret;"
    for is_exact in (False, True):
        assert proven(body).disproof(LoopBound(3, is_exact, "", BoundBasis.USER)) is None


@pytest.mark.usefixtures("few_iterations")
def test_a_loop_without_a_bound_may_still_have_a_least_count() -> None:
    long = "mov.u32 i, 0; L: add.u32 i, i, 1; setp.lt.u32 p, i, 100000; @p bra L; ret;"
    assert (proven(long).least, proven(long).bound) == (1002, None)
    # six times by all means, and then as long as a load says
    load = "mov.u32 i, 0; L: add.u32 i, i, 1; setp.lt.u32 p, i, 6; @p bra L; ld.global.u32 r, [a]; setp.ne.u32 p, r, 0;"
    assert proven(f"{load} @p bra L; ret;").least <= 6


def test_a_least_count_holds_for_every_entry() -> None:
    twice = """
        mov.u32 k, 0; O: mov.u32 n, 70000; setp.eq.u32 q, k, 1; @q mov.u32 n, 2; mov.u32 i, 0;
        L: add.u32 i, i, 1; setp.lt.u32 p, i, n; @p bra L; add.u32 k, k, 1; setp.lt.u32 q, k, 2; @q bra O; ret;
    """
    graph = flow(kernel(twice))
    found = infer_iterations(graph, loop_nest(graph), Launch())
    assert found[1].disproof(LoopBound(2, exact=False, source="", by=BoundBasis.USER)) is None


def test_one_execution_serves_every_question(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[LoopEffort] = []

    class Counted(Execution):
        def run(self, state: Any) -> None:
            made.append(self.effort)
            super().run(state)

    monkeypatch.setattr(runs, "Execution", Counted)
    graph = flow(kernel(BY_WARP))
    launch = Launch((128, 1, 1))
    for _ in range(2):
        infer_iterations(graph, loop_nest(graph), launch)
        uniform_branches(graph, launch)
        infer_iterations(graph, loop_nest(graph), launch, 1)
        decided_sides(graph, launch, 1)
    assert made == [LoopEffort.ALL, LoopEffort.ALL]  # all warps, and warp 1


def test_tries_that_come_to_nothing_get_shorter(monkeypatch: pytest.MonkeyPatch) -> None:
    limits: list[int] = []

    class Counted(Execution):
        def run(self, state: Any) -> None:
            if self.effort is LoopEffort.ALL and self.threads > 1:
                limits.append(self.steps_left)
            super().run(state)

    monkeypatch.setattr(runs, "Execution", Counted)
    monkeypatch.setattr(runs, "MAX_STEPS", 800)
    rounds = counted("0", "1", "ne.u32", "u32").replace("BOUND", "t")  # lane 0 goes all the way round
    graph = flow(kernel(f"mov.u32 t, %laneid; {rounds}"))
    for warp in range(4):
        infer_iterations(graph, loop_nest(graph), Launch((128, 1, 1)), warp)
    assert limits == [800, 400, 200, 100]


def test_a_kernel_without_loops_has_no_bounds() -> None:
    assert bounds("ret;") == {}


SAMPLE_LAUNCHES = {
    "bitonic": Launch((32, 1, 1)),
    "matmul_tiled": Launch((16, 16, 1), (8, 8, 1), {"3": 128}),
    "nbody": Launch((256, 1, 1), (1, 1, 1), {"2": 63}),
    "nearest_point": Launch((64, 1, 1), (1, 1, 1), {"5": 33}),
    "spmv_csr": Launch((64, 1, 1), (16, 1, 1), {"5": 1000}),
    "mandelbrot": Launch((16, 16, 1), (4, 4, 1)),
}

SAMPLE_BOUNDS = """
bitonic              $L__BB0_1  exactly 5 iterations    inferred: from the code alone
fir                  $L__BB0_1  exactly 16 iterations   inferred: from the code alone
mandelbrot           $L__BB0_1  at most 63 iterations   inferred: from the code alone
matmul_tiled         $L__BB0_3  exactly 8 iterations    inferred: matmul_tiled_param_3=128
nbody                $L__BB0_3  exactly 15 iterations   inferred: nbody_param_2=63
nbody                $L__BB0_6  exactly 3 iterations    inferred: nbody_param_2=63
nearest_point        $L__BB0_2  exactly 32 iterations   inferred: nearest_point_param_5=33
nearest_point_paper  Loop       -                       -
reduction            $L__BB0_1  exactly 8 iterations    inferred: from the code alone
spmv_csr             $L__BB0_3  -                       -
"""


def sample_table() -> str:
    """A row for each loop of the sample kernels."""
    rows = []
    for path in sorted(SAMPLES.glob("*.ptx")):
        graph = flow(ptx.read(path).kernel())
        loops = loop_nest(graph)
        found = inferred_bounds(graph, loops, SAMPLE_LAUNCHES.get(path.stem, Launch()))
        for number, loop in enumerate(loops.loops):
            bound = found.get(number)
            said = (bound.iterations, bound.source) if bound else ("-", "-")
            rows.append(f"{path.stem:<19}  {graph.name(loop.header):<9}  {said[0]:<22}  {said[1]}".rstrip())
    return "\n".join(rows)


def test_most_loops_of_the_samples_need_no_given_bound() -> None:
    assert sample_table() == SAMPLE_BOUNDS.strip()


# ---- against a naive thread: random nests of loops, executed instruction by instruction with Python's own numbers


class Thread:
    """Executes one thread; a load gives a random number."""

    def __init__(self, found: PtxKernel, tid: int, ctaid: int, choose: random.Random, most: int = 4000) -> None:
        graph = flow(found)
        loops = loop_nest(graph)
        self.values = {"%tid.x": tid, "%ctaid.x": ctaid}
        self.seen: list[tuple[int, int]] = []
        """The back edges that each entry took, by number of the loop."""
        self.sides: list[tuple[int, int]] = []
        self.choose = choose
        heads = {loop.header: number for number, loop in enumerate(loops.loops)}
        running: dict[int, int] = {}
        block, last = 0, -1
        while block != graph.exit and most:
            most -= 1
            for number in [n for n in running if block not in loops.loops[n].blocks]:
                self.seen.append((number, running.pop(number)))
            if (head := heads.get(block)) is not None:
                running[head] = running[head] + 1 if last in loops.loops[head].blocks and head in running else 0
            for instruction in (graph.code[number] for number in graph.numbers(block)):
                self.execute(instruction)
            after = graph.blocks[block].successors
            side = 0
            if len(after) == 2:
                side = 0 if self.holds(graph.code[graph.blocks[block].stop - 1].guard or "") else 1
                self.sides.append((block, side))
            last, block = block, after[side]
        # an entry that is not yet over has taken at least so many
        self.unfinished = list(running.items()) if block != graph.exit else []
        if block == graph.exit:
            self.seen += running.items()

    def holds(self, guard: str) -> bool:
        return not guard or bool(self.values[guard.lstrip("!")]) != guard.startswith("!")

    def read(self, text: str) -> int:
        return self.values[text] if text in self.values else int(text) % 2**32

    def execute(self, instruction: ptx.PtxInstruction) -> None:
        name, _, rest = instruction.opcode.partition(".")
        is_address = bool(instruction.operands) and instruction.operands[0] in ("a", "b")
        if name in ("bra", "ret") or is_address or not self.holds(instruction.guard or ""):
            return
        target, *sources = instruction.operands
        if name == "ld":
            self.values[target] = self.choose.choice([0, 1, 5, 2**32 - 1, self.choose.getrandbits(32)])
            return
        a, b = ([self.read(text) for text in sources] + [0])[:2]
        x, y = (v - 2**32 if rest.endswith("s32") and v >= 2**31 else v for v in (a, b))
        match name:
            case "mov":
                found = a
            case "add":
                found = a + b
            case "sub":
                found = a - b
            case "mul":
                found = a * b
            case "and":
                found = a & b
            case "min":
                found = min(x, y)
            case "shr":
                found = a >> min(b, 32)
            case _:
                assert name == "setp"
                found = {"lt": x < y, "ne": x != y, "ge": x >= y, "gt": x > y, "eq": x == y}[rest.partition(".")[0]]
        self.values[target] = int(found) % 2**32


def check_against_threads(seed: int) -> bool:
    """Whether a bound was there to be checked."""
    found = kernel(random_body(seed), ".param .u64 data")
    graph = flow(found)
    loops = loop_nest(graph)
    block, grid = 6, 2
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(runs, "MAX_STEPS", 5_000)
        proven = infer_iterations(graph, loops, Launch((block, 1, 1), (grid, 1, 1)))
    bounds = {number: known for number, one in proven.items() if (known := one.bound) is not None}
    choose = random.Random(seed)
    for _ in range(8):
        thread = Thread(
            found, choose.choice([0, 1, block - 1, choose.randrange(block)]), choose.randrange(grid), choose
        )
        for number, repeats in thread.seen + thread.unfinished:
            if number in proven:
                assert proven[number].is_entered
                made = repeats + loops.loops[number].is_bottom_tested
                true = LoopBound(made, exact=True, source="a thread", by=BoundBasis.CODE)
                assert (number, repeats) in thread.unfinished or proven[number].disproof(true) is None, (seed, number)
            if number in bounds:
                most = bounds[number].maximum - loops.loops[number].is_bottom_tested
                assert repeats <= most, (seed, graph.name(loops.loops[number].header), repeats, bounds[number])
                if bounds[number].exact and (number, repeats) not in thread.unfinished:
                    assert repeats == most, (seed, graph.name(loops.loops[number].header), repeats, bounds[number])
    return bool(bounds)


@given(st.integers(0, 2**32))
@settings(max_examples=15, deadline=None)
def test_no_thread_breaks_an_inferred_bound(seed: int) -> None:
    check_against_threads(seed)


def test_many_random_kernels_have_inferred_bounds() -> None:
    assert sum(check_against_threads(seed) for seed in range(20)) > 8


@pytest.mark.soak
def test_no_thread_breaks_an_inferred_bound_in_a_long_campaign() -> None:
    for seed in range(5_000):
        check_against_threads(seed)


# ---- against the interpreter


def scalar_parameters(case: Case) -> dict[str, int | float]:
    """The arguments that are numbers, by position."""
    return {
        str(position): value if isinstance(value, float) else int(value)
        for position, value in enumerate(case.prepare().arguments)
        if isinstance(value, int | float | np.integer)
    }


def repeats_by_lane(graph: Flow, loops: LoopNest, issues: Sequence[Issue]) -> Iterator[tuple[int, int]]:
    """How often each lane took the back edges of a loop, for every entry: the visits to its head after the first."""
    block_of = {n: b for b in range(graph.exit) for n in range(graph.blocks[b].first, graph.blocks[b].stop)}
    heads = [graph.blocks[loop.header].first for loop in loops.loops]
    assert len(set(heads)) == len(heads)
    for lane in range(32):
        running: dict[int, int] = {}
        for issue in issues:
            if issue.active >> lane & 1 and issue.routine == graph.kernel.name:
                for number in [n for n in running if block_of[issue.index] not in loops.loops[n].blocks]:
                    yield number, running.pop(number)
                if issue.index in heads:
                    number = heads.index(issue.index)
                    running[number] = running.get(number, -1) + 1
        yield from running.items()


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_no_execution_breaks_an_inferred_bound(case: Case) -> None:
    if not case.is_here:
        pytest.skip("the corpus is not beside this checkout")
    graph = flow(parsed(case.path).kernel(case.kernel))
    loops = loop_nest(graph)
    if not loops.loops:
        return
    launch = Launch(case.block, case.grid, scalar_parameters(case))
    trace = case.run()
    for warp, issues in enumerate(trace.warps):
        of_warp = inferred_bounds(graph, loops, launch, warp)
        for bounds in (inferred_bounds(graph, loops, launch), of_warp):
            for number, repeats in repeats_by_lane(graph, loops, issues):
                if number in bounds:
                    most = bounds[number].maximum - loops.loops[number].is_bottom_tested
                    assert repeats == most if bounds[number].exact else repeats <= most


def test_no_step_is_spent_on_a_loop_that_counts_from_what_is_unknown(monkeypatch: pytest.MonkeyPatch) -> None:
    """So another loop, of which all is known, keeps enough of them, although something else is counted as well."""
    monkeypatch.setattr(runs, "MAX_STEPS", 2000)
    unknown = (
        "ld.global.u32 i, [at]; mov.u32 k, 0; A: sub.u32 i, i, 1; add.u32 k, k, 1; setp.ne.u32 q, i, 0; @q bra A;"
        " setp.eq.u32 r, k, 5; @r ret;"
    )
    assert bounds(f"{unknown} {counted('0', '1', 'lt.s32').replace('BOUND', '64')}") == {"A": None, "L": (64, True)}


def test_no_step_is_spent_on_a_loop_whose_test_has_a_constant_beside_what_is_unknown(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """As that of every comparison in machine code: PT is true. The predicate may be known elsewhere in the loop."""
    monkeypatch.setattr(runs, "MAX_STEPS", 2000)
    control = "B------:R-:W-:-:S01"
    lines = [
        "MOV R0, RZ", "PLOP3.LUT P0, PT, PT, PT, PT, 0x80, 0x0", "IADD3 R0, R0, 0x1, RZ",
        "ISETP.LT.AND P0, PT, R0, c[0x0][0x160], PT", "@P0 BRA 0x10",
        "MOV R1, RZ", "IADD3 R1, R1, 0x1, RZ", "ISETP.LT.AND P0, PT, R1, 0x40, PT", "@P0 BRA 0x60", "EXIT",
    ]  # fmt: skip
    graph = sass.flow(coded("\n".join(f"{control} {line}" for line in lines)))
    assert inferred_bounds(graph, loop_nest(graph), Launch()) == {
        1: LoopBound(64, True, "inferred: from the code alone", BoundBasis.CODE)
    }
