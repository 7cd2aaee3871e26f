"""From PTX to the model of Kleimenov and Popova: which instructions the main thread executes, and the command line."""

import json
from functools import partial
from pathlib import Path

import pytest

from makespan.estimates import kleimenov_popova as model
from makespan.estimates.kleimenov_popova import HitRates, PtxModel, Rules, estimate, from_ptx
from makespan.estimates.kleimenov_popova.device import PREFIX, read_gpu
from makespan.estimates.kleimenov_popova.from_ptx import to_singles
from makespan.estimates.kleimenov_popova.thread_time import LoopRule, Repeat, Sequence
from makespan.estimates.profile.launched import Launched
from makespan.host.errors import InputError, UnsupportedError
from makespan.kernels import ptx
from makespan.kernels.flow import given_bound, launch
from makespan.model.machine import gpus
from makespan.model.machine.gpus import with_settings
from tests.command import Outcome, Runner
from tests.estimates.kleimenov_popova.inputs import FIGURE_3, gpu, kernel
from tests.test_docs import ROOT

SAMPLES = ROOT / "ptx"


def modelled(
    body: str, *, block: str = "64", grid: str = "20", rule: LoopRule = "unroll2", bounds: str = "", **figures: float
) -> PtxModel:
    described = gpu(**figures)
    return from_ptx(
        kernel(body),
        launch(block, grid),
        described,
        HitRates(0.5, 0.25),
        rule=rule,
        loop_bounds=[given_bound(text) for text in bounds.split()],
        registers=32,
    )


def opcodes(body: str, **options: str) -> list[list[str]]:
    """What the main thread of each kind of warp executes, loops as LABEL*N[...]."""
    found = modelled(body, **options)  # type: ignore[arg-type]
    code = kernel(body).instructions

    def names(steps: Sequence) -> list[str]:
        return [
            f"{step.label}*{step.trips}[{' '.join(names(step.body))}]"
            if isinstance(step, Repeat)
            else code[step.number].opcode
            for step in steps.steps
        ]

    return [names(thread.steps) for thread in found.threads]


DIVERGENT = """
    mov.u32 %r1, %tid.x;
    setp.lt.u32 %p1, %r1, 5;
    @%p1 bra THEN;
    add.f32 %f1, %f1, %f1;
    bra MEET;
THEN:
    mul.f64 %fd1, %fd1, %fd1;
    mul.f64 %fd1, %fd1, %fd1;
MEET:
    ret;
"""


NEST = """
    mov.u32 %r1, 0;
OUTER:
    mov.u32 %r2, 0;
INNER:
    add.f32 %f1, %f1, %f1;
    add.u32 %r2, %r2, 1;
    setp.lt.u32 %p1, %r2, 7;
    @%p1 bra INNER;
    add.u32 %r1, %r1, 1;
    setp.lt.u32 %p2, %r1, 3;
    @%p2 bra OUTER;
    ret;
"""
LEFT_EARLY = """
    mov.u32 %r1, 0;
LOOP:
    ld.global.u32 %r3, [%rd1];
    setp.eq.u32 %p1, %r3, 9;
    @%p1 bra OUT;
    add.u32 %r1, %r1, 1;
    setp.lt.u32 %p2, %r1, 10;
    @%p2 bra LOOP;
OUT:
    ret;
"""
ENDS_EARLY = "mov.u32 %r1, %tid.x;\nsetp.gt.u32 %p1, %r1, 5;\n@%p1 bra END;\nadd.f32 %f1, %f1, %f1;\nEND:\nret;"
UNKNOWN = DIVERGENT.replace("mov.u32 %r1, %tid.x", "ld.param.u32 %r1, [n]")
TEST, SHORT, LONG = "mov.u32 setp.lt.u32 bra", "add.f32 bra", "mul.f64 mul.f64"


