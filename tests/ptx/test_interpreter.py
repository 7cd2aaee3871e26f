"""The interpreter of PTX: what kernels compute, what their warps issue, and what stops them."""

import ast
import math
import re
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests import ptx_interpreter
from tests.ptx_interpreter import CASES, Case, KernelFault, Pointer, Trace, UnsupportedInstruction, run
from tests.ptx_interpreter.flow import meeting_points
from tests.ptx_interpreter.values import F32, F64, LANES, TYPES, Array, fma, rounded

ORDERS = ("taken-first", "fall-first", "random")
SAMPLES = Path(__file__).parents[2] / "ptx"
KERNELS = Path(__file__).parents[1] / "data" / "kernels"
LANE = np.arange(LANES)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_kernel_computes_what_numpy_does(case: Case) -> None:
    if not case.is_here:
        pytest.skip("the corpus is not beside this checkout")
    case.run()


@pytest.mark.parametrize("case", [c for c in CASES if c.kernel in ("spmv_csr", "bitonicSort", "reduction")], ids=str)
def test_order_of_divergent_sides_changes_neither_results_nor_counts(case: Case) -> None:
    if not case.is_here:
        pytest.skip("the corpus is not beside this checkout")
    first, *others = (case.run(order) for order in ORDERS)  # type: ignore[arg-type]
    for other in others:
        assert [sorted(i.index for i in warp) for warp in other.warps] == [
            sorted(i.index for i in warp) for warp in first.warps
        ]


def test_there_are_enough_cases() -> None:
    assert len([case for case in CASES if case.is_here]) >= 20
    assert len([case for case in CASES if case.name.startswith("corpus")]) >= 5


# ---- own kernels: every kind of divergence


def _choose(v: list[int]) -> list[int]:
    def one(i: int) -> int:
        other = v[(i + v[i]) & 31]
        cases: dict[int, Callable[[], int]] = {
            0: lambda: 1,
            1: lambda: v[i] ^ other,
            2: lambda: other.bit_count(),
            3: lambda: int(other / 3),
            4: lambda: int(math.fmod(-other, 5)) + 100,
            5: lambda: v[i] + 100,
            6: lambda: 32 - (6 + v[(i + 5) & 31]).bit_length(),
            7: lambda: v[(i + 6) & 31] << 3,
        }
        return cases.get(v[i], lambda: -1)()

    return [one(i) for i in range(32)]


def _collatz(v: list[int]) -> list[int]:
    def one(value: int) -> int:
        steps = 0
        for _ in range(200):
            if value == 1:
                break
            steps += 1
            odd = value % 2
            value = 3 * value + 1 if odd else value // 2
            steps += 1000 if odd and value > 100000 else 0
        return steps

    return [one(value) for value in v]


def _fibonacci(v: list[int]) -> list[int]:
    def one(n: int) -> int:
        return n if n < 2 else one(n - 1) + one(n - 2)

    return [one(n) for n in v]


def _tangled(v: list[int]) -> list[int]:
    def one(v: int) -> int:
        steps, inside = 0, bool(v & 1)
        while inside or steps < 40:
            if not inside:
                v = (v * 5 + 3 + 2**31) % 2**32 - 2**31
                if v & 7 == 6:
                    return v * 100 + steps
            inside = False
            v = (v >> 1) + steps
            steps += 1
            if math.fmod(v, 11) == 0:
                break
        return (v + 1000) * 100 + steps

    return [(one(value) + 2**31) % 2**32 - 2**31 for value in v]


def _table(v: list[int]) -> list[int]:
    return [(value + 10, value - 10, value * 10, value - 10)[value & 3] for value in v]


def _pointer(v: list[int]) -> list[int]:
    doubled = [value if value > 20 else 2 * value for value in v]
    return [lane + (value if value & 1 else value >> 1) for lane, value in enumerate(doubled)]


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize(
    ("file", "kernel", "values", "reference"),
    [
        ("control", "choose", [k % 10 for k in range(32)], _choose),
        ("control", "collatz", [703, *range(1, 32)], _collatz),
        ("control", "recurse", [k % 7 for k in range(32)], _fibonacci),
        ("control", "tangled", list(range(32)), _tangled),
        ("jumps", "table", list(range(50, 82)), _table),
        ("jumps", "pointer", list(range(5, 37)), _pointer),
    ],
)
def test_lanes_that_part_compute_what_a_thread_alone_does(
    file: str, kernel: str, values: list[int], reference: Callable[[list[int]], list[int]], order: Any
) -> None:
    out = np.zeros(32, np.int32)
    run(KERNELS / f"{file}.ptx", kernel, arguments=[np.array(values, np.int32), out], order=order, seed=5)
    assert out.tolist() == reference(values)


