"""Campaigns on a device whose truth is known: honest runs stay below the bound, planted faults are found."""

import struct
from dataclasses import replace
from pathlib import Path

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from makespan.hardware import campaign, judgement
from makespan.hardware.campaign import Campaign, CampaignRun, KernelBuffer, RunCondition, WarpRecord
from makespan.hardware.device import CacheState, DeviceFault, DeviceLaunch, LaunchExtent, NeighbourLoad, SimulatedDevice
from makespan.hardware.judgement import WindowKind
from makespan.hardware.subject import BoundTarget, MeasuredKernel, measured_kernel
from makespan.host.errors import InputError, MeasurementError, UnsupportedError
from makespan.kernels.flow import Launch
from makespan.kernels.question import KernelQuestion, LaunchedKernel
from makespan.model.gpu import GpuInstance
from makespan.model.machine import find_machine, given_latencies, gpus
from makespan.model.result import Result
from makespan.proof.engines import Limits, solve
from makespan.proof.engines.gpu import solve_gpu

KERNEL = """
.version 7.0
.target sm_75
.address_size 64
.visible .entry k(.param .u64 at, .param .u32 n)
{
    .reg .pred %p; .reg .u32 %r<4>; .reg .u64 %a<4>;
    ld.param.u64 %a0, [at];
    ld.param.u32 %r0, [n];
    mov.u32 %r1, %tid.x;
    setp.ge.u32 %p, %r1, %r0;
    @%p bra out;
    mul.wide.u32 %a1, %r1, 4;
    add.u64 %a2, %a0, %a1;
    ld.global.u32 %r2, [%a2];
    add.u32 %r2, %r2, 1;
    st.global.u32 [%a2], %r2;
out:
    ret;
}
"""
IDLE = RunCondition("zeros", 0, CacheState.THRASHED, NeighbourLoad.IDLE)
MACHINE = find_machine("ampere-ga10x").machine
LATENCIES = ("global=..900", "fetch=..90", "constant-miss=..90")
"""Four times the first are more than the bound, with what first fetches add to it."""


@pytest.fixture(scope="module")
def measured(tmp_path_factory: pytest.TempPathFactory) -> MeasuredKernel:
    path = tmp_path_factory.mktemp("kernel") / "k.ptx"
    path.write_text(KERNEL)
    launch = Launch(block=(40, 1, 1), parameters={"n": 35})
    question = KernelQuestion(path, launch=launch, latencies=given_latencies(LATENCIES))
    return measured_kernel(question, "sm_86", {"at": "160"})


@pytest.fixture(scope="module")
def gpu(measured: MeasuredKernel) -> GpuInstance:
    return BoundTarget(MACHINE, 4).launched(measured.recorded)


@pytest.fixture(scope="module")
def bound(measured: MeasuredKernel) -> Result:
    return solve(BoundTarget(MACHINE, 4).alone(measured.recorded), limits=Limits(0.2))


def about(device: SimulatedDevice, grid: LaunchExtent = (1, 1, 1), threads: LaunchExtent = (40, 1, 1)) -> Campaign:
    return Campaign(campaign.SCHEMA, device.identity, "k.ptx", "k", "", "", grid, threads, 0, {}, 7)


def made(
    device: SimulatedDevice, found: MeasuredKernel, under: list[RunCondition], grid: LaunchExtent = (1, 1, 1)
) -> list[CampaignRun]:
    return list(campaign.launch_runs(device, about(device, grid), found.image, list(found.arguments.values()), under))


def judged(runs: list[CampaignRun], bound: Result) -> WindowKind:
    return WindowKind(judgement.judged_windows(runs).alone, bound, bound, {})


@settings(max_examples=4, deadline=None)
@given(seed=st.integers(0, 2**64 - 1))
def test_honest_runs_are_below_the_bound(measured: MeasuredKernel, gpu: GpuInstance, bound: Result, seed: int) -> None:
    found = judged(made(SimulatedDevice(gpu, "8.6", seed), measured, [IDLE] * 18), bound)
    assert (len(found.windows), found.violations) == (18, ())
    assert 0 < found.longest.cycles < found.bound


@pytest.mark.parametrize("fault", [DeviceFault.LATE, DeviceFault.IDLE])
def test_planted_faults_are_found(
    measured: MeasuredKernel, gpu: GpuInstance, bound: Result, fault: DeviceFault
) -> None:
    found = judged(made(SimulatedDevice(gpu, "8.6", 1, fault), measured, [IDLE] * 64), bound)
    assert found.violations
    assert {window.run % 8 for window in found.violations} == {7}


