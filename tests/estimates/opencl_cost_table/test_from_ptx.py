"""PTX kernels by the rows of a cost table."""

from pathlib import Path

import pytest

from makespan.estimates.opencl_cost_table import table as tables
from makespan.estimates.opencl_cost_table.from_ptx import work
from makespan.estimates.opencl_cost_table.prediction import LaunchWork, predict
from makespan.host.errors import InputError
from makespan.kernels import flow, ptx

SAMPLES = Path(__file__).parents[3] / "ptx"
HEAD = """
.version 7.0
.target sm_75
.address_size 64
.visible .entry k(.param .u64 a, .param .u64 b)
{
    .reg .pred %p<4>;
    .reg .f32 %f<9>;
    .reg .f64 %d<9>;
    .reg .b32 %r<20>;
    .reg .b64 %rd<20>;
    .shared .align 4 .b8 s[1024];
    ld.param.u64 %rd1, [a];
    ld.param.u64 %rd2, [b];
    mov.u32 %r1, %ctaid.x;
    mov.u32 %r2, %ntid.x;
    mov.u32 %r3, %tid.x;
"""
NUMBER = "    mad.lo.s32 %r4, %r1, %r2, %r3;\n"


def of(body: str, grid: str = "64", block: str = "64", interval_bytes: int = 1024) -> LaunchWork:
    kernel = ptx.parse(f"{HEAD}{body}\n    ret;\n}}\n", "k.ptx").kernel(None)
    return work(kernel, flow.launch(block, grid, ()), interval_bytes=interval_bytes)


def rows(body: str) -> dict[str, int]:
    return {row: n for row, n in of(body).counts.rows.items() if row != "BASE_COST"}


@pytest.mark.parametrize(
    ("instruction", "counted"),
    [
        ("add.f32 %f1, %f2, %f3;", {"FLOAT_ADD": 1}),
        ("sub.rn.f32 %f1, %f2, %f3;", {"FLOAT_SUB": 1}),
        ("mul.f32 %f1, %f2, %f3;", {"FLOAT_MUL": 1}),
        ("div.approx.f32 %f1, %f2, %f3;", {"FLOAT_DIV": 1}),
        ("div.full.f32 %f1, %f2, %f3;", {"FLOAT_DIV": 1}),
        ("div.rn.f32 %f1, %f2, %f3;", {"FLOAT_DIV": 1}),
        ("fma.rn.f32 %f1, %f2, %f3, %f4;", {"FLOAT_MUL": 1, "FLOAT_ADD": 1}),
        ("mad.rn.f32 %f1, %f2, %f3, %f4;", {"FLOAT_MUL": 1, "FLOAT_ADD": 1}),
        ("rcp.rn.f32 %f1, %f2;", {"FLOAT_DIV": 1}),
        ("add.s32 %r5, %r1, %r2;", {"INT_ADD": 1}),
        ("add.u64 %rd5, %rd1, %rd2;", {"INT_ADD": 1}),
        ("sub.s32 %r5, %r1, %r2;", {"INT_SUB": 1}),
        ("mul.lo.s32 %r5, %r1, %r2;", {"INT_MUL": 1}),
        ("mul.wide.s32 %rd5, %r1, 4;", {"INT_MUL": 1}),
        ("mad.lo.s32 %r5, %r1, %r2, %r3;", {"INT_MUL": 1, "INT_ADD": 1}),
        ("shl.b32 %r5, %r1, 2;", {"INT_MUL": 1}),
        ("div.u32 %r5, %r1, %r2;", {"INT_DIV": 1}),
        ("rem.s32 %r5, %r1, %r2;", {"INT_DIV": 1}),
        ("add.f64 %d1, %d2, %d3;", {"DOUBLE_ADD": 1}),
        ("fma.rn.f64 %d1, %d2, %d3, %d4;", {"DOUBLE_MUL": 1, "DOUBLE_ADD": 1}),
        ("mov.u32 %r5, %r1;", {}),
        ("cvt.rn.f32.s32 %f1, %r1;", {}),
        ("setp.lt.s32 %p1, %r1, %r2;", {}),
        ("st.shared.f32 [s], %f1;", {"LOCAL_ACCESS": 1}),
        ("ld.shared.f32 %f1, [s+4];", {"LOCAL_ACCESS": 1}),
        ("st.global.f32 [%rd1], %f1;", {}),
        ("st.global.f32 [%rd1], %f1;\n st.global.f32 [%rd2], %f1;", {"GLOBAL_WRITE": 1}),
        ("st.global.v4.f32 [%rd1], {%f1, %f2, %f3, %f4};", {"GLOBAL_WRITE": 3}),
    ],
)
def test_rows_of_an_instruction(instruction: str, counted: dict[str, int]) -> None:
    assert rows(f"    {instruction}") == counted


def test_division_by_an_immediate_is_by_a_literal() -> None:
    assert of("    div.u32 %r5, %r1, 7;").counts.literal_divisions == 1
    assert of("    div.u32 %r5, %r1, %r2;").counts.literal_divisions == 0


