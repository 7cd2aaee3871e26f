"""Uniform and decided branches: the traps, and what the interpreter sees lanes do."""

import contextlib

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from makespan.host.errors import InputError
from makespan.kernels import ptx
from makespan.kernels.flow import runs, uniformity
from makespan.kernels.flow.branches import SIDES
from makespan.kernels.flow.graph import Flow
from makespan.kernels.flow.grid import Launch
from makespan.kernels.flow.instruction_set import Guard
from makespan.kernels.flow.uniformity import decided_sides, uniform_branches
from makespan.kernels.ptx import PtxFlow, flow
from tests.ptx_interpreter import CASES, Case, KernelFault, Trace, parsed, run
from tests.ptx_random import random_module

LINE = Launch((256, 1, 1), (4, 1, 1))


def graph(body: str, outside: str = "") -> PtxFlow:
    entry = f".visible .entry k(.param .u32 n, .param .u64 wide) {{ {body} }}"
    return flow(ptx.parse(f".version 8.0\n.target sm_80\n{outside}\n{entry}", "k.ptx").kernel())


def targets(found: Flow, blocks: frozenset[int]) -> set[str]:
    """The labels to which these branches lead."""
    return {found.ending(block).target for block in blocks}


def uniform(body: str, launch: Launch | None = None, outside: str = "") -> set[str]:
    """The labels to which the uniform branches lead."""
    found = graph(body, outside)
    return targets(found, uniform_branches(found, launch or Launch()))


def is_uniform(value: str, launch: Launch | None = None, outside: str = "") -> bool:
    """Whether a branch on `x == 1234` is uniform, after instructions that give x its value."""
    test = "setp.eq.u32 p, x, 1234; @p bra L; add.u32 y, y, 1; L: ret;"
    return "L" in uniform(f"ld.param.u32 m, [n]; {value} {test}", launch, outside)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("mov.u32 x, 5;", True),
        ("mov.u32 x, m;", True),
        ("mov.u32 x, %ctaid.x;", True),
        ("mov.u32 x, %ntid.y;", True),
        ("add.u32 x, %tid.x, m;", False),
        ("add.u32 x, %laneid, m;", False),
        ("mov.u32 x, %clock;", False),
        ("mad.lo.u32 x, %ctaid.x, m, m;", True),
        ("mad.lo.u32 x, %ctaid.x, m, %tid.x;", False),
        ("add.cc.u32 y, %laneid, 1; addc.u32 x, m, m;", False),
        ("vote.sync.ballot.b32 x, q, -1;", True),
        ("vote.sync.ballot.b32 x, q, %laneid;", False),
        ("redux.sync.add.s32 x, %laneid, -1;", True),
        ("shfl.sync.idx.b32 x, m, 0, 31, -1;", False),
        ("activemask.b32 x;", False),
        ("ld.global.u32 x, [a];", False),  # the address is a register that nobody wrote
        ("ld.param.u64 a, [wide]; ld.global.u32 x, [a+4];", True),
        ("ld.param.u64 a, [wide]; ld.global.nc.L1::no_allocate.u32 x, [a];", True),
        ("ld.param.u64 a, [wide]; ld.volatile.global.u32 x, [a];", False),
        ("ld.param.u64 a, [wide]; ld.relaxed.gpu.global.u32 x, [a];", False),
        ("ld.param.u64 a, [wide]; ld.local.u32 x, [a];", False),
        ("ld.param.u64 a, [wide]; ld.u32 x, [a];", False),
        ("ld.param.u64 a, [wide]; atom.global.add.u32 x, [a], 1;", False),
        (".shared .u32 s[4]; ld.shared.u32 x, [s+4];", True),
        (".shared .u32 s[4]; ld.shared.u32 x, [%laneid];", False),
        ("call (x), f, (m);", False),
        ("frobnicate.u32 x, m;", False),
        ("@p mov.u32 x, 1;", False),
    ],
)
def test_where_values_come_from(value: str, expected: bool) -> None:
    assert is_uniform(value) == expected


def test_parameters_of_a_function_may_differ() -> None:
    body = "{ ld.param.u32 x, [n]; setp.eq.u32 p, x, 1; @p bra L; L: ret; }"
    (function,) = ptx.parse(f".version 8.0\n.target sm_80\n.func f(.param .u32 n) {body}").functions
    assert uniform_branches(flow(function), Launch()) == frozenset()


