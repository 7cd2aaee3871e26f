"""`solve`: the worst case of an instance, partition by partition or phase by phase where that can be."""

from collections.abc import Sequence
from typing import Protocol

from makespan.host.errors import InputError
from makespan.model.instance import Instance
from makespan.model.machine.values import shown
from makespan.model.result import Bounds, Result, Status, Step, Upper, UpperBound
from makespan.model.schedule import Schedule
from makespan.model.simulate import replay
from makespan.proof.bounds import Phase, closed_form, pessimistic, phases
from makespan.proof.bounds.partitions import partitions
from makespan.proof.engines import joining, partitioned, portfolio
from makespan.proof.engines.construct import greedy
from makespan.proof.engines.limits import Limits


class InstanceSource(Protocol):
    """What stands for one instance, such as `makespan.KernelQuestion`."""

    def instance(self) -> Instance:
        """Return the instance."""


def solve(
    instance: Instance | InstanceSource, *, backend: str = "auto", best_case: bool = False, limits: Limits | None = None
) -> Result:
    """Return the worst-case makespan under every work-conserving scheduler, as a proven interval.

    >>> from makespan.model.instance import Instance
    >>> solve(Instance.of("CLLCLL", warps=2)).bounds
    Bounds(lower=10, upper=10)

    Args:
        instance: an instance, or a question about a kernel that stands for exactly one.
        backend: a key of `BACKENDS`.
        best_case: also look for the shortest work-conserving schedule.
        limits: time, memory, progress; by default 60 seconds.

    Raises:
        InputError: an unknown backend, no instance, or a question that stands for several or for none.
        UnsupportedError: the backend does not know what the instance has, or cannot take it.
        BrokenPromiseError: engines contradict each other, or a witness does not replay; always a bug.
    """
    if not isinstance(instance, Instance):
        if not callable(getattr(instance, "instance", None)):
            raise InputError(f"solve takes an Instance, such as Instance.of('CL', warps=2), not {shown(instance)}")
        instance = instance.instance()
    if backend not in portfolio.BACKENDS:
        raise InputError(f"unknown backend {backend!r}; known: {', '.join(portfolio.BACKENDS)}")
    budget = limits or Limits()
    cut = phases(instance) if instance.has_barriers else None
    if cut is None:
        return _whole(instance, backend, budget, best_case=best_case)
    if not instance.is_multiprocessor:
        return _by_phases(instance, cut, backend, best_case, budget)
    found = _by_phases(instance, cut, backend, best_case, budget.part(0.5))
    if budget.expired or _is_exact(found):
        return found
    # where schedules of phases cannot be joined, or begin less late than they might, all states may know more
    whole = _whole(instance, backend, budget, best_case=best_case)
    return whole if _is_within(whole, found) else found


def _is_exact(result: Result) -> bool:
    best = result.best_case
    return result.status is Status.EXACT and (best is None or best.status is Status.EXACT)


def _is_within(one: Result, other: Result) -> bool:
    """Return whether the intervals of `one` say at least as much."""
    pairs = [(one.bounds, other.bounds)]
    if one.best_case is not None and other.best_case is not None:
        pairs.append((one.best_case, other.best_case))
    return all(inner & outer == inner for inner, outer in pairs)


def _whole(instance: Instance, backend: str, budget: Limits, *, best_case: bool) -> Result:
    """Return all that lies between two barriers, partition by partition where that can be."""
    if (parts := partitions(instance)) is not None:
        return partitioned.solve(instance, parts, backend=backend, best_case=best_case, budget=budget)
    return portfolio.solve(instance, backend=backend, best_case=best_case, budget=budget)


def _by_phases(instance: Instance, cut: Sequence[Phase], backend: str, best_case: bool, budget: Limits) -> Result:
    """Equal phases are solved once; the time is shared among the different ones, and those left over are bounded."""
    solved: dict[Instance, Result] = {}
    bounds: dict[Instance, UpperBound] = {}
    best_case_seconds = 0.0
    questions = list(dict.fromkeys(phase.instance for phase in cut))
    for number, question in enumerate(questions):
        if budget.expired:
            bounds[question] = closed_form(question)
            continue
        budget.progress(f"phase {number + 1} of {len(questions)} different ones")
        share = budget.part(1 / (len(questions) - number))
        result = _whole(question, backend, share, best_case=best_case)
        best_case_seconds += result.best_case_seconds or 0.0
        solved[question] = result
        bounds[question] = result.proven
    results = [solved[phase.instance] for phase in cut if phase.instance in solved]
    joined = None
    if len(results) == len(cut):
        joined = joining.join_phases(instance, cut, [result.witness for result in results])
    lag = sum(phase.lag for phase in cut)
    upper, evidence = sum(bounds[phase.instance].upper for phase in cut) + lag, Upper.PHASES
    worst_bound = pessimistic(instance)
    if worst_bound < upper:
        upper, evidence = worst_bound, Upper.PESSIMISTIC
    witness = _longest(instance, joined, upper, budget)
    seconds = budget.elapsed - best_case_seconds
    engines = "+".join(sorted({result.backend for result in results})) or "certificate"
    return Result(
        instance=instance,
        bounds=Bounds(witness.makespan, upper),
        witness=witness,
        upper_evidence=evidence,
        pessimistic=worst_bound,
        best_case=_best_case(instance, results, witness, budget, lag if joined else None) if best_case else None,
        backend=backend if backend != "auto" else engines,
        seconds=seconds,
        assumptions=instance.assumptions,
        interrupted=budget.interrupted,
        phases=tuple(bounds.values()),
        best_case_seconds=best_case_seconds if best_case else None,
        history=(Step(round(seconds, 6), engines, witness.makespan, upper, evidence),),
    )


def _longest(instance: Instance, joined: Schedule | None, upper: int, budget: Limits) -> Schedule:
    """Return the schedule of the phases one after another, or a longer one, for few have phases that begin together."""
    if joined is not None and (replay(instance, joined) == upper or budget.expired):
        return joined
    found = greedy.longest(instance, budget, upper)
    if joined is not None and joined.makespan >= found.makespan:
        return joined
    replay(instance, found)
    return found


def _best_case(
    instance: Instance, results: Sequence[Result], witness: Schedule, budget: Limits, lag: int | None
) -> Bounds:
    """The phases' best cases add up to a bound from below and, where schedules of phases can be joined, from above.

    Then `lag` says how much later they may begin in all.
    """
    each = [result.best_case for result in results if result.best_case is not None]
    known = portfolio.fastest_known(instance, witness, budget)
    lower = max(known.lower, sum(bounds.lower for bounds in each))
    if lag is None:
        return Bounds(lower, known.upper)
    return Bounds(lower, min(known.upper, sum(bounds.upper for bounds in each) + lag))
