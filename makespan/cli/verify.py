"""`makespan verify`: the independent checker."""

import json
from pathlib import Path

import click

from makespan.cli.parameters import examples
from makespan.text_file import read_bytes
from makespan.verify import UNCHECKED, Outcome, Refused, Verdict, parse, verify
from makespan.verify.reading import MOST_BYTES

_EXIT_CODES = {Outcome.ACCEPTED: 0, Outcome.REJECTED: 1, Outcome.UNPROVEN: 3}


@click.command(
    "verify",
    epilog=examples(
        "makespan solve ptx/vecadd.ptx --block 256 --bundle evidence.json", "makespan verify evidence.json"
    ),
)
@click.argument("bundle", type=click.Path(path_type=Path))
@click.option("--format", "output", type=click.Choice(["text", "json"]), default="text", show_default=True)
def command(bundle: Path, output: str) -> int:
    """Check the evidence in BUNDLE, a file that 'solve --bundle' wrote, without the code that computed it.

    Exit code 0: every claim follows; 1: rejected, with the reason; 3: not everything could be re-proved.
    """
    content = read_bytes(bundle, "bundle", MOST_BYTES)
    try:
        verdict = verify(parse(content))
    except Refused as refusal:
        verdict = Verdict(Outcome.REJECTED, str(refusal))
    click.echo(json.dumps(_document(verdict)) if output == "json" else verdict)
    if output == "text" and verdict.outcome is not Outcome.REJECTED:
        click.echo(f"not checked: {', '.join(UNCHECKED)}")
    return _EXIT_CODES[verdict.outcome]


def _document(verdict: Verdict) -> dict[str, object]:
    claim = verdict.claim
    return {
        "schema": "makespan.verdict/1",
        "outcome": str(verdict.outcome),
        "reason": verdict.reason,
        "unchecked": UNCHECKED,
        "claim": None if claim is None else {
            "lower": claim.lower,
            "upper": claim.upper,
            "evidence": str(claim.evidence),
            "best_case": claim.best_case,
        },
        "proven": {
            "lower": verdict.lower,
            "upper": verdict.upper,
            "uppers": {str(name): value for name, value in verdict.uppers},
            "best_case": verdict.best_case,
        },
    }  # fmt: skip
