"""Warps that wait for issue slots: theorems O1 and O2 against exact values, and their proofs step by step."""

import random
from collections import Counter
from itertools import accumulate

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchmarks import closed_form
from makespan import Limits, solve
from makespan.model.instance import Instance
from makespan.model.machine import DELAY, Latency, Machine, UnitClass
from makespan.model.program import Program, ProgramPlace
from makespan.model.result import Status, Upper
from makespan.proof.bounds import issue_slots, pessimistic
from makespan.proof.bounds.issue_slots import String, clusters, laps
from makespan.report.result.bundle import result_bundle
from makespan.verify import Outcome, verify
from makespan.verify import issue_slots as checker
from tests.forgery import forged, set_bounds
from tests.oracle import brute_force
from tests.strategies import general_barrier_instances, general_instances, letters

TWO = UnitClass("C", 1, 1, Latency(4, 4)), UnitClass("L", 2, 2, Latency(9, 9))
DELAYED = Machine("m", (TWO[0], UnitClass.of_delays(2)), 1)


def machine(*latencies: int | tuple[int, int], width: int = 1) -> Machine:
    """Classes C, L, S with ports for all slots."""
    spans = [each if isinstance(each, tuple) else (each, each) for each in latencies]
    units = (UnitClass(name, width, 1, Latency(*span)) for name, span in zip("CLS", spans, strict=False))
    return Machine("slots", tuple(units), width)


def gaps(*cycles: int) -> list[Latency]:
    return [Latency(each, each) for each in cycles]


def upper(instance: Instance) -> int:
    found = issue_slots(instance)
    assert found is not None
    assert checker.bound(instance) == found.upper
    return found.upper


# Where it applies


@given(st.one_of(general_instances(), general_barrier_instances()))
@settings(max_examples=100, deadline=None)
def test_it_is_never_below_brute_force_and_the_checker_agrees(instance: Instance) -> None:
    found = issue_slots(instance)
    assert (found and found.upper) == checker.bound(instance)
    assert found is None or found.upper >= brute_force(instance).upper


@pytest.mark.parametrize(
    ("one", "applies"),
    [
        (Instance.of("CL", 3, Machine("m", TWO, 1)), True),
        (Instance.of("CL", 3, Machine("m", TWO, 2)), False),  # C has one port for two slots
        (Instance.of("CL", 3, Machine("m", TWO)), False),
        (Instance.of("CC", 3, Machine("m", TWO)), True),  # its only port is a slot
        (Instance.of("LL", 3, Machine("m", TWO)), False),
        (Instance.of("CL", 3, Machine("m", (TWO[0], UnitClass("L", 1, 2, Latency(9, 9))), 1)), False),
        (Instance.of("C|L", 3, Machine("m", TWO, 1)), False),
        (Instance.merged([(Program.chain("CL"), 1), (Program.chain("CC"), 2)], Machine("m", TWO, 1)), True),
        (Instance.of(Program((ProgramPlace("C", (1, 2)), ProgramPlace("C", (2,)))), 2, Machine("m", TWO, 1)), False),
        (Instance.of(Program((ProgramPlace("C", (1,)), ProgramPlace(DELAY, (2,)))), 2, DELAYED), False),
    ],
)
def test_it_needs_strings_that_wait_for_slots_and_never_for_ports(one: Instance, applies: bool) -> None:
    assert (issue_slots(one) is not None) == applies == (checker.bound(one) is not None)


def test_a_port_that_is_held_would_make_it_wrong() -> None:
    """Three L, 9 cycles each: with an interval of 2 and one port the last one begins after 4 cycles, not after 2."""
    held = Machine("held", (TWO[0], UnitClass("L", 1, 2, Latency(9, 9))), 1)
    assert upper(Instance.of("L", 3, Machine("free", TWO, 1))) == 11
    assert brute_force(Instance.of("L", 3, held)).upper == 13


@pytest.mark.parametrize("kind", ["slots", "slots, ranges", "laps"])
def test_random_instances(kind: str) -> None:
    draw, found = random.Random(kind), Counter[str]()
    for _ in range(60):
        found.update(closed_form.judge(closed_form.instance(draw, closed_form.KINDS[kind]), patience=60))
    assert not found["wrong"]
    assert found["sharper"] > 15 < found["attained"]


# By hand


def test_gaps_that_are_as_long_as_there_are_warps_are_exact() -> None:
    for warps in (2, 4, 6):
        result = solve(Instance.of("CLLCSLC", warps, machine(6, 9, 30)), limits=Limits(0))
        assert result.status is Status.EXACT
        assert result.upper_evidence == Upper.ISSUE_SLOTS
        assert result.bounds.upper == 3 * 6 + 3 * 9 + 30 + warps - 1


