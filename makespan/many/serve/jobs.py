"""Questions as processes, with limits on how many run and wait and on what each takes; answers are kept for a while."""

import json
import math
import os
import re
import secrets
import signal
import subprocess
import sys
import threading
import time
from collections import deque
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from shutil import rmtree
from typing import Any, BinaryIO

from makespan.host import limited
from makespan.many.serve.form import (
    EVIDENCE,
    PAGE,
    SOURCE,
    FormQuestion,
    RefusedFieldError,
    ServeLimits,
    form_fields,
)

SECONDS_BESIDE = 60.0
"""Beyond the time limit of a question: to load, to read a kernel, to run policies, to check, to draw."""
_SECONDS_TO_END = 3.0
MOST_FILE_BYTES = 64 << 20
MOST_KEPT, MOST_KEPT_BYTES, KEPT_SECONDS = 200, 512 << 20, 3600.0
_MOST_LOG_BYTES, _MOST_STEPS, _MOST_LINES = 64 << 10, 50, 30
_LOG, _OUT = "log.txt", "out.txt"
_STEP = '{"seconds": '
_SAID = "makespan: "
_COMMAND = "  makespan "
"""So a line begins with a command to copy, which is of no use to whoever sees the page."""


class BusyError(RefusedFieldError):
    """An error that says that too many questions wait for one more to be taken."""


@dataclass(slots=True, eq=False)
class ServeJob:
    """A question on its way: the exit code of its process, and why it failed where that does not say it."""

    question: FormQuestion
    folder: Path
    process: "subprocess.Popen[bytes] | None" = None
    code: int | None = None
    stopped: bool = False
    failed: str = ""
    ended: float | None = None
    kept_bytes: int = 0
    began: float = field(default_factory=time.monotonic)

    @property
    def is_answered(self) -> bool:
        """Return whether there is a page; it appears whole or not at all."""
        return self.ended is not None and (self.folder / PAGE).is_file()


