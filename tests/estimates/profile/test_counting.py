"""Profiles of kernels against what the interpreter of PTX executes with real values."""

import math
import shutil
import subprocess
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from makespan.estimates.kinds import InstructionKind
from makespan.estimates.profile import Coalescing, KernelProfile, Rule, parse_resources, profile, read_resources
from makespan.estimates.profile.exact import UndecidedError
from makespan.estimates.profile.opcodes import kind
from makespan.host.errors import InputError, UnsupportedError
from makespan.kernels import ptx
from makespan.kernels.flow import GivenBound, Launch
from makespan.kernels.ptx import PtxInstruction
from tests.command import Runner
from tests.estimates.kleimenov_popova.inputs import PASCAL
from tests.estimates.profile.oracle import Truth, executed, half_warps, launch_of, segments, truth_of
from tests.ptx_interpreter import CASES, Case, KernelFault
from tests.ptx_random import random_module

SAMPLES = Path(__file__).parents[3] / "ptx"
DECIDED = [case for case in CASES if case.path.parent == SAMPLES and case.kernel not in ("mandelbrot", "spmv_csr")]
"""The samples in which no data decides a branch."""


def ids(case: Case) -> str:
    return case.name


def profiled(case: Case, **options: object) -> KernelProfile:
    kernel = ptx.read(case.path).kernel(case.kernel)
    return profile(kernel, launch_of(case), dynamic_shared_bytes=case.dynamic_shared_bytes, **options)  # type: ignore[arg-type]


def classes_of(found: KernelProfile) -> Counter[tuple[int, ...]]:
    return Counter({one.executions: one.warps for one in found.warp_classes})


def vectors_of(truth: Truth, instructions: int) -> Counter[tuple[int, ...]]:
    return Counter(tuple(warp[number] for number in range(instructions)) for warp in truth.warps)


def test_there_are_more_than_ten_kernels_to_compare() -> None:
    assert len({case.kernel for case in DECIDED}) >= 13


@pytest.mark.parametrize("case", DECIDED, ids=ids)
def test_counts_of_every_warp_are_those_of_the_interpreter(case: Case) -> None:
    found, truth = profiled(case), truth_of(case)
    assert found.is_exact
    assert classes_of(found) == vectors_of(truth, len(found.instructions))
    for number, instruction in enumerate(found.instructions):
        executions = sum(warp[number] for warp in truth.warps)
        assert instruction.executions == pytest.approx(executions / len(truth.warps), rel=1e-12)
    by_kind = Counter[InstructionKind]()
    for warp in truth.warps:
        for number, executions in warp.items():
            by_kind[found.instructions[number].kind] += executions
    assert found.by_kind == pytest.approx({kind: n / len(truth.warps) for kind, n in by_kind.items()})


@pytest.mark.parametrize("rule", [Coalescing(), Coalescing(Rule.SEGMENTS, 32), Coalescing(Rule.CC10)], ids=str)
@pytest.mark.parametrize("case", DECIDED, ids=ids)
def test_transactions_are_those_of_the_true_addresses(case: Case, rule: Coalescing) -> None:
    found, truth = profiled(case, coalescing=rule), truth_of(case)
    claimed = 0
    lines = [instruction.line for instruction in found.instructions]
    for line in {one.line for one in found.device_memory}:
        several = [one for one in found.device_memory if one.line == line]
        accesses = [access for access in truth.accesses if lines[access.index] == line]
        executions = sum(one.executions for one in several)
        assert executions * len(truth.warps) == pytest.approx(len(accesses))
        assert sum(one.executions * one.lanes for one in several) * len(truth.warps) == pytest.approx(
            sum(len(access.addresses) for access in accesses)
        )
        if any(one.is_assumed or "not base" in one.reason for one in several):
            continue
        claimed += 1
        lane_bytes = several[0].lane_bytes
        assert {access.lane_bytes for access in accesses} <= {lane_bytes}
        if rule.rule is Rule.CC10:
            served = [half_warps(access, lane_bytes) for access in accesses]
        else:
            most = math.ceil(32 * lane_bytes / rule.segment_bytes)
            counts = [segments(access, lane_bytes, rule.segment_bytes) for access in accesses]
            served = [(count, count <= most) for count in counts]
        for coalesced in (True, False):
            mine = [one for one in several if one.coalesced is coalesced]
            alike = [count for count, is_so in served if is_so is coalesced]
            assert sum(one.executions for one in mine) * len(truth.warps) == pytest.approx(len(alike))
            transactions = sum(one.executions * (one.transactions or 0) for one in mine)
            assert transactions * len(truth.warps) == pytest.approx(sum(alike))
    assert claimed


