"""Domain iterations by numpy: what a kernel has to compute, element by element."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from makespan.estimates.opencl_cost_table.expression import Array, Expression, Iteration, IterationVariable, Type

Elements = npt.NDArray[Any]
DTYPES = {Type.INT: np.int32, Type.FLOAT: np.float32}


def evaluate(iteration: Iteration, data: Mapping[str, Elements]) -> Elements:
    """The result in the shape of the array; an index outside of an array, or a division by 0, fails an assertion."""
    axes = np.indices(iteration.array.shape, np.int32, sparse=True)
    variables = dict(zip(iteration.variables, axes, strict=True))
    with np.errstate(all="ignore"):  # floats may become infinite and integers wrap around, as on the device
        body = elements(iteration.body, variables, data)
    return np.ascontiguousarray(np.broadcast_to(body, iteration.array.shape), dtype=DTYPES[iteration.body.type])


def elements(expression: Expression, variables: Mapping[str, Elements], data: Mapping[str, Elements]) -> Elements:
    parts = [elements(part, variables, data) for part in expression.parts]
    kind = DTYPES[expression.type]
    match expression.head:
        case int() | float():
            return np.array(expression.head, kind)
        case IterationVariable(name=name):
            return variables[name]
        case Array() as array:
            index = sum(part.astype(np.int64) * stride for part, stride in zip(parts, array.strides, strict=True))
            assert np.all((index >= 0) & (index < array.elements)), expression
            return data[array.name].reshape(-1)[index]
    operands: list[Elements] = [part.astype(kind) for part in parts]
    left, *others = operands
    if not others:
        return -left
    right = others[0]
    if expression.head not in ("/", "%"):
        return {"+": np.add, "-": np.subtract, "*": np.multiply}[str(expression.head)](left, right)
    if expression.type is Type.FLOAT:
        return left / right
    assert np.all(right), expression
    rest: Elements = np.fmod(left, right)  # has the sign of the dividend, as in C
    return rest if expression.head == "%" else (left - rest) // right
