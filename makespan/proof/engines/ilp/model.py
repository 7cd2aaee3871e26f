"""The published integer programme of the worst case, and a tightened form of it, in PuLP.

Glossary, as in the paper and numbered from 1 as there: warps w = 1..W, instructions i = 1..I, cycles t = 1..T;
sigma_X is the capacity of class X, x = LS + CC. Warp W ends last. T must be a proven upper bound on the worst
case: a smaller one would cut off the worst schedules without any sign.

Both forms *minimise the negative makespan*, since MPS files have no common way to say "maximise".

Source: Berezovskyi, Bletsas and Andersson, ECRTS 2012. The rows that tie TL and TC to the schedule are not printed
there; `ready_waits` says what they mean.
"""

import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from itertools import product
from typing import Any

from makespan.model.feature import Features
from makespan.model.instance import Instance, requires
from makespan.model.schedule import Schedule

EXECUTES = {"L": "LS", "C": "CC"}
NOT_WAITING = {"L": "TL", "C": "TC"}
ALL_USED = {"L": "E", "C": "G"}
"""The paper's names: of the three kinds of variables, by class."""

KNOWS: Features = frozenset()
"""The paper has one instruction string over C and L, and capacities."""

FORMS = ("published", "tightened")

IlpRow = Any
"""A constraint of PuLP, which has no types."""

IlpValues = Mapping[str, float]
_ROWS_PER_LOOK = 64


@dataclass(frozen=True, slots=True)
class Shape:
    """The dimensions of both forms: one string, its warps, the cycles 1..T, and the capacities of C and L."""

    letters: str
    warps: int
    horizon: int
    sigma: Mapping[str, int]

    @property
    def everyone(self) -> range:
        """Return the warps, from 1."""
        return range(1, self.warps + 1)

    @property
    def instructions(self) -> range:
        """Return the instructions, from 1."""
        return range(1, len(self.letters) + 1)

    @property
    def cycles(self) -> range:
        """Return the cycles, from 1."""
        return range(1, self.horizon + 1)

    def letter(self, i: int) -> str:
        """Return the class of instruction i."""
        return self.letters[i - 1]

    def terms(self, form: str) -> int:
        """Return about how many coefficients the form has; building it takes time and memory in proportion."""
        cells = self.warps * len(self.letters) * self.horizon
        return cells * (self.horizon + 16) if form == "published" else cells * 16


@dataclass(frozen=True, slots=True)
class IlpModel:
    """A programme of PuLP, and how to read a schedule from the values of its variables."""

    problem: Any
    schedule: Callable[[IlpValues], Schedule]


@requires(KNOWS, "the ILP")
def shape(instance: Instance, horizon: int) -> Shape:
    """Return the programme's dimensions.

    Raises:
        UnsupportedError: not one instruction string over C and L, the same for all warps, or more than capacities.
    """
    letters = instance.groups[0].program.letters or ""
    sigma = {unit: instance.machine.capacities.get(unit, 1) for unit in EXECUTES}
    return Shape(letters, instance.warps, horizon, sigma)


def build(instance: Instance, horizon: int, form: str, stop: Callable[[], bool] = lambda: False) -> IlpModel | None:
    """Return the programme in one of `FORMS`; None when `stop` said so before it was complete."""
    variables = _VARIABLES[form](shape(instance, horizon), pulp().LpProblem(form, pulp().LpMinimize))
    variables.problem.setObjective(variables.negative_makespan())
    for family in FAMILIES[form]:
        name = getattr(family, "__name__", "row")
        for number, row in enumerate(family(variables)):
            if number % _ROWS_PER_LOOK == 0 and stop():
                return None
            variables.problem.addConstraint(row, f"{name}_{number}")
    return IlpModel(variables.problem, lambda values: Schedule.of_chains(instance, variables.executing(values)))


def pulp() -> Any:
    """Return PuLP, imported in a way that does no harm.

    By itself it would load highspy, where that is installed, and OR-Tools could not be loaded after that: both bring
    a HiGHS, and the symbols clash.
    """
    if "pulp" not in sys.modules and "highspy" not in sys.modules:
        sys.modules["highspy"] = None  # type: ignore[assignment]
        try:
            import_module("pulp")
        finally:
            del sys.modules["highspy"]
    return import_module("pulp")


