"""A sweep on a dask cluster of two workers, one of which is killed, and then the sweep itself: does the table suffer?

    python -m benchmarks.sweep --questions 2000

Answers the questions twice: undisturbed, and with a worker and later the command ended by SIGKILL; then two commands
write one table at once. Prints what each took, how much was known when the killed command was called again, and how
the tables differ: in status, lower and upper bounds not at all, in times and digests always, and in the name of the
evidence where two proofs of one bound race. Needs `distributed`; exit code 1 if anything was lost.
"""

import argparse
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from makespan.many.sweep.rows import sweep_rows
from makespan.many.sweep.store import open_store

PORT = 8797
SPEC = """
time-limit = 10
[each]
string = ["CLLC", "CL", "LLLC", "CCLLC", "CLC", "CLLLCC", "CCCL", "LCLC"]
capacity = [
    "C=1,L=1", "C=2,L=1", "C=1,L=2", "C=2,L=2", "C=3,L=1", "C=1,L=3", "C=3,L=2", "C=2,L=3", "C=3,L=3", "C=4,L=1",
]
warps = "1..{most}"
"""
"""Of eight strings on ten machines; all are exact within milliseconds."""


def command(folder: Path, table: str, *options: str) -> "subprocess.Popen[bytes]":
    """`makespan sweep`, begun."""
    words = ("-m", "makespan", "sweep", "spec.toml", "-o", table, "--quiet", *options)
    return subprocess.Popen((sys.executable, *words), cwd=folder)


@contextmanager
def cluster(folder: Path) -> Iterator[tuple[str, int]]:
    """The address of a scheduler with two workers, and the process that watches over them."""
    address = f"tcp://127.0.0.1:{PORT}"
    dask = (sys.executable, "-m", "dask")
    scheduler = ("scheduler", "--host", "127.0.0.1", "--port", str(PORT), "--no-dashboard")
    worker = ("worker", address, "--nworkers", "2", "--nthreads", "1", "--no-dashboard")
    with (folder / "dask.log").open("wb") as log:
        running = [
            subprocess.Popen((*dask, *words), cwd=folder, stdout=log, stderr=log) for words in (scheduler, worker)
        ]
        try:
            yield address, running[1].pid
        finally:
            for process in reversed(running):
                process.terminate()
                process.wait()


def children(pid: int) -> list[int]:
    """The processes that a process has begun."""
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rpartition(")")[2].split()
        except OSError:  # it has ended meanwhile
            continue
        if int(fields[1]) == pid:
            found.append(int(stat.parent.name))
    return found


def a_worker(watcher: int) -> int:
    """Of those that answer questions: it has a process that does."""
    return next(each for each in children(watcher) if any("answering" in _words(child) for child in children(each)))


def _words(pid: int) -> str:
    return Path(f"/proc/{pid}/cmdline").read_text().replace("\0", " ")


def wait_for(path: Path, answers: int) -> int:
    """Until there are so many answers in a table; how many there are then."""
    while True:
        time.sleep(0.5)
        if path.exists() and path.stat().st_size:
            with open_store(path) as store:
                if (known := len(store.answered())) >= answers:
                    return known


def said(path: Path) -> dict[str, tuple[object, ...]]:
    """By key what must not depend on who computed it."""
    with open_store(path) as store:
        return {row.key: (row.question, row.status, row.worst) for row in sweep_rows(store)}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--questions", type=int, default=2000, help="a multiple of 80 (default: 2000)")
    questions = parser.parse_args().questions
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "spec.toml").write_text(SPEC.format(most=questions // 80))
        with cluster(folder) as (address, watcher):
            began = time.monotonic()
            command(folder, "calm.sqlite", "--scheduler", address).wait()
            print(f"undisturbed: {time.monotonic() - began:.0f} s")
            disturbed = command(folder, "cut.sqlite", "--scheduler", address)
            print(f"a worker is killed after {wait_for(folder / 'cut.sqlite', questions // 4)} answers")
            os.kill(a_worker(watcher), signal.SIGKILL)
            print(f"the command is killed after {wait_for(folder / 'cut.sqlite', questions // 2)} answers", flush=True)
            disturbed.kill()
            disturbed.wait()
            command(folder, "cut.sqlite", "--scheduler", address).wait()
        both = [command(folder, "both.sqlite", "--workers", "1") for _ in range(2)]
        print("two commands write one table at once", flush=True)
        codes = [each.wait() for each in both]
        calm, cut, twice = (said(folder / f"{name}.sqlite") for name in ("calm", "cut", "both"))
        print(f"exit codes {codes}; equal tables: {calm == cut == twice}; {len(calm)} questions")
        return 0 if calm == cut == twice and len(calm) == questions and codes == [0, 0] else 1


if __name__ == "__main__":
    sys.exit(main())
