"""Classes of global reads, by what the index does over the whole iteration space."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum

from makespan.estimators.opencl_cost_table.expression import (
    ELEMENT_BYTES,
    Expression,
    Iteration,
    Literal,
    Negation,
    Operation,
    Read,
    Variable,
    literal,
    operation,
    walk,
)
from makespan.estimators.opencl_cost_table.ranges import Range, values


class Access(StrEnum):
    """Kinds of memory access, by their names in tables and reports."""

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
    """`offset` + sum of coefficient times variable; a coefficient that is not there is 0."""

    offset: int
    coefficients: Mapping[Variable, int]

    def __add__(self, other: "Affine") -> "Affine":
        both = {*self.coefficients, *other.coefficients}
        summed = {v: self.coefficients.get(v, 0) + other.coefficients.get(v, 0) for v in both}
        return Affine(self.offset + other.offset, {v: factor for v, factor in summed.items() if factor})

    def __mul__(self, factor: int) -> "Affine":
        scaled = {v: factor * coefficient for v, coefficient in self.coefficients.items() if factor}
        return Affine(self.offset * factor, scaled)


def classify(read: Read, iteration: Iteration, interval_bytes: int) -> Access:
    """The class of a read; the first of constant, interval, continuous and complex that applies.

    - constant: the index does not depend on the iteration variables.
    - interval: all addresses lie within `interval_bytes`.
    - continuous: the linear index is the linear number of the work-item, plus a constant.
    - complex: everything else, such as transposed reads and those whose index was read.
    """
    index = linear_index(read)
    affine = affine_form(index)
    if not any(isinstance(node, Variable) for node in walk(index)) or (affine and not affine.coefficients):
        return Access.CONSTANT
    if span_bytes(read) <= interval_bytes:
        return Access.INTERVAL
    steps = zip(iteration.variables, iteration.array.shape, iteration.array.strides, strict=True)
    counting = {name: stride for name, extent, stride in steps if extent > 1}
    if affine is not None and {v.name: c for v, c in affine.coefficients.items() if v.extent > 1} == counting:
        return Access.CONTINUOUS
    return Access.COMPLEX


def span_bytes(read: Read) -> int:
    """From the first byte that the read can touch to the last, or more."""
    least, most = index_range(read)
    return (most - least + 1) * ELEMENT_BYTES


def index_range(read: Read) -> Range:
    """The linear indices that the read can have, or more."""
    return values(linear_index(read))


def outside_reads(iteration: Iteration) -> Iterator[str]:
    """The reads that may lie outside of their array, in words; the language does not check them."""
    for read in {node: None for node in walk(iteration.body) if isinstance(node, Read)}:
        least, most = index_range(read)
        is_known = not any(isinstance(node, Read) for subscript in read.subscripts for node in walk(subscript))
        if is_known and (least < 0 or most >= read.array.elements):
            name, last = read.array.name, read.array.elements - 1
            yield f"a read of {name} may reach elements {least}..{most}, and it has 0..{last}"


def linear_index(read: Read) -> Expression:
    """The index into the array as it lies in memory, in elements, simplified."""
    index: Expression = literal(0)
    for subscript, stride in zip(read.subscripts, read.array.strides, strict=True):
        index = operation("+", index, operation("*", simplified(subscript), literal(stride)))
    return index


def simplified(expression: Expression) -> Expression:
    """Without `v % c` where v is within 0..c-1 anyway."""
    match expression:
        case Operation():
            left, right = simplified(expression.left), simplified(expression.right)
            if expression.operator == "%" and isinstance(right, Literal):
                least, most = values(left)
                if least >= 0 and most < int(right.value):
                    return left
            return operation(expression.operator, left, right)
        case Negation():
            return Negation(simplified(expression.operand))
        case _:
            return expression


def affine_form(expression: Expression) -> Affine | None:
    """The expression as an affine one of the variables; None where it is not seen to be one."""
    match expression:
        case Literal(value):
            return Affine(int(value), {})
        case Variable():
            return Affine(0, {expression: 1})
        case Negation():
            inner = affine_form(expression.operand)
            return inner * -1 if inner else None
        case Operation():
            left, right = affine_form(expression.left), affine_form(expression.right)
            return _combined(expression.operator, left, right) if left and right else None
        case _:
            return None


def _combined(operator: str, left: Affine, right: Affine) -> Affine | None:
    if operator == "+":
        return left + right
    if operator == "-":
        return left + right * -1
    if operator == "*" and not right.coefficients:
        return left * right.offset
    if operator == "*" and not left.coefficients:
        return right * left.offset
    return None
