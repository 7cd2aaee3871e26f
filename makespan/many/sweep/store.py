"""The table of a sweep, a SQLite file: answers that are never overwritten, failed attempts, and what was asked.

A file may come from anybody: its schema must be ours to the letter, its values are read by type, and what is in it is
JSON. Every answer is a transaction of its own, so that a process may die at any moment, and several may write at once.
"""

import json
import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

from makespan.host.errors import InputError
from makespan.host.text_file import is_file
from makespan.many.sweep.job import FailureCause, JobAnswer, JobFailure, JobOutcome, SweepJob
from makespan.version import THEORY

APPLICATION, VERSION = 0x4D4B5350, 1
"""`MKSP`, as `file` shows it, and the version of the schema."""

MAX_VALUE_BYTES = 256 * 2**20
_MOST_CYCLES = 2**63 - 1
SECONDS_FOR_OTHERS = 60.0
"""How long a transaction waits for that of another process."""
_OF_THE_PLACE = sqlite3.SQLITE_FULL, sqlite3.SQLITE_READONLY, sqlite3.SQLITE_BUSY, sqlite3.SQLITE_CANTOPEN
"""Errors that say nothing about the file."""

_SCHEMA = {
    "result": """CREATE TABLE result (
        key TEXT PRIMARY KEY NOT NULL,
        question TEXT NOT NULL,
        status TEXT NOT NULL,
        lower INTEGER NOT NULL,
        upper INTEGER NOT NULL CHECK (lower <= upper),
        seconds REAL NOT NULL,
        digest TEXT NOT NULL,
        document TEXT NOT NULL,
        theory INTEGER NOT NULL,
        finished TEXT NOT NULL
    ) WITHOUT ROWID""",
    "failure": """CREATE TABLE failure (
        key TEXT NOT NULL,
        attempt INTEGER NOT NULL,
        cause TEXT NOT NULL,
        reason TEXT NOT NULL,
        seconds REAL NOT NULL,
        finished TEXT NOT NULL,
        PRIMARY KEY (key, attempt)
    ) WITHOUT ROWID""",
    "contradiction": """CREATE TABLE contradiction (
        number INTEGER PRIMARY KEY,
        key TEXT NOT NULL,
        document TEXT NOT NULL,
        finished TEXT NOT NULL
    )""",
    "asked": """CREATE TABLE asked (
        question TEXT PRIMARY KEY NOT NULL,
        key TEXT NOT NULL
    ) WITHOUT ROWID""",
    "results_are_not_changed": """CREATE TRIGGER results_are_not_changed BEFORE UPDATE ON result
        BEGIN SELECT RAISE(ABORT, 'results are never changed'); END""",
    "results_are_not_lost": """CREATE TRIGGER results_are_not_lost BEFORE DELETE ON result
        BEGIN SELECT RAISE(ABORT, 'results are never deleted'); END""",
}


class AnswerContradiction(NamedTuple):
    """Two answers to one question that exclude each other; both are in the table."""

    key: str
    kept: tuple[int, int]
    found: tuple[int, int]

    def __str__(self) -> str:
        kept, found = (f"{lower}..{upper}" for lower, upper in (self.kept, self.found))
        return f"key {self.key}: {kept} cycles were kept, and now it is {found}; both are in the table"


class StoredQuestion(NamedTuple):
    """A stored question: its key, and its answer or the last failed attempt and how many there were."""

    question: dict[str, Any]
    key: str
    document: dict[str, Any] | None
    digest: str | None
    failure: JobFailure | None
    attempts: int


