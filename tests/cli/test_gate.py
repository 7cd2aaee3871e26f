"""`makespan gate`: deadlines of several kernels, and what CI systems are told of them."""

import re
import shlex
import tomllib
from pathlib import Path
from xml.etree import ElementTree

import pytest
import yaml

from makespan.model.deadline import DeadlineOutcome
from makespan.report.junit import DeadlineCheck, junit_document
from tests.command import Runner

ROOT = Path(__file__).parents[2]
SPEC = """
clock = "1GHz"
[[question]]
string = "CLLCLL"
warps = 2
each.deadline = ["10ns", "11cycles", "9cycles"]
[[question]]
string = "LCLLCLCCLLLCCCLCLCCLLC"
warps = 9
capacity = "C=2,L=2"
time-limit = 1e-9
deadline = "73cycles"
[[question]]
source = "loop.ptx"
warps = 1
deadline = "1us"
"""


@pytest.fixture
def gate(capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Runner:
    monkeypatch.chdir(tmp_path)
    return Runner("gate", capsys)


def cases(path: Path) -> list[tuple[str, str, str]]:
    """Of each case of a report its name, what it became, and the type of that."""
    found = [(case.attrib["name"], case[0].tag, case[0].get("type", "")) for case in ElementTree.parse(path).getroot()]
    assert all(case.attrib["classname"] == str(Path("a.toml")) for case in ElementTree.parse(path).getroot())
    return found


def test_only_proofs_pass_and_what_is_refused_costs_no_other_its_answer(gate: Runner, tmp_path: Path) -> None:
    (tmp_path / "a.toml").write_text(SPEC)
    (tmp_path / "loop.ptx").write_text((ROOT / "ptx" / "nearest_point_paper.ptx").read_text())
    done = gate("a.toml", "--junit", "a.xml")
    assert done.code == 2
    met, _, missed, open_, refused, counted = done.out.splitlines()
    assert met == (
        "string=CLLCLL warps=2: deadline met if every instruction takes one cycle: 10 ns, 10 cycles at 1 GHz, with 0 to"
        " spare"
    )
    assert missed.endswith(": 9 ns, 9 cycles at 1 GHz, a schedule is 1 cycle too late")
    assert ": 73 ns, 73 cycles at 1 GHz, the worst case lies within " in open_
    assert re.fullmatch(
        r"loop\.ptx warps=1: refused: loop\.ptx: kernel .*: 1 input is missing: a bound for the loop Loop .*", refused
    )
    assert counted == "5 deadlines: 2 met, 1 missed, 1 undecided, 1 refused"
    assert [found[1:] for found in cases(tmp_path / "a.xml")] == [
        ("system-out", ""),
        ("system-out", ""),
        ("failure", "missed"),
        ("failure", "undecided"),
        ("error", "refused"),
    ]
    root = ElementTree.parse(tmp_path / "a.xml").getroot()
    assert [root.get(key) for key in ("tests", "failures", "errors")] == ["5", "2", "1"]


@pytest.mark.parametrize(("deadlines", "code"), [("['10cycles']", 0), ("['9cycles', '10cycles']", 1)])
def test_the_exit_code_is_that_of_the_worst(gate: Runner, tmp_path: Path, deadlines: str, code: int) -> None:
    (tmp_path / "a.toml").write_text(f"string = 'CLLCLL'\nwarps = 2\neach.deadline = {deadlines}\n")
    assert gate("a.toml", "-q").code == code


def test_an_undecided_deadline_does_not_pass(gate: Runner, tmp_path: Path) -> None:
    (tmp_path / "a.toml").write_text(SPEC[: SPEC.index("[[question]]\nsource")].replace(', "9cycles"', ""))
    assert gate("a.toml", "-q").code == 3


def test_a_question_without_a_deadline_is_no_gate_and_nothing_is_solved(gate: Runner, tmp_path: Path) -> None:
    (tmp_path / "a.toml").write_text(
        "string = 'CL'\nwarps = 2\n[[question]]\ndeadline = '9cycles'\n[[question]]\nseed = 1\n"
    )
    done = gate("a.toml")
    remedy = "no deadline, such as deadline = '280cycles'"
    assert (done.code, done.out, done.err) == (2, "", f"makespan: a.toml: string=CL warps=2: {remedy}\n")


def test_a_report_holds_any_name() -> None:
    checks = [DeadlineCheck('<a&"\0\x1b\ud800', DeadlineOutcome.MISSED, "]]>\x08", 0.5)]
    root = ElementTree.fromstring(junit_document("\x00", checks))
    assert (root[0].attrib["name"], root[0][0].attrib["message"]) == ('<a&"\ufffd\ufffd\ufffd', "]]>\ufffd")


def test_a_launch_on_a_gpu_has_the_clock_of_that_gpu(gate: Runner, tmp_path: Path) -> None:
    options = "warps = 1\nstring = 'K'\ngrid = 1\nblocks-per-sm = 1\ngpu = 'rtx-3070'\ndeadline = '1us'\n"
    (tmp_path / "a.toml").write_text(options)
    done = gate("a.toml")
    assert (done.code, "1 us, 1500 cycles at 1.5 GHz" in done.out) == (0, True), done


def steps(of: str, document: object) -> list[str]:
    """All texts in a document that call `makespan gate`."""
    if isinstance(document, dict | list):
        inner = document.values() if isinstance(document, dict) else document
        return [text for each in inner for text in steps(of, each)]
    return [document] if isinstance(document, str) and of in document else []


@pytest.mark.parametrize(
    ("file", "said"),
    [
        ("action.yml", {"SPEC": "a.toml", "JUNIT": "a.xml", "RUNNER_TEMP": ""}),
        ("ci/gitlab.yml", {"MAKESPAN_SPEC": "a.toml"}),
    ],
)
def test_the_step_of_a_ci_system_leaves_a_report(gate: Runner, tmp_path: Path, file: str, said: dict[str, str]) -> None:
    (tmp_path / "a.toml").write_text("string = 'CL'\nwarps = 2\ndeadline = '3cycles'\n")
    (line,) = (text for text in steps("gate ", yaml.safe_load((ROOT / file).read_text())) if "--junit" in text)
    words = shlex.split(re.sub(r"\$(\w+)", lambda name: said[name[1]], line))
    assert words[0].endswith("makespan")
    assert words[1] == "gate"
    done = gate(*words[2:])
    assert (done.code, cases(tmp_path / words[-1])) == (0, [("string=CL warps=2", "system-out", "")])


def test_the_hook_for_pre_commit_is_a_command_with_its_file(gate: Runner, tmp_path: Path) -> None:
    (hook,) = yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text())
    (tmp_path / "gate.toml").write_text("string = 'CL'\nwarps = 2\ndeadline = '3cycles'\n")
    words = [*shlex.split(hook["entry"]), *hook["args"]]
    assert words[:2] == ["makespan", "gate"]
    assert gate(*words[2:]).out == "1 deadline: 1 met\n"
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert hook["language"] == "python"
    assert words[0] in project["scripts"]
    assert all(re.search(hook["files"], name) for name in ("a/k.ptx", "k.cu", "k.cubin", "gate.toml"))