@pytest.mark.parametrize("case", [case for case in CASES if case.name.startswith("corpus")], ids=ids)
def test_kernels_of_old_compilers_are_counted_as_they_run(case: Case) -> None:
    if not case.is_here:
        pytest.skip("the corpus is not beside this checkout")
    try:
        found = profiled(case)
    except InputError as error:
        assert "it is not known how often loop" in str(error)  # noqa: PT017 - data decides
        return
    if found.is_exact:
        assert classes_of(found) == vectors_of(truth_of(case), len(found.instructions))


def test_random_kernels_are_counted_as_they_run() -> None:
    exact = 0
    for seed in range(3, 27):
        module = ptx.parse(random_module(seed), "random.ptx")
        launch, data = Launch((48, 1, 1), (2, 1, 1)), np.zeros(48, np.uint32)
        try:
            found = profile(module.kernel("k"), launch)
            if found.is_exact:
                truth = executed(module, "k", (48, 1, 1), (2, 1, 1), [data], max_instructions=50_000)
                assert classes_of(found) == vectors_of(truth, len(found.instructions)), seed
                exact += 1
        except (InputError, KernelFault):
            continue
    assert exact >= 6


# ---- from the structure alone


@pytest.mark.parametrize("case", DECIDED, ids=ids)
def test_the_structure_counts_what_is_executed_where_all_warps_are_alike(
    case: Case, monkeypatch: pytest.MonkeyPatch
) -> None:
    exact = profiled(case)

    def undecided(*_: object, **__: object) -> None:
        raise UndecidedError("by force")

    monkeypatch.setattr("makespan.estimates.profile.counting.exact_counts", undecided)
    estimated = profiled(case)
    assert estimated.notes[0] == "counted from loop bounds and branches: by force"
    assert not estimated.is_exact
    if len(exact.warp_classes) == 1:
        assert [i.executions for i in estimated.instructions] == [i.executions for i in exact.instructions]
    else:
        assert estimated.total >= exact.total


def test_without_parameters_both_sides_of_a_divergent_branch_count() -> None:
    kernel = ptx.read(SAMPLES / "vecadd.ptx").kernel()
    found = profile(kernel, Launch((128, 1, 1), (80, 1, 1)))
    assert not found.is_exact
    assert found.total == 22
    assert [(one.executions, one.transactions, one.coalesced) for one in found.device_memory] == [(1, 1, True)] * 3
    assert not any(one.is_assumed for one in found.device_memory)
    assert sum(one.executions * one.warp_bytes for one in found.device_memory) == 3 * 32 * 4
    assert all(one.coalesced for one in found.device_memory)


def test_a_loop_that_nothing_bounds_is_named_with_the_remedy() -> None:
    kernel = ptx.read(SAMPLES / "nearest_point_paper.ptx").kernel()
    with pytest.raises(InputError, match=r"how often loop Loop \(line \d+\) repeats; give --loop-bound Loop=N, or"):
        profile(kernel, Launch((64, 1, 1), (3, 1, 1)))


def test_a_given_bound_counts_as_the_parameter_would() -> None:
    kernel = ptx.read(SAMPLES / "matmul_tiled.ptx").kernel()
    label = next(info.label for info in ptx.loops(kernel))
    exact = profile(kernel, Launch((16, 16, 1), (3, 3, 1), {"3": 48}))
    bounded = profile(kernel, Launch((16, 16, 1), (3, 3, 1)), loop_bounds=[GivenBound(label, 3, exact=True)])
    assert exact.is_exact
    assert not bounded.is_exact
    assert bounded.by_kind == exact.by_kind
    assert bounded.barriers == 6


