"""What a beam can follow before there is a certificate: the potential in theorem E's proof, which costs no programme.

For instructions that take one cycle, with one table for each class (docs/theory.md, 3, invariants I and J): in the
table of class Y a warp has its mass left, less what pairs still to come take, and less what is open toward another
class than Y; the laggard has its letters left, less one where it needs another class than Y. The largest is a bound on
the cycles left, if the classes have pairs as the theorem wants them; a beam asks for no proof. Caps are the
masses: larger ones guide worse.
"""

from math import lcm

from makespan.model.certificate import Potential, PotentialNode, PotentialTable
from makespan.model.instance import Instance
from makespan.proof.bounds.pairing import Pairing


def guides(instance: Instance) -> tuple[Potential, ...]:
    """One potential for every group that may hold the laggard; all classes count, and every place its last reserve."""
    capacities = instance.machine.capacities
    classes = tuple(unit for unit in capacities if any(unit in group.program.units for group in instance.groups))
    scale = lcm(*(capacities[unit] for unit in classes))
    masses = {unit: scale // capacities[unit] for unit in classes}
    rows = [_left_and_open(Pairing.scan(group.program, masses, masses)) for group in instance.groups]
    steps = [group.program.sums(dict.fromkeys(classes, scale), max) for group in instance.groups]
    units = [[place.unit for place in group.program.places] for group in instance.groups]
    kind = (0,) * len(classes)
    numbers = range(len(classes))
    nodes = tuple((PotentialNode(last, kind, label), label) for last in numbers for label in numbers)

    def table(last: int, label: str) -> PotentialTable:
        others = (
            tuple(left - (unit != label) * opened for unit, (left, opened) in zip(own, row, strict=True))
            for own, row in zip(units, rows, strict=True)
        )
        laggard = (left - (unit != label) * scale for unit, left in zip(units[last], steps[last], strict=False))
        return PotentialTable(tuple(others), tuple(laggard), 0)

    return tuple(
        Potential(last, classes, kind, 0, tuple(table(last, label) for label in classes), nodes)
        for last in range(len(instance.groups))
    )


def _left_and_open(pairing: Pairing) -> list[tuple[int, int]]:
    """For every place the most mass from there on, less what pairs from there on take, and what is open toward it."""
    program, masses = pairing.program, pairing.masses
    left = [0] * (program.end + 1)
    for at in range(program.end - 1, -1, -1):
        unit, successors = program.places[at]
        most = masses[unit] - pairing.reserves[at][-1]
        ahead = [left[after] for after in successors]
        for number, after in enumerate(successors):
            if after != program.end and program.places[after].unit != unit:
                ahead[number] -= min(most, pairing.limits[after])
        left[at] = masses[unit] + max(ahead)
    return [(left[at], reserves[-1]) for at, reserves in enumerate(pairing.reserves)]
