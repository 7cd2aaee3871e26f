"""`makespan dual-issue`: listings with control codes, and scheduling words."""

import json
from pathlib import Path
from typing import TYPE_CHECKING

import click

from makespan.errors import InputError

if TYPE_CHECKING:
    from makespan.estimators.dual_issue.registers import BankFunction

UNDECIDED, NO = 3, 1
_FORMAT = click.option("--format", "output", type=click.Choice(["text", "json"]), default="text", show_default=True)
_BANKS = click.option(
    "--banks", default="0,2", show_default=True, metavar="BITS", help="bits of a register's number that give its bank"
)


@click.group(no_args_is_help=False)
def command() -> None:
    """Check, encode, decode and order listings of dual-issued instructions (KeplerAs syntax)."""


@command.command("check", short_help="Reads, banks and the operand cache per issue cycle.")
@click.argument("listing", type=click.Path(path_type=Path))
@_BANKS
@click.option("--dual", default="04", show_default=True, metavar="CODES", help="codes that open a dual issue, in hex")
@click.option("--pattern", metavar="1-2-2-1", help="the pattern that every block with FFMAs must have")
@click.option("--no-cache", is_flag=True, help="without an operand cache")
@_FORMAT
def check(listing: Path, banks: str, dual: str, pattern: str | None, no_cache: bool, output: str) -> int:
    """Per issue cycle: reads, banks, what the operand cache has, and conflicts. Exit 1 if there is a conflict."""
    from dataclasses import replace

    from makespan.estimators.dual_issue import checker
    from makespan.estimators.dual_issue import listing as listings
    from makespan.estimators.dual_issue.arbiter import parse_pattern
    from makespan.report import dual_issue as report

    read = listings.read(listing)
    if pattern is not None:
        read = replace(read, pattern=parse_pattern(pattern))
    try:
        reports = checker.check(read, _bank_bits(banks), dual=_codes(dual.split(",")), cache=not no_cache)
    except InputError as error:
        raise InputError(f"{listing}: {error}") from None
    click.echo(json.dumps(report.cycles_document(reports)) if output == "json" else report.cycles_text(reports))
    return NO if any(found.ways > 1 for found in reports) else 0


@command.command("decode", short_help="A scheduling word into seven control codes.")
@click.argument("word", metavar="0xWORD")
@_FORMAT
def decode(word: str, output: str) -> None:
    """The seven control codes of a scheduling word."""
    from makespan.estimators.dual_issue import codec

    codes = codec.decode(_hex(word, "a scheduling word", 16))
    if output == "json":
        click.echo(json.dumps({"word": word.lower(), "codes": list(codes)}))
        return
    for number, code in enumerate(codes):
        click.echo(f"{number}  {code:02x}  {codec.spelled(code)}")


@command.command("encode", short_help="Seven control codes into a scheduling word.")
@click.argument("codes", nargs=-1, required=True, metavar="CODE...")
@_FORMAT
def encode(codes: tuple[str, ...], output: str) -> None:
    """The scheduling word of seven control codes, in hexadecimal."""
    from makespan.estimators.dual_issue import codec

    word = codec.encode(_codes(codes))
    click.echo(json.dumps({"word": f"{word:#018x}"}) if output == "json" else f"{word:#018x}")


@command.command("order", short_help="FFMAs of a tile without bank conflicts.")
@click.option("--tile", required=True, metavar="RxC", help="C[i][j] += A[i] * B[j] with R rows and C columns")
@click.option("--pattern", default="1-2-2-1", show_default=True, metavar="1-2-2-1")
@_BANKS
@click.option("--a", "rows", metavar="REGS", help="registers of A, such as 148-150")
@click.option("--b", "columns", metavar="REGS", help="registers of B, such as 146,147")
@click.option("--c", "results", metavar="REGS", help="registers of C, row by row")
def order(tile: str, pattern: str, banks: str, rows: str | None, columns: str | None, results: str | None) -> int:
    """Order the FFMAs of an outer product so that no issue cycle has a bank conflict; prints a listing.

    Without --a, --b and --c registers of suitable banks are chosen. Exit 1 if there is no such order, 3 if the search
    gave up.
    """
    from makespan.estimators.dual_issue import listing as listings
    from makespan.estimators.dual_issue import order as orders
    from makespan.estimators.dual_issue.arbiter import parse_pattern
    from makespan.estimators.dual_issue.pattern_ranking import GK110_CODES

    shape = _shape(tile)
    where, function = parse_pattern(pattern), _bank_bits(banks)
    if rows is None and columns is None and results is None:
        chosen = orders.Tile.of(*shape, function)
    elif rows is None or columns is None or results is None:
        raise InputError("give all of --a, --b and --c, or none of them")
    else:
        chosen = orders.Tile(_registers(rows), _registers(columns), _registers(results))
        if (len(chosen.rows), len(chosen.columns)) != shape:
            raise InputError(f"--tile {tile} needs {shape[0]} registers in --a and {shape[1]} in --b")
    found = orders.order(chosen, where, function)
    if found.ffmas is None:
        why = "there is no such order" if found.complete else "none was found before the search gave up"
        click.echo(f"{why}: {tile} as {pattern} with these registers", err=True)
        return NO if found.complete else UNDECIDED
    click.echo(listings.text(orders.listing_of(found.ffmas, where, GK110_CODES, f"tile_{tile}")), nl=False)
    return 0


def _hex(text: str, what: str, digits: int) -> int:
    bare = text.lower().removeprefix("0x")
    if not 1 <= len(bare) <= digits or not set(bare) <= set("0123456789abcdef"):
        raise InputError(f"{what} is written in hexadecimal, {digits} digits at most, not {text[:40]!r}")
    return int(bare, 16)


def _codes(texts: list[str] | tuple[str, ...]) -> tuple[int, ...]:
    from makespan.estimators.dual_issue.codec import check_code

    return tuple(check_code(_hex(text.strip(), "a control code", 8)) for text in texts)


def _bank_bits(text: str) -> "BankFunction":
    from makespan.estimators.dual_issue.registers import BankFunction

    return BankFunction(_registers(text, "--banks"))


def _shape(text: str) -> tuple[int, int]:
    parts = text.lower().split("x")
    if len(parts) != 2 or not all(part.isdecimal() and len(part) < 4 for part in parts):
        raise InputError(f"--tile {text[:40]!r}: write such as 6x6")
    return int(parts[0]), int(parts[1])


def _registers(text: str, what: str = "registers") -> tuple[int, ...]:
    """`1,3,8-10` as numbers."""
    numbers: list[int] = []
    for part in text.split(","):
        ends = [end.strip().removeprefix("R") for end in part.split("-")]
        if len(ends) > 2 or not all(end.isdecimal() and len(end) < 4 for end in ends):
            raise InputError(f"{what}: {text[:40]!r} is no list of numbers such as 1,3,8-10")
        numbers += range(int(ends[0]), int(ends[-1]) + 1)
    return tuple(numbers)
