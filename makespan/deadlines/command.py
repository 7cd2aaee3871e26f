"""`makespan schedulability`: whether all deadlines hold, by how much, and what breaks first."""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from fractions import Fraction
from itertools import chain
from pathlib import Path

import click

from makespan.cli.help_page import HelpCommand, examples, section
from makespan.cli.output import QUIET, TEXT, format_option, remark, render
from makespan.cli.parameters import SECONDS, SIZE, OneOf
from makespan.cli.progress import notice, progress
from makespan.cli.running import DONE, INTERRUPTED, NO, UNDECIDED
from makespan.deadlines.analysis import DEFAULT_LIMITS
from makespan.deadlines.assessment import ASSIGNMENTS, Assessment, assessments
from makespan.deadlines.description import Description, Priorities
from makespan.deadlines.evidence import TRIES, worst_window
from makespan.deadlines.export import Format
from makespan.deadlines.export import export as export_texts
from makespan.deadlines.files import read
from makespan.deadlines.holistic import AnalysisLimits
from makespan.deadlines.report.chart import ChartView, ticks_of
from makespan.deadlines.report.document import document
from makespan.deadlines.report.text import execution_times, report, verdict
from makespan.deadlines.sensitivity import FewestSms, fewest_sms
from makespan.deadlines.verdict import DeadlineAnswer, list_names
from makespan.deadlines.wcet import Solver, Wcet, each_execution_time
from makespan.host.errors import InputError, did_you_mean
from makespan.host.output_file import check_writable, make_folder, write_whole
from makespan.host.text_file import read_bytes
from makespan.kernels.toml_table import MAX_FILE_BYTES
from makespan.model.machine.values import shown
from makespan.model.units import duration
from makespan.proof.engines import Limits as SolverLimits
from makespan.report.cache import BundleCache, default_folder
from makespan.report.lines import terminal_width
from makespan.report.pictures import PICTURES

_DRAWN = 4
_TRIES = 240
"""Schedules to simulate for all pictures of a page together."""
_EXIT_CODES = {DeadlineAnswer.YES: DONE, DeadlineAnswer.NO: NO, DeadlineAnswer.UNKNOWN: UNDECIDED}


class WindowRange(click.ParamType[tuple[Fraction, Fraction]]):
    """`3ms..9ms`: a part of a schedule, in seconds from the start of its picture."""

    name = "FROM..TO"

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[Fraction, Fraction]:
        """Return both ends, the first one earlier."""
        if isinstance(value, tuple):
            return value
        first, dots, last = str(value).partition("..")
        try:
            ends = duration(first, "the start of the window"), duration(last, "the end of the window")
        except InputError as error:
            self.fail(str(error) if dots else f"{value!r} is no window such as 3ms..9ms", param, ctx)
        if ends[0] >= ends[1]:
            self.fail(f"{value} ends before it begins", param, ctx)
        return ends


