"""`makespan measure sm`: planted lapses, queues and late lines are found, and refute a machine that says less."""

import json
import re
import shutil
import subprocess
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from fractions import Fraction
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from makespan.estimates.microbench.samples import MicrobenchSample
from makespan.hardware.lapse_fit import LapseCheck, check_lapses
from makespan.hardware.sm_lapses import CONSTANTS, GAPS, LOADS, WORKER, WORKERS
from makespan.hardware.sm_programs import sm_source
from makespan.host.errors import InputError
from makespan.kernels import sass
from makespan.kernels.sass import SassInstruction
from makespan.kernels.sass.timing import timed_code
from makespan.model.machine import GivenRange, Machine, RegisterReads, UnitQueue, read_machine
from tests.command import Runner
from tests.estimates.microbench.test_sm import PLAIN, csv
from tests.estimates.microbench.virtual_lapses import VirtualLapses

GA10X = Path("tests/data/machines/known-ga10x.toml")
KNOWN = (GA10X, GA10X.with_name("known-turing.toml"))
AMPERE = read_machine(GA10X).machine
READ, BESIDE, FENCE = (
    "cycles of a read from a queue",
    "cycles of warps beside a miss",
    "cycles of another partition at a fence",
)
BLOCKED = "cycles of warps beside a load that waits"
NEXT, FIRST = "cycles of a line that the next cache has", "cycles of a line in the first execution"
TRUTH: dict[str, tuple[int | None, Callable[[VirtualLapses], int]]] = {
    "cycles of three reads of a bank": (2, lambda sm: sm.after["reads-3"]),
    "cycles of two reads of a bank": (1, lambda sm: sm.after["reads-2"]),
    READ: (1, lambda sm: sm.after["special"]),
    "cycles of an IMAD": (1, lambda sm: sm.after["multiply"]),
    "cycles of a constant that misses": (84, lambda sm: sm.constant[1]),
    BESIDE: (4, lambda sm: sm.constant[0]),
    f"{FENCE} of the block": (53, lambda sm: sm.fences["block"]),
    f"{FENCE} of the gpu": (186, lambda sm: sm.fences["gpu"]),
    f"{FENCE} of the system": (2900, lambda sm: sm.fences["system"]),
    "units.L.uses.path": (12, lambda sm: sm.path),
    "units.L.uses.memory": (32, lambda sm: sm.memory),
    "loads that wait at once": (5, lambda sm: sm.places),
    BLOCKED: (11, lambda sm: sm.path - 1 if sm.blocks else 0),
    f"{NEXT}, by 1 warp": (95, lambda sm: sm.late[0]),
    f"{NEXT}, by 4 warps": (122, lambda sm: sm.late[0]),
    f"{FIRST}, by 1 warp": (None, lambda sm: sm.late[1]),
    f"{FIRST}, by 4 warps": (None, lambda sm: sm.late[1]),
}
"""By what a check is about: the most that `AMPERE` says, and what has to be found, by hand from what is planted."""


def checks(virtual: VirtualLapses, machine: Machine = AMPERE, *, are_modulo: bool = True) -> dict[str, LapseCheck]:
    """What is told, by what it is about; of loads behind others by the port that one holds."""
    samples = [MicrobenchSample(what, counts, Fraction(time)) for what, counts, time in virtual.samples()]
    told = check_lapses(samples, machine, are_modulo=are_modulo)
    return {check.key if check.key.startswith("units") else check.about: check for check in told}


