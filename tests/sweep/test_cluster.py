"""A sweep on a cluster: what is lost there costs a job, and what is broken there is one line."""

from concurrent.futures import CancelledError, Future
from functools import partial
from pathlib import Path

import pytest

from makespan.host.errors import InputError
from makespan.many.sweep.cluster import cluster_crew, lost_outcome
from makespan.many.sweep.job import FailureCause, JobOutcome, SweepJob
from makespan.many.sweep.running import WorkerCrew, run_sweep
from makespan.many.sweep.store import open_store
from makespan.many.sweep.workshop import shared_workshop

ANSWERER = "tests.sweep.answerer"


class Lost(Exception):
    pass


def test_a_job_that_takes_workers_with_it_fails_alone_and_a_broken_cluster_is_one_line() -> None:
    def submit(job: SweepJob) -> "Future[JobOutcome]":
        future: Future[JobOutcome] = Future()
        future.set_exception({"lost": Lost("3 workers\ndied"), "gone": CancelledError()}[job.key])
        return future

    crew = WorkerCrew(submit, partial(lost_outcome, Lost))
    lost = SweepJob({}, "lost")
    outcome = crew.outcome(lost, crew.submit(lost))
    assert outcome.found is None
    assert [(failure.cause, failure.reason) for failure in outcome.failures] == [(FailureCause.DIED, "3 workers died")]
    with pytest.raises(
        InputError, match="the cluster fails: CancelledError; the same command goes on where this one was"
    ):
        crew.outcome(lost, crew.submit(SweepJob({}, "gone")))


def test_without_the_library_it_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "distributed", None)
    with (
        pytest.raises(InputError, match=r"--scheduler needs dask\.distributed: pip install 'makespan\[cluster\]'"),
        cluster_crew("tcp://127.0.0.1:1", ANSWERER, Path(), 1.0, wants_bundle=False),
    ):
        pass


@pytest.mark.filterwarnings("default")
def test_workers_of_a_cluster_answer_and_survive_what_their_jobs_do(tmp_path: Path) -> None:
    distributed = pytest.importorskip("distributed")
    jobs = [SweepJob({"do": "answer", "value": value}, f"k{value}") for value in range(5)] + [
        SweepJob({"do": "die"}, "die")
    ]
    with (
        distributed.LocalCluster(1, threads_per_worker=2, processes=False, dashboard_address=None) as workers,
        open_store(tmp_path / "a.sqlite", create=True) as store,
    ):
        store.plan(jobs)
        with cluster_crew(workers.scheduler_address, ANSWERER, Path.cwd(), 60.0, wants_bundle=False) as crew:
            tally = run_sweep(jobs, store, crew)
        assert (tally.answered, tally.failed) == (5, 1)
        assert store.failed() == {"die"}
        shared_workshop(ANSWERER, Path.cwd(), 60.0, False).close()  # as a worker does on its way out
    with (
        pytest.raises(InputError, match="--scheduler nonsense://x: unknown address scheme"),
        cluster_crew("nonsense://x", ANSWERER, Path(), 1.0, wants_bundle=False),
    ):
        pass
