"""Runs on a GPU beside what is proven: in words, as data and as a picture."""

from collections.abc import Iterator
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any

from makespan.hardware.judgement import CampaignJudgement, SmWindow, WindowKind
from makespan.model.gpu import GpuResult
from makespan.model.result import Bounds, Result
from makespan.model.wording import count_words, cycle_words, pessimistic_name, scope_words
from makespan.report.lines import WIDTH, align_columns, assumption_lines, wrap_line
from makespan.report.pictures import FASTEST, GREY, INK, LINES, PESSIMISTIC, PROVEN, RUN, write_figure
from makespan.report.result.text import interval_text
from makespan.version import versions

if TYPE_CHECKING:
    from matplotlib.figure import Figure, SubFigure

_WIDTH, _HEIGHT, _BINS, _LETTERS = 9.6, 4.8, 60, 100
_NOTE_LETTERS, _MOST_SHOWN = 150, 10
NO_MEASUREMENT = "VIRTUAL DEVICE, no measurement"


def campaign_verdict(found: CampaignJudgement) -> str:
    """Return one line: below the bounds in all runs, or by how much not, and the conditions of the bounds."""
    worst_first = sorted(found.kinds, key=lambda held: not held.violations)
    return _mark_virtual("; ".join(_describe_kind(held, len(found.runs)) for held in worst_first), found)


def _mark_virtual(said: str, found: CampaignJudgement) -> str:
    return f"{NO_MEASUREMENT}: {said}" if found.campaign.device.virtual else said


def _describe_kind(held: WindowKind, runs: int) -> str:
    conditions = scope_words(held.result.caveats).strip()
    windows = f"{count_words(len(held.windows), _window_noun(held))} in {count_words(runs, 'run')}"
    of = "" if held.resident is None else " of the launch"
    bound, most = f"the bound{of}, {conditions}, is {cycle_words(held.bound)}", cycle_words(held.longest.cycles)
    if held.violations:
        return f"NOT BELOW THE BOUND in {len(held.violations)} of {windows}, up to {most}; {bound}"
    return f"below the bound in all of {windows}, up to {most}; {bound}"


def _window_noun(held: WindowKind) -> str:
    return "block" if held.resident is None else "shared SM"


def campaign_report(found: CampaignJudgement, width: int = WIDTH) -> str:
    """Return the verdict, the numbers, an explanation of the distance, and what was not varied."""
    lines = wrap_line(campaign_verdict(found), width, hang=0)
    name = "simulated" if found.campaign.device.virtual else "measured"
    for held in found.kinds:
        if len(found.kinds) > 1:
            lines.append(f"{count_words(len(held.windows), _window_noun(held))}:")
        lines += align_columns([*_number_rows(held, name), *_estimate_rows(held, found)], right=(1, 2))
        lines += [line for remark in _explain_distance(held) for line in wrap_line(remark, width)]
    lines += [line for remark in _describe_campaign(found) for line in wrap_line(remark, width)]
    told = dict.fromkeys(note for held in found.kinds for note in held.result.assumptions)
    return "\n".join([*lines, *assumption_lines(told, width)])


def _number_rows(held: WindowKind, name: str) -> Iterator[tuple[str, str, str, str]]:
    """Yield rows of name, cycles, percent of the bound, and meaning."""
    measured, result, bounds = held.cycles, held.result, held.result.bounds
    yield (
        f"{name}, least",
        str(measured[0]),
        _percent_of_bound(measured[0], held),
        "from the first start to the last end",
    )
    yield f"{name}, median", f"{median(measured):g}", _percent_of_bound(median(measured), held), ""
    yield f"{name}, most", str(measured[-1]), _percent_of_bound(measured[-1], held), f"run {held.longest.run}"
    if result.best_case is not None:
        best = result.best_case
        yield "best case", interval_text(best), _percent_of_bound(best.upper, held), "of the model, records included"
    for policy, makespan in sorted(held.policies.items(), key=lambda item: item[1]):
        yield policy, str(makespan), _percent_of_bound(makespan, held), "one run of the model, largest latencies"
    shown = (
        "a schedule of the model that takes so long"
        if result.witness is not None
        else "no schedule is shorter; time was up"
    )
    yield "at least", str(bounds.lower), _percent_of_bound(bounds.lower, held), shown
    yield "at most", str(bounds.upper), _percent_of_bound(bounds.upper, held), f"the bound, by {result.upper_evidence}"
    if isinstance(result, Result):
        yield _pessimistic(result), str(result.pessimistic), _percent_of_bound(result.pessimistic, held), ""
    original = held.original.bounds
    yield (
        "without records",
        interval_text(original),
        _percent_of_bound(original.upper, held),
        "the kernel as it is given",
    )