@st.composite
def planted(draw: st.DrawFn) -> VirtualLapses:
    path, late = draw(st.integers(2, 14)), draw(st.integers(1, 120))
    return VirtualLapses(
        after={name: draw(st.integers(0, 4)) for name in ("reads-2", "reads-3", "special", "multiply")},
        constant=(draw(st.integers(0, 9)), draw(st.integers(10, 120))),
        fences={scope: draw(st.integers(0, 300)) for scope in ("block", "gpu", "system")},
        places=draw(st.integers(0, 7 if path > 2 else 5)),  # or more loads than are counted one by one fill no queue
        path=path,
        memory=draw(st.integers((path + 3) // 4, 34)),  # or the ports of the partitions hide the one of all
        blocks=draw(st.booleans()),
        late=(late, late + draw(st.integers(0, 900))),
    )


@settings(max_examples=20, deadline=None)
@given(planted())
@example(VirtualLapses())
def test_planted_lapses_are_found_and_refute_a_machine_that_says_less(virtual: VirtualLapses) -> None:
    told, found = checks(virtual), {about: planted(virtual) for about, (_, planted) in TRUTH.items()}
    assert {about: (check.least, check.most) for about, check in told.items()} == {
        about: (Fraction(cycles),) * 2 for about, cycles in found.items()
    }
    assert {about: check.said for about, check in told.items()} == {about: said for about, (said, _) in TRUTH.items()}
    assert {about for about, check in told.items() if check.is_refuted} == {
        about for about, (said, _) in TRUTH.items() if said is not None and found[about] > said
    }


def test_a_queue_that_is_said_not_to_block_is_refuted_by_a_scheduler_that_waits() -> None:
    machine = replace(AMPERE, queues=(UnitQueue("memory", ("L",), places=5, blocks=False),))
    assert checks(VirtualLapses(), machine)[BLOCKED].is_refuted
    assert not checks(VirtualLapses(blocks=False), machine)[BLOCKED].is_refuted


def test_verdicts_are_phrases() -> None:
    told = checks(VirtualLapses(after={"reads-2": 1, "reads-3": 1, "special": 2, "multiply": 0}))
    assert told["cycles of two reads of a bank"].verdict == "confirmed, the machine says at most 1"
    assert told["cycles of three reads of a bank"].verdict == "not refuted, the machine says at most 2"
    assert told[f"{FIRST}, by 1 warp"].verdict == "the machine says nothing about it"
    refuted = f"{READ}: 2.00..2.00, 1 samples: REFUTED, the machine says at most 1"
    assert str(told[READ]) == f"lapses.register-read: {refuted}"


def test_what_is_not_known_is_not_refuted() -> None:
    told = checks(VirtualLapses(), replace(AMPERE, lapses=None, queues=()))
    assert {about for about, check in told.items() if check.said} == {"units.L.uses.path", "units.L.uses.memory"}
    assert AMPERE.lapses is not None
    four = replace(AMPERE, lapses=replace(AMPERE.lapses, registers=RegisterReads(4, 1, is_variable=True)))
    assert checks(VirtualLapses(), four)["cycles of two reads of a bank"].said is None
    apart = {BESIDE, BLOCKED, *(about for about in TRUTH if about.startswith(FENCE))}  # partitions are not known
    assert checks(VirtualLapses(), are_modulo=False).keys() == TRUTH.keys() - apart


def test_rows_that_are_no_measurements_are_refused() -> None:
    row = MicrobenchSample(("lapse", "multiply", "nobody's"), (1, 64), Fraction(9))
    with pytest.raises(InputError, match="lapse of multiply: no such measurement with"):
        check_lapses([row], AMPERE, are_modulo=True)
    rows = [replace(row, what=("lapse", name, "own")) for name in ("multiply", "plain")]
    with pytest.raises(InputError, match="lapse of multiply of own: samples of two different counts are needed"):
        check_lapses(rows, AMPERE, are_modulo=True)


def test_a_refuted_number_is_a_line_a_caveat_and_an_exit_code(tmp_path: Path, measure: Runner) -> None:
    made = tmp_path / "my.toml"
    path = csv(tmp_path, replace(PLAIN, noise=3, lapses=VirtualLapses(path=13, memory=4, blocks=False)))
    done = measure("sm", "--fit", path, "--machine", GA10X, "-o", made)
    assert (done.code, done.err, done.out.count("REFUTED")) == (1, "", 1)
    assert re.search(r"^units\.L\.uses\.path: .*: REFUTED, the machine says at most 12$", done.out, re.MULTILINE)
    assert re.search(r"caveats = .*sm\.csv: units\.L\.uses\.path: .*REFUTED", made.read_text())
    told = json.loads(measure("sm", "--fit", path, "--machine", GA10X, "--format", "json").out)["checks"]
    assert [check["key"] for check in told if check["refuted"]] == ["units.L.uses.path"]
    done = measure("sm", "--fit", csv(tmp_path, replace(PLAIN, noise=3, lapses=VirtualLapses())), "--machine", GA10X)
    assert (done.code, done.out.count("REFUTED")) == (0, 0)


# programs


def worker_loop(code: Sequence[SassInstruction]) -> list[SassInstruction]:
    """The first loop of a round: that of the worker, as the loop of the warps beside it comes later."""
    jumps = [(last, int(one.operands[-1], 16) // 16) for last, one in enumerate(code) if one.name == "BRA"]
    loops = [range(begin, last) for last, begin in jumps if last - begin >= 32]
    inner = [loop for loop in loops if not any(other != loop and set(other) <= set(loop) for other in loops)]
    return [code[number] for number in min(inner, key=lambda loop: loop.start)]


def reads_of_a_bank(one: SassInstruction) -> int:
    """The most registers that an instruction reads of the even ones, or of the odd ones."""
    read = [int(name[1:]) for name in one.operands[1:] if re.fullmatch("R[0-9]+", name)]
    return max((sum(number % 2 == bank for number in read) for bank in (0, 1)), default=0)


@pytest.mark.skipif(shutil.which("nvcc") is None, reason="no nvcc")
@pytest.mark.parametrize("arch", [75, 86])
def test_machine_code_has_the_mechanisms_that_were_asked_for(arch: int, tmp_path: Path) -> None:
    """An assembler chooses registers and drops what it thinks is not needed: a worker has to be what its name says."""
    (tmp_path / "sm.cu").write_text(sm_source(["lapses"])["sm.cu"])
    command = ["nvcc", f"-arch=sm_{arch}", "-cubin", "-o", "sm.cubin", "sm.cu"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    kernels = {kernel.name: kernel for kernel in sass.read(tmp_path / "sm.cubin").kernels}
    loops = {name: worker_loop(kernels[f"lapse_{name.replace('-', '_')}"].code) for name in WORKERS}
    found = {name: Counter(one.name for one in loop) for name, loop in loops.items()}
    for reads in (1, 2, 3):
        loop = [one for one in loops[f"reads-{reads}"] if one.name == "FFMA"]
        assert [reads_of_a_bank(one) for one in loop] == [reads] * 32
        assert sum(one.control.reuse != 0 for one in loop) <= 1  # a register that is kept need not be read
    (machine,) = (read_machine(path).machine for path in KNOWN if arch in read_machine(path).machine.capabilities)
    given = dict.fromkeys(("global", "fetch", "constant-miss"), GivenRange(None, 600))
    for name, credit in (("reads-1", 0), ("reads-2", 1), ("reads-3", 2), ("multiply", 1), ("constants", 4)):
        flow = sass.flow(kernels[f"lapse_{name.replace('-', '_')}"])
        lapses = zip(flow.code, timed_code(flow, machine, given).lapses, strict=True)
        assert (
            sum(one.name in ("FFMA", "IMAD") and its.credit == credit for one, its in lapses) >= 32
        )  # as bounds count
    for name, opcode, other in (("plain", "FFMA", 32), ("multiply", "IMAD", 32), ("special", "MUFU", 160)):
        assert (found[name][opcode], found[name]["LOP3"] + found[name]["SHF"]) == (32, other)
        assert all(reads_of_a_bank(one) <= 1 for one in loops[name])
    assert (found["special"]["FFMA"], found["spaced"]["FFMA"]) == (128, 160)
    for name, opcode in (("load", "LDS"), ("store", "STG")):
        assert found[name][opcode] == 32
    for scope, modifier in (("block", "CTA"), ("gpu", "GPU"), ("system", "SYS")):
        fences = [one for one in loops[f"fence-{scope}"] if one.name == "MEMBAR"]
        assert [modifier in one.modifiers for one in fences] == [True] * 32
        assert found[f"fence-{scope}"]["STG"] == 32
    for name, lines in (("constant", 1), ("constants", CONSTANTS // 64)):
        read = [re.findall(r"c\[0x3\]\[(0x[0-9a-f]+)\]", " ".join(one.operands)) for one in loops[name]]
        assert sum(map(bool, read)) == 32
        assert len({int(place, 16) // 64 for places in read for place in places}) == lines
    for count in LOADS:
        words = " ".join(one.name for one in kernels[f"queue_{count}"].code)
        assert "CS2R " + "LDS " * count + "CS2R" in words
    for name in GAPS:
        code = kernels[f"line_{name}"].code
        clocks = [number for number, one in enumerate(code) if "SR_CLOCK" in " ".join(one.operands)]
        assert max(late - early for early, late in pairwise(clocks)) < 8  # a line has eight, and one begins at most
        assert all(code[number].name == "CS2R" for number in clocks)  # S2UR takes as long as a line
        assert (len(code) * 16 > 32 << 10, len(code) * 16 < 128 << 10) == (name == "long", True)
    for kernel in kernels.values():
        taken = kernel.resources.registers * 32 * (WORKER + 1)
        assert (taken <= 65536, kernel.resources.local_bytes) == (True, 0), kernel.name
