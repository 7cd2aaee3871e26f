"""The proof of theorem L as a program: its inequalities, evaluated on the chains of a random schedule.

The names are those of docs/theory.md, 9. Of the bound only the numbers `late` are taken, of which the proof is.
"""

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from tests.bounds.ledger import Issue


class Block(NamedTuple):
    unit: str
    letters: int
    first: int  # number of its first letter
    begin: int
    end: int


def blocks_of(letters: str, latency: dict[str, int]) -> list[Block]:
    found, cycle = list[Block](), 0
    for at, unit in enumerate(letters):
        if found and found[-1].unit == unit and latency[unit] == 1:
            found[-1] = found[-1]._replace(letters=found[-1].letters + 1, end=cycle)
        else:
            found.append(Block(unit, 1, at, cycle, cycle))
        cycle += latency[unit]
    return found


class Job(NamedTuple):
    """What a warp has to issue of a block: the cycle in which it comes, and those in which it is issued."""

    warp: int
    block: int
    comes: int
    issued: tuple[int, ...]


@dataclass
class Ledger:
    """A schedule of equal strings; `late` is what the theorem says of the end of each block.

    Args:
        without: a part of an inequality that is left out.
    """

    letters: str
    latency: dict[str, int]
    run: list[list[Issue]]
    late: list[int]
    without: str = ""
    blocks: list[Block] = field(init=False)

    def __post_init__(self) -> None:
        self.blocks = blocks_of(self.letters, self.latency)
        self.others = len(self.run) - 1
        self.largest: dict[str, int] = defaultdict(int)
        for block in self.blocks:
            self.largest[block.unit] = max(self.largest[block.unit], block.letters)
        self.jobs = [
            Job(
                warp,
                number,
                0 if block.first == 0 else own[block.first - 1].ready,
                tuple(one.cycle for one in own[block.first : block.first + block.letters]),
            )
            for warp, own in enumerate(self.run)
            for number, block in enumerate(self.blocks)
        ]
        self.job = {(job.warp, job.block): job for job in self.jobs}
        self.issued: dict[str, set[int]] = defaultdict(set)
        for own in self.run:
            for one in own:
                self.issued[one.unit].add(one.cycle)

    def inequalities(self) -> Iterator[tuple[str, int]]:
        """Name and slack of every inequality, for the chains that end with each warp at its last block."""
        for warp in range(len(self.run)):
            yield from self._chain(warp)

    def _chain(self, v: int) -> Iterator[tuple[str, int]]:
        path: list[list[tuple[int, int, int]]] = [[] for _ in self.run]  # by other: step, block, cost; last step first
        who = {warp: warp for warp in range(len(self.run)) if warp != v}  # the other of each warp
        before: dict[str, int] = {}  # where the period of the class at a later step begins
        for step in range(len(self.blocks) - 1, -1, -1):
            block = self.blocks[step]
            t = self.job[v, step].issued[-1]
            b = t
            while b - 1 in self.issued[block.unit]:
                b -= 1
            yield "periods", before.get(block.unit, t + 2) - t - 2
            before[block.unit] = b
            near = [self.job[w, step] for w in range(len(self.run)) if self.job[w, step].issued[-1] <= t]
            u = max(near, key=lambda job: (job.comes, job.warp == v))
            come = [job for job in self.jobs if self.blocks[job.block].unit == block.unit and b <= job.comes <= t]
            yield "one job", len({job.warp for job in come}) - len(come)
            idle = range(u.comes - self.others * self.largest[block.unit] - 1, u.comes)
            yield "idle", sum(cycle not in self.issued[block.unit] for cycle in idle) - 1
            yield "late", self.late[step] - (t - block.end)
            costs = {job: self._cost(job, step, u.comes, t) for job in come if job.warp != v}
            yield "step", sum(costs.values()) + self.others * (step == 0) - (t - block.letters + 1 - u.comes)
            for job, cost in costs.items():
                other = self.blocks[job.block]
                if job.block == step:
                    yield "near", block.letters - 1 - (self.without == "run") - cost
                else:
                    yield "far", other.letters - cost
                    x = other.begin - block.end
                    size = self.largest[block.unit]
                    ago = self.late[step - 1] if self.without != "late" else 0
                    yield "ahead", ago + self.others * size - x if job.block > step else 0
                    ago = self.late[job.block - 1] if job.block and self.without != "late" else 0
                    reach = x + (self.others + 1) * size - 1 if self.without != "period" else x
                    yield "behind", reach + ago if job.block < step else 0
                if job.warp in who:
                    path[who[job.warp]].append((step, job.block, cost))
            if u.warp != v:  # who is u from here on was v before
                who[v] = who.pop(u.warp)
            v = u.warp
        for own in path:
            if own:
                yield from self._path(own[::-1])

    def _cost(self, job: Job, step: int, come: int, t: int) -> int:
        """What the job adds to the delay at a step: one less if it is in Q."""
        served = sum(cycle <= t for cycle in job.issued)
        if step == 0:
            return served - 1
        if job.block == 0 or self.without == "one port":
            return served
        same = self.letters[self.blocks[job.block].first - 1] == self.letters[self.blocks[step].first - 1]
        return served - (same and job.comes <= come)

    def _path(self, own: list[tuple[int, int, int]]) -> Iterator[tuple[str, int]]:
        yield "start", 0 if own[0][:2] == (0, 0) else -1
        value = 0
        for (step, block, cost), (i, j, _) in zip(own, [(-9, -9, 0), *own], strict=False):
            yield "order", min(step - i, block - j) - 1
            value += self.blocks[block].letters - cost
            goes_on = (i, j) == (step - 1, block - 1) and i != j
            if step == block or goes_on or self.without == "start":
                value -= 1
            yield "value", value
