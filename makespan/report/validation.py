"""Runs on a GPU beside what is proven: in words, as data and as a picture."""

from collections.abc import Iterator
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any

from makespan.report.lines import WIDTH, assumptions, columns, wrapped
from makespan.report.pictures import FASTEST, GREY, INK, LINES, PESSIMISTIC, PROVEN, RUN, write_figure
from makespan.report.provenance import versions
from makespan.report.result.text import interval
from makespan.result import Bounds
from makespan.validation.judgement import Judgement, Window
from makespan.wording import counted, cycles, pessimistic_name, scope

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_WIDTH, _HEIGHT, _BINS, _LETTERS = 9.6, 4.8, 60, 100
_NOTE_LETTERS, _MOST_SHOWN = 150, 10
NO_MEASUREMENT = "VIRTUAL DEVICE, no measurement"


def verdict(found: Judgement) -> str:
    """One line: below the bound in all runs, or by how much not; of which machine, and on what the bound rests."""
    conditions = scope(found.result.caveats).strip()
    windows = f"{counted(len(found.windows), 'block')} in {counted(len(found.runs), 'run')}"
    most = cycles(found.longest.cycles)
    if found.violations:
        above = f"{len(found.violations)} of {windows}, up to {most}"
        said = f"NOT BELOW THE BOUND in {above}; the bound, {conditions}, is {cycles(found.bound)}"
    else:
        said = f"below the bound in all of {windows}, up to {most}; the bound, {conditions}, is {cycles(found.bound)}"
    return f"{NO_MEASUREMENT}: {said}" if found.campaign.device.virtual else said


def report(found: Judgement, width: int = WIDTH) -> str:
    """The verdict, the numbers, what explains the distance, and what was not varied."""
    lines = [*wrapped(verdict(found), width, hang=0), *columns(list(_rows(found)), right=(1, 2))]
    lines += [line for remark in remarks(found) for line in wrapped(remark, width)]
    return "\n".join([*lines, *assumptions(found.result.assumptions, width)])


def _rows(found: Judgement) -> Iterator[tuple[str, str, str, str]]:
    """Name, cycles, percent of the bound, what it is."""
    measured = found.cycles
    name = "simulated" if found.campaign.device.virtual else "measured"
    yield f"{name}, least", str(measured[0]), _share(measured[0], found), "from the first start to the last end"
    yield f"{name}, median", f"{median(measured):g}", _share(median(measured), found), ""
    yield f"{name}, most", str(measured[-1]), _share(measured[-1], found), f"run {found.longest.run}"
    if found.result.best_case is not None:
        best = found.result.best_case
        yield "best case", interval(best), _share(best.upper, found), "of the model, records included"
    for policy, makespan in sorted(found.policies.items(), key=lambda item: item[1]):
        yield policy, str(makespan), _share(makespan, found), "one run of the model, largest latencies"
    bounds = found.result.bounds
    yield "at least", str(bounds.lower), _share(bounds.lower, found), "a schedule of the model that takes so long"
    yield "at most", str(bounds.upper), _share(bounds.upper, found), f"the bound, by {found.result.upper_evidence}"
    pessimistic = found.result.pessimistic
    yield _pessimistic(found), str(pessimistic), _share(pessimistic, found), ""
    original = found.original.bounds
    yield "without records", interval(original), _share(original.upper, found), "the kernel as it is given"


def _pessimistic(found: Judgement) -> str:
    instance = found.result.instance
    return pessimistic_name(instance.machine, runs_ahead=instance.runs_ahead)


def _share(value: float, found: Judgement) -> str:
    return f"{100 * value / found.bound:.1f} %"


def remarks(found: Judgement) -> Iterator[str]:
    """What stands below the numbers."""
    campaign, bounds = found.campaign, found.result.bounds
    longest = found.longest.cycles
    if found.violations:
        yield (
            f"distance: the longest run takes at least {cycles(longest + 1 - bounds.upper)} more than the bound, so the"
            " device is not the machine of the question: a latency above its range, a port or a scheduler that is"
            " another one, or an SM that something else ran on"
        )
    else:
        left, beyond = bounds.upper - max(longest, bounds.lower), max(bounds.lower - longest, 0)
        yield (
            f"distance: {bounds.upper - longest} cycles from the longest run to the bound: {left} of them are what the"
            f" proof leaves open, and {beyond} are a schedule of the model that no run came to"
        )
    yield (
        "counted: the bound is that of all instructions of the kernel with records, those before the first start and"
        " behind the last end included; a run is the part between them. Records raise the bound by"
        f" {bounds.upper - found.original.bounds.upper} cycles"
    )
    clock = "" if campaign.device.clock_khz is None else f", up to {campaign.device.clock_khz / 1000:g} MHz"
    yield (
        f"device: {campaign.device.name}, compute capability {campaign.device.capability}, driver"
        f" {campaign.device.driver}, {campaign.device.sms} SMs{clock}"
    )
    yield f"machine code {campaign.code[:16]}: {campaign.compiler}"
    apart = max(window.apart for window in found.windows)
    yield f"warps of a block began at most {cycles(apart)} apart"
    varied = ", ".join(f"{name} {value}" for name, value in found.fixed.items())
    yield f"not varied: {varied + ', ' if varied else ''}parameters, launch, clock, temperature, driver, the GPU itself"
    if found.set_aside:
        yield f"not judged: {counted(found.set_aside, 'block')} that shared an SM with others"
    for window in found.violations[:_MOST_SHOWN]:
        yield f"not below: run {window.run}, block {window.block} on SM {window.sm}: {cycles(window.cycles)}"


