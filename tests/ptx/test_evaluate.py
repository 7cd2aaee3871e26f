"""What instructions compute."""

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from makespan.kernels.flow import ParameterValue
from makespan.kernels.ptx.effects import PtxAccess
from makespan.kernels.ptx.evaluate import computation, literal
from makespan.kernels.ptx.module import PtxInstruction

WORDS = st.one_of(
    st.sampled_from([0, 1, 2, 31, 32, 63, 64, 2**15, 2**16, 2**31 - 1, 2**31, 2**32 - 1, 2**63, 2**64 - 1]),
    st.integers(0, 2**64 - 1),
)


def compute(opcode: str, *values: object, results: str = "d") -> tuple[object, ...]:
    """What an instruction computes of these values: numbers, arrays, or None for unknown ones."""
    names = [f"r{number}" for number in range(len(values))]
    found = computation(PtxInstruction(opcode, (results, *names)), PtxAccess((results,), (), {}), {})
    assert found is not None, f"{opcode} has no computation"
    given = {name: value for name, value in zip(names, values, strict=True) if value is not None}
    return found.apply(given)  # type: ignore[arg-type]


def signed(value: int, width: int) -> int:
    value %= 2**width
    return value - 2**width if value >= 2 ** (width - 1) else value


def truncated(a: int, b: int) -> int:
    return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)


ARITHMETIC: dict[str, Callable[[int, int], int]] = {
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "mul.lo": lambda a, b: a * b,
    "min": min,
    "max": max,
    "div": truncated,
    "rem": lambda a, b: a - truncated(a, b) * b,
}


@pytest.mark.parametrize("kind", ["u16", "s16", "u32", "s32", "u64", "s64"])
@pytest.mark.parametrize("name", ARITHMETIC)
@given(a=WORDS, b=WORDS)
@settings(max_examples=40)
def test_arithmetic_wraps_around(name: str, kind: str, a: int, b: int) -> None:
    width = int(kind[1:])
    x, y = (signed(v, width) if kind[0] == "s" else v % 2**width for v in (a, b))
    overflows = kind[0] == "s" and y == -1 and x == -(2 ** (width - 1))
    if name in ("div", "rem") and (y == 0 or overflows):
        assert compute(f"{name}.{kind}", a, b) == (None,)
    else:
        assert compute(f"{name}.{kind}", a, b) == (ARITHMETIC[name](x, y) % 2**width,)


@pytest.mark.parametrize("kind", ["u16", "s16", "u32", "s32", "u64", "s64"])
@given(a=WORDS, b=WORDS, c=WORDS)
@settings(max_examples=40)
def test_products(kind: str, a: int, b: int, c: int) -> None:
    width = int(kind[1:])
    x, y = (signed(v, width) if kind[0] == "s" else v % 2**width for v in (a, b))
    assert compute(f"mul.hi.{kind}", a, b) == ((x * y >> width) % 2**width,)
    assert compute(f"mad.lo.{kind}", a, b, c) == ((x * y + c) % 2**width,)
    if width < 64:
        assert compute(f"mul.wide.{kind}", a, b) == (x * y % 2 ** (2 * width),)
        assert compute(f"mad.wide.{kind}", a, b, c) == ((x * y + c) % 2 ** (2 * width),)


@pytest.mark.parametrize("kind", ["b16", "u16", "s16", "b32", "u32", "s32", "b64", "u64", "s64"])
@given(a=WORDS, by=st.one_of(st.integers(0, 70), WORDS))
@settings(max_examples=40)
def test_shifts_are_clamped(kind: str, a: int, by: int) -> None:
    width, amount = int(kind[1:]), min(by % 2**32, 100)
    x = signed(a, width) if kind[0] == "s" else a % 2**width
    assert compute(f"shr.{kind}", a, by) == ((x >> amount) % 2**width,)
    if kind[0] == "b":
        assert compute(f"shl.{kind}", a, by) == ((x << amount) % 2**width,)


TESTS: dict[str, Callable[[int, int], bool]] = {
    "eq": lambda a, b: a == b,
    "ne": lambda a, b: a != b,
    "lt": lambda a, b: a < b,
    "le": lambda a, b: a <= b,
    "gt": lambda a, b: a > b,
    "ge": lambda a, b: a >= b,
}


