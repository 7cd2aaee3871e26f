"""The worst case as a dynamic programme for DIDP (domain-independent dynamic programming), a peer to measure against.

Warps of one string are alike, so a state counts those that stand at each place. A transition issues *one* instruction.
Within a cycle places are served from the last to the first: a warp that has moved stands behind those that still may,
and a set of instructions is issued in one order only. How many of a class are issued is known when the cycle begins,
all that are ready or as many as there are ports, and nobody is passed over who is needed for that, so no way is a dead
end. All ways to a state are equally long, its instructions issued, so that a search by layers meets it in one layer.

Source: Kuroiwa and Beck, Domain-independent dynamic programming: generic state space search for combinatorial
optimization, ICAPS 2023; the package `didppy`.
"""

from itertools import accumulate
from typing import Any

import didppy as dp

from makespan import Instance
from makespan.model.feature import Features
from makespan.model.schedule import Schedule, WarpMove
from makespan.proof.engines.engine import Finding

KNOWS: Features = frozenset()
"""One instruction string over C and L, and capacities, as in the published programme."""

BEAM = 1024
"""States a layer for a first schedule."""


def solve(instance: Instance) -> Finding:
    """The worst case: a beam finds a schedule, and a search by layers a longer one, or that there is none.

    Raises:
        UnsupportedError: not one instruction string over C and L, the same for all warps, or more than capacities.
    """
    programme = model(instance)
    first = dp.CABS(programme, max_beam_size=BEAM, quiet=True).search()
    rest = dp.BreadthFirstSearch(programme, primal_bound=first.cost, quiet=True).search()
    best = first if rest.is_infeasible else rest
    witness = _schedule(instance, [transition.name for transition in best.transitions])
    assert witness.makespan == best.cost
    assert rest.is_infeasible or rest.is_optimal
    return Finding(witness, witness.makespan)


def _schedule(instance: Instance, names: list[str]) -> Schedule:
    cycles: list[list[WarpMove]] = [[]]
    for name in names:
        place, which = name.split()
        cycles[-1].append(WarpMove(0, int(place), int(place) + 1, 1))
        if which == "last":
            cycles.append([])
    return Schedule.from_moves(instance, [{0: instance.warps}], cycles[:-1])


def model(instance: Instance) -> Any:
    """The programme, which maximises cycles; its transitions are called `PLACE more` and `PLACE last` of a cycle.

    Its variables: `at` each place so many warps, the place `last_served` in this cycle, and so many instructions of
    each class still `due` in it.

    Raises:
        UnsupportedError: not one instruction string over C and L, the same for all warps, or more than capacities.
    """
    instance.require(KNOWS, "the DIDP model")
    letters, warps = str(instance.groups[0].program.letters), instance.warps
    capacities = {unit: sigma for unit, sigma in instance.machine.capacities.items() if unit in letters}
    programme = dp.Model(maximize=True)
    at = [programme.add_int_var(target=0 if place else warps) for place in range(len(letters))]
    last_served = programme.add_int_var(target=len(letters) - 1)
    due = {
        unit: programme.add_int_var(target=min(sigma, warps) if unit == letters[0] else 0)
        for unit, sigma in capacities.items()
    }
    for place, unit in enumerate(letters):
        arrives = letters[place + 1 : place + 2]
        may = [at[place] > 0, last_served >= place, due[unit] > 0]
        moves = [(at[place], at[place] - 1), *([(at[place + 1], at[place + 1] + 1)] if arrives else [])]
        enough = [_ready(at[: place + 1], letters, each) >= due[each] for each in capacities]
        ready = {each: _ready(at, letters, each) - (each == unit) + (each == arrives) for each in capacities}
        next_due = [(due[each], dp.min(ready[each], sigma)) for each, sigma in capacities.items()]
        programme.add_transition(
            dp.Transition(
                f"{place} more",
                cost=dp.IntExpr.state_cost(),
                preconditions=[*may, sum(due.values()) > 1, *enough],
                effects=[*moves, (last_served, place), (due[unit], due[unit] - 1)],
            )
        )
        programme.add_transition(
            dp.Transition(
                f"{place} last",
                cost=dp.IntExpr.state_cost() + 1,
                preconditions=[*may, sum(due.values()) == 1],
                effects=[*moves, (last_served, len(letters) - 1), *next_due],
            )
        )
    programme.add_base_case([each == 0 for each in due.values()])
    programme.add_dual_bound(_bound(letters, warps, capacities, at, due))
    return programme


def _ready(at: list[Any], letters: str, unit: str) -> Any:
    """How many of the warps at these places are ready for a class."""
    return sum((some for some, letter in zip(at, letters, strict=False) if letter == unit), dp.IntExpr(0))


def _bound(letters: str, warps: int, capacities: dict[str, int], at: list[Any], due: dict[str, Any]) -> Any:
    """M^L + M^C of what is left once this cycle is over, whose end is the 1; 0 where all is over.

    The warp that ends last waits for a class only while all its ports are held by others, and has no more to issue than
    the last in the string.
    """
    left = {
        unit: sum((some * count for some, count in zip(at, _to_go(letters, unit), strict=True)), -due[unit])
        for unit in capacities
    }
    bound = dp.IntExpr(0)
    for place in reversed(range(len(letters))):
        own = {unit: _to_go(letters, unit)[place] for unit in capacities}
        waits = [(left[unit] - own[unit]) // sigma for unit, sigma in capacities.items() if sigma < warps]
        cycles = sum(waits, sum(own.values()))
        bound = (at[place] > 0).if_then_else(cycles + 1, bound)
    return bound


def _to_go(letters: str, unit: str) -> list[int]:
    """For every place the letters of a class from there to the end."""
    return list(accumulate(int(letter == unit) for letter in reversed(letters)))[::-1]
