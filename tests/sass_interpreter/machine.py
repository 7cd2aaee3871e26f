"""Lanes, warps and blocks: who is where, who waits for whom, and what everybody holds.

Lanes of a warp that part run one group after the other, until the group waits or has ended; they come together only
where machine code says so: at BSYNC all lanes that are still in the mask of BSSY, at WARPSYNC all that it names, at BAR
the block. Groups that stand at the same address by chance stay apart.

Source: G. Diamos et al., "Execution of divergent threads using a convergence barrier", US patent 10,067,768, 2018;
R. Huerta et al., "Control flow management in modern GPUs", arXiv 2407.02944, 2024.
"""

import random
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Literal, NamedTuple, TypeAlias

import numpy as np

from makespan.kernels.sass import SassKernel
from tests.ptx_interpreter.values import LANES, Array
from tests.sass_interpreter.faults import KernelFault

ALL = (1 << LANES) - 1
LANE = np.arange(LANES)
LOCAL_BYTES = 1 << 14

Order: TypeAlias = Literal["nested", "any", "interleaved"]
"""Who runs when a group waits or has ended: its other side first, or any group; or any group at every instruction."""


class Issue(NamedTuple):
    """One warp-instruction, and the lanes in it, bit by bit, whatever its guard says."""

    address: int
    active: int


class Wait(NamedTuple):
    """For what a group stands still: a barrier of lanes by register, the lanes of a mask, or the block."""

    kind: Literal["bsync", "warpsync", "bar"]
    number: int


@dataclass(slots=True, eq=False)
class Group:
    """Lanes that run together, and the address of their next instruction."""

    at: int
    lanes: int
    wait: Wait | None = None


Action: TypeAlias = "Callable[[Warp, Group, Array], None]"
"""What an instruction does for the lanes of a group that its guard leaves; whoever transfers control sets `at`."""
Watch: TypeAlias = "Callable[[Warp, int, Array], Callable[[], None]]"
"""Called before the instruction at an address acts for lanes; what it gives is called behind it."""


def lanes_of(bits: int) -> Array:
    """A set of lanes as an array of booleans."""
    return (bits >> LANE & 1).astype(bool)


def bits_of(lanes: Array) -> int:
    """An array of booleans as a set of lanes, bit by bit."""
    return sum(1 << int(lane) for lane in np.nonzero(lanes)[0])


def first(bits: int) -> int:
    """The first lane of a set."""
    return (bits & -bits).bit_length() - 1


class Warp:
    """The lanes of a warp: registers as arrays over the lanes; uniform ones hold the same for all."""

    def __init__(self, block: "Block", number: int, alive: int) -> None:
        self.block = block
        self.number = number
        self.alive = alive
        self.groups = [Group(0, alive)]
        self.issues: list[Issue] = []
        self.registers: dict[str, Array] = {}
        self.masks: dict[int, list[int]] = {}  # of BSSY, by register and lane
        self.meeting: dict[tuple[int, int], int] = {}  # the address that BSSY said, alike
        self.local = np.zeros((LANES, LOCAL_BYTES), np.uint8)

    def register(self, name: str) -> Array:
        """The 32 bits of a register in every lane; registers begin at zero."""
        if name not in self.registers:
            self.registers[name] = np.zeros(LANES, np.uint32)
        return self.registers[name]

    def predicate(self, name: str) -> Array:
        if name not in self.registers:
            self.registers[name] = np.zeros(LANES, bool)
        return self.registers[name]

    def mask(self, number: int) -> list[int]:
        return self.masks.setdefault(number, [0] * LANES)

    def threads(self) -> Array:
        """The number of each lane within its block."""
        return self.number * LANES + LANE

    def split(self, group: Group, lanes: int, to: int) -> None:
        """Send some lanes of a group elsewhere; which side goes first is drawn."""
        if not lanes:
            return
        if lanes == group.lanes:
            group.at = to
            return
        group.lanes &= ~lanes
        self.groups.remove(group)
        sides = [group, Group(to, lanes)]
        self.block.choose.shuffle(sides)
        self.groups += sides

    def end(self, group: Group, lanes: int) -> None:
        """Lanes that leave; nobody waits for them any more."""
        group.lanes &= ~lanes
        self.alive &= ~lanes
        if not group.lanes:
            self.groups.remove(group)

    def settle(self) -> None:
        """Let groups go on that have come together."""
        for group in [g for g in self.groups if g.wait is not None and g.wait.kind != "bar"]:
            if group not in self.groups or group.wait is None:
                continue
            kind, number = group.wait
            wanted = number if kind == "warpsync" else self.mask(number)[first(group.lanes)]
            here = [g for g in self.groups if g.wait == group.wait and (g is group or g.lanes & wanted)]
            arrived = sum(g.lanes for g in here)
            if wanted & self.alive & ~arrived:
                continue
            self.groups = [g for g in self.groups if g not in here]
            for at in sorted({g.at for g in here}):
                self.groups.append(Group(at, sum(g.lanes for g in here if g.at == at)))


