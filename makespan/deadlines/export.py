"""Task sets for other tools, as texts; what changes who runs when and cannot be expressed is refused, never left out.

What a tool takes differently is said in the notes, which stand in the texts too where their format has comments.

for name, text in export(task_set, Format.SIMSO, tick=units.PICOSECOND, stem="tasks").files.items(): ...
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction
from math import gcd
from xml.etree import ElementTree

from makespan.deadlines.chains import predecessors
from makespan.deadlines.operations import Graph, TaskOperation, urgency
from makespan.deadlines.scenarios import hyperperiod
from makespan.deadlines.task import ChainStart, GpuPartition, GpuTask, SegmentKind, ServerPolicy, TaskSet
from makespan.host.errors import InputError, UnsupportedError
from makespan.model.units import shown_time


class Format(StrEnum):
    """A tool that reads what `export` writes."""

    SIMSO = "simso"
    """XML of the simulator SimSo, and the module of its scheduler (Chéramy, Hladik and Déplanche, WATERS 2014)"""
    PYCPA = "pycpa"
    """Python script for compositional performance analysis (Diemer, Axer and Ernst, WATERS 2012)"""


@dataclass(frozen=True, slots=True)
class ExportedTexts:
    """Texts by file name, and notes on where they are another system than the task set."""

    files: Mapping[str, str]
    notes: tuple[str, ...]


def _refuse_unknown_here(task_set: TaskSet) -> None:
    """Refuse what no tool here knows: tasks without a partition, and contexts that take a partition in turn.

    Raises:
        InputError: naming the tasks, or the first partition.
    """
    if missing := [task.name for task in task_set.unassigned]:
        raise InputError(f"no partition runs {', '.join(missing)}: assign them before the export")
    for partition in task_set.partitions:
        if partition.slices is not None and task_set.on(partition.name):
            raise UnsupportedError(
                f"partition {partition.name} is time-sliced, and no tool here knows contexts that take turns:"
                " leave its tasks out"
            )


def _timer_note(task_set: TaskSet) -> Iterator[str]:
    """Yield a note on chains of timers, whose latencies no other tool here computes."""
    if timed := [chain.name for chain in task_set.chains if chain.activation is ChainStart.PERIODIC]:
        yield f"chains of timers are left out, which change no schedule: {', '.join(timed)}"


def export(task_set: TaskSet, kind: Format, *, tick: Fraction, stem: str) -> ExportedTexts:
    """Return texts by file name, each name beginning with `stem`, with notes on what differs from the task set.

    Args:
        tick: The length of a tick in seconds.

    Raises:
        InputError: the tool cannot express the task set; the message says what.
    """
    _refuse_unknown_here(task_set)
    return (simso_simulation if kind is Format.SIMSO else pycpa_script)(task_set, tick, stem)


# pyCPA

_POLICIES = (ServerPolicy.FIXED_PRIORITY, ServerPolicy.FIFO)
_LARGEST = 2**50
_PATIENCE = 10
"""A response of this many times the longest time in the task set is taken as endless."""

_HEAD = '''"""Worst-case response times by pyCPA; one unit of time is {unit}.
{notes}"""

from pycpa import analysis, junctions, model, options, schedulers

options.init_pycpa()
options.set_opt("max_wcrt", min(options.get_opt("max_wcrt"), {most}))
system = model.System()
first = schedulers.prio_high_wins_equal_fifo
'''

_TAIL = """
results = analysis.analyze_system(system)
for task in sorted(results, key=str):
    print(task.name, results[task].wcrt)
ends = {}
for name, deadline, delay, parts, sources in jobs:
    response = delay + sum(results[part].wcrt for part in parts)
    ends[name] = max((ends[source] for source in sources), default=0) + response
    print(f"{name}: response {response}, deadline {deadline}, end {ends[name]}")