@pytest.mark.parametrize("order", ORDERS)
def test_local_memory_is_private_to_a_lane(order: Any) -> None:
    values = np.random.default_rng(2).integers(-99, 99, (32, 8), dtype=np.int32)
    out = np.zeros_like(values)
    run(KERNELS / "control.ptx", "sort_locally", arguments=[values, out], order=order)
    assert np.array_equal(out, np.sort(values, axis=1))


def test_ballots_and_barriers_compact_a_block() -> None:
    values = np.random.default_rng(2).integers(0, 99, 128, dtype=np.int32)
    out, count = np.zeros(128, np.int32), np.zeros(1, np.int32)
    run(KERNELS / "control.ptx", "compact", block=(128, 1, 1), arguments=[values, out, count])
    odd = values[values % 2 == 1]
    assert count[0] == len(odd)
    assert np.array_equal(out[: len(odd)], odd)


def test_structures_pass_through_calls_and_wide_types_convert() -> None:
    given_ = np.linspace(-2, 2, 32, dtype=np.float32)
    sums, products = np.zeros(32), np.zeros(32, np.int64)
    run(KERNELS / "control.ptx", "convert", arguments=[given_, sums, products])
    for b, total, product in zip(given_, sums, products, strict=True):
        expected, whole = float(b), int(np.float32(b * np.float32(1e6)))
        for k in range(3):
            part = np.float32(b + np.float32(k))
            expected = expected / 3 + float(part * part)
            whole = _wrapped(whole * _wrapped(int(np.float32(b * np.float32(1000))), 16) - int(part), 64)
        tail = math.sqrt(abs(expected)) - math.floor(expected) * 0.5 + int(b) % 256
        assert total == pytest.approx(expected + tail, rel=1e-6)
        quotient = int(Fraction(whole, 7))
        rest = whole - int(Fraction(whole, 1000)) * 1000
        high = (whole * 0x123456789ABCDEF) >> 64
        assert product == _wrapped(quotient + rest + high + (whole >> 5), 64)


def _wrapped(value: int, bits: int) -> int:
    return (value + (1 << bits - 1)) % (1 << bits) - (1 << bits - 1)


# ---- the trace


def _entry(body: str, before: str = "", parameters: str = ".param .u64 out") -> str:
    return f".version 8.0\n.target sm_80\n.address_size 64\n{before}\n.visible .entry k({parameters})\n{{\n{body}\n}}\n"


def test_trace_tells_every_issue_with_its_lanes() -> None:
    a, c = np.zeros(40, np.float32), np.zeros(40, np.float32)
    trace = run(SAMPLES / "vecadd.ptx", "vecadd", block=(50, 1, 1), arguments=[a, a, c, 40])
    first, second = trace.warps
    assert [i.index for i in first] == [i.index for i in second] == list(range(22))
    assert {i.active for i in first} == {2**32 - 1}
    assert [i.active for i in second] == [2**18 - 1] * 10 + [2**8 - 1] * 11 + [2**18 - 1]
    assert second[9].enabled == 2**18 - 2**8  # the lanes that jump over the addition
    assert [first[0].line, first[-1].line] == [28, 52]


def test_sides_of_a_branch_run_in_the_order_asked_for() -> None:
    body = """.reg .pred %p; .reg .u32 %r; mov.u32 %r, %tid.x; setp.lt.u32 %p, %r, 8; @%p bra T;
    add.u32 %r, %r, 1; bra.uni J; T: add.u32 %r, %r, 2; J: add.u32 %r, %r, 3; ret;"""
    low, rest = 2**8 - 1, 2**32 - 2**8
    taken = run(_entry(body), "k", arguments=[None]).warps[0][3:]
    assert [(i.index, i.active) for i in taken] == [(5, low), (3, rest), (4, rest), (6, low | rest), (7, low | rest)]
    fall = run(_entry(body), "k", arguments=[None], order="fall-first").warps[0][3:]
    assert [(i.index, i.active) for i in fall] == [(3, rest), (4, rest), (5, low), (6, low | rest), (7, low | rest)]
    orders = {
        tuple(i.index for i in run(_entry(body), "k", arguments=[None], order="random", seed=seed).warps[0])
        for seed in range(8)
    }
    assert len(orders) == 2


def test_lanes_meet_where_all_ways_do_whatever_stands_between_in_the_text() -> None:
    body = """.reg .pred %p; .reg .u32 %r; mov.u32 %r, %tid.x; setp.lt.u32 %p, %r, 8; @%p bra B;
    bra.uni X; M: ret; X: add.u32 %r, %r, 1; bra.uni M; B: sub.u32 %r, %r, 1; bra.uni X;"""
    issues = run(_entry(body), "k", arguments=[None]).warps[0]
    assert [i.index for i in issues] == [0, 1, 2, 7, 8, 3, 5, 6, 4]
    assert [i.active for i in issues[-3:]] == [2**32 - 1] * 3


