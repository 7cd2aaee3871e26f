"""The process behind a sweep: it reads questions as lines of JSON and writes the answers.

A sweep starts it as `python -m makespan.many.commands.answering`.
"""

import json
import os
import queue
import signal
import sys
import threading
import traceback
from collections.abc import Mapping
from typing import IO, Any

from makespan.cli.output import DATA
from makespan.cli.question import solve_question
from makespan.cli.question_key import question_key
from makespan.host.errors import BrokenPromiseError, MakespanError
from makespan.host.text_file import inputs_kept
from makespan.many.sweep.job import FailureCause
from makespan.report.result.bundle import bundle_bytes
from makespan.verify import digest
from makespan.version import THEORY, __version__

CLAIM = "claim"
"""The key of what an answer says besides its numbers: the digest of the instance, the version, and a schedule."""

VERSION = f"{__version__}, theory {THEORY}"
MOST_SCHEDULE = 4096
"""Bytes of a schedule that an answer has; longer ones are in the bundle."""


def main() -> None:
    """Answer until there are no more questions, or until the process that asks has ended."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the sweep, which ends this process
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # what a library prints must not become an answer
    asked = queue.SimpleQueue[str]()
    threading.Thread(target=_listen, args=(sys.stdin, asked), daemon=True).start()
    while True:
        answers.write(DATA["json"](answer(json.loads(asked.get()))) + "\n")
        answers.flush()


def _listen(lines: IO[str], asked: "queue.SimpleQueue[str]") -> None:
    """Take what is asked; who asks no more, or has died, wants no more of this process, whatever it is at."""
    for line in lines:
        asked.put(line)
    os._exit(0)  # at once: this process may be in the middle of a search


def answer(job: Mapping[str, Any]) -> dict[str, Any]:
    """Answer a job, and return what `makespan.many.sweep.workshop` reads."""
    question = job["question"]
    try:
        with inputs_kept():
            found = solve_question(question)
            # The key is made again after the answer: a file that changed meanwhile gives another one.
            if question_key(question) != job["key"]:
                reason = "a file that it names is not what it was when the sweep began, or not the same here"
                return {"cause": FailureCause.CHANGED, "reason": reason}
    except BrokenPromiseError as error:
        return {"cause": FailureCause.BUG, "reason": f"internal contradiction, please report it: {error}"}
    except MakespanError as error:
        return {"cause": FailureCause.REFUSED, "reason": str(error).split("\n", 1)[0]}
    except MemoryError:
        return {"cause": FailureCause.DIED, "reason": "not enough memory for this input"}
    except Exception as error:  # noqa: BLE001 - it costs this job and no other
        place = traceback.extract_tb(error.__traceback__)[-1]
        told = f"{type(error).__name__}: {error} ({place.filename}:{place.lineno})"
        return {"cause": FailureCause.BUG, "reason": " ".join(told.split())}
    # A table stays small: short schedules are in it where evidence is wanted, longer ones in the bundle.
    witness = found.evidence["witness"] if job["bundle"] else None
    is_short = witness is not None and len(bundle_bytes(witness)) <= MOST_SCHEDULE
    claim = {
        "digest": digest(found.evidence["instance"]),
        "version": VERSION,
        "schedule": witness if is_short else None,
    }
    bundle = found.bundle.decode() if job["bundle"] else None
    return {"document": {**found.document, CLAIM: claim}, "digest": found.digest, "bundle": bundle}


if __name__ == "__main__":
    main()
