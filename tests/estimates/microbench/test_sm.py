"""`makespan measure sm`: a virtual multiprocessor is recovered, one that idles is found, programs are kept."""

import json
import re
import shutil
import subprocess
import tomllib
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from makespan.estimates.microbench import samples
from makespan.estimates.microbench.chains import STREAMS
from makespan.estimates.microbench.samples import MicrobenchSample
from makespan.hardware.sm_fit import MachineFit, find_left_out, fit_machine, machine_toml, measured_machine
from makespan.hardware.sm_lapses import WORKERS
from makespan.hardware.sm_programs import (
    APART,
    COUNTS,
    LAPSES,
    LOG_STEPS,
    LOG_WARPS,
    ONE_WARPS,
    OPERATIONS,
    TABLE,
    sm_source,
)
from makespan.host.errors import InputError, MeasurementError
from makespan.kernels import sass
from makespan.model.machine import (
    CycleRange,
    Machine,
    PortResource,
    TimedOperation,
    UnitClass,
    Use,
    find_machine,
    machines_for,
    read_machine,
)
from tests.command import Runner
from tests.estimates.microbench.virtual_sm import REMARKS, VirtualSm

UNIT_OF = {"fp32": "C", "int": "I", "sfu": "S", "fp64": "D", "shared": "L", "predicate": "I", "convert": "S"}


@st.composite
def sms(draw: st.DrawFn) -> VirtualSm:
    """Multiprocessors whose chains are not slowed down by their ports."""
    intervals = {name: draw(st.integers(1, 4)) for name in "CIS"} | {"D": draw(st.integers(4, 8))}
    shared = draw(st.booleans())
    units = [UnitClass(name, 1, interval, shared=shared and name == "D") for name, interval in intervals.items()]
    latency = {name: draw(st.integers(intervals.get(unit, 1), 12)) for name, unit in UNIT_OF.items()}
    later = {both: draw(st.integers(0, 3)) for both in (("fp32", "int"), ("int", "fp32"), ("sfu", "int"))}
    hold = draw(st.integers(1, 2)), draw(st.integers(0, 1))
    return VirtualSm((*units, UnitClass("L", 1)), UNIT_OF, latency, later, hold, clock_stall=draw(st.integers(1, 3)))


def base(sm: VirtualSm) -> Machine:
    """A machine that knows the classes of another one, and none of its numbers."""
    units = (*(UnitClass(name, 1) for name in "CISD"), UnitClass("L", 1, uses=(Use(("memory",)),)))
    operations = [TimedOperation(name, unit, 99, 99) for name, unit in (*sm.unit_of.items(), ("global", "L"))]
    return Machine(
        "base",
        units,
        1,
        partitions=4,
        resources=(PortResource("memory", 1, shared=True),),
        operations=tuple(operations),
    )


def seen(told: MachineFit) -> dict[str, CycleRange]:
    return {".".join(found.key): found.seen for found in told.found}


@settings(max_examples=6)
@given(sms())
def test_every_parameter_of_a_virtual_multiprocessor_is_recovered(sm: VirtualSm) -> None:
    told = fit_machine(sm.samples(), base(sm))
    later = {name: [0] for name in sm.latency}
    for one, other in (("fp32", "int"), ("fp32", "sfu"), ("int", "sfu")):
        both = sm.later.get((one, other), 0) + sm.later.get((other, one), 0)
        later[one].append(both)
        later[other].append(both)
    expected = {
        f"operations.{name}.latency": CycleRange(cycles, cycles + max(later[name]))
        for name, cycles in sm.latency.items()
    }
    slowest = sm.latency["shared"] + 31 * sm.hold[1]
    expected["operations.shared.latency"] = CycleRange(sm.latency["shared"], slowest)
    expected["operations.global.latency"] = CycleRange(sm.walks[0], None)
    expected |= {
        f"units.{unit.name}.interval": CycleRange(unit.interval, unit.interval) for unit in sm.units if unit.name != "L"
    }
    expected["units.L.uses.memory"] = CycleRange(sm.hold[0], sm.hold[0] + 31 * sm.hold[1])
    expected["partitions"] = CycleRange(4, 4)
    assert seen(told) == expected
    assert told.shared == {unit.name: unit.shared for unit in sm.units if unit.name != "L"}
    assert told.modulo is True
    assert told.issue is not None
    assert told.issue.left_out == ()


