"""The page that asks: its form, its text, and the command line and the files that the values of the form become."""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import NamedTuple

import msgspec

from makespan.cli.options import SOLVE_OPTIONS
from makespan.host.errors import InputError
from makespan.kernels.options import FLAG, QuestionOption
from makespan.model.machine import gpus, shipped_machines
from makespan.model.machine.files import MAX_FILE_BYTES
from makespan.report.html.page import page_file, security_policy
from makespan.version import __version__

MOST_SOURCE_BYTES = 1 << 20
MOST_STRING_BYTES = 100_000
"""The kernel takes no longer word of a command line than 128 KiB."""
MOST_LINES = 64

SOURCE, KIND = "source", "kind"
KINDS = {"string": "instruction string", "ptx": "PTX", "cuda": "CUDA"}
FILES = {"ptx": "kernel.ptx", "cuda": "kernel.cu"}
MACHINE_FILE = "machine.toml"
PAGE, EVIDENCE = "report.html", "evidence.json"
DEFAULT_SECONDS = 20.0


@dataclass(frozen=True, slots=True)
class ServeLimits:
    """Limits of questions: how many run and wait at once, the longest time limit, bytes of memory of each."""

    running: int = 2
    waiting: int = 20
    seconds: float = 60.0
    memory_bytes: int = 4 << 30


class FormField(NamedTuple):
    """An option of `makespan report` that the page asks for; an empty field is left out.

    Args:
        choices: what it may be.
        lines: how many lines it has; with more than one, each line is a value.
        most: letters.
    """

    name: str
    label: str
    hint: str
    choices: tuple[str, ...] = ()
    lines: int = 1
    most: int = 200


_FIRST = ("warps", "block", "machine", "param")
"""The options that most questions need; the page shows them first."""


_YES = "yes"
"""The only choice of a flag besides none."""


@cache
def form_fields() -> tuple[tuple[FormField, ...], tuple[FormField, ...]]:
    """Return all that is asked besides the source: what most questions need, and the rest, long fields last."""
    shown = {name: option for name, option in SOLVE_OPTIONS.items() if option.label}
    flags = {name: (_YES,) for name, option in shown.items() if option.form is FLAG}
    words = {"machine": tuple(shipped_machines()), "gpu": tuple(gpus.shipped_gpus()), **flags}
    every = {
        name: FormField(name, option.label, option.hint, words.get(name, ()), _lines(option))
        for name, option in shown.items()
    }
    rest = sorted((field for name, field in every.items() if name not in _FIRST), key=lambda field: field.lines)
    own = FormField(MACHINE_FILE, "A machine of your own", "the text of a machine file", lines=3, most=MAX_FILE_BYTES)
    return tuple(every[name] for name in _FIRST), (*rest, own)


def _lines(option: QuestionOption) -> int:
    return 1 if not option.many else 2 if option.name in _FIRST else 3


@dataclass(frozen=True, slots=True)
class FormQuestion:
    """A question of the page: words behind `makespan report`, files of its folder by name, time limit in seconds."""

    words: tuple[str, ...]
    files: Mapping[str, bytes]
    seconds: float


class RefusedFieldError(InputError):
    """An error about a value that is not taken; `field` has its name in the form."""

    def __init__(self, field: str, message: str) -> None:
        self.field = field
        super().__init__(message)


def read_form(body: bytes) -> dict[str, str]:
    """Return the values of a form that are given, from the JSON that its script sends.

    >>> read_form(b'{"kind": "ptx"}')
    {'kind': 'ptx'}

    Raises:
        RefusedError: something else, or a field that the form does not have.
    """
    known = {SOURCE, KIND, "time-limit", "best-case", *(field.name for part in form_fields() for field in part)}
    try:
        given = msgspec.json.decode(body, type=dict[str, str])
        if unknown := sorted(given.keys() - known):
            raise msgspec.DecodeError(f"there is no field {unknown[0]!r:.60}")
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise RefusedFieldError(SOURCE, f"these are no values of the form: {error}") from None
    return {name: value for name, value in given.items() if value}


