r"""The text of domain iterations, such as `matrix.\(x, y){ x + matrix[x, y] }`, and of functions, such as `g(x) = 2*x`.

Names are resolved, constants folded, and calls inlined by reading the tree of the function with its arguments in the
place of its parameters. lark is imported when the first text is read.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from itertools import count
from typing import TYPE_CHECKING, Any, NamedTuple

from makespan.estimates.opencl_cost_table.expression import (
    Array,
    Expression,
    Iteration,
    IterationVariable,
    literal,
    operation,
)
from makespan.host.errors import InputError, ParseError

if TYPE_CHECKING:
    from lark import Lark, Tree

MAX_TEXT = 16 << 10
MAX_NESTING = 150  # of operations and calls: reading them recurses
MAX_CALLS = 10_000  # that are inlined: functions that call functions twice each grow exponentially
_MAX_DIGITS = 40
_WORDS = """
    auto bool break case char complex const constant continue default do double else enum event_t extern float for
    global goto half if image1d_t image2d_t image3d_t imaginary inline int kernel local long main private quad
    register restrict return sampler_t short signed sizeof size_t static struct switch typedef uchar uint uintptr_t
    ulong union unsigned ushort void volatile while iteration
"""
_RESERVED = frozenset(_WORDS.split())  # no compiler would take the kernel of an iteration with such names
_GRAMMAR = r"""
    iteration: NAME "." "\\" "(" names ")" "{" _sum "}"
    definition: NAME "(" names ")" "=" _sum
    names: NAME ("," NAME)*
    _sum: _product | binary_sum
    binary_sum: _sum /[-+]/ _product -> binary
    _product: _signed | binary_product
    binary_product: _product /[*\/%]/ _signed -> binary
    _signed: _atom | negative
    negative: /-/ _signed
    _atom: number | name | read | call | "(" _sum ")"
    number: NUMBER
    name: NAME
    read: NAME "[" _list "]"
    call: NAME "(" _list ")"
    _list: _sum ("," _sum)*
    NAME: /[A-Za-z_][A-Za-z0-9_]*/
    NUMBER: /([0-9]+\.[0-9]*|\.[0-9]+)([eE][-+]?[0-9]+)?[fF]?|[0-9]+[eE][-+]?[0-9]+[fF]?|[0-9]+[fF]?/
    %ignore /\s+/
