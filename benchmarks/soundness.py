"""All that is claimed of random small instances, against all of their schedules; exit code 1 if anything is wrong.

    python -m benchmarks.soundness --instances 1000000 --seed 1 --jobs 2 --results soundness.jsonl
    python -m benchmarks.soundness --seed 1 --kind slots --number 4711
    python -m benchmarks.soundness --instances 0 --add soundness.jsonl more.jsonl

The truth is the shortest and the longest schedule by `explorer.cpp`, which is written from docs/model.md and compiled
here. Of every instance no upper bound may be below the longest (closed forms, phases, any units), no lower bound above
the shortest. Of every eighth a random improvement of the machine must not exceed the bound that is called robust, nor
another machine of the same throughputs that of any units. Of every `--share`-th, `solve` must enclose both ends, its
witness must take as long as it says, `verify` must not reject the bundle or prove too little, and the definition in
Python must agree with the explorer; some are solved by every engine alone (`benchmarks.claims`).

An instance that has more than `--steps` steps is drawn again, and counted as too large. Each depends on the seed, its
kind and its number alone, so one line repeats a fault. Results are one JSON line per kind, written again and again, and
with `--add` those of earlier runs are added up; the same instance is counted once in a run. Ctrl-C ends with what is
known so far.
"""

import argparse
import json
import random
import sys
import tempfile
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from contextlib import closing, suppress
from dataclasses import dataclass, field
from hashlib import blake2b
from itertools import chain
from multiprocessing import get_context
from pathlib import Path
from signal import SIG_IGN, SIGINT, signal
from typing import Any, NamedTuple

from benchmarks.claims import BACKENDS, Verdict, claims, faults, relatives, verdicts
from benchmarks.explorer import Explorer, Truth, built, written
from benchmarks.small_instances import KINDS
from makespan import Instance

ASIDE = 8
"""Of every how many instances one has relatives: a random improvement, and a machine of the same throughputs."""

BATCH = 200
"""Instances of one kind that a process looks at in one go."""


class Asked(NamedTuple):
    """What decides a look at a batch of instances of one kind."""

    seed: int
    kind: str
    numbers: range
    steps: int
    share: int
    seconds: float

    def backends(self, number: int) -> list[str]:
        """Who solves the instance of this number; with a share of 1, everybody."""
        turn = 0 if self.share == 1 else number // self.share
        return [name for name, every in BACKENDS.items() if turn % every == 0]

    def repeating(self, number: int) -> str:
        """The command that looks at the instance of this number again."""
        return f"python -m benchmarks.soundness --seed {self.seed} --kind '{self.kind}' --number {number}"


class Looked(NamedTuple):
    """What came of one instance: `digest` tells instances apart, `outcomes` are counted, `faults` told."""

    digest: int
    ratio: float
    outcomes: tuple[str, ...]
    faults: tuple[str, ...]


class Batch(NamedTuple):
    """What came of a batch; `large` had too many steps."""

    kind: str
    looked: list[Looked]
    large: int


@dataclass
class Tally:
    """Sums over instances of one kind; `ratio` is that of the smallest upper bound and the longest schedule."""

    counts: Counter[str] = field(default_factory=Counter)
    ratio: float = 0.0
    largest: float = 0.0

    def add(self, looked: Looked) -> None:
        self.counts.update(("instances", *looked.outcomes, *("wrong" for _ in looked.faults)))
        self.ratio += looked.ratio
        self.largest = max(self.largest, looked.ratio)

    def add_line(self, line: dict[str, Any]) -> None:
        """One of a file of results."""
        self.counts.update(line["counts"])
        self.ratio += line["ratio"]
        self.largest = max(self.largest, line["largest"])


def look(explorer: Explorer, asked: Asked) -> Batch:
    """Draw, explore, compare."""
    draws = {number: random.Random(f"{asked.seed} {asked.kind} {number}") for number in asked.numbers}
    found: dict[int, tuple[Instance, Truth]] = {}
    large = 0
    while left := [number for number in draws if number not in found]:
        drawn = [KINDS[asked.kind](draws[number]) for number in left]
        for number, one, truth in zip(left, drawn, explorer(drawn, asked.steps), strict=True):
            if truth is None:
                large += 1
            else:
                found[number] = one, truth
    beside = list(_beside(explorer, asked, draws, found))
    looked = []
    for number, (one, truth) in sorted(found.items()):
        seen = [verdict for other, verdict in beside if other == number]
        if number % asked.share == 0:
            seen += verdicts(draws[number], one, truth, asked.backends(number), asked.seconds)
        looked.append(_looked(one, truth, seen, asked.repeating(number)))
    return Batch(asked.kind, looked, large)


def _looked(one: Instance, truth: Truth, seen: Iterable[Verdict], command: str) -> Looked:
    """The verdicts, and what is claimed without a search."""
    text = written(one)
    digest = int.from_bytes(blake2b(text.encode(), digest_size=8).digest())
    try:
        claimed = claims(one)
    except Exception as error:  # noqa: BLE001 - whatever it is, it is a finding, and the others go on
        return Looked(digest, 1.0, (), (f"{command}: an exception, {error!r}\n{text}",))
    upper, lower = min(claimed.most.values()), max(claimed.least.values())
    attained = ["attained"] * (upper == truth.longest) + ["shortest attained"] * (lower == truth.shortest)
    attained += [f"{name} attained" for name, cycles in claimed.most.items() if cycles == truth.longest]
    outcomes = (*claimed.most, *attained, *(verdict.outcome for verdict in seen))
    wrong = (*faults(claimed, truth), *(verdict.fault for verdict in seen if verdict.fault))
    return Looked(digest, upper / truth.longest, outcomes, tuple(f"{command}: {fault}\n{text}" for fault in wrong))