PLAIN = VirtualSm(
    (
        UnitClass("C", 1, 2),
        UnitClass("I", 1, 2),
        UnitClass("S", 1, 8),
        UnitClass("D", 1, 16, shared=True),
        UnitClass("L", 1),
    ),
    UNIT_OF,
    {"fp32": 4, "int": 5, "sfu": 18, "fp64": 41, "shared": 23, "predicate": 9, "convert": 14},
    {("int", "fp32"): 1},
)


def test_ranges_are_the_least_and_the_most_of_all_runs() -> None:
    """By hand: of fp32 4 and 4.5 cycles (a median of 4.25), of int 5; a pair of both 9 and 12, so up to 2.75 more."""
    cycles = {
        ("fp32", "fp32"): (4, 4.5),
        ("int", "int"): (5, 5),
        ("fp32", "int"): (4.5, 6),
        ("predicate", "int"): (7, 9.5),
    }
    runs = [
        MicrobenchSample(("chain", *both), (1, count), Fraction(90 + count * each))
        for both, several in cycles.items()
        for each in several
        for count in (64, 192)
    ]
    told = seen(fit_machine(runs, base(PLAIN)))
    assert told == {
        "operations.fp32.latency": CycleRange(4, 7),  # 3.75 and 7.25, to a quarter of a cycle
        "operations.int.latency": CycleRange(5, 8),  # 4.75 and 7.75
        "operations.predicate.latency": CycleRange(9, 14),
    }


def test_noise_of_a_cycle_widens_no_range() -> None:
    quiet, noisy = (
        fit_machine(PLAIN.samples(), base(PLAIN)),
        fit_machine(replace(PLAIN, noise=3, seed=1).samples(), base(PLAIN)),
    )
    for key, span in seen(quiet).items():
        assert abs(seen(noisy)[key].least - span.least) <= 1, key
        assert seen(noisy)[key].most is span.most is None or abs((seen(noisy)[key].most or 0) - (span.most or 0)) <= 1
    assert (noisy.shared, noisy.modulo) == (quiet.shared, quiet.modulo)


@pytest.mark.parametrize("stall", [1, 2, 5])
def test_a_scheduler_that_idles_is_found_and_one_that_does_not_is_not(stall: int) -> None:
    honest = fit_machine(replace(PLAIN, clock_stall=stall).samples(), base(PLAIN)).issue
    planted = fit_machine(replace(PLAIN, clock_stall=stall, idles=100).samples(), base(PLAIN)).issue
    assert honest is not None and planted is not None  # noqa: PT018 - two logs
    assert honest.left_out == ()
    assert planted.left_out
    assert (honest.waited > 0, honest.runs) == (stall < 4, 9)


def test_logs_in_which_nobody_waited_say_nothing(tmp_path: Path, measure: Runner) -> None:
    path = csv(tmp_path, replace(PLAIN, clock_stall=5))
    done = measure("sm", "--fit", path, "--machine", "turing")
    assert "work conservation: not observed: no ready warp waited in 9 runs" in done.out


def reading(run: str, warp: int, warps: int, step: int, cycle: int) -> MicrobenchSample:
    return MicrobenchSample(("log", "clock", f"{run}.{warp}"), (warps, step), Fraction(cycle))


def test_a_cycle_that_nobody_used_is_named() -> None:
    """By hand: a warp alone reads every 2 cycles; of two, warp 1 is ready in cycle 4, and nobody reads before 6."""
    alone = [reading("a", 0, 1, step, 2 * step - 1) for step in (1, 2, 3)]
    both = [reading("b", 0, 2, step, cycle) for step, cycle in ((1, 1), (2, 3), (3, 6))]
    both += [reading("b", 1, 2, step, cycle) for step, cycle in ((1, 2), (2, 4), (3, 7))]
    issue = find_left_out({("a", 1): alone, ("b", 2): both})
    assert issue.left_out == (("b", 2, 0, 5),)
    assert (issue.waited, issue.runs) == (2, 1)  # warp 0 in cycle 5, warp 1 in cycle 6


