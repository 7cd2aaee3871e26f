"""Results as text for a terminal: one result as a report, and several as a table with a line for each."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from makespan.model.deadline import Deadline, DeadlineOutcome
from makespan.model.instance import Instance
from makespan.model.result import Anomaly, Bounds, LapseProof, Result, Status, Upper, robust_anomalies
from makespan.model.wording import PAPERS_NAME, cycle_words, pessimistic_meaning, pessimistic_name, scope_words
from makespan.report.lines import WIDTH, assumption_lines, number_lines, wrap_line
from makespan.report.result.document import bound_of_any_units
from makespan.report.schedule.explanation import explain, explanation_words


def verdict_line(result: Result) -> str:
    """Return one line: the number, whether it is exact, and the conditions.

    >>> from makespan import Instance, solve
    >>> verdict_line(solve(Instance.of("CLLCLL", warps=2)))
    'exact if every instruction takes one cycle: the worst case is 10 cycles'
    """
    return str(result)


def subject_line(result: Result) -> str:
    """Return one line: the warps and the machine."""
    return str(result.instance)


def picture_subtitle(result: Result) -> str:
    """Return the line below the title of a picture of the witness. The witness of a bounded result is no worst case.

    >>> from makespan import Instance, solve
    >>> picture_subtitle(solve(Instance.of("CLLCLL", warps=2)))
    '2 x CLLCLL on machine paper (C=1, L=1)'
    """
    if result.status is Status.EXACT:
        return subject_line(result)
    lower, upper = cycle_words(result.bounds.lower), result.bounds.upper
    if result.lapses is not None:
        return f"a schedule without lapses of {lower}; at most {upper} are proven with them: {subject_line(result)}"
    return f"a schedule of {lower}; at most {upper} are proven: {subject_line(result)}"


def result_report(result: Result, remarks: Iterable[str] = (), *, width: int = WIDTH) -> str:
    """Return the whole report: the verdict, then the `remarks`, and then all that supports the verdict."""
    shortest = "" if result.best_case_seconds is None else f", the best case in {result.best_case_seconds:.2f} s"
    return "\n".join(
        [
            verdict_line(result),
            *remarks,
            *wrap_line(subject_line(result), width),
            *number_lines([(name, str(value), why) for name, value, why in bound_rows(result)], width),
            f"found by {result.backend} in {result.seconds:.2f} s{shortest}",
            *wrap_line(explanation_words(explain(result.instance, result.witness)), width),
            *assumption_lines(result.assumptions, width),
        ]
    )


def bound_rows(result: Result) -> Iterator[tuple[str, str, str]]:
    """Yield the bounds of the worst case: name, cycles, and evidence."""
    name = pessimistic_name(result.instance.machine, runs_ahead=result.instance.runs_ahead)
    what, lapses = "pessimistic: " if name == PAPERS_NAME else "", result.lapses
    plain = " without lapses" * (lapses is not None)
    yield "at least", str(result.bounds.lower), f"a schedule{plain} that takes so long, replayed"
    if lapses is None:
        yield "at most", str(result.bounds.upper), f"proven by {result.upper_evidence}"
    else:
        yield "at most", str(result.bounds.upper), "proven by the sum of these:"
        for part, cycles, why in lapse_rows(result.instance, lapses):
            yield part, str(cycles), why
    if (without := result.without_lapses) is not None:
        yield "without lapses", interval_text(without.bounds), f"proven by {without.upper_evidence}"
    meaning = pessimistic_meaning(name, lapses=lapses is not None)
    yield name, str(result.pessimistic), f"{what}{meaning}; {excess_words(result)}"
    for name, value, why in robust_rows(result):
        yield name, str(value), why
    if result.best_case is not None:
        kind = "work-conserving schedule" if lapses is None else "schedule, with lapses or without"
        yield "best case", interval_text(result.best_case), f"the shortest {kind}"


def lapse_rows(instance: Instance, lapses: LapseProof) -> Iterator[tuple[str, int, str]]:
    """Yield the parts of an upper bound that holds with lapses: name, cycles, and what they are."""
    theorem = lapses.base.evidence.removeprefix("theorem-").upper()
    name = f"theorem {theorem}" if lapses.base.evidence != Upper.PESSIMISTIC else "theorem 1'"
    # theorem 1Q is what becomes of theorem 1S where instructions go through queues
    name, queues = ("theorem 1Q", " and with queues") if instance.counts_queues else (name, "")
    yield name, lapses.base.upper, f"without lapses{queues}; it holds even if warps are kept from issuing"
    yield "+ lapses", lapses.credits, "cycles in which a scheduler issues nothing"
    yield "+ late lines", lapses.windows, "cycles in which code and constants are on their way"
    yield "+ misses", lapses.misses, "cycles for lines that do not stay"


def robust_rows(result: Result) -> Iterator[tuple[str, int, str]]:
    """Yield the bounds that hold even if the hardware differs from its machine: name, cycles, and the differences."""
    outlasts = robust_anomalies(result.instance)
    ahead = "warps run ahead, anything is" if Anomaly.RUN_AHEAD in outlasts else "latencies or intervals are"
    fewer = "ports more or warps fewer" if Anomaly.FEWER_WARPS in outlasts else "or ports more"
    yield "robust", result.pessimistic, f"holds even if {ahead} shorter, {fewer}"
    units = bound_of_any_units(result.instance)
    if units is not None:
        yield "any units", units, "holds however units of these throughputs are built"


def deadline_verdict(gate: Deadline, bounds: Bounds, caveats: Iterable[str] = ()) -> str:
    """Return one line: whether the worst case is in time, by how much, and under which conditions.

    >>> deadline_verdict(Deadline(12), Bounds(10, 10), ["for this path only"])
    'deadline met for this path only: 12 cycles, with 2 to spare'
    """
    outcome = gate.outcome(bounds)
    by = {
        DeadlineOutcome.MET: f"with {gate.cycles - bounds.upper} to spare",
        DeadlineOutcome.MISSED: f"a schedule is {cycle_words(bounds.lower - gate.cycles)} too late",
        DeadlineOutcome.UNDECIDED: f"the worst case lies within {interval_text(bounds)}",
    }
    return f"deadline {outcome}{scope_words(caveats)}: {gate}, {by[outcome]}"


def excess_words(result: Result) -> str:
    """Return the distance of the pessimistic bound above the proven one, as a phrase."""
    least, _ = result.bounds.exceeded_by(result.pessimistic)
    return f"{least:.1f} % above" if least else "the same"


def best_case_lines(best_case: Bounds | None) -> list[str]:
    """Return the line about the best case that follows a verdict; empty if it was not asked for.

    >>> best_case_lines(Bounds(7, 9))
    ['best case: 7..9 cycles']
    """
    return [] if best_case is None else [f"best case: {interval_text(best_case)} cycles"]


def interval_text(bounds: Bounds) -> str:
    """Return an interval as text, such as `7` or `7..9`."""
    return str(bounds.lower) if bounds.lower == bounds.upper else f"{bounds.lower}..{bounds.upper}"


def excess_percent(worst: Bounds, pessimistic: int) -> str:
    """Return how far the pessimistic bound is above the worst case, in percent; `>=` marks a lower bound."""
    least, _ = worst.exceeded_by(pessimistic)
    return f"{'>=' if worst.status is Status.BOUNDED else ''}{least:.1f}"


def count_states(what: str, states: Iterable[str], caveats: Iterable[str] = ()) -> str:
    """Return one line: how many results have each status, and under which conditions.

    >>> count_states("result", [Status.EXACT, Status.BOUNDED, Status.EXACT])
    '3 results: 2 exact, 1 bounded'
    """
    each = list(map(str, states))
    said = ", ".join(f"{each.count(state)} {state}" for state in dict.fromkeys(each))
    return f"{len(each)} {what}{'s' * (len(each) != 1)}{scope_words(caveats)}: {said}"


@dataclass(frozen=True, slots=True)
class ResultTable:
    """A table of results: a head, and a line for each result as soon as it is known.

    Args:
        pessimistic: the name of the pessimistic bound.
        best: whether the best case has a column.
        remark: the head of the last column. Empty means that there is none.
    """

    pessimistic: str
    best: bool = False
    remark: str = ""

    def head(self) -> str:
        """Return the names of the columns.

        >>> ResultTable("M^L + M^C").head()
        'warps     worst case  status        M^L + M^C  above, %  at most by'
        """
        return self._line(
            "warps", "best case", "worst case", "status", self.pessimistic, "above, %", "at most by", self.remark
        )

    def row(
        self,
        warps: int,
        worst: Bounds,
        pessimistic: int,
        evidence: str,
        *,
        best: Bounds | None = None,
        remark: str = "",
    ) -> str:
        """Return the line of a number of warps."""
        fastest = "" if best is None else interval_text(best)
        return self._line(
            str(warps),
            fastest,
            interval_text(worst),
            worst.status,
            str(pessimistic),
            excess_percent(worst, pessimistic),
            evidence,
            remark,
        )

    def unknown(self, warps: int, status: str) -> str:
        """Return the line of a number of warps for which nothing is known."""
        return self._line(str(warps), "", "-", status, "", "", "", "")

    def _line(
        self, warps: str, best: str, worst: str, status: str, bound: str, above: str, by: str, remark: str
    ) -> str:
        fastest = f"{best:>14}" if self.best else ""
        wide = max(11, len(self.pessimistic) + 2)
        return f"{warps:>5}{fastest}{worst:>15}  {status:<12}{bound:>{wide}}{above:>10}  {by:<13}{remark}".rstrip()
