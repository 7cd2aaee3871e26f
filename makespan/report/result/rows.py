"""Several worst cases as a table: a head, a line for each as soon as it is known, and what they come to."""

from collections.abc import Iterable
from dataclasses import dataclass

from makespan.model.result import Bounds, Status
from makespan.model.wording import scope_words
from makespan.report.result.text import interval_text


def excess_percent(worst: Bounds, pessimistic: int) -> str:
    """How far the pessimistic bound is above the worst case in percent; `>=`: at least, of what is only bounded."""
    least, _ = worst.exceeded_by(pessimistic)
    return f"{'>=' if worst.status is Status.BOUNDED else ''}{least:.1f}"


def count_states(what: str, states: Iterable[str], caveats: Iterable[str] = ()) -> str:
    """Return one line: how many of them are exact and so on, under which conditions.

    >>> count_states("result", [Status.EXACT, Status.BOUNDED, Status.EXACT])
    '3 results: 2 exact, 1 bounded'
    """
    each = list(map(str, states))
    said = ", ".join(f"{each.count(state)} {state}" for state in dict.fromkeys(each))
    return f"{len(each)} {what}{'s' * (len(each) != 1)}{scope_words(caveats)}: {said}"


@dataclass(frozen=True, slots=True)
class ResultTable:
    """The columns of such a table.

    Args:
        pessimistic: what the pessimistic bound is called.
        best: whether the best case has a column.
        remark: the head of the last column; empty where there is none.
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
        """What is proven of so many warps, and by what."""
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
        """Nothing is known of so many warps."""
        return self._line(str(warps), "", "-", status, "", "", "", "")

    def _line(
        self, warps: str, best: str, worst: str, status: str, bound: str, above: str, by: str, remark: str
    ) -> str:
        fastest = f"{best:>14}" if self.best else ""
        wide = max(11, len(self.pessimistic) + 2)
        return f"{warps:>5}{fastest}{worst:>15}  {status:<12}{bound:>{wide}}{above:>10}  {by:<13}{remark}".rstrip()