BY_LANE = """.reg .pred %p; .reg .u32 %r<4>; .reg .u64 %rd<3>; ld.param.u64 %rd1, [out]; mov.u32 %r0, %tid.x;
    mad.wide.u32 %rd1, %r0, 4, %rd1; setp.lt.u32 %p, %r0, 5;"""


@pytest.mark.parametrize("leave", ["ret", "exit"])
def test_lanes_that_left_are_not_missed_at_barriers(leave: str) -> None:
    out = np.zeros(64, np.uint32)
    text = _entry(f"{BY_LANE} @%p {leave}; bar.sync 0; st.global.u32 [%rd1], 7; ret;")
    run(text, "k", block=(64, 1, 1), arguments=[out])
    assert out.tolist() == [0] * 5 + [7] * 59


def test_a_barrier_opens_only_when_the_slowest_warp_is_there() -> None:
    body = f"""{BY_LANE} setp.lt.u32 %p, %r0, 32; @%p bra W; mov.u32 %r1, 0; L: add.u32 %r1, %r1, 1;
    setp.lt.u32 %p, %r1, 2000; @%p bra L; st.shared.u32 [s], %r1;
    W: bar.sync 0; ld.shared.u32 %r2, [s]; st.global.u32 [%rd1], %r2; ret;"""
    out = np.zeros(64, np.uint32)
    run(_entry(body, before=".shared .u32 s;"), "k", block=(64, 1, 1), arguments=[out])
    assert out.tolist() == [2000] * 64


def test_warps_may_wait_for_each_other_in_loops() -> None:
    body = f"""{BY_LANE} setp.ge.u32 %p, %r0, 32; ld.param.u64 %rd2, [out]; @%p bra S;
    L: ld.volatile.global.u32 %r1, [%rd2]; setp.eq.u32 %p, %r1, 0; @%p bra L; ret; S: st.global.u32 [%rd2], 1; ret;"""
    trace = run(_entry(body), "k", block=(64, 1, 1), arguments=[np.zeros(1, np.uint32)])
    assert trace.iterations(0)["L"] > 100


def test_an_exit_in_a_function_ends_the_thread() -> None:
    function = """.func f(.param .b32 x) { .reg .pred %p; .reg .u32 %r; ld.param.u32 %r, [x];
    setp.lt.u32 %p, %r, 9; @%p exit; ret; }"""
    body = f"""{BY_LANE} {{ .param .b32 a; st.param.b32 [a], %r0; call f, (a); }} st.global.u32 [%rd1], 7; ret;"""
    out = np.zeros(32, np.uint32)
    run(_entry(body, before=function), "k", arguments=[out])
    assert out.tolist() == [0] * 9 + [7] * 23


@pytest.mark.parametrize(("mask", "letters"), [(0, [0, 1, 2, 3, 4, 5]), (2**32 - 1, [0, 2, 3, 4, 5]), (7, None)])
def test_registers_can_be_given_where_the_kernel_leaves_them_open(mask: int, letters: list[int] | None) -> None:
    memory = np.arange(4, dtype=np.uint32)
    given_: dict[str, Any] = {
        "%p1": mask >> LANE & 1,
        "%rd1": Pointer(memory),
        "%rd2": Pointer(memory),
        "%r1": 1,
        "%r2": 2,
    }
    trace = run(SAMPLES / "divergent.ptx", "divergent", registers=given_)
    assert [i.index for i in trace.warps[0]] == (letters or [0, 1, 2, 3, 4, 5])
    assert trace.warps[0][1].active == 2**32 - 1 - mask if mask != 2**32 - 1 else True


def test_a_warp_iterates_as_often_as_its_longest_lane() -> None:
    lengths = np.random.default_rng(11).integers(0, 20, 64)
    row_ptr = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32)
    col, val = np.zeros(row_ptr[-1], np.int32), np.ones(row_ptr[-1], np.float32)
    arguments: list[Any] = [row_ptr, col, val, np.ones(1, np.float32), np.zeros(64, np.float32), 64]
    trace = run(SAMPLES / "spmv_csr.ptx", "spmv_csr", block=(64, 1, 1), arguments=arguments)
    for warp in (0, 1):
        assert trace.iterations(warp)["$L__BB0_3"] == lengths[32 * warp : 32 * warp + 32].max()


