"""Verdicts of analyses: a deadline is proven, refuted by a legal schedule, or neither."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from fractions import Fraction

from makespan.deadlines.task import TaskSet


def list_names(names: Sequence[str], most: int = 5) -> str:
    """Return the first few names, and how many more there are."""
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more


class DeadlineAnswer(StrEnum):
    """An answer to the question whether deadlines hold."""

    YES = "schedulable"
    """proven by an analysis for every legal schedule"""
    NO = "not schedulable"
    """refuted: utilisation above 1, or a legal schedule in which a job misses its deadline, both with times that
    kernels are shown to take or that the user gave"""
    UNKNOWN = "undecided"
    """the analysis gives no proof, and no miss was found"""


@dataclass(frozen=True, slots=True)
class Miss:
    """A job that a simulated legal schedule completes after its deadline, the evidence for a no; times in ticks.

    Args:
        scenario: A few words on how jobs arrive and how long they run in that schedule.
        supposes: The tasks whose jobs take times in it that are given, not shown to be attained.
    """

    task: str
    arrival: int
    completion: int
    scenario: str
    supposes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class TaskVerdict:
    """One task's worst-case response time, from arrival to completion, in ticks.

    Args:
        response: A proven upper bound; None where the analysis found none.
        parts: What the bound consists of, in order, for example ("jitter", 3), ("kernel with blocking", 12).
        is_exact: whether legal schedules of the model attain the bound, or come as close to it as one likes, if all
            bounds on times are attained.
        is_attained: Whether they do, because all kernels that count are shown to take the times that count.
        method: The theorem behind it.
        miss: Evidence against the deadline.
    """

    task: str
    response: int | None
    answer: DeadlineAnswer
    parts: tuple[tuple[str, int], ...]
    is_exact: bool
    method: str
    miss: Miss | None = None
    is_attained: bool = False


@dataclass(frozen=True, slots=True)
class ChainVerdict:
    """A chain's end-to-end latency in ticks: proven upper bounds; None where a task of it has none.

    Args:
        reaction: The time from a change of the input until the first output that reflects it.
        age: The time from reading an input until the last moment at which an output that reflects it is in use.
    """

    chain: str
    reaction: int | None
    age: int | None
    answer: DeadlineAnswer
    method: str


@dataclass(frozen=True, slots=True)
class ResourceLoad:
    """The part of the time for which a server or core is demanded, at most, as a ratio of whole numbers.

    Args:
        attained: The part of it that is demanded with times that segments are shown to take, or that are given.
        supposes: The tasks whose times in `attained` are given.
    """

    name: str
    numerator: int
    denominator: int
    attained: Fraction
    supposes: tuple[str, ...] = ()

    @property
    def is_overload(self) -> bool:
        """Return whether it may exceed the capacity; then nothing is proven."""
        return self.numerator > self.denominator

    @property
    def is_refuted(self) -> bool:
        """Return whether it exceeds the capacity; then no scheduler helps."""
        return self.attained > 1


@dataclass(frozen=True, slots=True)
class TaskSetVerdict:
    """The answer for a whole task set, with all that it rests on."""

    tasks_analysed: TaskSet
    loads: tuple[ResourceLoad, ...]
    tasks: tuple[TaskVerdict, ...]
    chains: tuple[ChainVerdict, ...]
    notes: tuple[str, ...] = ()

    @property
    def answer(self) -> DeadlineAnswer:
        """Return `YES` only if every deadline is proven, and `NO` as soon as one is refuted."""
        answers = {task.answer for task in self.tasks} | {chain.answer for chain in self.chains}
        if DeadlineAnswer.NO in answers or any(load.is_refuted for load in self.loads):
            return DeadlineAnswer.NO
        return DeadlineAnswer.UNKNOWN if DeadlineAnswer.UNKNOWN in answers else DeadlineAnswer.YES

    @property
    def supposes(self) -> tuple[str, ...]:
        """Return the tasks whose given times must be attained for the answer `NO` to be true."""
        grounds = [task.miss.supposes for task in self.tasks if task.miss is not None]
        grounds += [load.supposes for load in self.loads if load.is_refuted]
        return min(grounds, key=len, default=())  # any ground proves the no; take the one that supposes least

    def with_miss(self, miss: Miss) -> "TaskSetVerdict":
        """Return the same, with evidence against one task."""
        tasks = (
            replace(task, answer=DeadlineAnswer.NO, miss=miss) if task.task == miss.task else task
            for task in self.tasks
        )
        return replace(self, tasks=tuple(tasks))
