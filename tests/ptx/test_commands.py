"""`strings`, with its template of bounds, and the options for kernels, from file to exit code."""

import json
from pathlib import Path

import pytest

from tests.command import Runner, command_fixture
from tests.ptx.texts import entry

EIGHT = entry(
    """.reg .u32 %r<2>; .reg .pred %p<2>; .reg .u64 %rd<2>;
mov.u32 %r1, 0;
H: st.global.u32 [%rd1], %r1;
add.u32 %r1, %r1, 1;
setp.lt.u32 %p1, %r1, 8;
@%p1 bra H;
ret;"""
)
TWO = """.version 8.0
.target sm_75
.entry good() { add.u32 %r1, %r1, 1; ret; }
.entry bad() { @p bra M; H: add a, a, 1; M: add a, a, 2; @p bra H; ret; }
"""


solve = command_fixture("solve")
strings = command_fixture("strings")


@pytest.fixture
def eight(tmp_path: Path) -> Path:
    path = tmp_path / "eight.ptx"
    path.write_text(EIGHT)
    return path


@pytest.fixture
def two(tmp_path: Path) -> Path:
    path = tmp_path / "two.ptx"
    path.write_text(TWO)
    return path


def test_a_bound_that_the_code_contradicts_gives_no_number(solve: Runner, eight: Path) -> None:
    done = solve(eight, "--warps", 2, "--loop-bound", "H=3")
    assert (done.code, done.out) == (2, "")
    assert "loop H: at most 3 iterations (command line), but it makes exactly 8 iterations (inferred" in done.err
    assert len(done.err.splitlines()) == 1


def test_a_trusted_bound_is_part_of_the_verdict(solve: Runner, eight: Path) -> None:
    arguments = (eight, "--warps", 2, "--loop-bound", "H=3", "--trust-bounds")
    done = solve(*arguments)
    assert done.code == 0
    (verdict,) = [line for line in done.out.splitlines() if "the worst case is" in line]
    assert "loop bounds trusted against the code" in verdict
    (document,) = map(json.loads, solve(*arguments, "--format", "json").out.splitlines())
    assert any(
        note["text"].startswith("loop bounds trusted against the code: loop H") for note in document["assumptions"]
    )
    done = solve(*arguments, "--deadline", "9999cycles")
    (gate,) = [line for line in done.out.splitlines() if line.startswith("deadline met")]
    assert "loop bounds trusted against the code" in gate
    done = solve(eight, "--warps", 2, "--loop-bound", "H=9", "--trust-bounds")
    assert "trusted" not in done.out


def test_strings_tells_what_a_trusted_bound_contradicts(strings: Runner, eight: Path) -> None:
    done = strings(eight, "--loop-bound", "H=3", "--trust-bounds")
    assert "at most 3 iterations (command line), but it makes exactly 8 iterations (inferred" in done.out


def test_a_kernel_is_not_held_back_by_another_that_cannot_be_analysed(
    solve: Runner, strings: Runner, two: Path
) -> None:
    assert solve(two, "--kernel", "good", "--warps", 2).code == 0
    assert strings(two, "--kernel", "good").code == 0
    done = strings(two)
    assert (done.code, done.err) == (0, "")
    assert "kernel good (profile paper)" in done.out
    assert f"kernel bad (profile paper)\n  no program: {two}:4: the loop at H is also entered past its head" in done.out
    good, bad = map(json.loads, strings(two, "--format", "json").out.splitlines())
    assert (good["string"], bad["programs"]) == ("C", [])
    assert "irreducible control flow" in bad["refused"]


def test_a_kernel_that_was_asked_for_and_cannot_be_analysed_is_an_error(strings: Runner, two: Path) -> None:
    done = strings(two, "--kernel", "bad")
    assert (done.code, done.out) == (2, "")
    assert "irreducible control flow" in done.err


def test_a_graph_is_drawn_of_what_can_be_drawn(strings: Runner, tmp_path: Path) -> None:
    path = tmp_path / "calls.ptx"
    path.write_text(
        ".version 8.0\n.target sm_75\n.func f() { call f; ret; }\n.entry a() { call f; }\n.entry b() { ret; }"
    )
    done = strings(path, "--dot")
    assert done.code == 0
    assert "// kernel a: " in done.out
    assert 'digraph "b"' in done.out
    assert strings(path, "--dot", "--kernel", "a").code == 2


def test_the_starts_of_an_automaton_are_told(strings: Runner, tmp_path: Path) -> None:
    path = tmp_path / "starts.ptx"
    path.write_text(entry("@p bra B;\nadd.u32 a, a, 1;\nret;\nB: ld.global.u32 a, [b];\nadd.u32 a, a, 1;\nret;"))
    (document,) = map(json.loads, strings(path, "--format", "json").out.splitlines())
    (program,) = document["programs"]
    assert program["starts"] == document["starts"]
    reached = {*program["starts"], *(after for letter in program["letters"] for after in letter["successors"])}
    assert reached == {*range(program["places"]), program["places"]}


