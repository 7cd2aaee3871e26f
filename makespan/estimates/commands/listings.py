"""`makespan dual-issue`: listings with control codes, and scheduling words."""

from pathlib import Path
from typing import TYPE_CHECKING

import click

from makespan.cli.help_page import HelpCommand, examples
from makespan.cli.output import format_option, render
from makespan.cli.running import DONE, NO
from makespan.host.errors import InputError

if TYPE_CHECKING:
    from makespan.estimates.dual_issue.registers import BankFunction

_BANKS = click.option(
    "--banks", default="0,2", show_default=True, metavar="BITS", help="bits of a register's number that give its bank"
)


_CHECKING = examples("makespan dual-issue check kernel.sass")
_DECODING = examples("makespan dual-issue decode 0x08dc109c14801410")
_ENCODING = examples("makespan dual-issue encode 05 04 05 04 05 04 90")


@click.group(no_args_is_help=False, epilog=_DECODING)
def command() -> None:
    """Check, encode and decode listings of dual-issued instructions (KeplerAs syntax)."""


@command.command(
    "check",
    cls=HelpCommand,
    help="Per issue cycle: reads, banks, what the operand cache has, and conflicts. Exit 1 if there is a conflict.",
    short_help="Reads, banks and the operand cache per issue cycle.",
    epilog=_CHECKING,
)
@click.argument("listing", type=click.Path(path_type=Path))
@_BANKS
@click.option("--pattern", metavar="1-2-2-1", help="the pattern that every block with FFMAs must have")
@click.option("--no-cache", is_flag=True, help="without an operand cache")
@format_option()
def check(listing: Path, banks: str, pattern: str | None, no_cache: bool, output: str) -> int:
    """Check a listing, and return the exit code: 1 if an issue cycle has a conflict."""
    from dataclasses import replace

    from makespan.estimates.dual_issue import listing as listings
    from makespan.estimates.dual_issue.arbiter import parse_pattern
    from makespan.estimates.report import dual_issue as report

    read = listings.read(listing)
    if pattern is not None:
        read = replace(read, pattern=parse_pattern(pattern))
    try:
        reports = listings.check(read, _bank_bits(banks), cache=not no_cache)
    except InputError as error:
        raise InputError(f"{listing}: {error}") from None
    said = render(output, text=lambda: report.cycles_text(reports), data=lambda: report.cycles_document(reports))
    click.echo(said)
    return NO if any(found.ways > 1 for found in reports) else DONE


@command.command("decode", cls=HelpCommand, short_help="A scheduling word into seven control codes.", epilog=_DECODING)
@click.argument("word", metavar="0xWORD")
@format_option()
def decode(word: str, output: str) -> None:
    """The seven control codes of a scheduling word."""
    from makespan.estimates.dual_issue import control_codes

    codes = control_codes.decode(_hex(word, "a scheduling word", 16))
    said = render(
        output,
        text=lambda: "\n".join(
            f"{number}  {code:02x}  {control_codes.code_text(code)}" for number, code in enumerate(codes)
        ),
        data=lambda: {"word": word.lower(), "codes": list(codes)},
    )
    click.echo(said)


@command.command("encode", cls=HelpCommand, short_help="Seven control codes into a scheduling word.", epilog=_ENCODING)
@click.argument("codes", nargs=-1, required=True, metavar="CODE...")
@format_option()
def encode(codes: tuple[str, ...], output: str) -> None:
    """The scheduling word of seven control codes, in hexadecimal."""
    from makespan.estimates.dual_issue import control_codes

    word = control_codes.encode(_codes(codes))
    click.echo(render(output, text=lambda: f"{word:#018x}", data=lambda: {"word": f"{word:#018x}"}))


def _hex(text: str, what: str, digits: int) -> int:
    bare = text.lower().removeprefix("0x")
    if not 1 <= len(bare) <= digits or not set(bare) <= set("0123456789abcdef"):
        raise InputError(f"{what} is written in hexadecimal, {digits} digits at most, not {text[:40]!r}")
    return int(bare, 16)


def _codes(texts: list[str] | tuple[str, ...]) -> tuple[int, ...]:
    from makespan.estimates.dual_issue.control_codes import check_code

    return tuple(check_code(_hex(text.strip(), "a control code", 8)) for text in texts)


def _bank_bits(text: str) -> "BankFunction":
    from makespan.estimates.dual_issue.registers import BankFunction

    bits = text.split(",")
    if not all(bit.isascii() and bit.isdecimal() and len(bit) < 4 for bit in bits):
        raise InputError(f"--banks {text[:40]!r} is no list of numbers such as 0,2")
    return BankFunction(tuple(map(int, bits)))
