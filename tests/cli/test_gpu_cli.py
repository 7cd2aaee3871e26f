"""`makespan solve` for a whole GPU: what it prints and refuses, and with which exit code."""

import json
import re
from fractions import Fraction
from pathlib import Path

import pytest

from tests.command import Runner
from tests.schemas import published

ROOT = Path(__file__).parents[2]
SCHEMA = published("gpu-result-2")
ONE_WAVE = ("--string", "CLLCLL", "--warps", 2, "--sms", 4, "--blocks-per-sm", 2)
KERNEL = (ROOT / "ptx" / "reduction.sm_86.cubin", "--block", 256, "--warm")
CUBIN = (*KERNEL, "--latency", "global=..900")


def test_one_wave_has_the_number_of_one_sm(solve: Runner) -> None:
    told = solve(*ONE_WAVE, "--grid", 8, "--quiet")
    alone = solve("--string", "CLLCLL", "--warps", 4, "--quiet")
    assert told.code == alone.code == 0
    assert "the worst case of 8 blocks on 4 SMs is 18 cycles" in told.out
    assert "the worst case is 18 cycles" in alone.out


def test_several_waves_are_told_wave_by_wave(solve: Runner) -> None:
    told = solve(*ONE_WAVE, "--grid", 1_000_000, "--clock", "1GHz", "--best-case")
    said = " ".join(told.out.split())
    assert told.code == 3
    assert "1000000 blocks on 4 SMs is at least" in told.out.splitlines()[0]
    assert "4 SMs with 2 blocks each hold 8 at a time: 1000000 blocks are 125000 waves" in said
    assert "the last one gets its room in cycle" in said
    assert "in time: " in said
    assert "the clock of the SMs is 1 GHz (--clock) at least" in said


@pytest.mark.parametrize("where", [(), ("--sms", 4, "--blocks-per-sm", 2, "--grid", 4)])
def test_a_verdict_alone_has_the_best_case_that_was_asked_for(solve: Runner, where: tuple[object, ...]) -> None:
    asked = ("--string", "CLLCLL", "--warps", 2, *where, "--quiet")
    alone = solve(*asked).out.splitlines()
    assert len(alone) == 1
    best = json.loads(solve(*asked[:-1], "--best-case", "--format", "json").out)["best_case"]
    least = best if isinstance(best, int) else best[0]
    assert solve(*asked, "--best-case").out.splitlines() == [*alone, f"best case: {least} cycles"]


@pytest.mark.parametrize("grid", ["7", "10x10"])
def test_json_is_as_published(solve: Runner, grid: str) -> None:
    told = json.loads(
        solve(*ONE_WAVE, "--grid", grid, "--format", "json", "--best-case", "--deadline", "1us", "--clock", "1GHz").out
    )
    SCHEMA.validate(told)
    assert (told["sms"], told["grids"][0]["resident"]) == (4, 2)
    assert told["lower"] <= told["upper"]
    assert told["best_case"][0] <= told["lower"]
    if grid == "7":
        assert [each["blocks"] for each in told["sm_results"]] == [2, 1]
        assert told["last_dispatch"] is None
    else:
        assert told["last_dispatch"]["dispatched"] + told["last_dispatch"]["tail"] == told["upper"]
    assert told["deadline"]["outcome"] == "met"


def test_a_deadline_is_a_gate(solve: Runner) -> None:
    codes = [solve(*ONE_WAVE, "--grid", 8, "--quiet", "--deadline", f"{cycles}cycles").code for cycles in (18, 17)]
    assert codes == [0, 1]


def test_a_gpu_says_its_sms_machine_and_clock(solve: Runner) -> None:
    told = json.loads(solve(*CUBIN, "--gpu", "rtx-3070", "--grid", 46, "--format", "json", "--time-limit", "0.1").out)
    SCHEMA.validate(told)
    assert (told["gpu"], told["sms"], told["machine"]["name"]) == ("rtx-3070", 46, "ampere-ga10x")
    assert told["time"]["clock_hz"].isdigit()
    assert told["grids"][0]["blocks"] == 46
    assert any("can be resident: warps limit" in note["text"] for note in told["assumptions"])


