"""`solve`: the worst case of an instance, phase by phase and partition by partition where that can be.

Both are passes of one form: an instance is cut into parts, each different part is solved once, and what is proven of
the parts, and their schedules, become those of the whole. Phases between barriers follow one another, so their worst
cases add up (docs/theory.md, 7, propositions P and P'). Partitions that share nothing run side by side, so the slowest
decides (docs/theory.md, 8, proposition Q).

With lapses no engine knows the worst case. The schedules that they find without lapses are schedules with them, too,
and the upper bound is a sum (docs/theory.md, 17).
"""

from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import accumulate, chain
from typing import Protocol, TypeVar

from makespan.host.errors import BrokenPromiseError, InputError
from makespan.model.instance import Instance
from makespan.model.lowered import HeldUses, LoweredMachine
from makespan.model.machine.values import shown
from makespan.model.program import BARRIER, Program
from makespan.model.result import Bounds, LapseProof, Result, Status, Step, Upper, UpperBound
from makespan.model.schedule import Schedule
from makespan.model.simulate import replay
from makespan.proof.bounds import Phase, closed_form, lapse_proofs, least_possible, pessimistic, phases, tightest
from makespan.proof.bounds.partitions import PartitionContent, Partitions, WarpSpread, partitions
from makespan.proof.engines import portfolio
from makespan.proof.engines.backends import AUTO, BACKENDS, CERTIFICATES
from makespan.proof.engines.construct import greedy
from makespan.proof.engines.limits import Limits

PhasePlaces = tuple[int, ...]
"""For every place of the program of a phase, the place of the whole program."""

_Key = TypeVar("_Key")


class InstanceSource(Protocol):
    """A value that stands for one instance, such as `makespan.KernelQuestion`."""

    def instance(self) -> Instance:
        """Return the instance for which it stands."""


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
    if backend not in BACKENDS:
        raise InputError(f"unknown backend {backend!r}; known: {', '.join(BACKENDS)}")
    budget = limits or Limits()
    solve_instance = _with_lapses if instance.has_lapses else _without_lapses
    return solve_instance(instance, backend, best_case, budget)


def _without_lapses(instance: Instance, backend: str, best_case: bool, budget: Limits) -> Result:
    # phases first: each is a question without barriers, which all engines know
    cut = phases(instance) if instance.has_barriers else None
    if cut is None:
        return _whole(instance, backend=backend, best_case=best_case, budget=budget)
    if not instance.is_multiprocessor:
        return _by_phases(instance, cut, backend, best_case, budget)
    # on a real multiprocessor the lags of phases and what cannot be joined leave gaps, so half of the time is kept
    found = _by_phases(instance, cut, backend, best_case, budget.part(0.5))
    if budget.expired or _is_exact(found):
        return found
    # where schedules of phases cannot be joined, or begin less late than they might, all states may know more
    whole = _whole(instance, backend=backend, best_case=best_case, budget=budget)
    return whole if _is_within(whole, found) else found


def _is_exact(result: Result) -> bool:
    best = result.best_case
    return result.status is Status.EXACT and (best is None or best.status is Status.EXACT)


def _is_within(one: Result, other: Result) -> bool:
    pairs = [(one.bounds, other.bounds)]
    if one.best_case is not None and other.best_case is not None:
        pairs.append((one.best_case, other.best_case))
    return all(inner & outer == inner for inner, outer in pairs)


def _whole(instance: Instance, *, backend: str, best_case: bool, budget: Limits) -> Result:
    """Return the result of an instance that is not cut at barriers, partition by partition where that can be."""
    if (parts := partitions(instance)) is not None:
        return _by_partitions(instance, parts, backend, best_case, budget)
    return portfolio.solve(instance, backend=backend, best_case=best_case, budget=budget)


