"""Questions answered by processes, one at a time each: whatever happens to a process costs one attempt and no more.

A process runs `python -m MODULE` in the folder of the spec, reads a job as a line of JSON and writes a line: an object
with `document`, `digest` and `bundle`, or with `cause` and `reason`. It ends with whoever started it.
"""

import atexit
import json
import signal
import subprocess
import sys
import tempfile
import threading
import time
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import IO

from makespan.host.errors import InputError
from makespan.host.tool import no_room
from makespan.many.sweep.job import FailureCause, JobAnswer, JobFailure, JobOutcome, SweepJob

ATTEMPTS = 2
"""Of a job whose process died, which may have been the fault of another: too little memory for both."""

_MOST_SAID, _SECONDS_TO_END = 300, 5.0


class Workshop:
    """A pool of processes: every thread that asks has one of its own.

    Args:
        module: what a process runs.
        folder: where it runs, and where names of files start.
        wall_seconds: for a job, whatever it does; then its process is killed.
        wants_bundle: whether answers bring their bundle.
    """

    def __init__(self, module: str, folder: Path, wall_seconds: float, *, wants_bundle: bool = False) -> None:
        self._module, self._folder, self._seconds, self._bundle = module, folder, wall_seconds, wants_bundle
        self._own, self._all, self._lock, self._closed = threading.local(), set[_Process](), threading.Lock(), False

    def outcome(self, job: SweepJob) -> JobOutcome:
        """Answer a job and return its outcome; a job whose process died gets a second attempt.

        Raises:
            InputError: a process ends by itself before it has answered anything: none would.
        """
        failures: list[JobFailure] = []
        while True:
            began = time.monotonic()
            came = self._attempt(job)
            if isinstance(came, JobAnswer):
                return JobOutcome(job, came, tuple(failures))
            failures.append(JobFailure(*came, time.monotonic() - began))
            # Only a death may have been bad luck; every other cause would come again.
            if failures[-1].cause is not FailureCause.DIED or len(failures) == ATTEMPTS or self._closed:
                return JobOutcome(job, None, tuple(failures))

    def _attempt(self, job: SweepJob) -> JobAnswer | tuple[FailureCause, str]:
        line = json.dumps({"question": dict(job.question), "key": job.key, "bundle": self._bundle})
        process = self._process()
        said = process.ask(line, self._seconds)
        if said is not None:
            found = json.loads(said)
            if "cause" in found:
                return FailureCause(found["cause"]), str(found["reason"])
            return JobAnswer(found["document"], found["digest"], found["bundle"])
        with self._lock:
            self._all.discard(process)
        del self._own.process
        ended = process.epitaph()
        if process.late:
            return FailureCause.TIME, f"stopped after {self._seconds:g} s, the wall limit of a job"
        # Such a process would end again and again: the sweep stops at once.
        if not process.has_answered and not process.was_killed and not self._closed:
            raise InputError(f"python -m {self._module} does not start: {ended}")
        return FailureCause.DIED, ended

    def _process(self) -> "_Process":
        process: _Process | None = getattr(self._own, "process", None)
        if process is None:
            with self._lock:
                if self._closed:
                    raise RuntimeError("the workshop is closed")
                process = self._own.process = _Process(self._module, self._folder)
                self._all.add(process)
        return process

    def stop(self) -> None:
        """Kill all processes, and start no other."""
        with self._lock:
            self._closed = True
            for process in self._all:
                process.kill()

    def close(self) -> None:
        """Clean up all processes, once no thread asks any more."""
        self.stop()
        for process in self._all:
            process.epitaph()
        self._all.clear()


class _Process:
    """A process that answers, in a session of its own, so that a Ctrl-C of the terminal does not reach it."""

    def __init__(self, module: str, folder: Path) -> None:
        try:
            self._complaints: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115 - closed by epitaph
        except OSError as error:
            raise no_room(error) from None
        self._running = subprocess.Popen(  # noqa: S603 - a module of ours
            (sys.executable, "-P", "-m", module),
            cwd=folder,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._complaints,
            text=True,
            encoding="utf-8",
            start_new_session=True,  # a Ctrl-C of the terminal goes to the sweep alone
        )
        self.late = self.has_answered = False

    def ask(self, line: str, seconds: float) -> str | None:
        """Send a line and return the line that comes back; None where the process has ended."""
        if self._running.stdin is None or self._running.stdout is None:
            raise ValueError("the process has no pipes")
        timer = threading.Timer(seconds, self._stop)
        timer.start()
        try:
            with suppress(BrokenPipeError):
                self._running.stdin.write(f"{line}\n")
                self._running.stdin.flush()
            said = self._running.stdout.readline()
        finally:
            timer.cancel()
        # Half a line, or one that came after the limit, is no answer.
        is_whole = said.endswith("\n") and not self.late
        self.has_answered |= is_whole
        return said if is_whole else None

    def _stop(self) -> None:
        self.late = True
        self.kill()

    def kill(self) -> None:
        self._running.kill()

    @property
    def was_killed(self) -> bool:
        return self._running.returncode is not None and self._running.returncode < 0

    def epitaph(self) -> str:
        """Return how the process ended, in one line; one that still runs is killed."""
        try:
            code = self._running.wait(_SECONDS_TO_END)
        except subprocess.TimeoutExpired:
            self.kill()
            code = self._running.wait()
        for pipe in (self._running.stdin, self._running.stdout):
            if pipe is not None:
                with suppress(OSError):
                    pipe.close()
        self._complaints.seek(0)
        said = self._complaints.read()[-_MOST_SAID:].decode("utf-8", "replace").strip().splitlines()
        self._complaints.close()
        how = f"exit code {code}" if code >= 0 else _signal(-code)
        return f"its process ended: {how}{f': {said[-1]}' if said else ''}"


def _signal(number: int) -> str:
    name = signal.Signals(number).name if number in set(signal.Signals) else str(number)
    return f"{name}, as for want of memory" if number == signal.SIGKILL else name


@cache
def shared_workshop(module: str, folder: Path, wall_seconds: float, wants_bundle: bool) -> Workshop:
    """Return the workshop of this process, which others ask."""
    workshop = Workshop(module, folder, wall_seconds, wants_bundle=wants_bundle)
    atexit.register(workshop.close)
    return workshop
