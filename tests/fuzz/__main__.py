"""Damaged input for the readers, `python -m tests.fuzz [--cases N] [FORMAT...]`: guided by coverage with atheris.

A finding is an exception that is not one of ours, or a case that takes `MOST_SLOWER` times longer than any honest input
or `MOST_MORE_BYTES` more memory; its input is left in a folder. One format a process, because atheris ends it.
"""

import argparse
import os
import resource
import subprocess
import sys
import traceback
from contextlib import AbstractContextManager, nullcontext
from importlib.util import find_spec
from math import inf
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory

ROOT = Path(__file__).parents[2]
MOST_SLOWER, LEAST_SECONDS = 10, 1.0
MOST_MORE_BYTES, MOST_BYTES = 1 << 29, 6 << 30
"""Of one case beyond all before it; and of the process, beyond which the system refuses."""
_KEPT = 300
"""Accepted inputs to go on from."""


class Campaign:
    """Cases of one format; each is read from a file."""

    def __init__(self, name: str, folder: Path, findings: Path, cases: int, seconds: float) -> None:
        from tests.fuzz.formats import FORMATS, seeds

        self.name, self.findings, self.cases, self.seconds = name, findings, cases, seconds
        self.read, self.refusals, self.parts = FORMATS[name].read, FORMATS[name].refusals, FORMATS[name].parts
        (folder / "ptx").symlink_to(ROOT / "ptx")
        (folder / "here").mkdir()
        self.path = folder / "here" / f"fuzzed{FORMATS[name].suffix}"
        self.done = self.refused = 0
        self.seen: set[str] = set()
        self.patience, self.most_bytes = inf, inf
        findings.mkdir(parents=True, exist_ok=True)
        self.seeds = [*seeds(name)]
        self.accepted = list[bytes]()
        self.draw = Random(len(name))
        for _ in range(2):  # the first time everything is loaded
            times = [self.case(seed) for seed in self.seeds]
        if self.refused or not self.seeds:
            raise SystemExit(f"{name}: an honest input is refused")
        self.patience = max(LEAST_SECONDS, MOST_SLOWER * max(times))
        self.done, self.began, self.most_bytes = 0, _spent(), _peak()

    def case(self, data: bytes) -> float:
        """Read it; the CPU seconds of that."""
        from makespan.host.errors import BrokenPromiseError, MakespanError

        self.path.write_bytes(data)
        self.done += 1
        began = _spent()
        try:
            if self.read(self.path) in self.refusals:
                self.refused += 1
            else:
                self.keep(data)
        except BrokenPromiseError as error:
            self.found(error, data)
        except MakespanError:
            self.refused += 1
        except Exception as error:  # noqa: BLE001 - that is what is looked for
            self.found(error, data)
        took, peak = _spent() - began, _peak()
        if took > self.patience:
            self.patience *= 2
            self.found(TimeoutError(f"{took:.1f} s"), data)
        if peak > self.most_bytes + MOST_MORE_BYTES:
            self.found(MemoryError(f"{peak >> 20} MiB"), data)
        self.most_bytes = max(self.most_bytes, peak)
        return took

    def keep(self, data: bytes) -> None:
        """Of all accepted inputs some, each as likely as any other of late."""
        if len(self.accepted) < _KEPT:
            self.accepted.append(data)
        else:
            self.accepted[self.draw.randrange(_KEPT)] = data

    def found(self, error: Exception, data: bytes) -> None:
        """Keep one input for each place."""
        frames = [f for f in traceback.extract_tb(error.__traceback__) if "/tests/" not in f.filename]
        place = f"{Path(frames[-1].filename).name}:{frames[-1].lineno}" if frames else ""
        key = f"{type(error).__name__} {place}" if place else f"{error}"[:60]
        if key not in self.seen:
            self.seen.add(key)
            kept = self.findings / f"{self.name}-{len(self.seen)}{self.path.suffix}"
            kept.write_bytes(data)
            print(f"  {kept}: {key}: {str(error)[:200]!a}", flush=True)

    @property
    def is_over(self) -> bool:
        return self.done >= self.cases or _spent() - self.began > self.seconds

    def report(self) -> str:
        spent, share = _spent() - self.began, 1 - self.refused / self.done
        return f"{self.name:20} {self.done:>9} {share:>9.0%} {len(self.seen):>9} {spent:>9.1f}"

    def parent(self, draw: Random) -> bytes:
        """What to damage: as often one of the honest inputs as one that was accepted."""
        return draw.choice(self.seeds if draw.random() < 0.5 else self.accepted)

    def other(self, draw: Random) -> bytes:
        """What to take parts of."""
        return draw.choice((*self.seeds, *self.parts))


def _spent() -> float:
    """CPU seconds of this process and of those that it has waited for."""
    every = map(resource.getrusage, (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(each.ru_utime + each.ru_stime for each in every)


def _peak() -> int:
    """The most bytes of memory so far."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10


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
        if draw.random() < 0.2:
            return bytes(atheris.Mutate(data, most))
        damaged = data if draw.random() < 0.3 else campaign.parent(draw)  # what reaches new code is mostly refused
        return mutant(damaged, campaign.other(draw), draw)[:most]

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
        f"-artifact_prefix={campaign.findings}/{campaign.name}-",
    ]
    atheris.Setup(["fuzz", *options, str(corpus)], one, custom_mutator=changed)
    atheris.Fuzz()


def drawn(campaign: Campaign, seed: int) -> None:
    """Mutants of honest and of accepted inputs, without a guide."""
    from tests.fuzz.mutants import mutant

    draw = Random(seed)
    while not campaign.is_over:
        campaign.case(mutant(campaign.parent(draw), campaign.other(draw), draw))
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

        print(f"{'format':20} {'cases':>9} {'accepted':>9} {'findings':>9} {'CPU s':>9}", flush=True)
        rest = [f"--{key}={getattr(given, key)}" for key in ("cases", "seconds", "seed", "findings")]
        for name in given.formats or FORMATS:
            code = subprocess.run([sys.executable, "-m", "tests.fuzz", "--one", *rest, name], check=False).returncode
            if code:  # a crash, or a case without end: libFuzzer has left it among the findings
                print(f"{name:20} ended with exit code {code}", flush=True)
        return
    resource.setrlimit(resource.RLIMIT_AS, (MOST_BYTES, MOST_BYTES))
    is_guided = find_spec("atheris") is not None
    shared = Path("/dev/shm")
    with (
        TemporaryDirectory(dir=shared if shared.is_dir() else None) as folder,
        instrumented() if is_guided else nullcontext(),
    ):
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
