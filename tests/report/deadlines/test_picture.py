"""The picture of the worst schedule found, as drawn."""

import re
from fractions import Fraction
from pathlib import Path
from xml.etree import ElementTree

from makespan.deadlines.evidence import ScheduleWindow
from makespan.deadlines.report.chart import ChartView, draw_window
from makespan.deadlines.simulation import JobPlan, Scenario, simulate
from makespan.deadlines.task import GpuPartition, ServerPolicy, TaskSet, one_kernel
from tests.report.deadlines.windows import many, pipeline

NANOSECOND = Fraction(1, 10**9)


def words(path: Path) -> str:
    return "".join(ElementTree.parse(path).getroot().itertext())


def test_what_a_picture_leaves_out_is_said(tmp_path: Path) -> None:
    draw_window(many(40, 10), NANOSECOND, tmp_path / "long.svg", title="t")
    said = words(tmp_path / "long.svg")
    assert "ns from the start of the window" in said
    assert "what is before 280 ns is left out; 16 more have no row (task)" in said


def test_a_picture_says_what_happens_and_names_from_outside_stay_text(tmp_path: Path) -> None:
    evil = "$x^$<script>"
    system = TaskSet((one_kernel(evil, 9, 10, 5, partition="gpu"),), (GpuPartition("gpu", ServerPolicy.FIFO),))
    run = simulate(Scenario(system, (JobPlan(evil, 0, 0, 0, (9,)),), (evil,), "alone"))
    for name in ("a.svg", "b.svg"):
        draw_window(ScheduleWindow(run, run.jobs[0], 0, 9), NANOSECOND, tmp_path / name, title="not schedulable")
    assert (tmp_path / "a.svg").read_bytes() == (tmp_path / "b.svg").read_bytes()
    assert not [node for node in ElementTree.parse(tmp_path / "a.svg").iter() if node.tag.endswith("script")]
    said = words(tmp_path / "a.svg")
    assert f"the latest job: {evil}#0 ends 4 ns after its deadline; one schedule, no bound" in said
    for text in ("not schedulable", "simulated: alone", evil, "partition gpu", "arrival", "deadline", "end after"):
        assert text in said
    for text in ("thread spins", "leads to", "other tasks"):
        assert text not in said


def test_the_legend_has_what_is_drawn(tmp_path: Path) -> None:
    draw_window(pipeline(), Fraction(1, 1000), tmp_path / "ms.svg", title="t", view=ChartView(("a1",), (1, 20)))
    said = words(tmp_path / "ms.svg")
    for text in ("ms from the start of the window", "thread spins", "leads to", "other tasks", "deadline later"):
        assert text in said
    assert "left out" not in said


def test_a_long_name_in_a_bar_keeps_both_ends(tmp_path: Path) -> None:
    names = [f"detector of lane {number} of the motorway in the north" for number in range(12)]
    system = TaskSet(
        tuple(one_kernel(name, 1, 9, 99, partition="gpu") for name in names), (GpuPartition("gpu", ServerPolicy.FIFO),)
    )
    jobs = tuple(JobPlan(name, 0, 0, 0, (1,)) for name in names)
    run = simulate(Scenario(system, jobs, tuple(names), "at once"))
    draw_window(
        ScheduleWindow(run, run.jobs[-1], 0, 12), NANOSECOND, tmp_path / "x.svg", title="t", view=ChartView(part=(0, 5))
    )
    assert re.search(r"detector of [a-z]+ \.\.\. [a-z ]*north#0", words(tmp_path / "x.svg"))
