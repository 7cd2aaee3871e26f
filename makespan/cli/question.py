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
from makespan.cli.options import QUESTION_OPTIONS, SOLVE_OPTIONS
from makespan.cli.source import check_source, instances, promised_machine
from makespan.host.errors import InputError, did_you_mean
from makespan.host.stopwatch import within
from makespan.model.deadline import Deadline, read_deadline
from makespan.model.result import Result
from makespan.model.strings import NamedInstance
from makespan.proof.engines import Limits, solve
from makespan.report.gpu.bundle import gpu_bundle, gpu_question_data
from makespan.report.result.bundle import bundle_bytes, instance_data, result_bundle
from makespan.report.result.document import deadline_document, result_document
from makespan.report.schedule.explanation import explain, explanation_document

QuestionData: TypeAlias = Mapping[str, Any]


def read_question(question: QuestionData) -> dict[str, Any]:
    """Return the values of all options by keyword, defaults among them; no file is read.

    Raises:
        InputError: no option of this name, or a value that it does not take.

    >>> read_question({"string": "CLLC", "warps": 2})["warps"]
    range(2, 3)
    """
    for name in question:
        if name not in QUESTION_OPTIONS:
            near = did_you_mean(name, QUESTION_OPTIONS)
            raise InputError(
                f"{name!r:.60} is no option of a question, which takes those of 'makespan solve' but for files that it"
                f" writes and what it prints{near}"
            )
    source = question.get("source")
    if source is not None and (not isinstance(source, str) or source == "-"):
        raise InputError(f"source must be the name of a file, not {source!r:.60}")
    # A `source` of None is none at all, as callers that pass it through expect.
    said = {name: value for name, value in question.items() if name != "source" or value is not None}
    values = {
        option.keyword: option.read(said[name]) if name in said else option.unsaid
        for name, option in SOLVE_OPTIONS.items()
    }
    try:
        check_source(values["source"], values["letters"])
    except click.UsageError as error:  # of data there is no help of a command to look at
        raise InputError(error.format_message()) from None
    # A key is that of one answer, so a range is no question.
    if values["warps"] is not None and len(values["warps"]) > 1:
        raise InputError(f"warps {question['warps']}: a question is about one instance; ask for each number by itself")
    return values


def from_folder(question: QuestionData, folder: Path) -> QuestionData:
    """Return the question where names of files in it are relative to a folder, as in a file that has questions.

    >>> from_folder({"source": "a.ptx", "machine": "turing", "warps": 2}, Path("kernels"))["source"]
    'kernels/a.ptx'
    """
    return {
        name: QUESTION_OPTIONS[name].located(value, folder) if name in QUESTION_OPTIONS else value
        for name, value in question.items()
    }


def _silent(line: str) -> None:
    del line


@dataclass(frozen=True, slots=True)
class SolveEffort:
    """The values of `engine_options` and `--best-case`: what the engines may spend on each instance."""

    backend: str
    best_case: bool
    time_limit: float
    memory_limit: int
    threads: int
    seed: int

    @classmethod
    def split(cls, options: Mapping[str, Any]) -> tuple["SolveEffort", dict[str, Any]]:
        """Return the effort that `question_options` ask for, and the rest of these options."""
        own = {field.name: options[field.name] for field in fields(cls)}
        return cls(**own), {name: value for name, value in options.items() if name not in own}

    def limits(self, seconds: float, **called: Any) -> Limits:
        """Return the limits of a search that has `seconds` left; `called` are `progress` and `improved`."""
        return Limits(seconds, self.memory_limit, self.threads, self.seed, **called)


@dataclass(frozen=True, slots=True)
class SolveAnswer:
    """The answer of `makespan solve`.

    Args:
        document: as `--format json` prints it.
        evidence: the bundle, as plain data.
    """

    document: dict[str, Any]
    evidence: dict[str, Any]

    @property
    def lower(self) -> int:
        """Return the lower end in cycles, which a schedule proves."""
        return int(self.document["lower"])

    @property
    def upper(self) -> int:
        """Return the upper end in cycles: the safe number."""
        return int(self.document["upper"])

    @property
    def status(self) -> str:
        """Return `exact` or `bounded`."""
        return str(self.document["status"])

    @property
    def seconds(self) -> float:
        """Return how long solving took."""
        return float(self.document["seconds"])

    @property
    def digest(self) -> str:
        """Return the SHA-256 that the bundle states of itself."""
        return str(self.evidence["sha256"])

    @property
    def bundle(self) -> bytes:
        """Return the file that `--bundle` leaves."""
        return bundle_bytes(self.evidence)


def question_instance(question: QuestionData) -> dict[str, Any]:
    """Return the instance alone, as a bundle has it; nothing is solved.

    Raises:
        InputError: see `solve_question`.

    >>> question_instance({"string": "CLLCLL", "warps": 2})["groups"]
    [{'warps': 2, 'string': 'CLLCLL'}]
    """
    effort, options = SolveEffort.split(read_question(question))
    with within(effort.time_limit):
        if whole_gpu.is_about_gpu(options):
            return gpu_question_data(whole_gpu.gpu_launch(**options).instance)
        return instance_data(_one(options)[1].instance)


def solve_question(question: QuestionData, progress: Callable[[str], None] = _silent) -> SolveAnswer:
    """Solve what is asked, for one SM or for a GPU.

    Args:
        progress: called with one line now and then.

    Raises:
        InputError: a question that is not understood, or one of several instances.

    >>> solve_question({"string": "CLLCLL", "warps": 2}).upper
    10
    """
    effort, options = SolveEffort.split(read_question(question))
    if whole_gpu.is_about_gpu(options):
        return _of_gpu(options, effort, progress)
    with within(effort.time_limit) as reading:
        gate, named = _one(options)
    found = solve(
        named.instance,
        backend=effort.backend,
        best_case=effort.best_case,
        limits=effort.limits(reading.left, progress=progress),
    )
    return SolveAnswer(instance_document(named, found, gate), result_bundle(found))


def _one(options: dict[str, Any]) -> tuple[Deadline | None, NamedInstance]:
    gate, several = instances_on_sm(**options)
    if len(several) != 1:
        raise InputError(f"{options['source']}: a question is about one instance, and here are {len(several)}")
    return gate, several[0]


def _of_gpu(options: dict[str, Any], effort: SolveEffort, progress: Callable[[str], None]) -> SolveAnswer:
    from makespan.proof.engines.gpu import solve_gpu

    # The same refusal as of a command line: data must not ask for more than `solve` takes.
    whole_gpu.refuse_one_sm("", effort.backend, timeline=False)
    with within(effort.time_limit) as reading:
        launch = whole_gpu.gpu_launch(**options)
    limits = effort.limits(reading.left, progress=progress)
    result = solve_gpu(launch.instance, best_case=effort.best_case, limits=limits)
    return SolveAnswer(whole_gpu.gpu_document(launch, result), gpu_bundle(result))


def instances_on_sm(
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
        machine = promised_machine(instance.machine, scheduler, assignment)
        yield replace(named, instance=replace(instance, machine=machine))


def instance_document(named: NamedInstance, result: Result, gate: Deadline | None) -> dict[str, Any]:
    """Return the answer about an instance as `--format json` prints it."""
    name = {"name": named.name} if named.name else {}
    expected = {"expected": named.makespan} if named.makespan is not None else {}
    explained = {"explanation": explanation_document(explain(result.instance, result.witness))}
    gated = {} if gate is None else {"deadline": deadline_document(gate, result.bounds)}
    return {**result_document(result), **explained, **gated, **name, **expected}