def test_a_verdict_says_how_long_dram_may_need_and_what_is_supposed_of_it(solve: Runner) -> None:
    """A warp of the reduction has two loads in flight at a time: 46 SMs, 6 blocks of 8 warps, 1024 bytes each."""
    launch = (*KERNEL, "--gpu", "rtx-3070", "--grid", 300, "--time-limit", 0.1, "--latency")
    doubted = solve(*launch, "global=..900", "--quiet").out
    assert (
        "if global takes at most 900 cycles, although DRAM may need 17412 cycles for what can be in flight" in doubted
    )
    told = solve(*launch, "global=..450+dram@0.8", "--format", "json")
    known = json.loads(told.out)
    SCHEMA.validate(known)
    assert told.code == 3
    # warp 0 of a block loads twice and stores, the other seven load twice; and all of L2
    moved = 300 * (8 * 2 * 1024 + 2048) + 4 * 2**20
    assert known["dram_cycles"] == int(Fraction(moved, 448 * 10**9) * 1_725_000_000 / Fraction(4, 5))
    last = known["last_dispatch"]
    assert last["dispatched"] + last["tail"] + known["dram_cycles"] == known["upper"]
    supposed = "if DRAM moves at least 358.4 GB/s, 80 % of its peak, as long as an access waits for it"
    assert supposed in known["caveats"]
    assert "if global takes at most 450 cycles besides those in which DRAM is busy" in known["caveats"]


