"""`makespan schedulability`: whether all deadlines hold, by how much, and what breaks first."""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path

import click

from makespan.cli.output import QUIET, TEXT, format_option, remark, rendered
from makespan.cli.parameters import Memory, Seconds, examples
from makespan.cli.running import DONE, INTERRUPTED, NO, UNDECIDED, progress
from makespan.engines import Limits as SolverLimits
from makespan.errors import InputError
from makespan.report.cache import BundleCache, default_folder
from makespan.report.deadlines.document import document
from makespan.report.deadlines.text import execution_times, report, verdict
from makespan.report.files import check_writable, write_whole
from makespan.report.lines import terminal_width
from makespan.report.pictures import PICTURES
from makespan.schedulability.analysis import DEFAULT_LIMITS
from makespan.schedulability.assessment import ASSIGNMENTS, Assessment, stages
from makespan.schedulability.description import Description, Priorities
from makespan.schedulability.evidence import worst_window
from makespan.schedulability.export import Format
from makespan.schedulability.export import export as export_texts
from makespan.schedulability.fewest import Fewest, fewest_sms
from makespan.schedulability.files import read
from makespan.schedulability.holistic import Limits
from makespan.schedulability.verdict import Answer
from makespan.schedulability.wcet import Solver, Wcet, each_execution_time

_DRAWN = 4
_EXIT_CODES = {Answer.YES: DONE, Answer.NO: NO, Answer.UNKNOWN: UNDECIDED}


@click.command("schedulability", epilog=examples("makespan schedulability examples/tasks.toml --gantt worst.png"))
@click.argument("tasks", type=click.Path(path_type=Path))
@click.option("--gpu", metavar="NAME|FILE.toml", help="whose SMs the partitions are: for a CSV file")
@click.option("--clock", metavar="FREQUENCY", help="of the SM, at least, such as 1.4GHz: for a CSV file")
@click.option("--priorities", type=click.Choice(list(map(str, Priorities))), help="what they mean: for a CSV file")
@click.option("--assign", type=click.Choice(ASSIGNMENTS), help="find partitions for the tasks that have none")
@click.option("--sensitivity", is_flag=True, help="what breaks first: longer kernels, shorter periods, a slower clock")
@click.option(
    "--fewest-sms", "fewest", is_flag=True, help="how few SMs of the GPU do for each partition, and for all together"
)
@format_option()
@click.option("--gantt", type=click.Path(path_type=Path), help="the worst schedule found as .png .svg .pdf")
@click.option(
    "--export",
    type=(click.Choice(list(map(str, Format))), click.Path(path_type=Path)),
    metavar="TOOL FILE",
    help=f"the task set for another tool: {', '.join(Format)}",
)
@click.option(
    "--time-limit", type=Seconds(), default=60.0, show_default=True, help="for each kernel, and for --assign exact"
)
@click.option("--memory-limit", type=Memory(), default="8GiB", show_default=True, help="for the tables of a search")
@click.option(
    "--attempts",
    type=click.IntRange(0, 10_000),
    default=DEFAULT_LIMITS.attempts,
    show_default=True,
    help="schedules to simulate in search of a late job, for each task without a proof",
)
@click.option("--quiet", "-q", is_flag=True, help="print the verdict alone")
@click.option("--cache", type=click.Path(path_type=Path), help="folder of solved kernels [default: the user's]")
@click.option("--no-cache", is_flag=True, help="solve every kernel anew")
def command(
    tasks: Path,
    gpu: str | None,
    clock: str | None,
    priorities: str | None,
    assign: str | None,
    sensitivity: bool,
    fewest: bool,
    output: str,
    gantt: Path | None,
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
    _check_outputs(gantt, export)
    output = QUIET if quiet and output == TEXT else output
    description = read(tasks, gpu=gpu, clock=clock, priorities=priorities)
    store = _store(cache, f"{time_limit} s, {memory_limit} bytes", no_cache=no_cache)
    show = progress()
    solver = Solver(lambda: SolverLimits(time_limit, memory_limit, progress=show), store)
    sizes = fewest_sms(description, solver, show) if fewest else ()
    wcets = _solved(description, solver)
    known = stages(
        description,
        wcets,
        assignment=assign,
        with_margins=sensitivity,
        seconds=time_limit,
        limits=Limits(attempts=attempts),
        progress=show,
    )
    found = _reached(_with_sizes(known, sizes))
    try:
        made = [] if found.is_interrupted else [*_draw(found, gantt), *_export(found, export)]
    finally:  # a file that fails costs nobody the answer
        click.echo(_printed(found, output))
    for line in made:
        remark(line, output)
    return INTERRUPTED if found.is_interrupted else _EXIT_CODES[found.answer]


def _solved(description: Description, solver: Solver) -> dict[str, Wcet]:
    """The execution times; after Ctrl-C those that are known are printed."""
    found: dict[str, Wcet] = {}
    try:
        found.update(each_execution_time(description, solver))
    except KeyboardInterrupt:
        for line in execution_times(found):
            click.echo(line, err=True)
        raise
    return found


def _with_sizes(known: Iterator[Assessment], sizes: Iterable[Fewest]) -> Iterator[Assessment]:
    """The stages of an assessment, and from the last one on with what is found about how few SMs do."""
    found: Assessment | None = None
    for stage in known:
        found = stage
        yield stage
    if found is None:
        return
    for each in sizes:
        found = replace(found, fewest=(*found.fewest, each))
        yield found


def _reached(known: Iterator[Assessment]) -> Assessment:
    """The last assessment, or the one that was reached by the time of Ctrl-C."""
    found = None
    try:
        for stage in known:
            found = stage
    except KeyboardInterrupt:
        if found is None:
            raise
        click.echo("interrupted: what is known so far", err=True)
        return replace(found, is_interrupted=True)
    if found is None:
        raise ValueError("no assessment")
    return found


def _printed(found: Assessment, output: str) -> str:
    return rendered(
        output,
        text=lambda: report(found, width=terminal_width()),
        quiet=lambda: verdict(found),
        data=lambda: document(found),
    )


def _check_outputs(gantt: Path | None, export: tuple[str, Path] | None) -> None:
    """Refuse before the work what would fail after it."""
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
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise InputError(f"{folder}: cannot be a folder of solved kernels: {error.strerror or error}") from None
    chosen = folder or default_folder()
    return None if chosen is None else BundleCache(chosen, effort=effort, note=lambda line: click.echo(line, err=True))


def _draw(found: Assessment, path: Path | None) -> Iterator[str]:
    """The picture of the latest job that a search finds, among the tasks that matter most."""
    if path is None:
        return
    if found.verdict is None:
        yield f"no picture: {verdict(found)}"
        return
    from makespan.report.deadlines.picture import draw_window

    window = worst_window(found.task_set, names=_closest(found))
    draw_window(window, found.tick, path, title=verdict(found))
    yield f"picture: {path}"


def _closest(found: Assessment) -> tuple[str, ...]:
    """The tasks that miss their deadlines or, if none does, those with the least slack."""
    tasks = () if found.verdict is None else found.verdict.tasks
    if late := [task.task for task in tasks if task.miss is not None]:
        return tuple(late[:_DRAWN])
    due = found.task_set.by_name
    slack = {task.task: -1 if task.response is None else due[task.task].deadline - task.response for task in tasks}
    return tuple(sorted(slack, key=lambda name: slack[name])[:_DRAWN])


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
