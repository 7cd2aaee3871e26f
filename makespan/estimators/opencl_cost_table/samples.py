"""Random domain iterations, to see how good predictions are."""

import random
import typing
from collections.abc import Iterator
from dataclasses import dataclass

from makespan.errors import InputError
from makespan.estimators.opencl_cost_table.expression import (
    Array,
    Expression,
    Iteration,
    Literal,
    Read,
    Type,
    Variable,
    literal,
    operation,
)
from makespan.estimators.opencl_cost_table.ranges import overflows

DEPTH, MAX_DEPTH = 3, 6
SAMPLES, MAX_SAMPLES = 1000, 100_000
OPERATORS = {"random": "+-*/", "realistic": "+-*"}
Set = typing.Literal["random", "realistic"]
_LEAVES = {"own element": 50, "constant read": 15, "transposed read": 10, "literal": 15, "variable": 10}
"""In percent."""
_GROWTH = 0.5  # how often an operand is an operation again
_LARGEST_LITERAL = 1000.0


def iterations(array: Array, *, kind: Set, seed: int, depth: int = DEPTH) -> Iterator[Iteration]:
    """Random iterations over an array of floats with two dimensions, without end; equal seeds give equal ones.

    Leaves are the own element (50 %), an element that is the same for all (15 %), the transposed element (10 %), a
    literal (15 %) and an iteration variable (10 %). Where an integer would be divided by another, the divisor is a
    variable plus 1, so that none divides by zero. Expressions whose integers may leave 32 bits, and mere constants, are
    drawn again.

    Args:
        kind: `random` has the operators + - * /, `realistic` no division.
    """
    if array.type is not Type.FLOAT or len(array.shape) != 2 or min(array.shape) < 2:
        raise InputError(f"samples read a float array of two dimensions of at least 2, not {array.name}: {array.shape}")
    if not 1 <= depth <= MAX_DEPTH:
        raise InputError(f"--depth {depth}: from 1 to {MAX_DEPTH}")
    draw = _Draw(array, OPERATORS[kind], random.Random(f"{kind} {seed}"))  # noqa: S311 - no secret
    while True:
        try:
            body = draw.tree(depth, is_root=True)
        except InputError:  # constants that divide by zero or leave 32 bits
            continue
        if not isinstance(body, Literal) and not overflows(body):
            yield Iteration(array, ("x", "y"), body)


@dataclass(frozen=True, slots=True)
class _Draw:
    array: Array
    operators: str
    random: random.Random

    def tree(self, depth: int, *, is_root: bool = False) -> Expression:
        if depth == 0 or not (is_root or self.random.random() < _GROWTH):
            return self._leaf()
        sign = self.random.choice(self.operators)
        left, right = self.tree(depth - 1), self.tree(depth - 1)
        if sign == "/" and left.type is right.type is Type.INT:
            right = operation("+", self._variable(), literal(1))
        return operation(sign, left, right)

    def _leaf(self) -> Expression:
        match self.random.choices(list(_LEAVES), list(_LEAVES.values()))[0]:
            case "own element":
                return Read(self.array, tuple(self._variables()))
            case "constant read":
                return Read(self.array, tuple(operation("%", literal(1), literal(s)) for s in self.array.shape))
            case "transposed read":
                pairs = zip(reversed(self._variables()), self.array.shape, strict=True)
                return Read(self.array, tuple(operation("%", variable, literal(s)) for variable, s in pairs))
            case "literal":
                return literal(self.random.uniform(-_LARGEST_LITERAL, _LARGEST_LITERAL))
            case _:
                return self._variable()

    def _variable(self) -> Variable:
        return self.random.choice(self._variables())

    def _variables(self) -> list[Variable]:
        return [
            Variable(name, at, extent) for at, (name, extent) in enumerate(zip("xy", self.array.shape, strict=True))
        ]
