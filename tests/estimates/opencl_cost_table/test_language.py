"""Domain iterations: text, types, generated OpenCL, results, counts and classes of reads."""

from itertools import islice

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from makespan.estimates.opencl_cost_table.counting import classify, count, linear_index, outside_reads
from makespan.estimates.opencl_cost_table.evaluation import iterations
from makespan.estimates.opencl_cost_table.expression import (
    Array,
    Expression,
    Iteration,
    IterationVariable,
    Type,
    literal,
    operation,
    values,
)
from makespan.estimates.opencl_cost_table.language import iteration
from makespan.estimates.opencl_cost_table.table import AccessKind
from makespan.host.errors import InputError, ParseError
from tests.estimates.opencl_cost_table import reference

MATRIX = Array("matrix", Type.FLOAT, (4096, 4096))
SMALL = Array("m", Type.INT, (6, 5))
CONSTANTS = {"HEIGHT": 4096, "WIDTH": 4096}
KIB_16 = 16384


def parsed(body: str, array: Array = MATRIX, *functions: str) -> Iteration:
    names = ",".join("xyzw"[: len(array.shape)])
    text = rf"{array.name}.\({names}){{ {body} }}"
    return iteration(text, arrays=[array], constants=CONSTANTS, functions=functions)


def refusal(body: str, array: Array = MATRIX, *functions: str) -> str:
    with pytest.raises(InputError) as refused:
        parsed(body, array, *functions)
    return str(refused.value)


def test_the_kernel_of_the_published_example() -> None:
    ma = Array("ma", Type.INT, (256, 256, 256))
    found = iteration(r"ma.\(a,b,c){ ma[c,a,b] + g(a) }", arrays=[ma], functions=["g(x) = 2*x"])
    assert found.opencl == (
        "#pragma OPENCL FP_CONTRACT OFF\n"
        "__kernel void iteration(__global const int *ma, __global int *result) {\n"
        "    const int pos = get_global_id(0);\n"
        "    const int a = (pos/65536)%256;\n"
        "    const int b = (pos/256)%256;\n"
        "    const int c = (pos/1)%256;\n"
        "    result[pos] = ma[b + a*256 + c*65536] + 2*a;\n"
        "}\n"
    )
    assert (found.work_items, found.bytes_in, found.bytes_out) == (16777216, 67108864, 67108864)


def test_p2_published_counts() -> None:
    """Pöppl 2014, `matrix.\\(x,y){ x + matrix[x,y] }`."""
    found = count(parsed("x + matrix[x,y]"), interval_bytes=KIB_16)
    assert found.rows == {
        "BASE_COST": 1, "FLOAT_ADD": 1, "INT_ADD": 2, "INT_MUL": 3, "INT_DIV": 4, "PRIVATE_ACCESS": 1, "GLOBAL_READ": 1
    }  # fmt: skip
    assert found.literal_divisions == 4


@pytest.mark.parametrize(
    ("body", "rows"),
    [
        ("1 + 2*3 - HEIGHT", {}),
        ("x*2.5f", {"FLOAT_MUL": 1, "PRIVATE_ACCESS": 1}),
        ("x*y", {"INT_MUL": 2, "PRIVATE_ACCESS": 2}),
        ("x % 3", {"INT_DIV": 5, "PRIVATE_ACCESS": 1, "INT_MUL": 1}),
        ("-x", {"INT_SUB": 1, "PRIVATE_ACCESS": 1}),
        ("matrix[x + 1, y]", {"GLOBAL_READ": 1, "INT_MUL": 3, "INT_ADD": 3}),
        ("matrix[x,y] - matrix[x,y]", {"GLOBAL_READ": 2, "FLOAT_SUB": 1, "INT_MUL": 5, "INT_ADD": 4}),
    ],
)
def test_counting_rules(body: str, rows: dict[str, int]) -> None:
    found = count(parsed(body), interval_bytes=KIB_16)
    assert dict(found.rows) == {"BASE_COST": 1, "INT_DIV": 4, "INT_MUL": 1, **rows}


def test_equal_reads_can_be_counted_once() -> None:
    found = count(parsed("matrix[x,y]*(matrix[x,y]*matrix[y,x])"), interval_bytes=KIB_16, dedupe_reads=True)
    assert (found["GLOBAL_READ"], found["COMPLEX_GLOBAL_READ"], found["INT_ADD"], found["INT_MUL"]) == (1, 1, 4, 5)


