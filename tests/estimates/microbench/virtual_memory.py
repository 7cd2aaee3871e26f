"""A memory that behaves as Hong and Kim assume: what the microbenchmarks must recover from it is known."""

import random
from dataclasses import dataclass, replace
from fractions import Fraction

from makespan.estimates.microbench.samples import PATTERNS, MicrobenchSample


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

    latency: int
    departure_coal: int
    departure_uncoal: int
    uncoal_per_mw: int
    sms: int = 1
    departure_chip: Fraction = Fraction(0)
    overhead: int = 0
    noise: float = 0.0
    seed: int = 0

    def walk(self, steps: int) -> Fraction:
        """Cycles of one thread that makes so many loads, each after the answer to the last."""
        return Fraction(self.overhead + steps * self.latency)

    def run(self, pattern: str, requests: int, *, sms: int = 1) -> Fraction:
        """Cycles from the launch until the last answer, when each of `sms` makes so many requests at once."""
        per_request = self.uncoal_per_mw if pattern == "uncoalesced" else 1
        own = self.departure_uncoal if pattern == "uncoalesced" else self.departure_coal
        passed = -self.departure_chip
        for number in range(requests * per_request):
            passed = max(passed + self.departure_chip, Fraction(number * own)) + (sms - 1) * self.departure_chip
        return self.overhead + passed + self.latency

    def samples(
        self, *, requests: tuple[int, ...] = (32, 64, 128, 256), steps: tuple[int, ...] = (1024, 4096), repeats: int = 1
    ) -> tuple[MicrobenchSample, ...]:
        """What the three kernels measure on one SM."""
        walks = [MicrobenchSample((PATTERNS[0],), (count,), self.walk(count)) for count in steps]
        runs = [
            MicrobenchSample((name,), (count,), self.run(name, count)) for name in PATTERNS[1:] for count in requests
        ]
        return self._noisy([*walks, *runs], repeats)

    def whole_gpu_samples(self, *, requests: tuple[int, ...] = (32, 64, 128, 256)) -> tuple[MicrobenchSample, ...]:
        """What the two departure kernels measure with all SMs; the requests of each are given."""
        several = ((name, count) for name in PATTERNS[1:] for count in requests)
        runs = [
            MicrobenchSample((name,), (count * self.sms,), self.run(name, count, sms=self.sms))
            for name, count in several
        ]
        return self._noisy(runs, 1)

    def _noisy(self, samples: list[MicrobenchSample], repeats: int) -> tuple[MicrobenchSample, ...]:
        generator = random.Random(self.seed)
        errors = (Fraction(generator.gauss(0, self.noise)) for _ in range(len(samples) * repeats))
        return tuple(replace(s, time=s.time * (1 + error)) for s, error in zip(samples * repeats, errors, strict=True))


QUADRO = DepartureQueue(latency=420, departure_coal=4, departure_uncoal=10, uncoal_per_mw=32)
GTX280 = DepartureQueue(latency=450, departure_coal=4, departure_uncoal=40, uncoal_per_mw=12)
