"""What analyses say: proven, refuted by a legal schedule, or neither."""

from dataclasses import dataclass
from enum import StrEnum

from makespan.schedulability.task import TaskSet


class Answer(StrEnum):
    """Whether deadlines hold."""

    YES = "schedulable"
    """proven by an analysis for every legal schedule"""
    NO = "not schedulable"
    """refuted: utilisation above 1, or a legal schedule in which a job misses its deadline"""
    UNKNOWN = "undecided"
    """the analysis gives no proof, and no miss was found"""


@dataclass(frozen=True, slots=True)
class Miss:
    """Evidence for `Answer.NO`: a job that a simulated legal schedule completes after its deadline; times in ticks.

    Args:
        scenario: how jobs arrive and how long they run in that schedule, in a few words.
    """

    task: str
    arrival: int
    completion: int
    scenario: str


@dataclass(frozen=True, slots=True)
class TaskVerdict:
    """One task's worst-case response time, from arrival to completion, in ticks.

    Args:
        response: proven upper bound; None where the analysis found none.
        parts: what the bound consists of, in order, for example ("jitter", 3), ("kernel with blocking", 12).
        is_exact: whether the bound is attained by a legal schedule of the model if all bounds on times are.
        method: the theorem behind it.
        miss: evidence against it.
    """

    task: str
    response: int | None
    answer: Answer
    parts: tuple[tuple[str, int], ...]
    is_exact: bool
    method: str
    miss: Miss | None = None


@dataclass(frozen=True, slots=True)
class ChainVerdict:
    """A chain's end-to-end latency in ticks: proven upper bounds; None where a task of it has none.

    Args:
        reaction: from a change of the input until the first output that reflects it.
        age: from reading an input until the last moment at which an output that reflects it is in use.
    """

    chain: str
    reaction: int | None
    age: int | None
    answer: Answer
    method: str


@dataclass(frozen=True, slots=True)
class Load:
    """What fraction of the time a partition or core is demanded, as an exact ratio of whole numbers."""

    name: str
    numerator: int
    denominator: int

    @property
    def is_overload(self) -> bool:
        """Whether it is more than there is: then no scheduler helps."""
        return self.numerator > self.denominator


@dataclass(frozen=True, slots=True)
class Verdict:
    """The answer for a whole task set, with all that it rests on."""

    tasks_analysed: TaskSet
    loads: tuple[Load, ...]
    tasks: tuple[TaskVerdict, ...]
    chains: tuple[ChainVerdict, ...]
    notes: tuple[str, ...] = ()

    @property
    def answer(self) -> Answer:
        """`YES` only if every deadline is proven; `NO` as soon as one is refuted."""
        answers = {task.answer for task in self.tasks} | {chain.answer for chain in self.chains}
        if Answer.NO in answers or any(load.is_overload for load in self.loads):
            return Answer.NO
        return Answer.UNKNOWN if Answer.UNKNOWN in answers else Answer.YES
