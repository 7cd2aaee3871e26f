"""The assignment of kernels to partitions: greedy heuristics, and an exact search that ends with a proof.

Both ask the analysis, so whatever they return has been proven schedulable. While a partition is asked about, every
task that has no place yet, or another one, runs its kernels alone on a partition of its own: that is the kindest place
there is, and its CPU time and copies still count. All kernels of a task that have no partition get the same one.

Exactness rests on one property of the analyses: no response-time bound shrinks when all that a family has on a
partition is added to it, where a family is the tasks that data of one head starts. So a set of tasks that fails on a
partition fails with every superset that adds whole families, and one clause excludes them all. A superset that adds a
task of a family that is there may hold: what takes data over on the same partition is not blocked.
"""

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from fractions import Fraction
from itertools import combinations, count, pairwise
from typing import TYPE_CHECKING, TypeAlias

from makespan.deadlines.chains import family_heads
from makespan.deadlines.task import ChainStart, GpuPartition, GpuTask, SegmentKind, ServerPolicy, Slices, TaskSet
from makespan.deadlines.utilisation import utilisation
from makespan.deadlines.verdict import DeadlineAnswer, TaskSetVerdict
from makespan.host.errors import InputError

if TYPE_CHECKING:
    from ortools.sat.python.cp_model import CpModel, IntVar

EXACT = "exact"
"""The assignment that finds one if the analysis accepts any; the others are heuristics."""

_GRAIN = 10**6
"""CP-SAT counts utilisation in millionths, rounded down: a necessary condition stays necessary."""


TaskSetAnalysis: TypeAlias = Callable[[TaskSet], TaskSetVerdict]
"""An analysis that says what is proven of a task set; `analyse` is one."""


class Heuristic(StrEnum):
    """Bin packing by decreasing utilisation; a bin is full when the analysis says no."""

    FIRST_FIT = "first-fit"
    """the first partition that holds"""
    BEST_FIT = "best-fit"
    """the one with the highest utilisation that holds"""
    WORST_FIT = "worst-fit"
    """the one with the lowest utilisation that holds"""


@dataclass(frozen=True, slots=True)
class KernelAssignment:
    """An assignment of the unassigned kernels to partitions.

    Args:
        places: The partition by task, for the tasks that had none; None where no assignment was found.
        method: A heuristic, or `EXACT`, with the heuristic in parentheses that found it first.
        is_proven: Whether the analysis refuses every assignment, where `places` is None.
        questions: How many sets of kernels the analysis was asked about.
    """

    places: Mapping[str, str] | None
    method: str
    is_proven: bool
    questions: int


class _FitOracle:
    """An oracle that asks the analysis whether kernels fit together on a partition, each question once."""

    def __init__(self, task_set: TaskSet, analysis: TaskSetAnalysis) -> None:
        self.task_set, self.analysis = task_set, analysis
        self.families = family_heads(task_set)
        self.known: dict[tuple[str, frozenset[str]], bool] = {}

    def holds(self, partition: str, names: Iterable[str]) -> bool:
        """Return whether the tasks that are there already and those named all meet their deadlines on the partition."""
        key = (partition, frozenset(names))
        if key not in self.known:  # each question costs a whole analysis
            verdict = self.analysis(_isolate(self.task_set, partition, key[1]))
            there = {task.name for task in self.task_set.on(partition)} | key[1]
            self.known[key] = all(task.answer is DeadlineAnswer.YES for task in verdict.tasks if task.task in there)
        return self.known[key]

    def agrees(self, places: Mapping[str, str]) -> bool:
        """Return whether the analysis proves the whole task set with these places, chains included."""
        return self.analysis(self.task_set.assigned(places)).answer is DeadlineAnswer.YES


def assign(task_set: TaskSet, analysis: TaskSetAnalysis, heuristic: Heuristic) -> KernelAssignment:
    """Return an assignment by a heuristic, largest utilisation first; it may miss one that exists.

    Raises:
        InputError: no kernel is unassigned.
    """
    _refuse_nothing(task_set)
    oracle = _FitOracle(task_set, analysis)
    places = _pack(task_set, oracle, heuristic)
    return KernelAssignment(places, heuristic, is_proven=False, questions=len(oracle.known))