def _solve_each(
    name: str,
    questions: Mapping[_Key, Instance],
    solve_part: Callable[..., Result],
    budget: Limits,
    stop: Callable[[], bool] = lambda: False,
) -> Iterator[tuple[_Key, Result]]:
    """Yield the result of every different part, until `stop` says so; the time that is left is shared equally."""
    count = len(questions)
    for number, (key, question) in enumerate(questions.items()):
        if stop():
            return
        budget.progress(f"{name} {number + 1} of {count} different ones")
        yield key, solve_part(question, budget=budget.part(1 / (count - number)))


def _result(
    instance: Instance,
    results: Collection[Result],
    backend: str,
    budget: Limits,
    elapsed: float,
    witness: Schedule,
    proven: UpperBound,
    worst: int,
    best_case: Bounds | None,
    *,
    phases: tuple[UpperBound, ...] = (),
    partitions: tuple[UpperBound, ...] = (),
) -> Result:
    """Return the result of the whole, from a replayed witness, the bound that is proven, and M^L + M^C.

    `results` are those of the different parts, which took `elapsed` seconds, their best cases included. A `best_case`
    of None means that it was not asked for.
    """
    best_case_seconds = sum((result.best_case_seconds or 0.0 for result in results), 0.0)
    seconds = elapsed - best_case_seconds
    engines = "+".join(sorted({result.backend for result in results})) or CERTIFICATES.backend
    upper, evidence = proven.upper, proven.evidence
    return Result(
        instance=instance,
        bounds=Bounds(witness.makespan, upper),
        witness=witness,
        upper_evidence=evidence,
        pessimistic=worst,
        best_case=best_case,
        backend=backend if backend != AUTO else engines,
        seconds=seconds,
        assumptions=instance.assumptions,
        interrupted=budget.interrupted,
        weights=proven.weights,
        phases=phases,
        partitions=partitions,
        best_case_seconds=None if best_case is None else best_case_seconds,
        history=(Step(round(seconds, 6), engines, witness.makespan, upper, evidence),),
    )


# --- lapses ---------------------------------------------------------------------------------------------------


def _with_lapses(instance: Instance, backend: str, best_case: bool, budget: Limits) -> Result:
    """Return the longest schedule that is found without lapses, and the upper bound that holds with them.

    No engine has to know the instance, so `backend` is asked about the same warps without lapses.
    """
    proofs = lapse_proofs(instance)  # refuses what no theorem knows before any time is spent
    proof = min(proofs, key=lambda each: each.upper)
    with budget.rewording(lambda step: _with_upper(step, proof)):
        found = _without_lapses(instance.without_lapses, backend, best_case, budget)
    return add_lapses(instance, found, proofs)


def add_lapses(instance: Instance, found: Result, proofs: Sequence[LapseProof]) -> Result:
    """Return the result of an instance with lapses.

    Args:
        instance: the instance.
        found: the result of the same warps without lapses.
        proofs: the upper bounds with lapses, as `bounds.lapse_proofs` returns them.
    """
    proof = min(proofs, key=lambda each: each.upper)
    replay(instance, found.witness)  # a schedule counts only if the machine allows it
    # a step that only lowers the upper bound without lapses says nothing about the one with them
    steps = {step.lower: _with_upper(step, proof) for step in reversed(found.history)}
    return replace(
        found,
        instance=instance,
        bounds=Bounds(found.bounds.lower, proof.upper),
        upper_evidence=Upper.LAPSES,
        pessimistic=proofs[0].upper,
        best_case=None if found.best_case is None else _best_case_with_lapses(instance, found.best_case),
        assumptions=instance.assumptions,
        certificate=None,
        weights=(),
        phases=(),
        partitions=(),
        history=tuple(reversed(steps.values())),
        lapses=proof,
        without_lapses=found,
    )


def _with_upper(step: Step, proof: LapseProof) -> Step:
    return step._replace(upper=proof.upper, evidence=Upper.LAPSES)


