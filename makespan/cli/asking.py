"""What `makespan solve` is asked, as data: a question is a table of its options, and has a key and an answer.

A question names options as one writes them, without dashes, and `source` for the argument:
`{"source": "ptx/vecadd.ptx", "block": "256", "time-limit": 10, "param": ["N=4096"], "best-case": True}`.
"""

import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any, TypeAlias

import click

from makespan import kernel_file
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
from makespan.engines import Limits, solve
from makespan.errors import InputError, did_you_mean
from makespan.machine import Machine
from makespan.report.gpu.bundle import bundle as gpu_bundle
from makespan.report.gpu.bundle import of_gpu
from makespan.report.result.bundle import bundle, canonical, encoded, of_instance, of_named_machine
from makespan.report.result.document import deadline_document, document
from makespan.report.schedule.explanation import explain, explanation_document
from makespan.result import Result
from makespan.schedulability.gate import Deadline, read_deadline
from makespan.stopwatch import within
from makespan.strings import NamedInstance
from makespan.text_file import decoded, named_file, parse_toml, read_bytes
from makespan.version import THEORY

Question: TypeAlias = Mapping[str, Any]

MAX_INPUT_BYTES = 256 * 2**20
"""Of a file that a key is made of; the readers of each kind have limits of their own."""

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
    """The values of all options as click converts them, defaults among them; no file is read.

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
    """The question where names of files in it are relative to a folder, as in a file that has questions.

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
    """An option as one writes it on a command line."""
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


def key(question: Question, *, known: dict[str, str] | None = None) -> str:
    """A SHA-256 that equal questions share, whatever their files are called, and with another `THEORY` nobody.

    It covers the content of every file that is read: of kernels in CUDA the PTX that they are compiled to, so that
    included files count; of a file of launches also what it names. What only the tools of CUDA decide, such as the
    machine code that an assembler makes of PTX for `--arch sm_86`, is not covered.

    Args:
        known: digests of files by name, of keys that were made at the same time, to be read and extended.

    Raises:
        InputError: see `checked`, or a file that cannot be read.

    >>> key({"string": "CL", "warps": 2}) == key({"warps": "2", "string": "CL", "seed": 0})
    True
    """
    given = checked(question)
    digests = {} if known is None else known
    unsaid = (None, False, ())
    said = {
        name: _plain(name, value, given, digests)
        for name, value in given.items()
        if not any(value is nothing for nothing in unsaid)
    }
    return hashlib.sha256(canonical({"theory": THEORY, **said})).hexdigest()


def _plain(name: str, value: Any, given: Mapping[str, Any], known: dict[str, str]) -> Any:
    """A value of an option as plain data; for a file what it holds."""
    match name, value:
        case "source", _:
            return _digest(Path(value), given["arch"], known)
        case (("machine" | "gpu"), _) if value.endswith(".toml"):
            return _digest(Path(value), None, known)
        case (("machine" | "gpu"), _):
            return _sha256(named_file(value, f"{name}s", ".toml", name)[0].read_bytes())
        case "loop_bounds", _:
            return [each if "=" in each else _digest(Path(each), None, known) for each in value]
        case _, Machine():
            return of_named_machine(value)
        case _, Path():
            return _digest(value, None, known)
        case _, range():
            return [value.start, value.stop]
    return value


def _digest(path: Path, arch: str | None, known: dict[str, str]) -> str:
    """Of what a file holds and leads to."""
    kept = f"{path} {arch}"
    if kept not in known:
        known[kept] = hashlib.sha256("\n".join(_contents(path, arch)).encode()).hexdigest()
    return known[kept]


def _contents(path: Path, arch: str | None) -> Iterator[str]:
    """The suffix, which says how a file is read, and digests of what is read."""
    yield path.suffix
    if _compiles(path):
        from makespan.ptx import cuda

        yield _sha256(cuda.read(path, arch=arch and arch.replace("sm_", "compute_")).text.encode())
        return
    content = read_bytes(path, "input", MAX_INPUT_BYTES)
    yield _sha256(content)
    if path.suffix != ".toml":
        return
    document = parse_toml(decoded(content, "file", str(path)), "file", str(path))
    for name in sorted(set(_texts(document))):  # one that is the name of a file may well be meant as such
        if _is_file(found := path.parent / name):
            if _compiles(found):
                raise InputError(f"{path}: {name}: compile it first (--keep-ptx), and name the PTX")
            yield from (name, _sha256(read_bytes(found, "input", MAX_INPUT_BYTES)))


def _compiles(path: Path) -> bool:
    kind = kernel_file.KINDS.get(path.suffix)
    return kind is not None and kind.compiles


def _sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def _texts(value: object) -> Iterator[str]:
    """All texts in plain data."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for item in value.values() if isinstance(value, dict) else value:
            yield from _texts(item)


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except (OSError, ValueError):  # no name of a file at all
        return False


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
        """The effort of `question_options`, and the rest of them."""
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
        """The SHA-256 that the bundle states of itself."""
        return str(self.evidence["sha256"])

    @property
    def bundle(self) -> bytes:
        """The file that `--bundle` leaves."""
        return encoded(self.evidence)


def posed(question: Question) -> dict[str, Any]:
    """The instance alone, as a bundle has it; nothing is solved.

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
    from makespan.engines.gpu import solve_gpu

    whole_gpu.refuse("", effort.backend, timeline=False)
    with within(effort.time_limit) as reading:
        launch = whole_gpu.asked(**options)
    limits = effort.limits(reading.left, progress)
    result = solve_gpu(launch.instance, best_case=effort.best_case, limits=limits)
    return Answer(whole_gpu.told(launch, result), gpu_bundle(result))


def on_one_sm(
    *, scheduler: str | None, assignment: str | None, deadline: str | None, clock: str | None, **options: Any
) -> tuple[Deadline | None, tuple[NamedInstance, ...]]:
    """The deadline, and the instances under what is promised, that `question_options` ask for about one SM.

    Raises:
        InputError: options that contradict each other or lack something, or a source that is no input.
    """
    gate = read_deadline(deadline, clock)
    source = {name: value for name, value in options.items() if name not in ("gpu", "sms")}
    return gate, tuple(_under(scheduler, assignment, instances(**source)))


def _under(scheduler: str | None, assignment: str | None, found: Iterable[NamedInstance]) -> Iterator[NamedInstance]:
    for named in found:
        instance = named.instance
        machine = promised(instance.machine, scheduler, assignment, identical=instance.identical)
        yield replace(named, instance=replace(instance, machine=machine))


def told(named: NamedInstance, result: Result, gate: Deadline | None) -> dict[str, Any]:
    """The document of an instance."""
    name = {"name": named.name} if named.name else {}
    expected = {"expected": named.makespan} if named.makespan is not None else {}
    explained = {"explanation": explanation_document(explain(result.instance, result.witness))}
    gated = {} if gate is None else {"deadline": deadline_document(gate, result.bounds)}
    return {**document(result), **explained, **gated, **name, **expected}
