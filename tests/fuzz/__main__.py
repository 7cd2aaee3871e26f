"""Damaged input for the readers, `python -m tests.fuzz [--cases N] [FORMAT...]`: guided by coverage with atheris.

A finding is an exception that is not one of ours, or a case that takes `MOST_SLOWER` times longer than any seed; its
input is left in a folder. One format a process, because atheris ends it.
"""

import argparse
import os
import subprocess
import sys
import time
import traceback
from contextlib import AbstractContextManager, nullcontext
from importlib.util import find_spec
from math import inf
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory

ROOT = Path(__file__).parents[2]
MOST_SLOWER, LEAST_SECONDS = 10, 1.0


class Campaign:
    """Cases of one format; each is read from a file."""

    def __init__(self, name: str, folder: Path, findings: Path, cases: int, seconds: float) -> None:
        from tests.fuzz.formats import FORMATS, seeds

        self.name, self.findings, self.cases, self.seconds = name, findings, cases, seconds
        self.read = FORMATS[name].read
        (folder / "ptx").symlink_to(ROOT / "ptx")
        (folder / "here").mkdir()
        self.path = folder / "here" / f"fuzzed{FORMATS[name].suffix}"
        self.done = self.refused = 0
        self.seen: set[str] = set()
        self.patience = inf
        self.seeds = [*seeds(name)]
        for _ in range(2):  # the first time everything is loaded
            times = [self.case(seed) for seed in self.seeds]
        self.patience = max(LEAST_SECONDS, MOST_SLOWER * max(times))
        self.began = time.process_time()

    def case(self, data: bytes) -> float:
        """Read it; the CPU seconds of that."""
        from makespan.errors import BrokenPromiseError, MakespanError

        self.path.write_bytes(data)
        self.done += 1
        began = time.process_time()
        try:
            if self.read(self.path) in (2, 4):  # exit codes
                self.refused += 1
        except BrokenPromiseError as error:
            self.found(error, data)
        except MakespanError:
            self.refused += 1
        except Exception as error:  # noqa: BLE001 - that is what is looked for
            self.found(error, data)
        took = time.process_time() - began
        if took > self.patience:
            self.patience *= 2
            self.found(TimeoutError(f"{took:.1f} s"), data)
        return took

    def found(self, error: Exception, data: bytes) -> None:
        """Keep one input for each place."""
        frames = [f for f in traceback.extract_tb(error.__traceback__) if "/tests/" not in f.filename]
        place = f"{Path(frames[-1].filename).name}:{frames[-1].lineno}" if frames else ""
        key = f"{type(error).__name__} {place}" if place else f"{error}"[:60]
        if key not in self.seen:
            self.seen.add(key)
            self.findings.mkdir(parents=True, exist_ok=True)
            kept = self.findings / f"{self.name}-{len(self.seen)}{self.path.suffix}"
            kept.write_bytes(data)
            print(f"  {kept}: {key}: {str(error)[:200]!a}", flush=True)

    @property
    def is_over(self) -> bool:
        return self.done >= self.cases or time.process_time() - self.began > self.seconds

    def report(self) -> str:
        spent = time.process_time() - self.began
        return f"{self.name:20} {self.done:>9} {self.refused:>9} {len(self.seen):>9} {spent:>9.1f}"


def guided(campaign: Campaign, seed: int) -> None:
    """By the coverage of the package; it does not return."""
    import atheris

    from tests.fuzz.mutants import mutant

    def one(data: bytes) -> None:
        campaign.case(data)
        if campaign.is_over:
            print(campaign.report(), flush=True)
            os._exit(0)

    def changed(data: bytes, most: int, number: int) -> bytes:
        draw = Random(number)
        if draw.random() < 0.3:
            return bytes(atheris.Mutate(data, most))
        return mutant(data, draw.choice(campaign.seeds), draw)[:most]

    corpus = campaign.path.parents[1] / "corpus"
    corpus.mkdir()
    for number, each in enumerate(campaign.seeds):
        (corpus / str(number)).write_bytes(each)
    options = [
        f"-seed={seed}",
        "-max_len=60000",
        "-len_control=0",
        "-rss_limit_mb=6000",
        "-timeout=300",
        "-verbosity=0",
    ]
    atheris.Setup(["fuzz", *options, str(corpus)], one, custom_mutator=changed)
    atheris.Fuzz()


def drawn(campaign: Campaign, seed: int) -> None:
    """Mutants of the seeds and of those mutants, without a guide."""
    from tests.fuzz.mutants import mutant

    draw, pool = Random(seed), list(campaign.seeds)
    while not campaign.is_over:
        data = mutant(draw.choice(pool), draw.choice(campaign.seeds), draw)
        campaign.case(data)
        if draw.random() < 0.01:
            pool[len(campaign.seeds) :] = [*pool[len(campaign.seeds) :][-50:], data]
    print(campaign.report(), flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz")
    parser.add_argument("formats", nargs="*")
    parser.add_argument("--cases", type=int, default=10_000)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--findings", type=Path, default=Path("findings"))
    parser.add_argument("--one", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if not given.one:
        from tests.fuzz.formats import FORMATS

        print(f"{'format':20} {'cases':>9} {'refused':>9} {'findings':>9} {'CPU s':>9}", flush=True)
        rest = [f"--{key}={getattr(given, key)}" for key in ("cases", "seconds", "seed", "findings")]
        for name in given.formats or FORMATS:
            subprocess.run([sys.executable, "-m", "tests.fuzz", "--one", *rest, name], check=False)
        return
    is_guided = find_spec("atheris") is not None
    with TemporaryDirectory() as folder, instrumented() if is_guided else nullcontext():
        campaign = Campaign(given.formats[0], Path(folder), given.findings.resolve(), given.cases, given.seconds)
        os.chdir(folder)
        (guided if is_guided else drawn)(campaign, given.seed)


def instrumented() -> AbstractContextManager[None]:
    """What is imported within tells where it goes; numba does not take that."""
    import atheris

    untouched = [
        ".".join(path.relative_to(ROOT).with_suffix("").parts) for path in ROOT.glob("makespan/**/*compiled.py")
    ]
    context: AbstractContextManager[None] = atheris.instrument_imports(include=["makespan"], exclude=untouched)
    return context


if __name__ == "__main__":
    main()
