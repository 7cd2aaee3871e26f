"""How long CPU time takes on a core with preemptive fixed priorities, when tasks wait for their kernels in between.

A task that waits for its kernel suspends itself. Its next job's CPU time can then come closer than a period after the
last one's, which the classic analysis with release jitter alone misses. Earlier jobs of the same task that have not
ended are part of the CPU time that a bound is asked for. Proofs: docs/schedulability_theory.md.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from makespan.schedulability.arrivals import Steps


@dataclass(frozen=True, slots=True)
class Rival:
    """A task of at least the same priority on the core; times in ticks from the event that all is counted from.

    Args:
        before: CPU time before the kernel, done at most `ready` after the event.
        after: CPU time after the kernel, done at most `end` after the event.
        jitter: until the release, at most.
        kernel: from the end of the first CPU time to the end of the kernel, at most.
    """

    period: int
    before: int
    after: int
    jitter: int
    ready: int
    kernel: int
    end: int


def workload(rival: Rival, length: int) -> int:
    """CPU time that the rival's jobs can take in `length` ticks: the less of two bounds.

    The jitter of a stretch of C ticks that is done R after the event is R - C; the suspension time instead is not safe.

    Source: Chen, Nelissen, Huang and others, Real-Time Systems 55(1), 2019; Bletsas, Audsley, Huang, Chen
        and Nelissen, Leibniz Transactions on Embedded Systems 5(1), 2018.
    """
    cpu = rival.before + rival.after
    jointly = _stretches(rival.period, rival.end - cpu, length) * cpu
    first = _stretches(rival.period, rival.ready - rival.before, length) * rival.before
    second = _stretches(rival.period, rival.end - rival.after, length) * rival.after
    return min(jointly, first + second)


def _stretches(period: int, jitter: int, length: int) -> int:
    return -(-(length + jitter) // period)


def stretch(cpu: int, rivals: Sequence[Rival], limit: int, steps: Steps) -> int | None:
    """Ticks until `cpu` ticks of work that is ready, and all that goes before, are done; None beyond `limit`.

    Waiting for the kernel may be part of `cpu`, as if the core were busy with it.

    Source: Joseph and Pandya, The Computer Journal 29(5), 1986, with the workload of suspending tasks.
    """
    length = cpu
    while length <= limit:
        steps.spend(len(rivals) + 1)
        demand = cpu + sum(workload(rival, length) for rival in rivals)
        if demand == length:
            return length
        length = demand
    return None


def oblivious(cpu: int, rivals: Sequence[Rival], limit: int, steps: Steps) -> int | None:
    """The same, with each rival's wait for its kernel counted as CPU time; None beyond `limit`.

    No rival may have the same priority, and every job of the task must end before the next one is released.

    Source: Chen, Nelissen, Huang and others, Real-Time Systems 55(1), 2019.
    """
    rows = [(r.before + r.kernel + r.after, r.period, r.jitter) for r in rivals]
    length = cpu
    while length <= limit:
        steps.spend(len(rows) + 1)
        demand = cpu + sum(c * _stretches(t, j, length) for c, t, j in rows)
        if demand == length:
            return length
        length = demand
    return None
