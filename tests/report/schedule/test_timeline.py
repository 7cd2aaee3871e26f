"""Schedules as letters."""

from hypothesis import given, settings
from hypothesis import strategies as st

from makespan.model.instance import Instance
from makespan.model.machine import Latency, Machine, UnitClass
from makespan.model.schedule import Schedule
from makespan.proof.engines.construct import greedy
from makespan.proof.engines.limits import Limits
from makespan.report.schedule.activity import Why
from makespan.report.schedule.timeline import timeline_text
from tests.report.schedule.cases import ISSUES, Case, cases, cycle_by_cycle

SIGNS = {Why.STALLED: ".", Why.RESULT: ",", Why.PORT: "-", Why.RESOURCE: "+", Why.SLOT: "=", Why.BARRIER: "|"}


def letters(text: str) -> dict[str, str]:
    """What stands beside every warp, blocks put together as they follow one another."""
    found: dict[str, str] = {}
    lines = text.splitlines()
    width = max(len(line) for line in lines if line.startswith(("warp ", " ")))
    for line in lines:
        if line.startswith("warp "):
            name = " ".join(line.split()[:2])
            found[name] = found.get(name, "") + line[8:].ljust(width - 8)
    return found


@given(cases())
@settings(deadline=None)
def test_every_cycle_is_one_letter(case: Case) -> None:
    instance, schedule = case
    expected = {f"warp {warp}": "" for warp in range(instance.warps)}
    for cycle in cycle_by_cycle(*case):
        for warp in range(instance.warps):
            what, unit = cycle.doing.get(warp, ("", " "))
            expected[f"warp {warp}"] += unit if what in (ISSUES, "") else SIGNS[Why(what)]
    shown = letters(timeline_text(*case, width=8 + schedule.makespan))
    assert {name: row.rstrip() for name, row in shown.items()} == {name: row.rstrip() for name, row in expected.items()}


@given(cases(), st.integers(1, 60))
@settings(deadline=None)
def test_it_is_ascii_and_fits(case: Case, width: int) -> None:
    lines = timeline_text(*case, width=width).splitlines()
    assert all(line.isascii() and line.isprintable() for line in lines)
    begin = next(number for number, line in enumerate(lines) if line.startswith("  "))
    assert all(len(line) <= max(width, 18) for line in lines[begin:] if line.startswith("warp "))
    assert all(line == line.rstrip() for line in lines)


def long(repeated: int, width: int) -> list[str]:
    machine = Machine("slow", (UnitClass("C", 1), UnitClass("L", 1, 1, Latency(9, 9))))
    instance = Instance.of("CL" * repeated, 1, machine)
    return timeline_text(instance, greedy.schedules(instance, Limits())[0], width=width).splitlines()


def test_long_schedules_are_cut_into_blocks_and_very_long_ones_mixed() -> None:
    assert long(4, 28)[1:] == [
        "        0    5    10   15",
        "warp 0  CL........CL........",
        "        20   25   30   35",
        "warp 0  CL........CL........",
    ]
    mixed = long(40, 28)
    assert mixed[1] == "a column stands for 5 cycles and shows what the warp does in most of them"
    assert mixed[2:4] == ["        0    25   50   75", "warp 0  ...................."]
    assert len([line for line in mixed if line.startswith("warp")]) == 4


def test_more_warps_than_fit_are_counted() -> None:
    instance = Instance.of("C", 70)
    text = timeline_text(instance, Schedule.of_chains(instance, [(warp,) for warp in range(70)]), width=80)
    assert text.endswith("and 6 more warps")
    assert "warp 63" in text
    assert "warp 64" not in text


def test_of_equal_shares_of_a_column_a_letter_is_shown() -> None:
    instance = Instance.of("L" * 60, 1, Machine("slow", (UnitClass("L", 1, 1, Latency(2, 2)),)))
    lines = timeline_text(instance, greedy.schedules(instance, Limits())[0], width=28).splitlines()
    assert lines[1].startswith("a column stands for 2 cycles")
    assert [line for line in lines if line.startswith("warp")] == [f"warp 0  {'L' * 20}"] * 3