def _best_case_with_lapses(instance: Instance, best_case: Bounds) -> Bounds:
    """Return the best case with lapses from that without them.

    Warps may end earlier if a scheduler lapses than under each work-conserving one, but not before their work is done.
    """
    return Bounds(least_possible(instance), best_case.upper)  # no step of it lets a warp issue as soon as it can


# --- phases ---------------------------------------------------------------------------------------------------


def _by_phases(instance: Instance, cut: Sequence[Phase], backend: str, best_case: bool, budget: Limits) -> Result:
    """Return what the phases prove: equal ones are solved once, and those for which no time is left are bounded."""
    questions = {phase.instance: phase.instance for phase in cut}
    solve_phase = partial(_whole, backend=backend, best_case=best_case)
    solved = dict(_solve_each("phase", questions, solve_phase, budget, lambda: budget.expired))
    bounds = {one: solved[one].proven if one in solved else closed_form(one) for one in questions}
    results = [solved[phase.instance] for phase in cut if phase.instance in solved]
    joined = join_phases(instance, cut, [result.witness for result in results]) if len(results) == len(cut) else None
    # a phase may begin late by its lag, when ports of earlier phases are still held (theory.md, 7, proposition P')
    lag = sum(phase.lag for phase in cut)
    proven = UpperBound(sum(bounds[phase.instance].upper for phase in cut) + lag, Upper.PHASES)
    worst = pessimistic(instance)
    if worst < proven.upper:
        proven = UpperBound(worst, Upper.PESSIMISTIC)
    witness = _longest(instance, joined, proven.upper, budget)
    elapsed, parts = budget.elapsed, tuple(bounds.values())
    best = _best_case_of_phases(instance, results, witness, budget, lag if joined else None) if best_case else None
    return _result(instance, solved.values(), backend, budget, elapsed, witness, proven, worst, best, phases=parts)


def _longest(instance: Instance, joined: Schedule | None, upper: int, budget: Limits) -> Schedule:
    """Return the schedule of the phases one after another, or a longer one, for few have phases that begin together."""
    witness = joined
    if witness is None or (witness.makespan < upper and not budget.expired):
        found = greedy.longest(instance, budget, upper)
        witness = found if witness is None or witness.makespan < found.makespan else witness
    replay(instance, witness)  # a schedule counts only if the machine allows it
    return witness


def _best_case_of_phases(
    instance: Instance, results: Sequence[Result], witness: Schedule, budget: Limits, lag: int | None
) -> Bounds:
    """Return the best case: those of the phases add up from below and, where schedules can be joined, from above.

    Then `lag` says how much later they may begin in all.
    """
    each = [result.best_case for result in results if result.best_case is not None]
    known = portfolio.fastest_known(instance, witness, budget)
    lower = max(known.lower, sum(bounds.lower for bounds in each))
    if lag is None:
        return Bounds(lower, known.upper)
    return Bounds(lower, min(known.upper, sum(bounds.upper for bounds in each) + lag))