@pytest.mark.parametrize("tid", ["mov.u32 t, %tid.x;", "mad.lo.u32 t, %ctaid.x, %ntid.x, %tid.x;"])
@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("shr.u32 x, t, 5;", True),
        ("shr.u32 x, t, 4;", False),
        ("and.b32 x, t, -32;", True),
        ("and.b32 x, t, 48;", False),
    ],
)
def test_the_number_of_the_warp_is_uniform(tid: str, value: str, expected: bool) -> None:
    # compared with something unknown, so that only the bits can tell
    body = f"{tid} {value} add.u32 x, x, m;"
    assert is_uniform(body, LINE) == expected
    assert not is_uniform(body)
    assert is_uniform(body, Launch((64, 4, 1), (4, 1, 1))) == expected
    assert not is_uniform(body, Launch((48, 2, 1), (4, 1, 1)))
    assert is_uniform(body, Launch((16, 16, 1), (4, 1, 1)))  # %tid.x has but four bits, and so has %ntid.x


def test_carries_reach_the_number_of_the_warp_unless_the_rest_is_a_multiple_of_32() -> None:
    body = "mad.lo.u32 x, %ctaid.x, {}, %tid.x; shr.u32 x, x, 5; add.u32 x, x, m;"
    assert [is_uniform(body.format(size), LINE) for size in (1, 16, 32, 96, "m")] == [False, False, True, True, False]


def test_rows_of_a_block() -> None:
    row = "mov.u32 x, %tid.y; add.u32 x, x, m;"
    assert is_uniform(row, Launch((32, 8, 1)))
    assert not is_uniform(row, Launch((16, 16, 1)))
    assert is_uniform("mov.u32 x, %tid.y; shr.u32 x, x, 1; add.u32 x, x, m;", Launch((16, 16, 1)))
    assert is_uniform("mov.u32 x, %tid.z; add.u32 x, x, m;", Launch((16, 2, 4)))


def test_a_comparison_on_the_border_of_a_warp() -> None:
    body = "ld.param.u32 m, [n]; mov.u32 t, %tid.x; {} setp.{} p, t, {}; @p bra L; L: ret;"
    shift = "shl.b32 m, m, 5; add.u32 t, t, m;"
    for test, bound, expected in [
        ("lt.u32", 64, True),
        ("gt.u32", 63, True),
        ("lt.u32", 63, False),
        ("eq.u32", 64, False),
    ]:
        assert (uniform(body.format(shift, test, bound), LINE) == {"L"}) == expected
    assert uniform(body.format("", "lt.s32", 17), LINE) == set()
    assert uniform(body.format("", "eq.s32", 300), LINE) == {"L"}  # never true


def test_a_side_that_writes_makes_values_differ_where_the_lanes_meet() -> None:
    body = """
        mov.u32 x, 1; setp.eq.u32 q, %laneid, {}; @q bra J; {}
        J: setp.eq.u32 p, x, 1; @p bra L; L: ret;
    """
    assert uniform(body.format(3, "mov.u32 x, 2;")) == set()
    assert uniform(body.format(3, "mov.u32 y, 2;")) == {"L"}
    assert uniform(body.replace("%laneid", "%ctaid.x").format(3, "mov.u32 x, 2;")) == {"J", "L"}


def test_inside_one_side_a_value_is_still_uniform() -> None:
    body = """
        setp.eq.u32 q, %laneid, 3; @q bra J; ld.param.u32 x, [n]; setp.eq.u32 p, x, 1; @p bra L; add.u32 y, y, 1;
        L: add.u32 y, y, 2; J: ret;
    """
    assert uniform(body) == {"L"}


def test_guarded_writes() -> None:
    body = "mov.u32 x, 1; setp.eq.u32 q, {}, 3; @q mov.u32 x, 2; setp.eq.u32 p, x, 1; @p bra L; L: ret;"
    assert uniform(body.format("%laneid")) == set()
    assert uniform(body.format("%ctaid.x")) == {"L"}


TEMPORAL = """
    mov.u32 i, 0;
    H: add.u32 i, i, 1; setp.lt.u32 q, i, 7; @q bra U; U: setp.lt.u32 p, i, {}; @p bra H;
    {} setp.eq.u32 r, i, 5; @r bra L; L: ret;
"""


def test_a_counter_is_uniform_in_a_loop_that_lanes_leave_at_different_times_but_not_behind_it() -> None:
    assert uniform(TEMPORAL.format("%laneid", "")) == {"U"}
    assert uniform(TEMPORAL.format("%ctaid.x", "")) == {"U", "H", "L"}
    assert uniform(TEMPORAL.format("%laneid", "mov.u32 i, 5;")) == {"U", "L"}


def test_a_break_before_a_uniform_way_out() -> None:
    body = """
        mov.u32 i, 0;
        H: setp.eq.u32 p, i, %laneid; @p bra B; add.u32 i, i, 1; setp.lt.u32 q, i, 40; @q bra H;
        bra E;
        B: setp.eq.u32 r, i, 5; @r bra L; L: add.u32 y, y, 1;
        E: setp.eq.u32 s, i, 6; @s bra M; M: ret;
    """
    assert uniform(body) == {"H"}


