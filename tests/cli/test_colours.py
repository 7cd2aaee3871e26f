"""Colours: where they are, where they are not, and that they say nothing that the words do not."""

import re
import sys

import pytest

from makespan import cli
from makespan.cli.output import paint_verdicts
from makespan.deadlines.verdict import DeadlineAnswer
from makespan.model.deadline import DeadlineOutcome
from makespan.model.result import Status
from makespan.verify import Outcome as Checked

GREEN, YELLOW, RED, OFF = (f"\x1b[{number}m" for number in (32, 33, 31, 0))
ESCAPE = re.compile(r"\x1b\[\d+m")
TABLE = ("solve", "--string", "CLLCLL", "--warps", "1..3", "--deadline", "12cycles")


def said(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[str, str]:
    cli.run(list(words))
    done = capsys.readouterr()
    return done.out, done.err


def test_colours_are_for_a_terminal_or_who_forces_them(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    plain, _ = said(capsys, *TABLE)
    assert ESCAPE.search(plain) is None
    monkeypatch.setenv("FORCE_COLOR", "1")
    forced, _ = said(capsys, *TABLE)
    assert forced.count(f"  {GREEN}exact{OFF}  ") == 3
    assert forced.splitlines()[3].endswith(f"  {RED}missed{OFF}")
    assert ESCAPE.sub("", forced) == plain  # columns stand where they stood
    monkeypatch.setenv("NO_COLOR", "1")
    assert said(capsys, *TABLE)[0] == plain
    monkeypatch.undo()
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    assert said(capsys, *TABLE)[0] == forced
    monkeypatch.setenv("TERM", "dumb")
    assert said(capsys, *TABLE)[0] == plain


def test_an_error_is_red_and_data_are_data(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    assert said(capsys, "machines", "turin")[1].startswith(f"{RED}makespan:{OFF} unknown machine 'turin'")
    for words in ([*TABLE, "--format", "json"], [*TABLE, "--format", "csv"], ["machines", "x", "--format", "json"]):
        assert ESCAPE.search("".join(said(capsys, *words))) is None


@pytest.mark.parametrize("word", [*Status, *DeadlineAnswer, *Checked, *map("deadline {}".format, DeadlineOutcome)])
def test_every_verdict_has_a_colour_and_keeps_its_words(word: str) -> None:
    """At the start of a line, and nowhere within a sentence."""
    shown = paint_verdicts(f"{word} if so: a {word} one\n")
    assert shown in {f"{colour}{word}{OFF} if so: a {word} one\n" for colour in (GREEN, YELLOW, RED)}
