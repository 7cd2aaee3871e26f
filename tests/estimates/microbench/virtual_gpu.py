"""A GPU that takes as long as Kleimenov and Popova say: what the microbenchmarks must recover from it is known."""

import random
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from fractions import Fraction

from makespan.estimates.kleimenov_popova import LaunchLine, Levels, Timing
from makespan.estimates.kleimenov_popova.device import NAMES
from makespan.estimates.microbench.chains import kernels
from makespan.estimates.microbench.programs import GRIDS, STEPS
from makespan.estimates.microbench.samples import BANDWIDTH, DELAY, LATENCY, MEMORY_LATENCY, MicrobenchSample


@dataclass(frozen=True, slots=True)
class VirtualGpu:
    """Latencies, issue delays and launch times that are known, behind a noisy clock.

    Args:
        overhead: cycles of every kernel besides.
        noise: standard deviation of a time, relative.
    """

    timing: Timing
    memory: Levels
    bandwidth: Levels
    launch: Mapping[int, LaunchLine] = field(default_factory=dict)
    overhead: float = 0
    noise: float = 0
    seed: int = 0

    def samples(self, *, repeats: int = 1) -> Iterator[MicrobenchSample]:
        """What the benchmarks of latencies, issue delays and memory measure."""
        clock = random.Random(self.seed)
        for _ in range(repeats):
            for measure, name, count, each in self._runs():
                cycles = (self.overhead + count * each) * (1 + clock.gauss(0, self.noise))
                yield MicrobenchSample((measure, name), (count,), Fraction(cycles))

    def launches(self, *, repeats: int = 1) -> Iterator[MicrobenchSample]:
        """What the benchmark of launch times measures."""
        clock = random.Random(self.seed)
        for _ in range(repeats):
            for warps, line in self.launch.items():
                for blocks in GRIDS:
                    seconds = line.seconds(blocks) * (1 + clock.gauss(0, self.noise))
                    yield MicrobenchSample((str(warps),), (blocks,), Fraction(seconds), in_seconds=True)

    def _runs(self) -> Iterator[tuple[str, str, int, float]]:
        """Measure, name, count, and the cycles of one."""
        each = {LATENCY: self.timing.latencies, DELAY: self.timing.delays}
        for form, kind, count in kernels():
            if kind in each[form]:
                yield form, kind, count, each[form][kind]
        for name, latency, bandwidth in zip(NAMES.values(), self.memory, self.bandwidth, strict=True):
            yield from ((MEMORY_LATENCY, name, steps, latency) for steps in STEPS)
            yield from ((BANDWIDTH, name, moved, 1 / bandwidth) for moved in (1 << 20, 1 << 22))