def _pack(task_set: TaskSet, oracle: _FitOracle, heuristic: Heuristic) -> dict[str, str] | None:
    """Return the places that a heuristic finds, if the analysis proves the whole task set with them."""
    held: dict[str, list[str]] = {partition.name: [] for partition in task_set.partitions}
    load = {name: utilisation(task_set.tasks, name) for name in held}
    for task in sorted(task_set.unassigned, key=_free_utilisation, reverse=True):
        partition = next((p for p in _partition_order(load, heuristic) if oracle.holds(p, [*held[p], task.name])), None)
        if partition is None:
            return None
        held[partition].append(task.name)
        load[partition] += _free_utilisation(task)
    # chains across partitions count only here
    return _partition_of(held) if oracle.agrees(_partition_of(held)) else None


def assign_exactly(
    task_set: TaskSet, analysis: TaskSetAnalysis, *, seconds: float = 60.0, heuristics: Iterable[Heuristic] = Heuristic
) -> KernelAssignment:
    """Return an assignment, or a proof that the analysis refuses every one.

    Heuristics come first: they are quick, and whatever they find is as good. Then CP-SAT proposes assignments that
    respect utilisation and all that was learnt; the analysis checks each partition; a refused set of kernels is shrunk
    to one of which no kernel can be left out, and excluded wherever it fails.

    Args:
        seconds: The time for CP-SAT; heuristics end by themselves.
        heuristics: The heuristics to try first.

    Source: logic-based Benders decomposition, Hooker and Ottosson, Mathematical Programming 96, 2003.

    Raises:
        InputError: no kernel is unassigned.
    """
    _refuse_nothing(task_set)
    oracle = _FitOracle(task_set, analysis)
    for heuristic in heuristics:
        if (found := _pack(task_set, oracle, heuristic)) is not None:
            return KernelAssignment(found, f"{EXACT} ({heuristic})", is_proven=False, questions=len(oracle.known))
    master, until = _AssignmentModel(task_set), time.monotonic() + seconds
    for partition, names in _small_conflicts(oracle, task_set):
        if time.monotonic() >= until:
            break
        master.exclude(partition, names)
    while time.monotonic() < until:
        proposal = master.propose(until - time.monotonic())
        if proposal is None:
            break
        refused = [(p, names) for p, names in proposal.items() if not oracle.holds(p, names)]
        if not refused and oracle.agrees(_partition_of(proposal)):  # CP-SAT proposes, the analysis decides
            return KernelAssignment(_partition_of(proposal), EXACT, is_proven=False, questions=len(oracle.known))
        for partition, together in refused:
            master.exclude(partition, _minimal_conflict(oracle, partition, together))
        if not refused:  # every partition holds by itself: a chain across them does not
            master.exclude_all(proposal)
    return KernelAssignment(None, EXACT, is_proven=master.is_empty, questions=len(oracle.known))


class _AssignmentModel:
    """A CP-SAT model of the assignments that are left."""

    def __init__(self, task_set: TaskSet) -> None:
        from ortools.sat.python import cp_model

        self.task_set, self.is_empty, self.families = task_set, False, family_heads(task_set)
        self.model: CpModel = cp_model.CpModel()
        free, partitions = task_set.unassigned, task_set.partitions
        self.put: dict[tuple[str, str], IntVar] = {
            (task.name, p.name): self.model.new_bool_var(f"{task.name} on {p.name}")
            for task in free
            for p in partitions
        }
        for task in free:  # the kernels of a task run on one partition
            self.model.add_exactly_one(self.put[task.name, p.name] for p in partitions)
        for p in partitions:  # no partition is busy for more than all of the time
            fixed = _in_grains(utilisation(task_set.tasks, p.name))
            self.model.add(
                sum(_in_grains(_free_utilisation(t)) * self.put[t.name, p.name] for t in free) + fixed <= _GRAIN
            )
        self._break_symmetry()

    def _break_symmetry(self) -> None:
        """Open each of several equal empty partitions only after the one before it."""
        free = self.task_set.unassigned
        for kind in _equal_partitions(self.task_set):
            for before, p in pairwise(kind):
                for at, task in enumerate(free):
                    self.model.add(sum(self.put[t.name, before] for t in free[:at]) >= 1).only_enforce_if(
                        self.put[task.name, p]
                    )

    def exclude(self, partition: str, names: Iterable[str]) -> None:
        """Learn that these tasks do not fit there without others of their families, nor on a partition like it."""
        together = tuple(names)
        own = {self.families[name] for name in together}
        others = [t.name for t in self.task_set.unassigned if self.families[t.name] in own and t.name not in together]
        # what fails on one fails on all of them
        for p in next((kind for kind in _equal_partitions(self.task_set) if partition in kind), (partition,)):
            # with others of these families it may hold, so `more` lifts the limit
            more = sum(self.put[name, p] for name in others)
            self.model.add(sum(self.put[name, p] for name in together) <= len(together) - 1 + more)

    def exclude_all(self, proposal: Mapping[str, Iterable[str]]) -> None:
        """Learn that this assignment as a whole is refused."""
        chosen = [self.put[name, p] for p, names in proposal.items() for name in names]
        self.model.add(sum(chosen) <= len(chosen) - 1)

    def propose(self, seconds: float) -> dict[str, list[str]] | None:
        """Return an assignment that is left; None if there is none (`is_empty`) or time is up."""
        from ortools.sat.python import cp_model

        solver = cp_model.CpSolver()
        solver.parameters.max_time_in_seconds = seconds
        solver.parameters.num_workers = 1  # the same assignment in every run
        status = solver.solve(self.model)
        self.is_empty = status == cp_model.INFEASIBLE  # a proof, unlike time that is up
        if status not in (cp_model.OPTIMAL, cp_model.FEASIBLE):
            return None
        found: dict[str, list[str]] = {p.name: [] for p in self.task_set.partitions}
        for (task, partition), chosen in self.put.items():
            if solver.boolean_value(chosen):
                found[partition].append(task)
        return found


