"""The picture of the worst schedule found, as data and as drawn."""

from fractions import Fraction
from pathlib import Path
from xml.etree import ElementTree

from hypothesis import given
from hypothesis import strategies as st

from makespan.report.deadlines.picture import MOST_BARS, MOST_LANES, MOST_TASKS, Bar, Span, chart, draw_window
from makespan.schedulability.evidence import Window
from makespan.schedulability.simulation import Job, Scenario, simulate
from makespan.schedulability.task import Partition, Policy, Task, TaskSet

NANOSECOND = Fraction(1, 10**9)
TWO = TaskSet(
    (
        Task("a", 3, 10, 5, priority=2, partition="gpu"),
        Task("b", 4, 20, 20, priority=1, partition="gpu", core="cpu0", before=1, after=2),
    ),
    (Partition("gpu", Policy.FIXED_PRIORITY),),
)
RUN = simulate(
    Scenario(
        TWO,
        (Job("b", 0, 0, 0, 1, 4, 2), Job("a", 0, 2, 2, 0, 3, 0), Job("a", 1, 12, 12, 0, 3, 0)),
        ("a", "b"),
        "by hand",
    )
)
JOB = next(job for job in RUN.jobs if (job.task, job.number) == ("a", 0))
WINDOW = Window(RUN, JOB, 0, 15)


def test_a_chart_has_what_runs_and_when_it_must_end() -> None:
    shown = chart(WINDOW)
    assert (shown.resources, shown.tasks) == (("partition gpu", "core cpu0"), ("a", "b"))
    assert set(shown.bars) == {
        Bar(1, 0, 1, 1, "b 0"),
        Bar(0, 1, 5, 1, "b 0"),
        Bar(0, 5, 8, 0, "a 0"),
        Bar(1, 5, 7, 1, "b 0"),
        Bar(0, 12, 15, 0, "a 1"),
    }
    assert set(shown.spans) == {
        Span(0, 0, 2, 7, 8, is_late=True),
        Span(0, 0, 12, 17, 15, is_late=False),
        Span(1, 1, 0, 20, 7, is_late=False),
    }
    assert (shown.length, shown.left_out) == (15, (0, 0))


def many(tasks: int, jobs: int) -> Window:
    """So many tasks of so many jobs each, one after another."""
    system = TaskSet(
        tuple(Task(f"t{n}", 1, tasks, tasks, partition="gpu", priority=n) for n in range(tasks)),
        (Partition("gpu", Policy.FIXED_PRIORITY),),
    )
    released = [Job(f"t{n}", k, k * tasks + n, k * tasks + n, 0, 1, 0) for k in range(jobs) for n in range(tasks)]
    run = simulate(Scenario(system, tuple(released), tuple(system.by_name), "one after another"))
    return Window(run, run.jobs[-1], 0, tasks * jobs)


def test_of_a_long_window_the_end_is_shown_and_what_is_missing_is_said(tmp_path: Path) -> None:
    shown = chart(many(40, 10))
    assert len(shown.bars) == MOST_BARS
    assert len(shown.tasks) == MOST_TASKS
    assert "t39" in shown.tasks
    assert shown.left_out == (400 - MOST_BARS, 40 - MOST_TASKS)
    assert (max(bar.end for bar in shown.bars), shown.length) == (MOST_BARS, MOST_BARS + 39)
    assert min(bar.start for bar in shown.bars) == 0
    draw_window(many(40, 10), NANOSECOND, tmp_path / "long.svg", title="t")
    words = "".join(ElementTree.parse(tmp_path / "long.svg").getroot().itertext())
    assert "ns from the first bar shown, 280 ns after the start of the window; 16 tasks have no row" in words


@given(st.integers(1, 30), st.integers(1, 8))
def test_bars_of_a_chart_lie_within_it(tasks: int, jobs: int) -> None:
    shown = chart(many(tasks, jobs))
    assert all(0 <= bar.start < bar.end <= shown.length and bar.row < len(shown.resources) for bar in shown.bars)
    assert all(
        span.arrival < span.completion and span.completion > 0 and span.row < len(shown.tasks) for span in shown.spans
    )