def _estimate_rows(held: WindowKind, found: CampaignJudgement) -> Iterator[tuple[str, str, str, str]]:
    """Yield the same rows for estimates, which are about whole launches."""
    if held.resident is not None or found.campaign.blocks == 1:
        for method, expected in found.estimates.items():
            if expected is not None:
                yield (
                    method,
                    f"{expected:.0f}",
                    _percent_of_bound(expected, held),
                    "an estimate of the launch, and no bound",
                )


def _pessimistic(result: Result) -> str:
    return pessimistic_name(result.instance.machine, runs_ahead=result.instance.runs_ahead)


def _percent_of_bound(value: float, held: WindowKind) -> str:
    return f"{100 * value / held.bound:.1f} %"


def _explain_distance(held: WindowKind) -> Iterator[str]:
    """Yield the remarks below the numbers of a kind."""
    bounds, longest = held.result.bounds, held.longest.cycles
    if held.violations:
        yield f"distance: the longest run takes at least {cycle_words(longest + 1 - bounds.upper)} more than the bound"
        others = "blocks on an SM than were counted, or a dispatcher that leaves room empty for longer"
        yield (
            "so the device is not the machine of the question: a latency or a first fetch above its range, a port or a"
            " scheduler that is another one, something else on the"
            f" SM{'' if held.resident is None else f', other {others}'}"
        )
    else:
        # the distance has two parts: what the proof leaves open, and what no run came to
        left, beyond = bounds.upper - max(longest, bounds.lower), max(bounds.lower - longest, 0)
        yield (
            f"distance: {bounds.upper - longest} cycles from the longest run to the bound: {left} of them are what the"
            f" proof leaves open, and {beyond} are a schedule of the model that no run came to"
        )
    yield (
        "counted: the bound is that of all instructions of the kernel with records, those before the first start and"
        " behind the last end included; a run is the part between them. Records raise the bound by"
        f" {bounds.upper - held.original.bounds.upper} cycles"
    )
    apart = max(window.apart for window in held.windows)
    which = "a block" if held.resident is None else "the first blocks"
    yield f"warps of {which} began at most {cycle_words(apart)} apart"
    if held.resident is not None:
        together = count_words(max(window.together for window in held.windows), "block")
        yield f"seen together on an SM: up to {together}, of {held.resident} that the bound supposes"
    for window in held.violations[:_MOST_SHOWN]:
        ran = f"block {window.block}" if window.blocks == 1 else count_words(window.blocks, "block")
        yield f"not below: run {window.run}, {ran} on SM {window.sm}: {cycle_words(window.cycles)}"


def _describe_campaign(found: CampaignJudgement) -> Iterator[str]:
    """Yield the device, the code that ran, and what was not varied."""
    device, code = found.campaign.device, found.campaign.code
    clock = "" if device.clock_khz is None else f", up to {device.clock_khz / 1000:g} MHz"
    yield (
        f"device: {device.name}, compute capability {device.capability}, driver {device.driver},"
        f" {count_words(device.sms, 'SM')}{clock}"
    )
    yield f"machine code {code[:16]}: {found.campaign.compiler}"
    varied = ", ".join(f"{name} {value}" for name, value in found.fixed.items())
    yield f"not varied: {varied + ', ' if varied else ''}parameters, launch, clock, temperature, driver, the GPU itself"
    if silent := [method for method, expected in found.estimates.items() if expected is None]:
        yield f"no estimate by {', '.join(silent)}: 'makespan estimate' says what is missing"
    if found.set_aside:
        blocks = count_words(found.set_aside, "block")
        yield f"not judged: {blocks} that shared an SM while neighbours ran, or with these"


def campaign_document(found: CampaignJudgement) -> dict[str, Any]:
    """Return the judgement as plain data, schema `makespan.validation/2`."""
    device = found.campaign.device
    return {
        "schema": "makespan.validation/2",
        "holds": not found.violations,
        "is_measurement": not device.virtual,
        "verdict": campaign_verdict(found),
        "runs": len(found.runs),
        "kinds": [_kind_document(held) for held in found.kinds],
        "set_aside": found.set_aside,
        "estimates": dict(found.estimates),
        "machine": found.kinds[0].result.instance.machine.name,
        "device": {name: getattr(device, name) for name in device.__struct_fields__},
        "kernel": {"file": found.campaign.file, "name": found.campaign.kernel, "code": found.campaign.code},
        "launch": {"grid": list(found.campaign.grid), "block": list(found.campaign.block)},
        "not_varied": found.fixed,
        "versions": versions(),
    }


