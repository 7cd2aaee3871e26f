"""`makespan sweep`: a spec, a table, and what becomes of them."""

import io
import json
import queue
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest

from makespan.cli.question_key import question_key
from makespan.many.commands import answering
from makespan.many.commands.answering import answer
from makespan.many.sweep.running import SweepTally
from makespan.many.sweep.store import AnswerContradiction, open_store
from makespan.verify import Outcome as Verdict
from makespan.verify import parse, verify
from tests.command import Outcome, Runner

SPEC = """
string = "CLLCLL"
each.warps = "1..2"
[[question]]
each.capacity = ["C=1,L=1", "C=2,L=1"]
[[question]]
machine = "nowhere.toml"
[[question]]
string = "CX"
"""


@pytest.fixture
def sweep(capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Runner:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.toml").write_text(SPEC)
    return Runner("sweep", capsys)


def test_a_latency_may_depend_on_what_a_launch_asks_of_dram() -> None:
    kernel = Path(__file__).parents[2] / "ptx" / "vecadd.ptx"
    launch = {"source": str(kernel), "block": "256", "grid": "64", "blocks-per-sm": "6", "gpu": "rtx-3070"}
    found = []
    for more in ("", "+dram"):
        question = {**launch, "latency": [f"global=..450{more}"], "time-limit": "0.1"}
        found.append(answer({"question": question, "key": question_key(question), "bundle": False})["document"])
    plain, busy = found
    assert busy["upper"] >= plain["lower"] + busy["dram_cycles"] > plain["lower"]


def ctrl_c(*_: object, **__: object) -> None:
    raise KeyboardInterrupt


def test_a_sweep_answers_as_solve_does_and_asks_nothing_twice(sweep: Runner, tmp_path: Path) -> None:
    first = sweep("a.toml", "-o", "a.sqlite", "--workers", 1, "--bundles", "b")
    assert first == Outcome(2, "", "makespan: a.toml: string = CLLCLL, machine = nowhere.toml, warps = 1: nowhere.toml:"
                            " cannot read the input: No such file or directory\n")  # fmt: skip
    (tmp_path / "a.toml").write_text(SPEC.replace("nowhere.toml", "paper"))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("makespan.many.commands.asking.run_sweep", ctrl_c)
        stopped = "interrupted: 0 of 8 are in a.sqlite; the same command goes on\n"
        assert sweep("a.toml", "-o", "a.sqlite", "--workers", 1, "--bundles", "b") == Outcome(130, "", stopped)
    why = "instruction string: 'X' at position 2 is no unit class of machine 'paper'; use C, L, and | for a barrier"
    told = "6 of 8 questions have an answer in a.sqlite; 2 have none, and 'makespan sweep export' tells why"
    solved = sweep("a.toml", "-q", "-o", "a.sqlite", "--workers", 1, "--bundles", "b")
    assert solved == Outcome(3, f"{told} ({why})\n", "")
    with open_store(tmp_path / "a.sqlite") as store:
        found = [(asked.question, asked.document, asked.failure) for asked in store.asked()]
    uppers = {
        (question["warps"], question.get("capacity")): document["upper"] for question, document, _ in found if document
    }
    assert uppers[2, None] == uppers[2, "C=1,L=1"] == 10
    assert uppers[1, None] == 6
    refused = {failure.reason for _, _, failure in found if failure is not None}
    assert refused == {why}
    bundles = [(path.stem, parse(path.read_bytes())) for path in (tmp_path / "b").iterdir()]
    assert len(bundles) == 6
    for digest, bundle in bundles:
        document: Any = bundle
        assert document["sha256"] == digest
        assert verify(document).outcome is Verdict.ACCEPTED
    again = sweep("-o", "a.sqlite", "a.toml")
    assert again.out.startswith("6 of 8 questions have an answer in a.sqlite, 6 known before; 2 have none")
    assert again.out.endswith("; --retry-failed asks them again\n")


def test_a_contradiction_is_a_bug_and_says_so(sweep: Runner, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a.toml").write_text('string = "CL"\nwarps = 1')
    found = SweepTally(1, 0, 0, answered=1, contradictions=[AnswerContradiction("k", (3, 5), (6, 9))])
    monkeypatch.setattr("makespan.many.commands.asking.run_sweep", lambda *_, **__: found)
    code, out, err = sweep("a.toml", "-o", "a.sqlite")
    assert (code, out) == (70, "1 of 1 questions have an answer in a.sqlite\n")
    assert "key k: 3..5 cycles were kept, and now it is 6..9; both are in the table" in err


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["a.toml"], "Missing option '-o'"),
        (["rum"], "no such command 'rum'"),
        (["none.toml", "-o", "a.sqlite"], "none.toml: cannot read the spec: No such file or directory"),
        (["a.toml", "-o", "a.toml"], "a.toml: is an input of this command; write to another file"),
        (["a.toml", "-o", "no/a.sqlite"], "no/a.sqlite: cannot write the table: No such file or directory"),
        (["plot", "a.sqlite", "-o", "a.gif"], "a.gif: the name of a picture must end in .png, .svg or .pdf"),
        (["plot", "a.sqlite", "-o", "a.png"], "a.sqlite: there is no such table"),
        (["plot", "a.sqlite", "-o", "a.png", "--where", "x"], "--where: expected OPTION=VALUE, such as warps=8"),
        (["plot", "a.sqlite", "-o", "a.png", "--over", "a", "--over", "b", "--by", "c"], "--over is given once for"),
        (["export", "a.toml", "-o", "a.csv"], "a.toml: not a table of makespan sweep: file is not a database"),
        (["export", "a.sqlite", "-o", "a.txt"], "a.txt: the name of a table must end in .csv or .parquet"),
        (["a.toml", "-o", "a.sqlite", "--workers", 2, "--scheduler", "x"], "give one of them"),
    ],
)
def test_bad_usage_is_one_line(words: list[str], message: str, sweep: Runner, tmp_path: Path) -> None:
    (tmp_path / "a.toml").write_text('string = "CL"\nwarps = 1')
    code, out, err = sweep(*words)
    assert (code, out) == (2, "")
    assert message in err


def test_what_comes_of_a_job_is_told_in_plain_data(monkeypatch: pytest.MonkeyPatch) -> None:
    question = {"string": "CL", "warps": 2}
    job = {"question": question, "key": question_key(question), "bundle": False}
    found = answer(job)
    assert (found["document"]["upper"], found["bundle"], len(found["digest"])) == (3, None, 64)
    assert json.loads(json.dumps(found)) == found
    assert answer({**job, "key": "k"})["cause"] == "changed"
    assert answer({**job, "question": {"string": "CX", "warps": 2}})["cause"] == "refused"
    for error, cause in ((MemoryError(), "died"), (ZeroDivisionError("by 0"), "bug")):
        monkeypatch.setattr("makespan.many.commands.answering.solve_question", Mock(side_effect=error))
        assert answer(job)["cause"] == cause


def test_a_process_without_anybody_to_answer_ends_whatever_it_is_at(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os._exit", end := Mock(side_effect=SystemExit))
    asked = queue.SimpleQueue[str]()
    with pytest.raises(SystemExit):  # in a thread of its own, beside the one that answers
        answering._listen(io.StringIO("a\nb\n"), asked)
    end.assert_called_once_with(0)
    assert [asked.get(), asked.get()] == ["a\n", "b\n"]
