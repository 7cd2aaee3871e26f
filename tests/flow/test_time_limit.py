"""A kernel whose program is not made in time: an error that says what took it, never another program."""

from collections.abc import Callable
from pathlib import Path

import pytest

from makespan.host import stopwatch
from makespan.host.errors import OutOfTimeError
from makespan.kernels import ptx
from makespan.kernels.flow.grid import Launch
from tests.command import Runner
from tests.ptx.texts import SAMPLES, entry

SPIN = "mov.u32 i, %laneid; L: add.u32 i, i, 1; setp.lt.u32 p, i, 64; @p bra L; ld.global.u32 a, [b]; ret;"


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Callable[[int], None]:
    """Makes the time run out at the N-th look at the clock."""

    def stop(looks: int) -> None:
        ticks = iter([0.0] * looks)
        monkeypatch.setattr("makespan.host.stopwatch.monotonic", lambda: next(ticks, 1e9))

    return stop


def stages(clock: Callable[[int], None], text: str) -> dict[str, str]:
    """What is being done when the time runs out sooner or later, with the message."""
    found: dict[str, str] = {}
    for looks in range(1, 300):
        clock(looks)
        try:
            with stopwatch.within(60):
                ptx.program(ptx.parse(text, "k.ptx").kernel(), launch=Launch())
        except OutOfTimeError as error:
            found.setdefault(str(error).partition(" was up while ")[2].partition(",")[0], str(error))
        else:
            return found
    raise AssertionError("it never ended")


def test_every_stage_keeps_the_limit_and_names_its_remedy(clock: Callable[[int], None]) -> None:
    found = stages(clock, entry(SPIN))
    assert list(found) == [
        "reading the PTX",
        "executing k abstractly",
        "looking for uniform branches of k",
        "making the automaton of k",
    ]
    for message in found.values():
        assert message.startswith("the time limit of 60 s was up while ")
        assert message.endswith(", or raise the time limit")
    assert "lower the loop bounds (L at most 64 iterations)" in found["making the automaton of k"]


def test_without_a_limit_there_is_none(clock: Callable[[int], None]) -> None:
    clock(0)
    assert ptx.program(ptx.parse(entry(SPIN), "k.ptx").kernel()).end > 0


def test_what_reading_takes_is_not_there_for_the_proof(monkeypatch: pytest.MonkeyPatch) -> None:
    seconds = iter([100.0, 107.0])
    monkeypatch.setattr("makespan.host.stopwatch.monotonic", lambda: next(seconds))
    with stopwatch.within(60) as reading:
        pass
    assert reading.left == 53


def test_a_kernel_that_takes_the_whole_limit_is_still_bounded(capsys: pytest.CaptureFixture[str]) -> None:
    path = next(path for path in SAMPLES if path.stem == "divergent")
    done = Runner("solve", capsys)(path, "--warps", 4, "--capacity", "C=2,L=1", "--time-limit", "1e-9")
    assert done.code in (0, 3)
    assert "at most" in done.out


def test_a_short_limit_still_leaves_time_to_make_a_program(clock: Callable[[int], None]) -> None:
    clock(1)
    with pytest.raises(OutOfTimeError, match=r"^the time limit of 10 s was up"), stopwatch.within(0.001):
        stopwatch.check("waiting", "do not")


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("solve", ("--warps", 2)),
        ("simulate", ("--warps", 2)),
        ("compare", ("--warps", "1..2", "-o", "map.csv")),
        ("report", ("--warps", 2, "-o", "page.html")),
    ],
)
def test_commands_say_so_in_one_line(
    name: str,
    arguments: tuple[object, ...],
    clock: Callable[[int], None],
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    path = next(path for path in SAMPLES if path.stem == "divergent")
    clock(1)
    done = Runner(name, capsys)(path, *arguments)
    assert (done.code, done.out, list(tmp_path.iterdir())) == (2, "", [])
    assert done.err.startswith("makespan: the time limit of ")
    assert len(done.err.splitlines()) == 1