def test_latencies_that_are_too_long_are_found_in_a_launch(measured: MeasuredKernel, gpu: GpuInstance) -> None:
    small = replace(gpu, sms=2, room=(2,))
    seen = judgement.judged_windows(
        made(SimulatedDevice(small, "8.6", 1, DeviceFault.LATE), measured, [IDLE] * 16, (5, 1, 1))
    )
    launched = solve_gpu(replace(small, grids=(replace(gpu.grid, blocks=5),)), limits=Limits(0.05))
    found = WindowKind(seen.shared, launched, launched, {}).violations
    assert {window.run for window in found} == {7, 15}


def test_a_block_alone_waits_for_memory_as_long_as_with_all_sms_at_work(measured: MeasuredKernel) -> None:
    one = measured.recorded
    growing = replace(one.question, latencies=given_latencies(["global=..500+100n", *LATENCIES[1:]]))
    busy, same = (
        BoundTarget(MACHINE, 4).alone(each) for each in (LaunchedKernel(growing, one.module, one.kernel), one)
    )
    assert [group.program.timings for group in busy.groups] == [group.program.timings for group in same.groups]


def test_more_sms_than_the_gpu_has_are_another_gpu() -> None:
    with pytest.raises(InputError, match=r"GPU rtx-3070: the number of SMs must be 1\.\.46"):
        BoundTarget(MACHINE, 47, gpus.find_gpu("rtx-3070"))


def test_blocks_alone_and_blocks_that_share_an_sm_are_told_apart(measured: MeasuredKernel, gpu: GpuInstance) -> None:
    device = SimulatedDevice(gpu, "8.6", 1)
    seen = judgement.judged_windows(made(device, measured, [IDLE] * 4, (6, 1, 1)))
    assert {window.blocks for window in seen.alone} == {1}
    assert min(window.blocks for window in seen.shared) > 1
    assert sum(window.blocks for window in (*seen.alone, *seen.shared)) == 24
    assert seen.set_aside == 0


def record(block: int, warp: int, sm: int, start: int, end: int) -> WarpRecord:
    return WarpRecord(block, warp, sm, warp, start, end)


def test_a_window_is_from_the_first_start_to_the_last_end(bound: Result) -> None:
    run = CampaignRun(0, IDLE, (record(0, 0, 1, 105, 200), record(0, 1, 1, 100, 190)))
    (window,) = judged([run], bound).windows
    assert (window.cycles, window.apart, window.sm) == (100, 5, 1)


@pytest.mark.parametrize(("beyond", "violations"), [(-1, 0), (0, 1), (1, 1)])
def test_a_run_at_the_bound_is_not_below_it(bound: Result, beyond: int, violations: int) -> None:
    end = 100 + bound.bounds.upper + beyond
    run = CampaignRun(0, IDLE, (record(0, 0, 1, 100, 110), record(0, 1, 1, 100, end)))
    assert len(judged([run], bound).violations) == violations


@pytest.mark.parametrize(
    ("run", "why"),
    [
        (CampaignRun(0, IDLE, (record(0, 0, 1, 9, 8), record(0, 1, 1, 1, 9))), "the clock of SM 1 went backward"),
        (CampaignRun(3, IDLE, (record(0, 0, 1, 1, 8), record(0, 1, 2, 1, 9))), "run 3: .* on several SMs"),
        (CampaignRun(0, IDLE, (record(0, 0, 1, 1, 8), record(0, 1, 1, 1, 9)), (0, 1)), "nothing can be judged"),
    ],
)
def test_what_cannot_be_judged_is_no_answer(bound: Result, run: CampaignRun, why: str) -> None:
    with pytest.raises(MeasurementError, match=why):
        judged([run], bound)


class Spy(SimulatedDevice):
    """Keeps what the buffer holds when the kernel starts, and what was done before."""

    def __init__(self, gpu: GpuInstance) -> None:
        super().__init__(gpu, "8.6", 1)
        self.done: list[object] = []

    def load(self, image: bytes, kernel: str) -> None:
        self.done.append("load")

    def overwrite_cache(self) -> None:
        self.done.append("overwrite")

    def launch(self, launch: DeviceLaunch, neighbours: NeighbourLoad) -> tuple[int, ...]:
        at, n, _ = (int.from_bytes(each, "little") for each in launch.arguments)
        self.done.append((at % 256, n, self.read(at, 160), str(neighbours)))
        return super().launch(launch, neighbours)