def test_a_continue_skips_part_of_an_iteration() -> None:
    body = """
        mov.u32 i, 0; mov.u32 j, 0;
        H: add.u32 i, i, 1; setp.gt.u32 e, i, 50; @e bra E; setp.eq.u32 p, %laneid, i; @p bra H;
        add.u32 j, j, 1; setp.eq.u32 q, j, 9; @q bra H; bra H;
        E: ret;
    """
    found = graph(body)
    assert [found.ending(b).guard for b in sorted(uniform_branches(found, Launch()))] == [Guard("e")]


def test_a_value_carried_around_an_outer_loop() -> None:
    body = """
        mov.u32 i, 0; mov.u32 o, 0;
        O: mov.u32 k, 0;
        H: add.u32 i, i, 1; add.u32 k, k, 1; setp.lt.u32 p, k, {}; @p bra H;
        setp.eq.u32 q, i, 30; @q bra N; N: add.u32 o, o, 1; setp.lt.u32 r, o, 4; @r bra O; ret;
    """
    assert uniform(body.format("%laneid")) == {"O"}
    assert uniform(body.format("%ctaid.x")) == {"O", "H", "N"}


def test_lanes_that_end_do_not_come_back() -> None:
    body = "mov.u32 x, 1; setp.eq.u32 q, %laneid, 3; @q exit; mov.u32 x, 2; setp.eq.u32 p, x, 1; @p bra L; L: ret;"
    found = graph(body)
    assert [found.ending(b).guard for b in uniform_branches(found, Launch())] == [Guard("p")]


def test_sides_that_share_a_block_before_they_meet() -> None:
    body = """
        mov.u32 x, 1; ld.param.u32 m, [n]; setp.eq.u32 q, %laneid, 3; @q bra A;
        mov.u32 x, 2; setp.eq.u32 r, m, 1; @r bra E;
        A: setp.eq.u32 p, x, 1; @p bra L; L: add.u32 y, y, 1;
        E: ret;
    """
    assert uniform(body) == {"E"}


def test_the_promise_of_the_compiler_is_believed() -> None:
    assert uniform("setp.eq.u32 p, %laneid, 3; @p bra.uni L; L: ret;") == {"L"}


def test_registers_outside_the_kernel_may_differ() -> None:
    assert not is_uniform("mov.u32 x, 5;", outside=".reg .u32 x;")


def test_a_limit_on_the_work_makes_branches_divergent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(uniformity._Divergence, "solve", lambda _: False)
    assert uniform(TEMPORAL.format("%ctaid.x", "")) == set()


# ---- decided branches


SPECIALISED = "mov.u32 t, %tid.x; shr.u32 w, t, 5; setp.eq.u32 p, w, 0; @p bra L; add.u32 y, y, 1; L: ret;"


def test_code_for_one_warp_alone() -> None:
    found = graph(SPECIALISED)
    assert SIDES == ("taken", "fall")
    assert decided_sides(found, LINE, 0) == {0: 0}
    assert decided_sides(found, LINE, 1) == {0: 1}
    assert decided_sides(found, Launch(), 0) == {}
    assert uniform_branches(found, LINE) == {0}
    assert uniform_branches(found, Launch((16, 16, 1))) == {0}  # 16 is less than 32: never another warp
    with pytest.raises(InputError, match="no warp 8"):
        decided_sides(found, LINE, 8)


GUARD = """
    mad.lo.u32 i, %ctaid.x, %ntid.x, %tid.x; ld.param.u32 m, [n]; setp.ge.u32 p, i, m;
    @p bra E; add.u32 y, y, 1; E: ret;
"""


def test_a_guard_that_every_thread_passes() -> None:
    found = graph(GUARD)
    assert decided_sides(found, Launch((256, 1, 1), (4, 1, 1), {"n": 1024}), 7) == {0: 1}
    assert decided_sides(found, Launch((256, 1, 1), (4, 1, 1), {"n": 1023}), 7) == {}
    assert decided_sides(found, Launch((256, 1, 1), (4, 1, 1), {"n": 1023}), 6) == {0: 1}
    assert decided_sides(found, Launch((256, 1, 1), (4, 1, 1), {"n": 992}), 7) == {}
    assert uniform_branches(found, Launch((256, 1, 1), (4, 1, 1), {"n": 992})) == {0}
    assert uniform_branches(found, Launch((256, 1, 1), (4, 1, 1), {"n": 1023})) == frozenset()
    assert decided_sides(found, Launch((256, 1, 1), (4, 1, 1), {"n": 0}), 3) == {0: 0}
    assert decided_sides(found, Launch((256, 1, 1), (2**20, 1, 1), {"n": 2**28}), 0) == {}  # too many to try


