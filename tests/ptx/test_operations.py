"""Which operation an instruction is."""

from dataclasses import replace
from typing import Any

import pytest

from makespan.host.errors import InputError, ParseError, UnsupportedError
from makespan.kernels.ptx import parse, read, warps
from makespan.kernels.ptx.isa import expands, opcodes, operations
from makespan.model.machine import OPERATIONS, KnownLapses, LineCache, find_machine, given_latencies
from tests.ptx.texts import SAMPLES, kernel


@pytest.mark.parametrize(
    ("instruction", "operation"),
    [
        ("add.s32 %r1, %r2, 1", "int"),
        ("add.rn.f32 %f1, %f2, %f3", "fp32"),
        ("add.f64 %d1, %d2, %d3", "fp64"),
        ("add.f16x2 %h1, %h2, %h3", "fp16"),
        ("fma.rn.bf16 %h1, %h2, %h3, %h4", "fp16"),
        ("fma.rn.ftz.f32 %f1, %f2, %f3, %f4", "fp32"),
        ("mul.wide.s32 %rd1, %r2, 4", "int-multiply"),
        ("mul.f32 %f1, %f2, %f3", "fp32"),
        ("mad.lo.s32 %r1, %r2, %r3, %r4", "int-multiply"),
        ("setp.ge.s32 %p1, %r1, %r2", "predicate"),
        ("setp.lt.f32 %p1, %f1, %f2", "predicate"),
        ("setp.lt.f64 %p1, %d1, %d2", "fp64"),
        ("set.gt.u32.f32 %r1, %f1, %f2", "fp32"),
        ("and.pred %p1, %p2, %p3", "predicate"),
        ("and.b32 %r1, %r2, %r3", "int"),
        ("mov.u32 %r1, %tid.x", "special"),
        ("mov.u64 %rd1, %clock64", "special"),
        ("cvt.u32.u16 %r1, %ctaid.y", "special"),
        ("mov.u32 %r1, %tidy", "int"),
        ("mov.pred %p1, %p2", "predicate"),
        ("cvt.u64.u32 %rd1, %r1", "int"),
        ("cvt.rn.f32.s32 %f1, %r1", "convert"),
        ("cvt.f64.f32 %d1, %f1", "fp64"),
        ("rcp.approx.ftz.f64 %d1, %d2", "sfu"),
        ("rcp.rn.f64 %d1, %d2", "fp64"),
        ("ex2.approx.f16 %h1, %h2", "sfu"),
        ("popc.b32 %r1, %r2", "bit-count"),
        ("ld.u32 %r1, [%rd1]", "global"),
        ("ld.global.nc.v4.f32 {%f1, %f2, %f3, %f4}, [%rd1]", "global"),
        ("ld.volatile.shared.u32 %r1, [%r2]", "shared"),
        ("ld.shared::cluster.u32 %r1, [%r2]", "shared"),
        ("ld.local.u32 %r1, [%r2]", "local"),
        ("ld.const.u32 %r1, [%r2]", "constant"),
        ("ld.param.u64 %rd1, [p]", "constant"),
        ("st.shared.f32 [%r1], %f1", "shared"),
        ("atom.global.add.u32 %r1, [%rd1], 1", "atomic"),
        ("atom.add.u32 %r1, [%rd1], 1", "atomic"),
        ("atom.shared.add.u32 %r1, [%r2], 1", "shared"),
        ("red.shared.add.u32 [%r2], 1", "shared"),
        ("cp.async.ca.shared.global [%r1], [%rd1], 16", "global"),
        ("shfl.sync.down.b32 %r1|%p1, %r2, 1, 31, -1", "shuffle"),
        ("vote.sync.any.pred %p1, %p2, -1", "vote"),
        ("tex.2d.v4.f32.f32 {%f1, %f2, %f3, %f4}, [t, {%f5, %f6}]", "texture"),
        ("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%f1}, {%r1}, {%r2}, {%f2}", "tensor"),
        ("membar.gl", "fence"),
        ("bar.warp.sync -1", "barrier"),
        ("@%p1 exit", "branch"),
    ],
)
def test_an_instruction_is_an_operation(instruction: str, operation: str) -> None:
    assert operations(kernel(f"{instruction};")) == (operation,)


