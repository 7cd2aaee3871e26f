"""Tables of functions that rise in steps, against the functions."""

from hypothesis import given
from hypothesis import strategies as st

from makespan.deadlines.arrivals import StepFunction
from makespan.deadlines.workload import PeriodicWork, WindowWork

SMALL = st.integers(0, 12)


@st.composite
def recurring(draw: st.DrawFn) -> PeriodicWork:
    period = draw(st.integers(1, 10))
    rows = tuple(draw(st.lists(st.tuples(st.integers(1, 4), SMALL), min_size=1, max_size=3)))
    case = st.lists(
        st.builds(WindowWork, st.just(0), st.none() | SMALL, st.integers(-25, 12)),
        min_size=len(rows),
        max_size=len(rows),
    )
    cases = tuple(
        tuple(row._replace(work=work) for row, (work, _) in zip(each, rows, strict=True))
        for each in draw(st.lists(case, max_size=3))
    )
    return PeriodicWork(period, rows, (sum(work for work, _ in rows), draw(SMALL)), cases)


@given(recurring())
def test_the_table_is_the_function(work: PeriodicWork) -> None:
    stairs = work.stairs
    lengths = [*range(1, 5 * work.period + 60), 10**9]
    assert [stairs.at(length) for length in lengths] == [work.within(length) for length in lengths]


def test_a_rise_that_is_not_announced_is_missed() -> None:
    stairs = StepFunction.of(lambda length: int(length > 4) - (-length // 10), 10, 1, once=[], again=[1])
    assert [stairs.at(length) for length in (1, 5, 11)] == [1, 1, 3]
