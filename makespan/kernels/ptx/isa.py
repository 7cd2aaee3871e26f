"""The execution unit and the operation of each PTX instruction: a table of opcode prefixes, seen through a profile.

A unit class is a letter: C core, D double precision, S special function, L load/store, T tensor core. The table knows a
sixth kind, B, for branches, barriers and other control; every profile folds it into one of its own classes. Machines
that time operations take the operation that the table names, completed by the suffixes of the opcode.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from importlib import resources
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

from makespan.host.errors import InputError, ParseError, UnsupportedError, prefix_errors
from makespan.host.text_file import parse_toml, read_text
from makespan.kernels.ptx.module import Brace, Declaration, PtxInstruction, PtxKernel, declares, names_in

_PATTERN = re.compile(r"m[0-9]+n[0-9]+(k[0-9]+)?|[0-9]+x[0-9]+b(x2)?|b[0-7]{1,4}|h[0-3]{1,2}")


@cache
def suffixes() -> frozenset[str]:
    """Return the suffixes that PTX has, as they are shipped."""
    text = (resources.files("makespan") / "data" / "suffixes.txt").read_text("utf-8")
    return frozenset(word for line in text.splitlines() if not line.startswith("#") for word in line.split())


def unknown_suffix(opcode: str) -> str | None:
    """Return the first suffix that no instruction of PTX has; None if each is one.

    >>> unknown_suffix("ld.global.L1::no_allocate.v4.f32x7")
    'f32x7'
    """
    return next((suffix for suffix in opcode.split(".")[1:] if not all(map(_is_known, suffix.split("::")))), None)


def _is_known(word: str) -> bool:
    return word in suffixes() or _PATTERN.fullmatch(word) is not None


PROFILES: Mapping[str, str] = MappingProxyType({"paper": "CL", "fermi": "CLSD", "modern": "CLSDT"})
"""The unit classes of every profile."""

NO_UNIT = "-"
MAX_CLASSES_BYTES = 2**20
_PREFIX = re.compile(r"[a-z][a-z0-9_]*((\.|::)[A-Za-z0-9_]+)*")


class PtxOpcodeRow(NamedTuple):
    """A row of opcodes.tsv: the unit, that with .f64, the unit where only C and L exist, and the operation."""

    unit: str
    f64: str
    fold: str
    operation: str


@cache
def opcodes() -> Mapping[str, PtxOpcodeRow]:
    """Return the shipped table: its rows by opcode prefix."""
    text = (resources.files("makespan") / "data" / "opcodes.tsv").read_text("utf-8")
    rows = (line.split("\t") for line in text.splitlines() if not line.startswith(("#", "opcode\t")))
    return MappingProxyType({opcode: PtxOpcodeRow(*row) for opcode, *row, _ in rows})


@dataclass(frozen=True, slots=True)
class Classes:
    """The rules by which opcodes become unit classes.

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
        table = opcodes() if unknown_suffix(opcode) is None else {}  # a misspelt suffix must not fall back to a prefix
        for prefix in prefixes(opcode):  # longest first, so own and shipped prefixes compete by length
            if prefix in own:
                return _letter(own[prefix])
            if prefix in table:
                return _letter(self._seen(table[prefix], opcode))
        if self.unknown is None:
            raise LookupError(opcode)
        return _letter(self.unknown)

    def unclassified(self, opcodes: Iterable[str]) -> set[str]:
        """Return the opcodes that only `unknown` covers."""
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
        if self.profile == "paper":
            return row.fold
        double = row.f64 != NO_UNIT and "f64" in opcode.split(".")  # only rows that have a unit for doubles
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
    with prefix_errors(str(path)):
        Classes(overrides=found)
    return found


def _moves(kernel: PtxKernel) -> Iterator[tuple[PtxInstruction, bool]]:
    """Yield every instruction, and whether it is a mov that reads a variable, by the declarations in sight."""
    outer = [*kernel.variables, *(kernel.returns or ()), *(kernel.parameters or ())]
    scopes = [_NameScope(), _NameScope()]  # the module, and the body of the kernel
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


_SPACES = {"shared": "shared", "local": "local", "param": "constant", "const": "constant"}
_HALF = frozenset({"f16", "f16x2", "bf16", "bf16x2"})
_FLOAT = _HALF | {"f32", "f32x2", "f64", "tf32"}
_SPECIAL = re.compile(
    r"%(tid|ntid|ctaid|nctaid|laneid|warpid|nwarpid|smid|nsmid|gridid|lanemask_(eq|le|lt|ge|gt)|clock(_hi|64)?|pm[0-7](_64)?"
    r"|envreg([0-9]|[12][0-9]|3[01])|globaltimer(_lo|_hi)?|(n?clusterid|cluster_n?ctaid|cluster_n?ctarank"
    r"|is_explicit_cluster|reserved_smem_offset_[a-z0-9]+|total_smem_size|aggr_smem_size|dynamic_smem_size"
    r"|current_graph_exec))"
)


