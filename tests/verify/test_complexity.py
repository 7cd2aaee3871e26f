"""No function of the checker is longer than a stranger can follow: its branches and comprehensions are counted."""

import ast
from pathlib import Path

from makespan import verify

MOST = 12


def complexity(function: ast.AST) -> int:
    """One, and one more for each branch, loop, clause of a comprehension, further operand of and or or, and lambda."""
    return 1 + sum(map(_points, ast.walk(function)))


def _points(node: ast.AST) -> int:
    match node:
        case ast.For() | ast.While():
            return 1 + bool(node.orelse)
        case ast.comprehension():
            return 1 + len(node.ifs)
        case ast.BoolOp():
            return len(node.values) - 1
        case ast.If() | ast.IfExp() | ast.ExceptHandler() | ast.Assert() | ast.match_case() | ast.Lambda():
            return 1
    return 0


def test_no_function_is_too_complex() -> None:
    folder = Path(verify.__file__).parent
    found = {
        f"{path.name}: {node.name}": complexity(node)
        for path in sorted(folder.glob("*.py"))
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.FunctionDef)
    }
    assert len(found) > 300
    assert {name: points for name, points in found.items() if points > MOST} == {}


def test_everything_that_branches_counts() -> None:
    code = "for b in a:\n  if b and (lambda: b)() or 1:\n   pass\n"
    assert complexity(ast.parse(code)) == 1 + 1 + 1 + 2 + 1
    assert complexity(ast.parse("[c if c else d for c in a if c for d in a]")) == 1 + 1 + 2 + 1