@pytest.mark.parametrize("kind", ["u16", "s16", "u32", "s32", "u64", "s64"])
@pytest.mark.parametrize("test", TESTS)
@given(a=WORDS, b=WORDS, c=st.integers(0, 1))
@settings(max_examples=30)
def test_comparisons_go_by_the_type_of_the_opcode(test: str, kind: str, a: int, b: int, c: int) -> None:
    width = int(kind[1:])
    x, y = (signed(v, width) if kind[0] == "s" else v % 2**width for v in (a, b))
    truth = int(TESTS[test](x, y))
    assert compute(f"setp.{test}.{kind}", a, b, results="p|q") == (truth, 1 - truth)
    assert compute(f"setp.{test}.and.{kind}", a, b, c, results="p|q") == (truth & c, (1 - truth) & c)
    assert compute(f"setp.{test}.or.{kind}", a, b, c, results="p|q") == (truth | c, (1 - truth) | c)
    assert compute(f"set.{test}.u32.{kind}", a, b) == (truth * (2**32 - 1),)


def test_unsigned_and_signed_comparisons_differ() -> None:
    assert compute("setp.lt.s32", 2**32 - 1, 0)[0] == 1
    assert compute("setp.lt.u32", 2**32 - 1, 0)[0] == 0
    assert compute("setp.lo.u32", 1, 2)[0] == 1


ONE, TWO, NAN, SUBNORMAL = 0x3F800000, 0x40000000, 0x7FC00000, 1


@pytest.mark.parametrize(
    ("test", "a", "b", "expected"),
    [
        ("lt", ONE, TWO, 1),
        ("lt", TWO, 0x80000000 | TWO, 0),
        ("ne", ONE, NAN, 0),
        ("neu", ONE, NAN, 1),
        ("ltu", ONE, NAN, 1),
        ("nan", ONE, NAN, 1),
        ("num", ONE, NAN, 0),
        ("eq", 0, 0x80000000, 1),
        ("lt", 0, SUBNORMAL, None),
        ("lt.ftz", ONE, TWO, 1),
    ],
)
def test_comparisons_of_floats(test: str, a: int, b: int, expected: int | None) -> None:
    assert compute(f"setp.{test}.f32", a, b)[0] == expected


@pytest.mark.parametrize(
    ("opcode", "values", "expected"),
    [
        ("and.b32", (0xF0F0, 0xFF00), 0xF000),
        ("not.b16", (1,), 0xFFFE),
        ("xor.pred", (1, 1), 0),
        ("and.pred", (0, None), 0),
        ("or.pred", (None, 1), 1),
        ("or.pred", (None, 0), None),
        ("and.b32", (None, 0), 0),
        ("xor.pred", (None, 1), None),
        ("selp.b32", (5, 6, 0), 6),
        ("selp.b32", (5, None, 1), 5),
        ("selp.b32", (5, 5, None), 5),
        ("selp.b32", (5, 6, None), None),
        ("setp.eq.or.u32", (None, 1, 1), 1),
        ("setp.eq.and.u32", (None, 1, 1), None),
        ("neg.s32", (1,), 2**32 - 1),
        ("abs.s32", (2**32 - 5,), 5),
        ("popc.b64", (2**64 - 1,), 64),
        ("clz.b32", (1,), 31),
        ("brev.b32", (1,), 2**31),
        ("bfe.u32", (0xABCD, 4, 8), 0xBC),
        ("bfe.s32", (0xABCD, 4, 8), 0xFFFFFFBC),
        ("bfe.s32", (0x80000000, 28, 8), 0xFFFFFFF8),
        ("bfe.u32", (0xFFFFFFFF, 0, 0), 0),
        ("bfe.u32", (0xFFFFFFFF, 40, 4), 0),
        ("bfi.b32", (0xFF, 0, 4, 8), 0xFF0),
        ("lop3.b32", (0xF0, 0xCC, 0xAA, 0x96), 0xF0 ^ 0xCC ^ 0xAA),
        ("lop3.b32", (5, 3, 9, 0xE8), 5 & 3 | 5 & 9 | 3 & 9),
        ("cvt.s64.s32", (2**32 - 1,), 2**64 - 1),
        ("cvt.u64.u32", (2**32 - 1,), 2**32 - 1),
        ("cvt.u32.u64", (2**40 + 7,), 7),
        ("cvt.u32.s8", (0x80,), 0xFFFFFF80),
        ("cvt.s16.u32", (0x8000,), 2**64 - 2**15),
        ("mul24.lo.u32", (0xFF000002, 3), 6),
        ("mul24.lo.s32", (0xFFFFFF, 3), 2**32 - 3),
        ("cnot.b32", (0,), 1),
    ],
)
def test_other_instructions(opcode: str, values: tuple[int | None, ...], expected: int | None) -> None:
    assert compute(opcode, *values)[0] == expected


