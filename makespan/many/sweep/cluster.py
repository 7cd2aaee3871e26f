"""The machines of a dask.distributed cluster: each answers in processes of its own."""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from makespan.host.errors import InputError
from makespan.many.sweep.job import FailureCause, JobFailure, JobOutcome, SweepJob
from makespan.many.sweep.running import WorkerCrew
from makespan.many.sweep.workshop import shared_workshop

SECONDS_TO_CONNECT = 20


def outcome_there(module: str, folder: str, wall_seconds: float, wants_bundle: bool, job: SweepJob) -> JobOutcome:
    """Answer a job in the workshop of a worker of the cluster, and return the outcome."""
    return shared_workshop(module, Path(folder), wall_seconds, wants_bundle).outcome(job)


def lost_outcome(killed: type[Exception], job: SweepJob, error: Exception) -> JobOutcome:
    """Return the outcome of a job that took workers with it.

    Args:
        killed: the error that says so.

    Raises:
        InputError: something else is wrong: the scheduler is gone, say, or the workers do not have this package.
    """
    if isinstance(error, killed):
        return JobOutcome(job, None, (JobFailure(FailureCause.DIED, " ".join(str(error).split())[:300], 0.0),))
    said = f"{type(error).__name__} {' '.join(str(error).split())[:200]}".strip()
    raise InputError(f"the cluster fails: {said}; the same command goes on where this one was") from error


@contextmanager
def cluster_crew(
    address: str, module: str, folder: Path, wall_seconds: float, *, wants_bundle: bool
) -> Iterator[WorkerCrew]:
    """Yield all workers of the scheduler at an address such as `tcp://10.0.0.1:8786`; they must see the same files.

    A worker that dies costs its jobs nothing but time, until one has taken several with it.

    Raises:
        InputError: the library is not installed, or no scheduler answers there.
    """
    try:
        from distributed import Client, KilledWorker
    except ImportError:
        raise InputError("--scheduler needs dask.distributed: pip install 'makespan[cluster]'") from None
    try:
        client = Client(address, timeout=SECONDS_TO_CONNECT)
    except (OSError, ValueError) as error:
        raise InputError(f"--scheduler {address}: {' '.join(str(error).split())}") from None
    asking = partial(outcome_there, module, str(folder), wall_seconds, wants_bundle)
    with client:
        executor = client.get_executor(pure=False)  # what failed once and is asked again is to be tried again
        try:
            yield WorkerCrew(partial(executor.submit, asking), partial(lost_outcome, KilledWorker))
        finally:
            executor.shutdown(wait=False)
