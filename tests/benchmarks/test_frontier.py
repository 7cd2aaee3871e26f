"""Peers get the same question and the same time, what they prove is compared, and their models mean what ours do."""

import json
import time
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchmarks import frontier as measured
from benchmarks.frontier import Attempt, Attempts, Budget, Contradiction, Question, attempt, frontier, frontiers
from makespan import Limits, replay
from makespan.proof.bounds import pessimistic
from makespan.proof.engines.engine import Finding
from makespan.proof.engines.search import plain

QUESTIONS = st.builds(
    Question, st.text("CL", min_size=1, max_size=6), st.integers(1, 4), st.tuples(st.integers(1, 3), st.integers(1, 2))
)
BUDGET = Budget(1.0, 8 << 30)
CLLC = Question("CLLC", 3, (2, 1))


def truth(question: Question) -> int:
    worst = plain.solve(question.instance, Limits(600)).upper
    assert worst is not None
    return worst


def agrees(question: Question, found: Finding) -> None:
    assert found.witness is not None
    assert found.upper == replay(question.instance, found.witness) == truth(question)


@settings(max_examples=40)
@given(QUESTIONS)
def test_the_dynamic_programme_has_the_worst_case(question: Question) -> None:
    pytest.importorskip("didppy")
    from benchmarks import didp

    agrees(question, didp.solve(question.instance))


@settings(max_examples=30)
@given(QUESTIONS)
def test_what_the_dynamic_programme_prunes_by_is_a_bound_wherever_it_leads(question: Question) -> None:
    pytest.importorskip("didppy")
    from benchmarks import didp

    programme = didp.model(question.instance)
    state, cycles, ways = programme.target_state, 0, []
    while not programme.is_base(state):
        ways.append((cycles, programme.eval_dual_bound(state)))
        step = next(one for one in programme.get_transitions() if one.is_applicable(state, programme))
        cycles += step.name.endswith("last")
        state = step.apply(state, programme)
    assert all(passed + bound >= cycles for passed, bound in ways)
    assert ways[0][1] - pessimistic(question.instance) in (0, 1)


@pytest.mark.parametrize("question", [CLLC, Question("LCC", 2, (1, 1))])
def test_cpsat_reads_the_published_programme(question: Question) -> None:
    horizon = pessimistic(question.instance)
    agrees(question, measured.published_by_cpsat(question.instance, Limits(60), horizon=horizon))


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of forks beside threads
def test_an_attempt_ends_with_its_processor_time(monkeypatch: pytest.MonkeyPatch) -> None:
    def spin(*_: object) -> tuple[int, int]:
        while time.process_time() < 60:
            pass
        return 9, 9

    monkeypatch.setattr(measured, "PEERS", {"spins": spin, "knows": lambda *_: (9, 9)})
    for peer, proven in (("spins", False), ("knows", True)):
        assert attempt(peer, CLLC, BUDGET._replace(seconds=0.5)).proven is proven


class Told(Attempts):
    """Attempts that are told, and counted, instead of made: a peer proves up to so many warps."""

    def __init__(self, **most: int) -> None:
        super().__init__(None, BUDGET)
        self.most, self.made = most, list[tuple[str, Question]]()

    def __call__(self, peer: str, question: Question) -> Attempt:
        self.made.append((peer, question))
        proven = question.warps <= self.most[peer] - question.string.count("L")
        return Attempt(peer, question, 1.0, question.string.count("L") / 10, 9, 9 if proven else 10)


def test_the_frontier_is_what_is_proven_for_every_string_and_the_slowest_is_asked_first() -> None:
    attempts = Told(me=5)
    assert frontier("me", ["CCC", "CLL", "CLC"], (1, 1), attempts) == 3
    assert [(question.warps, question.string) for _, question in attempts.made] == [
        (2, "CCC"),
        (2, "CLL"),
        (2, "CLC"),
        (3, "CLL"),
        (3, "CLC"),
        (3, "CCC"),
        (4, "CLL"),
    ]


def test_longer_strings_are_not_asked_where_two_warps_are_too_many() -> None:
    attempts = Told(me=99, lost=0)
    assert [row for *_, row in frontiers(["me", "lost"], [4, 5], [(1, 1)], attempts)] == [{"me": 48, "lost": 0}] * 2
    assert [len(question.string) for peer, question in attempts.made if peer == "lost"] == [4]


def test_attempts_are_read_again_and_what_contradicts_them_is_loud(tmp_path: Path) -> None:
    file, worst = tmp_path / "attempts.jsonl", truth(CLLC)
    known = Attempt("auto", CLLC, BUDGET.seconds, 0.5, worst, worst)
    file.write_text(f"{known}\n")
    assert Attempts(file, BUDGET)("auto", CLLC) == known
    assert Attempts(file, BUDGET._replace(seconds=99 * BUDGET.seconds))("auto", CLLC) == known
    assert Attempts(file, BUDGET._replace(seconds=0.4))("auto", CLLC).limit_seconds == 0.4
    for lower, upper in ((worst + 1, worst + 2), (worst - 2, worst - 1)):
        wrong = known._replace(peer="didp", lower=lower, upper=upper)
        file.write_text(f"{known}\n{wrong}\n")
        with pytest.raises(Contradiction, match=json.dumps("didp")):
            Attempts(file, BUDGET)


def test_only_a_closed_interval_in_time_is_proven() -> None:
    known = Attempt("auto", CLLC, 1.0, 1.0, 9, 9)
    assert known.proven
    assert not known._replace(seconds=1.1).proven
    assert not known._replace(lower=8).proven
    assert not known._replace(lower=0, upper=None).proven