def _sum(terms: Iterable[Any]) -> Any:
    return pulp().lpSum(terms)


# --- the published form ---------------------------------------------------------------------------------------


class Published:
    """Its 4 W I T + 2 T binaries: LS, CC, TL, TC for every (w, i, t), and E, G for every t.

    `LS[w,i,t]`, `CC[w,i,t]`: instruction i of warp w executes on an L or C unit in cycle t.
    `TL[w,i,t]`, `TC[w,i,t]`: the L or C instruction i of w is not left waiting in cycle t.
    `E[t]`, `G[t]`: all L, all C units are used in cycle t.
    """

    def __init__(self, shape: Shape, problem: Any) -> None:
        self.shape, self.problem = shape, problem
        cells = list(product(shape.everyone, shape.instructions, shape.cycles))
        self.executes = {unit: {c: self._binary(name, *c) for c in cells} for unit, name in EXECUTES.items()}
        self.not_waiting = {unit: {c: self._binary(name, *c) for c in cells} for unit, name in NOT_WAITING.items()}
        self.all_used = {unit: {t: self._binary(name, t) for t in shape.cycles} for unit, name in ALL_USED.items()}

    def _binary(self, name: str, *index: int) -> Any:
        return self.problem.add_variable("_".join(map(str, (name, *index))), cat="Binary")

    def cycle_of(self, w: int, i: int) -> Any:
        """Return the cycle in which instruction i of warp w executes: sum_t t (LS[w,i,t] + CC[w,i,t])."""
        return _sum(t * table[w, i, t] for table in self.executes.values() for t in self.shape.cycles)

    def executed(self, w: int, i: int, cycles: Iterable[int]) -> list[Any]:
        """Return the terms of sum_t x[w,i,t] over some cycles."""
        return [table[w, i, t] for t in cycles for table in self.executes.values()]

    def negative_makespan(self) -> Any:
        """Return the objective, to be minimised: the negative of sum_t t (LS[W,I,t] + CC[W,I,t])."""
        return -self.cycle_of(self.shape.warps, len(self.shape.letters))

    def executing(self, values: IlpValues) -> list[list[int]]:
        """Return, for every cycle, the warps, from 0, that execute."""
        taken = [
            [w - 1 for w in self.shape.everyone if any(self._is_set(values, w, i, t) for i in self.shape.instructions)]
            for t in self.shape.cycles
        ]
        return _without_idle_end(taken)

    def _is_set(self, values: IlpValues, w: int, i: int, t: int) -> bool:
        return any(values[table[w, i, t].name] > 0.5 for table in self.executes.values())


def capacity(v: Published) -> Iterator[IlpRow]:
    """Yield that a cycle has at most sigma_L and sigma_C instructions: sum_{w,i} LS[w,i,t] <= sigma_L, CC likewise."""
    for unit, t in product(EXECUTES, v.shape.cycles):
        yield _executed_of_class(v, unit, t) <= v.shape.sigma[unit]


def last_warp(v: Published) -> Iterator[IlpRow]:
    """Yield that warp W ends last: sum_t t x[w,I,t] <= sum_t t x[W,I,t] for w < W."""
    last = len(v.shape.letters)
    for w in v.shape.everyone[:-1]:
        yield v.cycle_of(w, last) <= v.cycle_of(v.shape.warps, last)


def one_a_cycle(v: Published) -> Iterator[IlpRow]:
    """Yield that a warp executes one instruction a cycle: sum_i LS[w,i,t] <= 1 and sum_i CC[w,i,t] <= 1."""
    for table, w, t in product(v.executes.values(), v.shape.everyone, v.shape.cycles):
        yield _sum(table[w, i, t] for i in v.shape.instructions) <= 1


def every_instruction_once(v: Published) -> Iterator[IlpRow]:
    """Yield that an instruction executes once, on a unit of its class: sum_t LS[w,i,t] = IL_i, CC and IC_i likewise."""
    for (unit, table), w, i in product(v.executes.items(), v.shape.everyone, v.shape.instructions):
        yield _sum(table[w, i, t] for t in v.shape.cycles) == int(v.shape.letter(i) == unit)


def precedence(v: Published) -> Iterator[IlpRow]:
    """Yield the program order: sum_t t x[w,i,t] <= sum_t t x[w,i+1,t] - 1 for i < I."""
    for w, i in product(v.shape.everyone, v.shape.instructions[:-1]):
        yield v.cycle_of(w, i) <= v.cycle_of(w, i + 1) - 1


