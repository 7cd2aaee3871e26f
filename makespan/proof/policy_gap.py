"""Runs of scheduling policies, beside the best and the worst case of all schedulers.

A run of a policy is one schedule. The shortest and the longest case are proven for every work-conserving scheduler. A
policy never lets a scheduler lapse.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import NamedTuple

from makespan.host.errors import BrokenPromiseError
from makespan.model.instance import Instance
from makespan.model.result import Bounds, Result, Step
from makespan.model.schedule import Schedule
from makespan.model.simulate import POLICIES, Choices, replay, run
from makespan.model.wording import pessimistic_meaning, pessimistic_name, promise_words
from makespan.proof.bounds import least_possible, pessimistic

ONE_RUN = "one run, not a bound"


class PolicyRow(NamedTuple):
    """One line of the table; `lower == upper` for a run and for what is exact, in cycles."""

    name: str
    kind: str
    lower: int
    upper: int
    remark: str


@dataclass(frozen=True, slots=True)
class PolicyGap:
    """Runs of policies, and a result with a best case that encloses them.

    Args:
        result: no longer open than the runs leave it, see `enclosing`.
        runs: the makespan in cycles by policy.
    """

    result: Result
    runs: Mapping[str, int]

    @property
    def best_case(self) -> Bounds:
        """Return the proven interval of the shortest schedule."""
        if self.result.best_case is None:
            raise ValueError("a policy gap needs a result with a best case")
        return self.result.best_case

    def rows(self) -> Iterator[PolicyRow]:
        """Yield the table: best case, runs from the shortest to the longest, worst case, M^L + M^C.

        Where schedulers lapse, the worst case without lapses comes before that with them.
        """
        best, worst, plain = self.best_case, self.result.bounds, self.result.without_lapses
        shortest = "the shortest work-conserving schedule" if plain is None else "the shortest schedule"
        yield PolicyRow("best case", "proven", best.lower, best.upper, shortest)
        for policy, makespan in sorted(self.runs.items(), key=lambda item: item[1]):
            yield PolicyRow(policy, "run", makespan, makespan, ONE_RUN)
        if plain is not None:
            without, evidence = plain.bounds, _worst_case_words(plain)
            yield PolicyRow("without lapses", "proven", without.lower, without.upper, evidence)
        yield PolicyRow("worst case", "proven", worst.lower, worst.upper, _worst_case_words(self.result))
        bound = self.result.pessimistic
        name = pessimistic_name(self.result.instance.machine, runs_ahead=self.result.instance.runs_ahead)
        yield PolicyRow(name, "bound", bound, bound, pessimistic_meaning(name, lapses=plain is not None))


def _worst_case_words(result: Result) -> str:
    every = f"every work-conserving scheduler{promise_words(result.caveats)}"
    return f"{every}; at most {result.bounds.upper} by {result.upper_evidence}"


def one_run(instance: Instance, policy: str, choices: Choices) -> Schedule:
    """Return the schedule of a policy, which never lapses, replayed and within the bounds that cost nothing.

    Raises:
        InvalidScheduleError: it does not replay.
        BrokenPromiseError: it is outside of these bounds.
    """
    asked = instance.without_lapses
    schedule = run(asked, policy, choices)
    least, makespan, most = least_possible(asked), replay(asked, schedule), pessimistic(asked)
    if not least <= makespan <= most:
        raise BrokenPromiseError(f"policy {policy} takes {makespan} cycles, outside of {least}..{most}")
    return schedule


def runs(instance: Instance, choices: Choices) -> dict[str, Schedule]:
    """Return `one_run` of every policy, by its name."""
    return {policy: one_run(instance, policy, choices) for policy in POLICIES}


def enclosing(result: Result, schedules: Mapping[str, Schedule]) -> PolicyGap:
    """Return the runs of policies on the instance of a result.

    Each run is a work-conserving schedule, so where an interval is open the runs may narrow it. Where the result has no
    best case, it is between the work to be done and the shortest run.

    Raises:
        InvalidScheduleError: a run does not replay.
        BrokenPromiseError: a run is shorter than the best case or longer than the worst case.
    """
    if (plain := result.without_lapses) is not None:
        result = replace(result, without_lapses=enclosing(plain, schedules).result)
    asked = result.instance.without_lapses
    runs = {policy: replay(asked, schedule) for policy, schedule in schedules.items()}
    best, worst = result.best_case, result.bounds
    if best is None:
        best = Bounds(least_possible(result.instance), min(runs.values()))
    for policy, makespan in runs.items():
        if not best.lower <= makespan <= worst.upper:
            raise BrokenPromiseError(
                f"policy {policy} takes {makespan} cycles, outside of {best.lower}..{worst.upper}, which was proven"
            )
    best &= Bounds(best.lower, min(best.upper, *runs.values()))
    longest = max(schedules.values(), key=lambda schedule: schedule.makespan)
    if longest.makespan > worst.lower:
        policy = next(policy for policy, schedule in schedules.items() if schedule is longest)
        step = Step(result.seconds, policy, longest.makespan, worst.upper, result.upper_evidence)
        bounds = Bounds(longest.makespan, worst.upper)
        result = replace(result, witness=longest, bounds=bounds, history=(*result.history, step))
    return PolicyGap(replace(result, best_case=best), runs)
