"""The page about a task set, as plain data and as text: the answer, what it rests on, and a section for each task."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

from makespan.deadlines.assessment import Assessment
from makespan.deadlines.chains import predecessors
from makespan.deadlines.evidence import ScheduleWindow
from makespan.deadlines.report import text
from makespan.deadlines.report.chart import ALL, ChartView, latest_line, window_chart
from makespan.deadlines.report.document import document
from makespan.deadlines.report.text import percent
from makespan.deadlines.task import GpuTask, JobSegment, SegmentKind, ServerPolicy, TaskSet
from makespan.deadlines.verdict import DeadlineAnswer, TaskVerdict
from makespan.deadlines.wcet import Wcet
from makespan.host.errors import InputError
from makespan.model.units import shown_time, time_at_most
from makespan.report.html.data import PageInput, input_data
from makespan.report.html.page import render_template
from makespan.report.lines import make_visible
from makespan.verify import digest

SCHEMA = "makespan.schedulability-page/1"
MOST_SEGMENTS = 5000
"""The most segments of all tasks together; a larger page helps no reader."""
MOST_PICTURES = 12
_MOST_NAMES = 12
_LOOKS = {DeadlineAnswer.YES: "yes", DeadlineAnswer.NO: "no", DeadlineAnswer.UNKNOWN: "open"}


@dataclass(frozen=True, slots=True)
class PageContents:
    """Everything that a page shows besides an assessment.

    Args:
        windows: The worst schedule that a search has found for a task, where one was made.
        without: The reason why there is none, for some others.
        view: The part of them to draw.
        inputs: Everything that was read.
    """

    windows: Mapping[str, ScheduleWindow]
    without: Mapping[str, str] = field(default_factory=dict)
    view: ChartView = ALL
    inputs: tuple[PageInput, ...] = ()


def check_size(task_set: TaskSet) -> None:
    """Refuse a page that is too large for a browser.

    Raises:
        InputError: too many segments.
    """
    count = sum(len(task.segments) for task in task_set.tasks)
    if count > MOST_SEGMENTS:
        raise InputError(
            f"a page has room for {MOST_SEGMENTS} segments, and these tasks have {count}: use --format json"
        )


def deadlines_page(assessment: Assessment, found: PageContents) -> str:
    """Return the HTML of an assessment, with its pictures; equal arguments give equal text."""
    charts = {name: window_chart(window, assessment.tick, view=found.view) for name, window in found.windows.items()}
    return render_template("page.html.j2", deadlines_page_data(assessment, found), __package__, charts=charts)


def deadlines_page_data(assessment: Assessment, found: PageContents) -> dict[str, Any]:
    """Return all but the pictures, with the SHA-256 of its canonical JSON; text from outside is made visible."""
    check_size(assessment.task_set)
    verdict, tick = assessment.verdict, assessment.tick
    about = {} if verdict is None else {task.task: task for task in verdict.tasks}
    anchors = {task.name: f"task-{number}" for number, task in enumerate(assessment.task_set.tasks)}
    worst = min(found.windows, key=lambda name: found.windows[name].job.slack, default=None)
    content: dict[str, Any] = {
        "schema": SCHEMA,
        "name": make_visible(assessment.where),
        "answer": _LOOKS[assessment.answer],
        "verdict": make_visible(text.verdict(assessment)),
        "subject": make_visible(text.subject(assessment)),
        "tick": shown_time(tick),
        "worst": worst,
        "header": [f"{name[0].upper()}{name[1:]}" for name in text.HEADER],
        "numbers": text.NUMBERS,
        "tasks": [_task(assessment, task, about.get(task.name), anchors, found) for task in assessment.task_set.tasks],
        "loads": [_load(load) for load in ((assessment.demand,) if verdict is None else verdict.loads)],
        "sections": {
            title: list(map(make_visible, lines)) for title, lines in text.further(assessment).items() if lines
        },
        "assumptions": list(map(make_visible, assessment.notes)),
        "pictures": len(found.windows),
        "result": document(assessment),
        "inputs": list(map(input_data, found.inputs)),
    }
    return {**content, "sha256": digest(content)}


def _load(load: Any) -> dict[str, Any]:
    share = min(Fraction(1), Fraction(load.numerator, load.denominator))
    return {"name": make_visible(load.name), "share": round(float(share), 4), "words": percent(load)}


def _task(
    assessment: Assessment, task: GpuTask, about: TaskVerdict | None, anchors: Mapping[str, str], found: PageContents
) -> dict[str, Any]:
    tick = assessment.tick
    window = found.windows.get(task.name)
    response = None if about is None else about.response
    return {
        "name": make_visible(task.name),
        "key": task.name,
        "anchor": anchors[task.name],
        "cells": list(map(make_visible, text.row(task, assessment, about))),
        "answer": "none" if about is None else _LOOKS[about.answer],
        "facts": list(_facts(task, tick)),
        "segments": [_segment(segment, wcet, task, tick) for segment, wcet in text.executions(task, assessment.wcets)],
        "response": None if response is None else time_at_most(response * tick),
        "quality": None if about is None or response is None else text.quality(about),
        "parts": [] if about is None else [(name, time_at_most(ticks * tick)) for name, ticks in about.parts],
        "method": None if about is None else about.method,
        "waits": list(_waits(task, assessment, anchors)),
        "miss": [make_visible(line) for line in text.misses(assessment, task.name)],
        "found": None if window is None else _schedule_facts(window, assessment, response),
        "without": make_visible(found.without.get(task.name, "")),
        "missing": None if window is None else window_chart(window, tick, view=found.view).caption,
    }


def _facts(task: GpuTask, tick: Fraction) -> Iterator[tuple[str, str]]:
    yield "period", shown_time(task.period * tick)
    yield "deadline", shown_time(task.deadline * tick)
    if task.jitter:
        yield "jitter", shown_time(task.jitter * tick)
    if task.offset is not None:
        yield "offset", shown_time(task.offset * tick)
    if task.priority is not None:
        yield "priority (larger is more urgent)", str(task.priority)
    if task.context is not None:
        yield "context", make_visible(task.context)
    if task.core is not None:
        yield "core", make_visible(task.core)
    if task.wait is not None and len(task.of(SegmentKind.COPY, SegmentKind.KERNEL)):
        yield "while it waits its thread", "spins" if task.spins else "blocks"


def _segment(segment: JobSegment, wcet: Wcet | None, task: GpuTask, tick: Fraction) -> dict[str, Any]:
    resource = task.core if segment.kind is SegmentKind.CPU else segment.resource
    return {
        "kind": str(segment.kind),
        "place": make_visible(resource or "-"),
        "time": time_at_most(segment.wcet * tick),
        "delay": time_at_most(segment.delay * tick) if segment.delay else "",
        "by": "given" if wcet is None else str(wcet.kind),
        "evidence": "as the file says" if wcet is None else make_visible(wcet.evidence),
    }


def _waits(task: GpuTask, assessment: Assessment, anchors: Mapping[str, str]) -> Iterator[dict[str, Any]]:
    """Yield the tasks whose data start a job, and the tasks that it meets on each resource."""
    task_set = assessment.task_set

    def listed(tasks: Sequence[str]) -> dict[str, Any]:
        names = [(make_visible(name), anchors[name]) for name in tasks[:_MOST_NAMES]]
        return {"names": names, "more": max(0, len(tasks) - _MOST_NAMES)}

    if sources := predecessors(task_set).get(task.name):
        yield {"where": "data", "what": "its jobs begin when these have ended", **listed(sources)}
    for server in task_set.servers:
        if task.on(server.name):
            others = [other for other in task_set.on(server.name) if other is not task]
            where = f"{make_visible(server.name)} ({text.order(server, assessment.tick)})"
            for what, tasks in _by_rank(task, others, server.policy):
                yield {"where": where, "what": what, **listed(tasks)}
    if task.core is not None:
        ahead = [o.name for o in task_set.cores[task.core] if o is not task and _rank(o) >= _rank(task)]
        if ahead:
            yield {"where": make_visible(task.core), "what": "preempted by CPU time and spinning of", **listed(ahead)}


def _by_rank(task: GpuTask, others: Sequence[GpuTask], policy: ServerPolicy) -> Iterator[tuple[str, list[str]]]:
    if policy is not ServerPolicy.FIXED_PRIORITY:
        groups = {"takes turns with": [other.name for other in others]}
    else:
        groups = {
            "lets go before it": [other.name for other in others if _rank(other) >= _rank(task)],
            "waits for one that has begun, of": [other.name for other in others if _rank(other) < _rank(task)],
        }
    yield from ((what, names) for what, names in groups.items() if names)


def _rank(task: GpuTask) -> int:
    return task.priority or 0


def _schedule_facts(window: ScheduleWindow, assessment: Assessment, response: int | None) -> dict[str, Any]:
    job, tick = window.job, assessment.tick
    gap = None if response is None else response - assessment.task_set.up(job.response)  # bounds are rounded up, too
    return {
        "line": make_visible(latest_line(job, tick)),
        "response": shown_time(job.response * tick),
        "gap": None
        if gap is None
        else "attains the bound"
        if gap == 0
        else f"{shown_time(gap * tick)} below the bound",
        "words": make_visible(window.run.scenario.words),
    }