def test_reads_can_be_priced_alike() -> None:
    found = count(parsed("matrix[x,y] + matrix[y,x]"), interval_bytes=KIB_16, classified=False)
    assert found["UNCLASSIFIED_GLOBAL_READ"] == 2
    assert found["GLOBAL_READ"] == found["COMPLEX_GLOBAL_READ"] == 0


NARROW = Array("matrix", Type.FLOAT, (256, 256))
INDEXED = Array("matrix", Type.INT, (512, 512))
CONSTANT, INTERVAL, CONTINUOUS, COMPLEX = (
    AccessKind.CONSTANT, AccessKind.INTERVAL, AccessKind.CONTINUOUS, AccessKind.COMPLEX
)  # fmt: skip


@pytest.mark.parametrize(
    ("body", "access", "array", "interval"),
    [
        ("matrix[1 % HEIGHT, 1 % WIDTH]", CONSTANT, MATRIX, KIB_16),
        ("matrix[x - x, 7]", CONSTANT, MATRIX, KIB_16),
        ("matrix[3, y % 16]", INTERVAL, MATRIX, KIB_16),
        ("matrix[0, y]", INTERVAL, MATRIX, KIB_16),
        ("matrix[x % 16, 3]", INTERVAL, NARROW, KIB_16),
        ("matrix[x % 16, 3]", COMPLEX, NARROW, 15 * 256 * 4 + 3),  # bytes 12 .. 15375 are touched
        ("matrix[x,y]", CONTINUOUS, MATRIX, KIB_16),
        ("matrix[x, y + 1]", CONTINUOUS, MATRIX, KIB_16),
        ("matrix[x % HEIGHT, y % WIDTH]", CONTINUOUS, MATRIX, KIB_16),
        ("matrix[2*x - x, y]", CONTINUOUS, MATRIX, KIB_16),
        ("matrix[y % HEIGHT, x % WIDTH]", COMPLEX, MATRIX, KIB_16),
        ("matrix[x % 16, 3]", COMPLEX, MATRIX, KIB_16),
        ("matrix[x, y % 4095]", COMPLEX, MATRIX, KIB_16),
        ("matrix[x, y/2]", COMPLEX, MATRIX, KIB_16),
        ("matrix[x, -y]", COMPLEX, MATRIX, KIB_16),
        ("matrix[matrix[x,y], y]", COMPLEX, INDEXED, KIB_16),
    ],
)
def test_classes_of_reads(body: str, access: AccessKind, array: Array, interval: int) -> None:
    found = parsed(body, array)
    assert classify(found.body, found, interval) is access


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("x + matrix[x]", "array matrix has 2 dimensions, and 1 subscripts are given"),
        ("other[x,y]", "array other is not declared; give --array other:float:SHAPE"),
        ("x + z", "unknown variable z; known: x, y, HEIGHT, WIDTH; or give --const z=N"),
        ("matrix", "unknown variable matrix; an array needs subscripts"),
        ("x % 1.5", "% is for integers"),
        ("x / 0", "division by a constant zero"),
        ("x / (HEIGHT - WIDTH)", "division by a constant zero"),
        ("x / 0.0f", "division by a constant zero"),
        ("1.5 / (2 - 2.0)", "division by a constant zero"),
        ("x % 0", "division by a constant zero"),
        ("2147483648", "integer 2147483648 does not fit in 32 bits"),
        ("2147483647 + 1", "integer 2147483648 does not fit in 32 bits"),
        ("9" * 5000, "an integer of 5000 digits does not fit in 32 bits"),
        ("1e39f", "does not fit in 32 bits; the largest is 3.4028235e38"),
        ("3e38f * 10", "does not fit in 32 bits"),
        ("matrix[1.5, y]", "a subscript of matrix is a float"),
        ("g(x)", "function g is not defined; give --func 'g(...)=...'"),
        ("x +", "'}' cannot stand here"),
        ("x $ y", "'$' cannot stand here"),
        ("(x", "'}' cannot stand here"),
        ("+".join("x" * 200), "nested more than 150 deep"),
        ("+".join("x" * 5000), "nested more than 150 deep"),
        ("(" * 5000 + "x", "'}' cannot stand here"),
        ("-" * 5000 + "x", "nested more than 150 deep"),
        ("x y", "'y' cannot stand here"),
        ("x } y", "'y' cannot stand here"),
        ("matrix[x,y", "'}' cannot stand here"),
        ("x" * 20000, "longer than 16384 characters"),
    ],
)
def test_what_is_wrong_is_said_in_one_line(body: str, message: str) -> None:
    said = refusal(body)
    assert message in said
    assert said.startswith("--expr")
    assert "\n" not in said