def test_warps_that_belong_to_partitions_otherwise_are_found() -> None:
    """Neighbours share a partition: no stream of warps 0, 4, 8 is one of one partition, so no interval is told."""
    told = fit_machine(replace(PLAIN, partition=(0, 0, 1, 1, 2, 2, 3, 3)).samples(), base(PLAIN))
    assert told.modulo is False
    assert not [key for key in seen(told) if key.endswith("interval") or key == "partitions"]
    assert told.issue is None
    assert any("mod 4: the pairs say otherwise" in why for why in told.stays)


def test_a_base_with_other_partitions_keeps_its_units() -> None:
    """Its units are for a whole multiprocessor, say: four times as many of them would be another machine."""
    told = fit_machine(PLAIN.samples(), replace(base(PLAIN), partitions=1))
    assert not [key for key in seen(told) if key.endswith("interval") or key == "partitions"]
    assert "partitions, units: the GPU has 4, and units of the base are for 1" in told.stays


def test_intervals_suppose_the_ports_of_the_base_and_hide_behind_the_slot() -> None:
    """Two ports of four cycles take as many as one of two; of two ports of two, a slot of one a cycle shows nothing."""
    known = base(PLAIN)
    two = replace(known, units=tuple(replace(unit, capacity=2 if unit.name in "CI" else 1) for unit in known.units))
    slot = replace(PLAIN, units=tuple(UnitClass("I", 2, 2) if u.name == "I" else u for u in PLAIN.units))
    told = fit_machine(slot.samples(), two)
    assert seen(told)["units.C.interval"] == CycleRange(4, 4)
    assert "units.I.interval" not in seen(told)
    assert "units.I.interval: 2 ports take an instruction in every issue slot" in told.stays


def test_without_pairs_no_interval_is_told() -> None:
    told = fit_machine((each for each in PLAIN.samples() if each.what[0] != "pair"), base(PLAIN))
    assert told.modulo is None
    assert not [key for key in seen(told) if key.endswith("interval") or key == "partitions"]


def test_samples_that_make_no_sense_are_refused() -> None:
    one = MicrobenchSample(("chain", "fp32", "fp32"), (1, 64), Fraction(100))
    with pytest.raises(InputError, match="chain of fp32: samples of two different counts are needed, not of 64 alone"):
        fit_machine([one], base(PLAIN))
    with pytest.raises(MeasurementError, match="the time does not grow"):
        fit_machine([one, replace(one, counts=(1, 192))], base(PLAIN))
    with pytest.raises(InputError, match="pair of fp32: no such measurement with 'b'"):
        fit_machine([MicrobenchSample(("pair", "fp32", "b"), (2, 64), Fraction(1))], base(PLAIN))
    with pytest.raises(InputError, match="log of clock: no such measurement with 'b'"):
        fit_machine([MicrobenchSample(("log", "clock", "b"), (2, 1), Fraction(1))], base(PLAIN))
    with pytest.raises(InputError, match=r"log of b\.0: whole cycles are needed, and at most 10000"):
        find_left_out({("b", 2): [reading("b", 0, 2, 1, 10**12)]})
    with pytest.raises(InputError, match="logs of one warp alone are needed"):
        find_left_out({("b", 2): [reading("b", 0, 2, 1, 1)]})
    alone = [reading("a", 0, 1, 1, 1), reading("a", 0, 1, 2, 3)]
    both = [reading("b", 0, 2, 1, 1), reading("b", 1, 2, 1, 1)]
    with pytest.raises(MeasurementError, match="not of one partition"):
        find_left_out({("a", 1): alone, ("b", 2): both})


# files


def csv(tmp_path: Path, sm: VirtualSm = PLAIN, **remarks: str) -> Path:
    told = {key: value for key, value in {**REMARKS, **remarks}.items() if value}
    path = tmp_path / "sm.csv"
    lines = [f"# {key}: {value}\n" for key, value in told.items()]
    path.write_text("".join(lines) + samples.text(sm.samples(), TABLE))
    return path