def operations(kernel: PtxKernel) -> tuple[str, ...]:
    """Return the operation of every instruction, in text order: a name in `machine.OPERATIONS`.

    Raises:
        ParseError: an opcode that the table does not have.
        UnsupportedError: an instruction whose time has no known bound.

    >>> from makespan.kernels.ptx import parse
    >>> operations(parse(".entry k() { mov.u32 %r1, %tid.x; add.f32 %f1, %f2, %f3; ret; }", "k.ptx").kernel())
    ('special', 'fp32', 'branch')
    """
    return tuple(_operation(kernel, instruction) for instruction in kernel.instructions)


def expands(instruction: PtxInstruction) -> bool:
    """Return whether the assembler makes many machine instructions of one that counts as one."""
    written = operation_of_opcode(instruction.opcode)
    return written is not None and written.endswith("+") and "approx" not in instruction.opcode.split(".")


def _operation(kernel: PtxKernel, instruction: PtxInstruction) -> str:
    found = operation_of_opcode(instruction.opcode)
    if found is None:
        remedy = "only a machine without operations takes it, with --classes FILE or --unknown C"
        raise unknown_opcode(kernel.file, instruction, remedy)
    if found == NO_UNIT:  # a time without a bound cannot be in a proof
        raise UnsupportedError(
            f"{kernel.file}:{instruction.line}: `{instruction}`: nobody bounds how long it takes, so no machine that"
            " times operations takes it"
        )
    sources = (name for operand in instruction.operands[1:] for name in names_in(operand))
    if instruction.name in ("mov", "cvt") and any(_SPECIAL.fullmatch(name) for name in sources):
        return "special"
    if found == "constant" and "param" in instruction.opcode.replace("::", ".").split("."):
        return _of_parameter(kernel, instruction)
    return found.removesuffix("+")


def _of_parameter(kernel: PtxKernel, instruction: PtxInstruction) -> str:
    """Return the operation of a load of a parameter: those of the entry are constants, those of a call are not.

    All lanes read a parameter that the text names from one address; an address in a register may differ. Parameters of
    other functions, and those that an entry declares for its calls, lie in the memory of a thread.

    Source: PTX ISA, "Parameter State Space", Device Function Parameters.
    """
    own = {name for declared in kernel.parameters or () if kernel.is_entry for name, _ in declared.names}
    names = names_in(instruction.operands[1])
    if len(names) == 1 and names[0] in own:
        return "parameter"
    declared = any(isinstance(each, Declaration) and each.space == ".param" for each in kernel.statements)
    # an address in a register may be that of a parameter of the entry, or of one that it declares for a call
    return "local" if not kernel.is_entry or (declared and not own.intersection(names)) else "constant"


@cache
def operation_of_opcode(opcode: str) -> str | None:
    """Return the operation in the table, whatever the operands; None for an opcode that the table does not have.

    >>> operation_of_opcode("fma.rn.f64"), operation_of_opcode("ld.shared.f32"), operation_of_opcode("div.s32")
    ('fp64', 'shared', 'sfu+')
    """
    table = opcodes() if unknown_suffix(opcode) is None else {}
    row = next((table[prefix] for prefix in prefixes(opcode) if prefix in table), None)
    return None if row is None else _operation_of_row(row, frozenset(opcode.replace("::", ".").split(".")[1:]))


def _operation_of_row(row: PtxOpcodeRow, suffixes: frozenset[str]) -> str:
    plain, _, floating = row.operation.partition("/")
    found = floating if floating and suffixes & _FLOAT else plain
    if "f64" in suffixes and row.f64 != NO_UNIT:
        return "fp64" + "+" * found.endswith("+")
    if found == "fp32" and suffixes & _HALF and not suffixes & {"f32", "f32x2"}:
        return "fp16"
    if found == "int" and "pred" in suffixes:
        return "predicate"
    if found == "global" and "global" not in suffixes:
        return next((operation for space, operation in _SPACES.items() if space in suffixes), found)
    # a generic atomic may go to global memory, the slower one
    return "shared" if found == "atomic" and "shared" in suffixes and "global" not in suffixes else found