def test_a_loop_that_only_has_a_maximum_runs_it_with_a_note() -> None:
    kernel = ptx.read(SAMPLES / "matmul_tiled.ptx").kernel()
    label = next(info.label for info in ptx.loops(kernel))
    found = profile(kernel, Launch((16, 16, 1), (3, 3, 1)), loop_bounds=[GivenBound(label, 3)])
    assert any(f"loop {label} is taken to run its maximum, at most 3 iterations" in note for note in found.notes)


HEAD = """
.version 8.0
.target sm_80
.address_size 64
.visible .entry k(.param .u64 out, .param .u32 n)
{
    .reg .u32 %r<9>; .reg .pred %p<4>; .reg .u64 %a<4>;
"""
STRUCTURE = f"""{HEAD.rstrip()}
    ld.param.u64 %a0, [out];
    ld.param.u32 %r0, [n];
    mov.u32 %r1, %tid.x;
    SETP
    @%p0 bra ELSE;
    add.u32 %r2, %r1, 1;
    add.u32 %r2, %r2, 2;
    add.u32 %r2, %r2, 3;
    bra.uni JOIN;
ELSE:
    xor.b32 %r2, %r1, 1;
JOIN:
    mul.wide.u32 %a1, %r2, 4;
    add.u64 %a2, %a0, %a1;
    st.global.u32 [%a2], %r2;
    ret;
}}
"""


@pytest.mark.parametrize(
    ("test", "executions", "note"),
    [
        ("setp.lt.u32 %p0, %r1, %r0;", {"add.u32": 3, "xor.b32": 1}, None),
        ("setp.lt.u32 %p0, %r0, 7;", {"add.u32": 3, "xor.b32": 0}, "which way all lanes go is not known"),
        ("setp.eq.u32 %p0, 1, 1;", {"add.u32": 0, "xor.b32": 1}, None),
        ("ld.global.u32 %r3, [%a0]; setp.lt.u32 %p0, %r3, %r1;", {"add.u32": 3, "xor.b32": 1}, None),
    ],
    ids=["divergent", "uniform", "decided", "data"],
)
def test_a_branch_counts_both_sides_the_longer_or_the_one_taken(
    test: str, executions: dict[str, int], note: str | None
) -> None:
    kernel = ptx.parse(STRUCTURE.replace("SETP", test), "k.ptx").kernel()
    found = profile(kernel, Launch((64, 1, 1), (4, 1, 1)))
    for opcode, count in executions.items():
        assert sum(i.executions for i in found.instructions if i.opcode == opcode) == count
    assert note is None or any(note in text for text in found.notes)


def test_lanes_that_wrote_an_index_on_different_ways_have_no_known_distance() -> None:
    kernel = ptx.parse(STRUCTURE.replace("SETP", "setp.lt.u32 %p0, %r1, %r0;"), "k.ptx").kernel()
    (store,) = profile(kernel, Launch((64, 1, 1), (4, 1, 1))).device_memory
    assert not store.coalesced
    assert store.transactions == 32
    assert "not base + known distances" in store.reason


LOOP = f"""{HEAD.rstrip()}
    ld.param.u32 %r0, [n];
    mov.u32 %r1, 0;
L:
    xor.b32 %r2, %r1, 1;
    setp.ge.u32 %p0, %r1, %r0;
    @%p0 bra.uni E;
    add.u32 %r1, %r1, 1;
M:
    add.u32 %r2, %r2, 3;
    setp.lt.u32 %p1, %r2, 30;
    @%p1 bra.uni M;
    bra.uni L;
E:
    ret;
}}
"""


