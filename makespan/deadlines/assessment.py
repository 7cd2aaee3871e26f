"""The assessment of a description: its answer with execution times, partitions, verdict and margins."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import partial

from makespan.deadlines.analysis import DEFAULT_LIMITS, analyse, is_proven, verdicts
from makespan.deadlines.assignment import EXACT, Heuristic, KernelAssignment, assign, assign_exactly
from makespan.deadlines.chains import predecessors
from makespan.deadlines.description import Description, KernelLaunch, Priorities, ServedEntry, task_set
from makespan.deadlines.exactness import sharpen_verdict
from makespan.deadlines.holistic import AnalysisLimits
from makespan.deadlines.priorities import find_priorities
from makespan.deadlines.sensitivity import FewestSms, Margin, execution_factor, shortest_period, slowest_clock
from makespan.deadlines.task import GpuTask, HostWait, SegmentKind, TaskSet
from makespan.deadlines.utilisation import server_load
from makespan.deadlines.verdict import DeadlineAnswer, ResourceLoad, TaskSetVerdict
from makespan.deadlines.wcet import Wcet, WcetGround
from makespan.host.errors import InputError, prefix_errors
from makespan.model.conditions import together
from makespan.model.units import shown_frequency, shown_time

QUICK = AnalysisLimits(one=100_000, total=500_000)
"""The limits of the analysis for one of the many questions about margins; what exceeds them counts as unproven."""

_proven = partial(analyse, evidence=False)
_quickly_proven = partial(analyse, limits=QUICK, evidence=False)  # for questions that are asked a hundred times
_is_quickly_proven = partial(is_proven, limits=QUICK)

ASSIGNMENTS = (*map(str, Heuristic), EXACT)


@dataclass(frozen=True)
class Assessment:
    """A system with all that is known of it.

    Args:
        task_set: The tasks in ticks, each on its partition where one was found.
        tick: The seconds of a tick.
        wcets: The times of copies and kernels, by the names of `Description.executions`.
        assignment: Where tasks without a partition went; None where all had one.
        verdict: The verdict; None where some task has no partition.
        margins: What breaks first; it is empty if not asked for.
        notes: The assumptions, each in a line.
        assumed_spin: The tasks whose threads spin while they wait, as nothing says that they block.
        priorities: What priorities mean in the file; here a larger one is always more urgent.
        gpu: The name of the GPU whose SMs the partitions are; None where no GPU is named.
        sms: The number of SMs of each partition.
        fewest: The fewest SMs that suffice; it is empty if not asked for.
        is_interrupted: Whether the user stopped before all was known.
    """

    where: str
    task_set: TaskSet
    tick: Fraction
    clock: Fraction | None
    wcets: Mapping[str, Wcet]
    assignment: KernelAssignment | None
    verdict: TaskSetVerdict | None
    margins: tuple[Margin, ...]
    notes: tuple[str, ...]
    priorities: Priorities | None = None
    gpu: str | None = None
    sms: Mapping[str, int] = field(default_factory=dict)
    fewest: tuple[FewestSms, ...] = ()
    is_interrupted: bool = False
    assumed_spin: tuple[str, ...] = ()

    @property
    def demand(self) -> ResourceLoad:
        """Return what all kernels together demand of all partitions."""
        partitions = len(self.task_set.partitions)
        return server_load("all partitions", self.task_set.tasks, partitions=max(1, partitions))

    @property
    def answer(self) -> DeadlineAnswer:
        """Return the answer; without an assignment `NO` if none can serve all tasks, else `UNKNOWN`."""
        if self.verdict is not None:
            return self.verdict.answer
        return DeadlineAnswer.NO if self.demand.is_refuted else DeadlineAnswer.UNKNOWN

    @property
    def supposes(self) -> tuple[str, ...]:
        """Return the tasks whose given times must be attained for the answer `NO` to be true."""
        if self.verdict is not None:
            return self.verdict.supposes
        return self.demand.supposes if self.demand.is_refuted else ()

    @property
    def caveats(self) -> tuple[str, ...]:
        """Return the conditions of all execution times, in the order of a verdict."""
        return together(wcet.assumptions for wcet in self.wcets.values())


def assessments(
    description: Description,
    wcets: Mapping[str, Wcet],
    *,
    assignment: str | None = None,
    exact: bool = False,
    with_margins: bool = False,
    seconds: float = 60.0,
    limits: AnalysisLimits = DEFAULT_LIMITS,
    progress: Callable[[str], None] = lambda _: None,
) -> Iterator[Assessment]:
    """Yield the assessment as it becomes known: bounds, then each late job that is found, then each margin.

    The last one is the whole answer. Kernels that have no partition are assigned first. A search for late schedules is
    part of the verdict and of the margin of all kernels together; the other margins and assignments ask only what is
    proven.

    Args:
        assignment: One of `ASSIGNMENTS`; it is needed where a task has no partition.
        exact: whether to walk through all schedules for the verdict, too, as far as there are few enough.
        seconds: The time for an exact assignment.
        limits: The limits of the verdict; margins have their own.

    Raises:
        InputError: a description that makes no task set, a task without a partition and no `assignment`.
    """
    system, tick = task_set(description, {name: wcet.time() for name, wcet in wcets.items()})
    with prefix_errors(description.where):
        is_searched = description.priorities is Priorities.AUDSLEY
        if is_searched and system.unassigned:  # who competes depends on the partitions
            raise InputError(
                f'task {system.unassigned[0].name} has no partition, and priorities = "audsley" needs to know it: give'
                " it one, or other priorities"
            )
        found = _assign_kernels(system, assignment, seconds)
        if found is not None and found.places is not None:
            system = system.assigned(found.places)
        searched: tuple[str, ...] = ()
        if is_searched:
            system, searched = find_priorities(system, limits, progress)
        known = Assessment(
            where=description.where,
            task_set=system,
            tick=tick,
            clock=description.clock,
            wcets=wcets,
            assignment=found,
            verdict=None,
            margins=(),
            notes=(*_notes(description, wcets, None), *searched),
            priorities=description.priorities,
            gpu=None if description.card is None else description.card.name,
            sms=description.sms,
            assumed_spin=tuple(entry.name for entry in description.tasks if entry.is_assumed_to_spin),
        )
        if known.task_set.unassigned:
            yield known
            return
        progress("analysing")
        walk = partial(sharpen_verdict, tick=tick, step=description.step, progress=progress) if exact else None
        for verdict in _verdicts(known.task_set, limits, progress, walk):
            known = replace(known, verdict=verdict, notes=(*_notes(description, wcets, verdict), *searched))
            yield known
        for margin in _margins(description, wcets, known.task_set, progress) if with_margins else ():
            known = replace(known, margins=(*known.margins, margin))
            yield known


def _verdicts(
    system: TaskSet,
    limits: AnalysisLimits,
    progress: Callable[[str], None],
    walk: Callable[[TaskSetVerdict], Iterator[TaskSetVerdict]] | None,
) -> Iterator[TaskSetVerdict]:
    verdict = None
    for verdict in verdicts(system, limits, progress):
        yield verdict
    if walk is not None and verdict is not None:
        yield from walk(verdict)


def _assign_kernels(system: TaskSet, kind: str | None, seconds: float) -> KernelAssignment | None:
    if not system.unassigned:
        if kind is not None:
            raise InputError("every task has a partition: leave out --assign, or the partition of some task")
        return None
    if kind is None:
        raise InputError(
            f"task {system.unassigned[0].name} has no partition: give it one, or --assign {'|'.join(ASSIGNMENTS)}"
        )
    if kind == EXACT:
        return assign_exactly(system, _proven, seconds=seconds)
    return assign(system, _proven, Heuristic(kind))


def _margins(
    description: Description, wcets: Mapping[str, Wcet], system: TaskSet, progress: Callable[[str], None]
) -> Iterator[Margin]:
    if any(task.of(SegmentKind.KERNEL) for task in system.tasks):
        progress("how much longer all kernels could take")
        yield execution_factor(system, analyse, is_proven)
    started = predecessors(system)
    for task in system.tasks:
        if task.of(SegmentKind.KERNEL):
            progress(f"how much longer the kernels of {task.name} could take")
            yield execution_factor(system, _quickly_proven, _is_quickly_proven, only=task.name)
        if task.name not in started:  # else its period is that of the task at the head
            progress(f"how often {task.name} could come")
            yield shortest_period(system, _quickly_proven, _is_quickly_proven, task.name)
    clock = description.clock
    if clock is not None and any(wcet.cycles is not None for wcet in wcets.values()):
        progress("how slow the clock could be")

        def at(hertz: Fraction) -> TaskSet:
            return _slower(description, wcets, system, clock / hertz)

        yield slowest_clock(at, clock, _quickly_proven, _is_quickly_proven)


def _slower(description: Description, wcets: Mapping[str, Wcet], system: TaskSet, slower: Fraction) -> TaskSet:
    """Return the system with its resources and priorities, at a clock that is slower by this factor."""
    times = {name: wcet.time(slower) for name, wcet in wcets.items()}
    changed, _ = task_set(description, times)
    return replace(changed, tasks=tuple(_with_partitions(task, system.by_name[task.name]) for task in changed.tasks))


def _with_partitions(task: GpuTask, known: GpuTask) -> GpuTask:
    places = zip(task.segments, known.segments, strict=True)
    segments = tuple(replace(segment, resource=there.resource) for segment, there in places)
    return replace(task, segments=segments, priority=known.priority)


def _notes(description: Description, wcets: Mapping[str, Wcet], verdict: TaskSetVerdict | None) -> Iterator[str]:
    yield "periods, jitter and CPU times are as the file says, and CPU times contain what the driver does on the core"
    yield "jobs arrive, and segments begin and end, at any instants: bounds hold in continuous time; no time is rounded"
    yield from _notes_on_partitions(description)
    if any(part.kind is SegmentKind.KERNEL for part in description.executions.values()):
        yield (
            "a kernel begins on idle SMs: of the one before no port is held any more, and what it left in caches is in"
            " the latencies"
        )
    yield from _notes_on_copies(description)
    yield from _notes_on_waiting(description)
    yield from _notes_on_launches(description)
    if description.clock is not None:
        by = "" if description.clock_by is None else f" ({description.clock_by})"
        yield (
            f"the SM clock never falls below {shown_frequency(description.clock)}{by}, and whatever it is no"
            " latency has more cycles"
        )
    if any(wcet.kind is WcetGround.GIVEN for wcet in wcets.values()):
        given = ", ".join(name for name, wcet in wcets.items() if wcet.kind is WcetGround.GIVEN)
        yield f"execution times that the user vouches for: {given}"
    if loose := [name for name, wcet in wcets.items() if wcet.at_least is not None and not wcet.is_exact]:
        yield f"bounded, not exact: a job of {', '.join(loose)} may never take as long as its execution time here"
    if len(description.partitions) > 1:
        yield (
            "partitions have no SM in common; what else kernels on different ones share, caches and memory, is in the"
            " latencies"
        )
    yield from _note_on_gpu(description)
    for entry in description.tasks:
        if entry.jitter >= entry.deadline:
            yield (
                f"the jitter of {entry.name}, {shown_time(entry.jitter)}, leaves nothing of its deadline of"
                f" {shown_time(entry.deadline)}: both count from the arrival; is one of them a mistake?"
            )
    yield from () if verdict is None else verdict.notes
    yield from _assumptions({name: wcet for name, wcet in wcets.items() if wcet.kind is WcetGround.PROVEN})


def _notes_on_partitions(description: Description) -> Iterator[str]:
    partitions = description.partitions
    if not partitions or any(entry.slices is None for entry in partitions):
        yield (
            "a partition serves one kernel at a time, to its end, and a core only these tasks: nothing else runs on"
            " them"
        )
    else:
        yield "partitions and cores serve only these tasks: nothing else runs on them"
    for entry in partitions:
        if entry.slices is not None:
            length, switch = shown_time(entry.slices.length), shown_time(entry.slices.switch)
            yield (
                f"contexts that have work take partition {entry.partition.name} in turn, each for {length} or until it"
                " has none left, and every process that uses the GPU, a desktop included, is among them; kernels of one"
                " context run in the order of their launches, one at a time, and go on in its next turn as if nothing"
                " had been: what caches lose meanwhile is in execution times"
            )
            yield (
                f"a switch of contexts on partition {entry.partition.name} takes at most {switch}, for which the user"
                f" vouches: {entry.slices.evidence}"
            )


def _notes_on_copies(description: Description) -> Iterator[str]:
    if any(part.kind is SegmentKind.COPY for part in description.executions.values()):
        yield (
            "a copy engine serves one copy at a time, to its end, and only these: copies of other processes, which the"
            " driver may put between, there are none, and host memory is page-locked"
        )
        yield "copies and kernels that run at the same time share memory: what that costs is in their times"


def _notes_on_waiting(description: Description) -> Iterator[str]:
    """Yield what threads do while their copies and kernels wait and run, and after them."""
    threads = [entry for entry in description.tasks if entry.core is not None and entry.executions]
    if blocked := [entry.name for entry in threads if entry.wait is HostWait.BLOCK]:
        yield (
            f"while a job of {', '.join(blocked)} waits for its copies and kernels, its core is free for others: the"
            " thread blocks in the driver (cudaDeviceScheduleBlockingSync), and does not spin, as it may by default"
        )
    if spinning := [entry.name for entry in threads if entry.wait is not HostWait.BLOCK]:
        yield (
            f"while a job of {', '.join(spinning)} waits for its copies and kernels, its thread spins on its core with"
            " its priority, and does not yield"
        )
    if open_ends := [entry.name for entry in threads if isinstance(entry.segments[-1], ServedEntry)]:
        yield (
            f"a job of {', '.join(open_ends)} is over when its last copy or kernel is: that its thread takes the result"
            " back on its core is no part of it; where it is, end the job with that CPU time"
        )


def _notes_on_launches(description: Description) -> Iterator[str]:
    launches = {name: part.launch for name, part in description.executions.items()}
    for launch in dict.fromkeys(launches.values()):
        names = ", ".join(name for name, other in launches.items() if other == launch)
        if launch is None:
            yield f"launches of {names} take no time but what is in CPU times and execution times"
        else:
            yield (
                f"launch delays of at most {shown_time(launch.seconds)} that the user vouches for, of {names}:"
                f" {launch.evidence}"
            )


def _note_on_gpu(description: Description) -> Iterator[str]:
    card = description.card
    if card is None:
        return
    yield f"the SMs of a partition are SMs of {card.name} that belong to it alone"
    parts = description.executions.values()
    sources = [part.source for part in parts if isinstance(part.source, KernelLaunch)]
    if any(latency.grows for source in sources for latency in source.question.latencies.values()):
        yield (
            f"where a latency grows with the number of active SMs, those of all other partitions and all others of"
            f" {card.name} count as active, whatever runs there; of its own a kernel has one at most for each block"
        )


def _assumptions(wcets: Mapping[str, Wcet]) -> Iterator[str]:
    """Yield the assumptions of all kernels once, the others with the names of their tasks."""
    for note in dict.fromkeys(note for wcet in wcets.values() for note in wcet.assumptions):
        tasks = [name for name, wcet in wcets.items() if note in wcet.assumptions]
        yield str(note) if len(tasks) == len(wcets) else f"{', '.join(tasks)}: {note}"
