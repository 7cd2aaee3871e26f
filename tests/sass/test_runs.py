"""Compiled kernels that run by the rules of docs/machine_code.md never take longer than what is proven of them."""

import random
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pytest

from makespan.kernels.flow import Launch
from makespan.kernels.sass import SassInstruction, SassKernel, programs
from makespan.model.conditions import conditions
from makespan.model.instance import Instance
from makespan.model.machine import OPERATIONS, Machine, TimedOperation, UnitClass
from makespan.proof.bounds.theorem_1s import bound
from tests import sass_interpreter
from tests.ptx_interpreter.values import Array
from tests.sass.test_executed import BLOCK, REFUSED
from tests.sass.test_interpreter import LISTINGS, inputs, kernel_in
from tests.sass_random import SLOTS

MOST = 20
"""Cycles of any operation."""

HOLDS_UP = ("BRA", "BRX", "BSYNC", "CALL", "EXIT", "RET", "WARPSYNC", "BAR")
"""The next instruction of its warp comes after the cycles of a branch or barrier, too."""

APART = {"with operands read as late as results", "with operands read behind later instructions"}

KERNELS = [path for path in LISTINGS if path.stem not in REFUSED]


@dataclass
class Warp:
    """Where a warp is on its way, when it may go on, and until when its counters and B0 and so on are up."""

    way: Sequence[SassInstruction]
    at: int = 0
    free: int = 0
    until: dict[str, int] = field(default_factory=dict)
    is_at_barrier: bool = False

    def is_ready(self, now: int) -> bool:
        if self.at == len(self.way) or self.is_at_barrier or now < self.free:
            return False
        instruction = self.way[self.at]
        mask = instruction.word >> 116 & 63
        awaited = [f"{counter}" for counter in range(6) if mask >> counter & 1]
        awaited += instruction.operands[-1:] if instruction.name == "BSYNC" else ()
        return all(self.until.get(name, 0) <= now for name in awaited)

    def issue(self, now: int, choose: random.Random, *, at_most: bool) -> None:
        instruction = self.way[self.at]
        word, name = instruction.word, instruction.name
        stall, yields, write, read = word >> 105 & 15, not word >> 109 & 1, word >> 110 & 7, word >> 113 & 7
        ups = [str(counter) for counter in (write, read) if counter != 7]
        ups += instruction.operands[:1] if name == "BSSY" else ()
        for up in ups:
            took = MOST if at_most else choose.choice([1, MOST, choose.randint(1, MOST)])
            self.until[up] = max(self.until.get(up, 0), now + took)
        most = 46 if stall == 0 else 2 if stall == 1 and yields else stall
        least = 1 if stall > 11 and not yields else max(1, min(stall, most))
        took = most if at_most else choose.randint(least, most)
        if name in HOLDS_UP:
            took = max(took, MOST if at_most else choose.randint(1, MOST))
        self.free, self.at, self.is_at_barrier = now + took, self.at + 1, name == "BAR"

    @property
    def ends(self) -> int:
        return max([self.free, *self.until.values()])


def makespan(ways: Sequence[Sequence[SassInstruction]], seed: int, *, at_most: bool) -> int:
    """Of warps of a block, one of which issues in each cycle in which one can."""
    choose, now = random.Random(seed), 0
    warps = [Warp(way) for way in ways]
    first = choose.random() < 0.5
    while any(warp.at < len(warp.way) or warp.is_at_barrier for warp in warps):
        going = [warp for warp in warps if warp.at < len(warp.way) or warp.is_at_barrier or warp.ends > now]
        if all(warp.is_at_barrier and warp.free <= now for warp in going):
            for warp in going:
                warp.is_at_barrier = False
        if ready := [warp for warp in warps if warp.is_ready(now)]:
            (ready[0] if first else choose.choice(ready)).issue(now, choose, at_most=at_most)
        now += 1
    return max(warp.ends for warp in warps)


def timed() -> Machine:
    rows = tuple(TimedOperation(name, "C", 1, MOST) for name in OPERATIONS)
    return Machine("timed", (UnitClass("C", 1),), issue_width=1, operations=rows)


def ways_of(kernel: SassKernel, n: int, seed: int) -> list[list[SassInstruction]]:
    at = {int(instruction.address): instruction for instruction in kernel.code}
    data: list[Array | int] = [inputs(n), np.zeros((64, SLOTS), np.uint32), n]
    trace = sass_interpreter.run(kernel, block=BLOCK, arguments=data, seed=seed)
    return [[at[address] for address in trace.addresses(warp)] for warp in (0, 1)]


@pytest.mark.parametrize("path", KERNELS, ids=lambda path: path.stem)
def test_no_run_is_longer_than_the_bound(path: Path) -> None:
    kernel, machine, n = kernel_in(path), timed(), 3
    proven = programs(kernel, launch=Launch(block=BLOCK, parameters={"2": n}), machine=machine)
    most = bound(Instance.merged(proven, machine))
    for seed in range(4):
        ways = ways_of(kernel, n, seed)
        for at_most in (True, False):
            assert makespan(ways, seed, at_most=at_most) <= most
    alone = max(bound(Instance.of(program, 1, machine)) for program, _ in proven)
    taken = [makespan([way], 0, at_most=True) for way in ways]
    assert max(taken) <= alone
    if all(program.is_chain and not APART & {*conditions(program.assumptions)} for program, _ in proven):
        assert max(taken) == alone
