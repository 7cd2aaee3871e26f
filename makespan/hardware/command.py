"""`makespan measure validate`: many runs of a kernel on a GPU, held against the bound of its machine."""

import fcntl
from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack
from functools import partial
from itertools import cycle, islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

import click

from makespan.cli.help_page import HelpCommand, examples, section
from makespan.cli.options import kernel_options, machine_option, option
from makespan.cli.output import format_option, quiet_option, refuse_twice, remark, render, text_form
from makespan.cli.parameters import FILE, SECONDS
from makespan.cli.progress import counting
from makespan.cli.running import DONE, NO, interruptible
from makespan.cli.source import given_machine, kernel_question
from makespan.host.errors import InputError, MakespanError
from makespan.host.text_file import claim_output, is_file

if TYPE_CHECKING:
    from makespan.hardware.campaign import Campaign, CampaignRun
    from makespan.hardware.subject import MeasuredKernel
    from makespan.model.gpu import GpuInstance
    from makespan.model.instance import Instance
    from makespan.model.machine.gpus import Gpu

MAX_RUNS = 1_000_000
_COUNTEREXAMPLE = Path("counterexample.jsonl")


def _words(context: click.Context, parameter: click.Parameter, given: str) -> tuple[str, ...]:
    del context, parameter
    return tuple(dict.fromkeys(word.strip() for word in given.split(",")))