def _isolate(task_set: TaskSet, partition: str, names: frozenset[str]) -> TaskSet:
    """Return the named tasks on the partition, and every other unassigned one alone on a partition of its own.

    Chains by data stay as they are; the latency of chains of timers does not matter for deadlines of tasks.
    """
    rest = [task.name for task in task_set.unassigned if task.name not in names]
    taken = {p.name for p in task_set.partitions}
    own = dict(zip(rest, (name for number in count(1) if (name := f"alone {number}") not in taken), strict=False))
    several = replace(
        task_set,
        partitions=(*task_set.partitions, *(GpuPartition(name, ServerPolicy.FIFO) for name in own.values())),
        chains=tuple(chain for chain in task_set.chains if chain.activation is ChainStart.DATA),
    )
    return several.assigned(own | dict.fromkeys(names, partition))


def _small_conflicts(oracle: _FitOracle, task_set: TaskSet) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Yield single kernels and pairs that do not fit: cheap questions that exclude most assignments."""
    kinds = {kind[0] for kind in _equal_partitions(task_set)}  # one of each kind is enough
    kinds |= {p.name for p in task_set.partitions if task_set.on(p.name)}
    names = [task.name for task in task_set.unassigned]
    for partition in (p.name for p in task_set.partitions if p.name in kinds):
        single = {name for name in names if not oracle.holds(partition, [name])}
        yield from ((partition, (name,)) for name in names if name in single)
        for pair in combinations([name for name in names if name not in single], 2):
            if not oracle.holds(partition, pair):
                yield partition, pair


def _minimal_conflict(oracle: _FitOracle, partition: str, names: Sequence[str]) -> list[str]:
    """Return a subset that fails as well and from which no family can be left out."""
    core = list(names)
    for family in dict.fromkeys(oracle.families[name] for name in names):
        fewer = [other for other in core if oracle.families[other] != family]
        if not oracle.holds(partition, fewer):
            core = fewer  # the family is not needed for the conflict
    return core


def _equal_partitions(task_set: TaskSet) -> list[tuple[str, ...]]:
    """Return groups of partitions that no assignment can tell apart: same policy and slices, and empty so far."""
    kinds: dict[tuple[ServerPolicy, Slices | None], list[str]] = {}
    for p in task_set.partitions:
        if not task_set.on(p.name):
            kinds.setdefault((p.policy, p.slices), []).append(p.name)
    return [tuple(kind) for kind in kinds.values()]


def _partition_order(load: Mapping[str, Fraction], heuristic: Heuristic) -> list[str]:
    if heuristic is Heuristic.FIRST_FIT:
        return list(load)
    return sorted(load, key=lambda name: load[name], reverse=heuristic is Heuristic.BEST_FIT)


def _partition_of(held: Mapping[str, Iterable[str]]) -> dict[str, str]:
    return {name: partition for partition, names in held.items() for name in names}


def _free_utilisation(task: GpuTask) -> Fraction:
    return Fraction(sum(s.wcet for s in task.of(SegmentKind.KERNEL) if s.resource is None), task.period)


def _in_grains(demand: Fraction) -> int:
    """Return a demand in grains, at most one more than a partition has: CP-SAT counts in 64 bits."""
    return min(int(demand * _GRAIN), _GRAIN + 1)


def _refuse_nothing(task_set: TaskSet) -> None:
    if not task_set.unassigned:
        raise InputError("every kernel has a partition: there is nothing to assign")