class Block:
    """The warps of a block, what they share, and the order in which they run, which is drawn.

    Args:
        banks: of constants, by number.
        memory: the global one, from `memory.BASE`.
        code: by address, the lanes for which an instruction acts, None for all, and what it does.
    """

    def __init__(
        self,
        kernel: SassKernel,
        launch: "LaunchedBlock",
        banks: Mapping[int, Array],
        memory: Array,
        code: Mapping[int, tuple[Callable[[Warp], Array] | None, Action]],
    ) -> None:
        self.kernel = kernel
        self.launch = launch
        self.banks = banks
        self.memory = memory
        self.shared = np.zeros(1 << 17, np.uint8)
        self.code = code
        self.choose = random.Random(launch.seed)
        x, y, z = launch.block
        threads = x * y * z
        self.warps = [
            Warp(self, number, ALL if threads >= 32 * (number + 1) else (1 << threads - 32 * number) - 1)
            for number in range(-(-threads // LANES))
        ]

    def run(self, limit: int) -> None:
        left = limit
        while any(warp.groups for warp in self.warps):
            ready = [warp for warp in self.warps if any(g.wait is None for g in warp.groups)]
            if not ready:
                self._open_barriers()
                continue
            warp = self.choose.choice(ready)
            for group in self._turns(warp):
                self._step(warp, group)
                left -= 1
                if left < 0:
                    raise KernelFault(f"{limit} instructions did not end {self.kernel.name}")

    def _turns(self, warp: Warp) -> Iterator[Group]:
        """The groups of a warp in turn, until all wait."""
        current: Group | None = None
        while ready := [g for g in warp.groups if g.wait is None]:
            if self.launch.order == "nested":
                current = ready[-1]
            elif self.launch.order == "interleaved" or current not in ready:
                current = self.choose.choice(ready)
            assert current is not None
            yield current

    def _step(self, warp: Warp, group: Group) -> None:
        at = group.at
        if at not in self.code:
            raise KernelFault(f"{at:#x}: there is no instruction")
        warp.issues.append(Issue(at, group.lanes))
        guard, action = self.code[at]
        lanes = lanes_of(group.lanes)
        if guard is not None:
            lanes &= guard(warp)
        group.at = at + 16
        look_again = self.launch.watch(warp, at, lanes) if self.launch.watch else None
        if lanes.any():
            try:
                action(warp, group, lanes)
            except KernelFault as fault:
                raise KernelFault(f"{at:#x}: {self.kernel.code[at // 16]}: {fault}") from None
        if look_again:
            look_again()
        warp.settle()

    def _open_barriers(self) -> None:
        """Every group waits: those at the same barrier go on if nobody of the block is elsewhere."""
        waits = {group.wait for warp in self.warps for group in warp.groups}
        if len(waits) != 1 or next(iter(waits)) is None or {w.kind for w in waits if w} != {"bar"}:
            raise KernelFault(f"all lanes wait, for {sorted(map(str, waits))}")
        for warp in self.warps:
            for group in warp.groups:
                group.wait = None


@dataclass(frozen=True, slots=True)
class LaunchedBlock:
    """Which block of which grid runs, and how."""

    block: tuple[int, int, int] = (32, 1, 1)
    grid: tuple[int, int, int] = (1, 1, 1)
    index: tuple[int, int, int] = (0, 0, 0)
    order: Order = "nested"
    seed: int = 0
    watch: "Watch | None" = None
