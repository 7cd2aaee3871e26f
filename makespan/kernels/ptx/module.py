"""The values that a PTX file is read into: a module of kernels and functions, each a flat run of statements.

Positions (file, line, column) take no part in comparisons, so a kernel that `render` printed and `parse` read again is
equal to the first one. Blanks and ordinary comments are not kept.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from makespan.host.errors import InputError, did_you_mean

Signatures: TypeAlias = tuple[tuple[str, tuple[str | None, ...]], ...]
"""Kernels by their name in CUDA source, each with the names of its parameters in order."""

_NAME = re.compile(r"(?<![A-Za-z0-9_$%.])[A-Za-z_$%][A-Za-z0-9_$]*")
_NUMBERED = re.compile(r"(.*[^0-9])(0|[1-9][0-9]{0,8})")


@dataclass(frozen=True, slots=True)
class PtxInstruction:
    """One instruction; an operand is its text without blanks, such as `[%rd1+4]`; a guard has no `@`.

    It begins in this line, and its opcode in this column.
    """

    opcode: str
    operands: tuple[str, ...] = ()
    guard: str | None = None
    line: int = field(default=0, compare=False)
    column: int = field(default=0, compare=False)

    @property
    def name(self) -> str:
        """Return the opcode without its suffixes."""
        return self.opcode.partition(".")[0]

    def __str__(self) -> str:
        guard = f"@{self.guard} " if self.guard else ""
        operands = f" {', '.join(self.operands)}" if self.operands else ""
        return f"{guard}{self.opcode}{operands};"


@dataclass(frozen=True, slots=True)
class PtxLabel:
    """A label; it can be seen in its own `{ }` block and in the blocks inside."""

    name: str
    line: int = field(default=0, compare=False)
    column: int = field(default=0, compare=False)


@dataclass(frozen=True, slots=True)
class Declaration:
    """Variables of one state space; a name may carry a count, as in `.reg .u32 %r<4>` for %r0 to %r3."""

    space: str
    names: tuple[tuple[str, int | None], ...]
    text: str
    line: int = field(default=0, compare=False)

    @property
    def is_register(self) -> bool:
        """Return whether the names are registers and not places in memory."""
        return self.space in (".reg", ".sreg")


@dataclass(frozen=True, slots=True)
class Location:
    """A `.loc`: what follows comes from `source_line` of the file with this number."""

    file_number: int
    source_line: int
    text: str
    line: int = field(default=0, compare=False)


@dataclass(frozen=True, slots=True)
class Directive:
    """Any other directive, kept as its text."""

    text: str
    line: int = field(default=0, compare=False)


@dataclass(frozen=True, slots=True)
class Note:
    """A comment that may carry a loop bound: `// makespan: ...` or `//<loop> ...`."""

    text: str
    line: int = field(default=0, compare=False)


@dataclass(frozen=True, slots=True)
class Brace:
    """The beginning or the end of an inner `{ }` block."""

    opens: bool
    line: int = field(default=0, compare=False)


Statement: TypeAlias = PtxInstruction | PtxLabel | Declaration | Location | Directive | Note | Brace


KEEP_HINT = "lines are those of the PTX that was made; --keep-ptx FILE.ptx keeps it"
"""An addition to positions in PTX that the user has not seen."""


@dataclass(frozen=True, slots=True)
class Compilation:
    """The way in which PTX was made from the file `source` of the user.

    Args:
        compiler: with its version.
        flags: those that may change the PTX.
        signatures: the names of the parameters in the source, by kernel.
        arch: the architecture that was asked for; None is the default.
    """

    source: str
    compiler: str
    flags: tuple[str, ...]
    signatures: Signatures = ()
    arch: str | None = None

    def __str__(self) -> str:
        return (
            f"the PTX was made from {self.source} by {self.compiler} with {' '.join(self.flags)};"
            " another compiler, version or flag makes other PTX"
        )


@dataclass(frozen=True, slots=True)
class PtxKernel:
    """An `.entry`, or a `.func` when `is_entry` is false; `body` is None for a mere declaration.

    Args:
        files: the files of the `.loc` directives, by number.
        variables: what the module around it declares.
        functions: the functions of the module, which it may call.
        compilation: how the PTX was made; None if it was given as PTX.
    """

    name: str
    is_entry: bool
    body: tuple[Statement, ...] | None
    linkage: tuple[str, ...] = ()
    returns: tuple[Declaration, ...] | None = None
    parameters: tuple[Declaration, ...] | None = None
    attributes: tuple[str, ...] = ()
    line: int = field(default=0, compare=False)
    file: str = field(default="", compare=False)
    files: tuple[tuple[int, str], ...] = field(default=(), compare=False, repr=False)
    variables: tuple[Declaration, ...] = field(default=(), compare=False, repr=False)
    compilation: Compilation | None = field(default=None, compare=False, repr=False)
    functions: tuple["PtxKernel", ...] = field(default=(), compare=False, repr=False)

    @property
    def source(self) -> str:
        """Return the file that the user gave, and the architecture if that is not the default."""
        made = self.compilation
        if made is None:
            return self.file
        return made.source if made.arch is None else f"{made.source} --arch {made.arch}"

    @property
    def statements(self) -> tuple[Statement, ...]:
        """Return the statements of the body; none for a mere declaration."""
        return self.body or ()

    @property
    def labels(self) -> frozenset[str]:
        """Return the labels of the body, in whatever `{ }` block they stand."""
        return frozenset(s.name for s in self.statements if isinstance(s, PtxLabel))

    @property
    def instructions(self) -> tuple[PtxInstruction, ...]:
        """Return every instruction once, in text order."""
        return tuple(s for s in self.statements if isinstance(s, PtxInstruction))


Item: TypeAlias = PtxKernel | Declaration | Directive


@dataclass(frozen=True, slots=True)
class PtxModule:
    """One PTX file, its items in text order; `text` is what was parsed."""

    file: str = field(compare=False)
    items: tuple[Item, ...]
    compilation: Compilation | None = field(default=None, compare=False)
    text: str = field(default="", compare=False, repr=False)

    @property
    def version(self) -> str | None:
        """Return the PTX version, such as "8.3"; None when the file does not say."""
        return next(self._directives(".version"), None)

    @property
    def target(self) -> str | None:
        """Return the target with its options, such as "sm_90a, debug"; None when the file does not say."""
        return next(self._directives(".target"), None)

    @property
    def kernels(self) -> tuple[PtxKernel, ...]:
        """Return the entries that have a body."""
        return tuple(k for k in self._routines() if k.is_entry and k.body is not None)

    @property
    def functions(self) -> tuple[PtxKernel, ...]:
        """Return everything else that can be called, declarations included."""
        return tuple(k for k in self._routines() if not k.is_entry or k.body is None)

    def kernel(self, name: str | None = None) -> PtxKernel:
        """Return the kernel of this name, plain or mangled (`saxpy` finds `_Z5saxpyfPf`); None means the only one.

        Raises:
            InputError: no such kernel, or a choice among several; lists them.
        """
        if not self.kernels:
            raise InputError(f"{self.file}: no kernel in this file: it has no .entry with a body")
        found = [k for k in self.kernels if name is None or k.name == name]
        found = found or [k for k in self.kernels if name is not None and _mangles(k.name, name)]
        if len(found) == 1:
            return found[0]
        names = [kernel.name for kernel in self.kernels]
        known = ", ".join(names)
        if name is None:
            raise InputError(f"{self.file}: choose one of {len(found)} kernels with --kernel NAME: {known}")
        problem, near = ("several kernels match", "") if found else ("no kernel", did_you_mean(name, names))
        raise InputError(f"{self.file}: {problem} {name!r}{near or ';'} the kernels are: {known}")

    def _routines(self) -> Iterator[PtxKernel]:
        return (item for item in self.items if isinstance(item, PtxKernel))

    def _directives(self, word: str) -> Iterator[str]:
        texts = (item.text for item in self.items if isinstance(item, Directive))
        return (text[len(word) + 1 :] for text in texts if text.startswith(word + " "))


def names_in(operand: str) -> tuple[str, ...]:
    """Return the registers, variables and labels that an operand mentions.

    >>> names_in("[%rd1+0f3F800000]"), names_in("{%f1, %tid.x}")
    (('%rd1',), ('%f1', '%tid'))
    """
    return tuple(_NAME.findall(operand))


def declares(declared: Mapping[str, int | None], name: str) -> bool:
    """Return whether `name` is declared; `%r` with count 4 declares %r0 to %r3."""
    if name in declared and declared[name] is None:
        return True
    numbered = _NUMBERED.fullmatch(name)
    count = declared.get(numbered[1]) if numbered else None
    return numbered is not None and count is not None and int(numbered[2]) < count


def _mangles(mangled: str, name: str) -> bool:
    return re.match(rf"_Z{len(name)}{re.escape(name)}", mangled) is not None


def render(module: PtxModule) -> str:
    """Return the text of a module: `parse(render(m), ...) == m`."""
    return "".join(f"{line}\n" for item in module.items for line in _item(item))


def _item(item: Item) -> Iterator[str]:
    if isinstance(item, PtxKernel):
        return _kernel(item)
    return iter((f"{item.text};" if isinstance(item, Declaration) else item.text,))


def _kernel(kernel: PtxKernel) -> Iterator[str]:
    head = [*kernel.linkage, ".entry" if kernel.is_entry else ".func"]
    head += [_parameters(kernel.returns), kernel.name, _parameters(kernel.parameters)]
    yield " ".join(filter(None, head))
    yield from kernel.attributes
    if kernel.body is None:
        yield ";"
    else:
        yield "{"
        yield from map(_statement, kernel.body)
        yield "}"


def _parameters(parameters: tuple[Declaration, ...] | None) -> str:
    return "" if parameters is None else f"({', '.join(p.text for p in parameters)})"


def _statement(statement: Statement) -> str:
    match statement:
        case PtxInstruction():
            return f"\t{statement}"
        case PtxLabel(name):
            return f"{name}:"
        case Declaration():
            return f"\t{statement.text};"
        case Brace(opens):
            return "\t{" if opens else "\t}"
        case _:
            return f"\t{statement.text}"
