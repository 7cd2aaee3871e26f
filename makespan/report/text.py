"""A result in the words of a terminal."""

import textwrap
from collections.abc import Iterable

from makespan.bounds import any_units
from makespan.instance import Instance
from makespan.report.explain import explain, words
from makespan.result import Bounds, Result, Status
from makespan.schedulability.gate import Deadline, Outcome

_WIDTH = 110


def verdict(result: Result) -> str:
    """One line: the number, and whether it is exact.

    >>> from makespan import Instance, solve
    >>> verdict(solve(Instance.of("CLLCLL", warps=2)))
    'exact: the worst case is 10 cycles'
    """
    from makespan.ptx import TRUSTED_BOUNDS

    trusted = any(note.startswith(TRUSTED_BOUNDS) for note in result.assumptions)
    if result.status is Status.EXACT:
        worst = f"exact: the worst case is {_cycles(result.bounds.upper)}"
    else:
        worst = f"bounded: the worst case is at least {result.bounds.lower} and at most {_cycles(result.bounds.upper)}"
    return worst + " (interrupted)" * result.interrupted + f" ({TRUSTED_BOUNDS})" * trusted


def report(result: Result) -> str:
    """The whole report; the verdict comes last, where the eye is."""
    lines = [subject(result), "assumptions:"]
    lines += [f"  - {note}" for note in result.assumptions]
    lines += _explained(result)
    lines += [
        f"at least   {result.bounds.lower:>9}  a schedule that takes so long, replayed",
        f"at most    {result.bounds.upper:>9}  proven by {result.upper_evidence}",
        f"M^L + M^C  {result.pessimistic:>9}  the pessimistic bound, {excess(result)}",
    ]
    if any(unit.interval > 1 for unit in result.instance.machine.units):
        lines.append(f"any units  {any_units(result.instance):>9}  holds however units of these throughputs are built")
    if result.best_case is not None:
        lines.append(f"best case  {interval(result.best_case):>9}  the shortest work-conserving schedule")
    shortest = "" if result.best_case_seconds is None else f", the best case in {result.best_case_seconds:.2f} s"
    lines += [f"found by {result.backend} in {result.seconds:.2f} s{shortest}", verdict(result)]
    return "\n".join(lines)


def _explained(result: Result) -> list[str]:
    """Why the schedule found takes so long, in lines; a warp and its cycles stay together."""
    sentence = words(explain(result.instance, result.witness)).replace(": ", ":\N{NO-BREAK SPACE}")
    lines = textwrap.wrap(sentence, _WIDTH, subsequent_indent="  ", break_on_hyphens=False)
    return [line.replace("\N{NO-BREAK SPACE}", " ") for line in lines]


def subject(result: Result) -> str:
    """One line: which warps on which machine."""
    return question(result.instance)


def question(instance: Instance) -> str:
    """One line: which warps on which machine."""
    units = ", ".join(map(str, instance.machine.units))
    width = "" if instance.machine.issue_width is None else f", issue width {instance.machine.issue_width}"
    warps = " + ".join(f"{group.warps} x {group.program}" for group in instance.groups)
    blocks = f" in {instance.blocks} blocks" if instance.blocks > 1 else ""
    return f"{warps}{blocks} on machine {instance.machine.name} ({units}{width})"


def row(result: Result, name: str = "") -> str:
    """One line of a table: warps, worst case, pessimistic bound, backend."""
    worst = interval(result.bounds)
    return f"{result.instance.warps:>5} warps  {worst:>13}  {result.status:<7}  M^L+M^C {result.pessimistic:>7}  {name}"


def deadline(gate: Deadline, bounds: Bounds, assumptions: Iterable[str] = ()) -> str:
    """One line: whether the worst case is in time, and by how much; a path that was fixed or a trusted bound is told.

    >>> deadline(Deadline(12), Bounds(10, 10))
    'deadline met: 12 cycles, with 2 to spare'
    """
    from makespan.ptx import PATH_ONLY, TRUSTED_BOUNDS

    outcome, notes = gate.outcome(bounds), tuple(assumptions)
    doubts = [doubt for doubt in (PATH_ONLY, TRUSTED_BOUNDS) if any(note.startswith(doubt) for note in notes)]
    where = f" ({'; '.join(doubts)})" if doubts else ""
    by = {
        Outcome.MET: f"with {gate.cycles - bounds.upper} to spare",
        Outcome.MISSED: f"a schedule is {_cycles(bounds.lower - gate.cycles)} too late",
        Outcome.UNDECIDED: f"the worst case lies within {interval(bounds)}",
    }
    return f"deadline {outcome}{where}: {gate}, {by[outcome]}"


def excess(result: Result) -> str:
    """How far the pessimistic bound is above the proven one, in words."""
    excess = 100 * (result.pessimistic - result.bounds.upper) / result.bounds.upper
    return f"{excess:.1f} % above" if excess else "the same"


def interval(bounds: Bounds) -> str:
    """`7` or `7..9`."""
    return str(bounds.lower) if bounds.lower == bounds.upper else f"{bounds.lower}..{bounds.upper}"


def _cycles(count: int) -> str:
    return f"{count} cycle" if count == 1 else f"{count} cycles"
