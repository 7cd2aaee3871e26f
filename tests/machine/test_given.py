"""What a user says of intervals: `memory=1`."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from makespan import solve
from makespan.errors import InputError
from makespan.instance import Instance
from makespan.machine import GivenRange, Machine, Resource, UnitClass, Use, find, given_intervals, narrowed
from makespan.strings import parse_string
from makespan.wording import caveats
from tests.oracle import brute_force


def machine(of_l: Use, of_x: Use, *of_y: Use) -> Machine:
    units = (
        UnitClass("L", 1, uses=(of_l,)),
        UnitClass("X", 1, uses=(of_x,)),
        UnitClass("Y", 1, uses=(*of_y, Use(("slot",), 1, 8))),
    )
    return Machine("m", units, resources=(Resource("memory", 1), Resource("way", 1), Resource("slot", 1)))


RANGED = machine(Use(("memory",), 2, 8), Use(("memory",), 3, 3), Use(("way", "memory"), 1, 8))


@pytest.mark.parametrize(
    ("texts", "meant"),
    [
        ([], RANGED),
        (["memory=4"], machine(Use(("memory",), 4, 4), Use(("memory",), 3, 3), Use(("way", "memory"), 4, 4))),
        (["memory=..4"], machine(Use(("memory",), 2, 4), Use(("memory",), 3, 3), Use(("way", "memory"), 1, 4))),
        (["memory=2..8"], machine(Use(("memory",), 2, 8), Use(("memory",), 3, 3), Use(("way", "memory"), 2, 8))),
        (["way=..2"], machine(Use(("memory",), 2, 8), Use(("memory",), 3, 3), Use(("way", "memory"), 1, 2))),
    ],
)
def test_ranges_become_narrower_and_fixed_intervals_stay(texts: list[str], meant: Machine) -> None:
    assert narrowed(RANGED, given_intervals(texts)) == meant


@pytest.mark.parametrize(
    ("texts", "message"),
    [
        (["memory=1"], "class L holds memory for 2..8 cycles, not for 1 cycle; a range can only become narrower"),
        (["memory=..9"], "class L holds memory for 2..8 cycles, not for at most 9 cycles; "),
        (["memory=..1"], "class L holds memory for 2..8 cycles, not for at most 1 cycle; "),
        (["memory=4", "way=4"], "no class holds 'way' for a range of cycles; it has a range for slot"),
        (["l2=4"], "no class holds 'l2' for a range of cycles; it has a range for memory, way, slot"),
        (["memory=4", "slot=2", "way=4"], "for a range of cycles; its intervals are no ranges"),
        (["memory"], "an interval is given as memory=1, memory=1..4 or memory=..4, not 'memory'"),
        (["memory=0"], "interval of memory: 1..1024 cycles, not 0"),
        (["memory=5..4"], "interval of memory: 5..4 is no range"),
        (["memory=4", "memory=4"], "the interval of memory is given twice"),
    ],
)
def test_what_is_no_narrower_range_is_refused(texts: list[str], message: str) -> None:
    with pytest.raises(InputError, match=message):
        narrowed(RANGED, given_intervals(texts))


@given(st.data())
@settings(max_examples=15)
def test_less_choice_is_never_worse(data: st.DataObject) -> None:
    least = data.draw(st.integers(1, 3))
    loads = UnitClass("L", 1, uses=(Use(("memory",), least, data.draw(st.integers(least, 3))),))
    wide = Machine("m", (UnitClass("C", 1), loads), issue_width=1, resources=(Resource("memory", 1),))
    held = wide.units[1].uses[0]
    if held.is_fixed:
        return
    most = data.draw(st.integers(held.least, held.most))
    narrow = narrowed(wide, {"memory": GivenRange(data.draw(st.none() | st.integers(held.least, most)), most)})
    program = parse_string(data.draw(st.sampled_from(["LC", "LLC", "CL", "L()@3C(1)"])), wide)
    worst = [brute_force(Instance.of(program, 2, each)).upper for each in (narrow, wide)]
    assert worst[0] <= worst[1]
    assert solve(Instance.of(program, 2, narrow)).bounds.upper >= worst[0]


def test_a_verdict_says_for_how_long_ports_are_held_and_a_file_cannot_say_more() -> None:
    turing = narrowed(find("turing").machine, given_intervals(["memory=..4", "b-ports=1"]))
    said = Instance.of("L", 2, turing).assumptions
    assert "interval as given: class L holds memory for at most 4 cycles; the machine says 1..32" in said
    held = "if class L holds memory for at most 4 cycles and class B holds b-ports for 1 cycle"
    assert held in caveats(turing, said)
    lie = "interval as given: class L holds memory for 1 cycle: the worst case is 1 cycle; "
    assert not any("worst case" in caveat for caveat in caveats(turing, [lie]))
