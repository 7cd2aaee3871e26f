"""`makespan sweep run`: answer what a spec asks and the table does not know."""

import contextlib
import os
from collections.abc import Callable
from contextlib import AbstractContextManager
from functools import partial
from pathlib import Path

import click

from makespan.cli.help_page import HelpCommand, examples
from makespan.cli.output import quiet_option
from makespan.cli.parameters import SECONDS
from makespan.cli.progress import progress
from makespan.cli.question_key import question_key
from makespan.cli.running import DONE, INTERRUPTED, UNDECIDED
from makespan.host.errors import BrokenPromiseError, InputError
from makespan.host.output_file import check_writable, make_folder, write_whole
from makespan.many.commands import answering
from makespan.many.sweep import spec
from makespan.many.sweep.job import JobOutcome, SweepJob
from makespan.many.sweep.running import SweepTally, WorkerCrew, local_crew, run_sweep
from makespan.many.sweep.store import open_store
from makespan.many.sweep.workshop import Workshop

_MOST_WORKERS = 1024


@click.command(
    "run",
    cls=HelpCommand,
    epilog=examples(
        "makespan sweep warps.toml -o warps.sqlite", "makespan sweep warps.toml -o warps.sqlite --retry-failed"
    ),
)
@click.argument("spec_path", metavar="SPEC.toml", type=click.Path(path_type=Path))
@click.option("-o", "--output", "table", type=click.Path(path_type=Path), required=True, help="the table, SQLite")
@click.option("--workers", type=click.IntRange(1, _MOST_WORKERS), help="processes here [default: one for each core]")
@click.option("--scheduler", metavar="ADDRESS", help="of a dask.distributed cluster, such as tcp://10.0.0.1:8786")
@click.option("--wall-limit", type=SECONDS, default=3600.0, show_default=True, help="of a job, before it is killed")
@click.option("--retry-failed", is_flag=True, help="ask again what has failed before")
@click.option("--bundles", type=click.Path(path_type=Path), metavar="DIR", help="leave the evidence of new answers")
@quiet_option
def command(
    spec_path: Path,
    table: Path,
    workers: int | None,
    scheduler: str | None,
    wall_limit: float,
    retry_failed: bool,
    bundles: Path | None,
    quiet: bool,
) -> int:
    """Answer all questions of a spec, several at once, and keep the answers.

    What the table has already is not computed again, so a sweep that was interrupted goes on where it was. The exit
    code is 0 when every question has an answer, and 3 when some have none.
    """
    if workers is not None and scheduler is not None:
        raise InputError("--workers are of this machine, and those of --scheduler are counted there: give one of them")
    check_writable(table, "the table")
    folder = spec_path.resolve().parent
    with progress(quiet=quiet) as show:
        jobs = _jobs(spec_path, show)
    if bundles is not None:
        make_folder(bundles, "the bundles")
    kept = partial(_leave, bundles)
    crew = _crew(scheduler, workers, folder, wall_limit, wants_bundle=bundles is not None)
    with open_store(table, create=True) as store:
        if (changed := store.plan(jobs)) and not quiet:
            click.echo(f"{changed} questions are new: a file, an option's meaning or the theory has changed", err=True)
        try:
            with crew as hands, progress(quiet=quiet) as show:
                tally = run_sweep(
                    jobs, store, hands, retry=retry_failed, kept=kept, progress=lambda one: show(str(one))
                )
        except KeyboardInterrupt:
            keys = {job.key for job in jobs}
            known = len(store.answered() & keys)
            click.echo(f"interrupted: {known} of {len(keys)} are in {table}; the same command goes on", err=True)
            return INTERRUPTED
    return _tell_tally(tally, table)


def _jobs(path: Path, show: Callable[[str], None]) -> list[SweepJob]:
    questions = spec.read_spec(path)
    known: dict[str, str] = {}
    jobs = []
    # Workers run in the folder of the spec: keys are made of the same files there.
    with contextlib.chdir(path.resolve().parent):
        for question in questions:
            try:
                jobs.append(SweepJob(question, question_key(question, known=known)))
                show(f"{len(jobs)} of {len(questions)} questions looked at")
            except InputError as error:
                said = ", ".join(f"{name} = {value}" for name, value in question.items())
                raise InputError(f"{path}: {said:.200}: {error}") from None
    return jobs


def _crew(
    scheduler: str | None, workers: int | None, folder: Path, wall_limit: float, *, wants_bundle: bool
) -> AbstractContextManager[WorkerCrew]:
    module = answering.__name__
    if scheduler is not None:
        from makespan.many.sweep.cluster import cluster_crew

        return cluster_crew(scheduler, module, folder, wall_limit, wants_bundle=wants_bundle)
    workshop = Workshop(module, folder, wall_limit, wants_bundle=wants_bundle)
    return local_crew(workers or len(os.sched_getaffinity(0)), workshop)


def _leave(folder: Path | None, outcome: JobOutcome) -> None:
    found = outcome.found
    if folder is not None and found is not None and found.bundle is not None:
        write_whole(folder / f"{found.digest}.json", found.bundle.encode(), "the bundle")


def _tell_tally(tally: SweepTally, table: Path) -> int:
    """Print the result of a sweep, and return the exit code."""
    known = f", {tally.known} known before" if tally.known else ""
    missing = tally.failed + tally.skipped
    lost = f"; {missing} have none, and 'makespan sweep export' tells why" if missing else ""
    such = f" ({tally.reason})" if tally.reason else ""
    again = "; --retry-failed asks them again" if tally.skipped else ""
    click.echo(
        f"{tally.known + tally.answered} of {tally.total} questions have an answer in {table}{known}{lost}{such}{again}"
    )
    # Two proofs that exclude each other are a bug of this program, whatever else the sweep found.
    if tally.contradictions:
        raise BrokenPromiseError("; ".join(map(str, tally.contradictions)))
    return DONE if not missing else UNDECIDED