@pytest.mark.parametrize("iterations", [0, 1, 5])
def test_a_loop_that_tests_first_runs_its_test_once_more_than_its_body(iterations: int) -> None:
    kernel, launch = ptx.parse(LOOP, "k.ptx").kernel(), Launch((32, 1, 1), (1, 1, 1))
    bounds = [GivenBound("L", iterations, exact=True), GivenBound("M", 4, exact=True)]
    found = profile(kernel, launch, loop_bounds=bounds)
    often = {f"{i.opcode} {i.line}": i.executions for i in found.instructions}
    assert often["xor.b32 11"] == often["setp.ge.u32 12"] == iterations + 1
    assert often["add.u32 14"] == iterations
    assert often["add.u32 16"] == often["setp.lt.u32 17"] == 4 * iterations
    executed = profile(kernel, Launch((32, 1, 1), (1, 1, 1), {"n": iterations}))
    assert executed.is_exact
    assert [i.executions for i in executed.instructions[:6]] == [i.executions for i in found.instructions[:6]]


SHARED_WAY = f"""{HEAD.rstrip()}
    mov.u32 %r1, %tid.x;
    setp.lt.u32 %p0, %r1, 5;
    @%p0 bra BOTH;
    setp.lt.u32 %p1, %r1, 20;
    @%p1 bra BOTH;
    bra END;
BOTH:
    add.u32 %r2, %r1, 1;
END:
    ret;
}}
"""


def test_code_that_both_sides_share_before_lanes_meet_is_not_called_exact() -> None:
    module = ptx.parse(SHARED_WAY, "k.ptx")
    found = profile(module.kernel(), Launch((32, 1, 1), (1, 1, 1)))
    truth = executed(module, "k", (32, 1, 1), (1, 1, 1), [np.zeros(4, np.int32), 0])
    at = next(number for number, i in enumerate(found.instructions) if i.opcode == "add.u32")
    assert truth.warps[0][at] == 2  # once for the lanes of each branch
    assert (found.instructions[at].executions, found.is_exact, found.warp_classes) == (1, False, ())
    assert any("line 10: lanes part here, and both sides share code" in note for note in found.notes)


# ---- shape of warps


@pytest.mark.parametrize("threads", [1, 31, 32, 33, 41, 64])
def test_partial_warps_count_the_threads_that_they_have(threads: int) -> None:
    kernel = ptx.read(SAMPLES / "vecadd.ptx").kernel()
    found = profile(kernel, Launch((threads, 1, 1), (2, 1, 1), {"3": 10**6}))
    assert found.is_exact
    lanes = sum(one.executions * one.lanes for one in found.device_memory if one.line == 44)
    assert lanes * found.warps_per_block == pytest.approx(threads)
    estimated = profile(kernel, Launch((threads, 1, 1), (2, 1, 1)))
    assert estimated.device_memory[0].lanes * estimated.warps_per_block == pytest.approx(threads)


def test_warps_of_64_lanes_hold_two_of_ptx() -> None:
    kernel = ptx.read(SAMPLES / "vecadd.ptx").kernel()
    found = profile(kernel, Launch((256, 1, 1), (4, 1, 1), {"3": 1024}), warp_size=64)
    assert found.warps_per_block == 4
    assert [(one.lanes, one.transactions, one.coalesced) for one in found.device_memory] == [(64, 2, True)] * 3


def test_a_large_launch_falls_back_to_the_structure_and_counts_the_same() -> None:
    kernel = ptx.read(SAMPLES / "vecadd.ptx").kernel()
    small = profile(kernel, Launch((256, 1, 1), (4, 1, 1), {"3": 1024}))
    large = profile(kernel, Launch((256, 1, 1), (65536, 1, 1), {"3": 256 * 65536}))
    assert small.is_exact
    assert not large.is_exact
    assert large.by_kind == small.by_kind
    assert [one.transactions for one in large.device_memory] == [one.transactions for one in small.device_memory]


# ---- what is refused


@pytest.mark.parametrize(
    ("launch", "options", "message"),
    [
        (Launch((32, 1, 1)), {}, "the launch is not known: give --grid"),
        (Launch(grid=(1, 1, 1)), {}, "the launch is not known: give --block"),
        (Launch((32, 1, 1), (1, 1, 1)), {"registers": -1}, "registers per thread must be at least 0, not -1"),
        (Launch((32, 1, 1), (1, 1, 1)), {"dynamic_shared_bytes": -4}, "dynamic shared memory must be at least 0"),
        (Launch((32, 1, 1), (1, 1, 1)), {"warp_size": 0}, "warp size must be at least 1"),
        (Launch((32, 1, 1), (1, 1, 1)), {"warp_size": 10**12}, "warp size must be at most 1024"),
    ],
)
def test_bad_launches_are_refused(launch: Launch, options: dict[str, int], message: str) -> None:
    with pytest.raises(InputError, match=message):
        profile(ptx.read(SAMPLES / "vecadd.ptx").kernel(), launch, **options)  # type: ignore[arg-type]