@given(letters(most=40), st.integers(1, 12), st.integers(1, 3))
def test_whoever_has_gaps_as_long_as_the_others_take_waits_once(string: str, warps: int, width: int) -> None:
    long = -(-warps // width)
    instance = Instance.of(string, warps, machine(long, (long + 3, long + 3), width=width))
    alone = sum(long if letter == "C" else long + 3 for letter in string)
    assert upper(instance) == alone + long - 1


@pytest.mark.parametrize(
    ("cycles", "warps", "apart", "lapped"),
    [
        ([9, 9, 9, 9], 4, 3, 3),
        ([3, 3, 3, 3], 4, 12, 12),  # too short
        ([1, 20, 1, 20, 1], 3, 6, 6),
        ([1] * 9 + list(range(10, 22)), 2, 21, 21),
        ([1] * 9 + list(range(11, 23)), 2, 10, 20),  # longer by one, and nobody meets again
        ([1, 9] * 9 + [1], 3, 32, 24),  # O2: 38 letters of others, less 2 for the 7 gaps that begin before 90 - 24
        ([5, 1], 4, 3, 6),
        ([2], 4, 3, 3),
    ],
)
def test_by_hand(cycles: list[int], warps: int, apart: int, lapped: int) -> None:
    string = String(gaps(*cycles), warps)
    assert clusters(string, 1) == apart
    assert laps([string], 0, 1) == lapped


def test_a_gap_that_is_shorter_by_a_cycle_counts_one_less() -> None:
    """Three others issue in a gap of 40, two in one of 39, nobody must in one of 36, or after the last letter."""
    for short, spared in ((40, 3), (39, 2), (38, 1), (37, 0), (36, 0)):
        z, others = String(gaps(short, 1), 1), String(gaps(40, 40, 1), 3)
        assert laps([z, others], 0, 1) == 9 - spared
    assert laps([String(gaps(40, 1), 1), String(gaps(1), 3)], 0, 1) == 3


def test_a_gap_has_room_for_so_many_letters() -> None:
    """Five others, four slots, three gaps of 2, each with a single cycle for others alone: 4 letters each, not 5."""
    strings = [String(gaps(2, 2, 2, 1), 1), String(gaps(*([2] * 10)), 5)]
    assert laps(strings, 0, 4) == (5 * 10 - 3 * 4) // 4
    instance = Instance.merged([(Program.chain("CCCC"), 1), (Program.chain("C" * 10), 5)], machine(2, width=4))
    assert upper(instance) <= pessimistic(instance)


# What is left out on purpose: each of these claims less than some schedule takes


@pytest.mark.parametrize(
    ("groups", "latencies", "claimed"),
    [
        ([("CC", 2)], (1,), 3),  # O1, cut where the first may be ready with the last
        ([("LL", 2)], (1, (1, 4)), 9),  # O1, with the largest latencies for the smallest
        ([("CL", 3)], ((2, 5), 1), 9),  # O1, with as many letters as are late for all others
        ([("CCL", 1), ("LL", 1)], (8, (1, 4)), 21),  # O2, others are through as late as possible
        ([("C", 1), ("CC", 1)], (5,), 10),  # O2, as if nobody were ever through
        ([("LLLL", 1), ("CC", 2)], (5, 4), 18),  # O2, shorter gaps count in full
    ],
)
def test_sharper_formulas_are_wrong(groups: list[tuple[str, int]], latencies: tuple[int, ...], claimed: int) -> None:
    instance = Instance.merged([(Program.chain(string), warps) for string, warps in groups], machine(*latencies))
    assert claimed < brute_force(instance).upper <= upper(instance)


# The proofs


Letter = tuple[int, int]
"""The cycle of its issue, and its latency."""


def random_run(draw: random.Random, strings: list[list[Latency]], slots: int) -> list[list[Letter]]:
    """Any schedule in which a warp waits only if all slots are taken; some prefer a warp, some hold one back."""
    runs: list[list[Letter]] = [[] for _ in strings]
    ready, style, now = [0] * len(strings), draw.random(), 0
    rank = [draw.random() for _ in strings]
    while any(len(run) < len(string) for run, string in zip(runs, strings, strict=True)):
        able = [w for w, string in enumerate(strings) if ready[w] <= now and len(runs[w]) < len(string)]
        able.sort(key=lambda w: draw.random() if style < 0.4 else rank[w] - len(runs[w]) * (style > 0.7) + 9 * (w == 0))
        for warp in able[:slots]:
            gap = strings[warp][len(runs[warp])]
            runs[warp].append((now, draw.choice((gap.least, gap.most, draw.randint(gap.least, gap.most)))))
            ready[warp] = now + runs[warp][-1][1]
        if draw.random() < 0.05:
            rank = [draw.random() for _ in strings]
        now += 1
    return runs


def clusters_step_by_step(run: list[list[Letter]], string: list[Latency], slots: int, slack: int) -> tuple[int, int]:
    """How much less late the latest warps are than theorem O1 says, at every cut, and how far apart all are there.

    A cut is where they must be more than `slack` apart; the theorem says 0.
    """
    first, last = ([0, *accumulate(sums)] for sums in zip(*((gap.least, gap.most) for gap in string), strict=True))
    late, least, apart = len(run) - 1, 9**9, 9**9
    for at in range(len(string)):
        delays = sorted((issues[at][0] - last[at] for issues in run), reverse=True)
        cut = at + 1 == len(string) or first[at + 1] - last[at] - late // slots > slack
        if cut:
            least = min(least, late - max(slots * delay + rank for rank, delay in enumerate(delays)))
            if at + 1 < len(string):
                apart = min(apart, min(i[at][0] + i[at][1] for i in run) - max(i[at][0] for i in run))
        else:
            late += len(run) - 1
    return least, apart


def gaps_step_by_step(run: list[list[Letter]], slots: int, without: str = "") -> list[int]:
    """For every warp and gap, how many more letters others issue in it than theorem O2 says."""
    longest = max((latency for issues in run for _, latency in issues[:-1]), default=1)
    found = []
    for z, mine in enumerate(run):
        others = [[t for t, _ in issues] for w, issues in enumerate(run) if w != z]
        for begin, gap in mine[:-1]:
            left = sum(issues[-1] >= begin or without == "through" for issues in others)
            most = left if without == "room" else min(left, slots * (longest - 1))
            least = most - slots * (longest - gap) * (without != "shorter")
            found.append(sum(begin <= t < begin + gap for issues in others for t in issues) - least)
    return found


def draws(count: int) -> list[tuple[random.Random, list[Latency], int, int]]:
    """A string, warps and slots, mostly with short gaps and a few long ones."""
    found = []
    for number in range(count):
        draw = random.Random(number)
        some = [
            Latency(least, least + draw.choice((0, 0, 1, 3))) for least in draw.choices((1, 1, 2, 4, 9, 15, 40), k=3)
        ]
        found.append((draw, draw.choices(some, k=draw.randint(2, 14)), draw.randint(2, 6), draw.randint(1, 2)))
    return found


def test_at_every_cut_warps_are_as_late_as_theorem_o1_says_and_apart() -> None:
    found = Counter[int]()
    for draw, string, warps, slots in draws(600):
        least, apart = clusters_step_by_step(random_run(draw, [string] * warps, slots), string, slots, slack=0)
        assert least >= 0 < apart
        found[least] += 1
    assert found[0] > 100


def test_theorem_o1_needs_its_cuts() -> None:
    runs = [(random_run(draw, [string] * warps, slots), string, slots) for draw, string, warps, slots in draws(600)]
    assert min(min(clusters_step_by_step(run, string, slots, slack=-1)) for run, string, slots in runs) < 0


def test_in_every_gap_others_issue_as_many_letters_as_theorem_o2_says() -> None:
    found = Counter[int]()
    for draw, string, warps, slots in draws(600):
        other = draw.choices(string, k=draw.randint(1, 9))
        strings = [string if draw.random() < 0.7 else other for _ in range(warps)]
        found.update(gaps_step_by_step(random_run(draw, strings, slots), slots))
    assert min(found) == 0
    assert found[0] > 1000


@pytest.mark.parametrize("without", ["through", "room", "shorter"])
def test_theorem_o2_needs_its_premises(without: str) -> None:
    runs = ((random_run(draw, [string] * warps, slots), slots) for draw, string, warps, slots in draws(300))
    assert min(min(gaps_step_by_step(run, slots, without), default=0) for run, slots in runs) < 0


# Its evidence


def test_a_bundle_rests_on_the_letters_alone() -> None:
    instance = Instance.of("CLLCSLC" * 3, 8, machine(1, 40, 40))
    document = result_bundle(solve(instance, limits=Limits(0), backend="certificate"))
    assert document["result"]["evidence"]["upper"] == "issue-slots"
    assert verify(document).outcome is Outcome.ACCEPTED
    assert document["result"]["upper"] < pessimistic(instance)
    proven = document["result"]["upper"]
    lowered = forged(document, lambda copied: set_bounds(copied, copied["result"]["lower"], proven - 1))
    assert verify(lowered).reason == f"upper {proven - 1} reported by issue-slots, which proves only {proven}"


@pytest.mark.parametrize("change", [{"issue_width": None}, {"issue_width": 2}])
def test_one_slot_is_a_premise(change: dict[str, int | None]) -> None:
    document = result_bundle(solve(Instance.of("CLLC", 3, machine(9, 9)), limits=Limits(0)))
    other = forged(document, lambda copied: copied["instance"]["machine"].update(change))
    assert verify(other).outcome is Outcome.REJECTED


def test_phases_between_barriers_rest_on_it() -> None:
    document = result_bundle(solve(Instance.of("CLLC|LCLCL", 4, machine(9, 30)), limits=Limits(0)))
    assert [phase["evidence"] for phase in document["phases"]] == ["issue-slots"] * 2
    assert verify(document).outcome is Outcome.ACCEPTED