def test_the_evidence_of_a_launch_whose_dram_is_busy_is_verified(
    solve: Runner, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    launch = (*KERNEL, "--gpu", "rtx-3070", "--grid", 40, "--latency", "global=..450+dram", "--time-limit", 0.1)
    told = json.loads(solve(*launch, "--bundle", tmp_path / "b.json", "--format", "json").out)
    kept = json.loads((tmp_path / "b.json").read_text())
    assert kept["instance"]["dram"] == told["dram_cycles"] > 0
    known = "on the GPU as it is known, although queues before memory are left out"
    accepted = f"accepted {known}: the worst case is at least {told['lower']} and at most {told['upper']}"
    assert Runner("verify", capsys)(tmp_path / "b.json").out.startswith(accepted)


@pytest.mark.parametrize(
    ("machine", "said"),
    [
        ((), 0),
        (("--machine", "ampere-ga10x"), 0),
        (("--machine", "ampere-ga10x", "--hold", "memory=..4"), 0),
        (("--machine", "turing"), 1),
        (("--capacity", "C=1,L=1"), 1),
    ],
)
def test_a_machine_in_place_of_the_own_one_of_a_gpu_is_assumed(
    solve: Runner, machine: tuple[object, ...], said: int
) -> None:
    told = solve("--string", "CC", "--warps", 2, "--gpu", "rtx-3070", "--blocks-per-sm", 1, "--grid", 9, *machine)
    assert told.code in (0, 3), told.err
    assert " ".join(told.out.split()).count("an SM of GPU rtx-3070 is machine ") == said


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            (ROOT / "ptx" / "vecadd.ptx", "--block", 9, "--warps", 2, *ONE_WAVE[4:], "--grid", 9),
            "--block means 1 warp for",
        ),
        ((*ONE_WAVE, "--grid", "9" * 23), f"--grid {'9' * 23}x1x1: at least 1 and at most 2147483647x"),
        (
            (*ONE_WAVE[:4], "--sms", "9" * 14, "--grid", 9),
            "--sms: the number of SMs must be 1..4096, not 99999999999999",
        ),
        ((*ONE_WAVE[:4], "--gpu", "rtx-3070", "--sms", "1g.5gb", "--grid", 9), "1..46 (it has no MIG instances), not"),
        (
            (*KERNEL, "--latency", "global=..9:1", "--gpu", "rtx-3070", "--grid", 9),
            "operation global: latency ..9:1: ",
        ),
        (
            (*KERNEL, "--latency", "global=..450+dram"),
            "latency of global: ..450+dram depends on what a launch asks of DRAM; say on which GPU, and ask about a"
            " whole launch, with --gpu and --grid",
        ),
        ((*KERNEL, "--latency", "global=..450+dram", "--sms", 4, "--grid", 9), "say on which GPU, with --gpu"),
        (
            (*KERNEL, "--latency", "global=..450+dram", "--gpu", "rtx-3070", "--sms", 4, "--grid", 9),
            "nobody says what the other 42 SMs of rtx-3070 ask of it; ask about all 46 SMs, or give global=..N",
        ),
        (
            (*KERNEL, "--latency", "global=..450+dram", "--gpu", "rtx-3070", "--grid", 9, "--clock", "2GHz"),
            "+dram counts cycles of the largest clock of rtx-3070, 1.725 GHz: give no larger clock",
        ),
        (ONE_WAVE, "--string: 1 input is missing: the blocks of the grid (--grid N)\n"),
        ((*ONE_WAVE[:4], "--sms", 4, "--grid", 9), "resident on an SM at once (--blocks-per-sm N)\n"),
        ((*ONE_WAVE[:4], "--gpu", "rtx-3070", "--grid", 9, "--blocks-per-sm", 99), "--blocks-per-sm 99: only"),
        ((*ONE_WAVE[:4], "--gpu", "rtx-3070", "--sms", 47, "--grid", 9), "the number of SMs must be 1..46"),
        ((*ONE_WAVE[:4], "--gpu", "rtx-3700", "--grid", 9), "unknown GPU 'rtx-3700'"),
        (("--string", "CL", "--warps", 2, "--sms", "1g.5gb", "--grid", 9), "without --gpu only a number of SMs"),
        (("--string", "CL", "--warps", 2, "--sms", 0, "--grid", 9, "--blocks-per-sm", 1), "the number of SMs"),
        (("--string", "CL", "--warps", "1..2", "--sms", 2, "--grid", 9, "--blocks-per-sm", 1), "one launch"),
        (
            ("--string", "CL", "--sms", 2),
            "3 inputs are missing: the warps of a block (--warps N); the blocks of the grid",
        ),
        (("--string", "CL", "--warps", 2, "--grid", 9), "--grid of a --string is for a whole GPU"),
        ((*ONE_WAVE, "--grid", 9, "--take", "A=fall"), "--string takes no options for kernels"),
        ((*ONE_WAVE, "--grid", 9, "--format", "csv"), "--format csv is for one SM"),
        ((*ONE_WAVE, "--grid", 9, "--backend", "search"), "--backend search is for one SM"),
        ((*ONE_WAVE, "--grid", 9, "--timeline"), "--timeline is for one SM"),
        ((ROOT / "instruction_strings" / "paper.toml", "--sms", 2), "an instance file is about one SM"),
        (
            (ROOT / "ptx" / "vecadd.ptx", "--block", 64, "--sms", 2, "--grid", 9),
            "(--blocks-per-sm N, or --arch sm_NN)\n",
        ),
        (
            (ROOT / "ptx" / "vecadd.ptx", "--block", 64, "--sms", 2, "--blocks-per-sm", 1),
            "the blocks of the grid (--grid N)\n",
        ),
        ((*CUBIN, "--gpu", "rtx-2080-ti", "--grid", 9), "of sm_75, does not execute machine code for sm_86"),
        ((*CUBIN, "--gpu", "rtx-3070", "--grid", 9, "--blocks-per-sm", 7), "--blocks-per-sm 7: only 6 blocks"),
    ],
)
def test_what_lacks_something_is_refused(solve: Runner, arguments: tuple[object, ...], message: str) -> None:
    told = solve(*arguments)
    assert (told.code, told.out) == (2, "")
    assert message in told.err
    command = told.err.partition("\n")[2]
    assert bool(command) is (" missing: " in told.err)
    assert not command or re.fullmatch("  makespan solve .* --[a-z-]+ N\n", command)


