"""How commands ask many questions: keys first, then processes or a cluster, and each answer into the table at once."""

import contextlib
import os
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path

import click

from makespan.cli.parameters import FILE
from makespan.cli.progress import progress
from makespan.cli.question import QuestionData
from makespan.cli.question_key import question_key
from makespan.host.errors import InputError
from makespan.host.output_file import check_writable, make_folder, write_whole
from makespan.many.commands import answering
from makespan.many.sweep.job import JobOutcome, SweepJob
from makespan.many.sweep.running import SweepTally, WorkerCrew, local_crew, run_sweep
from makespan.many.sweep.store import open_store
from makespan.many.sweep.workshop import Workshop

table_option = click.option("-o", "--output", "table", type=FILE, required=True, help="the table, SQLite; it is kept")
bundles_option = click.option("--bundles", type=FILE, metavar="DIR", help="leave the evidence of new answers")
WORKERS = click.IntRange(1, 1024)


@dataclass(frozen=True, slots=True)
class QuestionRun:
    """A way to ask questions.

    Args:
        asked_by: the file or the folder that asks, for messages.
        folder: where names of files in questions start.
        wall_seconds: for a job, before it is killed.
        scheduler: of a cluster; None for processes on this machine, `workers` or one for each core.
        bundles: the folder for the evidence of new answers.
        wants_schedules: whether the table keeps short schedules of new answers.
        kept: called with each outcome, before it is in the table.
    """

    asked_by: Path
    folder: Path
    table: Path
    wall_seconds: float
    workers: int | None = None
    scheduler: str | None = None
    retry: bool = False
    bundles: Path | None = None
    wants_schedules: bool = False
    quiet: bool = False
    kept: Callable[[JobOutcome], None] = lambda _: None

    def check(self) -> None:
        """Refuse outputs before the work that could not be written after it.

        Raises:
            InputError: one cannot be written.
        """
        check_writable(self.table, "the table")
        if self.bundles is not None:
            make_folder(self.bundles, "the bundles")

    def answer(self, questions: Sequence[QuestionData]) -> SweepTally | None:
        """Answer what the table does not know; return None after Ctrl-C, with a line that says what is known.

        Raises:
            InputError: a question that is not understood, or a table that is none.
        """
        jobs = self._jobs(questions)
        with open_store(self.table, create=True) as store:
            if (changed := store.plan(jobs)) and not self.quiet:
                said = f"{changed} questions are new: a file, an option's meaning or the theory has changed"
                click.echo(said, err=True)
            try:
                with self.crew() as hands, progress(quiet=self.quiet) as show:
                    return run_sweep(
                        jobs, store, hands, retry=self.retry, kept=self._keep, progress=lambda one: show(str(one))
                    )
            except KeyboardInterrupt:
                keys = {job.key for job in jobs}
                known = f"{len(store.answered() & keys)} of {len(keys)} are in {self.table}"
                click.echo(f"interrupted: {known}; the same command goes on", err=True)
                return None

    def _jobs(self, questions: Sequence[QuestionData]) -> list[SweepJob]:
        known: dict[str, str] = {}
        jobs = []
        # Workers run in the folder: keys are made of the same files there.
        with contextlib.chdir(self.folder), progress(quiet=self.quiet) as show:
            for question in questions:
                try:
                    jobs.append(SweepJob(question, question_key(question, known=known)))
                    show(f"{len(jobs)} of {len(questions)} questions looked at")
                except InputError as error:
                    said = ", ".join(f"{name} = {value}" for name, value in question.items())
                    raise InputError(f"{self.asked_by}: {said:.200}: {error}") from None
        return jobs

    def crew(self) -> AbstractContextManager[WorkerCrew]:
        """Return those who answer."""
        module, wants_bundle = answering.__name__, self.wants_schedules or self.bundles is not None
        if self.scheduler is not None:
            from makespan.many.sweep.cluster import cluster_crew

            return cluster_crew(self.scheduler, module, self.folder, self.wall_seconds, wants_bundle=wants_bundle)
        workshop = Workshop(module, self.folder, self.wall_seconds, wants_bundle=wants_bundle)
        return local_crew(self.workers or len(os.sched_getaffinity(0)), workshop)

    def _keep(self, outcome: JobOutcome) -> None:
        found = outcome.found
        if self.bundles is not None and found is not None and found.bundle is not None:
            write_whole(self.bundles / f"{found.digest}.json", found.bundle.encode(), "the bundle")
        self.kept(outcome)