def test_of_what_is_shown_nothing_is_missing() -> None:
    system = TaskSet(
        (Task("long", 1000, 2000, 2000, partition="one"), Task("short", 1, 4, 4, partition="two")),
        (Partition("one", Policy.FIFO), Partition("two", Policy.FIFO)),
    )
    jobs = [Job("long", 0, 0, 0, 0, 1000, 0), *(Job("short", n, 4 * n, 4 * n, 0, 1, 0) for n in range(250))]
    run = simulate(Scenario(system, tuple(jobs), ("long", "short"), "beside each other"))
    shown = chart(Window(run, run.jobs[-1], 0, 1000))
    assert len(shown.bars) == MOST_BARS
    left_out, _ = shown.left_out
    assert left_out == 4 * (250 - MOST_BARS) + 1
    assert [bar for bar in shown.bars if bar.row == 0] == [Bar(0, 0, 1000 - left_out, 0, "long 0")]
    assert sum(bar.row == 1 for bar in shown.bars) == MOST_BARS - 1
    (span,) = [span for span in shown.spans if span.row == 0]
    assert span.arrival == -left_out


def test_a_picture_says_what_happens_and_names_from_outside_stay_text(tmp_path: Path) -> None:
    evil = "$x^$<script>"
    system = TaskSet((Task(evil, 9, 10, 5, partition="gpu"),), (Partition("gpu", Policy.FIFO),))
    run = simulate(Scenario(system, (Job(evil, 0, 0, 0, 0, 9, 0),), (evil,), "alone"))
    for name in ("a.svg", "b.svg"):
        draw_window(Window(run, run.jobs[0], 0, 9), NANOSECOND, tmp_path / name, title="not schedulable")
    assert (tmp_path / "a.svg").read_bytes() == (tmp_path / "b.svg").read_bytes()
    root = ElementTree.parse(tmp_path / "a.svg").getroot()
    assert not [node for node in root.iter() if node.tag.endswith("script")]
    words = "".join(root.itertext())
    assert f"the latest job: {evil} 0 ends 4 ns after its deadline; one schedule, no bound" in words
    for text in ("not schedulable", "simulated: alone", evil, "partition gpu", "arrival", "deadline", "end after"):
        assert text in words


def test_a_wide_picture_has_the_unit_that_fits(tmp_path: Path) -> None:
    draw_window(WINDOW, Fraction(1, 1000), tmp_path / "ms.svg", title="t")
    assert "ms from the start of the window" in "".join(ElementTree.parse(tmp_path / "ms.svg").getroot().itertext())


def test_jobs_of_a_task_that_overlap_have_lanes_of_their_own() -> None:
    """Two at a time; who comes when one has ended takes its lane."""
    system = TaskSet((Task("a", 4, 2, 20, partition="gpu"),), (Partition("gpu", Policy.FIFO),))
    arrivals = (0, 2, 4, 10)
    run = simulate(Scenario(system, tuple(Job("a", n, t, t, 0, 4, 0) for n, t in enumerate(arrivals)), ("a",), "close"))
    spans = chart(Window(run, run.jobs[0], 0, 20)).spans
    assert [(span.arrival, span.completion, span.lane) for span in spans] == [
        (0, 4, 0), (2, 8, 1), (4, 12, 0), (10, 16, 1)
    ]  # fmt: skip
    assert {span.lanes for span in spans} == {2}


def test_of_many_jobs_that_overlap_the_rest_shares_the_last_lane() -> None:
    system = TaskSet((Task("a", 9, 1, 99, partition="gpu"),), (Partition("gpu", Policy.FIFO),))
    run = simulate(Scenario(system, tuple(Job("a", n, n, n, 0, 9, 0) for n in range(9)), ("a",), "close"))
    spans = chart(Window(run, run.jobs[0], 0, 99)).spans
    assert [span.lane for span in spans] == [0, 1, 2, *[MOST_LANES - 1] * 6]