def test_warps_are_assigned_to_partitions_as_said(solve: Runner) -> None:
    """What the machine says already changes nothing; what it leaves open makes the bound sharper."""
    asked = ("--string", "CCCC", "--warps", 2, "--machine", ROOT / "examples" / "partitioned.toml")
    whole = (*asked, "--sms", 2, "--blocks-per-sm", 1, "--grid", 6)
    verdict = solve(*whole, "--assignment", "modulo", "--quiet").out
    assert solve(*whole, "--quiet").out.partition(": ")[2] == verdict.partition(": ")[2]
    on_gpu = (
        "--string",
        "CCCC",
        "--warps",
        4,
        "--machine",
        "ampere-ga10x",
        "--sms",
        2,
        "--blocks-per-sm",
        4,
        "--grid",
        99,
    )
    free, said = (solve(*on_gpu, *more, "--format", "json").out for more in ((), ("--assignment", "modulo")))
    assert json.loads(said)["upper"] < json.loads(free)["upper"]
    assert "if warp w belongs to partition w mod 4" in json.loads(said)["caveats"]
    assert any(note["text"].startswith("assignment as given: warp w") for note in json.loads(said)["assumptions"])


def test_warps_without_partitions_are_not_assigned(solve: Runner) -> None:
    told = solve("--string", "CL", "--warps", 2, "--assignment", "modulo")
    assert told.code == 2
    assert "machine 'paper' has no partitions" in told.err


@pytest.mark.parametrize("where", [("--blocks-per-sm", 2), ("--gpu", "rtx-3070", "--grid", 9)])
def test_warps_that_differ_are_assigned_by_their_numbers(solve: Runner, where: tuple[object, ...]) -> None:
    asked = (*CUBIN, *where, "--time-limit", 0.1, "--format", "json")
    free, said = (json.loads(solve(*asked, *more).out) for more in ((), ("--assignment", "modulo")))
    assert "if warp w belongs to partition w mod 4" in said["caveats"]
    assert said["upper"] <= free["upper"]
    assert said["lower"] <= said["upper"]


@pytest.mark.parametrize("grid", [7, 100])
def test_a_bundle_is_verified(solve: Runner, tmp_path: Path, capsys: pytest.CaptureFixture[str], grid: int) -> None:
    told = solve(*ONE_WAVE, "--grid", grid, "--bundle", tmp_path / "b.json")
    assert told.out.splitlines()[-1] == f"bundle: {tmp_path / 'b.json'}"
    assert Runner("verify", capsys)(tmp_path / "b.json").code == 0


def test_the_witness_is_drawn_after_the_answer(solve: Runner, tmp_path: Path) -> None:
    picture = tmp_path / "gpu.svg"
    told = solve(*ONE_WAVE, "--grid", 20, "--gantt", picture)
    assert told.out.splitlines()[-1] == f"picture: {picture}"
    assert "end of this schedule" in picture.read_text()
    late = solve(*ONE_WAVE, "--grid", 20, "--quiet", "--gantt", tmp_path / "part.svg", "--from", 900)
    assert late.code == told.code == 3
    assert "no picture" in late.err
    assert list(tmp_path.iterdir()) == [picture]


@pytest.mark.parametrize(
    ("name", "part", "message"),
    [
        (
            "gpu.csv",
            (),
            "gpu.csv: schedules as data are of one SM; of a whole GPU it is a picture, whose name must end in .png",
        ),
        ("gpu.trace.json", (), "gpu.trace.json: schedules as data are of one SM"),
        ("gpu.txt", (), "gpu.txt: the name of a picture must end in .png, .svg or .pdf"),
        ("gpu.svg", ("--from", 5, "--to", 5), "would have no cycle"),
    ],
)
def test_what_cannot_be_drawn_is_refused_before_the_work(
    solve: Runner, tmp_path: Path, name: str, part: tuple[str | int, ...], message: str
) -> None:
    told = solve(*ONE_WAVE, "--grid", 20, "--gantt", tmp_path / name, *part)
    assert (told.code, told.out) == (2, "")
    assert message in told.err
