"""Small changes of a program, one at a time: what a mutant is."""

import ast
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

_OPERATORS: dict[type[ast.AST], type[ast.AST]] = {
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot, ast.IsNot: ast.Is, ast.In: ast.NotIn, ast.NotIn: ast.In, ast.And: ast.Or, ast.Or: ast.And,
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.FloorDiv, ast.FloorDiv: ast.Mult, ast.BitAnd: ast.BitOr,
    ast.BitOr: ast.BitAnd, ast.LShift: ast.RShift, ast.RShift: ast.LShift, ast.Break: ast.Continue,
    ast.Continue: ast.Break,
}  # fmt: skip
_NAMES = {"min": "max", "max": "min", "any": "all", "all": "any", "floor": "ceil", "ceil": "floor"}
_ATTRIBUTES = _NAMES | {
    "least": "most", "most": "least", "lower": "upper", "upper": "lower", "shortest": "longest", "longest": "shortest",
}  # fmt: skip
LARGE = 1000
"""From here on a number is how much somebody may do, and one more or less changes nothing."""
_SYMMETRIC = {"min", "max", "isinstance", "gcd", "lcm"}
_WORDS = ast.Raise | ast.Assert | ast.JoinedStr | ast.Import | ast.ImportFrom
"""What is in them is a message, or no statement of the program; a `raise` can only be left out."""
_ANNOTATIONS = {"annotation", "returns", "decorator_list", "bases", "keywords", "type_params"}
_ALWAYS_PLAIN = {"__repr__", "__str__"}


@dataclass(frozen=True)
class Mutant:
    """One change; `apply` makes it, in the tree that all mutants of the file share."""

    file: str
    first: int
    last: int
    in_function: bool
    operator: str
    before: str
    after: str
    number: int
    tree: ast.Module = field(repr=False, compare=False)
    apply: Callable[[], None] = field(repr=False, compare=False)

    def __str__(self) -> str:
        return f"{self.file}:{self.last} {self.operator} #{self.number}: {self.before} -> {self.after}"


def mutants(file: str) -> list[Mutant]:
    """Every mutant of a module, in the order of its text."""
    tree = ast.parse(Path(file).read_text())
    found = _below(tree, (1, 1), in_function=False)
    return [
        Mutant(file, *lines, inside, operator, before, after, number, tree, apply)
        for number, (lines, inside, operator, before, after, apply) in enumerate(found)
    ]


_Found = tuple[tuple[int, int], bool, str, str, str, Callable[[], None]]


def _below(node: ast.AST, lines: tuple[int, int], *, in_function: bool) -> Iterator[_Found]:
    """The changes of what is in a node; `lines` go from the beginning of its statement to its own end."""
    for name, value in ast.iter_fields(node):
        if name in _ANNOTATIONS and isinstance(node, ast.stmt | ast.arg):
            continue
        for at, child in enumerate(value if isinstance(value, list) else [value]):
            if not isinstance(child, ast.AST) or _is_no_answer(child):
                continue
            put = partial(value.__setitem__, at) if isinstance(value, list) else partial(setattr, node, name)
            is_inside = in_function and not isinstance(child, ast.arguments)  # defaults belong to the import
            reach = _lines(child, lines)
            for operator, changed in _changes(child, node, name):
                shown = child if isinstance(child, ast.expr | ast.stmt) else node
                before = _text(shown)
                put(changed)
                after = _text(changed if shown is child else node)
                put(child)
                yield reach, is_inside, operator, before, after, partial(put, changed)
            is_function = isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
            if not isinstance(child, _WORDS) and getattr(child, "name", None) not in _ALWAYS_PLAIN:
                yield from _below(child, reach, in_function=is_inside or is_function)


def _is_no_answer(node: ast.AST) -> bool:
    """Whether it counts work, or demands what holds: nothing that is said depends on it."""
    match node:
        case ast.Expr(ast.Call(ast.Attribute(attr="spend"))) | ast.keyword(arg="strict"):
            return True
    return False