def form_question(values: Mapping[str, str], *, most_seconds: float, compiles: bool) -> FormQuestion:
    """Return the question that the values of a form ask.

    No value becomes the name of a file of this machine, and no word an option of its own.

    >>> form_question({"kind": "string", "source": "CL", "warps": "2"}, most_seconds=60, compiles=False).words
    ('--string=CL', '--warps=2', '--time-limit=20')

    Args:
        compiles: whether CUDA is taken, whose `#include` reads any file of this machine.

    Raises:
        RefusedError: something that the form does not offer, or that is too long.
    """
    every = {field.name: field for part in form_fields() for field in part}
    files: dict[str, bytes] = {}
    words = list(_source(values, files, compiles=compiles))
    for name, value in values.items():
        if name == MACHINE_FILE and value.strip():
            if values.get("machine") or values.get("capacity"):
                raise RefusedFieldError(name, "a machine of your own, and another one: give one of them")
            files[name] = _text(name, value, every[name].most)
            words.append(f"--machine={name}")
        elif name in every and name != MACHINE_FILE:  # kind, source and effort are read by themselves
            # One word with `=`: a value that begins with a dash can never be an option of its own.
            is_flag = every[name].choices == (_YES,)
            words += (f"--{name}" if is_flag else f"--{name}={each}" for each in _values(every[name], value))
    if values.get("best-case"):
        words.append("--best-case")
    seconds = _seconds(values.get("time-limit") or f"{min(DEFAULT_SECONDS, most_seconds):g}", most_seconds)
    return FormQuestion((*words, f"--time-limit={seconds:g}"), files, seconds)


def _source(values: Mapping[str, str], files: dict[str, bytes], *, compiles: bool) -> Iterator[str]:
    kind, text = values.get(KIND, ""), values.get(SOURCE, "")
    if kind not in KINDS:
        raise RefusedFieldError(SOURCE, f"what is it? one of {', '.join(KINDS.values())}")
    if not text.strip():
        raise RefusedFieldError(SOURCE, f"nothing is here: paste the {KINDS[kind]}")
    # A preprocessor reads any file that `#include` names and quotes it in its errors.
    if kind == "cuda" and not compiles:
        raise RefusedFieldError(
            SOURCE, "CUDA is not compiled here: #include could read files of this machine; paste the PTX of nvcc --ptx"
        )
    if kind in FILES:
        files[FILES[kind]] = _text(SOURCE, text, MOST_SOURCE_BYTES)
        yield FILES[kind]
        return
    letters = "".join(text.split())
    _text(SOURCE, letters, MOST_STRING_BYTES)
    yield f"--string={_printable(SOURCE, letters)}"


def _values(field: FormField, value: str) -> Iterator[str]:
    given = [line.strip() for line in (value.splitlines() if field.lines > 1 else [value]) if line.strip()]
    if len(given) > MOST_LINES:
        raise RefusedFieldError(field.name, f"{len(given)} lines are more than {MOST_LINES}")
    for each in given:
        if field.choices and each not in field.choices:
            raise RefusedFieldError(field.name, f"{each[:40]!r} is none of the list")
        if not field.choices and SOLVE_OPTIONS[field.name].is_file(each):  # no page reads a file of this machine
            wanted = SOLVE_OPTIONS[field.name].metavar.removesuffix("|FILE").replace("|", " or ")
            what = field.label.lower().removesuffix("s")
            raise RefusedFieldError(field.name, f"{each[:40]!r} is no {what}: give {wanted}")
        _text(field.name, each, field.most)
        yield _printable(field.name, each)


def _text(name: str, value: str, most_bytes: int) -> bytes:
    data = value.encode("utf-8", "replace")
    if len(data) > most_bytes:
        raise RefusedFieldError(name, f"{len(data)} bytes are more than {most_bytes}: use makespan on the command line")
    return data


def _printable(name: str, value: str) -> str:
    """Return a word that a process may be given: it has no NUL byte and no other letter that does not print."""
    if not value.isprintable():
        raise RefusedFieldError(name, f"{value[:40]!r} has letters that do not print")
    return value


def _seconds(text: str, most: float) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = math.nan
    if not 0 < seconds <= most:  # false for NaN as well
        raise RefusedFieldError("time-limit", f"{text[:40]!r} is no number of seconds above 0 and at most {most:g}")
    return seconds


EXAMPLE = {"kind": "string", "source": "CLLC|LCLCC", "warps": "6"}


@cache
def _own(name: str) -> str:
    return resources.files(__package__).joinpath(name).read_text("utf-8")


def _style() -> str:
    return page_file("page.css") + _own("page.css")


POLICY = f"{security_policy(_style(), _own('page.js'))}; connect-src 'self'; frame-src 'self'; frame-ancestors 'none'"


def page_text(limits: ServeLimits, *, shared: bool) -> str:
    """Return the HTML of a server with these limits."""
    from jinja2 import Environment, StrictUndefined
    from markupsafe import Markup

    # Strict: a name that is misspelt in the template is an error, and not an empty text.
    environment = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    main, more = form_fields()
    return environment.from_string(_own("page.html.j2")).render(
        style=Markup(_style()),  # noqa: S704 - files of this package
        script=Markup(_own("page.js")),  # noqa: S704
        main=main,
        more=more,
        kinds={kind: name for kind, name in KINDS.items() if kind != "cuda" or not shared},
        example=EXAMPLE,
        limits=limits,
        seconds=min(DEFAULT_SECONDS, limits.seconds),
        version=__version__,
    )
