"""The worst case as a constraint programme that counts equal warps: its size does not depend on their number.

Glossary: groups g of equal warps, places p and q, cycles t = 1..T; integers from 0 to the warps of the group, unless
said otherwise.

* `passed[g, p, q, t]`: how many warps have executed p by cycle t and gone on to q; `begins[g, p]`: how many begin at p;
* arrived, departed: how many have come to p by cycle t, how many have executed it; the difference stands at p;
* `full[X, t]`: all units of class X are used in cycle t (a boolean);
* `unfinished[t]`: some warp has not finished by cycle t (a boolean); the makespan is 1 plus the number of such cycles.

T must be a proven upper bound on the worst case: a smaller one would cut off the worst schedules without any sign.
Sums over time instead of "moves in cycle t": with them most rows have two terms, and CP-SAT is many times faster.
"""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from makespan.instance import Instance
from makespan.program import Program
from makespan.schedule import Move, Schedule
from makespan.solve.cpsat_model import Stopped
from makespan.solve.cpsat_windows import windows

Count = Any
"""An integer variable, a sum of some, or a constant: OR-Tools has no common name for them."""

_ROWS_PER_LOOK = 4096


@dataclass(slots=True)
class Model:
    """The programme of `instance` with the horizon T, built by `build`."""

    instance: Instance
    horizon: int
    stop: Callable[[], bool]
    problem: Any
    passed: dict[tuple[int, int, int, int], Count] = field(default_factory=dict)
    begins: dict[tuple[int, int], Count] = field(default_factory=dict)
    full: dict[tuple[str, int], Any] = field(default_factory=dict)
    unfinished: dict[int, Any] = field(default_factory=dict)
    rows: int = 0
    preceding: dict[tuple[int, int], list[int]] = field(default_factory=dict)

    @property
    def cycles(self) -> range:
        """The cycles, from 1."""
        return range(1, self.horizon + 1)

    def programs(self) -> list[Program]:
        """The program of every group."""
        return [group.program for group in self.instance.groups]

    def arrived(self, g: int, q: int, t: int) -> Count:
        """How many warps of the group have come to q by the end of cycle t."""
        return self.begins.get((g, q), 0) + sum(self.passed[g, p, q, t] for p in self.preceding[g, q])

    def departed(self, g: int, p: int, t: int) -> Count:
        """How many warps of the group have executed p by the end of cycle t."""
        return sum(self.passed[g, p, q, t] for q in self.instance.groups[g].program.places[p].successors)

    def used(self, unit: str, t: int) -> Count:
        """How many units of the class are used in cycle t."""
        places = [(g, p) for g, program in enumerate(self.programs()) for p in _of_class(program, unit)]
        return sum(self.departed(g, p, t) for g, p in places) - sum(self.departed(g, p, t - 1) for g, p in places)

    def row(self, holds: Any, where: Any = None) -> None:
        """A linear constraint, or a constant; if `where` is given, it holds only where that literal is true."""
        self.rows += 1
        if self.rows % _ROWS_PER_LOOK == 0 and self.stop():
            raise Stopped
        if holds is not True:
            constraint = self.problem.add(holds)
            if where is not None:
                constraint.only_enforce_if(where)

    def schedule(self, value: Callable[[Any], int]) -> Schedule:
        """The schedule that the values of the variables say, with names given to the warps."""

        def number(count: Count) -> int:
            return count if isinstance(count, int) else value(count)

        edges = [key[:3] for key in self.passed if key[3] == 0]
        cycles: list[list[Move]] = []
        for t in self.cycles:
            crossed = {e: number(self.passed[*e, t]) - number(self.passed[*e, t - 1]) for e in edges}
            if moves := [Move(*edge, warps) for edge, warps in crossed.items() if warps]:  # none after the end
                cycles.append(moves)
        starts = [{p: number(self.begins[g, p]) for p in one.starts} for g, one in enumerate(self.programs())]
        return Schedule.from_moves(self.instance, starts, cycles)


def _of_class(program: Program, unit: str) -> list[int]:
    return [p for p, place in enumerate(program.places) if place.unit == unit]


