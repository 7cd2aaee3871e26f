"""Theorem F: against exact values of fair schedulers over its whole domain, by hand, and its proof gap by gap."""

import random
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from importlib import import_module
from itertools import pairwise

import pytest

from benchmarks import fair_scheduler
from makespan.model.instance import Instance
from makespan.model.machine import Latency, Machine, SchedulerPromise, UnitClass
from makespan.model.program import Program
from makespan.model.result import Upper
from makespan.proof.bounds import closed_form, pessimistic, theorem_f
from makespan.verify import fair as checker
from tests.oracle import brute_force

form = import_module("makespan.proof.bounds.theorem_f")  # its function has its name


def machine(*latencies: int | tuple[int, int], scheduler: SchedulerPromise = SchedulerPromise.FAIR) -> Machine:
    """One issue slot, and a class C, L, S, D for each latency."""
    spans = [(span, span) if isinstance(span, int) else span for span in latencies]
    units = tuple(UnitClass(name, 1, 1, Latency(*span)) for name, span in zip("CLSD", spans, strict=False))
    return Machine("partition", units, issue_width=1, scheduler=scheduler)


def upper(instance: Instance) -> int:
    found = theorem_f(instance)
    assert found is not None
    assert checker.theorem_f(instance) == found.upper
    return found.upper


@pytest.mark.parametrize(("warps", "letters", "latency", "ranges"), fair_scheduler.SIZES[:-1])
def test_it_is_never_below_the_exact_value_of_a_fair_scheduler(
    warps: int, letters: int, latency: int, ranges: bool
) -> None:
    draw = random.Random(f"{warps} {ranges}")
    found = Counter[str]()
    for _ in range(25):
        instance = fair_scheduler.drawn(draw, warps, letters, latency, ranges)
        exact, bound = brute_force(instance).upper, upper(instance)
        assert exact <= bound, instance
        assert exact == fair_scheduler.exact(instance)
        found["attained"] += exact == bound
        found["sharper"] += bound < pessimistic(instance)
    assert found["attained"] > 8
    assert found["sharper"]


@pytest.mark.parametrize(("warps", "latency"), [(2, 1), (3, 2), (4, 3), (3, 3), (3, 5)])
@pytest.mark.parametrize("letters", [1, 4])
def test_for_one_latency_it_is_exact(warps: int, latency: int, letters: int) -> None:
    instance = Instance.of("C" * letters, warps, machine(latency))
    waiting = warps - 1 + (letters - 1) * max(0, warps - latency)
    assert upper(instance) == brute_force(instance).upper == letters * latency + waiting


def test_schedules_of_a_fair_scheduler_are_schedules_of_any() -> None:
    draw = random.Random(0)
    worse = 0
    for _ in range(20):
        instance = fair_scheduler.drawn(draw, 3, 3, 4, False)
        exact, any_scheduler = brute_force(instance).upper, brute_force(instance.relaxed).upper
        assert exact <= any_scheduler <= pessimistic(instance)
        worse += exact < any_scheduler
    assert worse


def test_any_scheduler_can_be_worse() -> None:
    """Two of the three warps keep the slot to themselves until they have ended."""
    instance = Instance.of("CCCC", 3, machine(2))
    assert (upper(instance), brute_force(instance.relaxed).upper) == (8 + 2 + 3, 8 + 2 * 4)


def test_by_hand_with_loads() -> None:
    """8 + 8 cycles of latency; 3 before the first instruction and after the load, 4 - 2 after three C; then floor(...).

    The load of each of three others may end between two of the three gaps of C, and counts (2 - 1) / 3.
    """
    assert upper(Instance.of("CCCLC", 4, machine(2, 8))) == 16 + 3 + 3 * 2 + 3 + 1


def test_a_shorter_latency_of_others_counts_once() -> None:
    """Cheap is L, of latency 3 = W; after C the wait is 2, and the C of each of the two others counts 1."""
    assert upper(Instance.of("LLLCLLL", 3, machine(1, 3))) == 19 + 2 + 2 + 2
    assert upper(Instance.of("LLLLLLC", 3, machine(1, 3))) == 19 + 2  # but not if it is the last


def test_many_ranges_of_latencies_are_cheap_together_or_each_alone() -> None:
    slow = machine((2, 3), 3, 9)
    groups = [(Program.chain("CCLC"), 2), (Program.chain("SLC"), 1), (Program.chain("L"), 1)]
    assert upper(Instance.merged(groups, slow)) <= pessimistic(Instance.merged(groups, slow))


FAIR = Instance.of("CCL", 3, machine(2, 5))


@pytest.mark.parametrize(
    "other",
    [
        FAIR.relaxed,
        replace(FAIR, machine=replace(FAIR.machine, issue_width=2)),
        replace(FAIR, machine=replace(FAIR.machine, issue_width=None)),
        replace(FAIR, machine=replace(FAIR.machine, units=(UnitClass("C", 1, 2), UnitClass("L", 1)))),
        Instance.of("CC|L", 3, FAIR.machine),
        Instance.of("CCL", 1, FAIR.machine),
    ],
)
def test_its_premises(other: Instance) -> None:
    assert theorem_f(other) is None
    assert checker.theorem_f(other) is None


def test_ranges_are_neighbours_by_their_longest_latency() -> None:
    """C of 2..3 and S of 3 are cheap together, without L of 2."""
    assert upper(Instance.of("LCSSCS", 3, machine((2, 3), 2, 3))) == 27