"""


def iteration(
    text: str, *, arrays: Iterable[Array], constants: Mapping[str, int] | None = None, functions: Iterable[str] = ()
) -> Iteration:
    r"""Return the domain iteration in `text`, such as `m.\(x,y){ g(x) + m[x,y] }`.

    Args:
        constants: named integers.
        functions: definitions such as `g(x)=2*x`; they may call each other without recursion.

    Raises:
        ParseError: a place in a text that means nothing: unknown or ambiguous names, wrong numbers of subscripts or
            arguments, `%` on floats, a division by a constant zero, literals that do not fit in 32 bits.
        InputError: two arrays, constants or functions of one name, or a text that is too long.
    """
    defined = [_definition(each) for each in functions]
    names: dict[str, Array | int | _Definition] = {}
    named: list[tuple[str, Array | int | _Definition]] = [(array.name, array) for array in arrays]
    named += [*(constants or {}).items(), *defined]
    for name, meaning in named:
        if name in names:
            raise InputError(f"{name} is declared twice: arrays, constants and functions need different names")
        if _is_reserved(name):
            raise InputError(f"{name} is a word of OpenCL C; choose another name")
        names[name] = meaning
    reader = _Reader(names)
    for name, each in defined:  # a function without a caller is checked, too
        probes = dict.fromkeys(each.parameters, Expression(IterationVariable("0", 1)))
        reader.read(each.body, _Scope(each.source, probes, (name,)))
    source = _SourceText(text, "--expr")
    over, variables, body = source.parts("iteration")
    array, given = names.get(over), [str(name) for name in variables.children]
    if not isinstance(array, Array):
        raise source.error(over, _undeclared_message(over))
    if len(given) != len(array.shape):
        raise source.error(
            over, f"array {over} has {len(array.shape)} dimensions, and the iteration {len(given)} variables"
        )
    for token in variables.children:
        if token in names or given.count(token) > 1 or _is_reserved(token):
            raise source.error(token, f"variable {token} has the name of something else")
    pairs = zip(given, array.shape, strict=True)
    scope = {name: Expression(IterationVariable(name, extent)) for name, extent in pairs}
    return Iteration(array, tuple(given), reader.read(body, _Scope(source, scope)))


@cache
def _lark() -> "Lark":
    from lark import Lark

    return Lark(_GRAMMAR, parser="lalr", start=["iteration", "definition"], propagate_positions=True)


class _SourceText(NamedTuple):
    """A text; `where` is for messages."""

    text: str
    where: str

    def parts(self, start: str) -> "list[Any]":
        from lark.exceptions import UnexpectedInput

        if len(self.text) > MAX_TEXT:
            raise InputError(f"{self.where}: longer than {MAX_TEXT} characters; split the expression")
        try:
            return list(_lark().parse(self.text, start=start).children)
        except UnexpectedInput as error:
            token = getattr(error, "token", None)
            at_end = token is not None and token.type == "$END"
            at = len(self.text.rstrip()) if at_end else error.pos_in_stream or 0
            got = "the end of the text" if at_end else repr(str(token or self.text[at])[:40])
            raise ParseError.at(self.where, self.text, at, f"{got} cannot stand here") from None

    def error(self, place: Any, message: str) -> ParseError:
        """Return the error about a token or a tree."""
        at = place.start_pos if hasattr(place, "start_pos") else place.meta.start_pos
        return ParseError.at(self.where, self.text, at, message)


class _Definition(NamedTuple):
    """A function: its parameters, and the tree of its body."""

    parameters: Sequence[str]
    body: "Tree[Any]"
    source: _SourceText


def _definition(text: str) -> tuple[str, _Definition]:
    source = _SourceText(text, "--func")
    name, parameters, body = source.parts("definition")
    names = [str(parameter) for parameter in parameters.children]
    for parameter in parameters.children:
        if names.count(parameter) > 1:
            raise source.error(parameter, f"{parameter} is named twice")
    return str(name), _Definition(names, body, source)


def _is_reserved(name: str) -> bool:
    return name in _RESERVED or name.startswith("__")


def _undeclared_message(name: str) -> str:
    return f"array {name} is not declared; give --array {name}:float:SHAPE"


class _Scope(NamedTuple):
    """The names that have a meaning in a text alone, and the functions that are being inlined there."""

    source: _SourceText
    variables: Mapping[str, Expression]
    inlined: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class _Reader:
    """A reader of trees, with the names that have a meaning everywhere."""

    names: Mapping[str, Array | int | _Definition]
    calls: Iterator[int] = field(default_factory=lambda: count(1))

    def read(self, tree: "Tree[Any]", scope: _Scope, depth: int = 0) -> Expression:
        """Return the expression of a tree, and refuse at its place what cannot be built."""
        if depth > MAX_NESTING:
            raise scope.source.error(tree, f"nested more than {MAX_NESTING} deep; split the expression")
        children: list[Any] = list(tree.children)
        # a name before a list, or the sign of an operation, is a token and no part
        parts = [self.read(child, scope, depth + 1) for child in children if hasattr(child, "data")]
        try:
            match tree.data:
                case "binary":
                    return operation(children[1], *parts)
                case "negative":
                    return operation("-", *parts)
                case "number":
                    return literal(_number(children[0]))
                case "name":
                    return self._named(children[0], scope)
                case "read":
                    array = self.names.get(children[0])
                    if not isinstance(array, Array):
                        raise InputError(_undeclared_message(children[0]))
                    return Expression(array, tuple(parts))
                case _:
                    return self._called(children[0], parts, scope, depth)
        except ParseError:  # of a place further inside
            raise
        except InputError as error:
            raise scope.source.error(children[1] if tree.data == "binary" else tree, str(error)) from None

    def _named(self, name: str, scope: _Scope) -> Expression:
        meaning = self.names.get(name)
        if name in scope.variables:
            return scope.variables[name]
        if isinstance(meaning, int):
            return literal(meaning)
        known = ", ".join([*scope.variables, *(name for name, each in self.names.items() if isinstance(each, int))])
        hint = (
            "an array needs subscripts" if isinstance(meaning, Array) else f"known: {known}; or give --const {name}=N"
        )
        raise InputError(f"unknown variable {name}; {hint}")

    def _called(self, name: str, arguments: list[Expression], scope: _Scope, depth: int) -> Expression:
        called = self.names.get(name)
        if not isinstance(called, _Definition):
            raise InputError(f"function {name} is not defined; give --func '{name}(...)=...'")
        if name in scope.inlined:
            raise InputError(f"function {name} calls itself; calls are inlined")
        if next(self.calls) > MAX_CALLS:
            raise InputError(f"more than {MAX_CALLS} calls to inline; write fewer")
        wanted, given = len(called.parameters), len(arguments)
        if given != wanted:
            raise InputError(f"function {name} takes {wanted} arguments, and {given} are given")
        inside = dict(zip(called.parameters, arguments, strict=True))
        return self.read(called.body, _Scope(called.source, inside, (*scope.inlined, name)), depth + 1)


def _number(text: str) -> float:
    if not text.isdigit():
        return float(text.rstrip("fF"))
    if len(text) > _MAX_DIGITS:
        raise InputError(f"an integer of {len(text)} digits does not fit in 32 bits")
    return int(text)
