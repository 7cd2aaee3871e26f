"""`makespan report`: a result with everything behind it as one HTML file, for whoever has to believe it."""

import shlex
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from makespan.cli import help_page
from makespan.cli.gpu import GpuLaunch, gpu_launch
from makespan.cli.options import SOLVE_OPTIONS, deadline_options, engine_options, gpu_options, source_options
from makespan.cli.output import DATA, paint_verdicts
from makespan.cli.parameters import FILE, WARPS
from makespan.cli.question import SolveEffort
from makespan.cli.running import INTERRUPTED, exit_code, interruptible
from makespan.cli.source import given_machine, instances, kernel_question
from makespan.host.errors import BrokenPromiseError, InputError
from makespan.host.output_file import check_writable, write_whole
from makespan.host.stopwatch import within
from makespan.host.text_file import read_bytes
from makespan.kernels.kernel_file import is_kernel
from makespan.model.deadline import read_deadline
from makespan.model.instance import Instance
from makespan.model.machine import MachineFile, find_machine
from makespan.model.result import Result, Step
from makespan.model.simulate import Choices
from makespan.model.strings import MAX_FILE_BYTES, NamedInstance
from makespan.proof.engines import Limits, solve
from makespan.proof.engines.gpu import solve_gpu
from makespan.proof.policy_gap import enclosing, runs
from makespan.report.gpu.bundle import gpu_bundle
from makespan.report.html import PageCommand, PageContext, PageInput, gpu_page, page_data, render_page
from makespan.report.result import text
from makespan.report.result.bundle import bundle_bytes, check_bundle_path
from makespan.report.result.bundle import result_bundle as made_bundle

if TYPE_CHECKING:
    from makespan.kernels.question import LaunchedKernel
    from makespan.verify import Verdict

_EVIDENCE = "evidence.json"
_INPUTS = {"gpu": "GPU", "loop-bound": "loop bounds"}
"""The words for files of options that are not called like the option."""
_CHANGED = "a file changed while it was read: run this again"
_FOR_PAGE = ("output", "curve", "bundle", "check", "steps")
_NOT_OF_KERNELS = ("letters", "instance", "capacity", "machine", "holds", "keep_ptx")
_FOR_SOLVE = ("backend", "memory_limit", "threads", "seed", "deadline", "clock")


@click.command(
    "report",
    cls=help_page.HelpCommand,
    epilog=help_page.examples("makespan report ptx/vecadd.ptx --block 256 -o report.html"),
)
@source_options
@gpu_options
@help_page.section(
    "Output",
    click.option("--output", "-o", type=FILE, required=True, metavar="FILE.html", help="the page"),
    click.option("--curve", type=WARPS, metavar="A..B", help="also the worst case for these numbers of warps"),
    click.option("--bundle", type=FILE, help="leave the evidence, whose digest the page states"),
)
@help_page.section(
    "Effort",
    click.option("--check/--no-check", default=True, show_default=True, help="have the independent checker confirm it"),
)
@engine_options
@help_page.section(
    "Output",
    click.option("--steps", is_flag=True, help="a line of JSON on stderr for each interval that is proven on the way"),
)
@help_page.section(
    "Effort",
    click.option("--best-case", is_flag=True, help="search for the shortest schedule, too; the page bounds it anyway"),
)
@deadline_options
@click.pass_context
def command(
    context: click.Context,
    /,
    output: Path,
    curve: range | None,
    bundle: Path | None,
    check: bool,
    deadline: str | None,
    clock: str | None,
    steps: bool,
    gpu: str | None,
    sms: str | None,
    **source: Any,
) -> int:
    """Write the worst case, its proof and its assumptions as one HTML file that needs no network.

    SOURCE is a kernel (.ptx, .cu, .cubin) or an instance file with one instance (.toml, .jsonl). With --gpu or --sms it
    is about all blocks of a --grid on all SMs. With --deadline the exit code is that of a gate, as of 'makespan solve'.
    """
    _check_outputs(output, bundle)
    effort, source = SolveEffort.split(source)
    inputs = tuple(_inputs({**source, "gpu": gpu}))
    name = str(source["source"] or "an instruction string")
    about = partial(PageContext, name=name, choices=Choices(), inputs=inputs)
    if gpu is not None or sms is not None:
        if curve is not None or effort.backend != "auto":
            raise InputError("--curve and --backend are for one SM: leave them out, or --gpu and --sms")
        with within(effort.time_limit) as reading:
            launch = gpu_launch(
                **source, gpu=gpu, sms=sms, scheduler=None, assignment=None, deadline=deadline, clock=clock
            )
        if len(launch.instance.grids) > 1:
            raise InputError("a page draws the blocks of one launch: ask for each alone, or solve the file of launches")
        known = about(
            commands=tuple(_commands(context, bundle or Path(_EVIDENCE), runs_policies=False)),
            machine=_machine_of_gpu(source, launch),
            deadline=launch.gate,
        )
        if tuple(_inputs({**source, "gpu": gpu})) != inputs:
            raise InputError(_CHANGED)
        limits = effort.limits(reading.left, improved=_step_printer(steps))
        return _whole_gpu(launch, known, limits, output, bundle, check=check, best_case=effort.best_case)
    gate = read_deadline(deadline, clock)
    with within(effort.time_limit) as reading:
        question, others = _questions(source, curve)
        launched = _launched_kernel(source)
        known = about(
            commands=tuple(_commands(context, bundle or Path(_EVIDENCE))),
            machine=_machine_file(source, question.instance),
            kernel=None if launched is None else launched.kernel,
            loops=None if launched is None else launched.loops,
            deadline=gate,
        )
    # The page states digests of files: they must be those that were read for the question.
    if tuple(_inputs({**source, "gpu": gpu})) != inputs:
        raise InputError(_CHANGED)

    def solved(instance: Instance, seconds: float, *, best_case: bool = False, steps: bool = False) -> Result:
        limits = effort.limits(seconds, improved=_step_printer(steps))
        with interruptible(limits):
            return solve(instance, backend=effort.backend, best_case=best_case, limits=limits)

    # Policies run first: their schedules narrow the worst and the best case.
    instance = question.instance
    schedules = runs(instance, known.choices)
    gap = enclosing(solved(instance, reading.left, best_case=effort.best_case, steps=steps), schedules)
    points = tuple(_points(gap.result, others, partial(solved, seconds=effort.time_limit)))
    evidence = made_bundle(replace(gap.result, best_case=None))  # runs that narrow the best case are not in it
    done = {point.instance.warps for point in points}
    missing = tuple(other.instance.warps for other in others if other.instance.warps not in done)
    known = replace(known, curve=points or None, missing=missing, verdict=_confirm(evidence) if check else None)
    _write(render_page(page_data(gap, known, evidence["sha256"])), output, evidence, bundle)
    _tell(text.verdict_line(gap.result), output, bundle)
    if any(point.interrupted for point in points):
        return INTERRUPTED
    return exit_code(gap.result, question, gate)


