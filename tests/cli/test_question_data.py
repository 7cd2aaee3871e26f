"""What `solve` is asked, as data: the same options, the same answers, and a key that tells questions apart."""

import json
from pathlib import Path
from typing import Any

import click
import pytest

from makespan.cli.options import QUESTION_OPTIONS
from makespan.cli.question import solve_question
from makespan.cli.question_key import question_key
from makespan.cli.solve import command as solve_command
from makespan.host.errors import InputError
from makespan.verify import Outcome as Verdict
from makespan.verify import parse, verify
from makespan.version import THEORY
from tests.command import Runner

STRING = {"string": "CLLC", "warps": 3}
KERNEL = """.version 7.0
.target sm_50
.address_size 64
.entry k() { ADD_ bar.sync 0; ret; }
""".replace("ADD_", "add.u32 %r1, 1, 2;").replace("{", "{ .reg .u32 %r1;")
QUESTIONS: list[tuple[dict[str, Any], list[str]]] = [
    (STRING, ["--string", "CLLC", "--warps", "3"]),
    (
        {**STRING, "capacity": "C=2,L=1", "deadline": "12cycles", "best-case": True},
        ["--string", "CLLC", "--warps", "3", "--capacity", "C=2,L=1", "--deadline", "12cycles", "--best-case"],
    ),
    (
        {**STRING, "sms": 2, "grid": 6, "blocks-per-sm": 2, "deadline": "20cycles", "clock": "1GHz"},
        [
            "--string",
            "CLLC",
            "--warps",
            "3",
            "--sms",
            "2",
            "--grid",
            "6",
            "--blocks-per-sm",
            "2",
            "--deadline",
            "20cycles",
            "--clock",
            "1GHz",
        ],
    ),
]
DIFFERS = {"seconds", "best_case_seconds", "history"}


@pytest.mark.parametrize(("question", "words"), QUESTIONS)
def test_an_answer_is_what_solve_prints_and_leaves(
    question: dict[str, Any], words: list[str], solve: Runner, tmp_path: Path
) -> None:
    answer = solve_question(question)
    printed = json.loads(solve(*words, "--format", "json", "--bundle", tmp_path / "b.json").out)
    timed = dict.fromkeys(DIFFERS)
    assert answer.document | timed == printed | timed
    assert (answer.lower, answer.upper, answer.status) == tuple(printed[name] for name in ("lower", "upper", "status"))
    document: Any = parse(answer.bundle)
    assert verify(document).outcome is Verdict.ACCEPTED
    assert document["sha256"] == answer.digest
    assert document["instance"] == json.loads((tmp_path / "b.json").read_text())["instance"]


def test_a_question_can_say_every_option_that_solve_has_but_for_files_it_writes_and_what_it_prints() -> None:
    context = click.Context(solve_command)
    every = {max(option.opts, key=len).removeprefix("--") for option in solve_command.get_params(context)}
    files, printed = {"bundle", "gantt", "keep-ptx", "from", "to"}, {"format", "quiet", "timeline", "help"}
    assert every - QUESTION_OPTIONS.keys() == files | printed | {"input-format"}
    assert QUESTION_OPTIONS.keys() <= every


@pytest.mark.parametrize(
    ("question", "message"),
    [
        ({"gantt": "a.png"}, "'gantt' is no option of a question, which takes those of 'makespan solve' but for files"),
        ({"sttring": "CL"}, "did you mean 'string'?"),
        ({**STRING, "warps": "1..3"}, "warps 1..3: a question is about one instance"),
        ({"string": ["C", "L"], "warps": 1}, "string must be a text or a number, not ['C', 'L']"),
        ({**STRING, "best-case": 1}, "best-case must be true or false, not 1"),
        ({**STRING, "threads": True}, "threads must be a text or a number, not True"),
        ({**STRING, "time-limit": -1}, "-1 must be positive and finite"),
        ({**STRING, "string": "--help"}, "'-' at position 1 is no unit class"),
        ({"source": "-"}, "source must be the name of a file, not '-'"),
        ({"source": "--help"}, "--help: unknown kind of file"),
        ({}, "what is to be solved?"),
    ],
)
def test_what_is_no_question_is_refused_by_name(question: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError) as refusal:
        solve_question(question)
    assert message in str(refusal.value)


def test_a_file_of_several_instances_is_no_question(tmp_path: Path) -> None:
    line = json.dumps({"string": "CL", "warps": 2, "capacity": {"C": 1, "L": 1}})
    (tmp_path / "two.jsonl").write_text(f"{line}\n{line}\n")
    with pytest.raises(InputError, match=r"two\.jsonl: a question is about one instance, and here are 2"):
        solve_question({"source": str(tmp_path / "two.jsonl")})