def test_an_opcode_that_no_table_knows_is_named_with_its_line() -> None:
    kernel = ptx.parse(STRUCTURE.replace("SETP", "frobnicate.u32 %r5, %r1; setp.eq.u32 %p0, 1, 1;"), "k.ptx").kernel()
    with pytest.raises(InputError, match=r"k\.ptx:11: no class is known for `frobnicate\.u32"):
        profile(kernel, Launch((32, 1, 1), (1, 1, 1)))


@pytest.mark.parametrize("call", ["call %rd1, proto", "call vprintf, (%rd1)", "@%p1 call vprintf"])
def test_a_call_of_what_has_no_body_cannot_be_counted(call: str) -> None:
    kernel = ptx.parse(STRUCTURE.replace("SETP", f"setp.eq.u32 %p0, 1, 1; {call};"), "k.ptx").kernel()
    with pytest.raises(UnsupportedError, match=r"k\.ptx:11: `.*call .*` calls what has no body in this file"):
        profile(kernel, Launch((32, 1, 1), (1, 1, 1)))


def test_a_call_that_no_warp_executes_does_no_harm() -> None:
    text = STRUCTURE.replace("SETP", "setp.eq.u32 %p0, 1, 1;").replace("%r2, %r1, 1;", "%r2, %r1, 1; call vprintf;", 1)
    found = profile(ptx.parse(text, "k.ptx").kernel(), Launch((32, 1, 1), (1, 1, 1)))
    assert [one.executions for one in found.instructions if one.opcode == "call"] == [0]


