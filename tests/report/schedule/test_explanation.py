"""Why the last warp takes so long."""

import json
from collections import Counter

import pytest
from hypothesis import given, settings

from makespan.model.instance import Instance
from makespan.model.machine import Latency, Machine, UnitClass
from makespan.model.schedule import Schedule
from makespan.model.simulate import replay
from makespan.proof.engines import solve
from makespan.report.result import text
from makespan.report.schedule.activity import Why, bars, holds, lanes, partitions
from makespan.report.schedule.explanation import (
    Explanation,
    RivalShare,
    Stall,
    Starvation,
    explain,
    explanation_document,
    explanation_words,
)
from tests.report.schedule.cases import ISSUES, Case, cases, cycle_by_cycle


def counted(case: Case, warp: int) -> Counter[tuple[str, str]]:
    """What a warp does, in cycles, by the definition; for a resource the second word is what it lacks."""
    return Counter(
        (what, str(cycle.causes[warp]) if what == Why.RESOURCE else unit)
        for cycle in cycle_by_cycle(*case)
        if warp in cycle.doing
        for what, unit in [cycle.doing[warp]]
    )


def ends(case: Case) -> list[int]:
    """When each warp has finished, by the definition."""
    found = [0] * case[0].warps
    for at, cycle in enumerate(cycle_by_cycle(*case)):
        for warp in cycle.doing:
            found[warp] = at + 1
    return found


@given(cases())
@settings(deadline=None)
def test_the_parts_add_up_to_the_makespan(case: Case) -> None:
    assert explain(*case).cycles == case[1].makespan


@given(cases())
@settings(deadline=None)
def test_it_is_about_the_first_warp_that_finishes_last(case: Case) -> None:
    explained, finish = explain(*case), ends(case)
    assert explained.warp == finish.index(case[1].makespan)
    assert explained.together == finish.count(case[1].makespan)


@given(cases())
@settings(deadline=None)
def test_every_part_is_what_the_definition_says(case: Case) -> None:
    explained = explain(*case)
    happens = counted(case, explained.warp)
    assert explained.executing == sum(n for (what, _), n in happens.items() if what == ISSUES)
    assert explained.barriers == sum(n for (what, _), n in happens.items() if what == Why.BARRIER)
    assert dict(explained.stalled) == {unit: n for (what, unit), n in happens.items() if what == Why.STALLED}
    assert dict(explained.awaited) == {unit: n for (what, unit), n in happens.items() if what == Why.RESULT}
    starved: Counter[str | None] = Counter()
    for (what, unit), n in happens.items():
        if what in (Why.PORT, Why.RESOURCE, Why.SLOT):
            starved[None if what == Why.SLOT else unit] += n
    assert {each.unit: each.cycles for each in explained.starved} == starved
    for parts in (explained.starved, explained.stalled, explained.awaited):
        assert [each.cycles for each in parts] == sorted((each.cycles for each in parts), reverse=True)


@given(cases())
@settings(deadline=None)
def test_those_who_starve_it_are_counted_cycle_by_cycle(case: Case) -> None:
    instance, schedule = case
    explained = explain(*case)
    by: dict[str | None, Counter[int]] = {each.unit: Counter() for each in explained.starved}
    issued, parts = bars(*case), partitions(*case)
    home = {(lane.name, lane.port): lane.partition for lane in lanes(instance.machine)}
    held = [(bar.unit, home[bar.unit, bar.port], bar.warp, bar.first_cycle, bar.cycles) for bar in issued]
    held += [(h.resource, home[h.resource, h.port], h.warp, h.first_cycle, h.cycles) for h in holds(*case, issued)]
    part = parts[explained.warp]
    for at, cycle in enumerate(cycle_by_cycle(*case)):
        what, unit = cycle.doing.get(explained.warp, ("", ""))
        if what in (Why.PORT, Why.RESOURCE):
            lacked = unit if what == Why.PORT else str(cycle.causes[explained.warp])
            names = lacked.split(" or ")
            by[lacked].update(
                {
                    w
                    for name, where, w, since, n in held
                    if name in names and where in (None, part) and since <= at < since + n
                }
            )
        elif what == Why.SLOT:
            by[None].update(warp for warp in schedule.cycles[at] if parts[warp] == part)
    for each in explained.starved:
        assert dict(each.by) == by[each.unit]
        assert list(each.by) == sorted(each.by, key=lambda share: (-share.cycles, share.warp))
        if each.unit is None:
            assert sum(share.cycles for share in each.by) == each.cycles * (instance.machine.issue_width or 0)


