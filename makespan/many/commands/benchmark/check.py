"""`makespan benchmark check`: whether a library, and what solvers claim of it, holds."""

from collections import Counter
from dataclasses import replace
from pathlib import Path

import click

from makespan.cli.help_page import HelpCommand, examples
from makespan.cli.progress import progress
from makespan.cli.running import BAD_INPUT, DONE, NO
from makespan.many.commands.benchmark.library import (
    ChosenInstances,
    library_options,
    tell_judgement,
    update_known,
    update_options,
)
from makespan.many.library import claims
from makespan.many.library.claims import BoundClaim
from makespan.many.library.evidence import ClaimEvidence, check_claim
from makespan.many.library.judgement import backed_claim
from makespan.verify import Refused


@click.command(
    "check",
    cls=HelpCommand,
    epilog=examples(
        "makespan benchmark check benchmarks/library",
        "makespan benchmark check benchmarks/library theirs.jsonl --bundles evidence --update",
    ),
)
@library_options
@click.argument("results", nargs=-1, type=click.Path(path_type=Path))
@click.option(
    "--bundles", type=click.Path(path_type=Path), metavar="DIR", help="evidence as DIGEST.json, to be verified"
)
@update_options
def command(
    folder: Path,
    families: tuple[str, ...],
    names: tuple[str, ...],
    results: tuple[Path, ...],
    bundles: Path | None,
    update: bool,
    evidence: Path,
) -> int:
    """Ask every instance of LIBRARY, execute every schedule, and hold all claims against each other.

    Exit code 1: a claim is wrong or contradicts another one; 2: some instance cannot be asked here. With --update a
    bound becomes known if a schedule or a bundle proves it again; a word alone never does.
    """
    asked = ChosenInstances.of(folder, families, names)
    questions, failed = asked.posed()
    counted: Counter[ClaimEvidence] = Counter()
    wrong = set[int]()
    proven: list[BoundClaim] = []
    claimed = asked.about(claim for path in results for claim in claims.read_claims(path))
    every = (*claimed, *asked.about(asked.known))
    with progress() as show:
        for number, claim in enumerate(every):
            if claim.instance not in questions:
                continue
            show(f"{number} of {len(every)} claims checked; next: {claim.instance}")
            try:
                found = check_claim(claim, questions[claim.instance], bundles)
            except Refused as refusal:
                click.echo(f"WRONG: {claim.where}: {claim.instance}: {str(refusal).removeprefix('not a bundle: ')}")
                wrong.add(id(claim))
                continue
            counted.update(found)
            # Known claims are checked as well, but only new ones can become known.
            if number < len(claimed) and (good := backed_claim(claim, found)) is not None:
                proven.append(good)
    asked = replace(asked, known=tuple(claim for claim in asked.known if id(claim) not in wrong))
    new = [claim for claim in claimed if id(claim) not in wrong]
    judged = tell_judgement(asked.names, asked.about(asked.known), new, folder=evidence, more=questions)
    if update:
        update_known(asked, proven, judged.contradictions)
    said = f"{len(questions)} instances, {len(asked.about(asked.known))} claims known and {len(new)} new"
    click.echo(
        f"{said}: {counted[ClaimEvidence.SCHEDULE]} schedules executed,"
        f" {counted[ClaimEvidence.BUNDLE]} bounds proven by bundles;"
        f" {len(wrong)} wrong, {len(judged.beaten)} better, {len(judged.contradictions)} contradictions"
    )
    return NO if wrong or judged.contradictions else BAD_INPUT if failed else DONE