def join_phases(instance: Instance, cut: Sequence[Phase], witnesses: Sequence[Schedule]) -> Schedule | None:
    """Return a schedule of the whole; None if a warp may not be where the next phase wants it.

    Warps of a group are interchangeable at the start of a phase that they all begin at the same place. Where all have
    to wait first for ports of earlier phases, each partition begins as late as it must.
    """
    if not _joinable(instance, cut):
        return None
    machine, programs = instance.machine, tuple(instance.programs())
    lowered = LoweredMachine.of(machine)
    paths: list[list[int]] = [[] for _ in programs]
    latencies: list[list[int]] = [[] for _ in programs]
    uses: list[list[HeldUses]] = [[] for _ in programs]
    cycles: list[list[int]] = []
    partition_of = instance.partition_of_warp or witnesses[0].partitions
    busy: dict[tuple[int, str], int] = {}  # by partition and port, until when
    for phase, witness in zip(cut, witnesses, strict=True):
        begun = end = len(cycles)
        # a partition whose ports are still held from earlier phases begins so much later, and no more
        delays = [
            max((0, *(busy.get((part, name), 0) - begun for name, _ in phase.late)))
            for part in range(machine.partitions)
        ]
        crew = _crew(instance, phase)  # equal warps change names between phases as it suits
        if instance.partition_of_warp is None:
            crew = _match_partitions(crew, witness.partitions, partition_of)
        issued = []
        for number, (program, at) in enumerate(_issues(phase, witness)):
            warp, places = crew[number]
            path = witness.paths[number]
            own_latencies, own_uses = conduct_of(witness, number, program, lowered)
            visited = [places[place] for place in path]
            paths[warp] += [*_gap(programs[warp], paths[warp], visited[0]), *visited]
            latencies[warp] += own_latencies
            uses[warp] += own_uses
            part = partition_of[warp]
            for cycle, place, latency, held in zip(at, path, own_latencies, own_uses, strict=True):
                now, reservation = begun + delays[part] + cycle, lowered.reservation(program, place)
                issued.append((now, warp))
                timing = program.timings[place] if program.timings else None
                lasts = latency if timing is None else max(timing.stall, latency if timing.sets else 0)
                end = max(end, now + lasts)
                ports = [(hold.pools[0], hold.most) for hold in reservation.fixed]
                ports += [(use.pools[which], n) for use, (which, n) in zip(reservation.uses, held, strict=True)]
                for name, interval in ports:
                    busy[part, name] = max(now + interval, busy.get((part, name), 0))
        cycles += [[] for _ in range(end - begun)]  # the barrier opens when the last latency has passed
        for now, warp in issued:
            cycles[now].append(warp)
    whole = ((*path, *_gap(program, path, program.end)) for program, path in zip(programs, paths, strict=True))
    return Schedule.of(instance, cycles, whole, latencies, uses, partition_of)


def _joinable(instance: Instance, cut: Sequence[Phase]) -> bool:
    """Return whether each group enters every phase but its first at one place only, in partitions of equal contents."""
    if instance.partition_of_warp is None and not instance.identical:
        return False
    seen: set[int] = set()
    for part in chain.from_iterable(phase.parts for phase in cut):
        if part.group in seen and len(part.program.starts) > 1:
            return False
        seen.add(part.group)
    return True


def _issues(phase: Phase, witness: Schedule) -> Iterator[tuple[Program, list[int]]]:
    """Yield, for every warp of a phase, its program and the cycles in which it issues."""
    at: list[list[int]] = [[] for _ in witness.paths]
    for cycle, executing in enumerate(witness.cycles):
        for number in executing:
            at[number].append(cycle)
    yield from zip(phase.instance.programs(), at, strict=True)


def _crew(instance: Instance, phase: Phase) -> list[tuple[int, PhasePlaces]]:
    """Return, for every warp of a phase, which warp of the whole it is, and the places of its part."""
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


def _match_partitions(
    crew: Sequence[tuple[int, PhasePlaces]], partitions: Sequence[int], partition_of: Sequence[int]
) -> list[tuple[int, PhasePlaces]]:
    """Return the crew of equal warps so that the larger partitions of a phase are the larger ones of the whole."""

    def by_size(partitions: Sequence[int]) -> list[int]:
        return sorted(set(partitions), key=lambda part: (-partitions.count(part), part))

    name = dict(zip(by_size(partitions), by_size(partition_of), strict=True))
    free = {part: deque(n for n, own in enumerate(partition_of) if own == part) for part in name.values()}
    return [crew[free[name[part]].popleft()] for part in partitions]


def _gap(program: Program, path: Sequence[int], target: int) -> list[int]:
    """Return the barriers on the way from the end of `path`, or from a start, to `target`."""
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


# --- partitions -----------------------------------------------------------------------------------------------


