"""What values an integer expression can take over an iteration, by interval arithmetic: never too few."""

from itertools import product
from typing import NamedTuple

from makespan.estimators.opencl_cost_table.expression import (
    INT_LEAST,
    INT_MOST,
    Expression,
    Literal,
    Negation,
    Operation,
    Read,
    Type,
    Variable,
    walk,
)


class Range(NamedTuple):
    """All values from `least` to `most`; both can lie outside 32 bits, where the device would wrap around."""

    least: int
    most: int


def values(expression: Expression) -> Range:
    """The values of an expression of type int; an element that is read can be anything."""
    match expression:
        case Literal(value):
            return Range(int(value), int(value))
        case Variable():
            return Range(0, expression.extent - 1)
        case Read():
            return Range(INT_LEAST, INT_MOST)
        case Negation():
            inner = values(expression.operand)
            return Range(-inner.most, -inner.least)
        case Operation():
            return _combined(expression.operator, values(expression.left), values(expression.right))


def overflows(expression: Expression) -> bool:
    """Whether an integer in it may leave 32 bits."""
    integers = (node for node in walk(expression) if node.type is Type.INT)
    return any(not INT_LEAST <= bound <= INT_MOST for node in integers for bound in values(node))


def _combined(operator: str, left: Range, right: Range) -> Range:
    if operator == "+":
        return Range(left.least + right.least, left.most + right.most)
    if operator == "-":
        return Range(left.least - right.most, left.most - right.least)
    if operator == "*":
        corners = [first * second for first, second in product(left, right)]
        return Range(min(corners), max(corners))
    return _quotient(left, right) if operator == "/" else _remainder(left, right)


def _quotient(left: Range, right: Range) -> Range:
    """Division cuts towards zero; by zero it means nothing, so the divisor is not zero."""
    divisors = [divisor for divisor in (right.least, -1, 1, right.most) if divisor and right.least <= divisor]
    divisors = [divisor for divisor in divisors if divisor <= right.most] or [1]
    corners = [
        abs(dividend) // abs(divisor) * (1 if (dividend < 0) == (divisor < 0) else -1)
        for dividend, divisor in product(left, divisors)
    ]
    if left.least <= 0 <= left.most:
        corners.append(0)
    return Range(min(corners), max(corners))


def _remainder(left: Range, right: Range) -> Range:
    """Has the sign of the dividend and is smaller than the divisor."""
    below = max(abs(right.least), abs(right.most)) - 1
    if left.least >= 0 and right.least > left.most:
        return left
    return Range(max(-below, min(left.least, 0)), min(below, max(left.most, 0)))
