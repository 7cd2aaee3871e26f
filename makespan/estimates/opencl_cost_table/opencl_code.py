"""OpenCL C for a domain iteration: one kernel, one work-item per element."""

from collections.abc import Callable

from makespan.estimates.opencl_cost_table import expression as ex

KERNEL = "iteration"
# A product and a sum stay two operations: so they are counted, and so every device rounds them alike.
_HEAD = "#pragma OPENCL FP_CONTRACT OFF"
_Inside = Callable[[ex.Read], str]
_STRENGTH = {"+": 1, "-": 1, "*": 2, "/": 2, "%": 2}


def source(iteration: ex.Iteration) -> str:
    """Return the kernel `iteration`, whose arguments are the arrays in the order of the text, and the result.

    Work-item `pos` recovers its variables from its number, and stores one element.
    """
    names = {*iteration.variables, *(array.name for array in iteration.arrays)}
    pos, result = _free("pos", names), _free("result", names)
    arguments = [f"__global const {array.type} *{array.name}" for array in iteration.arrays]
    arguments.append(f"__global {iteration.body.type} *{result}")
    lines = [_HEAD, f"__kernel void {KERNEL}({', '.join(arguments)}) {{", f"    const int {pos} = get_global_id(0);"]
    array = iteration.array
    for name, extent, stride in zip(iteration.variables, array.shape, array.strides, strict=True):
        lines.append(f"    const int {name} = ({pos}/{stride})%{extent};")
    lines += [f"    {result}[{pos}] = {text(iteration.body)};", "}"]
    return "\n".join(lines) + "\n"


def text(expression: ex.IterationExpression) -> str:
    """Return the expression in OpenCL C, reads by their linear index."""
    return _text(expression, index)


def iteration_text(expression: ex.IterationExpression) -> str:
    """Return the expression in the language of domain iterations."""
    return _text(expression, lambda read: ", ".join(map(iteration_text, read.subscripts)))


def written_iteration(iteration: ex.Iteration) -> str:
    """Return the iteration in its own language."""
    return rf"{iteration.array.name}.\({','.join(iteration.variables)}){{ {iteration_text(iteration.body)} }}"


def index(read: ex.Read) -> str:
    """Return the linear index of a read, the fastest subscript first: `b + a*256 + c*65536`."""
    terms = []
    for subscript, stride in reversed(list(zip(read.subscripts, read.array.strides, strict=True))):
        atomic = isinstance(subscript, ex.Variable) or (isinstance(subscript, ex.Literal) and subscript.value >= 0)
        factor = text(subscript) if atomic else f"({text(subscript)})"
        terms.append(factor if stride == 1 else f"{factor}*{stride}")
    return " + ".join(terms)


def _text(expression: ex.IterationExpression, inside: _Inside) -> str:
    match expression:
        case ex.Literal(value):
            return _constant(value)
        case ex.Variable(name=name):
            return name
        case ex.Read():
            return f"{expression.array.name}[{inside(expression)}]"
        case ex.Negation():
            shown = _text(expression.operand, inside)
            return f"-{shown}" if isinstance(expression.operand, ex.Variable | ex.Read) else f"-({shown})"
        case ex.BinaryOperation():
            return _operation(expression, inside)


def _operation(expression: ex.BinaryOperation, inside: _Inside) -> str:
    strength = _STRENGTH[expression.operator]
    sides = []
    for side, least in ((expression.left, strength), (expression.right, strength + 1)):
        shown = _text(side, inside)
        weak = isinstance(side, ex.BinaryOperation) and _STRENGTH[side.operator] < least
        sides.append(f"({shown})" if weak or shown.startswith("-") else shown)
    between = f" {expression.operator} " if strength == 1 else expression.operator
    return between.join(sides)


def _constant(value: float) -> str:
    if isinstance(value, int):
        return str(value) if value > ex.INT_LEAST else f"({ex.INT_LEAST + 1} - 1)"
    return f"{_shortest(value)}f"


def _shortest(value: float) -> str:
    candidates = (f"{value:.{digits}g}" for digits in range(1, 10))
    shown = next(digits for digits in candidates if ex.literal(float(digits)).value == value)
    return shown if set(shown) & {".", "e"} else f"{shown}.0"


def _free(name: str, taken: set[str]) -> str:
    while name in taken:
        name += "_"
    return name
