"""The potential of theorem E falls by a cycle in every cycle of every schedule, for two classes of any capacities."""

from collections.abc import Sequence
from math import lcm

from hypothesis import given, settings
from hypothesis import strategies as st

from makespan.model.certificate import Potential
from makespan.model.instance import Instance
from makespan.model.machine import Machine
from makespan.proof.bounds import theorem_e
from makespan.proof.engines.certificate.improve import theorem_e_potentials
from tests.strategies import instances, runs


def value(potential: Potential, groups: Sequence[int], places: Sequence[int], laggard: int) -> int:
    """The largest of its tables."""
    sums = []
    for table in potential.tables:
        rows = [(*row, 0) for row in table.others]
        others = sum(
            rows[group][place]
            for warp, (group, place) in enumerate(zip(groups, places, strict=True))
            if warp != laggard
        )
        sums.append(others + (*table.last, 0)[places[laggard]])
    return max(sums)


@settings(max_examples=80)
@given(st.data())
def test_the_potential_falls_by_a_cycle_in_every_cycle(data: st.DataObject) -> None:
    machine = Machine.of({"C": data.draw(st.integers(1, 3)), "L": data.draw(st.integers(1, 3))})
    instance = data.draw(instances(machine=machine, choices=False, most_warps=6, most=6))
    schedule = data.draw(runs(instance))
    laggard, groups = schedule.cycles[-1][-1], instance.group_of_warp()
    potential = theorem_e_potentials(instance)[groups[laggard]]
    scale = lcm(*(machine.capacities[unit] for unit in potential.classes))
    places = [0] * instance.warps
    before = value(potential, groups, places, laggard)
    ends = [program.end for program in instance.programs()]
    for executing in schedule.cycles:
        for warp in executing:
            places[warp] += 1
        after = 0 if places == ends else value(potential, groups, places, laggard)
        assert before - after >= scale
        before = after


@given(st.text("CL", min_size=1, max_size=12), st.integers(1, 9), st.integers(1, 4))
def test_it_begins_with_the_bound_of_theorem_e(string: str, warps: int, ports: int) -> None:
    instance = Instance.of(string, warps, Machine.of({"C": ports, "L": ports}))
    (potential,) = theorem_e_potentials(instance)
    found = theorem_e(instance)
    assert found is not None
    if warps > ports and len(set(string)) == 2:
        assert value(potential, [0] * warps, [0] * warps, 0) // ports == found.upper
