"""The verdict on a task set: all deadlines are proven by analyses, refuted by a simulated schedule, or open."""

from collections.abc import Callable, Iterator, Sequence

from makespan.deadlines.arrivals import Stream
from makespan.deadlines.chains import chain_latencies
from makespan.deadlines.evidence import misses
from makespan.deadlines.holistic import (
    HORIZON,
    AnalysisLimits,
    Responses,
    ServerBounds,
    responses,
    responses_in_time,
)
from makespan.deadlines.task import ChainStart, GpuTask, SegmentKind, ServerPolicy, TaskChain, TaskSet, core_label
from makespan.deadlines.utilisation import ONE, excess, resource_loads, scaled_sum
from makespan.deadlines.verdict import (
    ChainVerdict,
    DeadlineAnswer,
    ResourceLoad,
    TaskSetVerdict,
    TaskVerdict,
    list_names,
)
from makespan.host.errors import BrokenPromiseError

DEFAULT_LIMITS = AnalysisLimits()

METHODS = {
    ServerPolicy.FIXED_PRIORITY: (
        "non-preemptive fixed priorities (George, Rivierre and Spuri 1996; Davis and others 2007)"
    ),
    ServerPolicy.EDF: "non-preemptive EDF (George, Rivierre and Spuri 1996; Spuri 1996)",
    ServerPolicy.EDF_RELEASE: "non-preemptive EDF by releases (George, Rivierre and Spuri 1996)",
    ServerPolicy.FIFO: "FIFO (George, Rivierre and Spuri 1996, with equal relative deadlines)",
}
SAMPLED = "periodic timers with any phases (Davare and others 2007)"
TRIGGERED = "all segments of an activation together (theorems 8 and 9; Tindell and Clark 1994)"

_EDF = (ServerPolicy.EDF, ServerPolicy.EDF_RELEASE)
_OPINION_WORK = 20_000


def analyse(task_set: TaskSet, *, limits: AnalysisLimits = DEFAULT_LIMITS, evidence: bool = True) -> TaskSetVerdict:
    """Return bounds for every task and chain, and what follows for the deadlines.

    Offsets are not used: a bound holds for all phases. Where they are cheap, the bounds of kernels are compared with
    those of `response-time-analysis`, a second implementation.

    Args:
        limits: Where to stop; what is not proven by then stays undecided.
        evidence: Whether to search for a schedule in which a task misses, for tasks without a proof.

    Raises:
        InputError: a task without a partition, CPU time with a deadline beyond the period, or chains by data that
            contradict themselves.
        BrokenPromiseError: the two implementations disagree.
    """
    if not evidence:
        return _proven(task_set, limits)
    *_, verdict = verdicts(task_set, limits)
    return verdict


def verdicts(
    task_set: TaskSet, limits: AnalysisLimits = DEFAULT_LIMITS, progress: Callable[[str], None] = lambda _: None
) -> Iterator[TaskSetVerdict]:
    """Yield the verdict as it becomes known: what is proven, then that with each late job that is found.

    Where the answer is no already, nothing more is looked for.
    """
    verdict = _proven(task_set, limits)
    yield verdict
    names = [task.task for task in verdict.tasks if task.answer is DeadlineAnswer.UNKNOWN]
    if verdict.answer is DeadlineAnswer.UNKNOWN:  # a yes or no needs no schedule
        for miss in misses(task_set, names, attempts=limits.attempts, jobs=limits.jobs, progress=progress):
            verdict = verdict.with_miss(miss)
            yield verdict


def is_proven(task_set: TaskSet, limits: AnalysisLimits = DEFAULT_LIMITS) -> bool:
    """Return whether `analyse` says yes; this costs less, as the search for a no is left out.

    Raises:
        InputError: as `analyse`.
    """
    found = responses_in_time(task_set, limits)  # it stops at the first late task
    return found is not None and all(
        _chain_verdict(task_set, c, found).answer is DeadlineAnswer.YES for c in task_set.chains
    )


def _proven(task_set: TaskSet, limits: AnalysisLimits) -> TaskSetVerdict:
    found = responses(task_set, limits)
    demanded = resource_loads(task_set)
    return TaskSetVerdict(
        task_set,
        demanded,
        tuple(_task_verdict(task_set, task, found, demanded) for task in task_set.tasks),
        tuple(_chain_verdict(task_set, chain, found) for chain in task_set.chains),
        tuple(_notes(task_set, found, limits)),
    )