def test_a_warp_can_starve_on_a_port_that_it_holds_itself() -> None:
    instance = Instance.of("CC", 1, Machine("slow", (UnitClass("C", 1, 3),)))
    schedule = Schedule.of_chains(instance, [(0,), (), (), (0,)])
    assert replay(instance, schedule) == 4
    assert explain(instance, schedule) == Explanation(0, 1, 2, (Starvation("C", 2, (RivalShare(0, 2),)),), (), 0)


def test_two_ports_of_one_warp_in_one_cycle_count_once() -> None:
    machine = Machine("slow", (UnitClass("C", 2, 4), UnitClass("L", 1, 1, Latency(2, 2))))
    instance = Instance.merged(
        [(Instance.of("CC", 1).groups[0].program, 1), (Instance.of("LC", 1).groups[0].program, 1)], machine
    )
    schedule = Schedule.of_chains(instance, [(0, 1), (0,), (), (), (1,)])
    assert replay(instance, schedule) == 5
    assert explain(instance, schedule).starved == (Starvation("C", 2, (RivalShare(0, 2),)),)


def test_issue_slots_are_taken_in_the_cycle_of_issue_only() -> None:
    instance = Instance.of("C", 3, Machine("narrow", (UnitClass("C", 3, 3),), 1))
    schedule = Schedule.of_chains(instance, [(0,), (1,), (2,)])
    assert replay(instance, schedule) == 3
    assert explain(instance, schedule).starved == (Starvation(None, 2, (RivalShare(0, 1), RivalShare(1, 1))),)


def test_what_takes_most_comes_first() -> None:
    instance = Instance.of("CLLCLL", 2)
    schedule = Schedule.of_chains(instance, [(0,), (0, 1), (0,), (0, 1), (0,), (0,), (1,), (1,), (1,), (1,)])
    assert replay(instance, schedule) == 10
    assert [(each.unit, each.cycles) for each in explain(instance, schedule).starved] == [("L", 3), ("C", 1)]


def test_a_barrier_at_the_end_makes_all_warps_of_a_block_finish_together() -> None:
    instance = Instance.of("C|", 2)
    schedule = Schedule.of_chains(instance, [(0,), (1,)])
    assert replay(instance, schedule) == 2
    assert explain(instance, schedule) == Explanation(0, 2, 1, (), (), 1)


def test_words_name_the_worst_and_say_of_several_last_warps_that_they_are() -> None:
    starved = (
        Starvation("C", 70, (RivalShare(0, 40), RivalShare(3, 20), RivalShare(1, 6), RivalShare(2, 4))),
        Starvation("L", 5, (RivalShare(0, 5),)),
        Starvation(None, 4, (RivalShare(0, 2), RivalShare(1, 2))),
        Starvation("S", 2, (RivalShare(5, 2),)),
    )
    told = explanation_words(Explanation(7, 3, 22, starved, (Stall("L", 29), Stall("C", 6)), 8))
    assert told == (
        "the last warp, number 7 (2 more finish in the same cycle): 22 cycles executing,"
        " 70 starved on C (most by warps 0: 40, 3: 20, 1: 6), 5 starved on L (by warp 0),"
        " 4 starved on issue slots (by warps 0: 2, 1: 2), 2 starved on the rest,"
        " 35 stalled on latency (L: 29, C: 6), 8 waiting at barriers"
    )


@given(cases())
@settings(deadline=None)
def test_the_document_is_the_same_as_plain_data(case: Case) -> None:
    explained = explain(*case)
    told = json.loads(json.dumps(explanation_document(explained)))
    assert told["cycles"] == case[1].makespan
    assert {each["unit"]: each["cycles"] for each in told["starved"]} == {e.unit: e.cycles for e in explained.starved}
    assert [[share["warp"], share["cycles"]] for each in told["starved"] for share in each["by"]] == [
        list(share) for each in explained.starved for share in each.by
    ]


def test_the_report_explains_in_at_most_six_short_lines() -> None:
    units = tuple(UnitClass(name, 1, 2, Latency(5, 5)) for name in "ABCDEFGHIJ")
    instance = Instance.of("ABCDEFGHIJ|ABCDEFGHIJ", 20, Machine("wide", units, 2))
    result = solve(instance, backend="certificate")
    lines = text.result_report(result).splitlines()
    begin = next(number for number, line in enumerate(lines) if line.startswith("the last warp, number "))
    end = next(number for number, line in enumerate(lines) if line == "assumptions:")
    assert 1 <= end - begin <= 6
    assert all(len(line) <= 110 for line in lines[begin:end])
    assert explanation_words(explain(instance, result.witness)) == " ".join(line.strip() for line in lines[begin:end])


def test_a_warp_and_its_cycles_stay_on_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    result = solve(Instance.of("CLLCLL", 9))
    for width in range(40, 110):
        lines = text.result_report(result, width=width).splitlines()
        assert not any(line.endswith(":") for line in lines[lines.index("assumptions:") + 1 :])