def _step_printer(steps: bool, /) -> Callable[[Step], None]:
    """Return a printer of proven intervals on stderr, for a program that shows them; silent unless `steps`."""
    return lambda step: click.echo(DATA["json"](step._asdict()), err=True) if steps else None


def _whole_gpu(
    launch: GpuLaunch,
    known: PageContext,
    limits: Limits,
    output: Path,
    bundle: Path | None,
    *,
    check: bool,
    best_case: bool,
) -> int:
    """Solve a launch on a whole GPU and write its page; return the exit code."""
    with interruptible(limits):
        result = solve_gpu(launch.instance, best_case=best_case, limits=limits)
    evidence = gpu_bundle(result)
    known = replace(known, verdict=_confirm(evidence) if check else None)
    name = None if launch.card is None else launch.card.name
    _write(gpu_page(result, known, evidence["sha256"], name=name, clock=launch.clock), output, evidence, bundle)
    _tell(str(result), output, bundle)
    return exit_code(result, gate=known.deadline)


def _write(page: str, output: Path, evidence: dict[str, Any], bundle: Path | None) -> None:
    if bundle is not None:
        write_whole(bundle, bundle_bytes(evidence), "the bundle")
    write_whole(output, page.encode("utf-8"), "the page")


def _tell(verdict: str, output: Path, bundle: Path | None) -> None:
    click.echo(paint_verdicts(verdict))
    for name, path in (("page", output), ("bundle", bundle)):
        if path is not None:
            click.echo(f"{name}: {path}")


def _check_outputs(output: Path, bundle: Path | None) -> None:
    """Refuse outputs before the work starts that could not be written after it."""
    if output.suffix.lower() not in (".html", ".htm"):
        raise InputError(f"{output}: the name of a page must end in .html")
    check_writable(output, "the page")
    if bundle is not None:
        check_bundle_path(bundle)
        if bundle.resolve() == output.resolve():
            raise InputError(f"{output}: the page and the bundle need two names")


def _questions(source: dict[str, Any], curve: range | None) -> tuple[NamedInstance, tuple[NamedInstance, ...]]:
    asked = instances(**source)
    if len(asked) > 1:
        raise InputError(f"a page is about one instance, and this is {len(asked)}; for a range of warps give --curve")
    if curve is None:
        return asked[0], ()
    if source["warps"] is None:
        raise InputError("--curve stands beside --warps: it needs a kernel or a --string, and no --block")
    return asked[0], instances(**{**source, "warps": curve})


