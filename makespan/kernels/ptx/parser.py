"""The reader of PTX text; text that it does not understand is an error with file, line, column and caret."""

import re
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from makespan.host.errors import InputError, ParseError
from makespan.host.text_file import read_bytes, refuse_utf16
from makespan.kernels.ptx.module import Declaration, Directive, Item, PtxKernel, PtxModule

if TYPE_CHECKING:
    from lark import Lark
    from lark.exceptions import UnexpectedInput

MAX_BYTES = 64 * 2**20
_FILE = re.compile(r'\.file (\d{1,9}) "((?:[^"\\]|\\.)*)"')
_WORD = re.compile(r"@?[A-Za-z0-9_$%.]+|\S")
_MEANING = {
    "LABEL": "a label",
    "GUARD": "an instruction",
    "OPCODE": "an instruction",
    "LINKAGE": "a declaration",
    "SPACE": "a declaration",
    "TARGETS": "a directive",
    "DOTTED": "a type or attribute such as .u32",
    "NAME": "a name",
    "NUMBER": "a number",
    "OPERATOR": "an operator",
    "STRING": "a quoted text",
    "$END": "the end of the file",
}
_UNSAID = {"NOTE", "PREFIX", "COMMENT", "BLOCK_COMMENT", "OLD_LINE", "BLANK"}


def read(path: Path) -> PtxModule:
    """Read a PTX file.

    Raises:
        ParseError: a place that is not understood.
        InputError: a file that cannot be read, is empty, binary or larger than 64 MiB.
    """
    return parse(decode(read_bytes(path, "PTX file", MAX_BYTES), str(path)), str(path))


def decode(data: bytes, file: str) -> str:
    """Return the text of PTX bytes; one trailing NUL, as compilers leave it, is dropped.

    Old compilers copied source lines into comments, so bytes that are not UTF-8 are taken as Latin-1.

    Raises:
        InputError: empty, binary or larger than 64 MiB.
    """
    if len(data) > MAX_BYTES:
        raise InputError(f"{file}: larger than the limit of {MAX_BYTES // 2**20} MiB; split the module")
    refuse_utf16(data, "PTX file", file)
    data = data.removesuffix(b"\0")
    if b"\0" in data:
        raise InputError(f"{file}: this is a binary file, not PTX text; for a cubin, use cuobjdump -ptx")
    if not data.strip():
        raise InputError(f"{file}: the file is empty; expected PTX text")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError:
        return data.decode("latin-1")


def parse(text: str, file: str = "<text>") -> PtxModule:
    """Parse PTX text; `file` is the name that messages show.

    Raises:
        ParseError: a place that is not understood.
    """
    from lark.exceptions import UnexpectedInput

    from makespan.kernels.ptx.builder import GrammarLimitError, lark  # lark is loaded only when text is parsed

    try:
        items: tuple[Item, ...] = lark().parse(text)  # type: ignore[assignment]
    except GrammarLimitError as error:
        raise ParseError.at(file, text, error.position, str(error)) from None
    except UnexpectedInput as error:
        raise _syntax_error(error, text, file, lark()) from None
    return PtxModule(file, _add_context(items, file), text=text)


def _add_context(items: tuple[Item, ...], file: str) -> tuple[Item, ...]:
    texts = (item.text for item in items if isinstance(item, Directive))
    files = tuple((int(m[1]), m[2]) for m in map(_FILE.match, texts) if m)
    variables = tuple(item for item in items if isinstance(item, Declaration))
    functions = tuple(item for item in items if isinstance(item, PtxKernel) and not item.is_entry)
    return tuple(
        replace(item, file=file, files=files, variables=variables, functions=functions)
        if isinstance(item, PtxKernel)
        else item
        for item in items
    )


def _syntax_error(error: "UnexpectedInput", text: str, file: str, grammar: "Lark") -> ParseError:
    token = getattr(error, "token", None)
    at_end = token is not None and token.type == "$END"
    position = len(text.rstrip()) if at_end else error.pos_in_stream or 0
    word = _WORD.match(text, position)
    got = "the end of the file" if at_end or word is None else repr(word[0][:40])
    for mark, what in (("/*", "comment"), ('"', "quoted text")):
        if text.startswith(mark, position):
            got += f", a {what} that is not closed"
    accepted = getattr(error, "interactive_parser").accepts()  # noqa: B009 - lark sets it on every such error
    return ParseError.at(file, text, position, f"expected {_phrases(accepted, grammar)}, got {got}")


def _phrases(terminals: Iterable[str], grammar: "Lark") -> str:
    phrases = sorted({_phrase(name, grammar) for name in terminals if name not in _UNSAID})
    return " or ".join(filter(None, [", ".join(phrases[:-1]), *phrases[-1:]]))


def _phrase(terminal: str, grammar: "Lark") -> str:
    if terminal in _MEANING:
        return _MEANING[terminal]
    literal = str(grammar.get_terminal(terminal).pattern.value)
    return f"'{literal.replace(chr(92), '')}'"