def test_an_error_shows_the_place() -> None:
    with pytest.raises(ParseError) as refused:
        iteration("matrix.\\(x,y){\n  x + foo }", arrays=[MATRIX])
    assert str(refused.value).startswith("--expr:2:7: unknown variable foo")
    assert refused.value.context == "  x + foo }\n      ^"


@pytest.mark.parametrize(
    ("functions", "message"),
    [
        (["g(x)=g(x)"], "--func:1:6: function g calls itself"),
        (["g(x)=h(x)", "h(x)=g(x)"], "calls itself"),
        (["g(x,z)=x"], "function g takes 2 arguments, and 1 are given"),
        (["g(x)=y"], "unknown variable y"),
        (["g(x,x)=x"], "x is named twice"),
        (["g(x)=1", "g(x)=2"], "g is declared twice"),
        (["float(x)=1"], "float is a word of OpenCL C"),
        (["g(x"], "the end of the text cannot stand here"),
        (["g(x)=x*1.5", "h(x)=x+"], "--func:1:8: the end of the text cannot stand here"),
        (["g(x)=x", "unused(x)=y"], "--func:1:11: unknown variable y"),
    ],
)
def test_bad_functions(functions: list[str], message: str) -> None:
    assert message in refusal("g(x)", MATRIX, *functions)


def test_functions_that_call_others_twice_do_not_take_forever() -> None:
    doubling = ["f0(x)=0*x", *(f"f{n}(x)=f{n - 1}(0)+f{n - 1}(0)" for n in range(1, 40))]
    assert "more than 10000 calls to inline" in refusal("f39(1)", MATRIX, *doubling)
    growing = ["f0(x)=x+x", *(f"f{n}(x)=f{n - 1}(x)+f{n - 1}(x)" for n in range(1, 40))]
    assert "more than 10000 " in refusal("f39(x)", MATRIX, *growing)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (r"m.\(x,y){x}", "array m is not declared"),
        (r"matrix.\(x){x}", "array matrix has 2 dimensions, and the iteration 1 variables"),
        (r"matrix.\(x,x){x}", "variable x has the name of something else"),
        (r"matrix.\(x,matrix){x}", "variable matrix has the name of something else"),
        (r"matrix.\(x,int){x}", "variable int has the name of something else"),
        (r"matrix.\(x,__y){x}", "variable __y has the name of something else"),
        (r"matrix(x,y){x}", "'(' cannot stand here"),
        ("", "the end of the text cannot stand here"),
    ],
)
def test_bad_iterations(text: str, message: str) -> None:
    with pytest.raises(InputError, match=r".*") as refused:
        iteration(text, arrays=[MATRIX])
    assert message in str(refused.value)


@pytest.mark.parametrize("shape", [(), (0,), (4, 0), (2,) * 9, (1 << 20, 1 << 20)])
def test_bad_shapes(shape: tuple[int, ...]) -> None:
    with pytest.raises(InputError, match="array m"):
        Array("m", Type.INT, shape)


def test_names_in_the_kernel_do_not_clash() -> None:
    found = iteration(r"result.\(pos){ result[pos] }", arrays=[Array("result", Type.INT, (8,))])
    assert "result_[pos_] = result[pos];" in found.opencl


def test_reads_outside_of_an_array_are_told() -> None:
    assert list(outside_reads(parsed("matrix[x, y]"))) == []
    (told,) = outside_reads(parsed("matrix[x, y + 1] + matrix[x, y + 1]"))
    assert told == "a read of matrix may reach elements 1..16777216, and it has 0..16777215"


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("(0 - 7) / 2", -3),
        ("(0 - 7) % 2", -1),
        ("7 / (0-2)", -3),
        ("7 % (0-2)", 1),
        ("0.1f + 0.2f", float(np.float32(0.1) + np.float32(0.2))),
        ("16777216 + 1.0f", 16777216.0),
        ("1/2*3.0", 0.0),
        ("-(-2147483647)", 2147483647),
    ],
)
def test_constants_are_folded_as_opencl_computes_them(body: str, expected: float) -> None:
    found = parsed(body).body
    assert found.head == expected
    assert type(found.head) is type(expected)