def test_a_key_forgets_how_a_question_is_written_and_nothing_else() -> None:
    assert len(question_key(STRING)) == 64
    assert question_key(STRING) == question_key(
        {"warps": "3", "string": "CLLC", "seed": 0, "best-case": False, "param": []}
    )
    assert question_key({**STRING, "memory-limit": "1GiB"}) == question_key({**STRING, "memory-limit": 2**30})
    others: dict[str, Any] = {
        "string": "CLLL", "warps": 4, "capacity": "C=1,L=1", "machine": "paper", "gpu": "rtx-3070", "sms": 2, "grid": 3,
        "blocks-per-sm": 2, "scheduler": "fair", "assignment": "modulo", "backend": "search", "seed": 1,
        "time-limit": 61, "memory-limit": "1GiB", "threads": 2, "best-case": True, "deadline": "3cycles",
        "param": "N=0", "loop-bound": ["L=1"], "trust-bounds": True, "arch": "sm_86", "dynamic-shared": 0,
        "hold": "memory=2", "clock": "1GHz", "dependences": "blocking", "kernel": "k", "latency": "global=..9",
        "instance": "2", "paths": "single", "profile": "fermi", "take": "L=fall", "unknown": "C", "block": 32,
        "warm": True,
    }  # fmt: skip
    assert others.keys() | {"source", "classes", "trace"} == set(QUESTION_OPTIONS)
    keys = [question_key(STRING), *(question_key({**STRING, name: value}) for name, value in others.items())]
    assert len(set(keys)) == len(keys)


def test_a_key_is_made_of_what_files_hold(tmp_path: Path) -> None:
    one, two, bounds = tmp_path / "one.ptx", tmp_path / "two.ptx", tmp_path / "bounds.csv"
    one.write_text(KERNEL)
    two.write_text(KERNEL)
    bounds.write_text("L,3\n")
    assert question_key({"source": str(one)}) == question_key({"source": str(two)})
    before = question_key({"source": str(one), "loop-bound": [str(bounds)]})
    bounds.write_text("L,4\n")
    assert before != question_key({"source": str(one), "loop-bound": [str(bounds)]})
    two.write_text(KERNEL + "\n")
    assert question_key({"source": str(one)}) != question_key({"source": str(two)})
    with pytest.raises(InputError, match=r"none\.ptx: cannot read the input"):
        question_key({"source": str(tmp_path / "none.ptx")})


def test_a_key_is_made_of_every_file_that_can_be_read(tmp_path: Path) -> None:
    text = '[[instance]]\nstring = "CL"\nwarps = 2\ncapacity = { C = 1, L = 1 }\n'
    marked, wide = tmp_path / "marked.toml", tmp_path / "wide.toml"
    marked.write_text(text, "utf-8-sig")
    assert solve_question({"source": str(marked)}).upper == 3
    assert len(question_key({"source": str(marked)})) == 64
    wide.write_text(text, "utf-16")
    with pytest.raises(InputError, match="it is UTF-16 text; save it as UTF-8"):
        question_key({"source": str(wide)})


def test_a_key_of_a_machine_or_gpu_that_nobody_knows_is_refused() -> None:
    for name in ("machine", "gpu"):
        with pytest.raises(InputError, match=r"unknown (machine|gpu) 'tesla'.* shipped: "):
            question_key({**STRING, name: "tesla"})


def test_a_key_is_made_of_what_a_file_of_launches_leads_to(tmp_path: Path) -> None:
    (tmp_path / "a.ptx").write_text(KERNEL)
    (tmp_path / "both.toml").write_text('[[launch]]\nname = "a"\nkernel = "a.ptx"\ngrid = "both.toml"\n')
    question = {"source": str(tmp_path / "both.toml"), "sms": 2}
    before = question_key(question)
    (tmp_path / "a.ptx").write_text(KERNEL + "\n")
    assert question_key(question) != before
    for odd in ("launch = 3", 'launch = ["a.ptx"]', "[[launch]]\nkernel = 3", '[[launch]]\nkernel = "a.ptx"\narch = 3'):
        (tmp_path / "both.toml").write_text(odd)
        assert len(question_key(question)) == 64  # whoever reads it says what is wrong


def test_a_new_theory_gives_new_keys_and_stands_in_the_changelog(monkeypatch: pytest.MonkeyPatch) -> None:
    changes = [Path("CHANGELOG.md"), *Path("changelog.d").glob("*.number.md")]
    assert any(f"`THEORY` is {THEORY}" in change.read_text() for change in changes)
    before = question_key(STRING)
    monkeypatch.setattr("makespan.cli.question_key.THEORY", THEORY + 1)
    assert question_key(STRING) != before