@click.command(
    "validate",
    cls=HelpCommand,
    epilog=examples(
        "makespan measure validate ptx/vecadd.cu --gpu rtx-3070 --block 256 --latency global=..900 \\",
        "    --latency fetch=..900 --latency constant-miss=..900 \\",
        "    --buffer 0=1024 --buffer 1=1024 --buffer 2=1024 --param n=256 -o runs.jsonl",
    ),
)
@click.argument("source")
@section(
    "Machine",
    click.option("--gpu", metavar="NAME|FILE.toml", help="the GPU: its machine, and the architecture to compile for"),
)
@machine_option
@option("hold", help="as of 'makespan solve'")
@option("latency", help="as of 'makespan solve'")
@kernel_options
@section(
    "Launch",
    option("blocks-per-sm", metavar=None, help="resident on an SM [default: as the machine code tells]"),
    option("dynamic-shared", default=0, help="of each block"),
    click.option(
        "--buffer",
        "buffers",
        multiple=True,
        metavar="NAME=BYTES|FILE",
        help="what a parameter points to: so many bytes, or the content of a file",
    ),
)
@section(
    "Runs",
    click.option(
        "--inputs", default="zeros,random", show_default=True, callback=_words, help="of buffers without a file"
    ),
    click.option(
        "--offsets", default="0", show_default=True, callback=_words, help="of buffers, after multiples of 256"
    ),
    click.option(
        "--caches",
        default="warm",
        show_default=True,
        callback=_words,
        metavar="warm,thrashed,cold",
        help="at the start",
    ),
    click.option(
        "--neighbours", default="idle", show_default=True, callback=_words, metavar="idle,hog", help="on the other SMs"
    ),
    click.option(
        "--device",
        default="cuda:0",
        show_default=True,
        metavar="cuda:N|virtual:SEED[:late|:idle|:full]",
        help="who runs",
    ),
    click.option("--runs", "count", type=click.IntRange(1, MAX_RUNS), default=1000, show_default=True, help="launches"),
    click.option("--seed", type=click.IntRange(0, 2**32 - 1), default=0, show_default=True, help="of random inputs"),
)
@section(
    "Output",
    click.option("--from", "kept", type=FILE, metavar="RUNS.jsonl", help="judge these; no device"),
    click.option("-o", "--output", "target", type=FILE, metavar="RUNS.jsonl", help="keep the runs"),
    click.option(
        "--counterexample",
        type=FILE,
        help=f"keeps the runs that are not below the bound, if any [default: {_COUNTEREXAMPLE}]",
    ),
)
@section(
    "Effort",
    click.option("--best-case", is_flag=True, help="also the shortest work-conserving schedule"),
    click.option("--time-limit", type=SECONDS, default=30.0, show_default=True, help="for each bound"),
)
@section("Output", click.option("--plot", type=FILE, help="a histogram: .png, .svg or .pdf"))
@format_option()
@quiet_option
def command(
    source: str,
    gpu: str | None,
    machine: str | None,
    holds: Sequence[str],
    buffers: Sequence[str],
    inputs: Sequence[str],
    offsets: Sequence[str],
    caches: Sequence[str],
    neighbours: Sequence[str],
    device: str,
    count: int,
    seed: int,
    kept: Path | None,
    target: Path | None,
    counterexample: Path | None,
    best_case: bool,
    time_limit: float,
    plot: Path | None,
    output: str,
    quiet: bool,
    arch: str | None,
    **options: Any,
) -> int:
    """Run a kernel many times, and hold what it took against the bound: 0 below it in all runs, 1 above it in some.

    SOURCE is a kernel (.cu, .ptx). A copy of it writes down when each warp begins and ends; the machine code of this
    copy is what runs, and what the bound is of: of a block that was alone on its SM, or of the whole launch where
    blocks shared an SM. Without a GPU the exit code is 4.
    """
    from makespan.hardware import campaign, judgement, report
    from makespan.hardware import subject as subjects
    from makespan.hardware.device import SMS, named_device
    from makespan.host.output_file import write_whole
    from makespan.model.machine import given_intervals, gpus, narrow_intervals
    from makespan.report.lines import terminal_width

    printed = text_form(output, quiet=quiet)
    above = counterexample or _default_counterexample(_COUNTEREXAMPLE, kept)
    _check_outputs(plot, target, above, kept)
    named = named_device(device)
    under = campaign.run_conditions(inputs, offsets, caches, neighbours)
    card, given = None if gpu is None else gpus.find_gpu(gpu), given_machine(None, machine)
    question = kernel_question(source, **options)
    found = subjects.measured_kernel(
        question, subjects.target_architecture(arch, card, given), _buffers_by_name(buffers)
    )
    chosen = narrow_intervals(
        given or (found.recorded.default_machine if card is None else card.machine), given_intervals(holds)
    )
    on = partial(subjects.BoundTarget, chosen, card=card, named=given)
    if kept is None:
        sms = SMS if card is None else card.count_sms()
        opened = named.opened(found.capability, lambda: on(sms).launched(found.recorded))
        about = found.campaign(opened.identity, source, seed)
        about.check(count)
        each: Iterable[CampaignRun] = campaign.launch_runs(
            opened, about, found.image, list(found.arguments.values()), tuple(islice(cycle(under), count))
        )
    else:
        about, each = campaign.read_campaign(kept)
        found.check_same(about, kept)
    on_gpu, pair = on(about.device.sms), (found.recorded, found.original)
    blocks = [on_gpu.alone(kernel) for kernel in pair]
    launches = [on_gpu.launched(kernel) for kernel in pair] if about.blocks > 1 else blocks
    estimates = _launch_estimates(found, card)
    runs = _measure_runs(about, each, target, count, quiet=quiet) if kept is None else tuple(each)
    seen, kinds = judgement.judged_windows(runs), []
    for windows, (recorded, original) in (seen.alone, blocks), (seen.shared, launches):
        if windows:
            results = (
                _solve_question(recorded, time_limit, best_case=best_case, quiet=quiet),
                _solve_question(original, time_limit, best_case=False, quiet=quiet),
            )
            kinds.append(judgement.WindowKind(windows, *results, _policy_makespans(recorded)))
    judged = judgement.CampaignJudgement(about, runs, tuple(kinds), seen.set_aside, estimates)
    try:
        if judged.violations and above is not None:
            write_whole(above, judged.counterexample, "the counterexample")
        if plot is not None:
            report.draw_campaign(judged, plot)
    finally:  # a file that fails costs nobody the answer
        click.echo(
            render(
                printed,
                text=lambda: report.campaign_report(judged, terminal_width()),
                quiet=lambda: report.campaign_verdict(judged),
                data=lambda: report.campaign_document(judged),
            )
        )
    for name, path in (("runs", target), ("counterexample", above if judged.violations else None), ("picture", plot)):
        if path is not None and not quiet:
            remark(f"{name}: {path}", output)
    return NO if judged.violations else DONE


