"""Classes of global reads, by what the index does over the whole iteration space, and the values that it can take."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from itertools import product
from typing import NamedTuple

from makespan.estimates.opencl_cost_table import expression as ex


class IntRange(NamedTuple):
    """The values from `least` to `most`; both can lie outside 32 bits, where the device would wrap around."""

    least: int
    most: int


def values(expression: ex.IterationExpression) -> IntRange:
    """Return the values of an expression of type int; an element that is read can be anything."""
    match expression:
        case ex.Literal(value):
            return IntRange(int(value), int(value))
        case ex.Variable():
            return IntRange(0, expression.extent - 1)
        case ex.Read():
            return IntRange(ex.INT_LEAST, ex.INT_MOST)
        case ex.Negation():
            inner = values(expression.operand)
            return IntRange(-inner.most, -inner.least)
        case ex.BinaryOperation():
            return _combined_ranges(expression.operator, values(expression.left), values(expression.right))


def overflows(expression: ex.IterationExpression) -> bool:
    """Return whether an integer in it may leave 32 bits."""
    integers = (node for node in ex.walk(expression) if node.type is ex.Type.INT)
    return any(not ex.INT_LEAST <= bound <= ex.INT_MOST for node in integers for bound in values(node))


def _combined_ranges(operator: str, left: IntRange, right: IntRange) -> IntRange:
    if operator == "+":
        return IntRange(left.least + right.least, left.most + right.most)
    if operator == "-":
        return IntRange(left.least - right.most, left.most - right.least)
    if operator == "*":
        corners = [first * second for first, second in product(left, right)]  # a product is extreme at corners
        return IntRange(min(corners), max(corners))
    return _quotient(left, right) if operator == "/" else _remainder(left, right)


def _quotient(left: IntRange, right: IntRange) -> IntRange:
    """Return the range of a division that truncates towards zero; a divisor of zero has no meaning and is left out."""
    divisors = [divisor for divisor in (right.least, -1, 1, right.most) if divisor and right.least <= divisor]
    divisors = [divisor for divisor in divisors if divisor <= right.most] or [1]
    corners = [
        abs(dividend) // abs(divisor) * (1 if (dividend < 0) == (divisor < 0) else -1)
        for dividend, divisor in product(left, divisors)
    ]
    if left.least <= 0 <= left.most:  # a dividend of 0 gives 0
        corners.append(0)
    return IntRange(min(corners), max(corners))


def _remainder(left: IntRange, right: IntRange) -> IntRange:
    """Return the range of a remainder, which has the sign of the dividend and is smaller than the divisor."""
    below = max(abs(right.least), abs(right.most)) - 1  # the largest absolute value of a remainder
    if left.least >= 0 and right.least > left.most:
        return left
    return IntRange(max(-below, min(left.least, 0)), min(below, max(left.most, 0)))


class AccessKind(StrEnum):
    """The kinds of memory access, by their names in tables and reports."""

    PRIVATE = "PRIVATE_ACCESS"
    LOCAL = "LOCAL_ACCESS"
    CONSTANT = "CONSTANT_GLOBAL_READ"
    INTERVAL = "CACHED_GLOBAL_READ"
    CONTINUOUS = "GLOBAL_READ"
    COMPLEX = "COMPLEX_GLOBAL_READ"
    UNCLASSIFIED = "UNCLASSIFIED_GLOBAL_READ"
    WRITE = "GLOBAL_WRITE"


@dataclass(frozen=True, slots=True)
class Affine:
    """An affine form, `offset` + sum of coefficient times variable; a missing coefficient is 0."""

    offset: int
    coefficients: Mapping[ex.Variable, int]

    def __add__(self, other: "Affine") -> "Affine":
        both = {*self.coefficients, *other.coefficients}
        summed = {v: self.coefficients.get(v, 0) + other.coefficients.get(v, 0) for v in both}
        return Affine(self.offset + other.offset, {v: factor for v, factor in summed.items() if factor})

    def __mul__(self, factor: int) -> "Affine":
        scaled = {v: factor * coefficient for v, coefficient in self.coefficients.items() if factor}
        return Affine(self.offset * factor, scaled)


def classify(read: ex.Read, iteration: ex.Iteration, interval_bytes: int) -> AccessKind:
    """Return the class of a read; the first of constant, interval, continuous and complex that applies.

    - constant: the index does not depend on the iteration variables.
    - interval: all addresses lie within `interval_bytes`.
    - continuous: the linear index is the linear number of the work-item, plus a constant.
    - complex: everything else, such as transposed reads and those whose index was read.
    """
    index = linear_index(read)
    affine = affine_form(index)
    if not any(isinstance(node, ex.Variable) for node in ex.walk(index)) or (affine and not affine.coefficients):
        return AccessKind.CONSTANT
    if span_bytes(read) <= interval_bytes:
        return AccessKind.INTERVAL
    steps = zip(iteration.variables, iteration.array.shape, iteration.array.strides, strict=True)
    counting = {name: stride for name, extent, stride in steps if extent > 1}  # an extent of 1 moves nothing
    if affine is not None and {v.name: c for v, c in affine.coefficients.items() if v.extent > 1} == counting:
        return AccessKind.CONTINUOUS
    return AccessKind.COMPLEX


def span_bytes(read: ex.Read) -> int:
    """Return at least the bytes from the first to the last that the read can touch."""
    least, most = index_range(read)
    return (most - least + 1) * ex.ELEMENT_BYTES


def index_range(read: ex.Read) -> IntRange:
    """Return the linear indices that the read can have, or more."""
    return values(linear_index(read))


def outside_reads(iteration: ex.Iteration) -> Iterator[str]:
    """Yield a message for each read that may lie outside of its array; the language does not check them."""
    for read in {node: None for node in ex.walk(iteration.body) if isinstance(node, ex.Read)}:
        least, most = index_range(read)
        is_known = not any(isinstance(node, ex.Read) for subscript in read.subscripts for node in ex.walk(subscript))
        if is_known and (least < 0 or most >= read.array.elements):
            name, last = read.array.name, read.array.elements - 1
            yield f"a read of {name} may reach elements {least}..{most}, and it has 0..{last}"


def linear_index(read: ex.Read) -> ex.IterationExpression:
    """Return the index into the array as it lies in memory, in elements, simplified."""
    index: ex.IterationExpression = ex.literal(0)
    for subscript, stride in zip(read.subscripts, read.array.strides, strict=True):
        index = ex.operation("+", index, ex.operation("*", simplify(subscript), ex.literal(stride)))
    return index


def simplify(expression: ex.IterationExpression) -> ex.IterationExpression:
    """Return the expression without `v % c` where v is within 0..c-1."""
    match expression:
        case ex.BinaryOperation():
            left, right = simplify(expression.left), simplify(expression.right)
            if expression.operator == "%" and isinstance(right, ex.Literal):
                least, most = values(left)
                if least >= 0 and most < int(right.value):
                    return left
            return ex.operation(expression.operator, left, right)
        case ex.Negation():
            return ex.Negation(simplify(expression.operand))
        case _:
            return expression


def affine_form(expression: ex.IterationExpression) -> Affine | None:
    """Return the expression as an affine one of the variables; None where it is not seen to be one."""
    match expression:
        case ex.Literal(value):
            return Affine(int(value), {})
        case ex.Variable():
            return Affine(0, {expression: 1})
        case ex.Negation():
            inner = affine_form(expression.operand)
            return inner * -1 if inner else None
        case ex.BinaryOperation():
            left, right = affine_form(expression.left), affine_form(expression.right)
            return _combine(expression.operator, left, right) if left and right else None
        case _:
            return None


def _combine(operator: str, left: Affine, right: Affine) -> Affine | None:
    if operator == "+":
        return left + right
    if operator == "-":
        return left + right * -1
    if operator == "*" and not right.coefficients:
        return left * right.offset
    if operator == "*" and not left.coefficients:
        return right * left.offset
    return None
