"""What breaks first, and how few SMs do, in the words of a terminal."""

from collections.abc import Iterator, Sequence
from fractions import Fraction
from itertools import groupby

from makespan.deadlines.fewest import FewestSms, TriedSizes
from makespan.deadlines.report.amounts import list_names
from makespan.deadlines.sensitivity import Margin
from makespan.model.units import shown_frequency, time_at_most


def fewest_line(fewest: FewestSms) -> str:
    """Return how many SMs do, and what is not proven with fewer."""
    found = fewest.found
    if fewest.partition is None:
        return _together(fewest)
    fewer = fewest.tried if found is None else fewest.tried[:-1]
    tried = "; ".join(
        f"{_ends(numbers)}: no proof for {list_names(names)}" for numbers, names in _alike(fewer, fewest.partition)
    )
    if found is None:
        return f"{fewest.partition}: no number of SMs up to {fewest.most} is proven to do ({tried or 'none is left'})"
    times = ", ".join(f"{name} {time_at_most(seconds)}" for name, seconds in found.seconds.items())
    first = f"{fewest.partition}: {found.sms[fewest.partition]} of up to {fewest.most} are proven to do ({times})"
    return f"{first}, and no fewer ({tried})" if tried else first


def _together(fewest: FewestSms) -> str:
    if not fewest.tried:
        return f"together: these are more than the {fewest.most} SMs of the GPU"
    (tried,) = fewest.tried
    count = sum(tried.sms.values())
    split = ", ".join(f"{name} {sms}" for name, sms in tried.sms.items())
    proven = f"no proof for {list_names(tried.unproven)}" if tried.unproven else "every deadline is proven"
    return f"together: {count} of {fewest.most} SMs, {split}: {proven}"


def _alike(tried: Sequence[TriedSizes], partition: str) -> Iterator[tuple[range, tuple[str, ...]]]:
    """Neighbouring numbers of SMs with which the same is not proven."""
    for names, group in groupby(tried, key=lambda one: one.unproven):
        several = tuple(group)
        yield range(several[0].sms[partition], several[-1].sms[partition] + 1), names


def _ends(numbers: range) -> str:
    return str(numbers[0]) if len(numbers) == 1 else f"{numbers[0]}..{numbers[-1]}"


def margin_line(margin: Margin, tick: Fraction) -> str:
    """Return one line: how far a quantity may go, and who is not in time beyond."""
    if margin.holds is None:
        return f"{margin.quantity}: not proven at any value that was looked at"
    way = "up" if margin.quantity.startswith("execution") else "down"
    reach = f"{margin.quantity}: proven {way} to {_value(margin.quantity, margin.holds, tick)}"
    if margin.fails is None:
        return f"{reach}, where the search ended"
    ground = "evidence against" if margin.refuted else "no proof for"
    return f"{reach}; beyond it {ground} {list_names(margin.breaks)}{_if_attained(margin)}"


def _if_attained(margin: Margin) -> str:
    return ", if execution times are attained" if margin.refuted and margin.supposes else ""


def _value(quantity: str, value: Fraction, tick: Fraction) -> str:
    """What is proven, rounded to the safe side."""
    if quantity == "clock":
        return shown_frequency(value)
    if quantity.startswith("period"):
        return time_at_most(value * tick)
    return f"{float(value):.3f} times"
