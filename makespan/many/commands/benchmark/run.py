"""`makespan benchmark run`: solve the instances of a library, one line of results each, and go on where it stopped."""

import json
import os
from collections.abc import Container, Iterator
from pathlib import Path
from typing import Any

import click

from makespan.cli.help_page import HelpCommand, examples, section
from makespan.cli.options import engine_options
from makespan.cli.progress import RemainingTime
from makespan.cli.question_key import question_key
from makespan.cli.running import BAD_INPUT, BUG, DONE, NO
from makespan.host.errors import InputError
from makespan.host.output_file import check_writable, make_folder, write_whole
from makespan.host.text_file import claim_output
from makespan.many.commands import answering
from makespan.many.commands.benchmark.library import (
    ChosenInstances,
    entry_question,
    library_options,
    tell_judgement,
    update_known,
    update_options,
)
from makespan.many.library import claims
from makespan.many.library.claims import BoundClaim
from makespan.many.sweep.job import FailureCause, JobAnswer, JobFailure, SweepJob
from makespan.many.sweep.running import job_outcomes, local_crew
from makespan.many.sweep.workshop import Workshop
from makespan.report.result.bundle import bundle_bytes
from makespan.verify import digest
from makespan.version import THEORY, __version__

MOST_SCHEDULE = 4096
"""Bytes of a schedule that a line of results has; longer ones are in the bundle."""

_VERSION = f"{__version__}, theory {THEORY}"
_ATTEMPT = ("instance", "digest", "solver", "version", "limit")
_MOST_WORKERS = 1024
_SECONDS_BESIDE = 600.0
"""To load and to compile, and for an engine to notice that its time is up; then its process is killed."""


@click.command(
    "run",
    cls=HelpCommand,
    epilog=examples(
        "makespan benchmark run benchmarks/library --time-limit 10 -o results.jsonl",
        "makespan benchmark run benchmarks/library --family random --backend cpsat -o cpsat.jsonl",
    ),
)
@library_options
@engine_options
@section(
    "Output",
    click.option(
        "-o", "--output", type=click.Path(path_type=Path), required=True, help="JSON lines; those in it are kept"
    ),
    click.option("--bundles", type=click.Path(path_type=Path), metavar="DIR", help="leave the evidence, by its digest"),
)
@section(
    "Effort",
    click.option(
        "--workers",
        type=click.IntRange(1, _MOST_WORKERS),
        default=1,
        show_default=True,
        help="processes; several take each other time",
    ),
)
@update_options
def command(
    folder: Path,
    families: tuple[str, ...],
    names: tuple[str, ...],
    output: Path,
    bundles: Path | None,
    workers: int,
    update: bool,
    evidence: Path,
    **effort: Any,
) -> int:
    """Solve the instances of LIBRARY and hold every result against what is known.

    A line is written as soon as it is proven; what the file has of this version with this limit is not solved again.
    Exit code 1: some result contradicts what is known; 2: some instance cannot be asked here.
    """
    asked = ChosenInstances.of(folder, families, names)
    check_writable(output, "the results")
    if bundles is not None:
        make_folder(bundles, "the bundles")
    solver = "makespan" if effort["backend"] == "auto" else f"makespan {effort['backend']}"
    posed, failed = asked.posed()
    digests = {name: digest(instance) for name, instance in posed.items()}
    asked = asked.without_other_questions(digests)
    before = asked.about(claims.read_claims(output, rewritten=True)) if output.exists() else ()
    ours = (solver, _VERSION)
    # Results of another version or of an instance that has changed are no reason to skip one.
    mine = [one for one in before if (one.solver, one.version) == ours and one.digest == digests.get(one.instance)]
    judged = [tell_judgement(asked.names, asked.about(asked.known), mine, folder=evidence, more=posed)]
    done = {_attempt(claim) for claim in mine}
    wanted = {
        name: attempt
        for name, of_instance in digests.items()
        if (attempt := (name, of_instance, solver, _VERSION, effort["time_limit"])) not in done
    }
    causes = set[FailureCause]()
    rest = RemainingTime(len(wanted))
    for name, found in _answers(asked, wanted, effort, workers):
        place = f"{rest.after_one()}: {name}"
        if isinstance(found, JobFailure):
            causes.add(found.cause)
            click.echo(f"{place}: not solved: {found.reason}", err=True)
            continue
        text = found.bundle or ""
        bundle = json.loads(text)
        claim = _claim(wanted[name], found, bundle)
        _append(output, claim)
        if bundles is not None:
            write_whole(bundles / f"{found.digest}.json", text.encode(), "the bundle")
        click.echo(f"{place}: {claim.lower}..{claim.upper}, {claim.seconds:.2f} s", err=True)
        judged.append(tell_judgement([name], [*asked.known, *mine], [claim], folder=evidence, more={name: bundle}))
        mine.append(claim)
    contradictions = [one for judgement in judged for one in judgement.contradictions]
    if update:
        update_known(asked, mine, contradictions)
    beaten = sum(len(judgement.beaten) for judgement in judged)
    click.echo(f"{len(mine)} results, {beaten} bounds beaten, {len(contradictions)} contradictions")
    return NO if contradictions else BUG if FailureCause.BUG in causes else BAD_INPUT if failed else DONE