def _by_partitions(instance: Instance, cut: Partitions, backend: str, best_case: bool, budget: Limits) -> Result:
    """Return what the partitions prove; an upper bound of the whole that is smaller counts, too."""
    solve_partition = partial(portfolio.solve, backend=backend, best_case=best_case)
    solved = dict(_solve_each("partition", cut.questions, solve_partition, budget))
    # all partitions begin together and share nothing, so the slowest content decides (proposition Q)
    slowest = max(solved, key=lambda content: solved[content].bounds.lower)
    spread = next(spread for spread in cut.spreads if slowest in spread)
    witness = join_partitions(instance, spread, {content: result.witness for content, result in solved.items()})
    replay(instance, witness)
    proven = UpperBound(max(result.bounds.upper for result in solved.values()), Upper.PARTITIONS)
    worst = pessimistic(instance)
    whole = tightest(instance, worst)
    if whole.upper <= proven.upper:  # leans on less, and no partition has to be checked
        proven = whole
    results, elapsed = solved.values(), budget.elapsed
    best = _best_case_of_partitions(cut, results) if best_case else None
    parts = tuple(result.proven for result in results)
    return _result(instance, results, backend, budget, elapsed, witness, proven, worst, best, partitions=parts)


def _best_case_of_partitions(cut: Partitions, results: Iterable[Result]) -> Bounds:
    known = [result.best_case for result in results if result.best_case is not None]
    return Bounds(fastest(cut, (bounds.lower for bounds in known)), fastest(cut, (bounds.upper for bounds in known)))


def fastest(cut: Partitions, cycles: Iterable[int]) -> int:
    """The best case, where those of the questions are these: of a way to spread the slowest, of all ways the least."""
    of = dict(zip(cut.questions, cycles, strict=True))
    # the best case may choose the spread; in each the slowest partition decides
    return min(max(of[content] for content in spread if any(content)) for spread in cut.spreads)


def join_partitions(instance: Instance, spread: WarpSpread, witnesses: Mapping[PartitionContent, Schedule]) -> Schedule:
    """Return the schedules of the partitions side by side; a shorter one ends earlier."""
    programs, lowered = tuple(instance.programs()), LoweredMachine.of(instance.machine)
    cycles: list[list[int]] = []
    paths: list[tuple[int, ...]] = [()] * instance.warps
    latencies: list[Sequence[int]] = [()] * instance.warps
    uses: list[Sequence[HeldUses]] = [()] * instance.warps
    partition_of = [0] * instance.warps
    for part, crew in enumerate(_crews(instance, spread)):
        if not crew:
            continue
        own = witnesses[spread[part]]
        cycles += [[] for _ in range(own.makespan - len(cycles))]
        for executing, issued in zip(cycles, own.cycles, strict=False):
            executing += [crew[number] for number in issued]
        for number, warp in enumerate(crew):
            partition_of[warp], paths[warp] = part, own.paths[number]
            latencies[warp], uses[warp] = conduct_of(own, number, programs[warp], lowered)
    return Schedule.of(instance, cycles, paths, latencies, uses, partition_of)


def _crews(instance: Instance, spread: WarpSpread) -> list[list[int]]:
    if (fixed := instance.partition_of_warp) is not None:
        return [[warp for warp, own in enumerate(fixed) if own == part] for part in range(len(spread))]
    first = list(accumulate((group.warps for group in instance.groups), initial=0))
    crews: list[list[int]] = []
    for content in spread:
        crews.append([warp for at, count in zip(first, content, strict=False) for warp in range(at, at + count)])
        first = [at + count for at, count in zip(first, content, strict=False)]
    return crews


def conduct_of(
    schedule: Schedule, warp: int, program: Program, lowered: LoweredMachine
) -> tuple[Sequence[int], Sequence[HeldUses]]:
    """Return the latencies and uses of a warp of a part without barriers; where none are stated, there is no choice."""
    path = schedule.paths[warp]
    latencies = schedule.latencies[warp] if schedule.latencies else [lowered.latency(program, at)[0] for at in path]
    uses = schedule.uses[warp] if schedule.uses else [lowered.reservation(program, at).least_uses for at in path]
    return latencies, uses