@pytest.mark.parametrize(
    ("body", "block", "expected"),
    [
        # where lanes may part, both sides follow each other; here they do so in the first warp alone
        (DIVERGENT, "64", [f"{TEST} {SHORT} {LONG} ret", f"{TEST} {SHORT} ret"]),
        # of a branch that all lanes take alike the longer side counts
        (UNKNOWN, "64", [f"ld.param.u32 setp.lt.u32 bra {LONG} ret"]),
        # a branch that the launch decides goes one way
        (DIVERGENT.replace("%tid.x", "%ntid.x"), "32", [f"{TEST} {SHORT} ret"]),
        # warps that execute different code are told apart
        (DIVERGENT.replace("%r1, 5", "%r1, 32"), "64", [f"{TEST} {LONG} ret", f"{TEST} {SHORT} ret"]),
        # a thread that ends early is one side
        (ENDS_EARLY, "32", ["mov.u32 setp.gt.u32 bra add.f32 ret"]),
        # a loop in a loop, and a way out of the middle of a loop, which is not taken
        (
            NEST,
            "64",
            ["mov.u32 OUTER*3[mov.u32 INNER*7[add.f32 add.u32 setp.lt.u32 bra] add.u32 setp.lt.u32 bra] ret"],
        ),
        (LEFT_EARLY, "64", ["mov.u32 LOOP*10[ld.global.u32 setp.eq.u32 bra add.u32 setp.lt.u32 bra] ret"]),
    ],
)
def test_the_main_threads_of_warps_execute_what_control_flow_says(body: str, block: str, expected: list[str]) -> None:
    assert [" ".join(names) for names in opcodes(body, block=block)] == expected


def test_a_choice_between_two_sides_is_said_and_warps_are_numbered() -> None:
    assert [note for note in modelled(UNKNOWN).notes if "longer side counts" in note] == [
        "line 15: which way all lanes go is not known; the longer side counts"
    ]
    assert [thread.warps for thread in modelled(DIVERGENT.replace("%r1, 5", "%r1, 32")).threads] == [(0,), (1,)]


def test_nested_loops_by_the_published_rule() -> None:
    """Inner: add.u32 at 1, setp at 7, bra at 13: T1 14, T2 28, so 7 trips take 98 cycles and leave the counter ready.

    Outer: mov 1 + 98, add 1, setp and bra wait 6 cycles each: 113 for one iteration, 226 for two.
    """
    found = modelled(NEST)
    assert found.threads[0].time.cycles(0) == 1 + 3 * (1 + 98 + 1 + 5 + 6 + 1) + 1
    assert found.threads[0].time.delay == 1 + 3 * (1 + 7 * 4 + 3) + 1


def test_figure_3_costs_no_back_edge_as_published() -> None:
    """A loop of 427.5 cycles behind 2 moves and before a ret; trip 15 is inferred."""
    found = modelled(FIGURE_3, latency_f64=8, delay_f64=2)
    assert opcodes(FIGURE_3)[0][2].startswith("LOOP*15[")
    assert found.threads[0].time.cycles(0) == 2 + 427.5 + 1
    assert found.threads[0].time.delay == 2 + 15 * 9 + 1


def test_traffic_barriers_and_uncoalesced_bytes_are_counted() -> None:
    body = """
    ld.param.u64 %rd1, [data];
    mov.u32 %r1, %tid.x;
    mul.wide.u32 %rd2, %r1, 4;
    mul.wide.u32 %rd3, %r1, 256;
    add.u64 %rd4, %rd1, %rd2;
    add.u64 %rd5, %rd1, %rd3;
    ld.global.f32 %f1, [%rd4];
    bar.sync 0;
    st.global.f64 [%rd5], %fd1;
    ret;
"""
    (thread,) = modelled(body).threads
    assert (thread.bytes, thread.uncoalesced_bytes, thread.syncs) == (12, 8, 1)
    (warp, rest) = modelled(body, block="40").kernel.warps
    assert (warp.all_bytes, warp.bytes) == (32 * 12, (32 * 6, 32 * 3, 32 * 3, 32 * 8))
    assert rest.all_bytes == 8 * 12