@pytest.mark.parametrize("method", ["hong-kim", "kleimenov-popova", "opencl-cost-table", "dual-issue"])
def test_no_method_estimates_what_it_cannot_count(
    method: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "k.ptx"
    file.write_text(STRUCTURE.replace("SETP", "setp.eq.u32 %p0, 1, 1; call vprintf;"))
    options = {
        "hong-kim": ("--gpu", "quadro-fx5600", "--regs", 8),
        "kleimenov-popova": ("--gpu", "gtx1050", "--worst-case-cache", *PASCAL),
        "opencl-cost-table": ("--table", "rmbp-gt650m"),
        "dual-issue": (),
    }
    done = Runner("estimate", capsys)("--method", method, file, "--block", 32, "--grid", 1, *options[method])
    assert (done.code, done.out) == (2, "")
    assert "`call vprintf;` calls what has no body in this file" in done.err


# ---- classes of instructions


KINDS = """
f16: fma.rn.f16x2 fma.rn.bf16
f32: add.f32
f64: fma.rn.f64 div.rn.f64 sqrt.rn.f64 rcp.approx.ftz.f64
i32: add.s32 add.s16 addc.u32 popc.b32
i64: add.s64 and.b64 popc.b64
i32_mul: mul.wide.s32 mad.lo.s32 mul.wide.u16 dp4a.u32.u32
i64_mul: mul.lo.s64
int_div: div.s32 rem.u64
f32_div: div.rn.f32 div.approx.f32
shift: shl.b32
setp: and.pred setp.lt.s32 setp.lt.f64 selp.f32
cvt: cvt.rn.f32.s32
sfu: sin.approx.f32
mov: cvta.to.global.u64 mov.u32
bra: ret bra.uni
shared: ld.shared::cta.f32 atom.shared.add.u32 ldmatrix.sync.aligned.m8n8.x4.shared.b16
global: ld.global.nc.v4.f32 ld.f32 st.local.u32
const: ld.const.f32
param: ld.param.u64
bar: bar.sync barrier.sync
warp: bar.warp.sync shfl.sync.down.b32 vote.sync.ballot.b32
matrix: mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32
texture: tex.2d.v4.f32.f32
other: membar.gl nanosleep.u32
"""


@pytest.mark.parametrize("line", KINDS.strip().splitlines())
def test_the_kind_of_an_opcode(line: str) -> None:
    expected, *opcodes = line.replace(":", " ", 1).split()
    assert {opcode: kind(PtxInstruction(opcode), "k.ptx") for opcode in opcodes} == dict.fromkeys(opcodes, expected)


# ---- registers and shared memory

SAID = """ptxas info    : 0 bytes gmem
ptxas info    : Compiling entry function 'other' for 'sm_75'
ptxas info    : Function properties for other
    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
ptxas info    : Used 12 registers, 380 bytes cmem[0]
ptxas info    : Compiling entry function 'tiles' for 'sm_75'
ptxas info    : Function properties for tiles
    8 bytes stack frame, 4 bytes spill stores, 12 bytes spill loads
ptxas info    : Used 36 registers, used 1 barriers, 2048+16 bytes smem, 380 bytes cmem[0]
"""


def test_the_output_of_ptxas_is_read(tmp_path: Path) -> None:
    file = tmp_path / "ptxas.txt"
    file.write_text(SAID)
    found = read_resources(file, "tiles")
    assert (found.registers, found.shared_bytes, found.spill_bytes) == (36, 2064, 16)
    with pytest.raises(InputError, match="for kernel missing; kernels there: other, tiles"):
        parse_resources(SAID, "missing", "ptxas.txt")
    with pytest.raises(InputError, match="cannot read the output of ptxas -v"):
        read_resources(tmp_path / "nothing.txt", "tiles")


def test_resources_win_over_declarations_and_given_registers_over_both() -> None:
    kernel, launch = ptx.read(SAMPLES / "matmul_tiled.ptx").kernel(), Launch((16, 16, 1), (1, 1, 1), {"3": 16})
    declared = profile(kernel, launch, dynamic_shared_bytes=100)
    assert (declared.registers, declared.shared_bytes, declared.spill_bytes) == (None, 2 * 16 * 16 * 4 + 100, None)
    told = profile(kernel, launch, resources=parse_resources(SAID, "tiles", "x"), registers=40)
    assert (told.registers, told.shared_bytes, told.spill_bytes) == (40, 2064, 16)


@pytest.mark.parametrize(
    ("declaration", "expected"),
    [
        (".shared .align 4 .b8 a[1024];", 1024),
        (".shared .f32 a[8][4];", 128),
        (".shared .v4 .f32 a;", 16),
        (".shared .b8 a; .shared .align 8 .b8 b[4];", 12),
        (".shared .b8 unused[99];", 0),
    ],
)
def test_shared_memory_that_is_mentioned_is_counted(declaration: str, expected: int) -> None:
    names = [name for name in ("a", "b") if f" {name}" in declaration]
    uses = " ".join(f"mov.u32 %r0, {name};" for name in names)
    text = f".version 8.0\n.target sm_80\n.visible .entry k()\n{{\n.reg .u32 %r<2>;\n{declaration}\n{uses}\nret;\n}}\n"
    assert profile(ptx.parse(text, "k.ptx").kernel(), Launch((32, 1, 1), (1, 1, 1))).shared_bytes == expected


@pytest.mark.skipif(shutil.which("ptxas") is None, reason="no assembler here")
@pytest.mark.parametrize("name", ["matmul_tiled", "vecadd", "reduction"])
def test_ptxas_agrees_on_shared_memory(name: str, tmp_path: Path) -> None:
    source = SAMPLES / f"{name}.ptx"
    module = ptx.read(source)
    command = ["ptxas", "-v", "-arch=sm_75", "-o", str(tmp_path / "out.cubin"), str(source)]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)
    found = parse_resources(done.stderr + done.stdout, name, "ptxas -v")
    launch = Launch((256, 1, 1), (1, 1, 1), {"3": 16} if name != "reduction" else {})
    declared = profile(module.kernel(), launch, loop_bounds=[])
    assert 1 <= found.registers <= 255
    assert found.shared_bytes == declared.shared_bytes