@pytest.mark.parametrize(
    ("opcode", "address", "operation"),
    [
        ("ld.param.u64", "[n]", "parameter"),
        ("ld.param::entry.u32", "[n+4]", "parameter"),
        ("ld.param.u64", "[%rd1]", "constant"),
        ("ld.param.u64", "[n+%rd1]", "constant"),
        ("ld.param.u64", "[m]", "constant"),
        ("ld.const.u64", "[n]", "constant"),
    ],
)
def test_all_lanes_read_a_parameter_of_the_kernel_that_is_named(opcode: str, address: str, operation: str) -> None:
    code = parse(f".entry k(.param .u64 l, .param .u64 n) {{ {opcode} %rd2, {address}; }}", "k.ptx").kernel()
    assert operations(code) == (operation,)
    of_function = "constant" if "const" in opcode else "local"  # parameters lie in the memory of a thread there
    assert operations(replace(code, is_entry=False)) == (of_function,)


def test_every_row_of_the_table_names_operations() -> None:
    for opcode, row in opcodes().items():
        assert row.operation == "-" or {*row.operation.removesuffix("+").split("/")} <= OPERATIONS.keys(), opcode


def test_every_instruction_of_the_samples_has_an_operation() -> None:
    for path in SAMPLES:
        assert set(operations(read(path).kernel())) <= OPERATIONS.keys()


def test_an_opcode_that_no_table_knows_is_an_error_at_its_place() -> None:
    with pytest.raises(ParseError, match=r"k.ptx:5:1: unknown opcode 'brew.u32'; only a machine without operations"):
        operations(kernel("brew.u32 %r1;"))


@pytest.mark.parametrize("waiting", ["brkpt", "griddepcontrol.wait", "mbarrier.try_wait.b64 %p1, [%r1], %rd1"])
def test_what_takes_a_time_that_nobody_bounds_is_refused(waiting: str) -> None:
    with pytest.raises(UnsupportedError, match=r"k.ptx:5: `.*`: nobody bounds how long it takes"):
        operations(kernel(f"{waiting};"))


def test_what_the_assembler_expands_is_told() -> None:
    code = kernel("div.rn.f32 %f1, %f2, %f3;\ndiv.approx.f32 %f1, %f2, %f3;\ndiv.rn.f64 %d1, %d2, %d3;\nret;")
    assert [expands(instruction) for instruction in code.instructions] == [True, False, True, False]


def test_parameters_of_calls_lie_in_the_memory_of_a_thread() -> None:
    """Those of the entry are constants, wherever they are read from."""
    body = "ld.param.u32 %r1, [p];\nld.param.u32 %r2, [%rd1];\n"
    entry = parse(f".entry k(.param .u32 p) {{ {body} ret; }}", "k.ptx").kernel()
    assert operations(entry)[:2] == ("parameter", "constant")
    calls = "{ .param .b32 a; st.param.b32 [a], %r1; ld.param.b32 %r3, [a]; ld.param.b32 %r4, [%rd2]; }"
    calling = parse(f".entry k(.param .u32 p) {{ {body} {calls} ret; }}", "k.ptx").kernel()
    assert operations(calling)[:5] == ("parameter", "local", "local", "local", "local")
    assert operations(replace(entry, is_entry=False))[:2] == ("local", "local")


@pytest.mark.parametrize("said", [{"warm": True}, {"latencies": given_latencies(["fetch=..600"])}])
def test_lines_of_code_are_for_machine_code(said: Any) -> None:
    code = parse(".version 8.0 .target sm_80 .entry k() { ret; }", "k.ptx").kernel()
    known = replace(find_machine("turing").machine, lapses=KnownLapses(code=LineCache(128, 8, 32, 86)))
    message = "k.ptx: --warm, --latency fetch and --latency constant-miss are for machine code: PTX does not tell which"
    with pytest.raises(InputError, match=message):
        warps(code, machine=known, **said)
