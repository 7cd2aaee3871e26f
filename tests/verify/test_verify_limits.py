"""What a bundle asks of the checker's memory and time is limited before it is spent, whatever the field."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from makespan.model.instance import Instance
from makespan.model.machine import Latency, Machine, UnitClass
from makespan.model.program import Program
from makespan.proof.engines import solve
from makespan.report.result.bundle import result_bundle
from makespan.verify import Refused, parse, reading, two_warp_waits, two_warps
from makespan.verify import pessimistic as again
from makespan.verify.phases import questions
from makespan.verify.refusal import ProofBudget, TooMuchWork
from tests import bombs
from tests.verify import test_verify_general

LARGE = "rejected: the certificate is too large for this checker"
ANSWERS = {
    **dict.fromkeys(bombs.BOMBS, LARGE),
    "progressions": f"{LARGE}: over {reading.MOST_COEFFICIENTS} coefficients",
    "starts": "unproven: upper 5 reported by search, re-proved only to 6",
    "long_integers": "unproven: upper 4 reported by search, re-proved only to 5",
    "fork_behind_barriers": "unproven: upper 7 reported by search, re-proved only to 9",
    "blocks": "unproven: upper 41 reported by search, re-proved only to 95",
    "long_latencies": "unproven: upper 480000 reported by search, re-proved only to 480040",
}


def answers(*arguments: str) -> dict[str, str]:
    """By name; another process has the limit on memory."""
    command = [sys.executable, "-m", "tests.bombs", *arguments]
    done = subprocess.run(command, check=False, capture_output=True, text=True, cwd=Path(__file__).parents[2])
    assert done.returncode == 0, done.stderr[-2000:]
    return dict(json.loads(line) for line in done.stdout.splitlines())


HEAVY = ("held_ports", "many_labels", "endless_front", "unfolded_delays")
"""Rejected only after as much work as an honest proof may take: each costs some five seconds."""

HEAVIEST = ("progressions", "long_integers", "long_latencies")
"""A tenth of the work saves little, or suffices for the proof."""

LIGHT = [name for name in bombs.BOMBS if name not in (*HEAVY, *HEAVIEST)]


@pytest.mark.parametrize(
    "arguments", [LIGHT, ["--tenth", *HEAVY], *(pytest.param([name], marks=pytest.mark.soak) for name in bombs.BOMBS)]
)
def test_small_bundles_that_ask_for_much_are_answered_in_little_memory(arguments: list[str]) -> None:
    assert answers(*arguments) == {name: ANSWERS[name] for name in arguments if name != "--tenth"}


@pytest.mark.parametrize("kind", ["phases", "potential", "automaton"])
def test_an_absurd_value_of_any_field_is_rejected_or_changes_nothing(kind: str, tmp_path: Path) -> None:
    """Coefficients of nodes that nothing needs may be anything, and so may remarks; claims may be weaker."""
    made = {
        "phases": result_bundle(solve(Instance.of("CCL|CLLC|L", 3), best_case=True)),
        "potential": test_verify_general.bundles()[6],
        "automaton": result_bundle(test_verify_general.by_search(Instance.of(bombs.starting_anywhere(2), 2))),
    }[kind]
    file = tmp_path / "bundle.json"
    file.write_text(json.dumps(made))
    found = answers(str(file))
    assert len(found) > 300
    weaker = ("result.upper = 0", "result.pessimistic", "certificate.upper = 0", "certificate.potentials.0.front = 0")
    remarks = ("result.seconds", "result.backend", "result.assumptions", "result.versions", "result.history")
    for name, answer in found.items():
        assert answer.startswith("rejected: ") or "nodes" in name or name.startswith((*weaker, *remarks)), (
            name,
            answer,
        )
        assert answer.count("\n") == 0
        assert len(answer) < 400


def test_lists_are_counted_before_they_are_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading, "MOST_BRACKETS", 5)
    assert parse(b"[[[[{}]]]]"[1:-1]) == [[[{}]]]
    with pytest.raises(Refused, match="not a bundle: over 5 lists and objects"):
        parse(b"[[[[[{}]]]]]")


def test_more_coefficients_than_may_be_kept_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """Weights of six places count as twelve."""
    made = result_bundle(solve(Instance.of("CLLCLL", 4)))
    monkeypatch.setattr(reading, "MOST_COEFFICIENTS", 12 * len(made["weights"]))
    assert reading.bundle(made).bound.weights
    monkeypatch.setattr(reading, "MOST_COEFFICIENTS", 12 * len(made["weights"]) - 1)
    with pytest.raises(Refused, match="evidence is too large for this checker"):
        reading.bundle(made)


def test_an_effort_is_shared_by_all_proofs() -> None:
    effort = ProofBudget(2)
    for left in (100, 100, 40):
        with effort.part(100) as work:
            assert work.left == left
            work.spend(min(80, left))
    with effort.part(100) as work, pytest.raises(TooMuchWork):
        work.spend()
    with ProofBudget(1).part(100) as work, pytest.raises(TooMuchWork):
        work.spend(101)


def test_all_phases_together_have_a_limit() -> None:
    slow = Machine("slow", (UnitClass("C", 1, 1, Latency(1, 3)),))
    for machine in (slow, Machine.of({"C": 1})):
        instance, effort = Instance.of("CCC", 2, machine), ProofBudget(0)
        assert two_warps.two_warps(instance, max, effort) is None
        assert two_warps.two_warps(instance) is not None


def test_two_warps_keep_no_more_numbers_than_they_may(monkeypatch: pytest.MonkeyPatch) -> None:
    instance = Instance.of("CLCL", 2, Machine("m", (UnitClass("C", 1, 2, Latency(3, 3)), UnitClass("L", 1))))
    longest = two_warps.two_warps(instance)
    kept = next(most for most in range(10_000) if _with_room(monkeypatch, instance, most) is not None)
    assert _with_room(monkeypatch, instance, kept) == longest
    twice = Instance.of("CLCL" * 9, 2, instance.machine)
    assert _with_room(monkeypatch, twice, 14 * kept) == two_warps.two_warps(twice)  # two rows of pairs, not all 81


def _with_room(monkeypatch: pytest.MonkeyPatch, instance: Instance, most: int) -> int | None:
    with monkeypatch.context() as patch:
        patch.setattr(two_warp_waits, "MOST_CYCLES", most)
        return two_warps.two_warps(instance)


def test_phases_of_all_groups_are_counted_together(monkeypatch: pytest.MonkeyPatch) -> None:
    instance = Instance.merged([(Instance.of(s, 1).groups[0].program, 1) for s in ("CL|C", "LL|C", "LC|C")])
    monkeypatch.setattr("makespan.verify.phases.MOST_VISITS", 24)
    assert questions(instance) is not None
    monkeypatch.setattr("makespan.verify.phases.MOST_VISITS", 23)
    assert questions(instance) is None


def test_letters_are_looked_up_before_places_are_made_of_them(monkeypatch: pytest.MonkeyPatch) -> None:
    made = result_bundle(solve(Instance.of("CL", 2)))
    made["instance"]["groups"][0]["string"] = "x" * 10**6
    monkeypatch.setattr(Program, "chain", lambda _: pytest.fail("a place was made"))
    with pytest.raises(Refused, match="not a bundle: the machine has no units of class x"):
        reading.bundle(made)


def test_of_too_many_phases_the_sum_of_all_instructions_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    machine = Machine("held", (UnitClass("C", 1, 3), UnitClass("L", 1, 1, Latency(2, 4))))
    monkeypatch.setattr("makespan.verify.phases.MOST_VISITS", 1)
    assert again.pessimistic(Instance.of("CL|C", 5, machine)) == 5 * (3 + 4 + 3)
