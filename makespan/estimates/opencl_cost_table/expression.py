"""Expressions with types: what one work-item of a domain iteration computes, and the OpenCL C of it.

They are built by `literal` and `operation`, which fold constants as OpenCL C would compute them: integers of 32 bits
whose division cuts towards zero, and floats of 32 bits.
"""

import operator
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from itertools import product
from math import isfinite, prod
from struct import pack, unpack
from typing import NamedTuple

from makespan.host.errors import InputError

INT_LEAST, INT_MOST = -(2**31), 2**31 - 1
ELEMENT_BYTES = 4
MAX_HEIGHT = 150  # of an expression as a tree: passes over it recurse
MAX_NODES = 10_000
MAX_DIMENSIONS = 8


class Type(StrEnum):
    """The type of an element, of 32 bits. `%` is for integers; an operation on an int and a float gives a float."""

    INT = "int"
    FLOAT = "float"


@dataclass(frozen=True, slots=True)
class Array:
    """An array on the device, row-major: the last subscript varies fastest."""

    name: str
    type: Type
    shape: tuple[int, ...]

    def __post_init__(self) -> None:
        if not 1 <= len(self.shape) <= MAX_DIMENSIONS or min(self.shape) < 1:
            raise InputError(f"array {self.name}: not a shape of 1..{MAX_DIMENSIONS} positive extents: {self.shape}")
        if self.elements > INT_MOST:
            raise InputError(f"array {self.name}: {self.elements} elements; an index of 32 bits reaches {INT_MOST}")

    @property
    def elements(self) -> int:
        """Return the number of elements."""
        return prod(self.shape)

    @property
    def strides(self) -> tuple[int, ...]:
        """Return the elements that one step of each subscript moves."""
        return tuple(prod(self.shape[at + 1 :]) for at in range(len(self.shape)))


class IterationVariable(NamedTuple):
    """An iteration variable, which counts from 0 to `extent` - 1."""

    name: str
    extent: int


@dataclass(frozen=True, slots=True)
class Expression:
    """An expression of a domain iteration.

    Args:
        head: a constant (an int or a float of 32 bits), a variable, the array that is read, or one of + - * / %.
        parts: the subscripts of a read, or the operands of an operator; `-` with one operand is a negation.
    """

    head: float | IterationVariable | Array | str
    parts: tuple["Expression", ...] = ()
    type: Type = field(init=False)
    height: int = field(init=False, compare=False, repr=False)
    nodes: int = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "type", self._find_type())  # the class is frozen
        object.__setattr__(self, "height", 1 + max((part.height for part in self.parts), default=0))
        object.__setattr__(self, "nodes", 1 + sum(part.nodes for part in self.parts))
        if self.height > MAX_HEIGHT:
            raise InputError(f"the expression is nested more than {MAX_HEIGHT} deep; parenthesise long sums, or split")
        if self.nodes > MAX_NODES:
            raise InputError(f"the expression has more than {MAX_NODES} operations and operands; split it")

    def _find_type(self) -> Type:
        has_float = any(part.type is Type.FLOAT for part in self.parts)
        match self.head:
            case Array(name, type, shape):
                if len(self.parts) != len(shape):
                    given = len(self.parts)
                    raise InputError(f"array {name} has {len(shape)} dimensions, and {given} subscripts are given")
                if has_float:
                    raise InputError(f"a subscript of {name} is a float; subscripts are integers")
                return type
            case "%" if has_float:
                raise InputError("% is for integers, and one of its operands is a float")
            case _:
                return Type.FLOAT if has_float or isinstance(self.head, float) else Type.INT

    @property
    def is_constant(self) -> bool:
        """Return whether it is a constant."""
        return isinstance(self.head, int | float)

    def walk(self) -> Iterator["Expression"]:
        """Yield the expression and everything in it, from left to right, the outer before the inner."""
        yield self
        for part in self.parts:
            yield from part.walk()

    @property
    def has_read(self) -> bool:
        """Return whether an element of an array is read in it."""
        return any(isinstance(node.head, Array) for node in self.walk())


def literal(value: float) -> Expression:
    """Return a constant, a float rounded to 32 bits.

    Raises:
        InputError: it does not fit in 32 bits.
    """
    if isinstance(value, int) and not INT_LEAST <= value <= INT_MOST:
        raise InputError(f"integer {value} does not fit in 32 bits ({INT_LEAST}..{INT_MOST})")
    return Expression(value if isinstance(value, int) else _single(value))


def operation(sign: str, *operands: Expression) -> Expression:
    """Return the operation on one or two operands, computed where all of them are constants.

    Raises:
        InputError: a division by a constant zero, `%` on floats, or a constant that does not fit in 32 bits.
    """
    found, divisor = Expression(sign, operands), operands[-1].head
    if sign in "/%" and divisor == 0:
        raise InputError(f"division by a constant zero: {sign} {divisor}")
    values = [operand.head for operand in operands if isinstance(operand.head, int | float)]
    if len(values) < len(operands):
        return found
    if found.type is Type.FLOAT:
        values = [_single(value) for value in values]  # a double holds the result well enough to round twice
    return literal(_COMPUTE[sign](*values) if len(values) > 1 else -values[0])


def _quotient(left: float, right: float) -> float:
    if isinstance(left, float):
        return left / right
    return int(left) // int(right) if (left < 0) == (right < 0) else -(-int(left) // int(right))  # towards zero


_COMPUTE: Mapping[str, Callable[[float, float], float]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": _quotient,
    "%": lambda left, right: left - _quotient(left, right) * right,
}


def _single(value: float) -> float:
    try:
        rounded: float = unpack("f", pack("f", value))[0]
    except OverflowError:
        rounded = float("inf")
    if not isfinite(rounded):
        raise InputError(f"float {value} does not fit in 32 bits; the largest is 3.4028235e38")
    return rounded