@click.command(
    "schedulability",
    cls=HelpCommand,
    epilog=examples("makespan schedulability examples/tasks.toml --gantt worst.png"),
)
@click.argument("tasks", type=click.Path(path_type=Path))
@section(
    "Tasks",
    click.option("--gpu", metavar="NAME|FILE.toml", help="whose SMs the partitions are: for a CSV file"),
    click.option("--clock", metavar="FREQUENCY", help="of the SM, at least, such as 1.4GHz: for a CSV file"),
    click.option("--priorities", type=OneOf(list(map(str, Priorities))), help="what they mean: for a CSV file"),
)
@section(
    "Analysis",
    click.option("--assign", type=OneOf(ASSIGNMENTS), help="find partitions for the tasks that have none"),
    click.option("--exact", is_flag=True, help="walk through all schedules, too, as far as they are few enough"),
    click.option(
        "--sensitivity", is_flag=True, help="what breaks first: longer kernels, shorter periods, a slower clock"
    ),
    click.option(
        "--fewest-sms",
        "fewest",
        is_flag=True,
        help="how few SMs of the GPU do for each partition, and for all together",
    ),
)
@format_option()
@section(
    "Output",
    click.option("--gantt", type=click.Path(path_type=Path), help="the worst schedule found as .png .svg .pdf"),
    click.option("--html", type=click.Path(path_type=Path), help="all of it with pictures as one .html page"),
    click.option("--tasks", "chosen", metavar="NAME,NAME,...", help="of pictures: the worst schedules of these alone"),
    click.option(
        "--window", "part", type=WindowRange(), help="of pictures: only so much of the axis, such as 3ms..9ms"
    ),
    click.option(
        "--export",
        type=(OneOf(list(map(str, Format))), click.Path(path_type=Path)),
        metavar="TOOL FILE",
        help=f"the task set for another tool: {', '.join(Format)}",
    ),
)
@section(
    "Effort",
    click.option(
        "--time-limit", type=SECONDS, default=60.0, show_default=True, help="for each kernel, and for --assign exact"
    ),
    click.option("--memory-limit", type=SIZE, default="8GiB", show_default=True, help="for the tables of a search"),
    click.option(
        "--attempts",
        type=click.IntRange(0, 10_000),
        default=DEFAULT_LIMITS.attempts,
        show_default=True,
        help="schedules to simulate in search of a late job, for each task without a proof",
    ),
)
@section("Output", click.option("--quiet", "-q", is_flag=True, help="print the verdict alone"))
@section(
    "Effort",
    click.option("--cache", type=click.Path(path_type=Path), help="folder of solved kernels [default: the user's]"),
    click.option("--no-cache", is_flag=True, help="solve every kernel anew"),
)
def command(
    tasks: Path,
    gpu: str | None,
    clock: str | None,
    priorities: str | None,
    assign: str | None,
    exact: bool,
    sensitivity: bool,
    fewest: bool,
    output: str,
    gantt: Path | None,
    html: Path | None,
    chosen: str | None,
    part: tuple[Fraction, Fraction] | None,
    export: tuple[str, Path] | None,
    time_limit: float,
    memory_limit: int,
    attempts: int,
    quiet: bool,
    cache: Path | None,
    no_cache: bool,
) -> int:
    """Do all deadlines of TASKS, a .toml or .csv file, hold? With proof.

    Exit code 0: schedulable; 1: not, with evidence; 3: neither is proven.
    """
    _check_outputs(gantt, html, export)
    if gantt is None and html is None and (chosen is not None or part is not None):
        raise InputError("--tasks and --window choose what --gantt and --html draw: give one of them, too")
    output = QUIET if quiet and output == TEXT else output
    given = None if html is None else read_bytes(tasks, "task file", MAX_FILE_BYTES)
    description = read(tasks, gpu=gpu, clock=clock, priorities=priorities)
    names = _names(description, chosen)
    store = _store(cache, f"{time_limit} s, {memory_limit} bytes", no_cache=no_cache)
    with progress(quiet=quiet) as show:
        solver = Solver(lambda: SolverLimits(time_limit, memory_limit, progress=show), store)
        sizes = fewest_sms(description, solver, show) if fewest else ()
        wcets = _solve_times(description, solver)  # before all else, since it may take long
        known = assessments(
            description,
            wcets,
            assignment=assign,
            exact=exact,
            with_margins=sensitivity,
            seconds=time_limit,
            limits=AnalysisLimits(attempts=attempts),
            progress=show,
        )
        found = _last_assessment(known, sizes)
    try:
        view = ChartView(names, None if part is None else ticks_of(part, found.tick))
        wanted = (_draw(found, gantt, view), _page(found, html, view, given), _export(found, export))
        made = [] if found.is_interrupted else [*chain(*wanted)]
    finally:  # the answer is printed even if writing a file fails
        words = render(
            output,
            text=lambda: report(found, width=terminal_width()),
            quiet=lambda: verdict(found),
            data=lambda: document(found),
        )
        click.echo(words)
    for line in made:
        remark(line, output)
    return INTERRUPTED if found.is_interrupted else _EXIT_CODES[found.answer]


def _names(description: Description, chosen: str | None) -> tuple[str, ...]:
    names = () if chosen is None else tuple(dict.fromkeys(name.strip() for name in chosen.split(",")))
    known = [entry.name for entry in description.tasks]
    if unknown := [name for name in names if name not in known]:
        near = did_you_mean(unknown[0], known)
        raise InputError(f"--tasks: there is no task {shown(unknown[0])}{near or ';'} the file has {list_names(known)}")
    return names


def _solve_times(description: Description, solver: Solver) -> dict[str, Wcet]:
    """Return the execution times; after Ctrl-C those that are known are printed."""
    found: dict[str, Wcet] = {}
    try:
        found.update(each_execution_time(description, solver))
    except KeyboardInterrupt:
        for line in execution_times(found):
            notice(line)
        raise
    return found


