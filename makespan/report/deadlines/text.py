"""Whether deadlines hold, in the words of a terminal. Bounds are rounded up and what is left is rounded down."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from fractions import Fraction
from itertools import groupby
from math import ceil, floor

from makespan.report.lines import WIDTH, columns, wrapped
from makespan.schedulability.assessment import Assessment
from makespan.schedulability.fewest import Fewest, Tried
from makespan.schedulability.sensitivity import Margin
from makespan.schedulability.units import shown_frequency, shown_time
from makespan.schedulability.verdict import Answer, ChainVerdict, Load, TaskVerdict
from makespan.schedulability.wcet import Kind, Wcet
from makespan.wording import scope

_DIGITS = 6
_NAMES = 5  # in one line
_UNKNOWN = "-"
_HEADER = ("task", "runs on", "WCET", "by", "period", "deadline", "response", "slack", "verdict")


def up(seconds: Fraction) -> str:
    """A bound from above for people, to six digits.

    >>> up(Fraction(1, 3)), down(Fraction(1, 3))
    ('333.334 ms', '333.333 ms')
    """
    return shown_time(_rounded(seconds, ceil))


def down(seconds: Fraction) -> str:
    """What is left at least, to six digits; negative if it is too little."""
    rounded = -_rounded(-seconds, ceil) if seconds < 0 else _rounded(seconds, floor)
    return f"-{shown_time(-rounded)}" if rounded < 0 else shown_time(rounded)


def slack(ticks: int, tick: Fraction) -> str:
    """What is left at least until a deadline; a single tick is nothing, since events may lie between ticks."""
    return down((0 if 0 <= ticks <= 1 else ticks) * tick)


def verdict(assessment: Assessment) -> str:
    """One line: the answer, on what conditions, and why."""
    return f"{assessment.answer}{scope(_conditions(assessment))}: {_why(assessment)}"


def _conditions(assessment: Assessment) -> Iterator[str]:
    """The caveats, with the names of the tasks where they are not those of all kernels that are proven."""
    proven = {name: wcet for name, wcet in assessment.wcets.items() if wcet.kind is Kind.PROVEN}
    for caveat in assessment.caveats:
        tasks = [name for name, wcet in proven.items() if caveat in wcet.caveats]
        yield caveat if len(tasks) == len(proven) else f"{caveat} ({_listed(tasks)})"
    if assessment.supposes:
        yield "if execution times are attained"


def report(assessment: Assessment, *, width: int = WIDTH) -> str:
    """The whole report: the answer, the table, what explains it, and what all of it rests on.

    Args:
        width: columns of text; the table has the width that it needs.
    """
    lines = [*wrapped(verdict(assessment), width), *wrapped(subject(assessment), width)]
    lines += ["", *columns(list(_rows(assessment)), right=(2, 4, 5, 6, 7))]
    sections = {
        "misses": _misses(assessment),
        "responses": _parts(assessment),
        "load": _loads(assessment),
        "chains": _chains(assessment),
        "what breaks first": _margins(assessment),
        "fewest SMs": [fewest_line(each) for each in assessment.fewest],
        "execution times": execution_times(assessment.wcets),
        "assumptions": [f"- {note}" for note in assessment.notes],
    }
    for title, content in sections.items():
        if content:
            lines += ["", f"{title}:", *(text for line in content for text in wrapped(f"  {line}", width))]
    return "\n".join(lines)


def subject(assessment: Assessment) -> str:
    """One line: how many tasks run where."""
    tasks, partitions = len(assessment.task_set.tasks), len(assessment.task_set.partitions)
    clock = "" if assessment.clock is None else f", SM clock {shown_frequency(assessment.clock)}"
    several = assessment.gpu is not None
    sms = {name: f", {_many(count, 'SM')}" if several or count > 1 else "" for name, count in assessment.sms.items()}
    on = _listed([f"{p.name} ({p.policy}{sms.get(p.name, '')})" for p in assessment.task_set.partitions])
    of = "" if assessment.gpu is None else f" of {assessment.gpu}"
    return f"{assessment.where}: {_many(tasks, 'task')} on {_many(partitions, 'partition')}{of}, {on}{clock}"


def _rows(assessment: Assessment) -> Iterator[tuple[str, ...]]:
    yield _HEADER
    found = {} if assessment.verdict is None else {task.task: task for task in assessment.verdict.tasks}
    tick = assessment.tick
    for task in assessment.task_set.tasks:
        wcet, about = assessment.wcets[task.name], found.get(task.name)
        response = None if about is None else about.response
        yield (
            task.name,
            task.partition or _UNKNOWN,
            up(wcet.seconds),
            str(wcet.kind),
            shown_time(task.period * tick),
            shown_time(task.deadline * tick),
            _UNKNOWN if response is None else up(response * tick),
            _UNKNOWN if response is None else slack(task.deadline - response, tick),
            _UNKNOWN if about is None else str(about.answer),
        )


def _parts(assessment: Assessment) -> list[str]:
    """What each bound consists of, and by which theorem."""
    tasks = () if assessment.verdict is None else assessment.verdict.tasks
    lines = [f"{task.task}: {_sum(task, assessment.tick)}" for task in tasks]
    methods = dict.fromkeys(task.method for task in tasks if task.response is not None)
    return lines + [f"by {method}: {', '.join(t.task for t in tasks if t.method == method)}" for method in methods]


def _sum(task: TaskVerdict, tick: Fraction) -> str:
    if task.response is None:
        return task.method
    parts = " + ".join(f"{name} {up(ticks * tick)}" for name, ticks in task.parts) or up(task.response * tick)
    if task.is_attained:
        return f"{parts}, attained"
    return f"{parts}, attained if execution times are" if task.is_exact else parts


def _misses(assessment: Assessment) -> list[str]:
    tasks = () if assessment.verdict is None else assessment.verdict.tasks
    due = {task.name: task.deadline for task in assessment.task_set.tasks}
    return [
        f"{miss.task}: the job that arrives at {shown_time(miss.arrival * assessment.tick)} ends"
        f" {slack(due[miss.task] - miss.completion + miss.arrival, assessment.tick).removeprefix('-')} too late:"
        f" {miss.scenario}{_supposing(miss.supposes)}"
        for miss in (task.miss for task in tasks)
        if miss is not None
    ]


def _supposing(tasks: Sequence[str]) -> str:
    return f"; if these take so long: {_listed(tasks)}" if tasks else ""


def execution_times(wcets: Mapping[str, Wcet]) -> list[str]:
    """A line for each: who answers for it, and its evidence."""
    return [f"{name}, {wcet.kind}: {_cycles(wcet)}{wcet.evidence}" for name, wcet in wcets.items()]


def _cycles(wcet: Wcet) -> str:
    """Cycles that were given; what is proven says its own."""
    return f"{wcet.cycles} cycles, " if wcet.kind is Kind.GIVEN and wcet.cycles is not None else ""


def _loads(assessment: Assessment) -> list[str]:
    loads = (assessment.demand,) if assessment.verdict is None else assessment.verdict.loads
    return [f"{load.name}: {percent(load)}" for load in loads]


def percent(load: Load) -> str:
    """How much of the time is demanded, at most; never 100.0 % for more than that.

    >>> percent(Load("gpu", 1, 3, Fraction(1, 3))), percent(Load("gpu", 1000001, 1000000, Fraction(1)))
    ('33.4 %', '100.1 % at most, and no more is shown than there is')
    """
    thousandths = -(-1000 * load.numerator // load.denominator)
    share = f"{thousandths // 10}.{thousandths % 10} %"
    if load.is_refuted:
        return f"{share}, more than there is"
    return f"{share} at most, and no more is shown than there is" if load.is_overload else share


def _chains(assessment: Assessment) -> list[str]:
    chains = () if assessment.verdict is None else assessment.verdict.chains
    limits = {chain.name: chain.deadline for chain in assessment.task_set.chains}
    return [_chain(chain, limits[chain.chain], assessment.tick) for chain in chains]


def _chain(chain: ChainVerdict, deadline: int | None, tick: Fraction) -> str:
    shown = {"reaction": chain.reaction, "age": chain.age}
    times = ", ".join(f"{name} {_UNKNOWN if t is None else up(t * tick)}" for name, t in shown.items())
    limit = "" if deadline is None else f", deadline {shown_time(deadline * tick)}: {chain.answer}"
    return f"{chain.chain}: {times}{limit} ({chain.method})"


def _margins(assessment: Assessment) -> list[str]:
    return [margin_line(margin, assessment.tick) for margin in assessment.margins]


def fewest_line(fewest: Fewest) -> str:
    """How many SMs do, and what is not proven with fewer."""
    found = fewest.found
    if fewest.partition is None:
        return _together(fewest)
    fewer = fewest.tried if found is None else fewest.tried[:-1]
    tried = "; ".join(
        f"{_ends(numbers)}: no proof for {_listed(names)}" for numbers, names in _alike(fewer, fewest.partition)
    )
    if found is None:
        return f"{fewest.partition}: no number of SMs up to {fewest.most} is proven to do ({tried or 'none is left'})"
    times = ", ".join(f"{name} {up(seconds)}" for name, seconds in found.seconds.items())
    first = f"{fewest.partition}: {found.sms[fewest.partition]} of up to {fewest.most} are proven to do ({times})"
    return f"{first}, and no fewer ({tried})" if tried else first


def _together(fewest: Fewest) -> str:
    if not fewest.tried:
        return f"together: these are more than the {fewest.most} SMs of the GPU"
    (tried,) = fewest.tried
    count = sum(tried.sms.values())
    split = ", ".join(f"{name} {sms}" for name, sms in tried.sms.items())
    proven = f"no proof for {_listed(tried.unproven)}" if tried.unproven else "every deadline is proven"
    return f"together: {count} of {fewest.most} SMs, {split}: {proven}"


def _alike(tried: Sequence[Tried], partition: str) -> Iterator[tuple[range, tuple[str, ...]]]:
    """Neighbouring numbers of SMs with which the same is not proven."""
    for names, group in groupby(tried, key=lambda one: one.unproven):
        several = tuple(group)
        yield range(several[0].sms[partition], several[-1].sms[partition] + 1), names


def _ends(numbers: range) -> str:
    return str(numbers[0]) if len(numbers) == 1 else f"{numbers[0]}..{numbers[-1]}"


def margin_line(margin: Margin, tick: Fraction) -> str:
    """One line: how far a quantity may go, and who is not in time beyond."""
    if margin.holds is None:
        return f"{margin.quantity}: not proven at any value that was looked at"
    way = "up" if margin.quantity.startswith("execution") else "down"
    reach = f"{margin.quantity}: proven {way} to {_value(margin.quantity, margin.holds, tick)}"
    if margin.fails is None:
        return f"{reach}, where the search ended"
    ground = "evidence against" if margin.refuted else "no proof for"
    return f"{reach}; beyond it {ground} {_listed(margin.breaks)}{_if_attained(margin)}"


def _if_attained(margin: Margin) -> str:
    return ", if execution times are attained" if margin.refuted and margin.supposes else ""


def _value(quantity: str, value: Fraction, tick: Fraction) -> str:
    """What is proven, rounded to the safe side."""
    if quantity == "clock":
        return shown_frequency(_rounded(value, ceil))
    if quantity.startswith("period"):
        return up(value * tick)
    return f"{float(value):.3f} times"


def _why(assessment: Assessment) -> str:
    found = assessment.verdict
    if found is None:
        return _no_places(assessment)
    late = [task.task for task in found.tasks if task.answer is Answer.NO]
    overloaded = [load.name for load in found.loads if load.is_refuted]
    chains = [chain.chain for chain in found.chains if chain.answer is not Answer.YES]
    open_tasks = [task.task for task in found.tasks if task.answer is Answer.UNKNOWN]
    if found.answer is Answer.YES:
        return f"every deadline is proven{_tightest(assessment)}"
    reasons = {
        "overload of ": overloaded,
        "a legal schedule is too late for ": late,
        "no proof for ": open_tasks,
        "chains without proof: ": chains,
    }
    return "; ".join(f"{words}{_listed(names)}" for words, names in reasons.items() if names)


def _listed(names: Sequence[str]) -> str:
    more = f" and {len(names) - _NAMES} more" if len(names) > _NAMES else ""
    return ", ".join(names[:_NAMES]) + more


def _tightest(assessment: Assessment) -> str:
    tasks = () if assessment.verdict is None else assessment.verdict.tasks
    due = {task.name: task.deadline for task in assessment.task_set.tasks}
    least, name = min(((due[t.task] - t.response, t.task) for t in tasks if t.response is not None), default=(0, ""))
    if least <= 1:
        return f"; {name} reaches its deadline" if name else ""
    return f"; the least slack is {slack(least, assessment.tick)}, of {name}"


def _no_places(assessment: Assessment) -> str:
    if assessment.demand.is_refuted:
        return f"all partitions together are asked for {percent(assessment.demand)}"
    assignment = assessment.assignment
    if assignment is not None and assignment.is_proven:
        return "the analysis proves no assignment of the tasks to partitions"
    method = "" if assignment is None else f" by {assignment.method}"
    return f"no assignment was found{method}"


def _many(count: int, what: str) -> str:
    return f"{count} {what}" if count == 1 else f"{count} {what}s"


def _rounded(seconds: Fraction, rounding: Callable[[Fraction], int]) -> Fraction:
    """To so many significant digits."""
    if seconds == 0:
        return seconds
    size = abs(seconds)
    exponent = len(str(size.numerator)) - len(str(size.denominator))
    if size < Fraction(10) ** exponent:
        exponent -= 1
    unit = Fraction(10) ** (exponent + 1 - _DIGITS)
    return rounding(seconds / unit) * unit