def _inputs(source: dict[str, Any]) -> Iterator[PageInput]:
    """Yield everything that the options name, with its content."""
    if source["letters"] is not None:
        yield PageInput("instruction string", "--string", source["letters"].encode("utf-8", "surrogateescape"))
        source = {**source, "source": None}  # both are refused later
    elif source["source"] == "-":
        raise InputError("a page states the name and the digest of its source: give a file, not '-'")
    # The table says which options name files: a new one cannot be forgotten here.
    for option in SOLVE_OPTIONS.values():
        value = source.get(option.keyword)
        for each in (value or ()) if option.many else (value,):
            if each is not None and option.is_file(str(each)):
                yield _read(_INPUTS.get(option.name, option.name), Path(each))


def _read(what: str, path: Path) -> PageInput:
    return PageInput(what, str(path), read_bytes(path, what, MAX_FILE_BYTES))


def _launched_kernel(source: dict[str, Any]) -> "LaunchedKernel | None":
    if source["source"] is None or not is_kernel(source["source"]):
        return None
    from makespan.kernels.question import launch_kernel

    about = {name: value for name, value in source.items() if name not in _NOT_OF_KERNELS}
    return launch_kernel(kernel_question(**about), given_machine(source["capacity"], source["machine"]))


def _machine_file(source: dict[str, Any], instance: Instance) -> MachineFile | None:
    """Return the file with the sources of the numbers; None where the user or an instance file gives them."""
    if source["capacity"] is not None:
        return None
    if source["machine"] is not None:
        return find_machine(source["machine"])
    return None if source["warps"] is None and source["block"] is None else find_machine(instance.machine.name)


def _machine_of_gpu(source: dict[str, Any], launch: GpuLaunch) -> MachineFile | None:
    """Return the machine file that is named, or that of the GPU; None where the user gives the capacities."""
    if source["capacity"] is not None:
        return None
    return find_machine(source["machine"] or launch.instance.machine.name)


def _points(first: Result, others: Iterable[NamedInstance], solved: Callable[[Instance], Result]) -> Iterator[Result]:
    """Yield a result for each number of warps, until the user interrupts; `first` is one that is known."""
    for other in others:
        result = first if other.instance == first.instance else solved(other.instance)
        yield result
        if result.interrupted:
            return


def _confirm(evidence: dict[str, Any]) -> "Verdict":
    """Return the verdict of the independent checker.

    Raises:
        BrokenPromiseError: it rejects what was just computed.
    """
    from makespan.verify import Outcome, parse, verify

    verdict = verify(parse(bundle_bytes(evidence)))
    if verdict.outcome is Outcome.REJECTED:
        raise BrokenPromiseError(f"the independent checker rejects the result: {verdict.reason}")
    return verdict


def _commands(context: click.Context, evidence: Path, *, runs_policies: bool = True) -> Iterator[PageCommand]:
    # Defaults are left out: the command line of the page is the one that was given.
    given = [parameter for parameter in context.command.params if _is_given(context, parameter)]

    def line(name: str, leave_out: tuple[str, ...], *more: str) -> str:
        words = (word for p in given if p.name not in leave_out for word in _words(p, context.params[p.name or ""]))
        return shlex.join(["makespan", name, *words, *more])

    yield PageCommand("Solve it again, and leave the evidence:", line("solve", _FOR_PAGE, "--bundle", str(evidence)))
    yield PageCommand(
        "Have the independent checker confirm the evidence:", shlex.join(["makespan", "verify", str(evidence)])
    )
    if runs_policies:
        yield PageCommand(
            "Run the policies again, with the best case:", line("simulate", (*_FOR_PAGE, *_FOR_SOLVE, "best_case"))
        )
    yield PageCommand("Make this page again:", line("report", ("steps",)))


def _is_given(context: click.Context, parameter: click.Parameter) -> bool:
    source = context.get_parameter_source(parameter.name or "")
    return source is click.core.ParameterSource.COMMANDLINE


def _words(parameter: click.Parameter, value: Any) -> Iterator[str]:
    """Yield a parameter as one writes it on the command line."""
    name = max(parameter.opts, key=len)
    if isinstance(parameter, click.Argument):
        yield str(value)
    elif isinstance(value, bool):
        yield name if value else max(parameter.secondary_opts, key=len)
    else:
        for item in value if isinstance(value, tuple) else (value,):
            yield from (name, _spelling(item))


def _spelling(value: Any) -> str:
    if isinstance(value, range):
        return str(value.start) if len(value) == 1 else f"{value.start}..{value.stop - 1}"
    capacities = getattr(value, "capacities", None)
    return str(value) if capacities is None else ",".join(f"{unit}={most}" for unit, most in capacities.items())
