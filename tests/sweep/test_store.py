"""The table: nothing that is in it changes, several may write, and a file of anybody is read with care."""

import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from makespan.host.errors import InputError
from makespan.many.sweep.job import FailureCause, JobAnswer, JobFailure, JobOutcome, SweepJob
from makespan.many.sweep.store import AnswerStore, open_store


def answer(key: str, lower: int, upper: int, **question: Any) -> JobOutcome:
    status = "exact" if lower == upper else "bounded"
    document = {"status": status, "lower": lower, "upper": upper, "seconds": 0.5}
    return JobOutcome(SweepJob(question, key), JobAnswer(document, f"digest of {key}"))


def keys(store: AnswerStore) -> tuple[set[str], set[str]]:
    return store.answered(), store.failed()


def test_what_is_kept_is_there_when_the_file_is_opened_again(tmp_path: Path) -> None:
    path, late = tmp_path / "a.sqlite", JobFailure(FailureCause.TIME, "too late", 3.0)
    with open_store(path, create=True) as store:
        assert (
            store.plan([SweepJob({"warps": 1}, "k1"), SweepJob({"warps": 2}, "k2"), SweepJob({"warps": 3}, "k3")]) == 0
        )
        assert store.keep(answer("k1", 3, 5, warps=1)) is None
        store.keep(JobOutcome(SweepJob({"warps": 2}, "k2"), None, (JobFailure(FailureCause.DIED, "died", 1.0), late)))
    with open_store(path) as store:
        assert keys(store) == ({"k1"}, {"k2"})
        first, second, third = store.asked()
        assert (first.question, first.document, first.digest) == (
            {"warps": 1},
            {"status": "bounded", "lower": 3, "upper": 5, "seconds": 0.5},
            "digest of k1",
        )
        assert (second.document, second.failure, second.attempts) == (None, late, 2)
        assert (third.document, third.failure, third.attempts) == (None, None, 0)


def test_an_answer_is_never_overwritten_and_a_contradiction_is_kept_beside_it(tmp_path: Path) -> None:
    with open_store(tmp_path / "a.sqlite", create=True) as store:
        store.plan([SweepJob({}, "k")])
        assert store.keep(answer("k", 3, 5)) is None
        assert store.keep(answer("k", 5, 5)) is None  # another answer to the same question, as true as the first
        found = store.keep(answer("k", 6, 9))
        assert found is not None
        assert str(found) == "key k: 3..5 cycles were kept, and now it is 6..9; both are in the table"
        assert store.keep(answer("k", 1, 2)) is not None
        assert store.contradicted() == {"k"}
        (asked,) = store.asked()
        assert asked.document is not None
        assert (asked.document["lower"], asked.document["upper"]) == (3, 5)
    with closing(sqlite3.connect(tmp_path / "a.sqlite")) as connection:
        for change in ("UPDATE result SET upper = 4", "DELETE FROM result"):
            with pytest.raises(sqlite3.IntegrityError, match="results are never"):
                connection.execute(change)


def test_a_question_whose_files_have_changed_has_its_new_answer(tmp_path: Path) -> None:
    with open_store(tmp_path / "a.sqlite", create=True) as store:
        store.plan([SweepJob({"source": "a.ptx"}, "old")])
        store.keep(answer("old", 3, 3, source="a.ptx"))
        assert store.plan([SweepJob({"source": "a.ptx"}, "new")]) == 1
        assert [(asked.key, asked.document) for asked in store.asked()] == [("new", None)]
        assert store.answered() == {"old"}


def test_a_bound_that_no_table_holds_is_a_failure(tmp_path: Path) -> None:
    with open_store(tmp_path / "a.sqlite", create=True) as store:
        store.plan([SweepJob({}, "k")])
        store.keep(answer("k", 1, 2**63))
        assert keys(store) == (set(), {"k"})


WRITER = """
import sys
from pathlib import Path
from makespan.many.sweep.job import JobAnswer, JobOutcome, SweepJob
from makespan.many.sweep.store import open_store
with open_store(Path(sys.argv[1]), create=True) as store:
    for at in range(16):
        key = f"{sys.argv[2]}{at}" if at % 2 else f"both{at}"
        document = {"status": "exact", "lower": at, "upper": at, "seconds": 0.0}
        store.plan([SweepJob({"at": key}, key)])
        store.keep(JobOutcome(SweepJob({"at": key}, key), JobAnswer(document, "")))
"""