VARIABLES = [Expression(IterationVariable("x", 6)), Expression(IterationVariable("y", 5))]
DIVISORS = st.one_of(st.integers(1, 9), st.integers(-9, -1)).map(literal)
INTEGERS = st.recursive(
    st.sampled_from(VARIABLES) | st.integers(-9, 9).map(literal),
    lambda inner: st.one_of(
        st.tuples(st.sampled_from("+-*"), inner, inner).map(lambda t: operation(*t)),
        st.tuples(st.sampled_from("/%"), inner, DIVISORS).map(lambda t: operation(*t)),
        inner.map(lambda one: operation("-", one)),
    ),
    max_leaves=8,
)


def evaluated(body: Expression) -> np.ndarray:
    return reference.evaluate(Iteration(SMALL, ("x", "y"), body), {})


@given(INTEGERS)
def test_ranges_hold_every_value(body: Expression) -> None:
    least, most = values(body)
    if max(abs(least), abs(most)) < 2**31:
        found = evaluated(body)
        assert least <= found.min() <= found.max() <= most


@given(INTEGERS)
def test_what_is_written_reads_the_same(body: Expression) -> None:
    whole = Iteration(SMALL, ("x", "y"), body)
    again = iteration(str(whole), arrays=[SMALL])
    assert np.array_equal(evaluated(again.body), evaluated(body))
    assert again.opencl == whole.opencl


@given(INTEGERS, INTEGERS, st.sampled_from([4, 40, 119, 400]))
def test_classes_hold_at_all_addresses(first: Expression, second: Expression, interval_bytes: int) -> None:
    read = Expression(SMALL, (first, second))
    found = Iteration(SMALL, ("x", "y"), read)
    least, most = values(linear_index(read))
    if max(abs(least), abs(most)) >= 2**31:
        return
    indices = evaluated(linear_index(read)).astype(np.int64)
    rows, columns = evaluated(first), evaluated(second)
    assert np.array_equal(indices, rows.astype(np.int64) * 5 + columns)
    span = (indices.max() - indices.min() + 1) * 4
    numbers = np.arange(30).reshape(6, 5)
    match classify(read, found, interval_bytes):
        case AccessKind.CONSTANT:
            assert indices.min() == indices.max()
        case AccessKind.INTERVAL:
            assert span <= interval_bytes
        case AccessKind.CONTINUOUS:
            assert len(np.unique(indices - numbers)) == 1


@given(st.integers(0, 10**6))
def test_samples_read_the_same_after_they_are_written(seed: int) -> None:
    array = Array("matrix", Type.FLOAT, (8, 4))
    sample = next(iterations(array, kind="random", seed=seed))
    again = iteration(str(sample), arrays=[array])
    assert again.opencl == sample.opencl
    data = {"matrix": np.arange(32, dtype=np.float32).reshape(8, 4)}
    assert np.array_equal(reference.evaluate(again, data), reference.evaluate(sample, data), equal_nan=True)


def test_results_by_numpy_against_loops_over_elements() -> None:
    cube = Array("m", Type.FLOAT, (2, 3, 4))
    data = {"m": np.arange(24, dtype=np.float32).reshape(2, 3, 4) / 7}
    found = reference.evaluate(parsed("m[z % 2, y, x] * x - y / 2 + z", cube), data)
    for x, y, z in np.ndindex(2, 3, 4):
        expected = data["m"][z % 2, y, x] * np.float32(x) - np.float32(y // 2) + np.float32(z)
        assert found[x, y, z] == expected


def test_samples_have_the_leaves_and_operators_they_should() -> None:
    array = Array("matrix", Type.FLOAT, (8, 4))
    for kind, signs in (("random", set("+-*/")), ("realistic", set("+-*"))):
        drawn = iterations(array, kind=kind, seed=3)  # type: ignore[arg-type]
        nodes = [node for _ in range(400) for node in next(drawn).body.walk()]
        operators = {node.head for node in nodes if isinstance(node.head, str)} - {"%"}
        assert operators == signs
        assert max(node.height for node in nodes) <= 3 + 1 + 2  # and what a subscript adds
    for seed in (1, 2):
        first, second = (next(iterations(array, kind="random", seed=seed)) for _ in range(2))
        assert first == second


def test_samples_divide_integers_and_never_by_zero() -> None:
    array = Array("matrix", Type.FLOAT, (8, 4))
    drawn = list(islice(iterations(array, kind="random", seed=1, depth=5), 1500))
    divided = [node for sample in drawn for node in sample.body.walk() if is_integer_division(node)]
    assert len(divided) >= 5
    for sample in drawn:
        reference.evaluate(sample, {"matrix": np.ones((8, 4), np.float32)})  # would refuse it


def is_integer_division(node: Expression) -> bool:
    return node.head == "/" and node.type is Type.INT
