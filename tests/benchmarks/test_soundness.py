"""The campaign against all schedules: the explorer has the truth, a few of every kind are right, a fault is told."""

import json
import random
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks import claims as claimed
from benchmarks import soundness
from benchmarks.explorer import Explorer, Truth
from benchmarks.small_instances import KINDS, improved, rebuilt
from benchmarks.soundness import Asked, Campaign, look
from makespan import Instance
from makespan.model.machine import Latency, Machine, PortResource, SchedulerPromise, UnitClass, Use, WarpAssignment
from makespan.model.strings import parse_string
from makespan.proof.bounds import least_possible
from tests.oracle import brute_force

WIDE = Machine("wide", (UnitClass("C", 1), UnitClass("L", 1, 1, Latency(3, 3))), issue_width=1)


def asked(kind: str, numbers: range, *, share: int = 1000) -> Asked:
    return Asked(1, kind, numbers, steps=3000, share=share, seconds=5.0)


def of(machine: Machine, *strings: str, blocks: int = 1) -> Instance:
    return Instance.merged([(parse_string(one, machine), blocks) for one in strings], machine, blocks=blocks)


def _by_hand() -> Iterator[tuple[Instance, int]]:
    """Longest schedules of docs/model.md, each a rule that the others do not have."""
    fast = replace(WIDE, units=(WIDE.units[0], UnitClass("L", 1, 1, Latency(2, 2))))
    yield of(WIDE, "LC", "LC", "LC"), 6
    yield of(fast, "LC", "LC", "LC"), 7
    yield of(WIDE, *["L()C(1)"] * 3), 6
    yield of(WIDE, *["L()C()"] * 3), 7
    yield of(fast, "C|LC", "C|LC"), 6
    yield of(fast, "C|LC", blocks=2), 7
    apart = Machine("apart", (UnitClass("C", 1), UnitClass("L", 1)), 1, partitions=2, assignment=WarpAssignment.MODULO)
    yield of(apart, "CCC", "CL", "L", "CC"), 4
    yield of(apart, "CCC", "L", "CC"), 5
    yield of(replace(apart, assignment=WarpAssignment.ANY), "CC", "CC", "L", "L"), 4
    for least, worst in ((2, 8), (1, 10)):
        load = UnitClass("L", 1, uses=(Use(("memory",), least, 2),))
        units = (UnitClass("C", 1, 2, Latency(3, 3)), load)
        yield of(Machine("held", units, 1, resources=(PortResource("memory", 1),)), "LC", "LC", "LC"), worst
    pipes = (PortResource("a", 1), PortResource("b", 1))
    for cycles, worst in ((6, 7), (3, 12)):
        uses = {"P": Use(("a",), cycles, cycles), "Q": Use(("b",), 4, 4), "X": Use(("a", "b"), 8, 8), "R": Use(("a",))}
        either = tuple(UnitClass(name, 1, uses=(use,)) for name, use in uses.items())
        yield of(Machine("pipes", either, 1, resources=pipes), "P()Q()X()R()"), worst


def test_the_explorer_has_the_longest_schedules_of_the_model(explorer: Explorer) -> None:
    instances, worst = zip(*_by_hand(), strict=True)
    found = explorer(instances, 3000)
    assert [one and one.longest for one in found] == list(worst)


def test_a_fair_scheduler_takes_schedules_away(explorer: Explorer) -> None:
    """Fair, all warps have issued C before one issues L, and nobody waits behind a late one."""
    instance = Instance.of("CLC", 3, WIDE)
    fair = replace(instance, machine=replace(WIDE, scheduler=SchedulerPromise.FAIR))
    assert [one and one[:2] for one in explorer((instance, fair), 3000)] == [(9, 11), (9, 9)]


def test_the_explorer_stops_where_there_are_too_many_steps(explorer: Explorer) -> None:
    instance = Instance.of("CLLCLL", 2)
    (truth,) = explorer([instance], 3000)
    assert truth is not None
    assert truth[:2] == (9, 10)
    assert explorer([instance, instance], truth.steps - 1) == [None, None]
    assert explorer([instance], truth.steps) == [truth]