@pytest.mark.parametrize(
    ("case", "label", "times"),
    [("fir-64", "$L__BB0_1", 16), ("reduction-second-block", "$L__BB0_1", 8), ("bitonic-2-warps", "$L__BB0_1", 5),
     ("matmul_tiled-n-48", "$L__BB0_3", 3), ("nbody-n-39", "$L__BB0_3", 9), ("nbody-n-39", "$L__BB0_6", 3),
     ("nearest_point-n-33", "$L__BB0_2", 32), ("mandelbrot-inside", "$L__BB0_1", 64)],
)  # fmt: skip
def test_samples_iterate_as_documented(case: str, label: str, times: int) -> None:
    trace = next(c for c in CASES if c.name == case).run()
    assert [trace.iterations(warp)[label] for warp in range(len(trace.warps))] == [times] * len(trace.warps)


def test_labels_of_the_same_name_are_told_apart_by_their_line() -> None:
    out = np.zeros(32, np.int32)
    trace = run(KERNELS / "jumps.ptx", "pointer", arguments=[np.full(32, 30, np.int32), out])
    counts = trace.iterations(0)
    assert sorted(name.partition(":")[0] for name in counts) == ["go", "go", "prototype"]
    assert sorted(counts.values()) == [0, 1, 1]  # both labels stand before the same instruction


def test_called_functions_are_told_by_name() -> None:
    trace = run(KERNELS / "control.ptx", "recurse", arguments=[np.full(32, 3, np.int32), np.zeros(32, np.int32)])
    names = [issue.routine for issue in trace.warps[0]]
    assert names[0] == names[-1] == "recurse"
    assert len(set(names)) == 2


@st.composite
def graphs(draw: st.DrawFn) -> list[tuple[int, ...]]:
    size = draw(st.integers(1, 8))
    return [*(tuple(draw(st.lists(st.integers(-1, size), max_size=3))) for _ in range(size)), ()]


@given(graphs())
def test_meeting_point_is_the_first_node_on_every_way_to_the_end(successors: list[tuple[int, ...]]) -> None:
    end = len(successors) - 1
    ways = [[end if s < 0 else s for s in after] for after in successors]

    def reaches(start: int, without: int | None) -> bool:
        seen, stack = {start}, [start]
        while stack:
            new = {s for s in ways[stack.pop()] if s != without} - seen
            seen |= new
            stack += new
        return end in seen

    for node, meet in enumerate(meeting_points(successors)):
        if not reaches(node, None) or len(ways[node]) == 1:
            continue
        passed = [m for m in range(end) if m != node and not reaches(node, m)] + [end]
        assert meet in passed
        assert all(other in (meet, end) or not reaches(meet, other) for other in passed)


# ---- single instructions: values derived by hand from the manual


def compute(opcode: str, *sources: Any, target: str = "b32", lanes: int = 1) -> list[int]:
    """The raw target of an instruction; sources are raw bits, or text for an immediate; one value per lane."""
    names = [s if isinstance(s, str) else f"%s{i}" for i, s in enumerate(sources)]
    kind = TYPES[target]
    stored = f"st.global.b{kind.bits} [%at], %d;"
    if target == "pred":
        stored = "selp.b32 %q, 1, 0, %d; st.global.b32 [%at], %q;"
        kind = TYPES["b32"]
    body = f"""
    .reg .b64 %s<6>; .reg .b64 %base; .reg .b64 %at; .reg .u32 %t; .reg .b32 %q; .reg .{target} %d; .reg .pred %e;
    mov.u32 %t, %laneid; mad.wide.u32 %at, %t, {kind.bytes}, %base;
    {opcode} {", ".join(["%d", *names])};
    {stored}
    ret;"""
    out = np.zeros(32, f"u{kind.bytes}")
    registers: dict[str, Any] = {n: s for n, s in zip(names, sources, strict=True) if not isinstance(s, str)}
    registers["%base"] = Pointer(out)
    run(_entry(body, parameters=""), "k", block=(lanes, 1, 1), registers=registers)
    return [int(value) for value in out[:lanes]]


def f32(value: float) -> int:
    return int(np.float32(value).view(np.uint32))


def f64(value: float) -> int:
    return int(np.float64(value).view(np.uint64))


M = 2**32