def document(found: Judgement) -> dict[str, Any]:
    """The same as plain data, schema `makespan.validation/1`."""
    measured, device = found.cycles, found.campaign.device
    return {
        "schema": "makespan.validation/1",
        "holds": not found.violations,
        "is_measurement": not device.virtual,
        "verdict": verdict(found),
        "runs": len(found.runs),
        "blocks": len(found.windows),
        "set_aside": found.set_aside,
        "cycles": {"least": measured[0], "median": median(measured), "most": measured[-1]},
        "violations": [_window(window) for window in found.violations],
        "bounds": _interval(found.result.bounds),
        "evidence": found.result.upper_evidence,
        "pessimistic": found.result.pessimistic,
        "best_case": None if found.result.best_case is None else _interval(found.result.best_case),
        "without_records": _interval(found.original.bounds),
        "policies": dict(found.policies),
        "machine": found.result.instance.machine.name,
        "device": {name: getattr(device, name) for name in device.__struct_fields__},
        "kernel": {"file": found.campaign.file, "name": found.campaign.kernel, "code": found.campaign.code},
        "launch": {"grid": list(found.campaign.grid), "block": list(found.campaign.block)},
        "not_varied": found.fixed,
        "caveats": list(found.result.caveats),
        "assumptions": list(found.result.assumptions),
        "versions": versions(),
    }


def _window(window: Window) -> dict[str, int]:
    return {name: getattr(window, name) for name in ("run", "block", "sm", "cycles")}


def _interval(bounds: Bounds) -> list[int]:
    return [bounds.lower, bounds.upper]


def draw(found: Judgement, path: Path) -> None:
    """Write a histogram of the runs beside what is proven to `path` (.png, .svg or .pdf), whole or not at all.

    Raises:
        InputError: a file that cannot be written.
    """
    write_figure(lambda: _figure(found), path, title=verdict(found), about=" ".join(remarks(found)))


def _figure(found: Judgement) -> "Figure":
    from matplotlib.figure import Figure
    from matplotlib.ticker import MaxNLocator

    figure = Figure(figsize=(_WIDTH, _HEIGHT), facecolor="white")
    axes = figure.add_axes((0.08, 0.19, 0.89, 0.49))
    title = wrapped(verdict(found), _LETTERS, hang=0)
    figure.text(0.02, 0.97, "\n".join(title), size=11, weight="bold", color=INK, va="top", parse_math=False)
    axes.hist(found.cycles, bins=min(_BINS, found.cycles[-1] - found.cycles[0] + 1), color=RUN)
    bounds, lines = found.result.bounds, []
    slowest = max(found.policies.values(), default=None)
    marks = [
        ("slowest policy", slowest, GREY, ":"),
        ("at least", bounds.lower, FASTEST, "--"),
        ("at most", bounds.upper, PROVEN, "-"),
        (_pessimistic(found), found.result.pessimistic, PESSIMISTIC, "-."),
    ]
    for name, value, colour, style in marks:
        if value is not None and not (name == _pessimistic(found) and value == bounds.upper):
            lines.append(axes.axvline(value, color=colour, linestyle=style, linewidth=2, label=f"{name} {value}"))
    axes.set(xlim=(0, 1.03 * max(found.result.pessimistic, found.cycles[-1])), xlabel="cycles", ylabel="blocks")
    for locator in (axes.xaxis, axes.yaxis):
        locator.set_major_locator(MaxNLocator(nbins=8, integer=True))
    axes.grid(visible=True, axis="y", color=LINES, linewidth=0.5)
    axes.set_axisbelow(True)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    figure.legend(handles=lines, loc="upper left", bbox_to_anchor=(0.07, 0.78), ncols=4, frameon=False)
    note = "\n".join(wrapped(next(remarks(found)), _NOTE_LETTERS, hang=0))
    figure.text(0.02, 0.02, note, size=8, color=GREY, va="bottom", parse_math=False)
    return figure
