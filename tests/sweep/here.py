"""A crew that answers in the process of a test, as the processes of a sweep do."""

from collections.abc import Callable
from concurrent.futures import Future
from contextlib import AbstractContextManager, nullcontext

from makespan.many.commands.answering import answer
from makespan.many.sweep.job import FailureCause, JobAnswer, JobFailure, JobOutcome, SweepJob
from makespan.many.sweep.running import WorkerCrew


def crew_here(*, wants_bundle: bool) -> Callable[[object], AbstractContextManager[WorkerCrew]]:
    """What takes the place of `QuestionRun.crew`."""

    def submit(job: SweepJob) -> "Future[JobOutcome]":
        came = answer({"question": dict(job.question), "key": job.key, "bundle": wants_bundle})
        future: Future[JobOutcome] = Future()
        if "cause" in came:
            failure = JobFailure(FailureCause(came["cause"]), came["reason"], 0.0)
            future.set_result(JobOutcome(job, None, (failure,)))
        else:
            future.set_result(JobOutcome(job, JobAnswer(came["document"], came["digest"], came["bundle"])))
        return future

    return lambda _: nullcontext(WorkerCrew(submit))
