"""From the rules of grammar.lark to the values of module.py; the only module that imports lark when it loads.

lark hands every rule the list of what it matched. A rule that only matters as text stays such a list ("rope"), and is
joined once, at the instruction or declaration around it: so deep nesting costs neither recursion nor repeated copies.
"""

from collections.abc import Iterable, Iterator
from functools import cache
from importlib import resources
from typing import Any, TypeAlias

from lark import Lark, Token, Transformer

from makespan.host.stopwatch import check
from makespan.kernels.ptx.module import (
    Brace,
    Declaration,
    Directive,
    Item,
    Location,
    Note,
    PtxInstruction,
    PtxKernel,
    PtxLabel,
    Statement,
)

MAX_BLOCK_DEPTH = 256
_BLANKS = {",": ", ", "=": " = "}

Rope: TypeAlias = "Token | str | list[Rope]"


class GrammarLimitError(Exception):
    """An error in text that the grammar allows and a limit does not; the parser adds file and context."""

    def __init__(self, token: Token, message: str) -> None:
        super().__init__(message)
        self.position = token.start_pos or 0


@cache
def lark() -> Lark:
    """Return the parser, built once; parsing yields the items of a module in text order."""
    grammar = (resources.files("makespan.kernels.ptx") / "grammar.lark").read_text("utf-8")
    return Lark(grammar, parser="lalr", lexer="contextual", transformer=_ModuleBuilder(), keep_all_tokens=True)


class _ModuleBuilder(Transformer[Token, tuple[Item, ...]]):
    """A method for each rule. Every token of the rule is among `parts`, punctuation included."""

    def start(self, parts: list[Any]) -> tuple[Item, ...]:
        return tuple(part for part in parts if not isinstance(part, Token))

    def directive(self, parts: list[Any]) -> Directive:
        return parts[0] if isinstance(parts[0], Directive) else Directive(_join_words(parts), parts[0].line)

    pragma = body_directive = directive

    def section(self, parts: list[Any]) -> Directive:
        lines = "\n".join(f"\t{line}" for line in parts[3:-1])
        return Directive(f"{parts[0]} {parts[1]}\n{{\n{lines}\n}}", parts[0].line)

    def section_line(self, parts: list[Any]) -> str:
        return _join_words(parts)

    def function(self, parts: list[Any]) -> PtxKernel:
        at = next(i for i, part in enumerate(parts) if isinstance(part, Token) and part.type == "NAME")
        kind = next(i for i, part in enumerate(parts) if part in (".entry", ".func"))
        before, after = parts[kind + 1 : at], parts[at + 1 :]
        return PtxKernel(
            name=str(parts[at]),
            is_entry=parts[kind] == ".entry",
            body=next((_body(part) for part in after if isinstance(part, list)), None),
            linkage=tuple(str(part) for part in parts[:kind]),
            returns=next(iter(before), None),
            parameters=next((part for part in after if isinstance(part, tuple)), None),
            attributes=tuple(part.text for part in after if isinstance(part, Directive)),
            line=parts[at].line,
        )

    attribute = directive

    def parameters(self, parts: list[Any]) -> tuple[Declaration, ...]:
        return tuple(part for part in parts if isinstance(part, Declaration))

    def declaration(self, parts: list[Any]) -> Declaration:
        words = parts[:-1] if parts[-1] == ";" else parts
        space = next(part for part in parts if isinstance(part, Token) and part.type == "SPACE")
        names = tuple(part[:2] for part in parts if isinstance(part, tuple))
        texts = [part[2] if isinstance(part, tuple) else part for part in words]
        return Declaration(str(space).partition("::")[0], names, _join_words(texts), space.line or 0)

    parameter = declaration

    def modifier(self, parts: list[Any]) -> str:
        if len(parts) == 2:
            return f"{parts[0]} {parts[1]}"
        return _join_text(parts)

    def declarator(self, parts: list[Any]) -> tuple[str, int | None, str]:
        count = _whole_number(parts[2]) if len(parts) > 2 and parts[1] == "<" else None
        return str(parts[0]), count, _join_text(parts)

    def label(self, parts: list[Any]) -> PtxLabel:
        token = parts[0]
        return PtxLabel(str(token[:-1]).rstrip(), token.line, token.column)

    def instruction(self, parts: list[Any]) -> PtxInstruction:
        check("reading the PTX", "leave kernels out of the file that are not needed")
        first = parts[0]
        guarded = first.type == "GUARD"
        opcode = parts[1] if guarded else first
        operands = parts[-2]
        return PtxInstruction(
            str(opcode),
            operands if isinstance(operands, tuple) else (),
            "".join(first[1:].split()) if guarded else None,
            first.line,
            opcode.column,
        )

    def operands(self, parts: list[Any]) -> tuple[str, ...]:
        return tuple([_join_text(part) for part in parts[::2]])

    def location(self, parts: list[Any]) -> Location:
        return Location(_whole_number(parts[1]), _whole_number(parts[2]), _join_words(_flatten(parts)), parts[0].line)

    def block(self, parts: list[Any]) -> list[Any]:
        return parts

    def _rope(self, parts: list[Any]) -> list[Any]:
        return parts

    operand = expression = term = initializer = address = datum = inlined = values = _rope


def _body(block: list[Any]) -> tuple[Statement, ...]:
    found: list[Statement] = []
    open_blocks: list[Iterator[Any]] = [iter(block[1:-1])]
    while open_blocks:
        for part in open_blocks[-1]:
            if isinstance(part, list):
                if len(open_blocks) == MAX_BLOCK_DEPTH:  # later passes keep a scope for each open block
                    raise GrammarLimitError(part[0], f"blocks nest deeper than {MAX_BLOCK_DEPTH}")
                open_blocks.append(iter(part))
                break
            found.append(_statement(part))
        else:
            open_blocks.pop()
    return tuple(found)


def _statement(part: Any) -> Statement:
    if not isinstance(part, Token):
        return part  # type: ignore[no-any-return]
    line = part.line or 0
    return Note(str(part).rstrip(), line) if part.type == "NOTE" else Brace(part == "{", line)


def _flatten(rope: Rope) -> Iterator[str]:
    stack = [rope]  # no recursion: hostile text nests deeply
    while stack:
        top = stack.pop()
        if isinstance(top, list):
            stack.extend(reversed(top))
        else:
            yield top


def _join_text(rope: Rope) -> str:
    """Return an operand or declarator without blanks, but for those around commas and equal signs."""
    if isinstance(rope, Token):
        return str(rope)
    return "".join(_BLANKS.get(word, word) for word in _flatten(rope))


def _join_words(words: Iterable[Rope]) -> str:
    texts = (_join_text(word) if isinstance(word, list) else word for word in words)
    return "".join(text if text in (",", ";") else f" {text}" for text in texts).lstrip()


def _whole_number(number: Token) -> int:
    if not number.isdecimal() or len(number) > 9:  # so that no number can eat memory
        raise GrammarLimitError(number, f"expected a whole number below 10^9, got {number[:20]!r}")
    return int(number)
