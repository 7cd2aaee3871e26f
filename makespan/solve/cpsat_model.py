"""The worst case as a constraint programme: one boolean "done by cycle t" for every warp, place and cycle.

Glossary: warps w, places p and q, cycles t = 1..T; all of these are literals.

* `done[w, p, t]`: warp w has executed place p by cycle t (so at t = 0 it is false);
* `visits[w, p]`: the path of w goes through p; `takes[w, p, q]`: it goes from p to q, `begins[w, p]`: it begins at p;
* `full[X, t]`: all units of class X are used in cycle t;
* `unfinished[t]`: some warp has not finished by cycle t; the makespan is 1 plus the number of such cycles.

A string has one path, so its visits and takes are constants. T must be a proven upper bound on the worst case: a
smaller one would cut off the worst schedules without any sign.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import accumulate, chain
from typing import Any

from makespan.instance import Instance
from makespan.program import Program
from makespan.schedule import Schedule
from makespan.solve.cpsat_windows import windows

Literal = Any
"""A boolean variable, its negation, or a constant: OR-Tools has no common name for them."""

_CLAUSES_PER_LOOK = 4096


class Stopped(Exception):
    """Building was stopped."""


@dataclass(slots=True)
class Model:
    """The programme of `instance` with the horizon T, built by `build`."""

    instance: Instance
    horizon: int
    stop: Callable[[], bool]
    problem: Any
    done: dict[tuple[int, int, int], Literal] = field(default_factory=dict)
    visits: dict[tuple[int, int], Literal] = field(default_factory=dict)
    takes: dict[tuple[int, int, int], Literal] = field(default_factory=dict)
    begins: dict[tuple[int, int], Literal] = field(default_factory=dict)
    full: dict[tuple[str, int], Literal] = field(default_factory=dict)
    late: dict[tuple[int, int], Literal] = field(default_factory=dict)
    unfinished: dict[int, Literal] = field(default_factory=dict)
    clauses: int = 0

    @property
    def cycles(self) -> range:
        """The cycles, from 1."""
        return range(1, self.horizon + 1)

    def warps(self) -> Iterator[tuple[int, Program]]:
        """The warps with their programs."""
        return enumerate(self.instance.programs())

    def literal(self, name: str, *index: object) -> Literal:
        """A new boolean variable."""
        return self.problem.new_bool_var("_".join(map(str, (name, *index))))

    def clause(self, *literals: Literal) -> None:
        """At least one of the literals is true."""
        self.clauses += 1
        if self.clauses % _CLAUSES_PER_LOOK == 0 and self.stop():
            raise Stopped
        if not any(literal is True for literal in literals):
            self.problem.add_bool_or([literal for literal in literals if literal is not False])

    def schedule(self, value: Callable[[Literal], int]) -> Schedule:
        """The schedule that the values of the variables say."""
        cycles: list[list[int]] = [[] for _ in self.cycles]
        paths = []
        for w, program in self.warps():
            path = [p for p in range(program.end) if _is_true(self.visits[w, p], value)]
            for p in path:
                cycles[next(t for t in self.cycles if _is_true(self.done[w, p, t], value)) - 1].append(w)
            paths.append(tuple(path))
        length = max(t for t, warps in enumerate(cycles, 1) if warps)
        return Schedule(tuple(map(tuple, cycles[:length])), tuple(paths))


def booleans(instance: Instance, horizon: int) -> int:
    """About how many booleans the model has; building and solving it takes time and memory in proportion."""
    return sum(group.warps * group.program.end for group in instance.groups) * horizon


def build(
    instance: Instance, horizon: int, *, hint: Schedule | None = None, stop: Callable[[], bool] = lambda: False
) -> Model:
    """The whole model, with a schedule of at most `horizon` cycles to start from, if there is one.

    Raises:
        Stopped: `stop` said so.
        BrokenPromiseError: the instructions of a warp do not fit into the horizon.
    """
    from ortools.sat.python import cp_model

    model = Model(instance, horizon, stop, cp_model.CpModel())
    _variables(model)
    for family in FAMILIES:
        family(model)
    model.problem.maximize(1 + sum(model.unfinished.values()))
    if hint is not None:
        _hint(model, hint)
    return model


def _variables(m: Model) -> None:
    """Every literal, constant where the time window of its place decides it; warps of a string are numbered by rank."""
    ranked = chain.from_iterable(windows(m.instance, m.horizon))
    for (w, program), window in zip(m.warps(), ranked, strict=True):
        fixed = program.is_chain
        for p, (_, successors) in enumerate(program.places):
            m.visits[w, p] = fixed or m.literal("visits", w, p)
            for t in range(m.horizon + 1):
                early, late = t < window[p].earliest, t >= window[p].latest
                m.done[w, p, t] = not early and (m.visits[w, p] if late else m.literal("done", w, p, t))
            for q in successors:
                m.takes[w, p, q] = fixed or m.literal("takes", w, p, q)
        for p in program.starts:
            m.begins[w, p] = fixed or m.literal("begins", w, p)
    for unit, t in ((unit, t) for unit in m.instance.machine.capacities for t in m.cycles):
        m.full[unit, t] = m.literal("full", unit, t)
    for t in m.cycles[:-1]:
        m.unfinished[t] = m.literal("unfinished", t)
        for w, program in m.warps():
            m.late[w, t] = _not(m.done[w, program.end - 1, t]) if program.is_chain else m.literal("late", w, t)


# --- constraints ----------------------------------------------------------------------------------------------


def done_for_good(m: Model) -> None:
    """What is done stays done: done[w,p,t-1] implies done[w,p,t]."""
    for w, program in m.warps():
        for p in range(program.end):
            for t in m.cycles:
                m.clause(_not(m.done[w, p, t - 1]), m.done[w, p, t])


def one_path(m: Model) -> None:
    """A warp begins once, leaves every place that it visits by one edge, and visits nothing else."""
    for w, program in m.warps():
        if program.is_chain:
            continue
        m.problem.add_exactly_one([m.begins[w, p] for p in program.starts])
        arriving: dict[int, list[Literal]] = {p: [m.begins[w, p]] for p in program.starts}
        for p, (_, successors) in enumerate(program.places):
            for q in successors:
                arriving.setdefault(q, []).append(m.takes[w, p, q])
        for p, (_, successors) in enumerate(program.places):
            m.problem.add(sum(m.takes[w, p, q] for q in successors) == m.visits[w, p])
            m.problem.add(sum(arriving[p]) == m.visits[w, p])


def program_order(m: Model) -> None:
    """Along the path, q executes in a later cycle than p: takes[w,p,q] and done[w,q,t] imply done[w,p,t-1]."""
    for (w, p, q), taken in m.takes.items():
        for t in m.cycles:
            if (w, q, t) in m.done:
                m.clause(_not(taken), _not(m.done[w, q, t]), m.done[w, p, t - 1])


def work_conservation(m: Model) -> None:
    """A ready instruction waits only while its class is full.

    takes[w,p,q], done[w,p,t-1] and not done[w,q,t] imply full[class of q, t]; where a warp begins, it is ready at once.
    """
    programs = list(m.instance.programs())
    for (w, p, q), taken in m.takes.items():
        for t in m.cycles if q < programs[w].end else ():
            ready = m.done[w, p, t - 1]
            m.clause(_not(taken), _not(ready), m.done[w, q, t], m.full[programs[w].places[q].unit, t])
    for (w, p), begun in m.begins.items():
        for t in m.cycles:
            m.clause(_not(begun), m.done[w, p, t], m.full[programs[w].places[p].unit, t])


def capacity(m: Model) -> None:
    """At most sigma_X instructions of class X a cycle, and no fewer where full[X,t]."""
    for unit, sigma in m.instance.machine.capacities.items():
        places = [(w, p) for w, program in m.warps() for p, place in enumerate(program.places) if place.unit == unit]
        for t in m.cycles:
            used = sum(m.done[w, p, t] for w, p in places) - sum(m.done[w, p, t - 1] for w, p in places)
            if isinstance(used, int):
                m.problem.add(m.full[unit, t] == int(used >= sigma))
                continue
            m.problem.add(used <= sigma)
            m.problem.add(used >= sigma).only_enforce_if(m.full[unit, t])


def unfinished_warps(m: Model) -> None:
    """unfinished[t] needs a warp that is late, and late[w,t] that no last place of its path is done by t."""
    firsts = list(accumulate((group.warps for group in m.instance.groups), initial=0))
    for t in m.unfinished:
        m.clause(_not(m.unfinished[t]), *(m.late[after - 1, t] for after in firsts[1:]))
        for w, program in m.warps():
            for p, (_, successors) in enumerate(program.places):
                if program.end in successors:
                    m.clause(_not(m.late[w, t]), _not(m.takes[w, p, program.end]), _not(m.done[w, p, t]))


def equal_warps(m: Model) -> None:
    """Equal warps change names where one would pass another, so the last of a group finishes last.

    With one path, w is never behind w+1 at any place; with choices, w does not finish after w+1.
    """
    number = m.instance.group_of_warp()
    for w, program in m.warps():
        if w + 1 == len(number) or number[w + 1] != number[w]:
            continue
        for t in m.cycles[:-1]:
            for p in range(program.end) if program.is_chain else ():
                m.clause(m.done[w, p, t], _not(m.done[w + 1, p, t]))
            if not program.is_chain:
                m.clause(_not(m.late[w, t]), m.late[w + 1, t])


FAMILIES: tuple[Callable[[Model], None], ...] = (
    done_for_good,
    one_path,
    program_order,
    work_conservation,
    capacity,
    unfinished_warps,
    equal_warps,
)
"""The families of constraints."""


def _is_true(literal: Literal, value: Callable[[Literal], int]) -> bool:
    return literal if isinstance(literal, bool) else bool(value(literal))


def _not(literal: Literal) -> Literal:
    return not literal if isinstance(literal, bool) else ~literal


# --- a schedule to start from ---------------------------------------------------------------------------------


def _hint(m: Model, schedule: Schedule) -> None:
    """Every variable that the schedule decides, with its warps named as `equal_warps` demands."""
    done = _sorted(m.instance, _done(m.instance, schedule))
    used: dict[tuple[str, int], int] = {}
    for w, program in m.warps():
        path, times = done[w]
        at = dict(zip(path, times, strict=True))
        for p, (unit, successors) in enumerate(program.places):
            for t in m.cycles:  # at the horizon this is visits[w, p], too
                if t == m.horizon or m.done[w, p, t] is not m.visits[w, p]:
                    _suggest(m, m.done[w, p, t], p in at and at[p] <= t)
            for q in successors:
                after = path[path.index(p) + 1 : path.index(p) + 2] if p in at else ()
                _suggest(m, m.takes[w, p, q], p in at and q == (*after, program.end)[0])
            if p in at:
                used[unit, at[p]] = used.get((unit, at[p]), 0) + 1
        for p in program.starts:
            _suggest(m, m.begins[w, p], path[0] == p)
        for t in m.unfinished:
            if not program.is_chain:
                _suggest(m, m.late[w, t], times[-1] > t)
    for (unit, t), literal in m.full.items():
        _suggest(m, literal, used.get((unit, t), 0) >= m.instance.machine.capacities[unit])
    for t, literal in m.unfinished.items():
        _suggest(m, literal, t < schedule.makespan)


Done = list[tuple[tuple[int, ...], list[int]]]
"""For every warp its path, and the cycle, from 1, of every place on it."""


def _done(instance: Instance, schedule: Schedule) -> Done:
    times: list[list[int]] = [[] for _ in schedule.paths]
    for cycle, warp, _ in schedule.ops(instance):
        times[warp].append(cycle + 1)
    return list(zip(schedule.paths, times, strict=True))


def _sorted(instance: Instance, done: Done) -> Done:
    """Equal warps in order: of a string, the k-th to execute a place is warp k there; otherwise by their ends."""
    ordered: Done = []
    for group in instance.groups:
        own = done[len(ordered) : len(ordered) + group.warps]
        if group.program.is_chain:
            ranks = [sorted(times) for times in zip(*(times for _, times in own), strict=True)]
            ordered += [(own[0][0], [rank[k] for rank in ranks]) for k in range(group.warps)]
        else:
            ordered += sorted(own, key=lambda one: one[1][-1])
    return ordered


def _suggest(m: Model, literal: Literal, value: bool) -> None:
    if not isinstance(literal, bool):
        m.problem.add_hint(literal, value)