def test_a_parameter_decides_a_branch_without_a_block(strings: Runner, tmp_path: Path) -> None:
    path = tmp_path / "k.ptx"
    body = "ld.param.u32 a, [n]; setp.gt.u32 p, a, 5; @p bra E; add.u32 a, a, 1; E: ret;"
    path.write_text(f".version 8.0\n.target sm_75\n.entry k(.param .u32 n) {{ {body} }}")
    for value, letters in ((7, "LCC"), (5, "LCCC"), (None, None)):
        given = () if value is None else ("--param", f"n={value}")
        (document,) = map(json.loads, strings(path, *given, "--format", "json").out.splitlines())
        assert document["string"] == letters


def test_a_listing_is_no_graph(strings: Runner, eight: Path) -> None:
    for given in (("--listing", "--dot"), ("--dot", "--bounds-template")):
        done = strings(eight, *given)
        said = "makespan: --listing, --dot and --bounds-template exclude each other\n"
        assert (done.code, done.out, done.err) == (2, "", said)


@pytest.mark.parametrize("option", ["--dot", "--bounds-template"])
def test_what_has_a_format_of_its_own_has_no_other(option: str, strings: Runner, eight: Path) -> None:
    done = strings(eight, option, "--format", "json")
    said = f"{option} prints a format of its own: leave out --format"
    assert (done.code, done.out, json.loads(done.err)["error"]) == (2, "", said)
    assert strings(eight, option, "--format", "text") == strings(eight, option)


def test_who_says_how_many_warps_a_block_has_is_named(solve: Runner, tmp_path: Path) -> None:
    path = tmp_path / "req.ptx"
    path.write_text(
        ".version 8.0\n.target sm_75\n.entry k() .reqntid 128 { .reg .u32 %r<2>; add.u32 %r1, %r1, 1; ret; }"
    )
    said = "means 4 warps for each block, and --warps says otherwise: leave --warps out\n"
    assert solve(path, "--warps", 8).err == f"makespan: {path}: .reqntid of kernel k {said}"
    assert solve(path, "--warps", 8, "--block", 128).err == f"makespan: --block {said}"
    assert solve(path, "--warps", 4).code == 0


AHEAD = entry("ld.global.u32 %r1, [%rd1];\nadd.s32 %r2, %r1, 1;\nret;")


@pytest.fixture
def ahead(tmp_path: Path) -> Path:
    path = tmp_path / "ahead.ptx"
    path.write_text(AHEAD)
    return path


def test_the_latency_that_nobody_knows_is_asked_for_and_named(ahead: Path, solve: Runner) -> None:
    asked = ahead, "--warps", 1, "--machine", "turing", "--quiet"
    missing = solve(*asked)
    assert missing.code == 2
    assert "the latency of operation global, first used at line 5, of which machine 'turing' knows only" in missing.err
    assert missing.err.endswith("--latency global=..N\n")
    given = solve(*asked, "--latency", "global=..400")
    assert given.code == 0
    said = "exact for the PTX as written, with stall on use, "
    doubt, left_out = "with unverified latencies (branch), ", "although lapses are left out, "
    condition = "if global takes at most 400 cycles: the worst case is "
    assert given.out.startswith(said + doubt + left_out + condition)
    own = solve(*asked, "--latency", "global=..400", "--latency", "branch=3..8")
    assert own.out.startswith(f"{said}{left_out}if branch takes 3..8 cycles and global at most 400: the worst case is ")
    blocking = solve(*asked, "--latency", "global=..400", "--dependences", "blocking")
    assert "with every result waited for" in blocking.out


def test_latencies_are_for_kernels_on_machines_that_time_operations(ahead: Path, solve: Runner) -> None:
    letters = solve("--string", "CL", "--warps", 2, "--latency", "global=4")
    assert letters.err.startswith("makespan: --latency and --dependences are for kernels; in a string write ")
    classes = solve(ahead, "--warps", 2, "--latency", "global=4")
    assert "machine 'paper' does not time the operation global" in classes.err
    profile = solve(ahead, "--warps", 2, "--machine", "turing", "--profile", "modern")
    assert "leave out --profile, --classes and --unknown" in profile.err


def test_for_how_long_ports_are_held_is_said_of_a_machine(ahead: Path, solve: Runner, tmp_path: Path) -> None:
    asked = "--warps", 2, "--machine", "turing", "--quiet", "--hold", "memory=2"
    kernel = solve(ahead, *asked, "--latency", "global=..400")
    assert "if global takes at most 400 cycles and class L holds memory for 2 cycles: the worst case" in kernel.out
    assert "if class L holds memory for 2 cycles, if the unknown" in solve("--string", "L", *asked).out
    assert solve(ahead, *asked[:2], "--hold", "memory=2").code == 2
    path = tmp_path / "instances.toml"
    path.write_text('[[instance]]\nstring = "CL"\nwarps = 2\ncapacity = { C = 1, L = 1 }\n')
    assert "no --warps, --capacity, --machine, --hold beside it" in solve(path, "--hold", "memory=2").err


def test_a_report_on_a_kernel_says_for_how_long_ports_are_held(
    ahead: Path, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    asked = "--warps", 2, "--machine", "turing", "--hold", "memory=2", "--latency", "global=4..40", "--time-limit", 1
    done = Runner("report", capsys)(ahead, *asked, "-o", tmp_path / "page.html")
    assert "class L holds memory for 2 cycles" in done.out
