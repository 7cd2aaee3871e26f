"""Priorities under which an analysis proves every deadline, found from the least urgent task upwards.

Where each task is a single copy or kernel on a server with fixed priorities, and no data starts it, its bound depends
on which tasks are more urgent, not on their order, and never grows when it becomes more urgent itself: then the search
finds an order whenever there is one. Elsewhere bounds depend on the responses of others, which their order changes: the
search is a heuristic there, and whatever it finds is proven by the whole analysis.

Source: Audsley, Optimal priority assignment and feasibility of static priority tasks with arbitrary start times,
    University of York, YCS 164, 1991; Davis and Burns, Real-Time Systems 47, 2011, for the conditions. Proof:
    docs/schedulability_theory.md, theorem 11.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from makespan.deadlines.analysis import DEFAULT_LIMITS, is_proven
from makespan.deadlines.arrivals import OutOfStepsError, StepBudget, Stream
from makespan.deadlines.chains import independent_parts
from makespan.deadlines.holistic import AnalysisLimits, responses
from makespan.deadlines.response import AnalysedOperation, kernel_bounds
from makespan.deadlines.task import ChainStart, GpuTask, ServerPolicy, TaskChain, TaskSet
from makespan.deadlines.verdict import list_names

MOST_QUESTIONS = 500
"""How often a heuristic search asks the analysis."""

_SHOWN = 20


class PriorityOrder(NamedTuple):
    """A task set with priorities for all tasks that compete by them, and notes on the search.

    Where no order was found, they go by deadlines less jitter and launches.
    """

    task_set: TaskSet
    notes: tuple[str, ...]


def find_priorities(
    task_set: TaskSet, limits: AnalysisLimits = DEFAULT_LIMITS, progress: Callable[[str], None] = lambda _: None
) -> PriorityOrder:
    """Return priorities for the tasks on cores and on servers with fixed priorities; old ones do not count.

    Args:
        limits: The limits of each question to the analysis.
        progress: It is called with how many tasks of a part have their priority, each time that one gets it.

    Raises:
        InputError: a kernel without a partition, or chains by data that contradict themselves.

    >>> from makespan.deadlines.task import GpuPartition, one_kernel
    >>> rows = ("a", 3, 7, 12), ("b", 1, 17, 21), ("c", 6, 12, 15)
    >>> tasks = (one_kernel(*row, priority=0, partition="SM0") for row in rows)
    >>> find_priorities(TaskSet(tuple(tasks), (GpuPartition("SM0", ServerPolicy.FIXED_PRIORITY),))).notes
    ("priorities by Audsley's search, the most urgent first: a, b, c",)
    """
    ranks: dict[str, int] = {}
    notes: list[str] = []
    for tasks in independent_parts(task_set):
        part = _PriorityGroup(task_set, tasks, limits)
        order = part.order(progress)
        if part.ranked:  # priorities decide nothing in the other parts
            ranks |= _ranks(part.ranked if order is None else order)
            notes.append(part.note(order))
    return PriorityOrder(_with_priorities(task_set, ranks), tuple(notes))


class _PriorityGroup:
    """A group of tasks that share nothing with others.

    `ranked` are those that compete by priorities, in the order of deadlines less jitter and launches.
    """

    def __init__(self, task_set: TaskSet, tasks: Sequence[GpuTask], limits: AnalysisLimits) -> None:
        names = {task.name for task in tasks}
        self.limits, self.left, self.is_stopped = limits, MOST_QUESTIONS, False
        chains = tuple(chain for chain in task_set.chains if names.issuperset(chain.tasks))
        self.task_set = replace(task_set, tasks=tuple(tasks), chains=chains)
        places = {server.name for server in task_set.servers if server.policy is ServerPolicy.FIXED_PRIORITY}
        self.ranked = sorted(
            (t for t in tasks if t.core is not None or any(s.resource in places for s in t.segments)),
            key=lambda task: task.deadline - task.jitter - sum(segment.delay for segment in task.segments),
        )
        of_chains = {name for chain in task_set.chains if _binds(chain) for name in chain.tasks}
        self.is_plain = (
            all(len(task.segments) == 1 for task in tasks)
            and {task.segments[0].resource for task in tasks} <= places
            and len({task.segments[0].resource for task in tasks}) == 1
            and not names & of_chains  # else more than the own deadlines is asked for, and theorem 11 does not hold
        )

    def order(self, progress: Callable[[str], None]) -> list[GpuTask] | None:
        """Return the tasks, the most urgent first; None where no order was found."""
        holds = self._fits if self.is_plain else self._is_in_time  # theorem 11, or a heuristic
        above, below = list(self.ranked), list[GpuTask]()
        if not self.is_plain and self._is_proven(above):  # the order by deadlines often holds
            return above
        while above:
            progress(f"searching for priorities: {len(below)} of {len(self.ranked)} tasks have theirs")
            # any that fits here will do: theorem 11
            found = next((task for task in reversed(above) if holds(task, above, below)), None)
            if found is None:
                return None
            above.remove(found)
            below.insert(0, found)
        self.is_stopped = not self._is_proven(below)  # whatever was found is proven by the whole analysis
        return None if self.is_stopped else below

    def _is_proven(self, order: Sequence[GpuTask]) -> bool:
        return is_proven(_with_priorities(self.task_set, _ranks(order)), self.limits)

    def _is_in_time(self, task: GpuTask, above: Sequence[GpuTask], below: Sequence[GpuTask]) -> bool:
        """Return whether the whole analysis bounds the task in time, with those above as they stand."""
        if not self.left:
            return False
        self.left -= 1  # a limit by questions, not by seconds
        order = (*(other for other in above if other is not task), task, *below)
        found = responses(_with_priorities(self.task_set, _ranks(order)), self.limits).of[task.name]
        return found is not None and found.total <= task.deadline

    def _fits(self, task: GpuTask, above: Sequence[GpuTask], below: Sequence[GpuTask]) -> bool:
        """Return whether theorem 1 bounds the task in time; it counts who is above, not in which order."""
        own = AnalysedOperation.alone(_stream(task, 1))
        # only above or below counts, no order among them
        rivals = [_stream(other, 2) for other in above if other is not task] + [_stream(other, 0) for other in below]
        try:
            found = kernel_bounds(
                own, rivals, ServerPolicy.FIXED_PRIORITY, (own.stream.delay,), StepBudget(self.limits.one)
            )
        except OutOfStepsError:  # then "every order is too late" must not be said
            self.is_stopped = True
            return False
        return found is not None and found[0].response <= task.deadline

    def note(self, order: Sequence[GpuTask] | None) -> str:
        names = list_names([task.name for task in order or self.ranked], _SHOWN)
        if order is not None:
            return f"priorities by Audsley's search, the most urgent first: {names}"
        if self.is_plain and not self.is_stopped:
            return f"by this analysis every order of priorities is too late, not only the one by deadlines: {names}"
        if self.is_plain:
            return f"the search for priorities stopped at its limit, and they go by deadlines: {names}"
        return f"no priorities were found, by a heuristic, so that others may hold; they go by deadlines: {names}"


def _binds(chain: TaskChain) -> bool:
    """Return whether more is asked of its tasks than their own deadlines."""
    return chain.activation is ChainStart.DATA or chain.deadline is not None


def _stream(task: GpuTask, priority: int) -> Stream:
    only = task.segments[0]
    return Stream(only.wcet, task.period, task.jitter, only.delay, priority=priority)


def _ranks(order: Sequence[GpuTask]) -> dict[str, int]:
    return {task.name: len(order) - at for at, task in enumerate(order)}


def _with_priorities(task_set: TaskSet, ranks: Mapping[str, int]) -> TaskSet:
    return replace(task_set, tasks=tuple(replace(t, priority=ranks.get(t.name, t.priority)) for t in task_set.tasks))