def test_a_machine_file_has_what_was_measured_and_the_rest_of_its_base(tmp_path: Path, measure: Runner) -> None:
    made = tmp_path / "my.toml"
    done = measure("sm", "--fit", csv(tmp_path), "--machine", "turing", "-o", made)
    assert (done.code, done.err) == (0, "")
    assert "VIRTUAL, of no GPU" in done.out
    assert re.search(r"operations\.fp32\.latency +4\.\.5  3 samples, .*; turing has 4\.\.8", done.out)
    assert "never left out while the slot was free, 214 cycles" in done.out
    assert done.out.splitlines()[-2:] == ["a most that was seen is no bound", f"machine file: {made}"]
    mine, turing = read_machine(made), find_machine("turing")
    times = {each.name: (each.least, each.most, each.is_verified) for each in mine.machine.operations}
    assert (times["fp32"], times["fp64"], times["global"]) == ((4, 5, False), (41, None, False), (30, None, False))
    assert times["tensor"] == next(
        (o.least, o.most, o.is_verified) for o in turing.machine.operations if o.name == "tensor"
    )
    unit = {each.name: each for each in mine.machine.units}
    assert (unit["C"].interval, unit["S"].interval, unit["D"].interval, unit["D"].shared) == (2, 8, 16, True)
    assert mine.machine.name == "turing-virtual"
    assert any(str(said).startswith("virtual: numbers of sm.csv are") for said in map(str, mine.caveats))
    assert any("fp32" in said and "which is no bound" in said for said in map(str, mine.caveats))
    assert "gpu virtual SM" in mine.notes[-1]
    assert all(
        (datum.source or "").startswith("virtual on virtual SM, sm.csv")
        for datum in mine.data
        if datum.key == "units.C.interval"
    )


def test_numbers_of_a_gpu_are_measured_and_no_range_of_them_is_verified(tmp_path: Path) -> None:
    document = tomllib.loads((Path("makespan/data/machines") / "turing.toml").read_text())
    remarks = {"gpu": "T4", "driver": "CUDA 13", "clocks": "1 GHz"}
    made = measured_machine(document, fit_machine(PLAIN.samples(), find_machine("turing").machine), remarks, "sm.csv")
    assert made["name"] == "turing-measured"
    assert made["operations"]["fp32"]["latency"]["verified"] is False
    assert made["operations"]["global"]["latency"] == {
        "least": 30,
        "source": "measured on T4, sm.csv: walk through the first cache; 1 samples",
        "verified": True,
    }
    assert made["units"]["C"]["interval"]["verified"] is True
    assert tomllib.loads(machine_toml(made)) == made


@pytest.mark.parametrize("path", sorted(Path("makespan/data/machines").glob("*.toml")), ids=lambda path: path.stem)
def test_a_document_that_was_written_is_read_again(path: Path) -> None:
    document = tomllib.loads(path.read_text())
    assert tomllib.loads(machine_toml(document)) == document


def test_a_scheduler_that_idles_is_a_counterexample(tmp_path: Path, measure: Runner) -> None:
    made = tmp_path / "my.toml"
    path = csv(tmp_path, replace(PLAIN, idles=100))
    done = measure("sm", "--fit", path, "--machine", "turing", "-o", made)
    assert done.code == 1
    assert "NOT WORK-CONSERVING" in done.out
    assert any(str(said).startswith("NOT WORK-CONSERVING in sm.csv") for said in read_machine(made).caveats)
    document: dict[str, Any] = json.loads(measure("sm", "--fit", path, "--machine", "turing", "--format", "json").out)
    assert document["issue"]["left_out"][0].keys() == {"run", "warps", "warp", "cycle"}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "give one of --emit, --fit"),
        (["--emit", "cuda"], "-o is missing"),
        (["--emit", "cuda", "-o", "x", "--machine", "turing"], "--machine is for --fit"),
        (["--emit", "cuda", "-o", "x", "--operation", "fp33"], "no program measures fp33; known: fp32, int"),
        (["--fit", "sm.csv"], "--machine is missing"),
        (["--fit", "sm.csv", "--machine", "turing", "--operation", "int"], "--operation is for --emit"),
        (["--fit", "sm.csv", "--machine", "turing", "-o", "my"], "must end in .toml"),
        (["--fit", "sm.csv", "--machine", "turing"], "it needs a line such as # driver: ..."),
        (["--fit", "bad.csv", "--machine", "turing"], "bad.csv:2: up to 32 different remarks"),
    ],
)
def test_bad_use_is_one_line(
    measure: Runner,
    arguments: list[str],
    message: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "sm.csv").write_text("# gpu: T4\nmeasure,name,with,warps,count,cycles\nmemory,L2,-,1,8,9\n")
    (tmp_path / "bad.csv").write_text("# gpu: T4\n# gpu: T4\nmeasure,name,with,warps,count,cycles\nmemory,L2,-,1,8,9\n")
    done = measure("sm", *arguments)
    assert (done.code, done.out) == (2, "")
    assert message in done.err
    assert len(done.err.splitlines()) == 1


