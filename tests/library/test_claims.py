"""Lines of results: what is read, and what is refused with its line."""

import json
import re
from itertools import islice
from pathlib import Path

import pytest

from makespan.host.errors import InputError
from makespan.many.library import claims
from tests.schemas import published

ROOT = Path(__file__).parents[2]

GOOD = {"instance": "a", "digest": "0" * 64, "solver": "s", "version": "1", "seconds": 0.5, "lower": 3, "upper": 4}


def test_what_is_written_is_read(tmp_path: Path) -> None:
    path = tmp_path / "results.jsonl"
    path.write_text(json.dumps(GOOD | {"schedule": {"cycles": []}, "limit": 5, "evidence": "e"}) + "\n\n")
    (found,) = claims.read_claims(path)
    assert (found.where, found.who) == (f"{path}:1", "s 1")
    again = tmp_path / "again.jsonl"
    again.write_text(claims.claim_lines([found]))
    assert json.loads(again.read_text()) == GOOD | {"schedule": {"cycles": []}, "limit": 5.0, "evidence": "e"}
    assert claims.claim_lines(claims.read_claims(again)) == again.read_text()


def test_what_is_known_is_as_published() -> None:
    with (ROOT / "benchmarks" / "library" / claims.KNOWN).open() as known:
        for line in islice(known, 0, None, 10):
            published("claim-1").validate(json.loads(line))
    for wrong in ({"lower": 0}, {"lower": None, "upper": None}, {"bundle": "x"}, {"solver": ""}, {"more": 1}):
        assert not published("claim-1").is_valid(GOOD | wrong)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("{", "not a result: it is not JSON"),
        (json.dumps(GOOD | {"lower": 0}), "not a result: Expected `int` >= 1 - at `$.lower`"),
        (json.dumps(GOOD | {"upper": 10**101}), "not a result: a number of over 100 digits"),
        (json.dumps(GOOD | {"lower": 3.0}), "not a result: Expected `int | null`, got `float`"),
        (json.dumps(GOOD | {"lower": True}), "not a result: Expected `int | null`, got `bool`"),
        (json.dumps(GOOD | {"lower": None, "upper": None}), "not a result: neither lower nor upper is given"),
        (json.dumps(GOOD | {"lower": None, "schedule": {}}), "not a result: a schedule without the lower bound"),
        (json.dumps(GOOD | {"where": "x"}), "not a result: Object contains unknown field `where`"),
        (json.dumps(GOOD | {"\ud800": "x"}), "not a result: 'utf-8' codec can't encode character '\\ud800'"),
        (json.dumps(GOOD | {"more": "x"}), "not a result: Object contains unknown field `more`"),
        (
            json.dumps(GOOD | {"bundle": "../../etc/passwd"}),
            "not a result: Expected `str` matching regex '^[0-9a-f]{64}\\\\Z' - at `$.bundle`",
        ),
        (json.dumps(GOOD | {"solver": "a\nb"}), "not a result: solver has letters that do not print"),
        (json.dumps(GOOD | {"seconds": -1}), "not a result: Expected `float` >= 0.0 - at `$.seconds`"),
        (json.dumps(GOOD | {"limit": -1.0}), "not a result: Expected `float` >= 0.0 - at `$.limit`"),
        ('{"seconds": NaN}', "not a result: "),
        ("[" * 100_000, "not a result: nested too deeply"),
        ('{"lower": 1, "lower": 2}', "not a result: an object has a key twice"),
    ],
)
def test_a_line_that_is_no_result_is_refused_by_file_and_line(line: str, message: str, tmp_path: Path) -> None:
    path = tmp_path / "results.jsonl"
    path.write_text(f"{json.dumps(GOOD)}\n{line}\n")
    with pytest.raises(InputError, match=re.escape(f"{path}:2: {message}")):
        claims.read_claims(path)
