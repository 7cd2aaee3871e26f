"""A script for pyCPA: partitions and copy engines become non-preemptive, CPU cores preemptive resources of priorities.

Each segment becomes a task that is linked to what it waits for, by an AND junction where that is several. A launch
delay, and the jitter of a task that data starts, become a task on a resource of their own. First in, first out is
static priority with equal priorities, because pyCPA lets equal ones interfere. Times are whole multiples of the
greatest common divisor of all, which keeps them small enough for its floating-point arithmetic. Responses without end,
which pyCPA would follow for ever, are given up.

Source: Diemer, Axer and Ernst, "Compositional Performance Analysis in Python with pyCPA", WATERS 2012, and its
documentation, version 3; junctions: Jersak, "Compositional Performance Analysis for Complex Embedded Applications",
TU Braunschweig 2005, Lemma 4.2.
"""

from collections.abc import Iterator
from fractions import Fraction
from math import gcd

from makespan.deadlines.export.common import ExportedTexts, timer_note
from makespan.deadlines.operations import Graph, TaskOperation, urgency
from makespan.deadlines.task import ChainStart, GpuPartition, GpuTask, SegmentKind, ServerPolicy, TaskSet
from makespan.host.errors import UnsupportedError
from makespan.model.units import shown_time

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
    """Return the script for pyCPA."""
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
    notes = tuple(_notes(graph))
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


def _notes(graph: Graph) -> Iterator[str]:
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
    yield from timer_note(graph.tasks)


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