def test_a_partial_warp_has_fewer_lanes() -> None:
    body = "setp.lt.u32 p, %tid.x, 40; @p bra L; L: ret;"
    assert decided_sides(graph(body), Launch((40, 1, 1)), 1) == {0: 0}
    assert decided_sides(graph(body), Launch((41, 1, 1)), 1) == {}


def test_a_branch_behind_a_decided_one_is_not_executed() -> None:
    body = "ld.param.u32 m, [n]; setp.eq.u32 p, m, 0; @p bra L; @q bra M; M: ret; L: ret;"
    assert decided_sides(graph(body), Launch(parameters={"n": 0}), 0) == {0: 0}


def test_every_execution_counts() -> None:
    body = "mov.u32 i, 0; H: setp.eq.u32 q, i, {}; @q bra L; L: add.u32 i, i, 1; setp.lt.u32 p, i, {}; @p bra H; ret;"
    assert decided_sides(graph(body.format(3, 5)), Launch(), 0) == {}
    assert decided_sides(graph(body.format(9, 5)), Launch(), 0) == {1: 1}
    assert decided_sides(graph(body.format(0, 1)), Launch(), 0) == {1: 0, 2: 1}


def test_what_all_warps_decide_alike_needs_no_block() -> None:
    body = "ld.param.u32 m, [n]; setp.gt.u32 p, m, 5; @p bra E; add.u32 m, m, 1; E: ret;"
    assert decided_sides(graph(body), Launch(parameters={"n": 7}), None) == {0: 0}
    assert decided_sides(graph(body), Launch(parameters={"n": 5}), None) == {0: 1}
    assert decided_sides(graph(body), Launch(), None) == {}
    by_warp = "mov.u32 t, %tid.x; setp.lt.u32 p, t, 32; @p bra E; add.u32 t, t, 1; E: ret;"
    assert decided_sides(graph(by_warp), Launch((64, 1, 1)), None) == {}
    assert decided_sides(graph(by_warp), Launch((64, 1, 1)), 0) == {0: 0}


def test_nothing_is_decided_when_the_steps_run_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runs, "MAX_STEPS", 3)
    assert decided_sides(graph(SPECIALISED), LINE, 0) == {}
    assert uniform("setp.eq.u32 p, %tid.x, 300; @p bra L; L: ret;", LINE) == set()


# ---- against the interpreter


def check(found: Flow, trace: Trace, launch: Launch) -> int:
    """Check every branch that a trace issued; how many were uniform or decided."""
    block_at = {found.blocks[b].stop - 1: b for b in range(found.exit) if found.is_branch(b)}
    alike, checked = uniform_branches(found, launch), 0
    for warp, issues in enumerate(trace.warps):
        fixed = decided_sides(found, launch, warp)
        for issue in issues:
            block = block_at.get(issue.index) if issue.routine == found.kernel.name else None
            if block in alike:
                assert issue.enabled in (0, issue.active), str(found.last(block))
                checked += 1
            if block in fixed:
                assert issue.enabled == (issue.active if fixed[block] == 0 else 0), str(found.last(block))
                checked += 1
    return checked


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_uniform_and_decided_branches_are_so_in_an_execution(case: Case) -> None:
    if not case.is_here:
        pytest.skip("the corpus is not beside this checkout")
    found = flow(parsed(case.path).kernel(case.kernel))
    numbers = {
        str(position): value if isinstance(value, float) else int(value)
        for position, value in enumerate(case.prepare().arguments)
        if isinstance(value, int | float | np.integer)
    }
    trace = case.run()
    check(found, trace, Launch(case.block, case.grid, numbers))
    check(found, trace, Launch())


def check_random(seed: int) -> int:
    module = ptx.parse(random_module(seed))
    data = np.random.default_rng(seed).integers(0, 8, 64).astype(np.uint32)
    checked = 0
    with pytest.MonkeyPatch.context() as patch, contextlib.suppress(KernelFault):  # endless ones
        patch.setattr(runs, "MAX_STEPS", 5_000)
        trace = run(module, None, block=(48, 1, 1), arguments=[data], max_instructions=4000, order="random", seed=seed)
        for launch in (Launch(), Launch((48, 1, 1)), Launch((48, 1, 1), (1, 1, 1))):
            checked += check(flow(module.kernel()), trace, launch)
    return checked


@given(st.integers(0, 2**32))
@settings(max_examples=25, deadline=None)
def test_uniform_branches_of_random_kernels_are_uniform(seed: int) -> None:
    check_random(seed)


def test_random_kernels_have_uniform_branches() -> None:
    assert sum(check_random(seed) for seed in range(25)) > 200


@pytest.mark.soak
def test_uniform_branches_of_random_kernels_are_uniform_in_a_long_campaign() -> None:
    for seed in range(5_000):
        check_random(seed)