def _beside(
    explorer: Explorer, asked: Asked, draws: dict[int, random.Random], found: dict[int, tuple[Instance, Truth]]
) -> Iterator[tuple[int, Verdict]]:
    """What is claimed of relatives, by the number of the instance."""
    chosen = [number for number in asked.numbers if number % ASIDE == 0]
    made = [(number, one) for number in chosen for one in relatives(draws[number], found[number][0])]
    for (number, one), truth in zip(made, explorer((one.instance for _, one in made), asked.steps), strict=True):
        if truth is None:
            yield number, Verdict(f"{one.claim}: too large")
        else:
            fault = (
                f"{one.claim}: {one.most} cycles, and a relative takes {truth.longest}:\n{written(one.instance)}\nof"
            )
            yield number, Verdict(f"{one.claim}: relatives", fault if truth.longest > one.most else "")


_EXPLORERS: list[Explorer] = []
"""That of this process, where several share the work."""


def _begin(program: Path) -> None:
    signal(SIGINT, SIG_IGN)
    _EXPLORERS.append(Explorer(program))


def _look(asked: Asked) -> Batch:
    return look(_EXPLORERS[0], asked)


def _batches(program: Path, questions: Iterable[Asked], jobs: int) -> Iterator[Batch]:
    if jobs == 1:
        with closing(Explorer(program)) as explorer:
            yield from (look(explorer, asked) for asked in questions)
    else:
        with get_context("spawn").Pool(jobs, _begin, (program,)) as pool:
            yield from pool.imap_unordered(_look, questions)


class Campaign:
    """What is known so far, of every kind."""

    def __init__(self) -> None:
        self.tallies: dict[str, Tally] = defaultdict(Tally)
        self._seen = set[int]()

    @property
    def total(self) -> Counter[str]:
        return sum((tally.counts for tally in self.tallies.values()), Counter())

    def add(self, batch: Batch) -> None:
        """Instances that were seen before are counted apart."""
        tally = self.tallies[batch.kind]
        tally.counts["too large"] += batch.large
        for one in batch.looked:
            for fault in one.faults:
                print(f"wrong: {fault}", file=sys.stderr, flush=True)
            if one.digest in self._seen:
                tally.counts.update(["repeated", *("wrong" for _ in one.faults)])
            else:
                self._seen.add(one.digest)
                tally.add(one)

    def read(self, files: Iterable[Path]) -> None:
        """Results of earlier runs."""
        for line in chain.from_iterable(file.read_text().splitlines() for file in files):
            known = json.loads(line)
            self.tallies[known["kind"]].add_line(known)

    def write(self, file: Path | None) -> None:
        """What `read` reads."""
        rows = (
            {"kind": kind, "ratio": one.ratio, "largest": one.largest, "counts": one.counts}
            for kind, one in self.tallies.items()
        )
        if file is not None:
            file.write_text("".join(f"{json.dumps(row)}\n" for row in rows))

    def table(self) -> Iterator[str]:
        """In Markdown, a row for each kind, and what was looked at besides."""
        yield "| kind | instances | too large | wrong | attained | mean upper/longest | largest | shortest attained |"
        yield "| --- | --- | --- | --- | --- | --- | --- | --- |"
        for kind, tally in self.tallies.items():
            of = tally.counts
            counted = " | ".join(str(of[name]) for name in ("instances", "too large", "wrong", "attained"))
            mean = tally.ratio / max(1, of["instances"])
            yield f"| {kind} | {counted} | {mean:.3f} | {tally.largest:.3f} | {of['shortest attained']} |"
        yield ""
        yield "; ".join(f"{name} {count}" for name, count in sorted(self.total.items()))


def _questions(given: argparse.Namespace) -> Iterator[Asked]:
    """One batch of every kind after another, so that each has its part whenever a run is stopped."""
    kinds = given.kind or list(KINDS)
    if given.number is not None:
        yield from (
            Asked(given.seed, kind, range(given.number, given.number + 1), given.steps, 1, given.seconds)
            for kind in kinds
        )
        return
    each = -(-given.instances // len(kinds))
    for begin in range(0, each, BATCH):
        for kind in kinds:
            numbers = range(begin, min(each, begin + BATCH))
            yield Asked(given.seed, kind, numbers, given.steps, given.share, given.seconds)


def main() -> int:
    """Read the command line, compare, print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--instances", type=int, default=10_000, help="of all kinds together")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--kind", choices=KINDS, action="append", help="this one; may be given several times")
    parser.add_argument("--number", type=int, help="the instance of this number alone, with all that is looked at")
    parser.add_argument("--steps", type=int, default=20_000, help="from state to state, of an instance")
    parser.add_argument("--share", type=int, default=20, help="every how many are solved, verified and defined")
    parser.add_argument("--seconds", type=float, default=2.0, help="for each engine on each of these")
    parser.add_argument("--jobs", type=int, default=1, help="processes")
    parser.add_argument("--results", type=Path, help="a file that is written again and again")
    parser.add_argument("--add", type=Path, nargs="*", default=[], metavar="FILE", help="results of earlier runs")
    given = parser.parse_args()
    campaign = Campaign()
    campaign.read(given.add)
    with suppress(KeyboardInterrupt), tempfile.TemporaryDirectory() as folder:
        for number, batch in enumerate(_batches(built(Path(folder)), _questions(given), given.jobs)):
            campaign.add(batch)
            if number % len(KINDS) == 0:
                campaign.write(given.results)
    campaign.write(given.results)
    print("\n".join(campaign.table()))
    return 1 if campaign.total["wrong"] else 0


if __name__ == "__main__":
    sys.exit(main())
