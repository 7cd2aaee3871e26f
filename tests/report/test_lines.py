"""Lines of text: wrapped, and in columns."""

from hypothesis import given
from hypothesis import strategies as st

from makespan.report.lines import align_columns, assumption_lines, wrap_line

WORDS = st.lists(st.text("abc:", min_size=1, max_size=12), min_size=1, max_size=30)


def test_columns_stand_below_each_other() -> None:
    assert align_columns([("a", "bb"), ("ccc", "d")], right=(1,)) == ["a    bb", "ccc   d"]


@given(WORDS, st.integers(40, 120), st.sampled_from(["", "  ", "  - "]))
def test_a_wrapped_line_fits_and_loses_no_word(words: list[str], width: int, begin: str) -> None:
    lines = wrap_line(begin + " ".join(words), width)
    assert " ".join(lines).split() == f"{begin}{' '.join(words)}".split()
    for line in lines:
        assert len(line) <= width or ": " in line.strip()  # what is held together may be longer than a line
    for line in lines[1:]:
        assert len(line) - len(line.lstrip()) == len(begin) - len(begin.lstrip()) + 2


def test_assumptions_have_a_head_or_are_not_there() -> None:
    assert assumption_lines([]) == []
    assert assumption_lines(["one", "two"]) == ["assumptions:", "  - one", "  - two"]