def _lines(node: ast.AST, around: tuple[int, int]) -> tuple[int, int]:
    if isinstance(node, ast.stmt):
        body = getattr(node, "body", None)
        return node.lineno, node.lineno if body else node.end_lineno or node.lineno
    return around[0], max(around[0], getattr(node, "end_lineno", around[1]))


def _text(node: ast.AST) -> str:
    return ast.unparse(ast.fix_missing_locations(node)).split("\n", 1)[0]


def _changes(node: ast.AST, parent: ast.AST, name: str) -> Iterator[tuple[str, ast.AST]]:
    """What stands in place of a node, with the name of the operator."""
    if (other := _OPERATORS.get(type(node))) is not None:
        yield type(node).__name__, other()
    match node:
        case ast.Constant(value=bool(value)):
            yield "bool", ast.Constant(not value)
        case ast.Constant(value=int(value)) if abs(value) < LARGE:
            yield from (("constant", ast.Constant(value + step)) for step in (1, -1))
        case ast.Name(id=called, ctx=context) if called in _NAMES:
            yield called, ast.Name(_NAMES[called], context)
        case ast.Attribute(value=value, attr=called, ctx=context) if called in _ATTRIBUTES:
            yield called, ast.Attribute(value, _ATTRIBUTES[called], context)
        case ast.UnaryOp(ast.USub(), ast.BinOp(ast.UnaryOp(ast.USub(), left), ast.FloorDiv(), right)):
            yield "ceiling", ast.BinOp(left, ast.FloorDiv(), right)
        case ast.UnaryOp(ast.USub() | ast.Not() as sign, operand):
            yield type(sign).__name__, operand
        case ast.BoolOp(op, values):
            for kept in _but_one(values):
                yield "operand", kept[0] if len(kept) == 1 else ast.BoolOp(op, kept)
        case ast.BinOp(left, ast.Add() | ast.Mult() | ast.BitOr() | ast.BitAnd(), right):
            yield from (("operand", left), ("operand", right))
        case ast.BinOp(left, ast.Sub() | ast.Mod()):
            yield "operand", left
        case ast.Call(ast.Name("min" | "max") as func, [_, _, *_] as values, keywords):
            for kept in _but_one(values):
                is_sole = len(kept) == 1 and not isinstance(kept[0], ast.Starred)
                yield "operand", kept[0] if is_sole else ast.Call(func, kept, keywords)
        case ast.IfExp(test, body, otherwise):
            yield "branches", ast.IfExp(test, otherwise, body)
        case ast.Call(func, [one, two], []) if _is_ordered(func, one, two):
            yield "arguments", ast.Call(func, [two, one], [])
        case ast.If(test, body, otherwise):
            yield "branches", ast.If(ast.UnaryOp(ast.Not(), test), body, otherwise)
            if not otherwise:
                yield "statement", ast.Pass()
        case ast.Raise() | ast.AugAssign() | ast.Delete():
            yield "statement", ast.Pass()
        case ast.Assign(targets=[ast.Subscript() | ast.Attribute()]):
            yield "statement", ast.Pass()
        case ast.Expr(value) if not isinstance(value, ast.Constant):
            yield "statement", ast.Pass()
        case ast.Return(value) if value is not None and not isinstance(value, ast.Constant):
            yield "return", ast.Return(ast.Constant(None))
    if isinstance(parent, ast.comprehension) and name == "ifs":
        yield "filter", ast.Constant(value=True)


def _but_one(values: list[ast.expr]) -> Iterator[list[ast.expr]]:
    return ([*values[:at], *values[at + 1 :]] for at in range(len(values)))


def _is_ordered(func: ast.expr, *arguments: ast.expr) -> bool:
    return not (
        any(isinstance(argument, ast.Starred) for argument in arguments)
        or (isinstance(func, ast.Name) and func.id in _SYMMETRIC)
    )