@pytest.mark.parametrize("kind", KINDS)
def test_nothing_is_wrong_with_a_few_of_every_kind(explorer: Explorer, kind: str) -> None:
    batch = look(explorer, asked(kind, range(1, 9)))
    assert [one.faults for one in batch.looked] == [()] * 8
    assert all(one.ratio >= 1 for one in batch.looked)
    assert {"robust: relatives", "robust: too large"} & set(batch.looked[-1].outcomes)


def test_every_look_at_an_instance_is_counted(explorer: Explorer) -> None:
    (one,) = look(explorer, asked("capacities", range(3, 4), share=1)).looked
    assert one.faults == ()
    assert {"definition", "policy", "auto agrees", "bundle accepted", "search agrees"} <= {*one.outcomes}


def test_an_instance_comes_again_and_an_improvement_is_another_one() -> None:
    for kind, drawn in KINDS.items():
        one, same = (drawn(random.Random(f"{kind} 5")) for _ in range(2))
        assert one == same
        assert improved(random.Random(1), one) == improved(random.Random(1), one)
    busy = Machine.of({"C": 2, "L": 1})
    others = {rebuilt(random.Random(seed), busy).units for seed in range(60)}
    assert len(others) == 9
    assert all((c.capacity, l.capacity) == (2 * c.interval, l.interval) for c, l in others)  # noqa: E741


def _half(form: Callable[[Instance], int]) -> Callable[[Instance], int]:
    return lambda instance: form(instance) // 2


@pytest.mark.parametrize("name", ["pessimistic", "any_units", "theorem_1s_of_any"])
def test_a_bound_that_is_too_low_is_told(explorer: Explorer, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.setattr(claimed, name, _half(getattr(claimed, name)))
    batch = look(explorer, asked("one port", range(48)))
    wrong = [fault for one in batch.looked for fault in one.faults]
    assert wrong
    number = wrong[0].split("--number ")[1].split(":")[0]
    assert any(look(explorer, asked("one port", range(int(number), int(number) + 1))).looked[0].faults)


def test_a_lower_bound_that_is_too_high_is_told(explorer: Explorer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(claimed, "least_possible", lambda instance: least_possible(instance) + 1)
    wrong = [fault for one in look(explorer, asked("latencies", range(16))).looked for fault in one.faults]
    assert any("says at least" in fault for fault in wrong)


def test_an_exception_is_told_and_the_others_go_on(explorer: Explorer, monkeypatch: pytest.MonkeyPatch) -> None:
    def phases(instance: Instance) -> None:
        raise ZeroDivisionError(instance)

    monkeypatch.setattr(claimed, "phases", phases)
    looked = look(explorer, asked("barriers", range(16))).looked
    assert 0 < sum("an exception, ZeroDivisionError" in fault for one in looked for fault in one.faults) < 16


def test_engines_the_definition_and_the_checker_are_contradicted_aloud() -> None:
    """By an explorer that is wrong, here one that finds no schedule as long as the longest."""
    instance = Instance.of("CLLCLL", 2)
    truth = brute_force(instance)
    wrong = Truth(truth.lower + 1, truth.upper + 1, 1, 1)
    told = claimed.verdicts(random.Random(1), instance, wrong, ["auto", "search"], 5.0)
    said = [verdict.fault.split()[0] for verdict in told if verdict.fault]
    assert said == ["the", "auto:", "verify", "search:"]


def test_results_add_up_and_an_instance_counts_once(
    explorer: Explorer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    campaign, batch = Campaign(), look(explorer, asked("fair", range(1, 7)))
    campaign.add(batch)
    campaign.add(batch)
    assert campaign.total["instances"] + campaign.total["repeated"] == 12
    assert campaign.total["repeated"] >= 6
    first, second = tmp_path / "first.jsonl", tmp_path / "second.jsonl"
    campaign.write(first)
    monkeypatch.setattr(sys, "argv", ["soundness", "--instances", "0", "--add", str(first), str(first)])
    monkeypatch.setattr(soundness, "built", lambda folder: folder)
    monkeypatch.setattr(soundness, "_batches", lambda program, questions, jobs: iter(()))
    assert soundness.main() == 0
    assert f"| fair | {2 * campaign.total['instances']} |" in capsys.readouterr().out
    line = json.loads(first.read_text())
    line["counts"]["wrong"] = 1
    second.write_text(json.dumps(line))
    monkeypatch.setattr(sys, "argv", ["soundness", "--instances", "0", "--add", str(second)])
    assert soundness.main() == 1