def test_classes_that_nobody_uses_do_not_matter() -> None:
    wider = replace(FAIR.machine, units=(*FAIR.machine.units, UnitClass("D", 1, 16)))
    assert upper(replace(FAIR, machine=wider)) == upper(FAIR)


def test_too_many_places_are_left_to_others(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (form, checker):
        monkeypatch.setattr(module, "MOST_STEPS", 3 * 4 - 1)
    assert theorem_f(FAIR) is None
    assert checker.theorem_f(FAIR) is None


def test_phases_between_barriers_have_it() -> None:
    from makespan import solve

    found = solve(Instance.of("CCCC|CCC", 3, machine(2)))
    assert found.bounds.upper == (8 + 2 + 3) + (6 + 2 + 2) == found.bounds.lower
    assert [phase.evidence for phase in found.phases] == [Upper.THEOREM_F] * 2


def test_of_equal_bounds_the_one_of_any_scheduler_is_named() -> None:
    """With gaps of three letters' latency nothing is left of the promise."""
    assert closed_form(Instance.of("C", 3, machine(2))).evidence is Upper.PESSIMISTIC


# Its proof


def random_run(draw: random.Random, instance: Instance, without: str) -> list[list[tuple[int, int, int]]]:
    """For every warp of strings its issues (cycle, latency, class number), under all premises but `without`."""
    units = instance.machine.units
    number = {unit.name: at for at, unit in enumerate(units)}
    strings = [[number[letter] for letter in program.letters or ""] for program in instance.programs()]
    issues: list[list[tuple[int, int, int]]] = [[] for _ in strings]
    ready, last = [0] * len(strings), [-1] * len(strings)
    style, rank, now = draw.choice(("fifo", "lri", "any")), [draw.random() for _ in strings], 0
    while any(len(done) < len(string) for done, string in zip(issues, strings, strict=True)):
        waiting = [w for w, string in enumerate(strings) if ready[w] <= now and len(issues[w]) < len(string)]
        fair = [w for w in waiting if not any(ready[z] < ready[w] and last[z] < last[w] for z in waiting)]
        if without == "a promise":
            fair = waiting
        lazy = without == "work conservation" and draw.random() < 0.3
        held = without == "an interval of one cycle" and now - 1 in last
        if fair and not lazy and not held:
            order = {"fifo": ready, "lri": last}.get(style, [0] * len(strings))
            _, _, chosen = min((order[w], rank[w], w) for w in fair)
            unit = units[strings[chosen][len(issues[chosen])]]
            latency = draw.choice((unit.latency.least, unit.latency.most, unit.latency.most))
            issues[chosen].append((now, latency, strings[chosen][len(issues[chosen])]))
            ready[chosen], last[chosen] = now + latency, now
        now += 1
    return issues


def gaps(instance: Instance, issues: list[list[tuple[int, int, int]]], last: int) -> Iterator[tuple[str, int]]:
    """What is left of each inequality of the proof, for every gap of the warp `last`."""
    warps, units, mine = instance.warps, instance.machine.units, issues[last]
    busy = {cycle for row in issues for cycle, _, _ in row}
    others = [row for warp, row in enumerate(issues) if warp != last]
    yield "first", warps - 1 - mine[0][0]
    for (cycle, latency, unit), (after, _, _) in pairwise(mine):
        most, ready = units[unit].latency.most, cycle + latency
        astride = again = waited = 0
        for row in others:
            inside = [at for at, one in enumerate(row) if cycle < one[0] < after]
            waited += sum(row[at][0] >= ready for at in inside)
            again += len(inside[1:])
            for at in inside[1:]:
                yield "shorter", most - 1 - units[row[at - 1][2]].latency.least
            if inside and inside[0]:
                astride += units[row[inside[0] - 1][2]].latency.most > most
        yield "wait", warps - 1 - waited
        if all(one in busy for one in range(cycle + 1, after)):
            yield "busy", warps + again - (after - cycle)
        else:
            yield "idle", most + astride + again - (after - cycle)


def ledgers(count: int, without: str = "") -> Counter[str]:
    """How often each inequality was evaluated, held with equality, and was violated, in random schedules."""
    draw, found = random.Random(count), Counter[str]()
    while found["runs"] < count:
        instance = fair_scheduler.drawn(draw, draw.randint(2, 7), 12, draw.choice((3, 6, 9)), draw.random() < 0.4)
        if not all(group.program.is_chain for group in instance.groups):
            continue
        found["runs"] += 1
        issues = random_run(draw, instance, without)
        ends = [row[-1][0] + row[-1][1] for row in issues]
        for name, left in gaps(instance, issues, ends.index(max(ends))):
            found[name] += 1
            found[f"{name} tight"] += left == 0
            found[f"{name} violated"] += left < 0
    return found


def test_the_inequalities_of_the_proof_hold_in_every_gap() -> None:
    found = ledgers(1500)
    assert not any(found[name] for name in found if name.endswith("violated")), found
    assert all(found[f"{name} tight"] for name in ("first", "wait", "shorter", "busy", "idle")), found


@pytest.mark.parametrize(
    ("without", "broken"),
    [
        ("a promise", {"first", "wait", "shorter"}),
        ("work conservation", {"idle"}),
        ("an interval of one cycle", {"first", "idle"}),
    ],
)
def test_without_a_premise_an_inequality_fails(without: str, broken: set[str]) -> None:
    found = ledgers(400, without)
    assert {name.removesuffix(" violated") for name in found if name.endswith("violated") and found[name]} >= broken
