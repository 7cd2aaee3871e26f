"""Times and frequencies with their units, exactly."""

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from makespan.host.errors import InputError
from makespan.model.units import (
    HERTZ,
    MAX_SECONDS,
    SECONDS,
    duration,
    frequency,
    shown_frequency,
    shown_time,
    ticks_down,
    ticks_up,
    time_at_least,
    time_at_most,
)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("200us", Fraction(1, 5000)),
        ("0.1 ms", Fraction(1, 10_000)),
        ("200 µs", Fraction(1, 5000)),
        ("200 μs", Fraction(1, 5000)),
        ("0ns", Fraction(0)),
        ("1ps", Fraction(1, 10**12)),
        ("3.000000000001s", Fraction(3_000_000_000_001, 10**12)),
        (" 1s ", Fraction(1)),
    ],
)
def test_a_time_is_read_exactly(text: str, seconds: Fraction) -> None:
    assert duration(text, "period") == seconds


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (5, 'period needs a unit: write a time such as "200us", not 5'),
        (0.5, 'period needs a unit: write a time such as "200us", not 0.5'),
        (True, 'period needs a unit: write a time such as "200us", not True'),
        (None, 'period needs a unit: write a time such as "200us", not None'),
        ("5", "period: '5' lacks its unit; one of ps, ns, us, ms, s"),
        ("5m", "period: '5m' has no unit that is a time's; one of ps, ns, us, ms, s"),
        (
            "5MS",
            "period: '5MS' has no unit that is a time's (the case of letters counts: ms); one of ps, ns, us, ms, s",
        ),
        ("5GHz", "period: '5GHz' has no unit that is a time's; one of ps, ns, us, ms, s"),
        ("-5us", "period must be a time such as \"200us\", not '-5us'"),
        ("1e3us", "period must be a time such as \"200us\", not '1e3us'"),
        (".5us", "period must be a time such as \"200us\", not '.5us'"),
        ("nan s", "period must be a time such as \"200us\", not 'nan s'"),
        ("inf s", "period must be a time such as \"200us\", not 'inf s'"),
        ("", "period must be a time such as \"200us\", not ''"),
        ("1000000001s", "period: '1000000001s' is too large"),
    ],
)
def test_what_is_no_time_is_refused(value: object, message: str) -> None:
    with pytest.raises(InputError) as caught:
        duration(value, "period")
    assert str(caught.value) == message


@pytest.mark.parametrize("text", ["9" * 31 + "s", "9" * 10_000 + "s", "0." + "0" * 40 + "1s", "\u0661us"])
def test_long_and_foreign_numbers_are_refused(text: str) -> None:
    with pytest.raises(InputError, match="period must be a time"):
        duration(text, "period")


def test_a_frequency_is_read_exactly() -> None:
    assert frequency("1.4GHz", "clock") == 1_400_000_000
    assert frequency("1350 MHz", "clock") == 1_350_000_000


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ("0GHz", "clock must be more than zero, not '0GHz'"),
        (
            "1400mhz",
            "clock: '1400mhz' has no unit that is a frequency's (the case of letters counts: MHz);"
            " one of Hz, kHz, MHz, GHz",
        ),
        ("1.4", "clock: '1.4' lacks its unit; one of Hz, kHz, MHz, GHz"),
        ("1us", "clock: '1us' has no unit that is a frequency's; one of Hz, kHz, MHz, GHz"),
        ("1001GHz", "clock: '1001GHz' is too large"),
        (1.4, 'clock needs a unit: write a frequency such as "1.4GHz", not 1.4'),
    ],
)
def test_what_is_no_frequency_is_refused(value: object, message: str) -> None:
    with pytest.raises(InputError) as caught:
        frequency(value, "clock")
    assert str(caught.value) == message


times = st.fractions(min_value=0, max_value=MAX_SECONDS)
ticks = st.fractions(min_value=Fraction(1, 10**15), max_value=1)


@given(times, ticks)
def test_ticks_round_to_the_safe_side_and_by_less_than_one(seconds: Fraction, tick: Fraction) -> None:
    assert 0 <= ticks_up(seconds, tick) * tick - seconds < tick
    assert 0 <= seconds - ticks_down(seconds, tick) * tick < tick


@given(st.integers(0, 10**6), st.sampled_from(list(SECONDS)))
def test_what_is_shown_is_read_again(number: int, unit: str) -> None:
    seconds = number * SECONDS[unit]
    if seconds <= MAX_SECONDS:
        assert duration(shown_time(seconds), "it") == seconds


def test_frequencies_are_shown_in_the_largest_unit_that_fits() -> None:
    assert shown_frequency(Fraction(1_350_000_000)) == "1.35 GHz"
    assert shown_frequency(Fraction(999_000)) == "999 kHz"


@given(st.fractions(min_value=1, max_value=10**12))
def test_a_clock_is_shown_no_slower_than_it_must_be(hertz: Fraction) -> None:
    number, unit = shown_frequency(hertz).split()
    assert hertz <= Fraction(number) * HERTZ[unit] <= hertz * (1 + Fraction(1, 10**5))


def test_what_is_nearly_a_unit_is_shown_in_it() -> None:
    assert shown_time(Fraction(1, 1000) - Fraction(1, 10**12)) == "1 ms"


@given(st.fractions(min_value=Fraction(1, 10**12), max_value=10**9))
def test_a_bound_is_shown_no_smaller_and_what_is_left_no_larger_than_it_is(seconds: Fraction) -> None:
    number, unit = time_at_most(seconds).split()
    assert seconds <= Fraction(number) * SECONDS[unit] <= seconds * (1 + Fraction(1, 10**5))
    number, unit = time_at_least(seconds).split()
    assert seconds >= Fraction(number) * SECONDS[unit] >= seconds * (1 - Fraction(1, 10**5))
    number, unit = time_at_least(-seconds).split()
    assert Fraction(number) * SECONDS[unit] <= -seconds
