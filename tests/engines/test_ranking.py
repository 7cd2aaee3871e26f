"""Climbing: what it yields is replayed and never too long, and a run of a ranking is that of the plain simulator."""

import random
from collections.abc import Sequence
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from makespan.host.errors import UnsupportedError
from makespan.model.instance import Instance
from makespan.model.machine import Latency, Machine, SchedulerPromise, UnitClass
from makespan.model.program import Program
from makespan.model.simulate import replay
from makespan.model.simulate.choices import Choices, choose_routes
from makespan.model.simulate.floor_compiled import LATEST
from makespan.model.simulate.policies import SchedulingPolicy
from makespan.model.simulate.runner import Runner
from makespan.model.simulate.runs import simulate_policies
from makespan.proof.bounds import closed_form
from makespan.proof.engines.construct import ranking
from makespan.proof.engines.limits import Limits
from tests.effort import Looks
from tests.oracle import brute_force
from tests.strategies import general_instances, letters, multiprocessor_instances

SLOW = Machine("slow", (UnitClass("C", 1), UnitClass("L", 1, 1, Latency(10, 10))))
FORTY = "".join(random.Random(1).choices("CL", k=40))


class Ranked(SchedulingPolicy):
    """Picks who stands at the smallest rank, in the words of the plain simulator."""

    def __init__(self, rows: Sequence[Sequence[int]]) -> None:
        self._rows = [list(row) for row in rows]

    def pick(self, able: Sequence[int]) -> int:
        """Every pick is an issue, so the next rank of a warp is that of its next place."""
        chosen = min(able, key=lambda warp: (self._rows[warp][0], warp))
        del self._rows[chosen][0]
        return chosen


@settings(max_examples=60)
@given(general_instances(most_warps=5, most=5), st.randoms(use_true_random=False))
def test_a_run_of_a_ranking_is_as_long_as_in_the_plain_simulator(instance: Instance, draw: random.Random) -> None:
    chosen = choose_routes(instance, Choices())
    runner = Runner(instance, chosen)
    ranks = np.array(draw.sample(range(len(runner.work.entries)), len(runner.work.entries)))
    rows = [
        ranks[first : first + len(own)].tolist()
        for first, own in zip(runner.state.slots["row"], chosen.latencies, strict=True)
    ]
    found = runner.schedule_of(runner.by_ranks(LATEST, ranks))
    assert replay(instance, found) == found.makespan
    assert found.makespan == simulate_policies(instance, [Ranked(rows)], chosen).makespan


@settings(max_examples=30)
@given(general_instances(most_warps=5, most=5))
def test_schedules_get_longer_and_stay_work_conserving(instance: Instance) -> None:
    enough = closed_form(instance).upper
    found = list(ranking.climb(instance, Limits(), enough))
    lengths = [replay(instance, schedule) for schedule in found]
    assert lengths == sorted(set(lengths))
    assert 0 < lengths[-1] <= enough
    assert [schedule.cycles for schedule in ranking.climb(instance, Limits(), enough)] == [one.cycles for one in found]


@settings(max_examples=30)
@given(multiprocessor_instances())
def test_so_do_they_on_a_multiprocessor_with_barriers_and_stay_below_the_worst_case(instance: Instance) -> None:
    lengths = [replay(instance, schedule) for schedule in ranking.climb(instance, Limits(), 1000)]
    assert lengths == sorted(set(lengths))
    assert 0 < lengths[-1] <= brute_force(instance).upper


@pytest.mark.parametrize(
    ("instance", "worst"),
    [
        (Instance.of("CLCLCL", 10, Machine.of({"C": 2, "L": 2})), 19),
        (Instance.of("CCLLCC", 10, Machine.of({"C": 2, "L": 1})), 28),
        (Instance.of("CLLCLL", 10, Machine.of({"C": 1, "L": 2})), 24),
    ],
)
def test_climbing_reaches_what_an_exhaustive_search_has_found(instance: Instance, worst: int) -> None:
    *_, last = ranking.climb(instance, Limits(), worst)
    assert last.makespan == worst


def test_climbing_comes_close_to_theorem_e_where_others_can_keep_a_port_busy() -> None:
    instance = Instance.of(FORTY, 16, SLOW)
    first, *_, last = ranking.climb(instance, Limits(), closed_form(instance).upper)
    assert first.makespan < last.makespan
    assert 100 * last.makespan >= 98 * closed_form(instance).upper


@given(letters(most=14), st.integers(1, 9), st.integers(0, 5))
def test_lockstep_takes_what_theorem_l_says(string: str, warps: int, more: int) -> None:
    slow = Latency(warps + more, warps + more)
    instance = Instance.of(string, warps, Machine("long", (UnitClass("C", 1), UnitClass("L", 1, 1, slow))))
    alone = string.count("C") + slow.most * string.count("L")
    neighbours = sum(pair == ("C", "C") for pair in pairwise(string))
    assert begun(instance, None, 2) == alone + (warps - 1) * (1 + neighbours)


@given(
    st.lists(st.tuples(st.integers(1, 4), st.sampled_from("CS")), min_size=1, max_size=5),
    st.integers(0, 3),
    st.integers(1, 5),
    st.integers(1, 5),
    st.integers(0, 3),
)
def test_starvation_attains_theorem_e(
    blocks: list[tuple[int, str]], tail: int, own: int, other: int, more: int
) -> None:
    string = "".join("L" * count + after for count, after in blocks) + "L" * tail
    machine = Machine(
        "short",
        (
            UnitClass("L", 1, 1, Latency(own, own)),
            UnitClass("C", 1, 1, Latency(other, other)),
            UnitClass("S", 1, 1, Latency(1, 1)),
        ),
    )
    instance = Instance.of(string, 1 + own + other + more, machine)
    assert begun(instance, instance.warps - 1, 0) == closed_form(instance).upper


def begun(instance: Instance, laggard: int | None, rule: int) -> int:
    """Cycles of the schedule that a rule begins with."""
    return ranking._climber(instance, laggard, ranking.RULES[rule]).makespan


def test_long_paths_are_improved_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ranking, "PART", 12)
    monkeypatch.setattr(ranking, "PATIENCE_FOR_PARTS", 1)
    short, long = Program.chain("CLLC"), Program.chain(FORTY)
    instance = Instance.merged([(long, 6), (short, 2)], Machine.of({"C": 2, "L": 2}))
    lengths = [replay(instance, schedule) for schedule in ranking.climb(instance, Limits(), 1000)]
    assert len(lengths) > 1
    assert lengths == sorted(set(lengths))
    assert lengths[-1] <= closed_form(instance).upper


def test_climbing_ends_where_nothing_longer_can_be() -> None:
    instance = Instance.of("CCLLCC", 3, Machine.of({"C": 2, "L": 1}))
    first, *more = ranking.climb(instance, Limits(), 1)
    assert (first.makespan > 1, more) == (True, [])


def test_climbing_stops_at_a_limit() -> None:
    instance = Instance.of(FORTY, 16, SLOW)
    assert list(ranking.climb(instance, Limits(seconds=0), 10_000)) == []
    early = list(ranking.climb(instance, Looks(6), 10_000))
    assert len(early) == 1 < len(list(ranking.climb(instance, Limits(), 10_000)))


def test_climbing_refuses_a_promise_of_the_scheduler() -> None:
    fair = Machine("fair", (UnitClass("C", 1),), scheduler=SchedulerPromise.FAIR)
    with pytest.raises(UnsupportedError, match="climbing does not know a fair scheduler"):
        list(ranking.climb(Instance.of("C", 4, fair), Limits(), 100))