class ServeJobs:
    """All questions, by names that cannot be guessed."""

    def __init__(self, folder: Path, limits: ServeLimits) -> None:
        self.limits = limits
        self._folder = folder
        self._jobs: dict[str, ServeJob] = {}
        self._waiting: deque[ServeJob] = deque()
        self._changed = threading.Condition()
        self._closed = False
        for _ in range(limits.running):
            threading.Thread(target=self._work, daemon=True).start()

    def ask(self, question: FormQuestion) -> str:
        """Take a question and return its name.

        Raises:
            BusyError: too many wait.
        """
        with self._changed:
            if len(self._waiting) >= self.limits.waiting + self._idle():  # an idle worker takes one at once
                raise BusyError(SOURCE, f"{len(self._waiting)} questions wait already: try again in a minute")
            self._tidy()
            # Whoever knows the name may read the answer and stop the question.
            name = secrets.token_urlsafe(16)
            job = self._jobs[name] = ServeJob(question, self._folder / name)
            self._waiting.append(job)
            self._changed.notify()
        return name

    def stop(self, name: str) -> bool:
        """Ask a question to end with what is proven so far, the second time at once; return False if there is none."""
        with self._changed:
            if (job := self._jobs.get(name)) is None:
                return False
            job.stopped = True
            if job in self._waiting:
                self._waiting.remove(job)
                job.ended = time.monotonic()
            _signal(job, signal.SIGINT)
        return True

    def open(self, name: str, file: str) -> BinaryIO | None:
        """Return the page or the evidence of an answer, to be closed by the caller; None if there is no such file."""
        job = self._jobs.get(name)
        with suppress(OSError):
            return (job.folder / file).open("rb") if job is not None and job.is_answered else None
        return None

    def state(self, name: str) -> dict[str, Any] | None:
        """Return how far a question is, as plain data; None if it is not known or no longer kept."""
        with self._changed:
            if (job := self._jobs.get(name)) is None:
                return None
            if job in self._waiting:
                return {"state": "waiting", "ahead": self._waiting.index(job)}
            answered, seconds = job.is_answered, (job.ended or time.monotonic()) - job.began
        lines = _lines(job.folder / _LOG)
        steps = list(_steps(lines))[-_MOST_STEPS:]
        said = [line for line in lines if not line.startswith(_STEP)]
        if job.ended is None:
            return {"state": "running", "seconds": seconds, "steps": steps, "line": said[-1] if said else ""}
        if answered:
            verdict = next(iter(_lines(job.folder / _OUT)), "")
            return {"state": "answered", "seconds": seconds, "steps": steps, "verdict": verdict, "code": job.code}
        return {"state": "refused", **self._refusal(job, said)}

    def close(self) -> None:
        """End all processes as Ctrl-C does, and by force where that takes long."""
        with self._changed:
            self._closed = True
            self._waiting.clear()
            self._changed.notify_all()
            jobs = list(self._jobs.values())
        for number in (signal.SIGINT, signal.SIGINT, signal.SIGKILL):
            for job in jobs:
                _signal(job, number)
            end = time.monotonic() + _SECONDS_TO_END / 2
            while time.monotonic() < end and any(job.process and job.process.poll() is None for job in jobs):
                time.sleep(0.02)

    def _idle(self) -> int:
        return self.limits.running - sum(job.process is not None and job.ended is None for job in self._jobs.values())

    def _work(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._waiting or self._closed)
                if self._closed:
                    return
                job = self._waiting.popleft()
            try:
                self._start(job)
                self._wait(job)
            except OSError as error:  # the disk is full, or there are no processes left
                job.failed = f"this question could not be run: {error.strerror or error}"
            finally:
                with self._changed:
                    _shrink(job)
                    job.question = replace(job.question, words=(), files={})  # a source may be large
                    job.ended = time.monotonic()

    def _start(self, job: ServeJob) -> None:
        job.folder.mkdir()
        for name, content in job.question.files.items():
            (job.folder / name).write_bytes(content)
        # The search gets half of the memory: libraries and the page need the rest.
        memory = self.limits.memory_bytes
        own = (f"--memory-limit={memory // 2}", "--steps", f"--bundle={EVIDENCE}", f"--output={PAGE}")
        within = (memory, MOST_FILE_BYTES, 2 * math.ceil(job.question.seconds + SECONDS_BESIDE))
        with (job.folder / _LOG).open("wb") as log, (job.folder / _OUT).open("wb") as out, self._changed:
            if self._closed or job.stopped:  # in the moment between the queue and here
                return
            job.began = time.monotonic()
            job.process = subprocess.Popen(  # noqa: S603 - no shell, and every word of the user begins with its option
                (
                    *(sys.executable, "-I", limited.__file__, *map(str, within)),
                    *(sys.executable, "-m", "makespan", "report", *job.question.words, *own),
                ),
                cwd=job.folder,
                env={**os.environ, "TMPDIR": str(job.folder), "PYTHONSAFEPATH": "1", "NO_COLOR": "1"},
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=log,
                start_new_session=True,
            )

    def _wait(self, job: ServeJob) -> None:
        if job.process is None:
            return
        # Two interrupts as from a user, so that a result so far is kept; then by force.
        patience = job.question.seconds + SECONDS_BESIDE
        for number in (signal.SIGINT, signal.SIGINT, signal.SIGKILL):
            with suppress(subprocess.TimeoutExpired):
                job.code = job.process.wait(patience)
                return
            job.failed = f"not done {SECONDS_BESIDE:g} s after its time limit, and ended: ask for less"
            patience = _SECONDS_TO_END
            _signal(job, number)
        job.code = job.process.wait()

    def _refusal(self, job: ServeJob, said: list[str]) -> dict[str, Any]:
        """Return why there is no page, and the field of the form where that can be mended."""
        at = max((number for number, line in enumerate(said) if line.startswith(_SAID)), default=None)
        if job.code == 2 and at is not None:
            message = said[at].removeprefix(_SAID).partition(" (see 'makespan")[0]
            details = [line for line in said[at + 1 :] if not line.startswith(_COMMAND)]
            return {"field": _field(message), "message": message, "details": details[:_MOST_LINES]}
        why = job.failed or "stopped before anything was proven" * job.stopped
        if not why and (job.code or 0) < 0:
            memory = f"({self.limits.memory_bytes / 2**30:g} GiB)"
            why = f"ended by {signal.Signals(-(job.code or 0)).name}, as a rule for want of memory {memory}"
        said = said[-_MOST_LINES:] or ["there is no answer, and nothing was said"]
        return {"field": SOURCE, "message": why or said.pop().removeprefix(_SAID), "details": [] if why else said}

    def _tidy(self) -> None:
        """Forget the oldest answers where they are too many, too large or too old."""
        ended = [(name, job) for name, job in self._jobs.items() if job.ended is not None]
        size = sum(job.kept_bytes for _, job in ended)
        for number, (name, job) in enumerate(ended):
            old = time.monotonic() - (job.ended or 0) > KEPT_SECONDS
            if not old and size <= MOST_KEPT_BYTES and len(ended) - number <= MOST_KEPT:
                break
            size -= job.kept_bytes
            del self._jobs[name]
            rmtree(job.folder, ignore_errors=True)


def _signal(job: ServeJob, number: signal.Signals) -> None:
    if job.process is not None and job.process.poll() is None:
        with suppress(ProcessLookupError):
            os.killpg(job.process.pid, number)


def _shrink(job: ServeJob) -> None:
    with suppress(OSError):
        for path in list(job.folder.iterdir()):
            if path.name in (PAGE, EVIDENCE, _LOG, _OUT):
                job.kept_bytes += path.stat().st_size
            elif path.is_dir() and not path.is_symlink():
                rmtree(path, ignore_errors=True)
            else:
                path.unlink()


def _lines(path: Path) -> list[str]:
    """Return the last lines of a file; none if the file is gone."""
    with suppress(OSError), path.open("rb") as stream:
        stream.seek(max(0, path.stat().st_size - _MOST_LOG_BYTES))  # a log may be long, and is asked for often
        return stream.read(_MOST_LOG_BYTES).decode("utf-8", "replace").splitlines()
    return []


def _steps(lines: list[str]) -> Iterator[dict[str, Any]]:
    for line in lines:
        if line.startswith(_STEP):
            with suppress(ValueError):  # the line that is being written
                yield json.loads(line)


def _field(message: str) -> str:
    """Return the field that a message is about, by the place or the option that it names; else the source."""
    if place := re.match(r"(machine\.toml):|[\w.]+:\d+:\d+:", message):
        return place[1] or SOURCE
    names = {field.name for part in form_fields() for field in part}
    named = (word.strip("':;,.()") for word in message.split())
    options = (word[2:].partition("=")[0] for word in named if word.startswith("--"))
    return next((name for name in options if name in names), SOURCE)
