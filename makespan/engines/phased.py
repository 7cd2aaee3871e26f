"""`solve`: the worst case of an instance, partition by partition or phase by phase where that can be."""

from collections import deque
from collections.abc import Sequence
from itertools import chain

from makespan.bounds import Phase, closed_form, pessimistic, phases
from makespan.bounds.partitions import partitions
from makespan.engines import partitioned, portfolio
from makespan.engines.construct import greedy
from makespan.engines.limits import Limits
from makespan.errors import BrokenPromiseError, InputError
from makespan.feature import MULTIPROCESSOR
from makespan.instance import Instance
from makespan.machine.values import shown
from makespan.program import BARRIER, Program
from makespan.result import Bounds, Result, Step, Upper, UpperBound
from makespan.schedule import Schedule
from makespan.simulate import replay


def solve(
    instance: Instance, *, backend: str = "auto", best_case: bool = False, limits: Limits | None = None
) -> Result:
    """The worst-case makespan under every work-conserving scheduler, as a proven interval.

    >>> from makespan.instance import Instance
    >>> solve(Instance.of("CLLCLL", warps=2)).bounds
    Bounds(lower=10, upper=10)

    Args:
        backend: a key of `BACKENDS`.
        best_case: also look for the shortest work-conserving schedule.
        limits: time, memory, progress; by default 60 seconds.

    Raises:
        InputError: an unknown backend, or no instance.
        UnsupportedError: the backend does not know what the instance has, or cannot take it.
        BrokenPromiseError: engines contradict each other, or a witness does not replay; always a bug.
    """
    if not isinstance(instance, Instance):
        raise InputError(f"solve takes an Instance, such as Instance.of('CL', warps=2), not {shown(instance)}")
    if backend not in portfolio.BACKENDS:
        raise InputError(f"unknown backend {backend!r}; known: {', '.join(portfolio.BACKENDS)}")
    budget = limits or Limits()
    if (parts := partitions(instance)) is not None:
        return partitioned.solve(instance, parts, backend=backend, best_case=best_case, budget=budget)
    # results that are pending, and ports, may be waited for across a barrier
    cut = None if instance.features.keys() & MULTIPROCESSOR or not instance.has_barriers else phases(instance)
    if cut is None:
        return portfolio.solve(instance, backend=backend, best_case=best_case, budget=budget)
    return _by_phases(instance, cut, backend, best_case, budget)


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
        result = portfolio.solve(question, backend=backend, best_case=best_case, budget=share)
        best_case_seconds += result.best_case_seconds or 0.0
        solved[question] = result
        bounds[question] = UpperBound(result.bounds.upper, result.upper_evidence, result.certificate, result.weights)
    results = [solved[phase.instance] for phase in cut if phase.instance in solved]
    joined = None
    if len(results) == len(cut):
        joined = _joined(instance, cut, [result.witness for result in results])
    upper, evidence = sum(bounds[phase.instance].upper for phase in cut), Upper.PHASES
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
        best_case=_best_case(instance, results, witness, budget, joinable=joined is not None) if best_case else None,
        backend=backend if backend != "auto" else engines,
        seconds=seconds,
        assumptions=instance.assumptions,
        interrupted=budget.interrupted,
        phases=tuple(bounds.values()),
        best_case_seconds=best_case_seconds if best_case else None,
        history=(Step(round(seconds, 6), engines, witness.makespan, upper, evidence),),
    )


def _longest(instance: Instance, joined: Schedule | None, upper: int, budget: Limits) -> Schedule:
    """The schedule of the phases one after another, or a longer one, for few have phases that begin together."""
    if joined is not None and (replay(instance, joined) == upper or budget.expired):
        return joined
    found = greedy.longest(instance, budget, upper)
    if joined is not None and joined.makespan >= found.makespan:
        return joined
    replay(instance, found)
    return found


def _best_case(
    instance: Instance, results: Sequence[Result], witness: Schedule, budget: Limits, *, joinable: bool
) -> Bounds:
    """The phases' best cases add up to a bound from below and, where schedules of phases can be joined, from above."""
    each = [result.best_case for result in results if result.best_case is not None]
    known = portfolio.fastest_known(instance, witness, budget)
    lower = max(known.lower, sum(bounds.lower for bounds in each))
    return Bounds(lower, min(known.upper, sum(bounds.upper for bounds in each)) if joinable else known.upper)


def _joined(instance: Instance, cut: Sequence[Phase], witnesses: Sequence[Schedule]) -> Schedule | None:
    """The schedules of the phases one after another; None if a warp may not be where the next phase wants it.

    Warps of a group are interchangeable at the start of a phase that they all begin at the same place.
    """
    if not _joinable(cut):
        return None
    programs = tuple(instance.programs())
    paths: list[list[int]] = [[] for _ in programs]
    latencies: list[list[int]] = [[] for _ in programs]
    cycles: list[tuple[int, ...]] = []
    for phase, witness in zip(cut, witnesses, strict=True):
        crew = _crew(instance, phase)
        for (warp, places), path in zip(crew, witness.paths, strict=True):
            visited = [places[at] for at in path]
            paths[warp] += [*_gap(programs[warp], paths[warp], visited[0]), *visited]
        for (warp, _), chosen in zip(crew, witness.latencies or [()] * len(crew), strict=True):
            latencies[warp] += chosen
        cycles += (tuple(sorted(crew[number][0] for number in executing)) for executing in witness.cycles)
    whole = ((*path, *_gap(program, path, program.end)) for program, path in zip(programs, paths, strict=True))
    every = () if instance.machine.fixed_latencies else tuple(map(tuple, latencies))
    return Schedule(tuple(cycles), tuple(whole), every)


def _joinable(cut: Sequence[Phase]) -> bool:
    """Whether each group enters every phase but its first at one place only."""
    seen: set[int] = set()
    for part in chain.from_iterable(phase.parts for phase in cut):
        if part.group in seen and len(part.program.starts) > 1:
            return False
        seen.add(part.group)
    return True


def _crew(instance: Instance, phase: Phase) -> list[tuple[int, tuple[int, ...]]]:
    """For every warp of a phase which warp of the whole it is, and the places of its part in the whole."""
    first = [0]
    for group in instance.groups:
        first.append(first[-1] + group.warps)
    return [
        (warp, part.places)
        for group in phase.instance.groups
        for part in phase.parts
        if part.program == group.program
        for warp in range(first[part.group], first[part.group + 1])
    ]


def _gap(program: Program, path: Sequence[int], target: int) -> list[int]:
    """The barriers on the way from the end of `path`, or from a start, to `target`."""
    before: dict[int, int | None] = dict.fromkeys(program.places[path[-1]].successors if path else program.starts)
    waiting = deque(before)
    while waiting:
        at = waiting.popleft()
        if at == target:
            return _back(before, at)
        if at != program.end and program.places[at].unit == BARRIER:
            for after in program.places[at].successors:
                if after not in before:
                    before[after] = at
                    waiting.append(after)
    raise BrokenPromiseError(f"no barriers lead to place {target}")


def _back(before: dict[int, int | None], at: int) -> list[int]:
    found: list[int] = []
    step = before[at]
    while step is not None:
        found.append(step)
        step = before[step]
    return found[::-1]
