"""The answer whether deadlines hold, as text for a terminal: bounds are rounded up, and slack is rounded down."""

from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from itertools import groupby

from makespan.deadlines.assessment import Assessment
from makespan.deadlines.sensitivity import FewestSms, Margin, TriedSizes
from makespan.deadlines.task import GpuPartition, GpuTask, JobSegment, SegmentKind, SegmentServer
from makespan.deadlines.verdict import ChainVerdict, DeadlineAnswer, ResourceLoad, TaskVerdict, list_names
from makespan.deadlines.wcet import Wcet, WcetGround, wcet_key
from makespan.model.assumptions import quote_name
from makespan.model.units import shown_frequency, shown_time, time_at_least, time_at_most
from makespan.model.wording import count_words, scope_words
from makespan.report.lines import WIDTH, align_columns, wrap_line


def percent(load: ResourceLoad) -> str:
    """Return how much of the time is demanded, at most; never 100.0 % for more than that.

    >>> from fractions import Fraction
    >>> percent(ResourceLoad("gpu", 1, 3, Fraction(1, 3))), percent(ResourceLoad("gpu", 1000001, 1000000, Fraction(1)))
    ('33.4 %', '100.1 % at most, and no more is shown than there is')
    """
    thousandths = -(-1000 * load.numerator // load.denominator)
    share = f"{thousandths // 10}.{thousandths % 10} %"
    if load.is_refuted:
        return f"{share}, more than there is"
    return f"{share} at most, and no more is shown than there is" if load.is_overload else share


def fewest_line(fewest: FewestSms) -> str:
    """Return how many SMs do, and what is not proven with fewer."""
    found = fewest.found
    if fewest.partition is None:
        return _together(fewest)
    fewer = fewest.tried if found is None else fewest.tried[:-1]
    tried = "; ".join(
        f"{_ends(numbers)}: no proof for {list_names(names)}" for numbers, names in _alike(fewer, fewest.partition)
    )
    if found is None:
        return f"{fewest.partition}: no number of SMs up to {fewest.most} is proven to do ({tried or 'none is left'})"
    times = ", ".join(f"{name} {time_at_most(seconds)}" for name, seconds in found.seconds.items())
    first = f"{fewest.partition}: {found.sms[fewest.partition]} of up to {fewest.most} are proven to do ({times})"
    return f"{first}, and no fewer ({tried})" if tried else first


def _together(fewest: FewestSms) -> str:
    if not fewest.tried:
        return f"together: these are more than the {fewest.most} SMs of the GPU"
    (tried,) = fewest.tried
    count = sum(tried.sms.values())
    split = ", ".join(f"{name} {sms}" for name, sms in tried.sms.items())
    proven = f"no proof for {list_names(tried.unproven)}" if tried.unproven else "every deadline is proven"
    return f"together: {count} of {fewest.most} SMs, {split}: {proven}"


def _alike(tried: Sequence[TriedSizes], partition: str) -> Iterator[tuple[range, tuple[str, ...]]]:
    """Yield neighbouring numbers of SMs with which the same is not proven."""
    for names, group in groupby(tried, key=lambda one: one.unproven):
        several = tuple(group)
        yield range(several[0].sms[partition], several[-1].sms[partition] + 1), names


def _ends(numbers: range) -> str:
    return str(numbers[0]) if len(numbers) == 1 else f"{numbers[0]}..{numbers[-1]}"


def margin_line(margin: Margin, tick: Fraction) -> str:
    """Return one line: how far a quantity may go, and who is not in time beyond."""
    if margin.holds is None:
        return f"{margin.quantity}: not proven at any value that was looked at"
    way = "up" if margin.quantity.startswith("execution") else "down"
    reach = f"{margin.quantity}: proven {way} to {_value(margin.quantity, margin.holds, tick)}"
    if margin.fails is None:
        return f"{reach}, where the search ended"
    ground = "evidence against" if margin.refuted else "no proof for"
    condition = ", if execution times are attained" if margin.refuted and margin.supposes else ""
    return f"{reach}; beyond it {ground} {list_names(margin.breaks)}{condition}"


def _value(quantity: str, value: Fraction, tick: Fraction) -> str:
    """Return what is proven, rounded to the safe side."""
    if quantity == "clock":
        return shown_frequency(value)
    if quantity.startswith("period"):
        return time_at_most(value * tick)
    return f"{float(value):.3f} times"


_UNKNOWN = "-"
_KINDS = ("chain ", "core ", "partition ")
HEADER = ("task", "runs on", "WCET", "by", "period", "deadline", "response", "slack", "verdict")
NUMBERS = (2, 4, 5, 6, 7)
"""Which of its columns are numbers."""


def verdict(assessment: Assessment) -> str:
    """Return one line: the answer, on what conditions, and why."""
    return f"{assessment.answer}{scope_words(_conditions(assessment))}: {_why(assessment)}"


def _conditions(assessment: Assessment) -> Iterator[str]:
    """Yield the caveats, with the names of the tasks where they are not those of all kernels that are proven."""
    proven = {key: wcet for key, wcet in assessment.wcets.items() if wcet.kind is WcetGround.PROVEN}
    for caveat in assessment.caveats:
        some = [key for key, wcet in proven.items() if caveat in wcet.caveats]
        yield caveat if len(some) == len(proven) else f"{caveat} ({_quote_names(_owners(assessment, some))})"
    if assessment.assumed_spin:
        yield f"with threads that spin, as nothing says that they block ({_quote_names(assessment.assumed_spin)})"
    if assessment.supposes:
        yield "if execution times are attained"


def _owners(assessment: Assessment, keys: Sequence[str]) -> list[str]:
    return [task.name for task in assessment.task_set.tasks if any(key in keys for key, _ in _timed_segments(task))]


def _timed_segments(task: GpuTask) -> Iterator[tuple[str, JobSegment]]:
    for index, segment in enumerate(task.segments):
        if segment.kind is not SegmentKind.CPU:
            yield wcet_key(task, index), segment


def executions(task: GpuTask, wcets: Mapping[str, Wcet]) -> list[tuple[JobSegment, Wcet | None]]:
    """Return the segments of a task, each with its execution time; CPU time is given with the task and has none."""
    return [
        (segment, None if segment.kind is SegmentKind.CPU else wcets[wcet_key(task, index)])
        for index, segment in enumerate(task.segments)
    ]


def report(assessment: Assessment, *, width: int = WIDTH) -> str:
    """Return the whole report: the answer, the table, what explains it, and what all of it rests on.

    Args:
        width: The columns of text; the table has the width that it needs.
    """
    lines = [*wrap_line(verdict(assessment), width), *wrap_line(subject(assessment), width)]
    lines += ["", *align_columns(list(_rows(assessment)), right=NUMBERS)]
    sections = {
        "misses": misses(assessment),
        "responses": _parts(assessment),
        "segments": _segments(assessment),
        "load": _loads(assessment),
        **further(assessment),
        "execution times": execution_times(_wcets_by_name(assessment)),
        "assumptions": [f"- {note}" for note in assessment.notes],
    }
    for title, content in sections.items():
        if content:
            lines += ["", f"{title}:", *(text for line in content for text in wrap_line(f"  {line}", width))]
    return "\n".join(lines)


def further(assessment: Assessment) -> dict[str, list[str]]:
    """Return lines under titles on the whole system, none under a title where nothing is to be said."""
    return {
        "chains": _chains(assessment),
        "what breaks first": [margin_line(margin, assessment.tick) for margin in assessment.margins],
        "fewest SMs": [fewest_line(each) for each in assessment.fewest],
    }


def subject(assessment: Assessment) -> str:
    """Return one line: how many tasks run where."""
    tasks = count_words(len(assessment.task_set.tasks), "task")
    engines = assessment.task_set.engines
    clock = "" if assessment.clock is None else f", SM clock {shown_frequency(assessment.clock)}"
    several = assessment.gpu is not None
    sms = {
        name: f", {count_words(count, 'SM')}" if several or count > 1 else "" for name, count in assessment.sms.items()
    }
    tick = assessment.tick
    partitions = [f"{p.name} ({order(p, tick)}{sms.get(p.name, '')})" for p in assessment.task_set.partitions]
    of = "" if assessment.gpu is None else f" of {assessment.gpu}"
    places = [f"{count_words(len(partitions), 'partition')}{of}, {list_names(partitions)}"] if partitions else []
    if engines:
        named = list_names([f"{engine.name} ({engine.policy})" for engine in engines])
        places.append(f"{count_words(len(engines), 'copy engine')}, {named}")
    cores = list(assessment.task_set.cores)
    if cores and (engines or not partitions):
        places.append(f"{count_words(len(cores), 'core')}, {list_names(cores)}")
    return f"{assessment.where}: {tasks} on {'; '.join(places)}{clock}"


def order(server: SegmentServer, tick: Fraction) -> str:
    """Return how a partition or copy engine chooses among what waits for it."""
    slices = server.slices if isinstance(server, GpuPartition) else None
    if slices is None:
        return str(server.policy)
    switch = f", switched in {time_at_most(slices.switch * tick)}" if slices.switch else ""
    return f"time-sliced, {time_at_most(slices.length * tick)} each{switch}"


def _rows(assessment: Assessment) -> Iterator[tuple[str, ...]]:
    yield HEADER
    found = {} if assessment.verdict is None else {task.task: task for task in assessment.verdict.tasks}
    for task in assessment.task_set.tasks:
        yield row(task, assessment, found.get(task.name))


def row(task: GpuTask, assessment: Assessment, about: TaskVerdict | None) -> tuple[str, ...]:
    """Return the row of a task in the table, below `HEADER`."""
    tick, response = assessment.tick, None if about is None else about.response
    seconds = task.cpu * tick + sum(assessment.wcets[key].seconds for key, _ in _timed_segments(task))
    return (
        task.name,
        resources_text(task),
        time_at_most(seconds),
        _voucher(task, assessment.wcets),
        shown_time(task.period * tick),
        shown_time(task.deadline * tick),
        _UNKNOWN if response is None else time_at_most(response * tick),
        _UNKNOWN if response is None else time_at_least((task.deadline - response) * tick),
        _UNKNOWN if about is None else str(about.answer),
    )


def resources_text(task: GpuTask) -> str:
    """Return all that its jobs run on, and whether its thread keeps the core busy meanwhile."""
    core = [] if task.core is None else [f"{task.core} (spin)" if task.spins else task.core]
    return ", ".join(
        dict.fromkeys((*core, *(s.resource or _UNKNOWN for s in task.of(SegmentKind.COPY, SegmentKind.KERNEL))))
    )


def _voucher(task: GpuTask, wcets: Mapping[str, Wcet]) -> str:
    """Return who answers for the times of a task."""
    kinds = {wcets[key].kind for key, _ in _timed_segments(task)} | ({WcetGround.GIVEN} if task.cpu else set())
    return str(*kinds) if len(kinds) == 1 else "partly proven"


def _segments(assessment: Assessment) -> list[str]:
    return [
        f"{task.name}: {segments_line(task, assessment.tick)}"
        for task in assessment.task_set.tasks
        if len(task.segments) > 1 or task.segments[0].delay
    ]


def segments_line(task: GpuTask, tick: Fraction) -> str:
    """Return its segments with their places and times, such as `cpu0 1 ms, SM0 3 ms (launched within 10 us)`."""
    return ", ".join(
        f"{(task.core if segment.kind is SegmentKind.CPU else segment.resource) or _UNKNOWN}"
        f" {time_at_most(segment.wcet * tick)}"
        + (f" (launched within {time_at_most(segment.delay * tick)})" if segment.delay else "")
        for segment in task.segments
    )


def _parts(assessment: Assessment) -> list[str]:
    tasks = () if assessment.verdict is None else assessment.verdict.tasks
    lines = [f"{task.task}: {_sum(task, assessment.tick)}" for task in tasks]
    methods = dict.fromkeys(task.method for task in tasks if task.response is not None)
    return lines + [f"by {method}: {', '.join(t.task for t in tasks if t.method == method)}" for method in methods]


def _sum(task: TaskVerdict, tick: Fraction) -> str:
    if task.response is None:
        return task.method
    parts = " + ".join(f"{name} {time_at_most(ticks * tick)}" for name, ticks in task.parts) or time_at_most(
        task.response * tick
    )
    return f"{parts}, {said}" if (said := quality(task)) else parts


def quality(task: TaskVerdict) -> str:
    """Return whether the bound is attained; nothing where it is not known."""
    if task.is_attained:
        return "attained"
    return "attained if execution times are" if task.is_exact else ""


def misses(assessment: Assessment, name: str | None = None) -> list[str]:
    """Return the evidence against deadlines, of all tasks or of one."""
    found = () if assessment.verdict is None else assessment.verdict.tasks
    tasks = [task for task in found if name in (None, task.task)]
    due = {task.name: task.deadline for task in assessment.task_set.tasks}
    return [
        f"{miss.task}: the job that arrives at {shown_time(miss.arrival * assessment.tick)} ends"
        f" {shown_time((miss.completion - miss.arrival - due[miss.task]) * assessment.tick)} too late:"
        f" {miss.scenario}" + (f"; if these take so long: {list_names(miss.supposes)}" if miss.supposes else "")
        for miss in (task.miss for task in tasks)
        if miss is not None
    ]


def _wcets_by_name(assessment: Assessment) -> dict[str, Wcet]:
    """Return the execution times by task, or by task, segment and resource where a task has several."""
    found = {}
    for task in assessment.task_set.tasks:
        for key, segment in _timed_segments(task):
            name = key if key == task.name else f"{task.name}, {segment.kind} on {segment.resource or _UNKNOWN} ({key})"
            found[name] = assessment.wcets[key]
    return found


def execution_times(wcets: Mapping[str, Wcet]) -> list[str]:
    """Return a line for each: who answers for it, and its evidence."""
    return [f"{name}, {wcet.kind}: {_cycles(wcet)}{wcet.evidence}" for name, wcet in wcets.items()]


def _cycles(wcet: Wcet) -> str:
    """Return the cycles that were given; the evidence of what is proven says its own."""
    return f"{wcet.cycles} cycles, " if wcet.kind is WcetGround.GIVEN and wcet.cycles is not None else ""


def _loads(assessment: Assessment) -> list[str]:
    loads = (assessment.demand,) if assessment.verdict is None else assessment.verdict.loads
    return [f"{load.name}: {percent(load)}" for load in loads]


def _chains(assessment: Assessment) -> list[str]:
    chains = () if assessment.verdict is None else assessment.verdict.chains
    limits = {chain.name: chain.deadline for chain in assessment.task_set.chains}
    return [_chain(chain, limits[chain.chain], assessment.tick) for chain in chains]


def _chain(chain: ChainVerdict, deadline: int | None, tick: Fraction) -> str:
    shown = {"reaction": chain.reaction, "age": chain.age}
    times = ", ".join(f"{name} {_UNKNOWN if t is None else time_at_most(t * tick)}" for name, t in shown.items())
    limit = "" if deadline is None else f", deadline {shown_time(deadline * tick)}: {chain.answer}"
    return f"{chain.chain}: {times}{limit} ({chain.method})"


def _why(assessment: Assessment) -> str:
    found = assessment.verdict
    if found is None:
        return _no_places(assessment)
    late = [task.task for task in found.tasks if task.answer is DeadlineAnswer.NO]
    overloaded = [load.name for load in found.loads if load.is_refuted]
    chains = [chain.chain for chain in found.chains if chain.answer is not DeadlineAnswer.YES]
    open_tasks = [task.task for task in found.tasks if task.answer is DeadlineAnswer.UNKNOWN]
    if found.answer is DeadlineAnswer.YES:
        return f"every deadline is proven{_tightest(assessment)}"
    reasons = {
        "overload of ": overloaded,
        "a legal schedule is too late for ": late,
        "no proof for ": open_tasks,
        "chains without proof: ": chains,
    }
    return "; ".join(f"{words}{_quote_names(names)}" for words, names in reasons.items() if names)


def _quote_names(names: Sequence[str]) -> str:
    """Return names of a file quoted, so that a verdict does not take their words for its own."""
    kinds = [name.partition(" ") if name.startswith(_KINDS) else ("", "", name) for name in names]
    return list_names([f"{kind}{space}{quote_name(own)}" for kind, space, own in kinds])


def _tightest(assessment: Assessment) -> str:
    least, name = min(_slacks(assessment), default=(0, ""))
    if least == 0:
        return f"; {_quote_names([name])} reaches its deadline" if name else ""
    return f"; the least slack is {time_at_least(least * assessment.tick)}, of {_quote_names([name])}"


def _slacks(assessment: Assessment) -> Iterator[tuple[int, str]]:
    """Yield what is left of each deadline, in ticks, where something is proven."""
    if assessment.verdict is None:
        return
    for task in assessment.verdict.tasks:
        if task.response is not None:
            yield assessment.task_set.by_name[task.task].deadline - task.response, task.task
    for chain, found in zip(assessment.task_set.chains, assessment.verdict.chains, strict=True):
        if chain.deadline is not None and found.reaction is not None:
            yield chain.deadline - found.reaction, f"chain {chain.name}"


def _no_places(assessment: Assessment) -> str:
    if assessment.demand.is_refuted:
        return f"all partitions together are asked for {percent(assessment.demand)}"
    assignment = assessment.assignment
    if assignment is not None and assignment.is_proven:
        return "the analysis proves no assignment of the tasks to partitions"
    method = "" if assignment is None else f" by {assignment.method}"
    return f"no assignment was found{method}"