def test_conditions_are_what_a_run_finds(measured: MeasuredKernel, gpu: GpuInstance) -> None:
    under = campaign.run_conditions(["zeros", "random"], ["4"], ["warm", "cold"], ["hog"])
    spy = Spy(gpu)
    made(spy, measured, list(under))
    load, warming, warm, again, overwritten, cold, *others = spy.done
    assert (load, again, overwritten) == ("load", "load", "overwrite")
    assert warming == (4, 35, bytes(160), "idle")
    assert warm == cold == (4, 35, bytes(160), "hog")
    drawn = [each[2] for each in others if isinstance(each, tuple)]
    assert len(drawn) == 3
    assert bytes(160) not in drawn


def test_the_content_of_a_file_is_the_same_in_every_run(
    measured: MeasuredKernel, gpu: GpuInstance, tmp_path: Path
) -> None:
    path = tmp_path / "worst.bin"
    path.write_bytes(bytes(range(160)))
    spy = Spy(gpu)
    own = replace(measured, arguments={**measured.arguments, "at": KernelBuffer(160, path.read_bytes())})
    made(spy, own, list(campaign.run_conditions(["zeros", "random"], ["0"], ["thrashed"], ["idle"])))
    assert [each[2] for each in spy.done if isinstance(each, tuple)] == [bytes(range(160))] * 2


def test_a_thread_without_a_record_is_a_failed_measurement(measured: MeasuredKernel, gpu: GpuInstance) -> None:
    class Silent(SimulatedDevice):
        def launch(self, *given: object) -> tuple[int, ...]:
            return ()

    with pytest.raises(MeasurementError, match="warp 0 of block 0 has left no record"):
        made(Silent(gpu, "8.6", 1), measured, [IDLE])


