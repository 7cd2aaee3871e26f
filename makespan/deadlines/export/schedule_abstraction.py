"""Job sets for the schedule-abstraction graph: a CSV a partition or copy engine, all jobs of a hyperperiod.

Columns, in whole ticks: task, job, earliest and latest release, least and most cost, absolute deadline, priority (a
smaller number first). The least cost is 1 tick, because no lower bound on execution times is known. What data starts,
and each segment of a job after its first, is a job of its own, released with the first and held back by a second CSV
of precedence constraints.

Source: Nasri and Brandenburg, "An Exact and Sustainable Analysis of Non-Preemptive Scheduling", RTSS 2017; for
precedence Nasri, Nelissen and Brandenburg, ECRTS 2019; and the input formats of their implementation.
"""

import csv
from collections.abc import Iterable, Iterator, Sequence
from fractions import Fraction
from io import StringIO

from makespan.deadlines.export.common import ExportedTexts, hyperperiod, periodic_note, refuse_cpu, timer_note
from makespan.deadlines.operations import Graph, TaskOperation, urgency
from makespan.deadlines.task import ChainStart, ServerPolicy, TaskSet
from makespan.host.errors import UnsupportedError

HEADER = ("Task ID", "Job ID", "Arrival min", "Arrival max", "Cost min", "Cost max", "Deadline", "Priority")
PRECEDENCE_HEADER = ("Predecessor TID", "Predecessor JID", "Successor TID", "Successor JID")
_TOOL = "the schedule-abstraction graph"
_LARGEST = 2**63 - 1


def job_sets(task_set: TaskSet, tick: Fraction, stem: str) -> ExportedTexts:
    """Return a CSV for each server in use, and one for its precedence constraints, if any."""
    del tick  # times stay whole ticks
    refuse_cpu(task_set, _TOOL)
    graph = Graph(task_set)
    for operation in graph.operations:
        _refuse(graph, operation)
    files: dict[str, str] = {}
    used = [numbers for numbers in graph.at.values() if numbers]
    for number, here in enumerate(used, 1):
        rows, edges = _tables(graph, [graph.operations[one] for one in here])
        files[f"{stem}.{number}.csv"] = _text(HEADER, rows)
        if edges:
            files[f"{stem}.{number}.prec.csv"] = _text(PRECEDENCE_HEADER, edges)
    return ExportedTexts(files, tuple(_notes(graph)))


def _refuse(graph: Graph, operation: TaskOperation) -> None:
    name, resource = operation.task.name, operation.resource
    policy = graph.policies[resource]
    for source in (graph.operations[number] for number in operation.sources):
        if source.resource != resource:
            raise UnsupportedError(
                f"{_TOOL} takes each server by itself, and task {name} waits on {resource} for {source.task.name} on"
                f" {source.resource}: choose pycpa"
            )
    if operation.sources and operation.gap:
        raise UnsupportedError(
            f"{_TOOL} starts a job when those before it end, and {name} has a launch delay, or jitter after data, of"
            f" {operation.gap} ticks: choose pycpa"
        )
    moves = {
        ServerPolicy.FIXED_PRIORITY: False,
        ServerPolicy.EDF: name in graph.starts,
        ServerPolicy.EDF_RELEASE: name in graph.starts or operation.task.jitter > 0,
        ServerPolicy.FIFO: operation.gap > 0 or bool(operation.sources),
    }
    if moves[policy]:
        cause = "after data or another segment" if operation.sources else "with jitter or a launch delay"
        raise UnsupportedError(
            f"{_TOOL} gives each job a fixed priority, which task {name} has not {cause} by {policy} on {resource}:"
            " choose another tool"
        )


def _notes(graph: Graph) -> Iterator[str]:
    yield from periodic_note(graph.tasks, "one hyperperiod")
    yield "among equal priorities the task of the smaller number goes first; here any of them may"
    if any(operation.sources for operation in graph.operations):
        yield (
            "precedence constraints are in files of their own, for `nptest -m 1 -p`, which can call late what is in"
            " time; without -m 1 it takes jobs for ready that still wait, and can call in time what is late"
        )
    if graph.starts:
        yield (
            f"deadlines that count from the arrival of data are left out: {', '.join(graph.starts)}; those of chains"
            " stand at their last jobs, and else there is none (2^63 - 1)"
        )
    yield from timer_note(graph.tasks)


def _tables(graph: Graph, here: Sequence[TaskOperation]) -> tuple[list[tuple[int, ...]], list[tuple[int, ...]]]:
    """Return the rows of the jobs at a server and of precedence there, by task, job and segment."""
    served = {operation.task.name for operation in here}
    tasks = [task for task in graph.tasks.tasks if task.name in served]
    heads = {task.name: graph.tasks.by_name[graph.family[task.name]] for task in tasks}
    rows = [operation.task.period for operation in here for _ in (operation, *operation.sources)]
    until = max(head.offset or 0 for head in heads.values()) + hyperperiod(rows)
    names: dict[tuple[int, int], tuple[int, int]] = {}
    for number, task in enumerate(tasks, 1):
        for arrival in range(heads[task.name].offset or 0, until, task.period):
            for part in graph.of[task.name]:
                names[part, arrival] = number, len(names) + 1
    jobs: list[tuple[int, ...]] = []
    edges: list[tuple[int, ...]] = []
    for (part, arrival), name in names.items():
        operation = graph.operations[part]
        jobs.append((*name, *_job(graph, operation, arrival)))
        edges += [(*names[source, arrival], *name) for source in operation.sources]
    return jobs, edges


def _job(graph: Graph, operation: TaskOperation, arrival: int) -> tuple[int, ...]:
    task, policy = operation.task, graph.policies[operation.resource]
    deadline = arrival + task.deadline
    if task.name in graph.starts:
        deadline = min((arrival + time for time in _chain_deadlines(graph, task.name)), default=_LARGEST)
    priority = {ServerPolicy.FIXED_PRIORITY: -urgency(task), ServerPolicy.FIFO: arrival}.get(policy, deadline)
    if max(deadline, arrival + operation.gap + operation.wcet, abs(priority)) > _LARGEST:
        raise UnsupportedError(
            f"{_TOOL} counts in 64 bits, too few for task {task.name}: give times, or the clock, with fewer digits, or"
            " priorities nearer to 0"
        )
    return arrival, arrival + operation.gap, 1, operation.wcet, deadline, priority


def _chain_deadlines(graph: Graph, name: str) -> Iterator[int]:
    for chain in graph.tasks.chains:
        if chain.activation is ChainStart.DATA and (chain.tasks[0], chain.tasks[-1]) == (graph.family[name], name):
            yield from () if chain.deadline is None else (chain.deadline,)


def _text(header: tuple[str, ...], rows: Iterable[tuple[int, ...]]) -> str:
    text = StringIO()
    csv.writer(text, lineterminator="\n").writerows((header, *rows))
    return text.getvalue()