def units_all_used(v: Published) -> Iterator[IlpRow]:
    """Yield that E[t] = 1 exactly where all L units are used, and G[t] where all C units are.

    E[t] >= 1 - sigma_L + sum_{w,i} LS[w,i,t] and sigma_L E[t] <= sum_{w,i} LS[w,i,t]; likewise G, CC and sigma_C.
    """
    for unit, t in product(EXECUTES, v.shape.cycles):
        sigma, full = v.shape.sigma[unit], v.all_used[unit][t]
        yield full >= 1 - sigma + _executed_of_class(v, unit, t)
        yield sigma * full <= _executed_of_class(v, unit, t)


def work_conservation(v: Published) -> Iterator[IlpRow]:
    """Yield that no instruction is left waiting unless all units are used: TL[w,i,t] + E[t] >= 1.

    The paper says (TL[w,i,t] or E[t]) = 1. Its other half, 1/2 (TL + E) <= (TL or E), holds by itself then.
    """
    for unit, (w, i, t) in product(EXECUTES, product(v.shape.everyone, v.shape.instructions, v.shape.cycles)):
        yield v.not_waiting[unit][w, i, t] + v.all_used[unit][t] >= 1


def ready_waits(v: Published) -> Iterator[IlpRow]:
    """Yield that instruction i waits in t if i-1 executed before t and i did not execute by t.

    sum_{t'<t} x[w,i-1,t'] - sum_{t'<=t} x[w,i,t'] <= 1 - TL[w,i,t] for an L letter i, TC for a C letter; the first
    sum is 1 for i = 1.
    """
    for w, i, t in product(v.shape.everyone, v.shape.instructions, v.shape.cycles):
        before = v.executed(w, i - 1, range(1, t)) if i > 1 else [1]
        still = v.executed(w, i, range(1, t + 1))
        yield _sum(before) - _sum(still) <= 1 - v.not_waiting[v.shape.letter(i)][w, i, t]


def _executed_of_class(v: Published, unit: str, t: int) -> Any:
    return _sum(v.executes[unit][w, i, t] for w, i in product(v.shape.everyone, v.shape.instructions))


# --- the tightened form ---------------------------------------------------------------------------------------


class Tightened:
    """Binaries `D[w,i,t]`: warp w has executed instruction i by cycle t, in time windows; and E, G.

    x[w,i,t] = D[w,i,t] - D[w,i,t-1], which turns the long sums of the published form into two terms. D is 0 before
    cycle i, when the earlier instructions cannot all have been executed, and 1 from cycle T - (I - i), after which
    the later ones could not. TL and TC are substituted: TL = 1 - E is the least that work conservation allows.
    """

    def __init__(self, shape: Shape, problem: Any) -> None:
        self.shape, self.problem = shape, problem
        cells = product(shape.everyone, shape.instructions, shape.cycles)
        latest = shape.horizon - len(shape.letters)  # instruction i can be done from cycle i on, by latest + i at most
        window = [(w, i, t) for w, i, t in cells if i <= t < latest + i or t == shape.horizon]
        self.done = {cell: problem.add_variable("_".join(map(str, ("D", *cell))), cat="Binary") for cell in window}
        self.all_used = {
            unit: {t: problem.add_variable(f"{name}_{t}", cat="Binary") for t in shape.cycles}
            for unit, name in ALL_USED.items()
        }

    def by(self, w: int, i: int, t: int) -> Any:
        """Return D[w,i,t], also outside of its window."""
        if i == 0 or (t > self.shape.horizon - len(self.shape.letters) + i - 1 and (w, i, t) not in self.done):
            return 1
        return self.done.get((w, i, t), 0)

    def negative_makespan(self) -> Any:
        """Return the negative of T + 1 - sum_t D[W,I,t], the first cycle with D[W,I,t] = 1; D[W,I,T] is 1."""
        w, i, horizon = self.shape.warps, len(self.shape.letters), self.shape.horizon
        return _sum(self.by(w, i, t) for t in self.shape.cycles) - (horizon + 1) * self.done[w, i, horizon]

    def executing(self, values: IlpValues) -> list[list[int]]:
        """Return, for every cycle, the warps, from 0, that execute."""
        taken: list[list[int]] = [[] for _ in self.shape.cycles]
        for w, i in product(self.shape.everyone, self.shape.instructions):
            taken[next(t for t in self.shape.cycles if self._is_set(values, w, i, t)) - 1].append(w - 1)
        return _without_idle_end(taken)

    def _is_set(self, values: IlpValues, *cell: int) -> bool:
        variable = self.by(*cell)
        return bool(variable if isinstance(variable, int) else values[variable.name] > 0.5)


