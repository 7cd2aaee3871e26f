"""Gaps of a warp and its time alone, in the checker: against the engines and, where nothing is free, against truth."""

import random
from dataclasses import replace

from benchmarks.multiprocessors import machine, program
from makespan.model.instance import Instance
from makespan.model.machine import Machine
from makespan.model.program import Program
from makespan.proof.bounds import alone
from makespan.proof.bounds.gates import PortGates
from makespan.proof.bounds.phases import segments_of
from makespan.proof.bounds.thresholds import issue_gaps
from makespan.verify import paths as checked
from makespan.verify.alone import longest_alone
from makespan.verify.refusal import ProofSteps
from tests.oracle import brute_force


def questions(count: int, most: int) -> list[tuple[Machine, Program]]:
    """Machines, each with a program whose places name their successors in any order."""
    draw, found = random.Random(most), list[tuple[Machine, Program]]()
    for _ in range(count):
        chosen, ahead = machine(draw), draw.random() < 0.7
        own = program(draw, "".join(chosen.capacities), most, barriers=False, runs_ahead=ahead)
        places = (place._replace(successors=place.successors[:: draw.choice((1, -1))]) for place in own.places)
        found.append((chosen, replace(own, places=tuple(places))))
    return found


def test_they_are_those_of_the_engines() -> None:
    for chosen, own in questions(1500, 8):
        units, work = {unit.name: unit for unit in chosen.units}, ProofSteps(10_000)
        theirs = issue_gaps(own, {name: unit.latency for name, unit in units.items()})
        assert theirs is not None
        assert checked.longest_gaps(own, units, work) == [gap.most for gap in theirs]
        for place, gap, least in zip(own.places, theirs, checked.shortest_gaps(own, units), strict=True):
            assert place.successors == (own.end,) or least == gap.least  # behind the last one there is none
        (whole,) = segments_of(own) or ()
        todo = alone.place_timings(own, PortGates.of(chosen), longest=True)
        assert longest_alone(own, chosen, work) == alone.alone(own, todo, whole, lambda _: {})


def test_a_warp_alone_that_has_one_port_of_everything_takes_as_long_as_the_definition_says() -> None:
    single = [
        (chosen, own)
        for chosen, own in questions(1200, 5)
        if all(ports.capacity == 1 for ports in chosen.ports)
        and all(len(use.resources) == 1 for unit in chosen.units for use in unit.uses)
    ]
    assert len(single) > 200
    for chosen, own in single:
        assert longest_alone(own, chosen, ProofSteps(1000)) == brute_force(Instance.of(own, 1, chosen)).upper
