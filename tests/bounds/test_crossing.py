"""What reaches over barriers, by hand: ports that are held."""

import pytest

from makespan.model.machine import Latency, Machine, UnitClass
from makespan.model.program import Program, ProgramPlace
from makespan.proof.bounds.gates import PortGates
from makespan.proof.bounds.phases import late_ports, left_behind

HELD = Machine("held", (UnitClass("C", 1, 5), UnitClass("L", 1, 1, Latency(4, 4)), UnitClass("S", 1, 9)))
EITHER = Program((ProgramPlace("C", (2,)), ProgramPlace("L", (2,))), (0, 1))
"""A C, whose port is held for 4 more cycles when it ends, or an L, which takes 4."""


def test_ports_that_a_phase_leaves_behind() -> None:
    """The S of a phase before is held for 7 more cycles, of which the C takes one; it ends with its port held."""
    ports = PortGates.of(HELD)
    assert left_behind(ports, [EITHER], {"S": 7, "L": 1}) == {"C": 5 - 1, "S": 7 - 1}


@pytest.mark.parametrize(
    ("pieces", "held", "left"),
    [
        (["CL"], {}, {}),  # after a C there are five cycles to go
        (["S", "SL"], {}, {"S": 9 - 1}),
        (["L", "C"], {"S": 7}, {"C": 5 - 1, "S": 7 - 4}),  # the phase ends with the L
    ],
)
def test_ports_that_several_programs_leave_behind(
    pieces: list[str], held: dict[str, int], left: dict[str, int]
) -> None:
    programs = [Program.chain(letters) for letters in pieces]
    assert left_behind(PortGates.of(HELD), programs, held) == left


def test_a_port_is_wanted_when_the_first_instruction_that_needs_it_may_come() -> None:
    machine = Machine("m", (UnitClass("C", 1, 5), UnitClass("L", 1)))
    assert late_ports(PortGates.of(machine), [Program.chain("CLC")], {"C": 2}) == {"C": 2}


def test_a_port_that_is_free_when_the_phase_ends_is_not_left_behind() -> None:
    machine = Machine("m", (UnitClass("L", 1, 4, Latency(4, 4)),))
    assert left_behind(PortGates.of(machine), [Program.chain("L")], {}) == {}


def test_partitions_that_share_a_class_do_not_begin_late_by_themselves() -> None:
    for shared in (False, True):
        units = UnitClass("C", 1, 5), UnitClass("L", 1, shared=shared)
        halves = Machine("halves", units, 1, partitions=2)
        found = late_ports(PortGates.of(halves), [Program.chain("CL")], {"C": 3})
        assert found == (None if shared else {"C": 3})
