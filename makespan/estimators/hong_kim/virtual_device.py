"""A memory that behaves as the model assumes: what the microbenchmarks must recover from it is known."""

import random
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction

from makespan.estimators.hong_kim.exact import Number, exact
from makespan.estimators.hong_kim.samples import MemorySample


@dataclass(frozen=True, slots=True)
class DepartureQueue:
    """Queues in front of a memory: one for each SM, and one for the chip.

    A queue of an SM lets a transaction pass every `departure_coal` or `departure_uncoal` cycles, that of the chip one
    every `departure_chip` cycles, whatever SM it is from; a transaction is answered `latency` cycles later.

    Args:
        uncoal_per_mw: transactions of an uncoalesced request.
        overhead: cycles of a launch, in every time.
        noise: standard deviation of a time, relative.
    """

    latency: Number
    departure_coal: Number
    departure_uncoal: Number
    uncoal_per_mw: int
    sms: int = 1
    departure_chip: Number = 0
    overhead: Number = 0
    noise: float = 0.0
    seed: int = 0

    def walk(self, steps: int) -> Fraction:
        """Cycles of one thread that makes so many loads, each after the answer to the last."""
        return exact(self.overhead, "overhead") + steps * exact(self.latency, "latency")

    def run(self, pattern: str, requests: int, *, sms: int = 1) -> Fraction:
        """Cycles from the launch until the last answer, when each of `sms` makes so many requests at once."""
        per_request = self.uncoal_per_mw if pattern == "uncoalesced" else 1
        own = exact(self.departure_uncoal if pattern == "uncoalesced" else self.departure_coal, "departure")
        chip = exact(self.departure_chip, "departure_chip")
        passed = -chip
        for number in range(requests * per_request):
            passed = max(passed + chip, number * own) + (sms - 1) * chip
        return exact(self.overhead, "overhead") + passed + exact(self.latency, "latency")

    def samples(
        self, *, requests: tuple[int, ...] = (32, 64, 128, 256), steps: tuple[int, ...] = (1024, 4096), repeats: int = 1
    ) -> tuple[MemorySample, ...]:
        """What the three kernels measure on one SM."""
        return tuple(self._noisy(self._exact(requests, steps), repeats))

    def whole_gpu_samples(self, *, requests: tuple[int, ...] = (32, 64, 128, 256)) -> tuple[MemorySample, ...]:
        """What the two departure kernels measure with all SMs; the requests of each are given."""
        runs = (
            MemorySample(pattern, count * self.sms, self.run(pattern, count, sms=self.sms))
            for pattern in ("coalesced", "uncoalesced")
            for count in requests
        )
        return tuple(self._noisy(tuple(runs), 1))

    def _exact(self, requests: tuple[int, ...], steps: tuple[int, ...]) -> tuple[MemorySample, ...]:
        walks = (MemorySample("latency", count, self.walk(count)) for count in steps)
        patterns = ((pattern, count) for pattern in ("coalesced", "uncoalesced") for count in requests)
        runs = (MemorySample(pattern, count, self.run(pattern, count)) for pattern, count in patterns)
        return (*walks, *runs)

    def _noisy(self, samples: tuple[MemorySample, ...], repeats: int) -> Iterator[MemorySample]:
        generator = random.Random(self.seed)  # noqa: S311 - noise of a simulated clock
        for sample in samples * repeats:
            error = Fraction(generator.gauss(0, self.noise)) if self.noise else 0
            yield MemorySample(sample.pattern, sample.requests, sample.time * (1 + error))
