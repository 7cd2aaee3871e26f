"""An assessment in words."""

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from makespan.deadlines.report.text import margin_line, percent
from makespan.deadlines.sensitivity import Margin
from makespan.deadlines.verdict import ResourceLoad

NANOSECOND = Fraction(1, 10**9)


@pytest.mark.parametrize(
    ("margin", "line"),
    [
        (
            Margin("execution times of the kernels", Fraction(3, 2), Fraction(1501, 1000), ("a",), True),
            "execution times of the kernels: proven up to 1.500 times; beyond it evidence against a",
        ),
        (
            Margin("period of a", Fraction(2000), Fraction(1999), ("a", "b"), False),
            "period of a: proven down to 2 us; beyond it no proof for a, b",
        ),
        (
            Margin("period of a", Fraction(7), None, (), False),
            "period of a: proven down to 7 ns, where the search ended",
        ),
        (
            Margin("clock", Fraction(1_000_000_001), Fraction(10**9), ("a",), False),
            "clock: proven down to 1.00001 GHz; beyond it no proof for a",
        ),
        (
            Margin("execution time of a", None, Fraction(1, 1000), ("a",), True),
            "execution time of a: not proven at any value that was looked at",
        ),
    ],
)
def test_a_margin_is_said_on_the_safe_side(margin: Margin, line: str) -> None:
    assert margin_line(margin, NANOSECOND) == line


@given(st.integers(0, 10**9), st.integers(1, 10**9))
def test_a_load_is_shown_no_smaller_than_it_is_and_overload_as_such(numerator: int, denominator: int) -> None:
    shown = percent(ResourceLoad("gpu", numerator, denominator, Fraction(numerator, denominator)))
    number = Fraction(shown.split(" ")[0])
    assert number >= Fraction(100 * numerator, denominator)
    assert (number > 100) == shown.endswith("more than there is") == (numerator > denominator)