def _kind_document(held: WindowKind) -> dict[str, Any]:
    measured, result = held.cycles, held.result
    return {
        "of": "block" if held.resident is None else "launch",
        "windows": len(held.windows),
        "resident": held.resident,
        "together": max(window.together for window in held.windows),
        "cycles": {"least": measured[0], "median": median(measured), "most": measured[-1]},
        "violations": [_window(window) for window in held.violations],
        "bounds": _interval(result.bounds),
        "evidence": result.upper_evidence,
        "pessimistic": None if isinstance(result, GpuResult) else result.pessimistic,
        "best_case": None if result.best_case is None else _interval(result.best_case),
        "without_records": _interval(held.original.bounds),
        "policies": dict(held.policies),
        "caveats": list(result.caveats),
        "assumptions": [note.document for note in result.assumptions],
    }


def _window(window: SmWindow) -> dict[str, int]:
    return {name: getattr(window, name) for name in ("run", "sm", "block", "blocks", "cycles")}


def _interval(bounds: Bounds) -> list[int]:
    return [bounds.lower, bounds.upper]


def draw_campaign(found: CampaignJudgement, path: Path) -> None:
    """Write histograms of the runs beside what is proven to `path` (.png, .svg or .pdf), whole or not at all.

    Raises:
        InputError: a file that cannot be written.
    """
    about = (remark for held in found.kinds for remark in _explain_distance(held))
    write_figure(
        lambda: _figure(found),
        path,
        title=campaign_verdict(found),
        about=" ".join((*about, *_describe_campaign(found))),
    )


def _figure(found: CampaignJudgement) -> "Figure":
    from matplotlib.figure import Figure

    figure = Figure(figsize=(_WIDTH, _HEIGHT * len(found.kinds)), facecolor="white")
    bands = figure.subfigures(len(found.kinds), 1, squeeze=False)[:, 0]
    for band, held in zip(bands, found.kinds, strict=True):
        title = wrap_line(_mark_virtual(_describe_kind(held, len(found.runs)), found), _LETTERS, hang=0)
        band.text(0.02, 0.97, "\n".join(title), size=11, weight="bold", color=INK, va="top", parse_math=False)
        _histogram(band, held)
        note = "\n".join(wrap_line(next(_explain_distance(held)), _NOTE_LETTERS, hang=0))
        band.text(0.02, 0.02, note, size=8, color=GREY, va="bottom", parse_math=False)
    return figure


def _histogram(band: "SubFigure", held: WindowKind) -> None:
    from matplotlib.ticker import MaxNLocator

    axes, measured, bounds, lines = band.add_axes((0.08, 0.19, 0.89, 0.49)), held.cycles, held.result.bounds, []
    axes.hist(measured, bins=min(_BINS, measured[-1] - measured[0] + 1), color=RUN)
    marks = [("at least", bounds.lower, FASTEST, "--"), ("at most", bounds.upper, PROVEN, "-")]
    if held.policies:
        marks.append(("slowest policy", max(held.policies.values()), GREY, ":"))
    if isinstance(held.result, Result) and held.result.pessimistic != bounds.upper:
        marks.append((_pessimistic(held.result), held.result.pessimistic, PESSIMISTIC, "-."))
    for name, value, colour, style in marks:
        lines.append(axes.axvline(value, color=colour, linestyle=style, linewidth=2, label=f"{name} {value}"))
    furthest = max(measured[-1], *(value for _, value, _, _ in marks))
    axes.set(xlim=(0, 1.03 * furthest), xlabel="cycles", ylabel=f"{_window_noun(held)}s")
    for locator in (axes.xaxis, axes.yaxis):
        locator.set_major_locator(MaxNLocator(nbins=8, integer=True))
    axes.grid(visible=True, axis="y", color=LINES, linewidth=0.5)
    axes.set_axisbelow(True)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    band.legend(handles=lines, loc="upper left", bbox_to_anchor=(0.07, 0.78), ncols=4, frameon=False)