def test_a_function_of_the_file_is_modelled_with_its_call() -> None:
    text = ".version 8.0 .target sm_80 .func f(.reg .b32 a) { add.u32 a, a, 1; ret; } .entry k() { call f, (1); ret; }"
    found = to_singles(Launched.of(ptx.parse(text, "k.ptx").kernel(), launch("64", "20")))
    assert [single.number for single in found] == [0, 1, 2, 3]
    assert "a@1" in found[1].writes


def test_a_loop_that_nests_too_many_steps_is_refused_in_exact_mode_only() -> None:
    body = NEST.replace("%r2, 7", "%r2, %r8").replace("%r1, 3", "%r1, %r9")
    deep = "\n".join(f"add.f32 %f{n}, %f{n}, %f{n};" for n in range(16)) * 3
    body = body.replace("add.f32 %f1, %f1, %f1;", deep)
    assert modelled(body, bounds="OUTER=20000 INNER=20000").threads[0].time.cycles(0) > 10**9
    with pytest.raises(UnsupportedError, match="--loop unroll2"):
        modelled(body, rule="exact", bounds="OUTER=20000 INNER=20000")


@pytest.mark.parametrize("rule", ["unroll2", "exact"])
@pytest.mark.parametrize("file", sorted(SAMPLES.glob("*.ptx")), ids=lambda file: file.stem)
def test_every_sample_kernel_has_an_estimate(file: Path, rule: LoopRule) -> None:
    module, described = ptx.read(file), gpu()
    for each in module.kernels:
        asked = launch("256", "100")
        unbounded = [info.label for info in ptx.loops(each, (), asked) if info.bound is None]
        bounds = [given_bound(f"{label}=20") for label in unbounded]
        found = from_ptx(each, asked, described, HitRates(0, 0), rule=rule, loop_bounds=bounds)
        result = estimate(found.device, found.kernel)
        assert result.is_converged
        assert result.cycles >= max(float(thread.time.delay) for thread in found.threads)


# GPU descriptions


def doubled(described: gpus.Gpu) -> PtxModel:
    return from_ptx(kernel("add.f64 %fd1, %fd1, %fd1;\nret;"), launch("32", "1"), described, HitRates(0, 0))


def test_issue_delays_follow_from_units_or_throughputs_of_a_processing_block() -> None:
    described = with_settings(gpu(), ["units.f64=1", "throughput.sfu=8", "units.f32=64"], "test", model=PREFIX)
    assert doubled(described).timing.delays == {"f64": 32, "bra": 1}
    with pytest.raises(InputError, match=r"throughput\.f64: issue delay 0\.25 is below 1 cycle"):
        doubled(with_settings(gpu(), ["throughput.f64=128"], "test", model=PREFIX))
    units = gpus.gpu_datum("kleimenov_popova.units.f64", 1, source="test")
    with pytest.raises(InputError, match="delay of f64 is told in 2 ways, delay and units"):
        doubled(gpus.Gpu("test", {**gpu().data, "kleimenov_popova.units.f64": units}))


def test_the_bandwidth_of_the_device_memory_follows_from_the_data_sheet() -> None:
    known = {key: value for key, value in gpu().data.items() if not key.endswith("band_DRAM")}
    rate = gpus.gpu_datum("mem_bw_gbs", 112, source="data sheet")
    assert read_gpu(gpus.Gpu("test", {**known, "mem_bw_gbs": rate}))[0].bandwidth.dram == 112
    with pytest.raises(InputError, match=r"band_DRAM .* is not known"):
        read_gpu(gpus.Gpu("test", known))


def test_gtx1050_says_what_must_be_measured() -> None:
    with pytest.raises(InputError, match=r"5 numbers are not known; .*lat_DRAM.*measure latency.*--set KEY=N"):
        read_gpu(gpus.find_gpu("gtx1050"))


# command line

RATES = ["--l1pct=0.5", "--l2pct=0.25"]
LAUNCH = ["--block=64", "--grid=20"]


