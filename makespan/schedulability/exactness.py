"""Verdicts made sharper by walks through all schedules, on ever finer grids."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from fractions import Fraction
from itertools import count
from math import gcd

from makespan.errors import BrokenPromiseError
from makespan.schedulability.chains import sampled_latency
from makespan.schedulability.exploration import MOST_STATES, Explored, obstacle, parts, walked
from makespan.schedulability.task import Activation, Kind, Task
from makespan.schedulability.units import shown_time
from makespan.schedulability.verdict import Answer, ChainVerdict, TaskVerdict, Verdict
from makespan.schedulability.witness import late_job

_COARSEST = 8
"""Steps of the shortest period on the first grid; each following one has twice as many."""


def sharpened(
    verdict: Verdict,
    *,
    tick: Fraction,
    most_states: int = MOST_STATES,
    progress: Callable[[str], None] = lambda _: None,
) -> Iterator[Verdict]:
    """The verdict with what walks find, as it becomes known: bounds on grids, then the responses themselves.

    Tasks that share nothing are walked through by themselves. A grid of one tick gives exact responses, if no task has
    an offset; a coarser one bounds them, in continuous time as well. A task that is late by ticks is refuted by a
    simulated schedule.

    Args:
        tick: seconds, to say how long steps are.
        most_states: of a walk; finer grids have more, and none is tried after one that has too many.

    Raises:
        BrokenPromiseError: a walk contradicts the verdict.
    """
    task_set = verdict.tasks_analysed
    for tasks in parts(task_set):
        names = ", ".join(task.name for task in tasks)
        said = None
        for grid in grids(tasks):
            if (reason := obstacle(task_set, tasks, grid=grid)) is not None:
                said = reason
                continue
            progress(f"all schedules of {names}, in steps of {_step(grid, tick)}")
            found = walked(task_set, tasks, grid=grid, most_states=most_states)
            if not found.response:
                more = f"more than {most_states} states in steps of {_step(grid, tick)}: {names}"
                said = f"{said}; {more}" if said else more
                break
            said = f"all schedules in steps of {_step(grid, tick)}, {found.states} states: {names}"
            verdict = _merged(verdict, tasks, found, grid, tick)
            yield verdict
            for task in tasks if grid == 1 else ():
                if found.response[task.name] > task.deadline:
                    progress(f"a schedule in which {task.name} is late")
                    if (miss := late_job(task_set, task.name, most_states)) is not None:
                        verdict = verdict.with_miss(miss)
                        yield verdict
        if said is not None:
            verdict = replace(verdict, notes=(*verdict.notes, said))
            yield verdict


def grids(tasks: Sequence[Task]) -> Iterator[int]:
    """The ticks of steps to try, ever fewer: down to what divides all times, and at last a single one.

    >>> from makespan.schedulability.task import one_kernel
    >>> list(grids([one_kernel("t", 6, 100, 100)]))
    [12, 6, 3, 2, 1]
    """
    times = [time for task in tasks for s in task.segments for time in (s.wcet, s.delay)]
    common = gcd(*times, *(time for task in tasks for time in (task.period, task.deadline, task.jitter)))
    least = min(task.period for task in tasks)
    for halvings in count():
        grid = least // (_COARSEST << halvings)
        if grid <= common:
            break
        if not _is_overfull(tasks, grid):
            yield grid
    yield common
    if common > 1:
        yield 1


def _step(grid: int, tick: Fraction) -> str:
    return "a tick" if grid == 1 else shown_time(grid * tick)


def _is_overfull(tasks: Sequence[Task], grid: int) -> bool:
    """Whether rounded times demand more of some resource than there is: then jobs pile up, and nothing is learned."""
    demanded: dict[object, Fraction] = {}
    for task in tasks:
        for segment in task.segments:
            place = task.core if segment.kind is Kind.CPU else (segment.kind, segment.place)
            share = Fraction(-(-segment.wcet // grid), task.period // grid)
            demanded[place] = demanded.get(place, Fraction(0)) + share
    return max(demanded.values()) > 1


def _merged(verdict: Verdict, tasks: Sequence[Task], found: Explored, grid: int, tick: Fraction) -> Verdict:
    is_exact = grid == 1 and all(task.offset is None for task in tasks)
    how = f"exploration of {found.states} states"
    how += ", exact" if is_exact else f" in steps of {_step(grid, tick)}"
    changed = [
        _task(task, verdict, found, how, is_exact=is_exact) if task.task in found.response else task
        for task in verdict.tasks
    ]
    verdict = replace(verdict, tasks=tuple(changed))
    return replace(verdict, chains=tuple(_chain(chain, verdict, found) for chain in verdict.chains))


def _task(known: TaskVerdict, verdict: Verdict, found: Explored, how: str, *, is_exact: bool) -> TaskVerdict:
    ticks = found.response[known.task]
    deadline = verdict.tasks_analysed.by_name[known.task].deadline
    if known.miss is not None and known.miss.completion - known.miss.arrival > ticks:
        raise BrokenPromiseError(f"{known.task} takes longer in a schedule than the {ticks} ticks of all: report it")
    if known.response is not None:
        if (is_exact and ticks > known.response) or (known.is_exact and ticks < known.response):
            was = "exact response" if known.is_exact else "bound"
            raise BrokenPromiseError(
                f"{known.task} may take {ticks} ticks, and the {was} was {known.response}: trust neither, and report it"
            )
        if not is_exact and ticks >= known.response:
            return known
    answer = Answer.YES if ticks <= deadline else Answer.UNKNOWN
    return replace(
        known,
        response=ticks,
        answer=known.answer if known.answer is Answer.NO else answer,
        parts=known.parts if ticks == known.response else (("in all schedules", ticks),),
        is_exact=is_exact,
        method=how,
    )


def _chain(known: ChainVerdict, verdict: Verdict, found: Explored) -> ChainVerdict:
    """The chain with the best that is known of its tasks."""
    task_set = verdict.tasks_analysed
    chain = next(chain for chain in task_set.chains if chain.name == known.chain)
    tasks = [task_set.by_name[name] for name in chain.tasks]
    if chain.activation is Activation.DATA:
        reaction = found.end.get(chain.tasks[-1])
        age = None if reaction is None or tasks[0].offset is None else reaction + tasks[0].period
        method = f"exploration of {found.states} states"
    else:
        responses = {task.task: task.response for task in verdict.tasks}
        proven = [response for name in chain.tasks if (response := responses[name]) is not None]
        reaction = sampled_latency(tasks, proven) if len(proven) == len(tasks) else None
        age, method = reaction, known.method
    if reaction is None or (known.reaction is not None and reaction >= known.reaction):
        return known
    is_met = chain.deadline is None or reaction <= chain.deadline
    answer = Answer.YES if is_met else Answer.UNKNOWN
    return replace(known, reaction=reaction, age=age, answer=answer, method=method)