def _last_assessment(known: Iterator[Assessment], sizes: Iterable[FewestSms]) -> Assessment:
    """Return the last assessment with what is found about how few SMs do, or what is known by the time of Ctrl-C."""
    found = next(known)  # Ctrl-C before the first one leaves nothing to tell
    try:
        for stage in known:
            found = stage
        for each in sizes:
            found = replace(found, fewest=(*found.fewest, each))
    except KeyboardInterrupt:
        notice("interrupted: what is known so far")
        return replace(found, is_interrupted=True)
    return found


def _check_outputs(gantt: Path | None, html: Path | None, export: tuple[str, Path] | None) -> None:
    """Refuse, before the work, outputs that would fail after it."""
    if html is not None:
        if html.suffix.lower() not in (".html", ".htm"):
            raise InputError(f"{html}: the name of a page must end in .html")
        check_writable(html, "the page")
    if gantt is not None:
        if gantt.suffix.lower() not in PICTURES:
            raise InputError(f"{gantt}: the name of a picture must end in {', '.join(PICTURES)}")
        check_writable(gantt, "the picture")
    if export is not None:
        check_writable(export[1], "the export")


def _store(folder: Path | None, effort: str, *, no_cache: bool) -> BundleCache | None:
    if no_cache:
        if folder is not None:
            raise InputError("--cache and --no-cache exclude each other")
        return None
    if folder is not None:
        make_folder(folder, "solved kernels")
    chosen = folder or default_folder()
    return None if chosen is None else BundleCache(chosen, effort=effort, note=notice)


def _draw(found: Assessment, path: Path | None, view: ChartView) -> Iterator[str]:
    """Yield the picture of the latest job that a search finds, among the tasks that are chosen or matter most."""
    if path is None:
        return
    if found.verdict is None:
        yield f"no picture: {verdict(found)}"
        return
    from makespan.deadlines.report.chart import draw_window

    window = worst_window(found.task_set, names=view.tasks or _late(found) or _closest(found)[:_DRAWN])
    draw_window(window, found.tick, path, title=verdict(found), view=view)
    yield f"picture: {path}"


def _page(found: Assessment, path: Path | None, view: ChartView, given: bytes | None) -> Iterator[str]:
    """Yield the page, with the worst schedules of the tasks that are chosen or matter most."""
    if path is None or given is None:
        return
    from makespan.deadlines.report.page import MOST_PICTURES, PageContents, check_size, deadlines_page
    from makespan.report.html import PageInput

    check_size(found.task_set)
    windows, without = {}, {}
    names = () if found.verdict is None else (view.tasks or _closest(found))[:MOST_PICTURES]
    with progress() as say:
        for name in names:
            say(f"looking for the worst schedule of {name}")
            try:
                windows[name] = worst_window(found.task_set, names=(name,), tries=min(TRIES, _TRIES // len(names)))
            except InputError as error:
                without[name] = str(error)
    page = deadlines_page(found, PageContents(windows, without, view, (PageInput("tasks", found.where, given),)))
    write_whole(path, page.encode(), "the page")
    yield f"page: {path}"


def _late(found: Assessment) -> tuple[str, ...]:
    tasks = () if found.verdict is None else found.verdict.tasks
    return tuple(task.task for task in tasks if task.miss is not None)[:_DRAWN]


def _closest(found: Assessment) -> tuple[str, ...]:
    """Return the tasks that miss their deadlines, then the others, those with the least slack first."""
    tasks = () if found.verdict is None else found.verdict.tasks
    due = found.task_set.by_name
    slack = {task.task: -1 if task.response is None else due[task.task].deadline - task.response for task in tasks}
    return tuple(sorted(slack, key=lambda name: (name not in _late(found), slack[name])))


def _export(found: Assessment, asked: tuple[str, Path] | None) -> Iterator[str]:
    if asked is None:
        return
    kind, path = asked
    made = export_texts(found.task_set, Format(kind), tick=found.tick, stem=path.stem)
    for name in made.files:
        check_writable(path.with_name(name), "the export")
    for name, content in made.files.items():
        target = path.with_name(name)
        write_whole(target, content.encode(), "the export")
        yield f"export: {target}"
    for note in made.notes:
        click.echo(f"export to {kind}: {note}", err=True)
