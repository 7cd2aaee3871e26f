"""All pairs of places, against the enumeration of all states, which shares nothing with it."""

import pytest
from hypothesis import assume, given, settings

from makespan.model.instance import Instance
from makespan.model.machine import Latency, Machine, UnitClass
from makespan.model.program import Program, ProgramPlace
from makespan.verify import states, two_warp_waits
from tests.strategies import general_instances


def check(instance: Instance) -> None:
    extremes = two_warp_waits.by_waits(instance, min), two_warp_waits.by_waits(instance, max)
    assert states.shortest_and_longest(instance, 10**6) == extremes


@given(general_instances(most_warps=2, most=4))
@settings(max_examples=150)
def test_two_warps_of_any_programs(instance: Instance) -> None:
    assume(instance.warps == 2)
    check(instance)


@pytest.mark.parametrize("strings", [("CCC", "CCC"), ("CLC", "LCLL"), ("LLC", "CL"), ("CCLC", "L")])
@pytest.mark.parametrize("width", [None, 1])
@pytest.mark.parametrize(
    "units",
    [
        (UnitClass("C", 2, 3), UnitClass("L", 1)),  # both ports are held, for different times
        (UnitClass("C", 3, 2), UnitClass("L", 1, 4, Latency(2, 3))),
        (UnitClass("C", 1, 1, Latency(1, 4)), UnitClass("L", 2, 5, Latency(1, 3))),
        (UnitClass("C", 1, 4, Latency(2, 6)), UnitClass("L", 1, 2)),
    ],
)
def test_two_warps_where_ports_are_held(
    strings: tuple[str, str], width: int | None, units: tuple[UnitClass, ...]
) -> None:
    machine = Machine("held", units, width)
    check(Instance.merged([(Program.chain(string), 1) for string in strings], machine))


@pytest.mark.parametrize(
    ("strings", "units", "width"),
    [
        (("LLL", "CLLCL"), (UnitClass("C", 1, 5, Latency(2, 2)), UnitClass("L", 2, 6, Latency(3, 5))), None),
        (("LCLCL", "LLL"), (UnitClass("C", 1, 6, Latency(3, 7)), UnitClass("L", 1, 1, Latency(2, 6))), 1),
        (("CCLCL", "LCCL"), (UnitClass("C", 2, 2, Latency(2, 6)), UnitClass("L", 1, 7, Latency(3, 3))), 1),
        (
            ("LC", "S"),
            (UnitClass("C", 1, 2, Latency(3, 3)), UnitClass("L", 1), UnitClass("S", 1, 3, Latency(2, 3))),
            None,
        ),
    ],
)
def test_a_port_that_is_held_matters_until_all_are_free_and_nobody_needs_it(
    strings: tuple[str, str], units: tuple[UnitClass, ...], width: int | None
) -> None:
    """The later of two ports, the class of the next instruction, and that of the last one count."""
    check(Instance.merged([(Program.chain(string), 1) for string in strings], Machine("held", units, width)))


@pytest.mark.parametrize("near_first", [True, False])
def test_a_port_that_is_held_matters_where_the_nearest_of_several_instructions_needs_it(near_first: bool) -> None:
    """X holds its port up to cycle 8, so the X behind Y waits, and T follows; the X behind Z is late anyway."""
    units = (UnitClass(name, 1, 1, Latency(n, n)) for name, n in {"Y": 1, "Z": 9, "T": 20, "W": 12}.items())
    ways = (ProgramPlace("X", (3,)), ProgramPlace("T", (6,)), ProgramPlace("Z", (5,)), ProgramPlace("X", (6,)))
    if not near_first:
        ways = (ProgramPlace("Z", (3,)), ProgramPlace("X", (6,)), ProgramPlace("X", (5,)), ProgramPlace("T", (6,)))
    forked = Program((ProgramPlace("X", (1,)), ProgramPlace("Y", (2, 4)), *ways))
    machine = Machine("held", (UnitClass("X", 1, 8), *units))
    instance = Instance.merged([(forked, 1), (Program.chain("WY"), 1)], machine)
    check(instance)
    assert two_warp_waits.by_waits(instance) == 8 + 1 + 20


def test_too_many_ways_to_hold_ports_are_not_followed(monkeypatch: pytest.MonkeyPatch) -> None:
    held = Instance.of("CL", 2, Machine("m", (UnitClass("C", 1, 3), UnitClass("L", 1))))
    assert two_warp_waits.by_waits(held) == 3 + 2
    monkeypatch.setattr(two_warp_waits, "MOST_HELD", 1)
    assert two_warp_waits.by_waits(held) is None
