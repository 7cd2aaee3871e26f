"""Domain iterations by numpy: what a kernel has to compute, element by element."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from makespan.estimates.opencl_cost_table import expression as ex
from makespan.host.errors import InputError

ArrayValues = npt.NDArray[Any]  # elements of int32 or float32
DTYPES: Mapping[ex.Type, type[np.int32] | type[np.float32]] = {ex.Type.INT: np.int32, ex.Type.FLOAT: np.float32}
MAX_ELEMENTS = 1 << 26  # of float32 256 MiB, and temporary copies besides


def evaluate(iteration: ex.Iteration, data: Mapping[str, ArrayValues]) -> ArrayValues:
    """Return the result, in the shape of the array of the iteration.

    Args:
        data: every array that is read, by name, in its shape and type.

    Raises:
        InputError: an array that is missing or of another shape or type, a read outside of one, a division of
            integers by zero, or more than 2^26 elements.
    """
    if iteration.work_items > MAX_ELEMENTS:
        raise InputError(f"{iteration.work_items} elements: more than {MAX_ELEMENTS} take too much memory here")
    for array in iteration.arrays:
        _check(array, data.get(array.name))
    shape = iteration.array.shape
    grid = np.ogrid[tuple(slice(extent) for extent in shape)] if len(shape) > 1 else [np.arange(shape[0])]
    variables = [axis.astype(np.int32) for axis in grid]
    with np.errstate(all="ignore"):  # floats may become infinite and integers wrap around, as on the device
        body = _evaluate(iteration.body, variables, data)
    whole = np.broadcast_to(body, shape)
    return np.ascontiguousarray(whole, dtype=DTYPES[iteration.body.type])


def _check(array: ex.Array, given: ArrayValues | None) -> None:
    if given is None:
        raise InputError(f"array {array.name} is read, and no data is given for it")
    if given.shape != array.shape or given.dtype != DTYPES[array.type]:
        needed = f"{array.type} {'x'.join(map(str, array.shape))}"
        raise InputError(f"array {array.name} is {needed}, and the data {given.dtype} {given.shape}")


def _evaluate(
    expression: ex.IterationExpression, variables: list[npt.NDArray[np.int32]], data: Mapping[str, ArrayValues]
) -> ArrayValues:
    match expression:
        case ex.Literal(value):
            return np.array(value, DTYPES[expression.type])
        case ex.Variable():
            return variables[expression.position]
        case ex.Negation():
            return -_evaluate(expression.operand, variables, data)
        case ex.Read():
            return _read(expression, variables, data)
        case ex.BinaryOperation():
            left, right = (_evaluate(side, variables, data) for side in (expression.left, expression.right))
            kind = DTYPES[expression.type]
            return _compute(expression.operator, left.astype(kind), right.astype(kind))


def _read(read: ex.Read, variables: list[npt.NDArray[np.int32]], data: Mapping[str, ArrayValues]) -> ArrayValues:
    index = np.zeros((), np.int64)
    for subscript, stride in zip(read.subscripts, read.array.strides, strict=True):
        index = index + _evaluate(subscript, variables, data).astype(np.int64) * stride
    least, most = int(index.min()), int(index.max())
    if least < 0 or most >= read.array.elements:
        raise InputError(
            f"array {read.array.name} has elements 0..{read.array.elements - 1}, and {least}..{most} are read"
        )
    return data[read.array.name].reshape(-1)[index]


def _compute(operator: str, left: ArrayValues, right: ArrayValues) -> ArrayValues:
    if operator == "+":
        return left + right
    if operator == "-":
        return left - right
    if operator == "*":
        return left * right
    if left.dtype == np.float32:
        return left / right
    if not np.all(right):
        raise InputError("an integer is divided by zero")
    rest = np.fmod(left, right)  # has the sign of the dividend, as in C
    return rest if operator == "%" else (left - rest) // right