def _task_verdict(task_set: TaskSet, task: GpuTask, found: Responses, demanded: Sequence[ResourceLoad]) -> TaskVerdict:
    response = found.of[task.name]
    if response is None:
        return TaskVerdict(task.name, None, DeadlineAnswer.UNKNOWN, (), False, _reason(task_set, task, found, demanded))
    resource = task.segments[-1].resource
    rivals = task_set.on(resource) if resource is not None else ()
    # theorems 1 and 2
    is_exact = response.way is None and bool(rivals) and all(_is_regular(other, found) for other in rivals)
    served = [segment for other in rivals for segment in other.of(SegmentKind.COPY, SegmentKind.KERNEL)]
    # the schedule of the proof takes all longest times, so it exists only if all of them are shown
    is_shown = all(segment.attained == segment.wcet and segment.is_shown for segment in served)
    method = response.way or METHODS[next(s.policy for s in task_set.servers if s.name == resource)]
    return TaskVerdict(
        task.name,
        response.total,
        DeadlineAnswer.YES if response.total <= task.deadline else DeadlineAnswer.UNKNOWN,
        response.parts,
        is_exact,
        method,
        is_attained=is_exact and is_shown,
    )


def _is_regular(task: GpuTask, found: Responses) -> bool:
    """Return whether the worst pattern of the proof is legal: only periods and jitter restrict arrivals."""
    only = task.segments[0]
    return len(task.segments) == 1 and not only.delay and task.offset is None and task.name not in found.starts


def _reason(task_set: TaskSet, task: GpuTask, found: Responses, demanded: Sequence[ResourceLoad]) -> str:
    if task.name in found.stopped:
        return "no bound: the analysis stopped at its limit"
    full = {load.name for load in demanded if load.is_overload}  # the reason that says most comes first
    places = [server.resource for server in task_set.servers if task.on(server.name)]
    if over := [resource for resource in (*places, core_label(task.core)) if resource in full]:
        return f"no bound: {over[0]} is overloaded"
    first = found.lost[task.name]
    if first != task.name:
        return f"no bound: the task depends on {first}, which has none"
    return f"no bound: it grows beyond {HORIZON} times the longest period, deadline or jitter"


def _chain_verdict(task_set: TaskSet, chain: TaskChain, found: Responses) -> ChainVerdict:
    tasks = [task_set.by_name[name] for name in chain.tasks]
    proven = [found.of[name] for name in chain.tasks]
    totals = [None if response is None else response.total for response in proven]
    end = None if proven[-1] is None or None in proven else proven[-1].end
    reaction, age = chain_latencies(chain.activation, tasks, totals, end)
    is_met = reaction is not None and (chain.deadline is None or reaction <= chain.deadline)
    method = SAMPLED if chain.activation is ChainStart.PERIODIC else TRIGGERED
    return ChainVerdict(chain.name, reaction, age, DeadlineAnswer.YES if is_met else DeadlineAnswer.UNKNOWN, method)


def _notes(task_set: TaskSet, found: Responses, limits: AnalysisLimits) -> Iterator[str]:
    if any(task.offset is not None for task in task_set.tasks):
        yield "offsets are not used: bounds hold for every phase, and may be too large for these"
    if found.stopped:
        names = [task.name for task in task_set.tasks if task.name in found.stopped]
        stopped = f"stopped at the limit of {limits.one} additions for a bound, {limits.total} in all"
        yield f"{stopped}: {list_names(names)}"
    for resource, served in found.served.items():
        if _is_confirmed(resource, served):
            yield f"{resource}: response-time-analysis computes the same bounds"


def _is_confirmed(resource: str, served: ServerBounds) -> bool:
    """Return whether the second implementation was asked and agrees.

    Raises:
        BrokenPromiseError: it does not agree.
    """
    known = [span for span in served.spans if span is not None]
    is_plain = served.is_plain and len(known) == len(served.spans)
    if not known or not is_plain or not _is_cheap(served.streams, served.policy, max(known)):
        return False
    from makespan.deadlines import prosa

    theirs = prosa.prosa_bounds(served.streams, served.policy)
    if served.policy is ServerPolicy.FIFO:  # the package gives FIFO one bound for all tasks
        known = [max(known)] * len(known)
    if list(theirs) != known:  # One of two implementations is wrong, so neither result may be used.
        raise BrokenPromiseError(
            f"{resource}: bounds of {known} ticks, but response-time-analysis has {list(theirs)}: do not trust"
            " either, and report it"
        )
    return True


def _is_cheap(streams: Sequence[Stream], policy: ServerPolicy, longest: int) -> bool:
    """Return whether the second implementation covers the streams and ends soon.

    Its time is about (kernels in sight) x streams^2.
    """
    if any(stream.is_wild for stream in streams) or (policy in _EDF and any(stream.lag for stream in streams)):
        return False
    parts = [(stream.wcet, stream.period) for stream in streams]
    if excess(parts) >= 0:  # the package does not end at full utilisation
        return False
    early = longest + sum(stream.wcet * (1 + stream.delay // stream.period) for stream in streams)
    seen = early * ONE // (ONE - scaled_sum(parts))
    if policy in _EDF:  # it walks from deadline to deadline, however far apart they are
        deadlines = [stream.deadline for stream in streams]
        seen += max(deadlines) - min(deadlines)
    kernels = sum(seen // stream.period + 1 for stream in streams)
    return kernels * len(streams) ** 2 <= _OPINION_WORK
