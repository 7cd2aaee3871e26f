"""Which execution unit an instruction needs: a table of opcode prefixes, seen through a profile.

A unit class is a letter: C core, D double precision, S special function, L load/store, T tensor core. The table knows a
sixth kind, B, for branches, barriers and other control; every profile folds it into one of its own classes.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from importlib import resources
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

from makespan.host.errors import InputError, ParseError
from makespan.host.text_file import parse_toml, read_text
from makespan.kernels.ptx.module import Brace, Declaration, PtxInstruction, PtxKernel, declares, names_in
from makespan.kernels.ptx.suffixes import unknown_suffix

PROFILES: Mapping[str, str] = MappingProxyType({"paper": "CL", "fermi": "CLSD", "modern": "CLSDT"})
"""The unit classes of every profile."""

NO_UNIT = "-"
MAX_CLASSES_BYTES = 2**20
_PREFIX = re.compile(r"[a-z][a-z0-9_]*((\.|::)[A-Za-z0-9_]+)*")


class PtxOpcodeRow(NamedTuple):
    """A row of opcodes.tsv: the unit, that with .f64, and where only C and L exist; the operation as it is written."""

    unit: str
    f64: str
    fold: str
    operation: str


@cache
def opcodes() -> Mapping[str, PtxOpcodeRow]:
    """Return the shipped table: rows by opcode prefix."""
    text = (resources.files("makespan") / "data" / "opcodes.tsv").read_text("utf-8")
    rows = (line.split("\t") for line in text.splitlines() if not line.startswith(("#", "opcode\t")))
    return MappingProxyType({opcode: PtxOpcodeRow(*row) for opcode, *row, _ in rows})


@dataclass(frozen=True, slots=True)
class Classes:
    """How opcodes become unit classes.

    Args:
        profile: a name in `PROFILES`.
        overrides: a letter, or "-" for none, by opcode prefix; counts as it is, whatever the profile. A longer prefix
            of the shipped table still wins over a shorter one given here.
        unknown: the letter for opcodes that nothing classifies; None makes them an error.

    Raises:
        InputError: an unknown profile, an ill-formed prefix or letter.
    """

    profile: str = "paper"
    overrides: Mapping[str, str] = field(default_factory=dict)
    unknown: str | None = None

    def __post_init__(self) -> None:
        if self.profile not in PROFILES:
            raise InputError(f"unknown profile {self.profile!r}; known: {', '.join(PROFILES)}")
        for prefix, letter in self.overrides.items():
            if not _PREFIX.fullmatch(prefix):
                raise InputError(f"{prefix!r} is not an opcode prefix such as ld.param")
            _check_letter(letter, f"the class of {prefix}")
        if self.unknown is not None:
            _check_letter(self.unknown, "the class of unknown opcodes")

    def unit(self, opcode: str) -> str | None:
        """Return the class that serves `opcode`, None when no unit does.

        Raises:
            LookupError: nothing classifies this opcode.
        """
        own = {prefix.replace("::", "."): letter for prefix, letter in self.overrides.items()}
        table = opcodes() if unknown_suffix(opcode) is None else {}
        for prefix in prefixes(opcode):
            if prefix in own:
                return _letter(own[prefix])
            if prefix in table:
                return _letter(self._seen(table[prefix], opcode))
        if self.unknown is None:
            raise LookupError(opcode)
        return _letter(self.unknown)

    def unclassified(self, opcodes: Iterable[str]) -> set[str]:
        """Those of the opcodes that only `unknown` covers."""
        known = replace(self, unknown=None)
        return {opcode for opcode in set(opcodes) if not known.classifies(opcode)}

    def classifies(self, opcode: str) -> bool:
        """Return whether there is a class for `opcode`."""
        try:
            self.unit(opcode)
        except LookupError:
            return False
        return True

    def _seen(self, row: PtxOpcodeRow, opcode: str) -> str:
        """Return the letter of a row in this profile."""
        if self.profile == "paper":
            return row.fold
        double = row.f64 != NO_UNIT and "f64" in opcode.split(".")
        unit = row.f64 if double else row.unit
        return unit if unit in PROFILES[self.profile] or unit == NO_UNIT else row.fold


class PtxListingRow(NamedTuple):
    """One instruction of the text; `unit` is None when it needs no unit."""

    line: int
    text: str
    unit: str | None


def listing(
    kernel: PtxKernel,
    *,
    profile: str = "paper",
    classes: Mapping[str, str] | None = None,
    unknown: str | None = None,
) -> tuple[PtxListingRow, ...]:
    """Return every instruction once, in text order, whatever the control flow.

    Raises:
        InputError: an opcode that nothing classifies.
    """
    units = units_of(kernel, Classes(profile, classes or {}, unknown))
    return tuple(PtxListingRow(i.line, str(i), u) for i, u in zip(kernel.instructions, units, strict=True))


def units_of(kernel: PtxKernel, classes: Classes) -> tuple[str | None, ...]:
    """Return the unit class of every instruction, in text order.

    Raises:
        InputError: an opcode that nothing classifies.
    """
    seen = cache(classes.unit)
    found: list[str | None] = []
    for instruction, reads_variable in _moves(kernel):
        try:
            unit = seen(instruction.opcode)
        except LookupError:
            remedy = "classify it with --classes FILE, or count every unknown opcode with --unknown C"
            raise unknown_opcode(kernel.file, instruction, remedy) from None
        overridden = any(prefix in classes.overrides for prefix in prefixes(instruction.opcode))
        found.append("L" if reads_variable and classes.profile == "paper" and not overridden else unit)
    return tuple(found)


def unknown_opcode(file: str, instruction: PtxInstruction, remedy: str) -> ParseError:
    """Return the error about an opcode that the table does not have, or a suffix that PTX does not have."""
    text, opcode = str(instruction), instruction.opcode
    what, at = f"unknown opcode {opcode!r}", 0
    if instruction.name in {prefix.partition(".")[0] for prefix in opcodes()} and (suffix := unknown_suffix(opcode)):
        what, at = f"unknown suffix '.{suffix}' of opcode {opcode!r}", f"{opcode}.".index(f".{suffix}.")
    return ParseError(
        file,
        instruction.line,
        instruction.column + at,
        f"{what}; {remedy}",
        f"{text}\n{' ' * (text.index(opcode) + at)}^",
    )


def read_classes(path: Path) -> dict[str, str]:
    """Read a classes file: TOML lines such as `"ld.param" = "C"` or `nanosleep = "-"`.

    Raises:
        InputError: a file that cannot be read, is not TOML, or holds anything else.
    """
    text = read_text(path, "classes file", MAX_CLASSES_BYTES)
    document = parse_toml(text, "classes file", str(path))
    return _check_classes(document, path)


def _check_classes(document: Mapping[str, object], path: Path) -> dict[str, str]:
    for prefix, letter in document.items():
        if isinstance(letter, dict):
            raise InputError(f'{path}: quote a prefix that has dots, as in "{prefix}.x" = "C"; tables have no meaning')
        if not isinstance(letter, str):
            raise InputError(f'{path}: the class of {prefix} must be a letter in quotes, such as "C" or "-"')
    found = {prefix: str(letter) for prefix, letter in document.items()}
    try:
        Classes(overrides=found)
    except InputError as error:
        raise InputError(f"{path}: {error}") from None
    return found


def _moves(kernel: PtxKernel) -> Iterator[tuple[PtxInstruction, bool]]:
    """Every instruction, and whether it is a mov that reads a variable, as far as the declarations in sight tell."""
    outer = [*kernel.variables, *(kernel.returns or ()), *(kernel.parameters or ())]
    scopes = [_NameScope(), _NameScope()]
    for declaration in outer:
        scopes[0].add(declaration)
    for statement in kernel.statements:
        match statement:
            case Brace(opens=True):
                scopes.append(_NameScope())
            case Brace():
                scopes.pop()
            case Declaration():
                scopes[-1].add(statement)
            case PtxInstruction():
                names = (n for operand in statement.operands[1:] for n in names_in(operand))
                yield statement, statement.name == "mov" and any(_is_variable(n, scopes) for n in names)
            case _:
                pass


class _NameScope:
    """The names that one `{ }` block declares."""

    def __init__(self) -> None:
        self.registers: dict[str, int | None] = {}
        self.variables: dict[str, int | None] = {}

    def add(self, declaration: Declaration) -> None:
        (self.registers if declaration.is_register else self.variables).update(declaration.names)


def _is_variable(name: str, scopes: list[_NameScope]) -> bool:
    for scope in reversed(scopes):
        if declares(scope.registers, name):
            return False
        if declares(scope.variables, name):
            return True
    return not name.startswith("%") and name != "WARP_SZ"  # what is left with a % is a special register


def prefixes(opcode: str) -> Iterator[str]:
    """Return the opcode and its dotted prefixes, longest first."""
    parts = opcode.replace("::", ".").split(".")
    return (".".join(parts[:count]) for count in range(len(parts), 0, -1))


def _letter(letter: str) -> str | None:
    return None if letter == NO_UNIT else letter


def _check_letter(letter: str, what: str) -> None:
    if letter != NO_UNIT and not (len(letter) == 1 and "A" <= letter <= "Z"):
        raise InputError(f"{what} must be one capital letter A-Z, or - for none, not {letter!r}")
