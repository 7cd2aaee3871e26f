"""A sweep survives whatever its jobs do, and computes nothing twice."""

from collections.abc import Callable, Iterator
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from makespan.host.errors import InputError
from makespan.many.sweep.job import FailureCause, JobAnswer, JobFailure, JobOutcome, SweepJob
from makespan.many.sweep.running import SweepTally, WorkerCrew, local_crew, run_sweep
from makespan.many.sweep.store import AnswerStore, open_store
from makespan.many.sweep.workshop import Workshop

ANSWERER = "tests.sweep.answerer"


@pytest.fixture
def store(tmp_path: Path) -> Iterator[AnswerStore]:
    with open_store(tmp_path / "a.sqlite", create=True) as store:
        yield store


def job(do: str = "answer", **more: Any) -> SweepJob:
    question = {"do": do, **more}
    return SweepJob(question, str(sorted(question.items())))


class Hands:
    """A crew that answers at once, and counts what it is asked."""

    def __init__(self, came: Callable[[SweepJob], JobOutcome]) -> None:
        self.came, self.asked, self.crew = came, list[str](), WorkerCrew(self.submit)

    def submit(self, job: SweepJob) -> "Future[JobOutcome]":
        self.asked.append(job.key)
        future: Future[JobOutcome] = Future()
        future.set_result(self.came(job))
        return future


def found(job: SweepJob, value: int = 7) -> JobOutcome:
    document = {"status": "exact", "lower": value, "upper": value, "seconds": 0.0}
    return JobOutcome(job, JobAnswer(document, ""))


def failed(job: SweepJob) -> JobOutcome:
    return JobOutcome(job, None, (JobFailure(FailureCause.DIED, "died", 0.0),))


class Killed(BaseException):
    pass


@settings(max_examples=25)
@given(
    numbers=st.lists(st.integers(0, 9), min_size=3, max_size=12),
    fails=st.sets(st.integers(0, 9), max_size=4),
    at=st.floats(0, 1),
)
def test_a_sweep_that_is_cut_off_anywhere_goes_on_where_it_was(
    numbers: list[int], fails: set[int], at: float, tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = tmp_path_factory.mktemp("cut") / "a.sqlite"
    jobs = [SweepJob({"n": number}, f"k{number}") for number in numbers]
    hands = Hands(lambda job: failed(job) if job.question["n"] in fails else found(job, job.question["n"]))
    kept, before = 0, int(at * len(set(numbers)))

    def cut(_: JobOutcome) -> None:
        nonlocal kept
        kept += 1
        if kept > before:
            raise Killed

    with open_store(path, create=True) as store:
        store.plan(jobs)
        try:
            run_sweep(jobs, store, hands.crew, kept=cut)
        except Killed:
            hands.asked.clear()
            done = len(store.answered()) + len(store.failed())
            assert done == before < len(set(numbers))
            tally = run_sweep(jobs, store, hands.crew)
            assert len(hands.asked) == len(set(numbers)) - before
            assert (tally.known + tally.skipped, tally.done) == (before, len(set(numbers)))
        assert store.answered() == {f"k{number}" for number in set(numbers) - fails}
        assert store.failed() == {f"k{number}" for number in set(numbers) & fails}
        for asked in store.asked():
            assert asked.document is None or asked.document["lower"] == asked.question["n"]


def test_what_failed_is_asked_again_on_request_only(store: AnswerStore) -> None:
    jobs = [job("a"), job("b")]
    run_sweep(jobs, store, Hands(failed).crew)
    idle = Hands(found)
    assert str(run_sweep(jobs, store, idle.crew)) == "2 of 2"
    assert idle.asked == []
    assert run_sweep(jobs, store, idle.crew, retry=True).answered == 2
    assert (store.answered(), store.failed()) == ({job.key for job in jobs}, set())


def test_a_contradiction_does_not_stop_a_sweep_and_is_told(store: AnswerStore) -> None:
    def came(job: SweepJob) -> JobOutcome:
        store.keep(found(job, 9))  # as another sweep that writes the same file may
        return found(job, 7)

    tally = run_sweep([job("a"), job("b")], store, Hands(came).crew)
    assert (tally.answered, len(tally.contradictions)) == (2, 2)


def test_progress_tells_how_long_the_rest_takes() -> None:
    tally = SweepTally(100, 10, 5, 20, 4, began=0.0)
    assert str(tally).startswith("39 of 100, 4 failed, about ")
    assert str(SweepTally(3, 3, 0)) == "3 of 3"


def test_whatever_a_process_does_costs_its_own_job_alone(store: AnswerStore, tmp_path: Path) -> None:
    once = job("die once", mark=str(tmp_path / "mark"))
    jobs = [job(value=1), job("die"), job("refuse"), once, job("hang"), job(value=2)]
    workshop = Workshop(ANSWERER, Path.cwd(), 2.5)
    store.plan(jobs)
    with local_crew(2, workshop) as crew:
        tally = run_sweep(jobs, store, crew)
    assert (tally.answered, tally.failed) == (3, 3)
    known = {asked.key: asked for asked in store.asked()}
    assert (known[once.key].document is not None, known[once.key].attempts) == (True, 1)
    causes = {one.question["do"]: known[one.key].failure for one in jobs if known[one.key].document is None}
    assert {do: failure and failure.cause for do, failure in causes.items()} == {
        "die": FailureCause.DIED,
        "refuse": FailureCause.REFUSED,
        "hang": FailureCause.TIME,
    }
    assert known[job("die").key].attempts == 2
    died = causes["die"]
    assert died is not None
    assert died.reason == "its process ended: SIGKILL, as for want of memory: out of luck"


def test_a_process_that_does_not_start_ends_the_sweep_with_one_line(store: AnswerStore) -> None:
    message = "python -m tests.sweep.nobody does not start: its process ended: exit code 1: .*No module named"
    with (
        pytest.raises(InputError, match=message),
        local_crew(1, Workshop("tests.sweep.nobody", Path.cwd(), 60.0)) as crew,
    ):
        run_sweep([job(), job("hang")], store, crew)
    assert store.answered() | store.failed() == set()


def test_who_leaves_a_sweep_leaves_no_process_behind(store: AnswerStore) -> None:
    workshop = Workshop(ANSWERER, Path.cwd(), 60.0, wants_bundle=True)
    pids = list[int]()

    def leave(outcome: JobOutcome) -> None:
        assert outcome.found is not None
        assert outcome.found.bundle == "{}\n"
        pids.append(outcome.found.document["process"])
        raise Killed

    with pytest.raises(Killed), local_crew(1, workshop) as crew:
        run_sweep([job(), job("hang")], store, crew, kept=leave)
    status = Path(f"/proc/{pids[0]}/stat")
    assert not status.exists() or status.read_text().rpartition(")")[2].split()[0] == "Z"
