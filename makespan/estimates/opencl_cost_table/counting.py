"""What one work-item of a domain iteration does: rows of the cost table and how often each occurs."""

from collections import Counter
from collections.abc import Iterator

from makespan.estimates.opencl_cost_table.expression import (
    ELEMENT_BYTES,
    Array,
    Expression,
    Iteration,
    IterationVariable,
    literal,
    operation,
    values,
)
from makespan.estimates.opencl_cost_table.table import BASE, DIVISION_BY_LITERAL, ROWS, AccessKind, RowCounts

_NAMES = {"+": "ADD", "-": "SUB", "*": "MUL", "/": "DIV", "%": "DIV"}
# The factor of each variable in an index; that of None is the constant.
AffineForm = dict[IterationVariable | None, int]


def count(
    iteration: Iteration, *, interval_bytes: int, dedupe_reads: bool = False, classified: bool = True
) -> RowCounts:
    """Count what one work-item of the generated kernel does.

    The base once; 2 INT_DIV per dimension and one INT_MUL less than dimensions to recover the variables; every read
    its class and one INT_MUL and INT_ADD per subscript; every operator by the type of its result, `%` as a division
    and a unary minus as a subtraction; a variable that is used as a value one PRIVATE_ACCESS. Constants cost nothing,
    and the store of the result belongs to the base.

    Args:
        dedupe_reads: count equal reads once, as a compiler may.
        classified: give every global read its class; otherwise all are priced alike.

    Source: the published counts of `x + matrix[x,y]` (Pöppl 2014); these are the fewest uniform rules that give them.
    """
    dimensions, seen = len(iteration.variables), set[Expression]()

    def rows(expression: Expression, *, is_value: bool) -> Iterator[str]:
        match expression.head:
            case IterationVariable() if is_value:
                yield AccessKind.PRIVATE
            case str(sign):
                yield f"{expression.type.name}_{_NAMES[sign]}"
                if sign in "/%" and expression.type == "int" and expression.parts[1].is_constant:
                    yield DIVISION_BY_LITERAL
            case Array():
                if dedupe_reads and expression in seen:
                    return
                seen.add(expression)
                yield from ("INT_MUL", "INT_ADD") * len(expression.parts)
                yield classify(expression, iteration, interval_bytes) if classified else AccessKind.UNCLASSIFIED
                is_value = False  # variables in subscripts are part of the price of the read
        for part in expression.parts:
            yield from rows(part, is_value=is_value)

    found = Counter({BASE: 1, "INT_DIV": 2 * dimensions, "INT_MUL": dimensions - 1})
    found.update(map(str, rows(iteration.body, is_value=True)))
    return RowCounts({row: found[row] for row in ROWS if found[row]}, 2 * dimensions + found[DIVISION_BY_LITERAL])


def classify(read: Expression, iteration: Iteration, interval_bytes: int) -> AccessKind:
    """Return the class of a read; the first of constant, interval, continuous and complex that applies.

    - constant: the index does not depend on the iteration variables.
    - interval: all addresses lie within `interval_bytes`.
    - continuous: the linear index is the linear number of the work-item, plus a constant.
    - complex: everything else, such as transposed reads and those whose index was read.
    """
    index = linear_index(read)
    form, (least, most) = affine_form(index), values(index)
    moving = {v: factor for v, factor in (form or {}).items() if v and v.extent > 1}  # an extent of 1 moves nothing
    is_fixed = form is not None and not form.keys() - {None}
    if is_fixed or not any(isinstance(node.head, IterationVariable) for node in index.walk()):
        return AccessKind.CONSTANT
    if (most - least + 1) * ELEMENT_BYTES <= interval_bytes:
        return AccessKind.INTERVAL
    array = iteration.array
    steps = zip(iteration.variables, array.shape, array.strides, strict=True)
    counting = {IterationVariable(name, extent): stride for name, extent, stride in steps if extent > 1}
    return AccessKind.CONTINUOUS if form is not None and moving == counting else AccessKind.COMPLEX


def outside_reads(iteration: Iteration) -> Iterator[str]:
    """Yield a message for each read that may lie outside of its array; the language does not check them."""
    for read in dict.fromkeys(node for node in iteration.body.walk() if isinstance(node.head, Array)):
        array, (least, most) = read.head, values(linear_index(read))
        is_known = not any(subscript.has_read for subscript in read.parts)
        if isinstance(array, Array) and is_known and (least < 0 or most >= array.elements):
            yield f"a read of {array.name} may reach elements {least}..{most}, and it has 0..{array.elements - 1}"


def linear_index(read: Expression) -> Expression:
    """Return the index into the array as it lies in memory, in elements, simplified."""
    index = literal(0)
    strides = read.head.strides if isinstance(read.head, Array) else ()
    for subscript, stride in zip(read.parts, strides, strict=True):
        index = operation("+", index, operation("*", _simplify(subscript), literal(stride)))
    return index


def _simplify(expression: Expression) -> Expression:
    """Return the expression without `v % c` where v is within 0..c-1."""
    if not isinstance(expression.head, str):
        return expression
    parts = [_simplify(part) for part in expression.parts]
    if expression.head == "%" and isinstance(divisor := parts[1].head, int):
        least, most = values(parts[0])
        if least >= 0 and most < divisor:
            return parts[0]
    return operation(expression.head, *parts)


def affine_form(expression: Expression) -> AffineForm | None:
    """Return an index as an affine form of the variables, without factors of 0; None where it is not seen to be one."""
    match expression.head:
        case int(value):
            return {None: value} if value else {}
        case IterationVariable() as variable:
            return {variable: 1}
        case "+" | "-" | "*":
            forms = [affine_form(part) for part in expression.parts]
        case _:
            return None
    left, right = [{}, *forms][-2:]  # -x is 0 - x
    if left is None or right is None:
        return None
    if expression.head == "*":
        if left.keys() - {None}:
            left, right = right, left
        if left.keys() - {None}:  # a product of variables
            return None
        combined = {name: left.get(None, 0) * factor for name, factor in right.items()}
    else:
        sign = 1 if expression.head == "+" else -1
        combined = {name: left.get(name, 0) + sign * right.get(name, 0) for name in left | right}
    return {name: factor for name, factor in combined.items() if factor}
