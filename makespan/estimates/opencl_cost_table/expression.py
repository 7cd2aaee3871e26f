"""Expressions with types: what one work-item of a domain iteration computes.

They are built by `literal`, `operation` and `negation`, which fold constants as OpenCL C would compute them: integers
of 32 bits whose division cuts towards zero, and floats of 32 bits.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import StrEnum
from math import isfinite, prod
from struct import pack, unpack

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
    def size(self) -> int:
        """Return the size in bytes."""
        return self.elements * ELEMENT_BYTES

    @property
    def strides(self) -> tuple[int, ...]:
        """Return the elements that one step of each subscript moves."""
        return tuple(prod(self.shape[at + 1 :]) for at in range(len(self.shape)))


@dataclass(frozen=True, slots=True)
class Node:
    """The base of all expressions, which keeps their height and their number of nodes within limits."""

    height: int = field(init=False, compare=False, repr=False)
    nodes: int = field(init=False, compare=False, repr=False)

    def _measure(self, *parts: "IterationExpression") -> None:
        height = 1 + max((part.height for part in parts), default=0)
        nodes = 1 + sum(part.nodes for part in parts)
        if height > MAX_HEIGHT:
            raise InputError(f"the expression is nested more than {MAX_HEIGHT} deep; parenthesise long sums, or split")
        if nodes > MAX_NODES:
            raise InputError(f"the expression has more than {MAX_NODES} operations and operands; split it")
        object.__setattr__(self, "height", height)
        object.__setattr__(self, "nodes", nodes)


@dataclass(frozen=True, slots=True)
class Literal(Node):
    """A constant: an int is one of 32 bits, a float one that 32 bits hold."""

    value: int | float

    def __post_init__(self) -> None:
        self._measure()

    @property
    def type(self) -> Type:
        """Return the type that Python's int or float stands for."""
        return Type.INT if isinstance(self.value, int) else Type.FLOAT


@dataclass(frozen=True, slots=True)
class Variable(Node):
    """An iteration variable, which counts from 0 to `extent` - 1; `position` is its place in the iteration."""

    name: str
    position: int
    extent: int

    def __post_init__(self) -> None:
        self._measure()

    @property
    def type(self) -> Type:
        """Return int, the type of every variable."""
        return Type.INT


@dataclass(frozen=True, slots=True)
class Read(Node):
    """An element of an array."""

    array: Array
    subscripts: tuple["IterationExpression", ...]

    def __post_init__(self) -> None:
        given, needed = len(self.subscripts), len(self.array.shape)
        if given != needed:
            raise InputError(f"array {self.array.name} has {needed} dimensions, and {given} subscripts are given")
        if any(subscript.type is not Type.INT for subscript in self.subscripts):
            raise InputError(f"a subscript of {self.array.name} is a float; subscripts are integers")
        self._measure(*self.subscripts)

    @property
    def type(self) -> Type:
        """Return the type of the array."""
        return self.array.type


@dataclass(frozen=True, slots=True)
class Negation(Node):
    """A negation, the unary minus."""

    operand: "IterationExpression"
    type: Type = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "type", self.operand.type)
        self._measure(self.operand)


@dataclass(frozen=True, slots=True)
class BinaryOperation(Node):
    """An operation with one of the operators + - * / %."""

    operator: str
    left: "IterationExpression"
    right: "IterationExpression"
    type: Type = field(init=False)

    def __post_init__(self) -> None:
        mixed = Type.FLOAT in (self.left.type, self.right.type)
        if mixed and self.operator == "%":
            raise InputError("% is for integers, and one of its operands is a float")
        object.__setattr__(self, "type", Type.FLOAT if mixed else Type.INT)
        self._measure(self.left, self.right)


IterationExpression = Literal | Variable | Read | Negation | BinaryOperation


@dataclass(frozen=True, slots=True)
class Iteration:
    r"""A domain iteration `array.\(v1,...,vD){ body }`: one work-item per element; the last variable varies fastest.

    The result has the shape of the array and the type of the body.
    """

    array: Array
    variables: tuple[str, ...]
    body: IterationExpression

    @property
    def work_items(self) -> int:
        """Return the number of work-items, one per element."""
        return self.array.elements

    @property
    def arrays(self) -> tuple[Array, ...]:
        """Return the arrays that are read, in the order of the text, each once."""
        return tuple(dict.fromkeys(node.array for node in walk(self.body) if isinstance(node, Read)))

    @property
    def bytes_in(self) -> int:
        """Return the bytes that move to the device: all arrays that are read."""
        return sum(array.size for array in self.arrays)

    @property
    def bytes_out(self) -> int:
        """Return the bytes of the result, which move back."""
        return self.work_items * ELEMENT_BYTES


def walk(expression: IterationExpression) -> Iterator[IterationExpression]:
    """Yield the expression and everything in it, from left to right, the outer before the inner."""
    yield expression
    for part in parts(expression):
        yield from walk(part)


def parts(expression: IterationExpression) -> tuple[IterationExpression, ...]:
    """Return the operands or subscripts of an expression."""
    match expression:
        case BinaryOperation():
            return (expression.left, expression.right)
        case Negation():
            return (expression.operand,)
        case Read():
            return expression.subscripts
        case _:
            return ()


def literal(value: float) -> Literal:
    """Return a constant, a float rounded to 32 bits.

    Raises:
        InputError: it does not fit in 32 bits.
    """
    if isinstance(value, int):
        if not INT_LEAST <= value <= INT_MOST:
            raise InputError(f"integer {value} does not fit in 32 bits ({INT_LEAST}..{INT_MOST})")
        return Literal(value)
    return Literal(_single(value))


def operation(operator: str, left: IterationExpression, right: IterationExpression) -> IterationExpression:
    """Return `left operator right`, computed where both are constants.

    Raises:
        InputError: a division by a constant zero, `%` on floats, or a constant that does not fit in 32 bits.
    """
    node = BinaryOperation(operator, left, right)
    if operator in "/%" and isinstance(right, Literal) and right.value == 0:
        raise InputError(f"division by a constant zero: {operator} {right.value}")
    if isinstance(left, Literal) and isinstance(right, Literal):
        return literal(_compute(operator, left.value, right.value))
    return node


def negation(operand: IterationExpression) -> IterationExpression:
    """Return `-operand`, computed where it is a constant."""
    return literal(-operand.value) if isinstance(operand, Literal) else Negation(operand)


def _compute(operator: str, left: float, right: float) -> float:
    if isinstance(left, int) and isinstance(right, int):
        return _integral(operator, left, right)
    first, second = _single(left), _single(right)  # a double holds sum, product and quotient well enough to round twice
    return {"+": first + second, "-": first - second, "*": first * second, "/": first / second if second else 0.0}[
        operator
    ]


def _integral(operator: str, left: int, right: int) -> int:
    if operator in "/%":
        quotient = abs(left) // abs(right) * (1 if (left < 0) == (right < 0) else -1)
        return quotient if operator == "/" else left - quotient * right
    return {"+": left + right, "-": left - right, "*": left * right}[operator]


def _single(value: float) -> float:
    try:
        rounded: float = unpack("f", pack("f", value))[0]
    except OverflowError:
        rounded = float("inf")
    if not isfinite(rounded):
        raise InputError(f"float {value} does not fit in 32 bits; the largest is 3.4028235e38")
    return rounded