@pytest.mark.parametrize(
    ("index", "row"),
    [
        ("mov.u32 %r5, 3;", "CONSTANT_GLOBAL_READ"),
        ("mov.u32 %r5, %r3;", "CACHED_GLOBAL_READ"),
        (f"{NUMBER} rem.u32 %r5, %r4, 16;", "CACHED_GLOBAL_READ"),
        (f"{NUMBER} mov.u32 %r5, %r4;", "GLOBAL_READ"),
        (f"{NUMBER} add.s32 %r5, %r4, 100;", "GLOBAL_READ"),
        (f"{NUMBER} mul.lo.s32 %r5, %r4, 2;", "COMPLEX_GLOBAL_READ"),
        ("mov.u32 %r4, %nctaid.x; mad.lo.s32 %r5, %r3, %r4, %r1;", "COMPLEX_GLOBAL_READ"),
        (f"{NUMBER} ld.global.u32 %r5, [%rd1];", "COMPLEX_GLOBAL_READ"),
    ],
)
def test_classes_of_reads(index: str, row: str) -> None:
    found = of(
        f"    {index}\n    mul.wide.s32 %rd3, %r5, 4;\n    add.s64 %rd4, %rd2, %rd3;\n    ld.global.f32 %f1, [%rd4];"
    )
    assert found.counts[row] == 1, found


def test_a_read_in_a_loop_counts_as_often_as_the_loop_runs() -> None:
    loop = f"""{NUMBER}
    mul.wide.s32 %rd3, %r4, 4;
    add.s64 %rd4, %rd2, %rd3;
    mov.u32 %r6, 0;
LOOP:
    ld.global.f32 %f1, [%rd4];
    ld.global.f32 %f2, [%rd1];
    add.f32 %f3, %f1, %f2;
    add.s64 %rd4, %rd4, 16384;
    add.s64 %rd1, %rd1, 4;
    add.s32 %r6, %r6, 1;
    setp.lt.s32 %p1, %r6, 10;
    @%p1 bra LOOP;
    st.global.f32 [%rd4], %f3;"""
    found = of(loop)
    assert (found.counts["GLOBAL_READ"], found.counts["CONSTANT_GLOBAL_READ"]) == (10, 10)
    assert (found.counts["FLOAT_ADD"], found.counts["INT_ADD"], found.counts["GLOBAL_WRITE"]) == (10, 32, 0)


def test_a_read_that_is_the_same_for_all_threads_in_one_iteration_only_is_not_constant() -> None:
    loop = """
    mov.u32 %r6, 0;
LOOP:
    mul.lo.s32 %r7, %r6, %r3;
    mul.wide.s32 %rd3, %r7, 400;
    add.s64 %rd4, %rd2, %rd3;
    ld.global.f32 %f1, [%rd4];
    add.s32 %r6, %r6, 1;
    setp.lt.s32 %p1, %r6, 3;
    @%p1 bra LOOP;"""
    assert of(loop).counts["COMPLEX_GLOBAL_READ"] == 3


def test_a_matrix_that_is_read_row_by_row_is_continuous_over_blocks_of_two_dimensions() -> None:
    coordinates = """
    mov.u32 %r5, %ctaid.y;
    mov.u32 %r6, %ntid.y;
    mov.u32 %r7, %tid.y;
    mov.u32 %r8, %nctaid.x;
    mad.lo.s32 %r9, %r5, %r6, %r7;
    mad.lo.s32 %r10, %r1, %r2, %r3;
    mul.lo.s32 %r11, %r8, %r2;
"""
    address = "mul.wide.s32 %rd3, %r12, 4;\n    add.s64 %rd4, %rd2, %rd3;\n    ld.global.f32 %f1, [%rd4];"
    rows = of(f"{coordinates}    mad.lo.s32 %r12, %r9, %r11, %r10;\n    {address}", grid="4x4", block="16x8")
    assert rows.counts["GLOBAL_READ"] == 1
    columns = of(f"{coordinates}    mad.lo.s32 %r12, %r10, %r11, %r9;\n    {address}", grid="4x4", block="16x8")
    assert columns.counts["COMPLEX_GLOBAL_READ"] == 1


def test_the_kernel_that_adds_vectors() -> None:
    kernel = ptx.read(SAMPLES / "vecadd.ptx").kernel(None)
    found = work(
        kernel, flow.launch("256", "1024", ["3=262144"]), interval_bytes=16384, bytes_in=2 << 20, bytes_out=1 << 20
    )
    assert found.counts.rows == {"BASE_COST": 1, "FLOAT_ADD": 1, "INT_ADD": 4, "INT_MUL": 2, "GLOBAL_READ": 2}
    assert (found.work_items, found.group) == (262144, 256)
    priced = predict(tables.find("rmbp-gt650m"), found)
    assert priced["GLOBAL_READ"].microseconds == pytest.approx(2 * (0.521932e-3 * 262144 + 3))
    assert priced.factor == pytest.approx(1)


def test_doubts_are_told() -> None:
    found = of(
        "    ld.global.u32 %r5, [%rd1];\n    mul.wide.s32 %rd3, %r5, 4;\n"
        "    ld.global.f32 %f1, [%rd3];\n    sqrt.rn.f32 %f1, %f1;"
    )
    assert any("no row, and are taken as free: sqrt" in note for note in found.notes)
    assert any("not known count as complex: lines 20" in note for note in found.notes)


def test_doubles_need_a_table_that_knows_them() -> None:
    with pytest.raises(InputError, match="no row DOUBLE_ADD"):
        predict(tables.find("rmbp-gt650m"), of("    add.f64 %d1, %d2, %d3;"))


def test_a_launch_is_needed() -> None:
    kernel = ptx.read(SAMPLES / "vecadd.ptx").kernel(None)
    with pytest.raises(InputError, match="--block and --grid"):
        work(kernel, flow.launch(None, None, ()), interval_bytes=16384)