# programs


def opcode(listed: sass.SassListingRow) -> tuple[str | None, str]:
    """What an instruction is, and its opcode, without its guard."""
    words = listed.text.split()
    return listed.operation, words[words[0].startswith("@")]


STREAMED = {"FFMA", "LOP3.LUT", "MUFU.EX2", "LDS.U", "LDS", "DFMA", "IMAD", "POPC", "SHFL.IDX"}


def rounds(code: Sequence[sass.SassListingRow]) -> list[str]:
    """The texts of the smallest loop with instructions of a stream."""
    at = {int(one.address, 16): number for number, one in enumerate(code)}
    found = ((last, re.search(r"BRA.* 0x([0-9a-f]+)", one.text)) for last, one in enumerate(code))
    jumps = ((last, at[int(target[1], 16)]) for last, target in found if target)
    size, last = min((last - first, last) for last, first in jumps if last - first >= STREAMS)
    return [one.text for one in code[last - size : last + 1]]


@pytest.mark.skipif(shutil.which("nvcc") is None, reason="no nvcc")
@pytest.mark.parametrize("arch", [75, 90])
def test_machine_code_has_the_instructions_that_were_asked_for(arch: int, tmp_path: Path) -> None:
    """The classic error of a microbenchmark is that an assembler dropped what it measures."""
    names = ("fp32", "int", "sfu", "shared", "predicate", "convert")
    (tmp_path / "sm.cu").write_text(sm_source(names)["sm.cu"])
    command = ["nvcc", f"-arch=sm_{arch}", "-cubin", "-o", "sm.cubin", "sm.cu"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    (machine,) = machines_for(arch)
    kernels = sass.read(tmp_path / "sm.cubin").kernels
    code = {kernel.name: sass.listing(kernel, machine) for kernel in kernels}
    half = (max(COUNTS) - min(COUNTS)) // 2
    for function in sorted(name.removesuffix(f"_{max(COUNTS)}") for name in code if name.endswith(f"_{max(COUNTS)}")):
        short, long = (Counter(map(opcode, code[f"{function}_{count}"])) for count in COUNTS)
        more = {what: long[what] - short[what] for what in long if long[what] - short[what] >= half // 2}
        _, name, *reader, _ = function.split("_")
        both = {name, *filter(None, reader)}
        expected = {name: 2 * half} if len(both) == 1 else dict.fromkeys(both, half)
        assert {operation: count for (operation, _), count in more.items()} == expected, function
        assert len(more) == len(both), f"{function}: a mean over several opcodes hides the slower one"
    for function in (name for name in code if name.startswith(("stream", "bank"))):
        body = rounds(code[function])
        written = [re.findall(r"R[0-9]+", text)[0] for text in body if text.split()[0] in STREAMED]
        assert (len(written), len(set(written))) == (STREAMS, STREAMS), function
        assert len(body) <= STREAMS + 4, function
    readings = [one.text.split()[0] for one in code["log_clock"] if "CS2R" in one.text]
    assert readings.count("CS2R.32") == LOG_STEPS
    for kernel in kernels:
        warps = max(ONE_WARPS if kernel.name.startswith("stream") else LOG_WARPS)
        taken = kernel.resources.registers * 32 * (APART * (warps - 1) + 1)
        assert (taken <= 65536, kernel.resources.local_bytes) == (True, 0), kernel.name


def test_all_operations_are_in_the_program() -> None:
    text = sm_source()["sm.cu"]
    for name in set(OPERATIONS) - {LAPSES}:
        assert f'{{"chain", "{name}"' in text
    for name in WORKERS:
        assert f'{{"lapse", "{name}"' in text
