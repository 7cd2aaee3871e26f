"""Classes of the global reads of a PTX kernel: all threads are followed, and the addresses of each read looked at."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from makespan.estimators.opencl_cost_table.access import Access
from makespan.estimators.profile.following import Code, Following, Front, Threads, TooLongError, follow
from makespan.estimators.profile.launched import Launched
from makespan.estimators.profile.probes import Probe, probed
from makespan.flow import Launch

MAX_STEPS = 4_000_000
_AXES = "xyz"


@dataclass(frozen=True, slots=True)
class Visit:
    """One execution of a read by many threads: its addresses in bytes.

    Args:
        distance: of the address from that of an array that is read in the order of the threads; None if it varies.
    """

    least: int
    most: int
    distance: int | None

    def __or__(self, other: "Visit") -> "Visit":
        """Both, as executions of the same step by different threads."""
        distance = self.distance if self.distance == other.distance else None
        return Visit(min(self.least, other.least), max(self.most, other.most), distance)


def read_classes(launched: Launched, interval_bytes: int) -> dict[int, Access]:
    """The class of each global read, by its number in the kernel; one that is not there has no known addresses.

    A loop runs within a thread, so an address that changes from iteration to iteration and is the same for all threads
    is constant, and one that follows the number of the thread in each iteration is continuous.
    """
    if not launched.flow.is_plain:
        return {}
    found = probed(launched.flow, launched.launch)
    reads = {n: p for n, p in found.probes.items() if p.access.is_load and p.access.space in ("global", "generic")}
    registers = [name for probe in reads.values() for name in (probe.address, probe.guard) if name]
    seen: dict[int, dict[int, Visit]] = {}
    unknown: set[int] = set()

    def following(code: Code, group: Threads, steps: int) -> _Following:
        order = _order(group, launched.launch)
        by_block = {
            block: [(n, probe) for n, probe in probes if n in reads] for block, probes in found.by_block.items()
        }
        return _Following(code, group, steps, order, by_block, seen, unknown)

    try:
        for _ in follow(found, launched.launch, registers, MAX_STEPS, following):
            pass
    except TooLongError:
        return {}
    return {
        number: _class(list(visits.values()), reads[number].access.lane_bytes, interval_bytes)
        for number, visits in seen.items()
        if number not in unknown
    }


def _class(visits: list[Visit], lane_bytes: int, interval_bytes: int) -> Access:
    if all(visit.least == visit.most for visit in visits):
        return Access.CONSTANT
    span = max(visit.most for visit in visits) - min(visit.least for visit in visits) + lane_bytes
    if span <= interval_bytes:
        return Access.INTERVAL
    return Access.CONTINUOUS if all(visit.distance is not None for visit in visits) else Access.COMPLEX


class _Following(Following):
    """An execution that notes the addresses of reads."""

    def __init__(
        self,
        code: Code,
        group: Threads,
        steps: int,
        order: NDArray[np.int64],
        reads: Mapping[int, list[tuple[int, Probe]]],
        seen: dict[int, dict[int, Visit]],
        unknown: set[int],
    ) -> None:
        super().__init__(code, group, steps)
        self.order, self.reads, self.seen, self.unknown = order, reads, seen, unknown
        self.visits: dict[int, int] = {}

    def _block(self, block: int, front: Front) -> Iterator[tuple[int, Front]]:
        fronts = list(super()._block(block, front))
        for number, probe in self.reads.get(block, ()):
            self._spend(4)
            self._note(number, probe, front.mask, fronts[0][1].state)
        return iter(fronts)

    def _note(self, number: int, probe: Probe, mask: Any, state: Mapping[str, Any]) -> None:
        at = self.visits[number] = self.visits.get(number, -1) + 1
        value, guard = state.get(probe.address), state.get(probe.guard or "")
        if value is None:
            self.unknown.add(number)
            return
        active = np.broadcast_to(mask, self.order.shape)
        if guard is not None:
            active = active & (np.asarray(guard) & 1 == (0 if probe.is_negated else 1))
        if not active.any():
            return
        addresses = np.broadcast_to(np.asarray(value, np.uint64).astype(np.int64), self.order.shape)[active]
        distances = addresses - probe.access.lane_bytes * self.order[active]
        same = bool((distances == distances[0]).all())
        visit = Visit(int(addresses.min()), int(addresses.max()), int(distances[0]) if same else None)
        visits = self.seen.setdefault(number, {})
        visits[at] = visits[at] | visit if at in visits else visit


def _order(group: Threads, launch: Launch) -> NDArray[np.int64]:
    """The number of every thread in its grid, x fastest; a block whose number does not matter counts as the first."""
    order, step = np.zeros(group.size, np.int64), 1
    for axis, block, grid in zip(_AXES, launch.block or (), launch.grid or (), strict=True):
        within, before = (
            np.asarray(group.state.get(f"{name}.{axis}", 0)).astype(np.int64) for name in ("%tid", "%ctaid")
        )
        order = order + step * (before * block + within)
        step *= block * grid
    return order