@pytest.mark.parametrize(
    "opcode",
    [
        *("add.u32", "sub.s64", "mul.lo.u64", "mul.hi.s64", "mul.hi.u32", "mul.wide.s32", "mul.wide.u32", "min.s32"),
        *("max.u32", "shl.b64", "shr.s64", "shr.u32", "shr.s16", "and.b32", "xor.b64", "div.u32", "rem.s32"),
        *("setp.lt.s64", "setp.ge.u32", "set.ne.u32.s32", "cvt.s64.s32", "cvt.u16.u32", "cvt.s32.s8", "abs.s32"),
        *("neg.s64", "not.b32", "popc.b32", "mul24.lo.s32"),
    ],
)
@given(rows=st.lists(st.tuples(WORDS, WORDS), min_size=1, max_size=6))
@settings(max_examples=40)
def test_arrays_are_computed_like_numbers(opcode: str, rows: list[tuple[int, int]]) -> None:
    count = 1 if opcode.split(".")[0] in ("cvt", "abs", "neg", "not", "popc") else 2
    one_by_one = [compute(opcode, *row[:count])[0] for row in rows]
    columns = [np.array(column, dtype=np.uint64) for column in zip(*rows, strict=True)][:count]
    found = compute(opcode, *columns)[0]
    if None in one_by_one:
        assert found is None
    else:
        assert isinstance(found, np.ndarray)
        assert found.dtype == np.uint64
        assert found.tolist() == one_by_one


def test_arrays_and_numbers_mix() -> None:
    array = np.array([0, 5, 2**32 - 1], dtype=np.uint64)
    flags = np.array([1, 0, 0], dtype=np.uint64)
    found = [compute("sub.u32", 3, array), compute("shl.b32", 1, array), compute("selp.b32", 7, array, flags)]
    expected = [[3, 2**32 - 2, 4], [1, 32, 0], [7, 5, 2**32 - 1]]
    assert [np.asarray(value).tolist() for (value,) in found] == expected


def test_packing() -> None:
    pack = computation(PtxInstruction("mov.b64", ("d", "{a, b}")), PtxAccess(("d",), (), {}), {})
    unpack = computation(PtxInstruction("mov.b64", ("{a, _}", "d")), PtxAccess(("a", "_"), (), {}), {})
    assert pack is not None
    assert unpack is not None
    assert pack.apply({"a": 1, "b": 2}) == (2**33 + 1,)
    assert unpack.results == ("a", None)
    assert unpack.apply({"d": 2**33 + 1}) == (1, 2)


@pytest.mark.parametrize(
    "text",
    [
        "add.f32 a, b, c",
        "add.cc.u32 a, b, c",
        "addc.u32 a, b, c",
        "add.sat.s32 a, b, c",
        "ld.global.u32 a, [b]",
        "atom.global.add.u32 a, [b], c",
        "shfl.sync.down.b32 a, b, 1, 31, -1",
        "mov.u32 a, b+4",
        "mov.u32 v.x, b",
        "cvt.rn.f32.s32 a, b",
        "cvt.sat.u8.s32 a, b",
        "add.u32 a|b, c, d",
        "setp.lt.b32 p, a, b",
        "setp.lo.s32 p, a, b",
        "mov.u32 a, 1.0",
        "mov.f32 a, 1",
        "mov.f64 a, 0f3F800000",
        "add.u16x2 a, b, c",
        "ld.param.u64 a, [n]",
        "ld.param.u32 a, [n+4]",
        "ld.param.u32 a, [m]",
        "ld.param.v2.u16 {a, b}, [n]",
    ],
)
def test_what_is_not_understood_has_no_computation(text: str) -> None:
    opcode, _, operands = text.partition(" ")
    instruction = PtxInstruction(opcode, tuple(operands.split(", ")) if "{" not in operands else ("{a, b}", "[n]"))
    assert computation(instruction, PtxAccess((), (), {}), {"n": ParameterValue(1, 32)}) is None


@pytest.mark.parametrize(
    ("kind", "expected"), [("u32", 2**32 - 2), ("s32", 2**32 - 2), ("s16", 2**64 - 2), ("u8", 254)]
)
def test_loads_of_parameters(kind: str, expected: int) -> None:
    found = computation(
        PtxInstruction(f"ld.param.{kind}", ("a", "[n]")), PtxAccess((), (), {}), {"n": ParameterValue(2**32 - 2, 32)}
    )
    assert found is not None
    assert found.apply({})[0] in (expected, expected + 2**64 - 2**32)


def test_octal_numbers() -> None:
    assert literal("017", "u32") == 15
    assert literal("08", "u32") is None
    assert literal("0xFFU", "u32") == 255