def _default_counterexample(path: Path, kept: Path | None) -> Path | None:
    """Return the default file of counterexamples, unless its own runs are judged: then it stays as it is."""
    is_read = kept is not None and is_file(path) and is_file(kept) and path.samefile(kept)
    return None if is_read else path


def _check_outputs(plot: Path | None, target: Path | None, counterexample: Path | None, kept: Path | None) -> None:
    """Refuse before the work what would fail after it."""
    from makespan.host.output_file import check_writable
    from makespan.report.pictures import check_picture_path

    if kept is not None and target is not None:
        raise InputError("-o keeps runs that are made, and --from has them: give one of them")
    if plot is not None:
        check_picture_path(plot)
    if target is not None:
        check_writable(target, "the runs")
    if counterexample is not None:
        check_writable(counterexample, "the counterexample")
    refuse_twice([path for path in (plot, target, counterexample) if path is not None])


def _buffers_by_name(buffers: Sequence[str]) -> dict[str, str]:
    found: dict[str, str] = {}
    for given in buffers:
        name, equals, what = given.partition("=")
        if not (name and equals and what):
            raise InputError(f"--buffer {given:.60}: expected NAME=BYTES or NAME=FILE")
        if name in found:
            raise InputError(f"--buffer {name:.60}: given twice")
        found[name] = what
    return found


def _measure_runs(
    about: "Campaign", each: Any, target: Path | None, count: int, *, quiet: bool
) -> "tuple[CampaignRun, ...]":
    """Return all runs, each of which is written down as it comes."""
    from makespan.hardware.campaign import campaign_line

    label = f"{'simulating' if about.device.virtual else 'measuring'} {about.device.name}"
    runs: list[CampaignRun] = []
    try:
        with ExitStack() as stack:
            kept = None
            if target is not None:
                claim_output(target)
                kept = stack.enter_context(_open_alone(target))
                kept.write(campaign_line(about))
            one_more = stack.enter_context(counting(count, label, quiet=quiet))
            for run in each:
                runs.append(run)
                if kept is not None:
                    kept.write(campaign_line(run))
                one_more()
    except OSError as error:
        raise InputError(f"{target}: cannot write the runs: {error.strerror or error}") from None
    except MakespanError:
        if runs and target is not None:
            click.echo(f"{len(runs)} runs before that are in {target}", err=True)
        raise
    return tuple(runs)


def _open_alone(target: Path) -> BinaryIO:
    """Return the file, empty, and locked such that no other command writes it while it is open."""
    file = target.open("ab")
    try:
        # the file is emptied only after the lock is held: it may have the runs of another command
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if target.is_file():
            file.truncate(0)
    except OSError as error:
        file.close()
        if isinstance(error, BlockingIOError):
            raise InputError(f"{target}: another command writes its runs there; give -o another file") from None
        raise
    return file


def _solve_question(question: Any, seconds: float, *, best_case: bool, quiet: bool) -> Any:
    from makespan.model.instance import Instance
    from makespan.proof.engines import Limits, solve
    from makespan.proof.engines.gpu import solve_gpu

    limits = Limits(seconds)
    with interruptible(limits, quiet=quiet):
        return (solve if isinstance(question, Instance) else solve_gpu)(question, best_case=best_case, limits=limits)


def _policy_makespans(question: "Instance | GpuInstance") -> Mapping[str, int]:
    """Return the makespans of scheduling policies. A launch has none: its lower bound is the longest of their runs."""
    from makespan.model.instance import Instance
    from makespan.model.simulate import Choices
    from makespan.proof.policy_gap import runs

    if not isinstance(question, Instance):
        return {}
    return {policy: schedule.makespan for policy, schedule in runs(question, Choices()).items()}


def _launch_estimates(found: "MeasuredKernel", card: "Gpu | None") -> Mapping[str, float | None]:
    """Return what models expect of the launch with records; empty if the GPU is not known."""
    from makespan.estimates.question import LaunchQuestion, cycles_by_method

    if card is None:
        return {}
    resources = {"registers": found.registers, "dynamic_shared_bytes": found.shared}
    return cycles_by_method(lambda: LaunchQuestion.of(found.recorded_ptx, card, resources), card)