def test_a_warp_begins_with_its_first_lane_and_ends_with_its_last(measured: MeasuredKernel, gpu: GpuInstance) -> None:
    class Lanes(SimulatedDevice):
        def launch(self, launch: DeviceLaunch, neighbours: NeighbourLoad) -> tuple[int, ...]:
            at = int.from_bytes(launch.arguments[-1], "little")
            lanes = ((500 - lane, 7, 1 + lane // 32, 600 + (lane * 7) % 40, 0) for lane in range(40))
            self.write(at, b"".join(struct.pack("<QIIQQ", *each) for each in lanes))
            return (3, 4)

    (run,) = made(Lanes(gpu, "8.6", 1), measured, [IDLE])
    assert run.warps == (WarpRecord(0, 0, 7, 1, 469, 639), WarpRecord(0, 1, 7, 2, 461, 638))
    assert run.others == (3, 4)


def test_too_many_threads_are_refused_before_anything_is_allocated(measured: MeasuredKernel, gpu: GpuInstance) -> None:
    with pytest.raises(InputError, match="launch fewer blocks"):
        made(SimulatedDevice(gpu, "8.6", 1), measured, [IDLE], (1 << 20, 1, 1))


def test_runs_that_no_file_could_keep_are_refused(gpu: GpuInstance) -> None:
    launched = about(SimulatedDevice(gpu, "8.6", 1), (1000, 1, 1))
    most = campaign.campaign_line(
        CampaignRun(10**6, IDLE, (WarpRecord(2**20, 31, 999, 63, 2**64 - 1, 2**64 - 1),) * 2000)
    )
    assert len(most) * 2000 < campaign.MAX_FILE_BYTES
    launched.check(2000)
    with pytest.raises(InputError, match=r"2001 runs of 2000 warps each .*: --runs 2000, or launch fewer blocks"):
        launched.check(2001)


def kept(device: SimulatedDevice, runs: list[CampaignRun]) -> bytes:
    return campaign.campaign_line(about(device)) + b"".join(map(campaign.campaign_line, runs))


def test_runs_that_are_kept_are_read_as_they_were(measured: MeasuredKernel, gpu: GpuInstance, tmp_path: Path) -> None:
    device = SimulatedDevice(gpu, "8.6", 1)
    runs = made(device, measured, [IDLE] * 2)
    path = tmp_path / "runs.jsonl"
    path.write_bytes(kept(device, runs))
    assert campaign.read_campaign(path) == (about(device), tuple(runs))


@pytest.mark.parametrize(
    ("line", "change", "why"),
    [
        (0, {"schema": "x"}, ":1: these are no runs"),
        (0, {"grid": [0, 1, 1]}, ":1: a launch of 0 blocks"),
        (0, {"extra": 1}, ":1: Object contains unknown field"),
        (0, {"kernel": "k\u001b[31m"}, ":1: a text has letters that do not print"),
        (0, {"shared": -1}, ":1: -1 bytes of shared memory"),
        (1, {"warps": [[0, 0, -1, 0, 0, 1], [0, 1, 0, 0, 0, 1]]}, ":2: a negative number of an SM"),
        (1, {"warps": []}, ":2: the warps are not those of the launch"),
        (1, {"warps": [[0, 0, 0, 0, 0, 1]] * 2}, ":2: the warps are not those of the launch"),
        (1, {"number": "one"}, ":2: Expected `int`"),
        (1, {"condition": {"inputs": "ones", "offset": 0, "cache": "cold", "neighbours": "idle"}}, ":2: inputs are"),
    ],
)
def test_lines_that_are_none_are_named(gpu: GpuInstance, tmp_path: Path, line: int, change: object, why: str) -> None:
    path, device = tmp_path / "runs.jsonl", SimulatedDevice(gpu, "8.6", 1)
    run = CampaignRun(0, IDLE, (record(0, 0, 1, 1, 8), record(0, 1, 1, 1, 9)))
    lines = kept(device, [run]).splitlines()
    lines[line] = msgspec.json.encode(msgspec.json.decode(lines[line]) | change)
    path.write_bytes(b"\n".join(lines))
    with pytest.raises(InputError, match=why):
        campaign.read_campaign(path)


@given(content=st.binary(max_size=200), cut=st.integers(0, 700))
@settings(max_examples=60, deadline=None)
def test_files_are_read_or_refused(
    gpu: GpuInstance, tmp_path_factory: pytest.TempPathFactory, content: bytes, cut: int
) -> None:
    device = SimulatedDevice(gpu, "8.6", 1)
    whole = kept(device, [CampaignRun(0, IDLE, (record(0, 0, 1, 1, 8), record(0, 1, 1, 1, 9)))])
    path = tmp_path_factory.getbasetemp() / "cut.jsonl"
    path.write_bytes(whole[:cut] + content)
    try:
        found = campaign.read_campaign(path)
    except InputError:
        return
    assert [each.block for each in found[1][0].warps] == [0] * found[0].warps_per_block


def test_machine_code_measured_is_machine_code_bounded(measured: MeasuredKernel) -> None:
    assert campaign.code_hash(measured.image) == measured.code
    texts = [str(each) for each in measured.recorded.kernel.code]  # type: ignore[union-attr]
    assert sum("SR_CLOCK" in text for text in texts) == 1 + measured.harness.ends
    assert not any("SR_CLOCK" in str(each) for each in measured.original.kernel.code)  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("parameters", "buffers", "why"),
    [
        ({"n": 1}, {}, "what is parameter at of kernel k .* --buffer at=BYTES"),
        ({}, {"at": "64", "n": "8"}, "parameter n .* holds no address"),
        ({"at": 1, "n": 1}, {"at": "64"}, "parameter at is given twice"),
        ({"n": 1}, {"0": "0"}, "a buffer has 1"),
        ({"n": 1}, {"to": "8"}, "--buffer to: no such parameter of kernel k"),
    ],
)
def test_every_parameter_is_given_once(
    tmp_path: Path, parameters: dict[str, int | float], buffers: dict[str, str], why: str
) -> None:
    path = tmp_path / "k.ptx"
    path.write_text(KERNEL)
    with pytest.raises(InputError, match=why):
        measured_kernel(KernelQuestion(path, launch=Launch(block=(40, 1, 1), parameters=parameters)), "sm_86", buffers)


def test_no_run_is_held_against_a_bound_with_warm_caches(tmp_path: Path) -> None:
    path = tmp_path / "k.ptx"
    path.write_text(KERNEL)
    asked = KernelQuestion(path, launch=Launch(block=(40, 1, 1)), latencies=given_latencies(LATENCIES), warm=True)
    with pytest.raises(InputError, match=r"k\.ptx: no record tells whether a run found its code .* leave out warm"):
        measured_kernel(asked, "sm_86", {"at": "160", "n": "8"})


def test_machine_code_takes_no_records() -> None:
    cubin = Path(__file__).parents[2] / "ptx" / "reduction.sm_86.cubin"
    with pytest.raises(UnsupportedError, match="records are added to PTX"):
        measured_kernel(KernelQuestion(cubin), "sm_86", {})
