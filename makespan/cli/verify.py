"""`makespan verify`: the independent checker."""

from pathlib import Path

import click

from makespan.cli.help_page import HelpCommand, examples
from makespan.cli.output import format_option, render
from makespan.cli.parameters import FILE
from makespan.cli.running import DONE, NO, UNDECIDED
from makespan.host.text_file import read_bytes
from makespan.verify import Outcome, Refused, Verdict, parse, verify
from makespan.verify.reading import MOST_BYTES

_EXIT_CODES = {Outcome.ACCEPTED: DONE, Outcome.REJECTED: NO, Outcome.UNPROVEN: UNDECIDED}


@click.command(
    "verify",
    cls=HelpCommand,
    epilog=examples(
        "makespan solve ptx/vecadd.ptx --block 256 --bundle evidence.json", "makespan verify evidence.json"
    ),
)
@click.argument("bundle", type=FILE)
@format_option()
def command(bundle: Path, output: str) -> int:
    """Check the evidence in BUNDLE, a file that 'solve --bundle' wrote, without the code that computed it.

    Exit code 0: every claim follows; 1: rejected, with the reason; 3: not everything could be re-proved.
    """
    content = read_bytes(bundle, "bundle", MOST_BYTES)
    try:
        verdict = verify(parse(content))
    except Refused as refusal:
        verdict = Verdict(Outcome.REJECTED, str(refusal))
    click.echo(render(output, text=lambda: _text(verdict), data=lambda: _document(verdict)))
    return _EXIT_CODES[verdict.outcome]


def _text(verdict: Verdict) -> str:
    if verdict.outcome is Outcome.REJECTED:
        return str(verdict)
    lines = [str(verdict), f"of: {verdict.subject}"]
    if verdict.said is None:
        lines.append("conditions: not known; an older makespan wrote them as words, so solve the question again")
    elif verdict.said:
        lines.append(f"as the file says, not checked: {', '.join(verdict.said)}")
    return "\n".join([*lines, f"not checked: {', '.join(verdict.unchecked)}"])


def _document(verdict: Verdict) -> dict[str, object]:
    claim = verdict.claim
    return {
        "schema": "makespan.verdict/1",
        "outcome": str(verdict.outcome),
        "reason": verdict.reason,
        "subject": verdict.subject,
        "conditions": verdict.conditions,
        "said": verdict.said,
        "unchecked": verdict.unchecked,
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