"""


def pycpa_script(task_set: TaskSet, tick: Fraction, stem: str) -> ExportedTexts:
    """Return a script: partitions and copy engines become non-preemptive, CPU cores preemptive resources of priorities.

    Each segment becomes a task that is linked to what it waits for, by an AND junction where that is several. A launch
    delay, and the jitter of a task that data starts, become a task on a resource of their own. First in, first out is
    static priority with equal priorities, because pyCPA lets equal ones interfere. Times are whole multiples of the
    greatest common divisor of all, which keeps them small enough for its floating-point arithmetic. Responses without
    end, which pyCPA would follow for ever, are given up.

    Source: Diemer, Axer and Ernst, "Compositional Performance Analysis in Python with pyCPA", WATERS 2012, and its
        documentation, version 3; junctions: Jersak, "Compositional Performance Analysis for Complex Embedded
        Applications", TU Braunschweig 2005, Lemma 4.2.
    """
    _refuse_policies(task_set)
    _refuse_spinning(task_set)
    graph = Graph(task_set)
    times = [time for operation in graph.operations for time in (operation.wcet, operation.gap)]
    unit = gcd(*times, *(time for task in task_set.tasks for time in (task.period, task.deadline)))
    most = _PATIENCE * max(*times, *(task.period + task.deadline for task in task_set.tasks)) // unit
    if most > _LARGEST:
        raise UnsupportedError(
            "pyCPA computes in floating point, too coarse for these times: give them, or the clock, with fewer digits"
        )
    notes = tuple(_pycpa_notes(graph))
    told = "".join(f"\n{_plain(note)}\n" for note in notes)
    head = _HEAD.format(unit=shown_time(unit * tick), notes=told, most=most)
    return ExportedTexts({f"{stem}.py": head + "\n".join(_body(graph, unit)) + "\n" + _TAIL}, notes)


def _plain(note: str) -> str:
    """Return a note with names of any characters, for a docstring."""
    return note.replace("\\", "/").replace('"', "'")


def _refuse_policies(task_set: TaskSet) -> None:
    for server in task_set.servers:
        if server.policy not in _POLICIES and (served := task_set.on(server.name)):
            what = "partition" if isinstance(server, GpuPartition) else "copy engine"
            raise UnsupportedError(
                f"pyCPA can express {' and '.join(_POLICIES)}, and {what} {server.name}, which serves {served[0].name},"
                f" has {server.policy}: choose simso"
            )


def _refuse_spinning(task_set: TaskSet) -> None:
    for task in task_set.tasks:
        for other in task_set.cores[task.core] if task.core is not None and _waits_busily(task) else ():
            if other is not task and other.cpu and urgency(other) <= urgency(task):
                raise UnsupportedError(
                    f"pyCPA knows no thread that keeps its core while it waits: {task.name} spins on core {task.core},"
                    f" and {other.name} there is not more urgent; let {task.name} block, or give it a core of its own"
                )


def _waits_busily(task: GpuTask) -> bool:
    return task.spins and bool(task.of(SegmentKind.COPY, SegmentKind.KERNEL))


def _pycpa_notes(graph: Graph) -> Iterator[str]:
    tasks = graph.tasks.tasks
    if any(task.offset is not None for task in tasks):
        yield "offsets are left out: the bounds hold for every phase"
    if any(graph.at[resource] and policy is ServerPolicy.FIFO for resource, policy in graph.policies.items()):
        yield "fifo became equal priorities, which all go before each other: bounds can be larger than for fifo"
    if any(operation.gap and operation.sources for operation in graph.operations):
        yield "launch delays, and jitter where data starts a task, pass one by one in each task: bounds can be larger"
    if busy := [task.name for task in tasks if task.cpu and _waits_busily(task)]:
        yield (
            f"threads that spin are taken as threads that block: {', '.join(busy)}; the bounds hold if their printed"
            " ends are no later than their periods, so that they keep their cores from nobody"
        )
    if timed := [c.name for c in graph.tasks.chains if c.activation is ChainStart.DATA and c.deadline is not None]:
        yield f"deadlines of chains are left out: {', '.join(timed)}; printed ends count from the arrival at the head"
    yield from _timer_note(graph.tasks)


def _body(graph: Graph, unit: int) -> Iterator[str]:
    resource_of = {resource: f"resource_{number}" for number, (resource, here) in enumerate(graph.at.items()) if here}
    for resource, name in resource_of.items():
        kind, cycle = ("SPNP", ", cycle_time=1") if graph.is_server(resource) else ("SPP", "")
        yield f"{name} = {_resource(resource, f'schedulers.{kind}Scheduler(priority_cmp=first{cycle})')}"
    for operation in graph.operations:
        rank = 0 if graph.policies.get(operation.resource) is ServerPolicy.FIFO else urgency(operation.task)
        kind = operation.task.segments[operation.index].kind
        part = _part(resource_of[operation.resource], operation, kind, operation.wcet // unit, rank)
        yield f"{_name(operation)} = {part}"
        yield from _entry(graph, operation, unit)
    yield "jobs = ["
    yield from (_job(graph, task, unit) for task in map(graph.tasks.by_name.__getitem__, graph.of))
    yield "]"


def _entry(graph: Graph, operation: TaskOperation, unit: int) -> Iterator[str]:
    name, gap = _name(operation), operation.gap // unit
    if not operation.sources:
        yield f"{name}.in_event_model = model.PJdEventModel(P={operation.task.period // unit}, J={gap})"
        return
    if gap:
        delay, own = f"delay_{operation.number}", _resource(f"delay of {name}", "schedulers.SPPScheduler()")
        yield f"{delay} = {_part(own, operation, 'delay', gap, 0)}"
        yield f"{delay}.link_dependent_task({name})"
        name = delay
    if len(operation.sources) > 1:
        junction = f"junction_{operation.number}"
        made = f"model.Junction(name={junction!r}, strategy=junctions.ANDJoin())"
        yield f"{junction} = system.bind_junction({made})"
        yield f"{junction}.link_dependent_task({name})"
        name = junction
    yield from (f"{_name(graph.operations[source])}.link_dependent_task({name})" for source in operation.sources)


def _name(operation: TaskOperation) -> str:
    return f"task_{operation.number}"


def _resource(resource: str, scheduler: str) -> str:
    return f"system.bind_resource(model.Resource({resource!r}, {scheduler}))"


def _part(resource: str, operation: TaskOperation, kind: str, time: int, rank: int) -> str:
    name = f"{operation.task.name} {operation.index + 1} {kind}"
    return f"{resource}.bind_task(model.Task({name!r}, wcet={time}, bcet=0, scheduling_parameter={rank}))"


def _job(graph: Graph, task: GpuTask, unit: int) -> str:
    """Return its line in the list of jobs: name, deadline, delay before its parts, parts, and sources."""
    own = [graph.operations[number] for number in graph.of[task.name]]
    delay = 0 if own[0].sources else own[0].gap // unit
    delays = (f"delay_{part.number}" for part in own if part.gap and part.sources)
    parts = ", ".join((*map(_name, own), *delays))
    sources = list(graph.starts.get(task.name, ()))
    return f"    ({task.name!r}, {task.deadline // unit}, {delay}, [{parts}], {sources!r}),"


# SimSo

MOST_JOBS = 100_000
CYCLES_PER_MS = 10**9
"""SimSo counts in picoseconds then, exactly up to a few hours."""

_SCHEDULER = '''"""Partitions that run one job at a time to its end, for SimSo."""

from simso.core import Scheduler

POLICIES = {policies}


class {name}(Scheduler):
    """Each task stays on the processor that its field `partition` numbers; a running job is never preempted."""

    def init(self):
        self.waiting = []

    def on_activate(self, job):
        job.task.cpu = self.processors[job.task.data["partition"]]
        self.waiting.append(job)
        job.cpu.resched()

    def on_terminated(self, job):
        job.cpu.resched()

    def schedule(self, cpu):
        if cpu.running is not None and cpu.running.is_active():
            return None
        partition = self.processors.index(cpu)
        here = [job for job in self.waiting if job.task.data["partition"] == partition]
        if not here:
            return None
        job = min(here, key=lambda job: self.urgency(job, POLICIES[partition]))
        self.waiting.remove(job)
        return (job, cpu)

    def urgency(self, job, policy):
        if policy == "fixed-priority":
            return (-job.task.data["priority"], job.activation_date)
        return (job.activation_date if policy == "fifo" else job.absolute_deadline, job.activation_date)
'''


def simso_simulation(task_set: TaskSet, tick: Fraction, stem: str) -> ExportedTexts:
    """Return an XML file, and the scheduler that it names as a Python module beside it.

    SimSo comes without a non-preemptive scheduler for partitions, so one is written with the tasks; a copy engine is
    one more processor. What data starts follows the task that starts it. Its times are floating-point milliseconds.

    Source: Chéramy, Hladik and Déplanche, "SimSo: A Simulation Tool to Evaluate Real-Time Multiprocessor Scheduling
        Algorithms", WATERS 2014, and the reader of its configuration files, version 0.8.5.
    """
    for task in task_set.tasks:
        if task.cpu:
            raise UnsupportedError(
                f"SimSo knows no tasks that wait for the GPU, and {task.name} has CPU time: choose pycpa"
            )
        if len(task.segments) > 1:
            raise UnsupportedError(
                f"SimSo knows no jobs of several segments, and {task.name} has {len(task.segments)}: choose pycpa"
            )
        if task.jitter or task.segments[0].delay:
            what = "release jitter" if task.jitter else "launch delay"
            raise UnsupportedError(f"SimSo knows no {what}, and {task.name} has some: choose pycpa")
    followers = _followers(task_set)
    name = re.sub(r"\W", "_", f"{stem}_scheduler") if not stem[:1].isdigit() else "scheduler"
    policies = json.dumps([server.policy for server in task_set.servers])
    notes = tuple(_simso_notes(task_set))
    files = {
        f"{stem}.xml": _document(task_set, followers, tick, f"{name}.py", notes),
        f"{name}.py": _SCHEDULER.format(name=name, policies=policies),
    }
    return ExportedTexts(files, notes)


def _simso_notes(task_set: TaskSet) -> Iterator[str]:
    if any(task.offset is None for task in task_set.tasks):
        yield (
            "every task is strictly periodic, from its offset or from 0, for two hyperperiods; here jobs of tasks"
            " without an offset may come later, at any phase: what is in time there may be late here"
        )
    yield "every kernel takes its upper bound, which may never happen; equals go in the order of their arrival"
    yield from _timer_note(task_set)


def _followers(task_set: TaskSet) -> dict[str, str]:
    found: dict[str, str] = {}
    for follower, sources in predecessors(task_set).items():
        if len(sources) > 1:
            raise UnsupportedError(f"SimSo knows no task that waits for several, and {follower} does: choose pycpa")
        if other := found.get(sources[0]):
            raise UnsupportedError(
                f"SimSo starts one task at the end of another, and {sources[0]} starts {other} and {follower}: choose"
                " pycpa"
            )
        found[sources[0]] = follower
    return found


def _document(
    task_set: TaskSet, followers: Mapping[str, str], tick: Fraction, scheduler: str, notes: Sequence[str]
) -> str:
    length = hyperperiod(task_set)
    jobs = sum(length // task.period for task in task_set.tasks)
    if jobs > MOST_JOBS:
        raise UnsupportedError(
            f"{jobs} jobs fall into a hyperperiod, more than {MOST_JOBS}: choose periods that divide"
        )
    until = max(task.offset or 0 for task in task_set.tasks) + 2 * length
    root = ElementTree.Element(
        "simulation",
        duration=str(int(until * tick * 1000 * CYCLES_PER_MS)),
        cycles_per_ms=str(CYCLES_PER_MS),
        etm="wcet",
    )
    for note in notes:
        root.append(ElementTree.Comment(f" {re.sub('-(?=-|$)', '- ', note)} "))
    ElementTree.SubElement(
        root, "sched", className=scheduler, overhead="0", overhead_activate="0", overhead_terminate="0"
    )
    ElementTree.SubElement(root, "caches", memory_access_time="100")
    _processors(root, task_set)
    _tasks(root, task_set, followers, tick)
    ElementTree.indent(root)
    return ElementTree.tostring(root, encoding="unicode", xml_declaration=True) + "\n"


def _processors(root: ElementTree.Element, task_set: TaskSet) -> None:
    processors = ElementTree.SubElement(root, "processors")
    for number, server in enumerate(task_set.servers):
        ElementTree.SubElement(processors, "processor", id=str(number), name=server.name)


def _tasks(root: ElementTree.Element, task_set: TaskSet, followers: Mapping[str, str], tick: Fraction) -> None:
    tasks = ElementTree.SubElement(root, "tasks")
    for name in ("priority", "partition"):
        ElementTree.SubElement(tasks, "field", name=name, type="int")
    places = [server.name for server in task_set.servers]
    numbers = {name: str(number) for number, name in enumerate(task_set.by_name, 1)}

    def ms(ticks: int) -> str:
        return repr(float(ticks * tick * 1000))

    for task in task_set.tasks:
        (kernel,) = task.segments
        follower = followers.get(task.name)
        ElementTree.SubElement(
            tasks,
            "task",
            {} if follower is None else {"followed_by": numbers[follower]},
            id=numbers[task.name],
            name=task.name,
            task_type="APeriodic" if task.name in followers.values() else "Periodic",
            abort_on_miss="no",
            period=ms(task.period),
            activationDate=ms(task.offset or 0),
            WCET=ms(kernel.wcet),
            ACET=ms(kernel.wcet),
            et_stddev="0",
            deadline=ms(task.deadline),
            instructions="0",
            mix="0.5",
            base_cpi="1.0",
            priority=str(task.priority or 0),
            partition=str(places.index(kernel.resource or "")),
        )