@pytest.mark.parametrize(
    ("opcode", "sources", "expected"),
    [
        ("add.u32", (M - 1, 2), 1),
        ("add.sat.s32", (2**31 - 1, 1), 2**31 - 1),
        ("sub.sat.s32", (2**31, 1), 2**31),
        ("sub.u16", (0, 1), 0xFFFF),
        ("mul.lo.s32", (M - 3, 5), M - 15),
        ("mul.hi.s32", (M - 3, 5), M - 1),
        ("mul.hi.u32", (M - 3, 5), 4),
        ("mul24.lo.s32", (0xFFFFFF, 3), M - 3),
        ("mul24.hi.u32", (0xFFFFFF, 0xFFFFFF), 0xFFFFFE00),
        ("mad.lo.s32", (3, 4, M - 5), 7),
        ("mad.hi.sat.s32", (2**30, 2**30, 2**31 - 1), 2**31 - 1),
        ("div.s32", (M - 7, 2), M - 3),
        ("rem.s32", (M - 7, 2), M - 1),
        ("div.u32", (M - 7, 2), (M - 7) // 2),
        ("abs.s32", (2**31,), 2**31),
        ("neg.s16", (1,), 0xFFFF),
        ("min.s32", (M - 1, 1), M - 1),
        ("min.u32", (M - 1, 1), 1),
        ("sad.u32", (3, 10, 1), 8),
        ("shl.b32", (1, 31), 2**31),
        ("shl.b32", (1, 32), 0),
        ("shr.s32", (2**31, 40), M - 1),
        ("shr.u32", (2**31, 40), 0),
        ("shr.s16", (0x8000, 3), 0xF000),
        ("shf.l.wrap.b32", (0x89ABCDEF, 0x01234567, 36), 0x12345678),
        ("shf.r.clamp.b32", (0x89ABCDEF, 0x01234567, 36), 0x01234567),
        ("bfe.u32", (0x12345678, 8, 8), 0x56),
        ("bfe.s32", (0x8000, 8, 8), 0xFFFFFF80),
        ("bfe.s32", (0x80000000, 28, 8), 0xFFFFFFF8),
        ("bfe.s32", (0x80000000, 0, 0), 0),
        ("bfi.b32", (0xAB, 0x11111111, 8, 8), 0x1111AB11),
        ("bfi.b32", (0xAB, 0x11111111, 40, 8), 0x11111111),
        ("popc.b32", (0xF0F0,), 8),
        ("clz.b32", (0,), 32),
        ("clz.b64", (1,), 63),
        ("brev.b32", (1,), 2**31),
        ("bfind.u32", (0x10,), 4),
        ("bfind.s32", (M - 1,), M - 1),
        ("prmt.b32", (0x33221100, 0x77665544, 0x7410), 0x77441100),
        ("prmt.b32", (0x00000080, 0, 0x0008), 0x808080FF),
        ("prmt.b32.rc16", (0x33221100, 0, 1), 0x33223322),
        ("prmt.b32.b4e", (0x33221100, 0x77665544, 0), 0x55667700),
        ("lop3.b32", (0xF0, 0xCC, 0xAA, "0xE8"), 0xE8),
        ("lop3.b32", (0xF0F0F0F0, 0xCCCCCCCC, 0xAAAAAAAA, "0x96"), 0x96969696),
        ("not.b32", (0,), M - 1),
        ("cnot.b32", (0,), 1),
        ("slct.s32.s32", (1, 2, M - 1), 2),
        ("set.lt.u32.s32", (M - 1, 0), M - 1),
        ("set.gt.f32.u32", (M - 1, 0), f32(1)),
        ("dp4a.u32.u32", (0x01020304, 0x01010101, 5), 15),
        ("dp4a.s32.s32", (0xFFFFFFFF, 0x01010101, 5), 1),
        ("selp.b32", (1, 2, 0), 2),
        ("add.f32", (f32(1), f32(2**-24)), f32(1)),
        ("add.rp.f32", (f32(1), f32(2**-24)), f32(1) + 1),
        ("sub.rz.f32", (f32(1), f32(2**-30)), f32(1) - 1),
        ("add.rm.f32", (f32(1), f32(-1)), f32(-0.0)),
        ("add.ftz.f32", (1, 1), 0),
        ("mul.ftz.f32", (f32(-1), 5), f32(-0.0)),
        ("add.sat.f32", (f32(3), f32(4)), f32(1)),
        ("mul.rn.f32", (f32(2**-100), f32(2**-49)), 1),
        ("mul.rn.f32", (f32(2**-100), f32(2**-50)), 0),
        ("fma.rn.f32", (f32(1 + 2**-12), f32(1 - 2**-12), f32(-1)), f32(-(2**-24))),
        ("fma.rn.f32", (f32(2**-24 + 2**-47), f32(1 - 2**-23), f32(1) + 1), f32(1) + 1),  # in two steps: + 2
        ("min.f32", (0x7FC00000, f32(2)), f32(2)),
        ("min.f32", (0, f32(-0.0)), f32(-0.0)),
        ("min.NaN.f32", (0x7FC00000, f32(2)), 0x7FC00000),
        ("neg.f32", (0,), f32(-0.0)),
        ("copysign.f32", (f32(-0.0), f32(3)), f32(-3)),
        ("rcp.rn.f32", (f32(3),), f32(1 / 3)),
        ("sqrt.rn.f32", (f32(2),), f32(2**0.5)),
        ("ex2.approx.f32", (f32(-3),), f32(0.125)),
        ("lg2.approx.f32", (f32(32),), f32(5)),
        ("rsqrt.approx.f32", (f32(16),), f32(0.25)),
        ("div.full.f32", (f32(1), f32(8)), f32(0.125)),
        ("cvt.s32.s8", (0x80,), M - 128),
        ("cvt.u8.u32", (0x1FF,), 0xFF),
        ("cvt.sat.u8.s32", (M - 5,), 0),
        ("cvt.sat.s8.s32", (300,), 127),
        ("cvt.rni.s32.f32", (f32(2.5),), 2),
        ("cvt.rni.s32.f32", (f32(1.5),), 2),
        ("cvt.rmi.s32.f32", (f32(-2.5),), M - 3),
        ("cvt.rzi.u32.f32", (f32(-2.5),), 0),
        ("cvt.rzi.s32.f32", (f32(1e20),), 2**31 - 1),
        ("cvt.rzi.s32.f32", (0x7FC00000,), 0),
        ("cvt.rn.f32.s32", (2**24 + 1,), f32(2**24)),
        ("cvt.rp.f32.s32", (2**24 + 1,), f32(2**24 + 2)),
        ("cvt.rn.f32.f64", (f64(1 + 2**-24),), f32(1)),
        ("cvt.rp.f32.f64", (f64(1 + 2**-24),), f32(1) + 1),
        ("cvt.rpi.f32.f32", (f32(1.25),), f32(2)),
        ("cvt.sat.f32.f32", (f32(-2),), 0),
        ("cvt.rn.f16.f32", (f32(1.5),), 0x3E00),
        ("mov.b32", ("0f3F800000",), 0x3F800000),
        ("mov.b32", ("-1",), M - 1),
        ("mov.u32", ("%laneid",), 0),
        ("mov.u32", ("%lanemask_gt",), M - 2),
    ],
)
def test_instruction(opcode: str, sources: tuple[Any, ...], expected: int) -> None:
    words = opcode.split(".")
    target = "b16" if {"u16", "s16", "f16"} & set(words) else "b32"
    assert compute(opcode, *sources, target=target) == [expected]


@pytest.mark.parametrize(
    ("opcode", "sources", "expected"),
    [
        ("mul.wide.s32", (M - 3, 5), 2**64 - 15),
        ("mad.wide.u32", (M - 1, M - 1, 1), (M - 1) ** 2 + 1),
        ("mul.hi.s64", (2**64 - 3, 5), 2**64 - 1),
        ("cvt.s64.s32", (M - 1,), 2**64 - 1),
        ("cvt.u64.u32", (M - 1,), M - 1),
        ("cvt.rzi.u64.f32", (f32(2.0**63),), 2**63),
        ("cvt.f64.f32", (f32(0.1),), f64(float(np.float32(0.1)))),
        ("fma.rn.f64", (f64(1 + 2**-30), f64(1 - 2**-30), f64(-1)), f64(-(2**-60))),
        ("fma.rp.f64", (f64(1), f64(1), f64(2**-80)), f64(1) + 1),
        ("shr.s64", (2**63, 63), 2**64 - 1),
        ("bfe.u64", (0xABCD << 40, 40, 8), 0xCD),
        ("rsqrt.approx.f64", (f64(4),), f64(0.5)),
    ],
)
def test_wide_instruction(opcode: str, sources: tuple[Any, ...], expected: int) -> None:
    assert compute(opcode, *sources, target="b64") == [expected]


@pytest.mark.parametrize(
    ("comparison", "a", "b", "expected"),
    [("lt.s32", M - 1, 0, 1), ("lt.u32", M - 1, 0, 0), ("hs.u32", 5, 5, 1), ("eq.f32", 0, f32(-0.0), 1),
     ("ne.f32", 0x7FC00000, 0, 0), ("neu.f32", 0x7FC00000, 0, 1), ("ltu.f32", 0x7FC00000, 0, 1),
     ("nan.f32", 0x7FC00000, 0, 1), ("num.f32", 0, 0, 1), ("eq.ftz.f32", 1, 0, 1), ("eq.f32", 1, 0, 0)],
)  # fmt: skip
def test_comparison(comparison: str, a: int, b: int, expected: int) -> None:
    name, *rest = comparison.split(".")
    assert compute(".".join(["setp", name, *rest]), a, b, target="pred") == [expected]
    joined = {"and": 0, "or": 1, "xor": 1 - expected}
    for word, result in joined.items():
        given_ = {"and": 0, "or": 1, "xor": 1}[word]
        assert compute(".".join(["setp", name, word, *rest]), a, b, given_, target="pred") == [result]


@given(st.integers(0, M - 1), st.integers(0, M - 1), st.integers(0, M - 1), st.integers(0, M - 1))
def test_carries_add_numbers_of_64_bits(a: int, b: int, c: int, d: int) -> None:
    body = """.reg .b32 %a<4>; .reg .b32 %d<2>; .reg .b64 %at;
    add.cc.u32 %d0, %a0, %a2; addc.u32 %d1, %a1, %a3; st.global.v2.b32 [%at], {%d0, %d1};
    sub.cc.u32 %d0, %a0, %a2; subc.u32 %d1, %a1, %a3; st.global.v2.b32 [%at+8], {%d0, %d1}; ret;"""
    out = np.zeros(2, np.uint64)
    registers: dict[str, Any] = {"%a0": a, "%a1": b, "%a2": c, "%a3": d, "%at": Pointer(out)}
    run(_entry(body, parameters=""), "k", block=(1, 1, 1), registers=registers)
    assert out.tolist() == [((b + d) * M + a + c) % 2**64, ((b - d) * M + a - c) % 2**64]


floats32 = st.floats(width=32, allow_nan=False, allow_infinity=False)


@given(floats32, floats32, floats32)
def test_fused_products_are_rounded_once(a: float, b: float, c: float) -> None:
    x, y, z = (np.full(LANES, value, np.float32) for value in (a, b, c))
    exact = Fraction(a) * Fraction(b) + Fraction(c)
    with np.errstate(all="ignore"):
        assert float(fma(x, y, z, F32)[0]) == rounded(exact, 32, "rn")
        assert float(fma(x, y, z, F32, "rz")[0]) == rounded(exact, 32, "rz")


@given(st.floats(allow_nan=False, allow_infinity=False), st.sampled_from(["rn", "rz", "rm", "rp"]))
def test_rounding_finds_the_neighbour_of_its_mode(value: float, mode: str) -> None:
    found = rounded(Fraction(value), 32, mode)
    with np.errstate(all="ignore"):
        nearest = np.float64(value).astype(np.float32)
        around = [abs(float(np.nextafter(nearest, np.float32(x)))) for x in (-np.inf, nearest, np.inf)]
    assert mode != "rn" or found == nearest
    assert mode != "rp" or value <= found
    assert mode != "rm" or found <= value
    assert mode != "rz" or abs(found) <= abs(value)
    assert abs(found) in around


@given(st.floats(allow_nan=False, allow_infinity=False), st.floats(0.5, 2))
def test_doubles_fuse_exactly(a: float, b: float) -> None:
    x, y, z = (np.full(LANES, value) for value in (a, b, -a))
    with np.errstate(all="ignore"):
        fused = float(fma(x, y, z, F64)[0])
    assert fused == rounded(Fraction(a) * Fraction(b) - Fraction(a), 64, "rn")


# ---- lanes among themselves

FULL = "0xffffffff"


@pytest.mark.parametrize(
    ("mode", "distance", "limits", "expected"),
    [
        ("down", 3, 31, np.where(LANE + 3 <= 31, LANE + 3, LANE)),
        ("up", 3, 0, np.where(LANE >= 3, LANE - 3, LANE)),
        ("bfly", 5, 31, LANE ^ 5),
        ("idx", 7, 31, np.full(32, 7)),
        ("idx", 2, 0x181F, (LANE & 24) + 2),
        ("down", 6, 0x181F, np.where(LANE % 8 + 6 <= 7, LANE + 6, LANE)),
    ],
)
def test_shuffle(mode: str, distance: int, limits: int, expected: Array) -> None:
    assert (
        compute(f"shfl.sync.{mode}.b32", LANE * 11, str(distance), str(limits), FULL, lanes=32)
        == (expected * 11).tolist()
    )


def test_votes_matches_and_reductions() -> None:
    odd = LANE & 1
    assert compute("vote.sync.ballot.b32", odd, FULL, lanes=32) == [0xAAAAAAAA] * 32
    assert compute("vote.sync.any.pred", odd, FULL, target="pred", lanes=32) == [1] * 32
    assert compute("vote.sync.all.pred", odd, FULL, target="pred", lanes=32) == [0] * 32
    assert compute("match.any.sync.b32", odd, FULL, lanes=32) == [0x55555555, 0xAAAAAAAA] * 16
    assert compute("redux.sync.add.u32", LANE, FULL, lanes=32) == [496] * 32
    assert compute("redux.sync.min.s32", M - LANE - 1, FULL, lanes=32) == [M - 32] * 32
    assert compute("activemask.b32", lanes=7) == [127] * 7


# ---- what stops a kernel

POINTER = ".reg .pred %p; .reg .u32 %r<4>; .reg .u64 %rd<3>; .reg .f32 %f<2>; ld.param.u64 %rd1, [out];"


@pytest.mark.parametrize(
    ("body", "error", "message"),
    [
        ("add.u32 %r1, %r2, 1;", KernelFault, "%r2 is read before it is written"),
        ("@%p add.u32 %r1, 2, 1;", KernelFault, "%p is read before it is written"),
        ("ld.global.u32 %r1, [%rd1+128];", KernelFault, "outside of global memory"),
        ("mov.u32 %r1, %tid.x; mad.wide.u32 %rd1, %r1, 8, %rd1; ld.global.u32 %r1, [%rd1];", KernelFault,
         "4 bytes at 0x10000080 are outside of global memory"),
        ("ld.global.u32 %r1, [%rd1-4];", KernelFault, "outside of global memory"),
        ("ld.global.u32 %r1, [%rd1+2];", KernelFault, "no multiple of 4"),
        ("ld.global.v2.u32 {%r1, %r2}, [%rd1+4];", KernelFault, "no multiple of 8"),
        ("ld.shared.u32 %r1, [s];", KernelFault, "nothing has written"),
        ("st.shared.u32 [s+16], 1;", KernelFault, "outside of shared memory"),
        ("mov.u32 %r1, 0; div.u32 %r1, 1, %r1;", KernelFault, "divided by zero"),
        ("mov.u32 %r1, %tid.x; setp.lt.u32 %p, %r1, 3; @%p bar.sync 0;", KernelFault, "only some lanes"),
        ("mov.u32 %r1, %tid.x; setp.lt.u32 %p, %r1, 3; @%p bra.uni E; E:", KernelFault, "diverge"),
        ("bar.sync 0, 64;", KernelFault, "never be complete"),
        ("L: bra L;", KernelFault, "more than 500 warp-instructions"),
        ("trap;", KernelFault, "a trap"),
        ("addc.u32 %r1, 0, 0;", KernelFault, "carry"),
        ("mov.u32 %r1, %laneid; shfl.sync.idx.b32 %r2, %r1, 40, 31, 0xffffffff;", None, ""),
        ("mov.u32 %r1, 1; shfl.sync.down.b32 %r2, %r1, 1, 31, 1;", KernelFault, "not in the mask"),
        ("tcgen05.mma.foo %r1;", UnsupportedInstruction, "opcode tcgen05.mma.foo"),
        ("add.f16x2 %r1, 1, 1;", UnsupportedInstruction, "add.f16x2"),
        ("add.u32.exotic %r1, 1, 1;", UnsupportedInstruction, "add.u32.exotic"),
        ("mov.u32 %r1, %clock;", UnsupportedInstruction, "%clock"),
        ("mov.u32 %r1, %tid.x; setp.lt.u32 %p, %r1, 3; @%p bra E; bar.warp.sync 0xffffffff; E:",
         UnsupportedInstruction, "other side of a branch"),
    ],
)  # fmt: skip
def test_what_has_no_defined_result_is_an_error(body: str, error: type[Exception] | None, message: str) -> None:
    text = _entry(f"{POINTER}\n{body}\nret;", before=".shared .align 4 .b8 s[16];")

    def go() -> Trace:
        return run(text, "k", arguments=[np.zeros(32, np.uint32)], max_instructions=500)

    if error is None:
        go()
        return
    with pytest.raises(error, match=re.escape(message)):
        go()


def test_errors_name_the_place() -> None:
    with pytest.raises(
        UnsupportedInstruction, match=r"<text>:7: foo\.bar %r1; \(warp 0\): no semantics for .* foo\.bar"
    ):
        run(_entry(".reg .u32 %r1; foo.bar %r1;"), "k", arguments=[None])


def test_arguments_must_fit_the_parameters() -> None:
    with pytest.raises(ValueError, match="k takes out, not in"):
        run(_entry("ret;"), "k", arguments={"in": 1})


# ---- independence


def test_interpreter_shares_only_the_reader_with_the_front_end() -> None:
    allowed = {"makespan.kernels.ptx": {"PtxKernel", "PtxModule", "parse", "read"}, "makespan.kernels.ptx.module": None}
    for path in Path(ptx_interpreter.__file__).parent.glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("makespan"):
                assert node.module in allowed, path
                names = allowed[node.module]
                assert names is None or {alias.name for alias in node.names} <= names, path
            if isinstance(node, ast.Import):
                assert not any(alias.name.startswith("makespan") for alias in node.names), path