class IntRange(NamedTuple):
    """The values from `least` to `most`; both can lie outside 32 bits, where the device would wrap around."""

    least: int
    most: int


def values(expression: Expression) -> IntRange:
    """Return the values of an expression of type int; an element that is read can be anything."""
    match expression.head:
        case int(value):
            return IntRange(value, value)
        case IterationVariable(extent=extent):
            return IntRange(0, extent - 1)
        case Array():
            return IntRange(INT_LEAST, INT_MOST)
    left, right = [IntRange(0, 0), *map(values, expression.parts)][-2:]  # -x has the values of 0 - x
    if expression.head == "%":
        below = max(abs(right.least), abs(right.most)) - 1  # the largest absolute value of a remainder
        if left.least >= 0 and right.least > left.most:
            return left
        return IntRange(max(-below, min(left.least, 0)), min(below, max(left.most, 0)))
    sides: tuple[int, ...] = right
    if expression.head == "/":  # quotients are extreme at the divisors next to 0, too; 0 itself has no meaning
        sides = tuple(n for n in (*right, -1, 1) if n and right.least <= n <= right.most) or (1,)
    corners = [int(_COMPUTE[str(expression.head)](*pair)) for pair in product(left, sides)]
    return IntRange(min(corners), max(corners))


def overflows(expression: Expression) -> bool:
    """Return whether an integer in it may leave 32 bits."""
    integers = (node for node in expression.walk() if node.type is Type.INT)
    return any(not INT_LEAST <= bound <= INT_MOST for node in integers for bound in values(node))


@dataclass(frozen=True, slots=True)
class Iteration:
    r"""A domain iteration `array.\(v1,...,vD){ body }`: one work-item per element; the last variable varies fastest.

    The result has the shape of the array and the type of the body.
    """

    array: Array
    variables: tuple[str, ...]
    body: Expression

    @property
    def work_items(self) -> int:
        """Return the number of work-items, one per element."""
        return self.array.elements

    @property
    def arrays(self) -> tuple[Array, ...]:
        """Return the arrays that are read, in the order of the text, each once."""
        return tuple(dict.fromkeys(node.head for node in self.body.walk() if isinstance(node.head, Array)))

    @property
    def bytes_in(self) -> int:
        """Return the bytes that move to the device: all arrays that are read."""
        return sum(array.elements for array in self.arrays) * ELEMENT_BYTES

    @property
    def bytes_out(self) -> int:
        """Return the bytes of the result, which move back."""
        return self.work_items * ELEMENT_BYTES

    def __str__(self) -> str:
        """Return the iteration in its own language."""
        return rf"{self.array.name}.\({','.join(self.variables)}){{ {_text(self.body, is_opencl=False)} }}"

    @property
    def opencl(self) -> str:
        """Return the OpenCL kernel `iteration`; its arguments are the arrays in the order of the text, and the result.

        Work-item `pos` recovers its variables from its number, and stores one element.
        """
        names = {*self.variables, *(array.name for array in self.arrays)}
        pos, result = _free("pos", names), _free("result", names)
        arguments = [f"__global const {array.type} *{array.name}" for array in self.arrays]
        lines = [
            "#pragma OPENCL FP_CONTRACT OFF",  # a product and a sum stay two operations: so they are counted
            f"__kernel void iteration({', '.join([*arguments, f'__global {self.body.type} *{result}'])}) {{",
            f"    const int {pos} = get_global_id(0);",
        ]
        for name, extent, stride in zip(self.variables, self.array.shape, self.array.strides, strict=True):
            lines.append(f"    const int {name} = ({pos}/{stride})%{extent};")
        return "\n".join([*lines, f"    {result}[{pos}] = {_text(self.body, is_opencl=True)};", "}"]) + "\n"


_ALONE, _SUM, _PRODUCT, _ATOM = range(4)  # how strongly a text binds: a sign in front must stand alone


def _text(expression: Expression, binding: int = _ALONE, *, is_opencl: bool) -> str:
    """Return the expression in OpenCL C, reads by their linear index, or in the language of domain iterations."""
    parts = expression.parts
    match expression.head:
        case int() | float() as value:
            shown, own = _constant(value), _ALONE if value < 0 else _ATOM
        case IterationVariable(name=name):
            return name
        case Array(name=name, strides=strides):
            if not is_opencl:
                return f"{name}[{', '.join(_text(part, is_opencl=False) for part in parts)}]"
            fastest_first = [
                f"{_text(part, _ATOM, is_opencl=True)}{f'*{stride}' * (stride > 1)}"
                for part, stride in zip(parts, strides, strict=True)
            ][::-1]
            return f"{name}[{' + '.join(fastest_first)}]"
        case sign if len(parts) == 1:
            shown, own = f"{sign}{_text(parts[0], _ATOM, is_opencl=is_opencl)}", _ALONE
        case sign:
            own = _SUM if str(sign) in "+-" else _PRODUCT
            left, right = (_text(parts[at], own + at, is_opencl=is_opencl) for at in (0, 1))
            shown = f" {sign} ".join((left, right)) if own == _SUM else f"{left}{sign}{right}"
    return f"({shown})" if own < binding else shown


def _constant(value: float) -> str:
    if isinstance(value, int):
        return str(value) if value > INT_LEAST else f"({INT_LEAST + 1} - 1)"
    candidates = (f"{value:.{digits}g}" for digits in range(1, 10))
    shown = next(text for text in candidates if _single(float(text)) == value)
    return f"{shown}f" if set(shown) & {".", "e"} else f"{shown}.0f"


def _free(name: str, taken: set[str]) -> str:
    while name in taken:
        name += "_"
    return name