def done_in_the_end(v: Tightened) -> Iterator[IlpRow]:
    """Yield that every instruction executes: D[w,i,T] = 1."""
    for w, i in product(v.shape.everyone, v.shape.instructions):
        yield v.by(w, i, v.shape.horizon) == 1


def done_for_good(v: Tightened) -> Iterator[IlpRow]:
    """Yield that what is done stays done, so every instruction executes once: D[w,i,t-1] <= D[w,i,t]."""
    for w, i, t in product(v.shape.everyone, v.shape.instructions, v.shape.cycles[1:]):
        yield from _differ(v.by(w, i, t - 1), v.by(w, i, t))


def program_order(v: Tightened) -> Iterator[IlpRow]:
    """Yield that instruction i+1 executes after i: D[w,i+1,t] <= D[w,i,t-1]."""
    for w, i, t in product(v.shape.everyone, v.shape.instructions[:-1], v.shape.cycles[1:]):
        yield from _differ(v.by(w, i + 1, t), v.by(w, i, t - 1))


def warps_ordered(v: Tightened) -> Iterator[IlpRow]:
    """Yield that equal warps change names where one would pass another: D[w+1,i,t] <= D[w,i,t]; so W ends last."""
    for w, i, t in product(v.shape.everyone[:-1], v.shape.instructions, v.shape.cycles):
        yield from _differ(v.by(w + 1, i, t), v.by(w, i, t))


def capacity_used(v: Tightened) -> Iterator[IlpRow]:
    """Yield the capacities, with E[t] in one row: sigma_L E[t] <= sum_{w,i} LS[w,i,t] <= sigma_L - 1 + E[t]."""
    for unit, t in product(ALL_USED, v.shape.cycles):
        sigma, full = v.shape.sigma[unit], v.all_used[unit][t]
        places = [(w, i) for w, i in product(v.shape.everyone, v.shape.instructions) if v.shape.letter(i) == unit]
        used = _sum(v.by(w, i, t) for w, i in places) - _sum(v.by(w, i, t - 1) for w, i in places if t > 1)
        yield used <= sigma - 1 + full
        yield sigma * full <= used


def ready_executes(v: Tightened) -> Iterator[IlpRow]:
    """Yield that a ready instruction waits only while all units are used: D[w,i-1,t-1] - D[w,i,t] <= E[t], or G[t]."""
    for w, i, t in product(v.shape.everyone, v.shape.instructions, v.shape.cycles):
        before, still = (v.by(w, i - 1, t - 1) if t > 1 else int(i == 1)), v.by(w, i, t)
        if not (isinstance(before, int) and before == 0) and not (isinstance(still, int) and still == 1):
            yield before - still <= v.all_used[v.shape.letter(i)][t]


def _differ(small: Any, large: Any) -> Iterator[IlpRow]:
    """Yield the row `small <= large`, unless it says nothing."""
    if small is not large and not (isinstance(small, int) and small == 0) and not (isinstance(large, int) and large):
        yield small - large <= 0


def _without_idle_end(cycles: Sequence[Sequence[int]]) -> list[list[int]]:
    length = max((t for t, warps in enumerate(cycles, 1) if warps), default=0)
    return [list(warps) for warps in cycles[:length]]


_VARIABLES: dict[str, Any] = {"published": Published, "tightened": Tightened}

FAMILIES: dict[str, tuple[Callable[[Any], Iterator[IlpRow]], ...]] = {
    "published": (
        capacity,
        last_warp,
        one_a_cycle,
        every_instruction_once,
        precedence,
        units_all_used,
        work_conservation,
        ready_waits,
    ),
    "tightened": (done_in_the_end, done_for_good, program_order, warps_ordered, capacity_used, ready_executes),
}
"""The families of constraints of each form."""