@pytest.fixture
def estimated(capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Runner:
    monkeypatch.chdir(tmp_path)
    Path("gpu.toml").write_text(gpus.gpu_text(gpu(latency_f64=8, delay_f64=2)))
    Path("k.ptx").write_text(ptx.render(ptx.PtxModule("k.ptx", (kernel(FIGURE_3),))))
    return Runner("estimate", capsys)


def run(estimated: Runner, *arguments: str) -> Outcome:
    return estimated("--method", "kleimenov-popova", "k.ptx", "--gpu=gpu.toml", *arguments)


def test_the_command_estimates_and_says_that_it_is_no_bound(estimated: Runner) -> None:
    done = run(estimated, *LAUNCH, *RATES, "--regs=32", "--measured=1e-6")
    assert (done.code, done.err) == (0, "")
    assert done.out.splitlines()[-1] == "estimate (not a bound) by kleimenov-popova: 1534.5 cycles, 1.5345e-06 s"
    assert "error = 0.5345" in done.out


def test_the_command_has_an_alias(estimated: Runner) -> None:
    done = estimated("static-fixpoint", "k.ptx", "--gpu=gpu.toml", *LAUNCH, "--worst-case-cache", "--format=json")
    document = json.loads(done.out)
    assert (document["method"], document["is_bound"]) == ("kleimenov-popova", False)
    assert {"l1pct", "delaydep", "wave 1 lat_DRAM"} <= {quantity["name"] for quantity in document["quantities"]}


def test_the_command_prints_times_by_lat(estimated: Runner) -> None:
    done = run(estimated, *LAUNCH, *RATES, "--expr")
    assert done.out.startswith("time(lat) = 430.5\nT2_LOOP(lat) = 57\n")
    document = json.loads(run(estimated, *LAUNCH, *RATES, "--expr", "--format=json", "--loop=exact").out)
    assert document["expressions"] == {"time(lat)": "469"}


def test_every_quantity_is_explained_with_its_source(estimated: Runner) -> None:
    explained = run(estimated, *LAUNCH, *RATES, "--explain", "--set=units.f64=1").out
    assert "del_f64 = 32 cycles" in explained
    assert "rule U of 1.0 units; given: --set" in explained


def test_a_fixed_point_that_is_not_reached_is_exit_3(estimated: Runner, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(model, "Rules", partial(Rules, max_iterations=2))
    Path("k.ptx").write_text(
        ptx.render(ptx.PtxModule("k.ptx", (kernel("ld.global.f32 %f1, [%rd1];\nadd.f32 %f2, %f1, %f1;\nret;"),)))
    )
    done = run(estimated, *LAUNCH, *RATES, "--set=band_DRAM=0.1")
    assert done.code == 3
    assert "the fixed point of DRAM did not converge in 2 iterations: time " in done.out
    assert ", mul " in done.out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([*LAUNCH], "--l1pct and --l2pct not given"),
        ([*LAUNCH, "--l1pct=0.5"], "--l2pct not given"),
        ([*LAUNCH, "--l1pct=0.5", "--worst-case-cache"], "no --l1pct or --l2pct beside it"),
        ([*LAUNCH, "--l1pct=1.5", "--l2pct=0"], "l1pct must be within 0..1"),
        ([*LAUNCH, "--l1pct=nan", "--l2pct=0"], "l1pct must be within 0..1"),
        ([*LAUNCH, "--l1pct=0.7", "--l2pct=0.7"], "at most 1 together"),
        ([*LAUNCH, *RATES, "--set=lat_uncoal=399"], "lat_uncoal 399 is below lat_DRAM 400"),
        ([*LAUNCH, *RATES, "--set=lat_L1=0"], "lat_L1 must be a number above 0"),
        ([*LAUNCH, *RATES, "--set=band_L1=-1"], "band_L1 must be a number above 0"),
        ([*LAUNCH, *RATES, "--set=clock_ghz=0"], "clock_ghz must be a number above 0"),
        ([*LAUNCH, *RATES, "--set=clock_ghz=nan"], "must be a number, not 'nan'"),
        ([*LAUNCH, *RATES, "--set=delay.f64=0.5"], "issue delay 0.5 is below 1 cycle"),
        ([*LAUNCH, *RATES, "--set=delay.sfu=0.1"], "issue delay 0.1 is below 1 cycle"),
        ([*LAUNCH, *RATES, "--set=throughput.sfu=128"], "below 1 cycle"),
        ([*LAUNCH, *RATES, "--set=throughput.f64=128"], "below 1 cycle"),
        ([*LAUNCH, *RATES, "--set=latencies.f64=8"], "unknown key"),
        ([*LAUNCH, *RATES, "--set=lat_L1=8", "--set=lat_L1=9"], "given twice"),
        ([*LAUNCH, *RATES, "--eps=0"], "eps must be positive"),
        ([*LAUNCH, *RATES, "--measured=0"], "measured time must be positive"),
        (["--grid=20", *RATES], "give --block"),
        (["--block=64", *RATES], "give --grid"),
        (["--block=0", "--grid=1", *RATES], "--block 0"),
        (["--block=2000", "--grid=1", *RATES], "--block 2000"),
        (["--block=512", "--grid=1", *RATES], "the block fits on no SM: it needs 16 warps, an SM has 8"),
        ([*LAUNCH, *RATES, "--regs=2000"], "registers"),
        ([*LAUNCH, *RATES, "--smem=100000"], "bytes of shared memory"),
        ([*LAUNCH, *RATES, "--loop-bound=NOWHERE=5"], "no loop NOWHERE"),
        ([*LAUNCH, *RATES, "--kernel=other"], "no kernel 'other'"),
    ],
)
def test_bad_input_is_one_line_and_exit_2(estimated: Runner, arguments: list[str], message: str) -> None:
    done = run(estimated, *arguments)
    assert (done.code, done.out) == (2, "")
    assert message in done.err
    assert len(done.err.splitlines()) == 1


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("frobnicate.f32 %f1, %f1;\nret;", "frobnicate.f32"),
        (
            "LOOP:\nadd.u32 %r1, %r1, 1;\nld.global.u32 %r2, [%rd1];\nsetp.lt.u32 %p1, %r1, %r2;\n@%p1 bra LOOP;\nret;",
            "give --loop-bound LOOP=N",
        ),
        ("call (%r1), elsewhere, (%r2);\nret;", "calls what has no body"),
        ("LOOP:\nadd.u32 %r1, %r1, 1;\nbra LOOP;", "give --loop-bound LOOP=N"),
    ],
)
def test_a_kernel_that_cannot_be_modelled_is_refused_with_its_line(
    estimated: Runner, body: str, message: str, tmp_path: Path
) -> None:
    lines = [".version 7.0", ".target sm_75", ".visible .entry k(.param .u64 data, .param .u32 n)", "{"]
    lines += [".reg .pred %p<4>; .reg .b32 %r<4>; .reg .f32 %f<4>; .reg .b64 %rd<4>;", body, "}"]
    Path("k.ptx").write_text("\n".join(lines) + "\n")
    done = run(estimated, *LAUNCH, *RATES)
    assert (done.code, done.out) == (2, "")
    assert message in done.err
    assert "k.ptx:" in done.err


def test_classes_without_latency_are_named_with_an_instruction(estimated: Runner) -> None:
    figures = {key: value for key, value in gpu().data.items() if not key.endswith((".f64", ".setp"))}
    Path("gpu.toml").write_text(gpus.gpu_text(gpus.Gpu("test", figures)))
    done = run(estimated, *LAUNCH, *RATES)
    assert done.code == 2
    assert "kleimenov_popova.latency.f64 (mul.f64, line " in done.err
    assert "kleimenov_popova.delay.setp (setp.lt.s32, line " in done.err
    assert "measure latency" in done.err


def test_all_that_a_gpu_lacks_is_one_list(estimated: Runner) -> None:
    done = estimated("--method", "kleimenov-popova", "k.ptx", "--gpu=gtx1050", *LAUNCH, *RATES)
    assert (done.code, len(done.err.splitlines())) == (2, 1)
    for key in ("lat_DRAM", "band_L1", "latency.setp (setp.lt.s32, line "):
        assert f"kleimenov_popova.{key}" in done.err
    asked = estimated("--method", "kleimenov-popova", "k.ptx", "--gpu=gtx1050", "--block=12x", "--grid=20", *RATES)
    assert "--block" in asked.err
