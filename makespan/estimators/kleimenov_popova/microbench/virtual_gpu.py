"""A GPU that takes as long as the model says: what the microbenchmarks must recover from it is known."""

import random
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from makespan.estimators.kleimenov_popova.device import NAMES, Levels
from makespan.estimators.kleimenov_popova.launch_time import EmptyKernel, LaunchLine
from makespan.estimators.kleimenov_popova.microbench.chains import CHAIN, LENGTHS, STREAM, kernels
from makespan.estimators.kleimenov_popova.microbench.samples import BANDWIDTH, MEMORY, Sample
from makespan.estimators.kleimenov_popova.microbench.sources import GRIDS, STEPS
from makespan.estimators.kleimenov_popova.thread_time import Timing


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

    def samples(self, *, lengths: tuple[int, ...] = LENGTHS, repeats: int = 1) -> Iterator[Sample]:
        """What the benchmarks of latencies, issue delays and memory measure."""
        clock = random.Random(self.seed)  # noqa: S311 - noise of a simulated clock
        for _ in range(repeats):
            for measure, name, count, each in self._runs(lengths):
                cycles = (self.overhead + count * each) * (1 + clock.gauss(0, self.noise))
                yield Sample(measure, name, count, cycles)

    def launches(self, *, repeats: int = 1) -> Iterator[EmptyKernel]:
        """What the benchmark of launch times measures."""
        clock = random.Random(self.seed)  # noqa: S311 - likewise
        for _ in range(repeats):
            for warps, line in self.launch.items():
                for blocks in GRIDS:
                    yield EmptyKernel(blocks, warps, line.seconds(blocks) * (1 + clock.gauss(0, self.noise)))

    def _runs(self, lengths: tuple[int, ...]) -> Iterator[tuple[str, str, int, float]]:
        """Measure, name, count, and the cycles of one."""
        each = {CHAIN: self.timing.latencies, STREAM: self.timing.delays}
        for form, kind, count in kernels(lengths):
            if kind in each[form]:
                yield form, kind, count, each[form][kind]
        for name, latency, bandwidth in zip(NAMES.values(), self.memory, self.bandwidth, strict=True):
            yield from ((MEMORY, name, steps, latency) for steps in STEPS)
            yield from ((BANDWIDTH, name, moved, 1 / bandwidth) for moved in (1 << 20, 1 << 22))
