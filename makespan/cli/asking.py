"""What `makespan solve` is asked, as data: a question is a table of its options, and has an answer.

A question names options as one writes them, without dashes, and `source` for the argument:
`{"source": "ptx/vecadd.ptx", "block": "256", "time-limit": 10, "param": ["N=4096"], "best-case": True}`.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any, TypeAlias

import click

from makespan.cli import gpu as whole_gpu
from makespan.cli.help_page import section, stack
from makespan.cli.source import (
    check_source,
    engine_options,
    instances,
    promise_options,
    promised,
    source_options,
)
from makespan.host.errors import InputError, did_you_mean
from makespan.host.stopwatch import within
from makespan.model.deadline import Deadline, read_deadline
from makespan.model.result import Result
from makespan.model.strings import NamedInstance
from makespan.proof.engines import Limits, solve
from makespan.report.gpu.bundle import bundle as gpu_bundle
from makespan.report.gpu.bundle import of_gpu
from makespan.report.result.bundle import bundle, encoded, of_instance
from makespan.report.result.document import deadline_document, document
from makespan.report.schedule.explanation import explain, explanation_document

Question: TypeAlias = Mapping[str, Any]

deadline_options = section(
    "Deadline",
    click.option("--deadline", metavar="TIME|Ncycles", help="is the worst case in time? such as 200ns, or 280cycles"),
    click.option("--clock", metavar="FREQUENCY", help="of the SM, at least, such as 1.4GHz: for a deadline in time"),
)

question_options = stack(
    source_options,
    whole_gpu.gpu_options,
    promise_options,
    engine_options,
    section("Effort", click.option("--best-case", is_flag=True, help="also the shortest work-conserving schedule")),
    deadline_options,
)
"""All options of `makespan solve` that its answer depends on."""


@click.command("question", add_help_option=False)
@question_options
def _question(**_: Any) -> None:
    """What click knows of these options; it is never called."""


_NOT_ASKED = {"keep-ptx", "input-format"}
_ALL = {max(option.opts, key=len).removeprefix("--"): option for option in _question.params}
OPTIONS: Mapping[str, click.Parameter] = {name: option for name, option in _ALL.items() if name not in _NOT_ASKED}
"""What a question can say, by name."""


def checked(question: Question) -> dict[str, Any]:
    """Return the values of all options as click converts them, defaults among them; no file is read.

    Raises:
        InputError: no option of this name, or a value that it does not take.

    >>> checked({"string": "CLLC", "warps": 2})["warps"]
    range(2, 3)
    """
    words = [word for name, value in question.items() if name != "source" for word in _words(name, value)]
    if (source := question.get("source")) is not None:
        if not isinstance(source, str) or source == "-":
            raise InputError(f"source must be the name of a file, not {source!r:.60}")
        words += ["--", source]
    try:
        given: dict[str, Any] = _question.make_context("question", words).params
        check_source(given["source"], given["letters"])
    except click.UsageError as error:
        raise InputError(error.format_message()) from None
    if given["warps"] is not None and len(given["warps"]) > 1:
        raise InputError(f"warps {question['warps']}: a question is about one instance; ask for each number by itself")
    return given


def located(question: Question, folder: Path) -> Question:
    """Return the question where names of files in it are relative to a folder, as in a file that has questions.

    >>> located({"source": "a.ptx", "machine": "turing", "warps": 2}, Path("kernels"))["source"]
    'kernels/a.ptx'
    """
    return {name: _located(name, value, folder) for name, value in question.items()}


def _located(name: str, value: Any, folder: Path) -> Any:
    if isinstance(value, list | tuple):
        return [_located(name, each, folder) for each in value]
    if not isinstance(value, str):
        return value
    match name:
        case "source" | "classes" | "trace":
            is_file = True
        case "machine" | "gpu":
            is_file = value.endswith(".toml")
        case _:
            is_file = name == "loop-bound" and "=" not in value
    return str(folder / value) if is_file else value


def _words(name: str, value: object) -> Iterator[str]:
    """Yield an option as one writes it on a command line."""
    option = OPTIONS.get(name)
    if not isinstance(option, click.Option):
        near = did_you_mean(name, OPTIONS)
        raise InputError(
            f"{name!r:.60} is no option of a question, which takes those of 'makespan solve' but for files that it"
            f" writes and what it prints{near}"
        )
    values = value if isinstance(value, list | tuple) and option.multiple else (value,)
    for one in values:
        if option.is_flag and isinstance(one, bool):
            yield from [f"--{name}"] if one else []
        elif option.is_flag or isinstance(one, bool) or not isinstance(one, str | int | float):
            wanted = "true or false" if option.is_flag else "a text or a number"
            raise InputError(f"{name} must be {wanted}{' or a list of them' * option.multiple}, not {one!r:.60}")
        else:
            yield f"--{name}={one}"


def _silent(line: str) -> None:
    del line


@dataclass(frozen=True, slots=True)
class Effort:
    """What the engines are asked for, and may spend on each instance: `engine_options` and `--best-case`."""

    backend: str
    best_case: bool
    time_limit: float
    memory_limit: int
    threads: int
    seed: int

    @classmethod
    def parted(cls, options: Mapping[str, Any]) -> tuple["Effort", dict[str, Any]]:
        """Return the effort of `question_options`, and the rest of them."""
        own = {field.name: options[field.name] for field in fields(cls)}
        return cls(**own), {name: value for name, value in options.items() if name not in own}

    def limits(self, seconds: float, progress: Callable[[str], None] = _silent) -> Limits:
        """What is left of the time, and the other limits."""
        return Limits(seconds, self.memory_limit, self.threads, self.seed, progress=progress)


@dataclass(frozen=True, slots=True)
class Answer:
    """What `makespan solve` finds.

    Args:
        document: as `--format json` prints it.
        evidence: the bundle, as plain data.
    """

    document: dict[str, Any]
    evidence: dict[str, Any]

    @property
    def lower(self) -> int:
        """Cycles, proven by a schedule."""
        return int(self.document["lower"])

    @property
    def upper(self) -> int:
        """Cycles, the safe number."""
        return int(self.document["upper"])

    @property
    def status(self) -> str:
        """`exact` or `bounded`."""
        return str(self.document["status"])

    @property
    def seconds(self) -> float:
        """What solving took."""
        return float(self.document["seconds"])

    @property
    def digest(self) -> str:
        """Return the SHA-256 that the bundle states of itself."""
        return str(self.evidence["sha256"])

    @property
    def bundle(self) -> bytes:
        """Return the file that `--bundle` leaves."""
        return encoded(self.evidence)


def posed(question: Question) -> dict[str, Any]:
    """Return the instance alone, as a bundle has it; nothing is solved.

    Raises:
        InputError: see `answered`.

    >>> posed({"string": "CLLCLL", "warps": 2})["groups"]
    [{'warps': 2, 'string': 'CLLCLL'}]
    """
    effort, options = Effort.parted(checked(question))
    with within(effort.time_limit):
        if whole_gpu.is_asked(options):
            return of_gpu(whole_gpu.asked(**options).instance)
        return of_instance(_one(options)[1].instance)


def answered(question: Question, progress: Callable[[str], None] = _silent) -> Answer:
    """Solve what is asked, for one SM or for a GPU.

    Args:
        progress: called with one line now and then.

    Raises:
        InputError: a question that is not understood, or one of several instances.

    >>> answered({"string": "CLLCLL", "warps": 2}).upper
    10
    """
    effort, options = Effort.parted(checked(question))
    if whole_gpu.is_asked(options):
        return _of_gpu(options, effort, progress)
    with within(effort.time_limit) as reading:
        gate, named = _one(options)
    found = solve(
        named.instance,
        backend=effort.backend,
        best_case=effort.best_case,
        limits=effort.limits(reading.left, progress),
    )
    return Answer(told(named, found, gate), bundle(found))


def _one(options: dict[str, Any]) -> tuple[Deadline | None, NamedInstance]:
    gate, several = on_one_sm(**options)
    if len(several) != 1:
        raise InputError(f"{options['source']}: a question is about one instance, and here are {len(several)}")
    return gate, several[0]


def _of_gpu(options: dict[str, Any], effort: Effort, progress: Callable[[str], None]) -> Answer:
    from makespan.proof.engines.gpu import solve_gpu

    whole_gpu.refuse("", effort.backend, timeline=False)
    with within(effort.time_limit) as reading:
        launch = whole_gpu.asked(**options)
    limits = effort.limits(reading.left, progress)
    result = solve_gpu(launch.instance, best_case=effort.best_case, limits=limits)
    return Answer(whole_gpu.told(launch, result), gpu_bundle(result))


def on_one_sm(
    *, scheduler: str | None, assignment: str | None, deadline: str | None, clock: str | None, **options: Any
) -> tuple[Deadline | None, tuple[NamedInstance, ...]]:
    """Return the deadline, and the instances under what is promised, that `question_options` ask for about one SM.

    Raises:
        InputError: options that contradict each other or lack something, or a source that is no input.
    """
    gate = read_deadline(deadline, clock)
    source = {name: value for name, value in options.items() if name not in ("gpu", "sms")}
    return gate, tuple(_under(scheduler, assignment, instances(**source)))


def _under(scheduler: str | None, assignment: str | None, found: Iterable[NamedInstance]) -> Iterator[NamedInstance]:
    for named in found:
        instance = named.instance
        machine = promised(instance.machine, scheduler, assignment)
        yield replace(named, instance=replace(instance, machine=machine))


def told(named: NamedInstance, result: Result, gate: Deadline | None) -> dict[str, Any]:
    """Return the document of an instance."""
    name = {"name": named.name} if named.name else {}
    expected = {"expected": named.makespan} if named.makespan is not None else {}
    explained = {"explanation": explanation_document(explain(result.instance, result.witness))}
    gated = {} if gate is None else {"deadline": deadline_document(gate, result.bounds)}
    return {**document(result), **explained, **gated, **name, **expected}