class AnswerStore:
    """An open table of answers; one thread uses it, and closes it."""

    def __init__(self, connection: sqlite3.Connection, path: Path) -> None:
        self._connection, self._path = connection, path

    def close(self) -> None:
        """Leave the file; everything that was kept is in it."""
        self._connection.close()

    def plan(self, jobs: Iterable[SweepJob]) -> int:
        """Store what is asked; return how many questions had another key before: a file or the theory has changed."""
        rows = [(_text(job.question), job.key) for job in jobs]
        with self._transaction():
            before = dict(self._connection.execute("SELECT question, key FROM asked"))
            self._connection.executemany("INSERT OR REPLACE INTO asked VALUES (?, ?)", rows)
        return sum(before.get(question, key) != key for question, key in rows)

    def answered(self) -> set[str]:
        """Return the keys of all answers."""
        with self._complaints():
            return {key for (key,) in self._connection.execute("SELECT key FROM result")}

    def failed(self) -> set[str]:
        """Return the keys of all questions that have failed attempts and no answer."""
        with self._complaints():
            rows = self._connection.execute("SELECT DISTINCT key FROM failure")
            return {key for (key,) in rows} - self.answered()

    def keep(self, outcome: JobOutcome) -> AnswerContradiction | None:
        """Store the outcome of a job, in one transaction; an answer that is known already stays as it is.

        Raises:
            InputError: the file cannot be written.
        """
        job, found, failures = outcome.job, outcome.found, list(outcome.failures)
        # SQLite holds whole numbers of 64 bits.
        is_too_large = found is not None and found.document["upper"] > _MOST_CYCLES
        if is_too_large:
            failures.append(
                JobFailure(FailureCause.REFUSED, f"a bound of more than {_MOST_CYCLES} cycles: no table holds it", 0.0)
            )
        with self._transaction():
            for failure in failures:
                self._fail(job.key, failure)
            return None if found is None or is_too_large else self._answer(job, found)

    def _answer(self, job: SweepJob, found: JobAnswer) -> AnswerContradiction | None:
        document = found.document
        lower, upper = document["lower"], document["upper"]
        known = self._connection.execute("SELECT lower, upper FROM result WHERE key = ?", (job.key,)).fetchone()
        if known is None:  # the first answer stays, so that a table means the same for ever
            said = (document["status"], lower, upper, document["seconds"], found.digest, _text(document))
            row = (job.key, _text(job.question), *said, THEORY, _now())
            self._connection.execute("INSERT INTO result VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", row)
            return None
        # Two true intervals of one worst case overlap; if they do not, one proof is wrong.
        if max(lower, known[0]) <= min(upper, known[1]):
            return None
        second = (None, job.key, _text(document), _now())
        self._connection.execute("INSERT INTO contradiction VALUES (?, ?, ?, ?)", second)
        return AnswerContradiction(job.key, known, (lower, upper))

    def _fail(self, key: str, failure: JobFailure) -> None:
        count = "(SELECT 1 + coalesce(max(attempt), 0) FROM failure WHERE key = ?)"
        row = (key, key, failure.cause, failure.reason, failure.seconds, _now())
        self._connection.execute(f"INSERT INTO failure VALUES (?, {count}, ?, ?, ?, ?)", row)  # noqa: S608 - of ours

    def contradicted(self) -> set[str]:
        """Return the keys of answers that cannot be true together with another one that came."""
        with self._complaints():
            return {key for (key,) in self._connection.execute("SELECT key FROM contradiction")}

    def asked(self) -> Iterator[StoredQuestion]:
        """Yield everything that was asked, with what is known of it.

        Raises:
            InputError: a value that is none of ours.
        """
        query = """SELECT a.question, a.key, r.document, r.digest, f.cause, f.reason, f.seconds, coalesce(f.attempt, 0)
            FROM asked a LEFT JOIN result r ON r.key = a.key LEFT JOIN failure f
            ON f.key = a.key AND f.attempt = (SELECT max(attempt) FROM failure WHERE key = a.key) ORDER BY a.question"""
        with self._complaints():
            for question, key, document, digest, cause, reason, seconds, attempts in self._connection.execute(query):
                failure = None if cause is None else JobFailure(cause, str(reason), float(seconds))
                known = None if document is None else _table(document)
                yield StoredQuestion(_table(question), str(key), known, digest, failure, int(attempts))

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        try:
            # IMMEDIATE takes the lock at once: two processes never both read before one of them writes.
            self._connection.execute("BEGIN IMMEDIATE")
            try:
                yield
            except BaseException:  # also of Ctrl-C: no lock is left behind
                self._connection.execute("ROLLBACK")
                raise
            self._connection.execute("COMMIT")
        except sqlite3.Error as error:
            raise InputError(f"{self._path}: cannot write the table: {_error_text(error)}") from None

    @contextmanager
    def _complaints(self) -> Iterator[None]:
        try:
            yield
        except (sqlite3.Error, ValueError, TypeError, RecursionError) as error:
            raise InputError(f"{self._path}: cannot read the table: {_error_text(error)}") from None


