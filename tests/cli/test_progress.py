"""Progress: plain lines now and then, one line in a terminal, with the time, the bounds and the rest."""

import logging
import sys

import pytest

from makespan.cli import progress as told
from makespan.cli.progress import Notices, Progress, RemainingTime, counting, notice, progress
from makespan.model.result import Step

WIPE = "\r\x1b[K"


class Clock:
    """A time that passes only when it is told to."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


def in_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)


def test_elsewhere_a_line_comes_every_two_seconds(clock: Clock, capsys: pytest.CaptureFixture[str]) -> None:
    show, quiet = Progress(clock=clock), Progress(quiet=True, clock=clock)
    for now in (0, 1.9, 2.1, 3, 4.2):
        clock.now = now
        show(f"at {now}")
        quiet("never")
        show.improved(Step(now, "search", 90, 100 + int(now), "search"))
    show.clear()
    assert capsys.readouterr() == ("", "0:00:02  worst case 90..101; at 2.1\n0:00:04  worst case 90..103; at 4.2\n")


def test_in_a_terminal_one_line_is_rewritten_and_taken_away(
    clock: Clock, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    in_terminal(monkeypatch)
    show = Progress(clock=clock)
    for now in (0.3, 0.4, 61):
        clock.now = now
        show(f"at {now}" + "." * 100)
    show.clear()
    show.clear()
    first, second = f"0:00:00  at 0.3{'.' * 100}"[:79], f"0:01:01  at 61{'.' * 100}"[:79]
    assert capsys.readouterr() == ("", f"{WIPE}{first}{WIPE}{second}{WIPE}")


def test_what_stays_is_said_in_a_line_of_its_own(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    in_terminal(monkeypatch)
    monkeypatch.setattr(told, "_SECONDS_OF_TERMINAL", 0.0)
    with progress() as show:
        show("a")
        notice("interrupted")
        show("b")
        Notices().emit(logging.makeLogRecord({"msg": "compiling %s", "args": ("x",)}))
        show("c")
    show("too late")
    shown = capsys.readouterr().err.replace("0:00:00  ", "")
    assert shown == f"{WIPE}a{WIPE}interrupted\n{WIPE}b{WIPE}makespan: compiling x\n{WIPE}c{WIPE}"


def test_the_rest_is_told_from_the_second_on(clock: Clock) -> None:
    rest = RemainingTime(4, clock=clock)
    said = []
    for now in (50, 60, 80, 85):  # the first one loads
        clock.now = now
        said.append(rest.after_one())
    assert said == ["1 of 4", "2 of 4, about 0:00:20 left", "3 of 4, about 0:00:15 left", "4 of 4"]


def test_a_campaign_counts(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    in_terminal(monkeypatch)
    monkeypatch.setattr(told, "_SECONDS_OF_TERMINAL", 0.0)
    with counting(2, "running") as one_more:
        one_more()
        one_more()
    assert capsys.readouterr().err == f"{WIPE}0:00:00  running: 1 of 2{WIPE}0:00:00  running: 2 of 2{WIPE}"
