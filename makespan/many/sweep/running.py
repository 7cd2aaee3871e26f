"""A sweep: questions that are not known go to a crew, and each outcome is kept as soon as it comes."""

from collections.abc import Callable, Collection, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, as_completed
from contextlib import contextmanager
from dataclasses import dataclass, field
from time import monotonic

from makespan.host.stopwatch import about_left
from makespan.many.sweep.job import JobOutcome, SweepJob
from makespan.many.sweep.store import AnswerContradiction, AnswerStore
from makespan.many.sweep.workshop import Workshop


@dataclass(frozen=True, slots=True)
class WorkerCrew:
    """Workers that answer: processes here, or a cluster.

    Args:
        submit: begins a job, now or later.
        lost: returns the outcome of a job whose future has this error; it raises where no job can have one any more.
            None: every error is one of this program.
    """

    submit: "Callable[[SweepJob], Future[JobOutcome]]"
    lost: Callable[[SweepJob, Exception], JobOutcome] | None = None

    def outcome(self, job: SweepJob, future: "Future[JobOutcome]") -> JobOutcome:
        """Return the outcome of a job."""
        try:
            return future.result()
        except Exception as error:
            if self.lost is None:
                raise
            return self.lost(job, error)


@dataclass(slots=True)
class SweepTally:
    """The progress of a sweep.

    Args:
        total: questions with different keys.
        known: answered before it began.
        skipped: failed before it began, and not asked again.
        began: when the first outcome came, by the clock that rises: what goes before says nothing of the rest.
        reason: why the first of them failed.
        contradictions: which of what came back cannot be true together with what was kept.
    """

    total: int
    known: int
    skipped: int
    answered: int = 0
    failed: int = 0
    reason: str = ""
    contradictions: list[AnswerContradiction] = field(default_factory=list)
    began: float = 0.0

    @property
    def done(self) -> int:
        """Return how many questions have an answer or a failed attempt."""
        return self.known + self.skipped + self.answered + self.failed

    def __str__(self) -> str:
        """Return one line of progress, with an estimate of the rest from the jobs so far."""
        failed = f", {self.failed} failed" if self.failed else ""
        later = self.answered + self.failed - 1
        rest = about_left(monotonic() - self.began, later, self.total - self.done)
        return f"{self.done} of {self.total}{failed}{rest}"


def _nothing(came: object) -> None:
    del came


def run_sweep(
    jobs: Sequence[SweepJob],
    store: AnswerStore,
    crew: WorkerCrew,
    *,
    retry: bool = False,
    kept: Callable[[JobOutcome], None] = _nothing,
    progress: Callable[[SweepTally], None] = _nothing,
) -> SweepTally:
    """Answer what the table does not know yet; a job that fails costs no other job anything.

    Args:
        retry: ask again what has failed before.
        kept: called with each outcome, before it is in the table.
        progress: called after each outcome.
    """
    wanted = {job.key: job for job in jobs}
    # Keys, not questions, are compared: a changed file or theory makes a question new.
    known = store.answered() & wanted.keys()
    skipped = set() if retry else store.failed() & wanted.keys()
    tally = SweepTally(len(wanted), len(known), len(skipped))
    open_jobs = [job for key, job in wanted.items() if key not in known and key not in skipped]
    for outcome in job_outcomes(open_jobs, crew):
        kept(outcome)  # first: an answer in the table is never computed again, so its bundle must be there
        if (contradiction := store.keep(outcome)) is not None:
            tally.contradictions.append(contradiction)
        tally.began = tally.began or monotonic()
        if outcome.found is None:
            tally.failed += 1
            tally.reason = tally.reason or outcome.failures[-1].reason
        else:
            tally.answered += 1
        progress(tally)
    return tally


def job_outcomes(jobs: Collection[SweepJob], crew: WorkerCrew) -> Iterator[JobOutcome]:
    """Yield outcomes in the order in which they come; jobs that are not begun are taken back when the caller stops."""
    running: dict[Future[JobOutcome], SweepJob] = {}
    try:
        running.update((crew.submit(job), job) for job in jobs)
        for future in as_completed(running):
            job = running.pop(future)
            yield crew.outcome(job, future)
    finally:
        for future in running:  # those that run go on: their workshop ends them
            future.cancel()


@contextmanager
def local_crew(workers: int, workshop: Workshop) -> Iterator[WorkerCrew]:
    """Yield `workers` processes on this machine, which end when the block ends."""
    threads = ThreadPoolExecutor(workers)
    try:
        yield WorkerCrew(lambda job: threads.submit(workshop.outcome, job))
    finally:
        workshop.stop()
        threads.shutdown(cancel_futures=True)
        workshop.close()
