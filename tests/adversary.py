"""The potentials of the least bound that the checker lets pass: a linear programme over its own conditions.

Where the checker misses a cycle of some schedule or a condition, the programme makes use of it, and the bound falls
below the truth. Nothing of the engines is in it.
"""

from collections import Counter
from dataclasses import dataclass, field, replace

from ortools.linear_solver.python import model_builder_helper as engine

from makespan.model.certificate import Certificate, Potential, PotentialNode, PotentialTable
from makespan.model.instance import Instance
from makespan.verify import potential
from makespan.verify.refusal import ProofSteps
from makespan.verify.states import StateWalker, front
from tests.potentials import END, Looking, Shape

SCALE = 720_720
"""Vertices of small programmes have small denominators."""

Terms = list[tuple[object, int]]
"""A sum of variables by name, with their factors."""


@dataclass
class Programme:
    """Minimise `bound`, subject to sums that are at least a number."""

    number: dict[object, int] = field(default_factory=dict)
    rows: list[tuple[Terms, int]] = field(default_factory=list)

    def at_least(self, terms: Terms, least: int) -> None:
        self.rows.append((terms, least))
        for name, _ in terms:
            self.number.setdefault(name, len(self.number))

    def solved(self) -> dict[object, int] | None:
        """In units of 1 / SCALE; None if there is no solution."""
        model = engine.ModelBuilderHelper()
        for _ in self.number:
            variable = model.add_var()
            model.set_var_lower_bound(variable, -1000)
            model.set_var_upper_bound(variable, 1000)
        for terms, least in self.rows:
            row, factors = model.add_linear_constraint(), Counter[object]()
            model.set_constraint_lower_bound(row, least)
            for name, factor in terms:
                factors[name] += factor
            for name, factor in factors.items():
                model.add_term_to_constraint(row, self.number[name], float(factor))
        model.set_var_objective_coefficient(self.number["bound"], 1.0)
        solver = engine.ModelSolverHelper("glop")
        solver.solve(model)
        if solver.status() != engine.SolveStatus.OPTIMAL:
            return None
        values = solver.variable_values()
        return {name: round(SCALE * float(values[at])) for name, at in self.number.items()}


def best(instance: Instance, looking: Looking, extra: int = 0, steps: int = 0) -> Certificate | None:
    """The certificate of this shape with the least bound, as the checker sees it; None where there is none.

    Args:
        instance: the question.
        looking: which situations are no stops.
        extra: thresholds above the capacities.
        steps: the front.
    """
    shape = Shape(instance, extra)
    found = [_potential(shape, last, looking, steps) for last in range(len(instance.groups))]
    return None if None in found else Certificate(10**9, tuple(one for one in found if one is not None))


def _potential(shape: Shape, last_group: int, looking: Looking, steps: int) -> Potential | None:
    sizes = [group.program.end for group in shape.whole.groups]

    def table(node: PotentialNode, values: dict[object, int]) -> PotentialTable:
        def row(count: int, *name: object) -> tuple[int, ...]:
            return tuple(values.get((node, *name, at), 0) for at in range(count))

        return PotentialTable(
            tuple(row(size, "others", group) for group, size in enumerate(sizes)),
            row(sizes[last_group], "last"),
            values.get((node, "constant"), 0),
            tuple(row(unit.interval - 1, "ports", x) for x, unit in enumerate(shape.slow)),
        )

    empty = shape.potential(last_group, {node: table(node, {}) for node in shape.nodes(looking)}, steps)
    limits = potential.CertificateBudget(ProofSteps(10**7), ProofSteps(10**7), ProofSteps(10**9))
    check = potential.PotentialCheck(shape.whole, empty, limits)
    walker = StateWalker(shape.whole, ProofSteps(10**7))
    states, _ = front(walker, steps, 10**5)
    begun = [beginning for state in states for beginning in check._beginnings(walker, state)]
    cycles = check._cycles({state.situation for state in begun})
    labels = check._labels(cycles)
    made = Programme()
    made.at_least([("bound", 1)], 0)
    for situation, possible in cycles.items():
        for cycle in possible:
            for u, v in check._nodes(situation, cycle.after, labels):
                _require(made, check, cycle, u, v)
    for state in begun:
        for label in labels[state.situation]:
            u = replace(state.situation, label=label)
            for place in state.places:
                own = [((u, "others", last_group, place), 1), ((u, "last", place), -1)]
                everybody = [((u, "others", group, p), -count) for group, p, count in state.where]
                held = [((u, "ports", x, h), -count) for x, row in enumerate(state.held) for h, count in enumerate(row)]
                made.at_least([("bound", 1), ((u, "constant"), -1), *own, *everybody, *held], 0)
    values = made.solved()
    if values is None:
        return None
    return shape.potential(last_group, {node: table(node, values) for node in shape.nodes(looking)}, steps)


def _require(
    made: Programme,
    check: potential.PotentialCheck,
    cycle: potential.SituationCycle,
    u: PotentialNode,
    v: PotentialNode,
) -> None:
    """That R falls by one in this cycle, and by no less the more warps there are."""
    for move in cycle.more:
        made.at_least([(_least(made, check, u, v, 0, move), 1)], 0)
    total: Terms = [(_least(made, check, u, v, 1, cycle.role), 1)]
    total += [(_least(made, check, u, v, 0, move), count) for move, count in cycle.moves]
    total += [((u, "constant"), 1), *([] if v == END else [((v, "constant"), -1)])]
    for x, (released, kept, taken) in enumerate(cycle.ports):
        longest = check.slow[x].held - 1
        total += [((u, "ports", x, 0), released)]
        total += [] if v == END else [((v, "ports", x, longest), -taken)]
        if kept:
            name = u, v, "kept", x
            total += [(name, kept)]
            for h in range(1, longest + 1):
                after = [] if v == END else [((v, "ports", x, h - 1), -1)]
                made.at_least([((u, "ports", x, h), 1), *after, (name, -1)], 0)
    made.at_least(total, 1)


def _least(
    made: Programme, check: potential.PotentialCheck, u: PotentialNode, v: PotentialNode, z: int, move: tuple[int, int]
) -> object:
    """The variable of the smallest difference; `z`: 1 for the last finisher, 0 for others."""
    name = u, v, z, move
    if name not in made.number:
        ends = check.terms._ends[z][move]
        for p, q in ends:
            difference = [(_coefficient(check, u, z, p), 1), (_coefficient(check, v, z, q), -1)]
            made.at_least([*((at, f) for at, f in difference if at is not None), (name, -1)], 0)
    return name


def _coefficient(check: potential.PotentialCheck, node: PotentialNode, z: int, index: int) -> object | None:
    """The variable of a place, None for a finished warp; the checker numbers the places of all groups in one row."""
    if node == END:
        return None
    sizes = [group.program.end for group in check.instance.groups]
    if z:
        return (node, "last", index) if index < sizes[check.potential.last_group] else None
    group = 0
    while index > sizes[group]:
        index, group = index - sizes[group] - 1, group + 1
    return (node, "others", group, index) if index < sizes[group] else None
