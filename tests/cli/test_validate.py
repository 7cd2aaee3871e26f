"""`makespan measure validate`: what it says of a virtual device, what it keeps, and what happens without a GPU."""

import fcntl
import json
import sys
from functools import cache
from pathlib import Path

import pytest

from makespan.kernels import kernel_file
from tests.command import Runner
from tests.schemas import published

ROOT = Path(__file__).parents[2]
SCHEMA = published("validation-2")
KERNEL = (
    *(ROOT / "ptx" / "vecadd.ptx", "--block", 32, "--latency", "global=..90", "--param", "3=32"),
    *("--latency", "fetch=..90", "--latency", "constant-miss=..90"),
    *("--buffer", "0=128", "--buffer", "1=128", "--buffer", "2=128", "--time-limit", 0.1),
)
ASKED = (*KERNEL, "--gpu", "rtx-3070")
ASSEMBLED = cache(kernel_file.assemble_module)
"""The same machine code is made once."""


@pytest.fixture
def validate(capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Runner:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(kernel_file, "assemble_module", ASSEMBLED)
    return Runner("measure validate", capsys)


def test_an_honest_device_is_below_the_bound_and_is_no_measurement(validate: Runner, tmp_path: Path) -> None:
    told = validate(*ASKED, "--device", "virtual:1", "--runs", 8, "-o", "runs.jsonl", "--plot", "h.png")
    assert told.code == 0
    assert told.out.startswith("VIRTUAL DEVICE, no measurement: below the bound in all of 8 blocks in 8 runs")
    said = " ".join(told.out.split())
    assert (
        "with unverified latencies (special, branch, barrier, operands), on the SM as it is known, although queues"
        " before memory are left out, if global takes at most 90 cycles, a first fetch of code at most 90 and a first"
        " fetch of constants at most 90, is 1861 cycles"  # theorem 1S 388, lapses 33, 8 lines at 2 barrier phases 1440
    ) in said
    assert "not varied: offset 0, cache warm, neighbours idle, parameters, launch, clock" in said
    assert len((tmp_path / "runs.jsonl").read_bytes().splitlines()) == 9
    assert (tmp_path / "h.png").read_bytes().startswith(b"\x89PNG")
    assert not (tmp_path / "counterexample.jsonl").exists()
    again = validate(*ASKED, "--from", "runs.jsonl", "--format", "json")
    assert again.code == 0
    document = json.loads(again.out)
    SCHEMA.validate(document)
    assert (document["holds"], document["is_measurement"], document["runs"]) == (True, False, 8)
    (kind,) = document["kinds"]
    assert (kind["of"], kind["windows"], kind["cycles"]["most"] < kind["bounds"][1]) == ("block", 8, True)
    added = kind["bounds"][1] - kind["without_records"][1]
    assert added > 0
    assert f"Records raise the bound by {added} cycles" in said
    path = tmp_path / "runs.jsonl"
    path.write_bytes(path.read_bytes().replace(document["kernel"]["code"].encode(), b"0", 1))
    told = validate(*ASKED, "--from", "runs.jsonl")
    assert (told.code, told.out) == (2, "")
    assert "runs.jsonl: these runs are of another machine code: 0, not " in told.err


def test_a_counterexample_is_kept_and_is_one_again(validate: Runner, tmp_path: Path) -> None:
    told = validate(*ASKED, "--device", "virtual:2:idle", "--runs", 16, "--format", "json", "--inputs", "zeros")
    document = json.loads(told.out)
    SCHEMA.validate(document)
    assert (told.code, document["holds"]) == (1, False)
    assert "counterexample: counterexample.jsonl" in told.err
    (kind,) = document["kinds"]
    above = len({window["run"] for window in kind["violations"]})
    assert len((tmp_path / "counterexample.jsonl").read_bytes().splitlines()) == 1 + above
    again = validate(*ASKED, "--from", "counterexample.jsonl", "--counterexample", "same.jsonl")
    assert again.code == 1
    more = kind["cycles"]["most"] + 1 - kind["bounds"][1]
    assert f"distance: the longest run takes at least {more} cycles more than the bound" in again.out
    assert f"NOT BELOW THE BOUND in {above} of {above} blocks" in again.out
    kept = (tmp_path / "counterexample.jsonl").read_bytes()
    assert (tmp_path / "same.jsonl").read_bytes() == kept
    (tmp_path / "same.jsonl").rename(tmp_path / "counterexample.jsonl")
    alone = validate(*ASKED, "--from", "counterexample.jsonl")
    assert (alone.code, again.out) == (1, f"{alone.out}counterexample: same.jsonl\n")
    assert (tmp_path / "counterexample.jsonl").read_bytes() == kept


GPU = """name = "two"
architecture = "Ampere"
compute_capability = "8.6"
sms = { value = 2, source = "of the test", status = "given" }
dispatch_cycles = { value = 3, source = "of the test", status = "given" }
warp_size = { value = 32, source = "of the test", status = "given" }
clock_ghz = { value = 1.5, source = "of the test", status = "given" }
mem_bw_gbs = { value = 40, source = "of the test", status = "given" }
[hong_kim]
mem_ld = { value = 400, source = "of the test", status = "given" }
departure_del_coal = { value = 4, source = "of the test", status = "given" }
departure_del_uncoal = { value = 40, source = "of the test", status = "given" }
issue_cycles = { value = 1, source = "of the test", status = "given" }
"""


def test_a_launch_whose_blocks_share_sms_is_held_against_its_own_bound(
    validate: Runner, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "two.toml").write_text(GPU)
    asked = (*KERNEL, "--gpu", "two.toml", "--caches", "cold", "--dynamic-shared", 40000, "--grid", 5)
    told = validate(*asked, "--device", "virtual:1:full", "--runs", 8, "--plot", "h.png", "--format", "json")
    document = json.loads(told.out)
    SCHEMA.validate(document)
    (kind,) = document["kinds"]
    assert (told.code, document["holds"], kind["of"], kind["windows"]) == (1, False, "launch", 16)
    assert (kind["resident"], kind["together"]) == (2, 2)  # 100 KiB on an SM, 40000 bytes and 1 KiB for each block
    assert {window["run"] for window in kind["violations"]} == {7}
    assert "the warps of a block begin at most 3 cycles after it gets its room" in " ".join(
        note["text"] for note in kind["assumptions"]
    )
    kept = ("--from", "counterexample.jsonl", "--counterexample", "same.jsonl")
    again = validate(*asked, *kept)
    assert again.code == 1
    said = " ".join(again.out.split())
    assert "NOT BELOW THE BOUND in 2 of 2 shared SMs in 1 run" in said
    assert "seen together on an SM: up to 2 blocks, of 2 that the bound supposes" in said
    assert "not below: run 7, 3 blocks on SM 0" in said
    assert document["estimates"]["kleimenov-popova"] is None
    assert "no estimate by kleimenov-popova: 'makespan estimate' says what is missing" in said
    assert f"hong-kim {document['estimates']['hong-kim']:.0f}" in said
    launch = (*("--block", 32, "--grid", 5, "--param", "3=32", "--regs", 16), "--smem", 40000, "--format", "json")
    alone = Runner("estimate", capsys)("--method", "hong-kim", KERNEL[0], "--gpu", "two.toml", *launch)
    assert 0 < json.loads(alone.out)["cycles"] < document["estimates"]["hong-kim"]  # which has records to write
    told = validate(*asked, *kept, "--blocks-per-sm", 1)
    assert (told.code, told.out) == (4, "")
    assert "run 7: 2 blocks were on SM 0 at the same time, and the bound is of 1 at most" in told.err


def test_what_depends_on_all_that_a_launch_asks_of_dram_is_refused(validate: Runner) -> None:
    words = tuple("global=..90+dram" if str(word).startswith("global=") else word for word in ASKED)
    told = validate(*words, "--device", "virtual:1", "--runs", 2)
    assert (told.code, told.out) == (2, "")
    assert "latency of global: ..90+dram is for a whole launch, not for a block: give global=..N" in told.err


def test_without_a_gpu_it_says_so_in_one_line(validate: Runner, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "cuda.bindings.driver", None)
    told = validate(*ASKED)
    assert (told.code, told.out) == (4, "")
    assert told.err == (
        "makespan: no GPU can be measured: the package cuda-bindings is missing: pip install 'makespan[gpu]'; or try"
        " --device virtual:1, which measures nothing\n"
    )


@pytest.mark.parametrize(
    ("more", "why"),
    [
        (("--device", "gpu"), "--device gpu: expected cuda:N or virtual:SEED"),
        (
            ("--device", "virtual:1:slow"),
            "--device virtual:1:slow: expected cuda:N or virtual:SEED, perhaps with late, idle, full behind",
        ),
        (("--caches", "hot"), "--caches: there are warm, thrashed, cold, not 'hot'"),
        (("--neighbours", ""), "--neighbours: there are idle, hog, not ''"),
        (("--inputs", "ones"), "inputs are zeros or random, not 'ones'"),
        (("--offsets", "-4"), "--offsets are numbers of bytes"),
        (("--offsets", "256"), "an offset of buffers is 0..255 bytes"),
        (("--buffer", "0"), "--buffer 0: expected NAME=BYTES or NAME=FILE"),
        (("--buffer", "0=9"), "--buffer 0: given twice"),
        (("--arch", "compute_86"), "what is measured is machine code: give sm_NN"),
        (("--arch", "sm_90"), "GPU rtx-3070, of sm_86, does not execute this code"),
        (("--from", "runs.jsonl", "-o", "runs.jsonl"), "-o keeps runs that are made, and --from has them"),
        (("--take", "L=taken"), "a run takes any path: leave out --take"),
        (("--loop-bound", "0x90=16"), "--loop-bound 0x90: lines and addresses of the copy with records are other ones"),
        (("--loop-bound", "line:12=16"), "--loop-bound line:12"),
        (("--plot", "h.bmp"), "must end in .png, .svg or .pdf"),
    ],
)
def test_what_is_asked_wrongly_is_refused_before_any_work(validate: Runner, more: tuple[str, ...], why: str) -> None:
    told = validate(*ASKED, *more)
    assert told.code == 2
    assert why in told.err
    assert told.err.count("\n") == 1


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no device that is full")
def test_runs_that_cannot_be_kept_are_an_error_of_one_line(validate: Runner) -> None:
    told = validate(*ASKED, "--device", "virtual:1", "--runs", 1, "-o", "/dev/full")
    assert (told.code, told.out) == (2, "")
    assert told.err.endswith("makespan: /dev/full: cannot write the runs: No space left on device\n")


def test_runs_of_two_commands_do_not_mix(validate: Runner, tmp_path: Path) -> None:
    kept = tmp_path / "runs.jsonl"
    with kept.open("wb") as other:
        fcntl.flock(other, fcntl.LOCK_EX)
        other.write(b"of another command")
        other.flush()
        told = validate(*ASKED, "--device", "virtual:1", "--runs", 1, "-o", kept)
    assert (told.code, told.out) == (2, "")
    assert told.err.endswith(f"makespan: {kept}: another command writes its runs there; give -o another file\n")
    assert kept.read_text() == "of another command"
    assert validate(*ASKED, "--device", "virtual:1", "--runs", 1, "-o", kept).code == 0
    assert kept.read_text().startswith("{")


def test_all_that_is_missing_is_asked_for_and_warm_caches_are_no_remedy(validate: Runner) -> None:
    told = validate(
        *(word for word in ASKED if word != "--latency" and "=.." not in str(word)), "--device", "virtual:1"
    )
    assert (told.code, told.out) == (2, "")
    said, command = told.err.splitlines()
    assert "kernel vecadd: 3 inputs are missing: the latency of operation global, " in said
    assert said.count("(--latency ") == 3
    assert said.endswith(
        "(--latency fetch=..N); the first fetch of a line of constants, of which machine"
        " 'ampere-ga10x' knows no upper end (--latency constant-miss=..N)"
    )
    assert command.endswith(" --latency global=..N --latency fetch=..N --latency constant-miss=..N")
    assert "warm" not in told.err


def test_some_gpu_has_to_be_named(validate: Runner) -> None:
    told = validate(*KERNEL, "--device", "virtual:1")
    assert told.code == 2
    assert "give --gpu, or --arch sm_NN" in told.err