def _answers(
    asked: ChosenInstances, wanted: Container[str], effort: dict[str, Any], workers: int
) -> Iterator[tuple[str, JobAnswer | JobFailure]]:
    """Yield the outcome of each instance; of equal questions only one is solved."""
    # Equal questions share a key, so they are solved once and get the same line each.
    said = {name.replace("_", "-"): value for name, value in effort.items()}
    jobs, names, read = dict[str, SweepJob](), dict[str, list[str]](), dict[str, str]()
    for entry in asked.entries:
        if entry.name in wanted:
            full = {**entry_question(entry, asked.library), **said}
            key = question_key(full, known=read)
            jobs.setdefault(key, SweepJob(full, key))
            names.setdefault(key, []).append(entry.name)
    workshop = Workshop(answering.__name__, Path.cwd(), effort["time_limit"] + _SECONDS_BESIDE, wants_bundle=True)
    with local_crew(workers, workshop) as crew:
        for outcome in job_outcomes(jobs.values(), crew):
            for name in names[outcome.job.key]:
                yield name, outcome.found or outcome.failures[-1]


def _attempt(claim: BoundClaim) -> tuple[object, ...]:
    """Return what tells attempts apart: one that was made before is not made again."""
    return tuple(getattr(claim, name) for name in _ATTEMPT)


def _claim(attempt: tuple[Any, ...], found: JobAnswer, bundle: dict[str, Any]) -> BoundClaim:
    witness, evidence = bundle["witness"], bundle["result"]["evidence"]
    # A file of results stays small enough to be read as a whole: long schedules are in the bundle.
    is_short = witness is not None and len(bundle_bytes(witness)) <= MOST_SCHEDULE
    return BoundClaim(
        **dict(zip(_ATTEMPT, attempt, strict=True)),
        seconds=round(found.document["seconds"], 3),
        lower=found.document["lower"],
        upper=found.document["upper"],
        evidence=evidence["upper"] if isinstance(evidence, dict) else evidence,
        bundle=found.digest,
        schedule=witness if is_short else None,
    )


def _append(path: Path, claim: BoundClaim) -> None:
    """One line in one step, on the disk before the next instance begins.

    Raises:
        InputError: it cannot be written.
    """
    claim_output(path)
    try:
        with path.open("ab", buffering=0) as file:
            file.write(claims.claim_lines([claim]).encode())
            os.fsync(file.fileno())  # a crash of the machine costs one instance at most
    except OSError as error:
        raise InputError(f"{path}: cannot write the results: {error.strerror or error}") from None
