"""The proof of theorem L as a program: its inequalities, evaluated on the chains of a random schedule.

The names are those of docs/theory.md, 5. Of the bound only the numbers `late` are taken, of which the proof is.
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
    """A schedule of strings; `late` is what the theorem says of the end of each block of a string.

    Args:
        letters: the string of every warp.
        without: a part of an inequality that is left out.
    """

    letters: list[str]
    latency: dict[str, int]
    run: list[list[Issue]]
    late: dict[str, list[int]]
    without: str = ""
    blocks: list[list[Block]] = field(init=False)

    def __post_init__(self) -> None:
        self.blocks = [blocks_of(string, self.latency) for string in self.letters]
        self.largest: list[dict[str, int]] = [defaultdict(int) for _ in self.letters]
        for most, own in zip(self.largest, self.blocks, strict=True):
            for block in own:
                most[block.unit] = max(most[block.unit], block.letters)
        self.jobs = [
            Job(
                warp,
                number,
                0 if block.first == 0 else self.run[warp][block.first - 1].ready,
                tuple(one.cycle for one in self.run[warp][block.first : block.first + block.letters]),
            )
            for warp, own in enumerate(self.blocks)
            for number, block in enumerate(own)
        ]
        self.job = {(job.warp, job.block): job for job in self.jobs}
        self.issued: dict[str, set[int]] = defaultdict(set)
        for issues in self.run:
            for one in issues:
                self.issued[one.unit].add(one.cycle)

    def inequalities(self) -> Iterator[tuple[str, int]]:
        """Name and slack of every inequality, for the chains that end with each warp at its last block."""
        for warp in range(len(self.run)):
            yield from self._chain(warp)

    def _chain(self, v: int) -> Iterator[tuple[str, int]]:
        equals = [warp for warp, string in enumerate(self.letters) if string == self.letters[v]]
        late = self.late[self.letters[v]]
        path: list[list[tuple[int, int, int]]] = [[] for _ in self.run]  # by other: step, block, cost; last step first
        who = {warp: warp for warp in range(len(self.run)) if warp != v}  # the other that a warp is
        before: dict[str, int] = {}  # where the period of the class at a later step begins
        for step in range(len(self.blocks[v]) - 1, -1, -1):
            block = self.blocks[v][step]
            others = sum(most[block.unit] for most in self.largest) - self.largest[v][block.unit]
            t = self.job[v, step].issued[-1]
            b = t
            while b - 1 in self.issued[block.unit]:
                b -= 1
            yield "periods", before.get(block.unit, t + 2) - t - 2
            before[block.unit] = b
            near = [self.job[w, step] for w in equals if self.job[w, step].issued[-1] <= t]
            u = max(near, key=lambda job: (job.comes, job.warp == v))
            come = [job for job in self.jobs if self._block(job).unit == block.unit and b <= job.comes <= t]
            yield "one job", len({job.warp for job in come}) - len(come)
            idle = range(u.comes - others - 1, u.comes)
            yield "idle", sum(cycle not in self.issued[block.unit] for cycle in idle) - 1
            yield "late", late[step] - (t - block.end)
            costs = {job: self._cost(job, v, step, u.comes, t) for job in come if job.warp != v}
            spread = (len(equals) - 1) * (step == 0)
            yield "step", sum(costs.values()) + spread - (t - block.letters + 1 - u.comes)
            for job, cost in costs.items():
                if job.warp in equals and job.block == step:
                    yield "near", block.letters - 1 - (self.without == "run") - cost
                else:
                    yield "far", self._block(job).letters - cost
                    yield from self._reach(job, block, late[step - 1] if step else 0, others)
                path[who[job.warp]].append((step, job.block, cost))
            if u.warp != v:  # who is u from here on was v before
                who[v] = who.pop(u.warp)
            v = u.warp
        for warp, other in who.items():
            if path[other]:
                yield from self._path(path[other][::-1], self.blocks[warp], warp in equals)

    def _block(self, job: Job) -> Block:
        return self.blocks[job.warp][job.block]

    def _reach(self, job: Job, block: Block, ago: int, others: int) -> Iterator[tuple[str, int]]:
        """How far the job can be from the block of the chain."""
        x = self._block(job).begin - block.end
        if x > 0:
            yield "ahead", (ago if self.without != "late" else 0) + others - x
        else:
            busy = sum(most[block.unit] for most in self.largest) if self.without != "period" else 1
            ago = self.late[self.letters[job.warp]][job.block - 1] if job.block and self.without != "late" else 0
            yield "behind", x + busy - 1 + ago

    def _cost(self, job: Job, v: int, step: int, come: int, t: int) -> int:
        """What the job adds to the delay at a step: one less if it is in Q, or at the first block."""
        served = sum(cycle <= t for cycle in job.issued)
        if step == 0 or job.block == 0:
            return served - (step == job.block and self.letters[v] == self.letters[job.warp])
        if self.without == "one port":
            return served
        own, other = self.letters[v], self.letters[job.warp]
        same = other[self._block(job).first - 1] == own[self.blocks[v][step].first - 1]
        return served - (same and job.comes <= come)

    def _path(self, own: list[tuple[int, int, int]], blocks: list[Block], equal: bool) -> Iterator[tuple[str, int]]:
        yield "start", -(equal and own[0][:2] != (0, 0))
        value = 0
        for (step, block, cost), (i, j, _) in zip(own, [(-9, -9, 0), *own], strict=False):
            yield "order", min(step - i, block - j) - 1
            value += blocks[block].letters - cost
            near = equal and step == block
            if near or ((i, j) == (step - 1, block - 1) and not (equal and i == j)) or self.without == "start":
                value -= 1
            yield "value", value
