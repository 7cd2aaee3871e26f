"""`makespan benchmark run`: solve the instances of a library, one line of results each, and go on where it stopped."""

import json
import os
from pathlib import Path
from typing import Any

import click

from makespan.cli import asking
from makespan.cli.benchmark.library import Asked, compared, library_options, posed, question, update_options
from makespan.cli.parameters import examples
from makespan.cli.running import BAD_INPUT, DONE, NO, progress
from makespan.cli.source import engine_options
from makespan.errors import InputError
from makespan.library import claims
from makespan.library.claims import Claim
from makespan.library.collection import Entry
from makespan.report.files import check_writable, write_whole
from makespan.text_file import claim_output
from makespan.verify import digest
from makespan.version import THEORY, __version__

MOST_SCHEDULE = 4096
"""Letters of a schedule that a line of results has; longer ones are in the bundle."""

_VERSION = f"{__version__}, theory {THEORY}"
_ATTEMPT = ("instance", "digest", "solver", "version", "limit")


@click.command(
    "run",
    epilog=examples(
        "makespan benchmark run benchmarks/library --time-limit 10 -o results.jsonl",
        "makespan benchmark run benchmarks/library --family random --backend cpsat -o cpsat.jsonl",
    ),
)
@library_options
@engine_options
@click.option("-o", "--output", type=click.Path(path_type=Path), required=True, help="JSON lines; those in it are kept")
@click.option("--bundles", type=click.Path(path_type=Path), metavar="DIR", help="leave the evidence, by its digest")
@update_options
def command(
    folder: Path,
    families: tuple[str, ...],
    names: tuple[str, ...],
    output: Path,
    bundles: Path | None,
    update: bool,
    evidence: Path,
    **effort: Any,
) -> int:
    """Solve the instances of LIBRARY and hold every result against what is known.

    A line is written as soon as it is proven; what the file has of this version with this limit is not solved again.
    Exit code 1: some result contradicts what is known; 2: some instance cannot be asked here.
    """
    asked = Asked.of(folder, families, names)
    check_writable(output, "the results")
    solver = "makespan" if effort["backend"] == "auto" else f"makespan {effort['backend']}"
    before = asked.about(claims.read(output, rewritten=True)) if output.exists() else ()
    mine = [claim for claim in before if claim.solver == solver]
    done = {_attempt(claim) for claim in mine}
    digests, kept = dict[str, str](), dict[str, Any]()
    for number, entry in enumerate(asked.entries, start=1):
        try:
            digests[entry.name] = digest(posed(entry, asked.library))
        except InputError as error:
            click.echo(f"makespan: {error}", err=True)
            continue
        attempt = (entry.name, digests[entry.name], solver, _VERSION, effort["time_limit"])
        if attempt in done:
            continue
        try:
            answer = _answer(entry, asked, effort)
        except InputError as error:
            click.echo(f"{entry.name}: not solved: {error}", err=True)
            continue
        claim = _claim(attempt, answer)
        _append(output, claim)
        if bundles is not None:
            bundles.mkdir(parents=True, exist_ok=True)
            write_whole(bundles / f"{answer.digest}.json", answer.bundle, "the bundle")
        mine.append(claim)
        kept[entry.name] = answer.evidence
        place = f"{number}/{len(asked.entries)}"
        click.echo(f"{place} {entry.name}: {claim.lower}..{claim.upper}, {claim.seconds:.2f} s", err=True)
    mine = [claim for claim in mine if claim.digest == digests.get(claim.instance)]
    asked = asked.without_other_questions(digests)
    found = compared(asked, mine, mine, update=update, folder=evidence, more=kept, say=click.echo)
    click.echo(f"{len(mine)} results, {len(found.beaten)} bounds beaten, {len(found.contradictions)} contradictions")
    return NO if found.contradictions else BAD_INPUT if len(digests) < len(asked.entries) else DONE


def _attempt(claim: Claim) -> tuple[object, ...]:
    """What need not be done twice."""
    return tuple(getattr(claim, name) for name in _ATTEMPT)


def _answer(entry: Entry, asked: Asked, effort: dict[str, Any]) -> asking.Answer:
    said = {name.replace("_", "-"): value for name, value in effort.items()}
    return asking.answered({**question(entry, asked.library), **said}, progress())


def _claim(attempt: tuple[Any, ...], answer: asking.Answer) -> Claim:
    witness, evidence = answer.evidence["witness"], answer.evidence["result"]["evidence"]
    is_short = witness is not None and len(json.dumps(witness, separators=(",", ":"))) <= MOST_SCHEDULE
    return Claim(
        **dict(zip(_ATTEMPT, attempt, strict=True)),
        seconds=round(answer.seconds, 3),
        lower=answer.lower,
        upper=answer.upper,
        evidence=evidence["upper"] if isinstance(evidence, dict) else evidence,
        bundle=answer.digest,
        schedule=witness if is_short else None,
    )


def _append(path: Path, claim: Claim) -> None:
    """One line in one step, on the disk before the next instance begins.

    Raises:
        InputError: it cannot be written.
    """
    claim_output(path)
    try:
        with path.open("ab", buffering=0) as file:
            file.write(claims.written([claim]).encode())
            os.fsync(file.fileno())
    except OSError as error:
        raise InputError(f"{path}: cannot write the results: {error.strerror or error}") from None
