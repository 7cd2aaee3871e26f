"""The worst case as a constraint programme: one boolean "done by cycle t" for every warp, place and cycle.

Glossary: warps w, places p and q, cycles t = 1..T; all of these are literals.

* `done[w, p, t]`: warp w has issued place p by cycle t (so at t = 0 it is false);
* `over[w, p, t]`: its latency has passed by the end of cycle t, so that w may go on in cycle t + 1. With a latency of l
  cycles that is done[w, p, t - l + 1]; where the machine leaves a choice, a variable;
* `visits[w, p]`: the path of w goes through p; `takes[w, p, q]`: it goes from p to q, `begins[w, p]`: it begins at p;
* `full[X, t]`: all ports of class X are held in cycle t, those included that are taken in it;
* `busy[t]`: as many instructions are issued in cycle t as the issue width allows;
* `unfinished[t]`: some warp has not finished by cycle t; the makespan is 1 plus the number of such cycles.

A string has one path, so its visits and takes are constants. T must be a proven upper bound on the worst case: a
smaller one would cut off the worst schedules without any sign.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import accumulate, chain
from typing import Any, NamedTuple

from makespan.model.feature import PROGRAMS, TIMES
from makespan.model.instance import Instance, requires
from makespan.model.machine import Latency, UnitClass
from makespan.model.program import Program
from makespan.model.schedule import Schedule
from makespan.proof.bounds.conditions import Stopped
from makespan.proof.engines.cpsat.windows import IssueWindow, windows

BoolLiteral = Any
"""A boolean variable, its negation, or a constant: OR-Tools has no common name for them."""

KNOWS = PROGRAMS | TIMES

_PARTS_PER_LOOK = 4096


@dataclass(slots=True)
class CpModel:
    """The programme of `instance` with the horizon T, built by `build`."""

    instance: Instance
    horizon: int
    stop: Callable[[], bool]
    problem: Any
    done: dict[tuple[int, int, int], BoolLiteral] = field(default_factory=dict)
    over: dict[tuple[int, int, int], BoolLiteral] = field(default_factory=dict)
    visits: dict[tuple[int, int], BoolLiteral] = field(default_factory=dict)
    takes: dict[tuple[int, int, int], BoolLiteral] = field(default_factory=dict)
    begins: dict[tuple[int, int], BoolLiteral] = field(default_factory=dict)
    full: dict[tuple[str, int], BoolLiteral] = field(default_factory=dict)
    busy: dict[int, BoolLiteral] = field(default_factory=dict)
    late: dict[tuple[int, int], BoolLiteral] = field(default_factory=dict)
    unfinished: dict[int, BoolLiteral] = field(default_factory=dict)
    parts: int = 0

    @property
    def cycles(self) -> range:
        """Return the cycles, from 1."""
        return range(1, self.horizon + 1)

    def warps(self) -> Iterator[tuple[int, Program]]:
        """Return the warps with their programs."""
        return enumerate(self.instance.programs())

    def chosen(self) -> Iterator[tuple[int, int, Latency]]:
        """Yield the warps and places whose latency the adversary chooses, with its range."""
        ranges = {u.name: u.latency for u in self.instance.machine.units if u.latency.least < u.latency.most}
        for w, program in self.warps() if ranges else ():
            for p, (unit, _) in enumerate(program.places):
                if unit in ranges:
                    yield w, p, ranges[unit]

    def literal(self, name: str, *index: object) -> BoolLiteral:
        """Return a new boolean variable."""
        self._look()
        return self.problem.new_bool_var("_".join(map(str, (name, *index))))

    def _look(self) -> None:
        self.parts += 1
        if self.parts % _PARTS_PER_LOOK == 0 and self.stop():
            raise Stopped

    def clause(self, *literals: BoolLiteral) -> None:
        """Require that at least one of the literals is true."""
        self._look()
        if not any(literal is True for literal in literals):
            self.problem.add_bool_or([literal for literal in literals if literal is not False])

    def schedule(self, value: Callable[[BoolLiteral], int]) -> Schedule:
        """Return the schedule that the values of the variables say."""
        cycles: list[list[int]] = [[] for _ in self.cycles]
        paths, latencies, length = [], [], 0

        def first(known: dict[tuple[int, int, int], BoolLiteral], w: int, p: int) -> int:
            return next(t for t in self.cycles if _is_true(known[w, p, t], value))

        for w, program in self.warps():
            path = [p for p in range(program.end) if _is_true(self.visits[w, p], value)]
            issued, passed = [first(self.done, w, p) for p in path], [first(self.over, w, p) for p in path]
            for t in issued:
                cycles[t - 1].append(w)
            paths.append(tuple(path))
            latencies.append(tuple(end - begin + 1 for begin, end in zip(issued, passed, strict=True)))
            length = max(length, passed[-1])
        choice = not self.instance.machine.fixed_latencies
        return Schedule(tuple(map(tuple, cycles[:length])), tuple(paths), tuple(latencies) if choice else ())


def booleans(instance: Instance, horizon: int) -> int:
    """Return about how many booleans the model has; building and solving it takes time and memory in proportion."""
    each = {u.name: 1 if u.latency.least == u.latency.most else 2 for u in instance.machine.units}
    places = (group.warps * sum(each[place.unit] for place in group.program.places) for group in instance.groups)
    return sum(places) * horizon


@requires(KNOWS, "CP-SAT")
def build(
    instance: Instance, horizon: int, *, hint: Schedule | None = None, stop: Callable[[], bool] = lambda: False
) -> CpModel:
    """Return the whole model, with a schedule of at most `horizon` cycles to start from, if there is one.

    Raises:
        UnsupportedError: the instance has barriers.
        Stopped: `stop` said so.
        BrokenPromiseError: the instructions of a warp do not fit into the horizon.
    """
    from ortools.sat.python import cp_model

    model = CpModel(instance, horizon, stop, cp_model.CpModel())
    _variables(model)
    for family in FAMILIES:
        family(model)
    model.problem.maximize(1 + sum(model.unfinished.values()))
    if hint is not None:
        _hint(model, hint)
    return model


def _variables(m: CpModel) -> None:
    # a constant where the window of a place decides it; warps of a string are numbered by rank
    ranked, units = chain.from_iterable(windows(m.instance, m.horizon)), _units(m)
    for (w, program), window in zip(m.warps(), ranked, strict=True):
        fixed = program.is_chain
        for p, (unit, successors) in enumerate(program.places):
            m.visits[w, p] = fixed or m.literal("visits", w, p)
            for t in range(m.horizon + 1):
                early, late = t < window[p].earliest, t >= window[p].latest
                m.done[w, p, t] = not early and (m.visits[w, p] if late else m.literal("done", w, p, t))
            _latency(m, w, p, window[p], units[unit].latency)
            for q in successors:
                m.takes[w, p, q] = fixed or m.literal("takes", w, p, q)
        for p in program.starts:
            m.begins[w, p] = fixed or m.literal("begins", w, p)
    for unit, t in ((unit, t) for unit in m.instance.machine.capacities for t in m.cycles):
        m.full[unit, t] = m.literal("full", unit, t)
    for t in m.cycles if m.instance.machine.issue_width is not None else ():
        m.busy[t] = m.literal("busy", t)
    for t in m.cycles[:-1]:
        m.unfinished[t] = m.literal("unfinished", t)
        for w, program in m.warps():
            m.late[w, t] = _not(m.over[w, program.end - 1, t]) if program.is_chain else m.literal("late", w, t)


def _latency(m: CpModel, w: int, p: int, window: IssueWindow, latency: Latency) -> None:
    """Say when the latency of a place is over: a while after it is done or, where that is a choice, by a literal."""
    for t in range(m.horizon + 1):
        if latency.least == latency.most:
            m.over[w, p, t] = t >= latency.least and m.done[w, p, t - latency.least + 1]
            continue
        early = t < window.earliest + latency.least - 1
        late = t >= min(m.horizon, window.latest + latency.most - 1)
        m.over[w, p, t] = not early and (m.visits[w, p] if late else m.literal("over", w, p, t))


def _units(m: CpModel) -> dict[str, UnitClass]:
    return {unit.name: unit for unit in m.instance.machine.units}


# --- constraints ----------------------------------------------------------------------------------------------


def done_for_good(m: CpModel) -> None:
    """Require that what is done stays done: done[w,p,t-1] implies done[w,p,t]."""
    for w, program in m.warps():
        for p in range(program.end):
            for t in m.cycles:
                m.clause(_not(m.done[w, p, t - 1]), m.done[w, p, t])


def one_path(m: CpModel) -> None:
    """Require that a warp begins once, leaves every place that it visits by one edge, and visits nothing else."""
    for w, program in m.warps():
        if program.is_chain:
            continue
        m.problem.add_exactly_one([m.begins[w, p] for p in program.starts])
        arriving: dict[int, list[BoolLiteral]] = {p: [m.begins[w, p]] for p in program.starts}
        for p, (_, successors) in enumerate(program.places):
            for q in successors:
                arriving.setdefault(q, []).append(m.takes[w, p, q])
        for p, (_, successors) in enumerate(program.places):
            m.problem.add(sum(m.takes[w, p, q] for q in successors) == m.visits[w, p])
            m.problem.add(sum(arriving[p]) == m.visits[w, p])


def latencies(m: CpModel) -> None:
    """Require that a latency in l .. h is over for good, from l to h cycles after its place."""
    for w, p, latency in m.chosen():
        for t in m.cycles:
            m.clause(_not(m.over[w, p, t - 1]), m.over[w, p, t])
            m.clause(_not(m.over[w, p, t]), t >= latency.least and m.done[w, p, t - latency.least + 1])
            m.clause(t < latency.most or _not(m.done[w, p, t - latency.most + 1]), m.over[w, p, t])


def program_order(m: CpModel) -> None:
    """Require that q follows p once p is over: takes[w,p,q] and done[w,q,t] imply over[w,p,t-1]."""
    for (w, p, q), taken in m.takes.items():
        for t in m.cycles:
            if (w, q, t) in m.done:
                m.clause(_not(taken), _not(m.done[w, q, t]), m.over[w, p, t - 1])


def work_conservation(m: CpModel) -> None:
    """Require that a ready instruction waits only while its class is full or all issue slots are taken.

    takes[w,p,q], over[w,p,t-1] and not done[w,q,t] imply full[class of q, t] or busy[t]; where a warp begins, it is
    ready at once.
    """
    programs = list(m.instance.programs())
    for (w, p, q), taken in m.takes.items():
        for t in m.cycles if q < programs[w].end else ():
            ready, unit = m.over[w, p, t - 1], programs[w].places[q].unit
            m.clause(_not(taken), _not(ready), m.done[w, q, t], m.full[unit, t], m.busy.get(t, False))
    for (w, p), begun in m.begins.items():
        for t in m.cycles:
            m.clause(_not(begun), m.done[w, p, t], m.full[programs[w].places[p].unit, t], m.busy.get(t, False))


def capacity(m: CpModel) -> None:
    """Require that class X issues at most sigma_X instructions in any i_X cycles, no fewer up to t where full[X,t]."""
    for name, unit in _units(m).items():
        places = [(w, p) for w, program in m.warps() for p, place in enumerate(program.places) if place.unit == name]
        for t in m.cycles:
            _at_most(m, places, max(0, t - unit.interval), t, unit.capacity, m.full[name, t])


def issue_width(m: CpModel) -> None:
    """Require that a cycle issues no more instructions than the issue width, and no fewer where busy[t]."""
    if (width := m.instance.machine.issue_width) is None:
        return
    places = [(w, p) for w, program in m.warps() for p in range(program.end)]
    for t in m.cycles:
        _at_most(m, places, t - 1, t, width, m.busy[t])


def _at_most(
    m: CpModel, places: list[tuple[int, int]], after: int, until: int, most: int, reached: BoolLiteral
) -> None:
    """Require that at most `most` of the places are issued in these cycles, and no fewer where `reached`."""
    issued = sum(m.done[w, p, until] for w, p in places) - sum(m.done[w, p, after] for w, p in places)
    if isinstance(issued, int):
        m.problem.add(reached == int(issued >= most))
        if issued > most:  # the horizon is too small for that
            m.problem.add_bool_or([])
        return
    m.problem.add(issued <= most)
    m.problem.add(issued >= most).only_enforce_if(reached)  # one way is enough: nothing asks for it to be false


def unfinished_warps(m: CpModel) -> None:
    """Require of unfinished[t] a warp that is late, and of late[w,t] that no last place of its path is over by t."""
    firsts = list(accumulate((group.warps for group in m.instance.groups), initial=0))
    for t in m.unfinished:
        m.clause(_not(m.unfinished[t]), *(m.late[after - 1, t] for after in firsts[1:]))
        for w, program in m.warps():
            for p, (_, successors) in enumerate(program.places):
                if program.end in successors:
                    m.clause(_not(m.late[w, t]), _not(m.takes[w, p, program.end]), _not(m.over[w, p, t]))


def equal_warps(m: CpModel) -> None:
    """Require that equal warps change names where one would pass another, so the last of a group finishes last.

    With one path, w is never behind w+1 at any place, nor is its latency there over later; with choices, w does not
    finish after w+1.
    """
    number = m.instance.group_of_warp()
    alike = {w for w in range(len(number) - 1) if number[w + 1] == number[w]}
    for w, program in m.warps():
        if w not in alike:
            continue
        for t in m.cycles[:-1]:
            for p in range(program.end) if program.is_chain else ():
                m.clause(m.done[w, p, t], _not(m.done[w + 1, p, t]))
            if not program.is_chain:
                m.clause(_not(m.late[w, t]), m.late[w + 1, t])
    chains = {w for w, program in m.warps() if program.is_chain}
    for w, p, _ in m.chosen():
        for t in m.cycles[:-1] if w in alike & chains else ():
            m.clause(m.over[w, p, t], _not(m.over[w + 1, p, t]))


FAMILIES: tuple[Callable[[CpModel], None], ...] = (
    done_for_good,
    one_path,
    latencies,
    program_order,
    work_conservation,
    capacity,
    issue_width,
    unfinished_warps,
    equal_warps,
)
"""The families of constraints."""


def _is_true(literal: BoolLiteral, value: Callable[[BoolLiteral], int]) -> bool:
    return literal if isinstance(literal, bool) else bool(value(literal))


def _not(literal: BoolLiteral) -> BoolLiteral:
    return not literal if isinstance(literal, bool) else ~literal


# --- a schedule to start from ---------------------------------------------------------------------------------


def _hint(m: CpModel, schedule: Schedule) -> None:
    runs = _sort_equal_warps(m.instance, _courses(m.instance, schedule))
    choice = {(w, p) for w, p, _ in m.chosen()}
    for (w, program), (path, done, over) in zip(m.warps(), runs, strict=True):
        at, passed = dict(zip(path, done, strict=True)), dict(zip(path, over, strict=True))
        for p, (_, successors) in enumerate(program.places):
            for t in m.cycles:  # at the horizon this is visits[w, p], too
                if t == m.horizon or m.done[w, p, t] is not m.visits[w, p]:
                    _suggest(m, m.done[w, p, t], p in at and at[p] <= t)
                if (w, p) in choice and m.over[w, p, t] is not m.visits[w, p]:
                    _suggest(m, m.over[w, p, t], p in at and passed[p] <= t)
            for q in successors:
                after = path[path.index(p) + 1 : path.index(p) + 2] if p in at else ()
                _suggest(m, m.takes[w, p, q], p in at and q == (*after, program.end)[0])
        for p in program.starts:
            _suggest(m, m.begins[w, p], path[0] == p)
        for t in m.unfinished:
            if not program.is_chain:
                _suggest(m, m.late[w, t], over[-1] > t)
    _hint_contention(m, schedule)
    for t, literal in m.unfinished.items():
        _suggest(m, literal, t < schedule.makespan)


def _hint_contention(m: CpModel, schedule: Schedule) -> None:
    programs, units = list(m.instance.programs()), _units(m)
    held: Counter[tuple[str, int]] = Counter()
    issued: Counter[int] = Counter()
    for cycle, w, p in schedule.ops(m.instance):
        unit = units[programs[w].places[p].unit]
        held.update((unit.name, cycle + 1 + later) for later in range(unit.interval))
        issued[cycle + 1] += 1
    for (name, t), literal in m.full.items():
        _suggest(m, literal, held[name, t] >= units[name].capacity)
    for t, literal in m.busy.items():
        _suggest(m, literal, issued[t] == m.instance.machine.issue_width)


class _WarpCourse(NamedTuple):
    """The path of a warp, and for every place on it the cycles, from 1, by which it is done and over."""

    path: tuple[int, ...]
    done: Sequence[int]
    over: Sequence[int]


def _courses(instance: Instance, schedule: Schedule) -> list[_WarpCourse]:
    done: list[list[int]] = [[] for _ in schedule.paths]
    for cycle, warp, _ in schedule.ops(instance):
        done[warp].append(cycle + 1)
    fixed = {unit.name: unit.latency.least for unit in instance.machine.units}
    found = []
    for w, (program, path) in enumerate(zip(instance.programs(), schedule.paths, strict=True)):
        own = schedule.latencies[w] if schedule.latencies else [fixed[program.places[p].unit] for p in path]
        over = [cycle + latency - 1 for cycle, latency in zip(done[w], own, strict=True)]
        found.append(_WarpCourse(path, done[w], over))
    return found


def _sort_equal_warps(instance: Instance, runs: list[_WarpCourse]) -> list[_WarpCourse]:
    """Return equal warps in order: of a string, the k-th to execute a place is warp k there; else by their ends."""
    ordered: list[_WarpCourse] = []
    for group in instance.groups:
        own = runs[len(ordered) : len(ordered) + group.warps]
        if group.program.is_chain:
            done = [sorted(cycles) for cycles in zip(*(run.done for run in own), strict=True)]
            over = [sorted(cycles) for cycles in zip(*(run.over for run in own), strict=True)]
            ordered += [
                _WarpCourse(own[0].path, [rank[k] for rank in done], [rank[k] for rank in over])
                for k in range(group.warps)
            ]
        else:
            ordered += sorted(own, key=lambda run: run.over[-1])
    return ordered


def _suggest(m: CpModel, literal: BoolLiteral, value: bool) -> None:
    if not isinstance(literal, bool):
        m.problem.add_hint(literal, value)
