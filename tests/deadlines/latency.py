"""How long data takes through a chain in one simulated schedule; to be compared with what analyses prove.

A job of a task with a timer reads at its arrival what the task before it in the chain wrote last, and writes at its
end. Later reading could only make data younger. A job that is started by data reads what started it.
"""

from bisect import bisect_right
from collections.abc import Iterator
from itertools import pairwise
from typing import NamedTuple

from makespan.deadlines.simulation import CompletedJob, SimulatedRun
from makespan.deadlines.task import ChainStart, TaskChain


class Latency(NamedTuple):
    """The longest that occurs in a schedule, in ticks; None where too few jobs show any."""

    reaction: int | None
    age: int | None


def latency(run: SimulatedRun, chain: TaskChain) -> Latency:
    """The longest reaction and age of a chain, of which every task has a job in the schedule.

    By data, the reaction counts from the arrival of the head's job; with timers, from a change of the input just after
    a job has read it, until the first output that shows it. Age counts from reading an input until the next output.
    """
    heads = _jobs(run, chain.tasks[0])
    outputs = list(_outputs(run, chain))
    age = max((later.completion - heads[source].arrival for (source, _), (_, later) in pairwise(outputs)), default=None)
    if chain.activation is ChainStart.DATA:
        return Latency(max((end.completion - heads[source].arrival for source, end in outputs), default=None), age)
    reactions = (
        shown.completion - heads[missed].arrival
        for (before, _), (source, shown) in pairwise(outputs)
        for missed in range(before, source)
    )
    return Latency(max(reactions, default=None), age)


def _outputs(run: SimulatedRun, chain: TaskChain) -> Iterator[tuple[int, CompletedJob]]:
    """Jobs at the end of the chain, each with the number of the head's job whose input it shows."""
    sources: list[int | None] = list(range(len(_jobs(run, chain.tasks[0]))))
    for name, reader in pairwise(chain.tasks):
        writers, readers = _jobs(run, name), _jobs(run, reader)
        ends = [job.completion for job in writers]
        if chain.activation is ChainStart.DATA:
            last = list(range(len(readers)))
        else:
            last = [bisect_right(ends, job.arrival) - 1 for job in readers]
        sources = [sources[at] if at >= 0 else None for at in last]
    until = _until(run, chain)
    for source, job in zip(sources, _jobs(run, chain.tasks[-1]), strict=True):
        if source is not None and job.arrival < until:
            yield source, job


def _until(run: SimulatedRun, chain: TaskChain) -> int:
    """The first arrival of a task of the chain that the scenario leaves out: from then on data is too old."""
    tasks = run.scenario.task_set.by_name
    timers = [name for name in chain.tasks if name not in run.scenario.starts]
    return min(max(job.arrival for job in _jobs(run, name)) + tasks[name].period for name in timers)


def _jobs(run: SimulatedRun, name: str) -> list[CompletedJob]:
    """A task's jobs in the order of arrival, which is that of their ends."""
    return sorted((job for job in run.jobs if job.task == name), key=lambda job: job.number)
