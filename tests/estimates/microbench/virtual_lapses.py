"""A virtual multiprocessor with lapses, queues and late lines, cycle by cycle; it shares no code with the model."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from makespan.hardware.sm_lapses import AGAIN, FIRST, GAPS, LOADS, MEASURED, OTHER, OWN
from makespan.hardware.sm_programs import ALL, APART, LAPSE, LINE, ONE, QUEUE

VirtualRow = tuple[tuple[str, str, str], tuple[int, int], int]
ITEMS = (16, 32)
"""Fewer items than those of the program, and enough to fill its queues."""
USUAL = 9
"""Cycles from one reading of the clock to the next."""


@dataclass(frozen=True, slots=True)
class VirtualLapses:
    """What is true of it, in cycles.

    Args:
        after: the cycles that a scheduler idles after an instruction of the worker of this name.
        constant: the cycles that it idles at a constant that misses, and those until the constant is there.
        fences: the cycles that all schedulers idle after a fence of this scope.
        places: the most loads that wait.
        path: the cycles for which a load holds a port of its partition. `memory` is the same of one of all partitions.
        blocks: whether nothing else is issued for a load that finds no place.
        late: the cycles by which a line is late that the next cache has, and those of one that no cache has.
    """

    after: Mapping[str, int] = field(default_factory=lambda: {"reads-2": 1, "reads-3": 2, "special": 1, "multiply": 1})
    constant: tuple[int, int] = (4, 79)
    fences: Mapping[str, int] = field(default_factory=lambda: {"block": 53, "gpu": 186, "system": 290})
    places: int = 5
    path: int = 4
    memory: int = 2
    blocks: bool = True
    late: tuple[int, int] = (86, 500)

    def samples(self) -> Iterator[VirtualRow]:
        """What the program prints."""
        for name, whose in sorted(MEASURED):
            alone = self.time(name, max(ITEMS), self.path)
            for count in ITEMS:
                beside = 0 if whose == OWN else 2 * alone + 64
                cycles = self.time(name, count, self.path, beside, is_other=whose == OTHER)
                yield (LAPSE, name, whose), (1 if whose == OWN else 3, count), cycles
        for count in LOADS:
            yield (QUEUE, "shared", ONE), (1, count), self.time("load", count, self.path)
            held = max(self.path, APART * self.memory)
            yield (QUEUE, "shared", ALL), (APART, count), self.time("load", count, held)
        for warps in (1, APART):
            for execution, late in ((FIRST, (self.late[1], self.late[1])), (AGAIN, (0, self.late[0]))):
                for (name, gaps), more in zip(GAPS.items(), late, strict=True):
                    yield (LINE, name, execution), (warps, gaps), USUAL + more

    def time(self, name: str, items: int, held: int, beside: int = 0, *, is_other: bool = False) -> int:
        """Cycles of the worker; with warps beside it those until these have executed so many instructions.

        The worker goes first. The others, of its partition or of another one, always have an instruction.
        """
        steps = [name, "logic"] if name in ("plain", "multiply") else [name]
        todo, left = steps * items, beside
        cycle = ready = served = queued = port = 0
        stopped, all_stopped = 0, 0  # the partition of the worker, and all partitions
        while left or (todo and not beside):
            if queued and cycle >= port:
                queued, port = queued - 1, cycle + held
            other_slot = cycle >= all_stopped
            has_slot = other_slot and cycle >= stopped
            if todo and has_slot and cycle >= ready:
                step = todo[0]
                if step == "constants" and not served:
                    served, stopped, ready = 1, cycle + self.constant[0], cycle + self.constant[1]
                    has_slot = cycle >= stopped
                elif step == "load" and queued >= self.places and (queued or cycle < port):
                    has_slot = not self.blocks
                else:
                    todo.pop(0)
                    served, has_slot = 0, False
                    stopped = cycle + 1 + self.after.get(step, 0)
                    if step.startswith("fence"):
                        all_stopped = cycle + 1 + self.fences[step.partition("-")[2]]
                    if step == "load":
                        queued += 1
                        if cycle >= port:
                            queued, port = queued - 1, cycle + held
            if left and (other_slot if is_other else has_slot):
                left -= 1
            cycle += 1
        return cycle