def variables(instance: Instance, horizon: int) -> int:
    """About how many integer variables the model has."""
    edges = (len(place.successors) for group in instance.groups for place in group.program.places)
    return sum(edges) * horizon


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
    """Every count between the ranks that must and those that can have executed the place by then."""
    for g, (group, ranks) in enumerate(zip(m.instance.groups, windows(m.instance, m.horizon), strict=True)):
        program = group.program
        for p in program.starts:
            m.begins[g, p] = (
                group.warps if program.is_chain else m.problem.new_int_var(0, group.warps, f"begins_{g}_{p}")
            )
        for q in range(program.end + 1):
            m.preceding[g, q] = [p for p in range(q) if q in program.places[p].successors]
        for p, (_, successors) in enumerate(program.places):
            for t in range(m.horizon + 1):
                most = sum(own[p].earliest <= t for own in ranks)
                least = sum(own[p].latest <= t for own in ranks) if program.is_chain else 0
                for q in successors:
                    name = f"passed_{g}_{p}_{q}_{t}"
                    m.passed[g, p, q, t] = most if least == most else m.problem.new_int_var(least, most, name)
    for t in m.cycles:
        for unit in m.instance.machine.capacities:
            m.full[unit, t] = m.problem.new_bool_var(f"full_{unit}_{t}")
        if t < m.horizon:
            m.unfinished[t] = m.problem.new_bool_var(f"unfinished_{t}")


# --- constraints ----------------------------------------------------------------------------------------------


def passed_for_good(m: Model) -> None:
    """Nobody comes back: passed[g,p,q,t-1] <= passed[g,p,q,t]."""
    for (g, p, q, t), count in m.passed.items():
        if t > 0:
            m.row(m.passed[g, p, q, t - 1] <= count)


def everybody(m: Model) -> None:
    """All warps of a group begin, and all have finished by T."""
    for g, (group, program) in enumerate(zip(m.instance.groups, m.programs(), strict=True)):
        m.row(sum(m.begins[g, p] for p in program.starts) == group.warps)
        m.row(m.arrived(g, program.end, m.horizon) == group.warps)


def program_order(m: Model) -> None:
    """To execute p in cycle t, a warp must have come to it before: departed(p,t) <= arrived(p,t-1)."""
    for g, program in enumerate(m.programs()):
        for p in range(program.end):
            for t in m.cycles:
                m.row(m.departed(g, p, t) <= m.arrived(g, p, t - 1))


def work_conservation(m: Model) -> None:
    """A warp that is ready waits only while its class is full: otherwise departed(p,t) >= arrived(p,t-1)."""
    for g, program in enumerate(m.programs()):
        for p, (unit, _) in enumerate(program.places):
            for t in m.cycles:
                m.row(m.departed(g, p, t) >= m.arrived(g, p, t - 1), ~m.full[unit, t])


def capacity(m: Model) -> None:
    """At most sigma_X instructions of class X a cycle, and no fewer where full[X,t]."""
    for unit, sigma in m.instance.machine.capacities.items():
        for t in m.cycles:
            used = m.used(unit, t)
            m.row(used <= sigma)
            m.row(used >= sigma, m.full[unit, t])


def unfinished_warps(m: Model) -> None:
    """unfinished[t] needs a warp that has not come to the end by cycle t."""
    for t, literal in m.unfinished.items():
        finished = sum(m.arrived(g, program.end, t) for g, program in enumerate(m.programs()))
        m.row(finished <= m.instance.warps - 1, literal)


FAMILIES: tuple[Callable[[Model], None], ...] = (
    passed_for_good,
    everybody,
    program_order,
    work_conservation,
    capacity,
    unfinished_warps,
)
"""The families of constraints."""


# --- a schedule to start from ---------------------------------------------------------------------------------


def _hint(m: Model, schedule: Schedule) -> None:
    """Every variable, as the schedule decides it."""
    group = m.instance.group_of_warp()
    crossed: Counter[tuple[int, int, int, int]] = Counter()
    used: Counter[tuple[str, int]] = Counter()
    done = [0] * m.instance.warps
    for cycle, w, p in schedule.ops(m.instance):
        done[w] += 1
        program = m.instance.groups[group[w]].program
        q = (*schedule.paths[w], program.end)[done[w]]
        crossed[group[w], p, q, cycle + 1] += 1
        used[program.places[p].unit, cycle + 1] += 1
    for (g, p, q, t), count in m.passed.items():
        if t > 0:
            crossed[g, p, q, t] += crossed[g, p, q, t - 1]
            _suggest(m, count, crossed[g, p, q, t])
    for (g, p), count in m.begins.items():
        _suggest(m, count, sum(path[0] == p and group[w] == g for w, path in enumerate(schedule.paths)))
    for (unit, t), literal in m.full.items():
        _suggest(m, literal, used[unit, t] == m.instance.machine.capacities[unit])
    for t, literal in m.unfinished.items():
        _suggest(m, literal, t < schedule.makespan)


def _suggest(m: Model, count: Count, value: int) -> None:
    if not isinstance(count, int):
        m.problem.add_hint(count, value)
