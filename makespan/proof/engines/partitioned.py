"""The worst case of partitions that share nothing: each different one is solved once, the slowest decides."""

from collections.abc import Iterable, Mapping, Sequence
from itertools import accumulate

from makespan.model.instance import Instance
from makespan.model.machine import Machine
from makespan.model.program import Program
from makespan.model.result import Bounds, Result, Step, Upper, UpperBound
from makespan.model.schedule import Schedule
from makespan.model.simulate import replay
from makespan.proof.bounds import closed_form, pessimistic
from makespan.proof.bounds.partitions import PartitionContent, Partitions, WarpSpread
from makespan.proof.engines import portfolio
from makespan.proof.engines.limits import Limits


def solve(instance: Instance, cut: Partitions, *, backend: str, best_case: bool, budget: Limits) -> Result:
    """The time is shared among the different partitions; an upper bound for all that is smaller counts, too."""
    solved: dict[PartitionContent, Result] = {}
    best_case_seconds = 0.0
    for number, (content, question) in enumerate(cut.questions.items()):
        budget.progress(f"partition {number + 1} of {len(cut.questions)} different ones")
        share = budget.part(1 / (len(cut.questions) - number))
        result = portfolio.solve(question, backend=backend, best_case=best_case, budget=share)
        best_case_seconds += result.best_case_seconds or 0.0
        solved[content] = result
    slowest = max(solved, key=lambda content: solved[content].bounds.lower)
    spread = next(spread for spread in cut.spreads if slowest in spread)
    witness = join_partitions(instance, spread, {content: result.witness for content, result in solved.items()})
    replay(instance, witness)
    proven = UpperBound(max(result.bounds.upper for result in solved.values()), str(Upper.PARTITIONS))
    if (whole := closed_form(instance)).upper <= proven.upper:  # leans on less, and no partition has to be checked
        proven = whole
    upper, evidence = proven.upper, str(proven.evidence)
    seconds = budget.elapsed - best_case_seconds
    engines = "+".join(sorted({result.backend for result in solved.values()}))
    return Result(
        instance=instance,
        bounds=Bounds(witness.makespan, upper),
        witness=witness,
        upper_evidence=evidence,
        pessimistic=pessimistic(instance),
        best_case=_best_case(cut, solved.values()) if best_case else None,
        backend=backend if backend != portfolio.AUTO else engines,
        seconds=seconds,
        assumptions=instance.assumptions,
        interrupted=budget.interrupted,
        weights=proven.weights,
        partitions=tuple(result.proven for result in solved.values()),
        best_case_seconds=best_case_seconds if best_case else None,
        history=(Step(round(seconds, 6), engines, witness.makespan, upper, evidence),),
    )


def _best_case(cut: Partitions, results: Iterable[Result]) -> Bounds:
    known = [result.best_case for result in results if result.best_case is not None]
    return Bounds(fastest(cut, (bounds.lower for bounds in known)), fastest(cut, (bounds.upper for bounds in known)))


def fastest(cut: Partitions, cycles: Iterable[int]) -> int:
    """The best case, where those of the questions are these: of a way to spread the slowest, of all ways the least."""
    of = dict(zip(cut.questions, cycles, strict=True))
    return min(max(of[content] for content in spread if any(content)) for spread in cut.spreads)


def join_partitions(instance: Instance, spread: WarpSpread, witnesses: Mapping[PartitionContent, Schedule]) -> Schedule:
    """Return the schedules of the partitions side by side; a shorter one ends earlier."""
    programs, machine = tuple(instance.programs()), instance.machine
    cycles: list[list[int]] = []
    paths: list[tuple[int, ...]] = [()] * instance.warps
    latencies: list[tuple[int, ...]] = [()] * instance.warps
    uses: list[tuple[tuple[tuple[int, int], ...], ...]] = [()] * instance.warps
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
            # where nothing is said in a partition there is no choice, though there is one elsewhere
            latencies[warp] = (
                own.latencies[number] if own.latencies else only_latencies(machine, programs[warp], paths[warp])
            )
            uses[warp] = own.uses[number] if own.uses else only_uses(machine, programs[warp], paths[warp])
    names = {part: name for name, part in enumerate(dict.fromkeys(partition_of))}
    return Schedule(
        tuple(tuple(sorted(executing)) for executing in cycles),
        tuple(paths),
        () if instance.fixed_latencies else tuple(latencies),
        tuple(names[part] for part in partition_of) if instance.partition_of_warp is None else (),
        () if machine.fixed_uses else tuple(uses),
    )


def _crews(instance: Instance, spread: WarpSpread) -> list[list[int]]:
    """For every partition its warps in their order."""
    if (fixed := instance.partition_of_warp) is not None:
        return [[warp for warp, own in enumerate(fixed) if own == part] for part in range(len(spread))]
    first = list(accumulate((group.warps for group in instance.groups), initial=0))
    crews: list[list[int]] = []
    for content in spread:
        crews.append([warp for at, count in zip(first, content, strict=False) for warp in range(at, at + count)])
        first = [at + count for at, count in zip(first, content, strict=False)]
    return crews


def only_latencies(machine: Machine, program: Program, path: Sequence[int]) -> tuple[int, ...]:
    """Return the latencies on a path of a warp without barriers, where they leave no choice."""
    least = {unit.name: unit.latency.least for unit in machine.units}
    timings = program.timings
    return tuple(timings[at].latency[0] if timings else least[program.places[at].unit] for at in path)


def only_uses(machine: Machine, program: Program, path: Sequence[int]) -> tuple[tuple[tuple[int, int], ...], ...]:
    """What is held on such a path, where that leaves no choice."""
    held = {unit.name: tuple((0, use.least) for use in unit.uses) for unit in machine.units}
    return tuple(held[program.places[at].unit] for at in path)