def test_two_processes_that_write_at_once_lose_nothing(tmp_path: Path) -> None:
    path = tmp_path / "a.sqlite"
    writers = [subprocess.Popen([sys.executable, "-c", WRITER, str(path), name]) for name in ("x", "y")]
    assert [writer.wait() for writer in writers] == [0, 0]
    odd, even = range(1, 16, 2), range(0, 16, 2)
    with open_store(path) as store:
        assert store.answered() == {f"{name}{at}" for name in "xy" for at in odd} | {f"both{at}" for at in even}
        assert all(asked.document is not None for asked in store.asked())


def test_a_file_of_something_else_is_refused_and_left_as_it_is(tmp_path: Path) -> None:
    def database(*statements: str) -> bytes:
        with closing(sqlite3.connect(tmp_path / "made.sqlite")) as connection, connection:
            for statement in statements:
                connection.execute(statement)
        return (tmp_path / "made.sqlite").read_bytes()

    with open_store(tmp_path / "made.sqlite", create=True):
        pass
    ours = (tmp_path / "made.sqlite").read_bytes()
    planted = database("CREATE TRIGGER t AFTER INSERT ON asked BEGIN DELETE FROM failure; END")
    newer = database("PRAGMA user_version = 7")
    (tmp_path / "made.sqlite").unlink()
    foreign = database("CREATE TABLE t (a)")
    cases = {
        b"no database at all, but a text that is long enough to be one" * 20: "not a table of makespan sweep",
        foreign: "a SQLite file of something else",
        planted: "its tables are not those of makespan sweep",
        newer: "version 7 of the table",
        ours[: len(ours) // 2]: "table",
    }
    for at, (content, message) in enumerate(cases.items()):
        path = tmp_path / f"{at}.sqlite"
        path.write_bytes(content)
        for create in (False, True):
            with pytest.raises(InputError, match=message) as refusal, open_store(path, create=create) as store:
                store.answered()
            assert str(refusal.value).startswith(str(path))
        assert path.read_bytes() == content
    with pytest.raises(InputError, match="there is no such table"), open_store(tmp_path / "none.sqlite"):
        pass


def test_a_table_that_another_program_holds_is_not_called_a_wrong_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("makespan.many.sweep.store.SECONDS_FOR_OTHERS", 0.0)
    with closing(sqlite3.connect(tmp_path / "a.sqlite")) as other:
        other.execute("BEGIN EXCLUSIVE")
        with (
            pytest.raises(InputError, match=r"a.sqlite: cannot open the table: database is locked$"),
            open_store(tmp_path / "a.sqlite", create=True),
        ):
            pass


@pytest.mark.parametrize("value", ["[1]", "{", "3", "[" * 100_000, "1e999"])
def test_a_value_that_nobody_wrote_is_one_line(value: str, tmp_path: Path) -> None:
    path = tmp_path / "a.sqlite"
    with open_store(path, create=True):
        pass
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("INSERT INTO asked VALUES (?, 'k')", (value,))
    with open_store(path) as store, pytest.raises(InputError, match="cannot read the table"):
        list(store.asked())


def test_what_sqlite_says_of_a_damaged_name_is_one_line(tmp_path: Path) -> None:
    path = tmp_path / "a.sqlite"
    with open_store(path, create=True):
        pass
    path.write_bytes(path.read_bytes().replace(b"tableresult", b"table\xb4\xb4sult", 1))
    with pytest.raises(InputError, match=f"^{path}: "), open_store(path):
        pass


def test_a_value_that_no_file_can_hold_is_refused_and_a_letter_of_two_halves_is_none(tmp_path: Path) -> None:
    path = tmp_path / "a.sqlite"
    with open_store(path, create=True) as store:
        store.plan([SweepJob({"string": "\U0001f600"}, "k")])
    with open_store(path) as store:
        assert [asked.question for asked in store.asked()] == [{"string": "\U0001f600"}]
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("INSERT INTO asked VALUES (?, 'k')", ('{"string": "\\ud800"}',))
        connection.commit()
    with (
        open_store(path) as store,
        pytest.raises(InputError, match=r"cannot read the table: .* surrogates not allowed"),
    ):
        list(store.asked())