def is_store(path: Path) -> bool:
    """Return whether a file begins as a table does, whoever made it."""
    try:
        with path.open("rb") as file:
            return file.read(16) == b"SQLite format 3\0"
    except OSError:
        return False


@contextmanager
def open_store(path: Path, *, create: bool = False) -> Iterator[AnswerStore]:
    """Yield the table in a file; with `create` there may be none yet.

    Raises:
        InputError: no file, one that cannot be opened, or one of another kind, which is left as it is.
    """
    if not create and not is_file(path):
        raise InputError(f"{path}: there is no such table: 'makespan sweep SPEC.toml -o {path}' makes one")
    try:
        connection = sqlite3.connect(path, timeout=SECONDS_FOR_OTHERS, isolation_level=None)
    except sqlite3.Error as error:
        raise InputError(f"{path}: cannot open the table: {_error_text(error)}") from None
    with closing(connection):
        try:
            _check_schema(connection, path, create=create)
        except (sqlite3.Error, UnicodeDecodeError) as error:  # what SQLite says may have names of a damaged file
            is_place = getattr(error, "sqlite_errorcode", 0) & 0xFF in _OF_THE_PLACE
            what = "cannot open the table" if is_place else "not a table of makespan sweep"
            raise InputError(f"{path}: {what}: {_error_text(error)}") from None
        yield AnswerStore(connection, path)


def _check_schema(connection: sqlite3.Connection, path: Path, *, create: bool) -> None:
    """Make the tables in an empty file, and refuse every other file whose schema is not exactly ours."""
    connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, MAX_VALUE_BYTES)
    for pragma in ("trusted_schema = OFF", "cell_size_check = ON", f"query_only = {'OFF' if create else 'ON'}"):
        connection.execute(f"PRAGMA {pragma}")
    if create:
        connection.execute("BEGIN IMMEDIATE")
        if (_number(connection, "application_id"), _number(connection, "schema_version")) == (0, 0):
            for statement in _SCHEMA.values():
                connection.execute(statement)
            connection.execute(f"PRAGMA application_id = {APPLICATION}")
            connection.execute(f"PRAGMA user_version = {VERSION}")
        connection.execute("COMMIT")
    if _number(connection, "application_id") != APPLICATION:
        raise InputError(f"{path}: is a SQLite file of something else: choose another name")
    if (version := _number(connection, "user_version")) != VERSION:
        raise InputError(f"{path}: has version {version} of the table, and this program knows {VERSION}")
    has = dict(connection.execute("SELECT name, sql FROM sqlite_master WHERE sql IS NOT NULL"))
    # A trigger or a view of a stranger could run with every statement: the schema must be ours to the letter.
    if has != _SCHEMA:
        raise InputError(f"{path}: its tables are not those of makespan sweep: it has been changed")


def _number(connection: sqlite3.Connection, pragma: str) -> int:
    return int(connection.execute(f"PRAGMA {pragma}").fetchone()[0])


def _text(value: object) -> str:
    return json.dumps(value, sort_keys=True, separators=(",", ":"))


def _table(text: str) -> dict[str, Any]:
    found = json.loads(text)
    if not isinstance(found, dict):
        raise TypeError("a value is no table")
    if "\\ud" in text.lower():  # half a letter, which JSON can tell and no file can hold
        json.dumps(found, ensure_ascii=False).encode()
    return found


def _error_text(error: Exception) -> str:
    return " ".join(str(error).split())[:200] or type(error).__name__


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")
