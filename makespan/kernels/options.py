"""The table of kernel options: what can be said of a kernel and its launch, on a command line, in files, on a page.

    QuestionOption      a row: how an option is called, written, read and explained
    KERNEL_OPTIONS      the rows of all that a `KernelQuestion` takes, and of the machine that it is asked for
    kernel_question     values of these options -> the question

From the rows follow the options of the commands and their help, the keys of task files and of files of launches, what
specs of sweeps and gates may say, the form of the page, and what goes into the key of a question. A new option is a row
here, and a field of `KernelQuestion`.
"""

import math
import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

from makespan.host.errors import InputError, Naming, prefix_errors
from makespan.kernels.toml_table import count, one_word, text, texts, truth
from makespan.model.instance import MAX_WARPS
from makespan.model.machine import Machine, given_latencies
from makespan.model.machine.values import shown

if TYPE_CHECKING:
    from makespan.kernels.question import KernelQuestion, Module

MAX_BLOCKS = 2**31 - 1
MAX_SHARED_BYTES = 1 << 20
_BYTES = {"": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30, "KB": 10**3, "MB": 10**6, "GB": 10**9}
WHOLE = "whole number"
_DIGITS = 12  # longer numbers are refused before they are converted: their digits would cost time that grows squared


# How a value is written


class OptionForm(NamedTuple):
    """The form of a value.

    Args:
        name: what stands for the value in a help text.
        read: reads a text, as it stands on a command line or in a spec; it raises an `InputError`.
        from_toml: reads a value of TOML with the name of its key for messages; it raises an `InputError`.
        in_toml: what this value of TOML is, in words.
        limits: of a whole number, both included; None for anything else.
        words: those that the value is one of; empty for anything else.
    """

    name: str = "TEXT"
    read: Callable[[str], Any] = str
    from_toml: Callable[[object, str], Any] = text
    in_toml: str = "text"
    limits: tuple[int, int] | None = None
    words: tuple[str, ...] = ()


def whole(least: int, most: int) -> OptionForm:
    """Return the form of a whole number `least`..`most`."""

    def read(given: str) -> int:
        try:
            value = int(given)
        except ValueError:
            raise InputError(f"{given!r:.60} is not a whole number") from None
        if not least <= value <= most:  # click says the same of a command line in words of its own
            raise InputError(f"{value} is not within {least}..{most}")
        return value

    return OptionForm("N", read, partial(count, most=most, least=least), WHOLE, (least, most))


def one_of(words: Collection[str]) -> OptionForm:
    """Return the form of one of several words."""

    def read(given: str) -> str:
        if given not in words:
            raise InputError(f"{given!r:.60} is none of {', '.join(words)}")
        return given

    return OptionForm("WORD", read, lambda value, key: one_word(value, tuple(words), key), words=tuple(words))


def read_warps(given: str) -> range:
    """Read `8` or `1..48`: a number of warps, or a range of numbers, both ends included."""
    match = re.fullmatch(rf"(\d{{1,{_DIGITS}}})(?:\.\.(\d{{1,{_DIGITS}}}))?", given)
    if match is None:
        raise InputError(f"{given!r} is neither a number of warps nor a range such as 1..48")
    first, last = int(match[1]), int(match[2] or match[1])
    if not 1 <= first <= last <= MAX_WARPS:
        raise InputError(f"{given} must be a number or a rising range within 1..{MAX_WARPS}")
    return range(first, last + 1)


def read_capacity(given: str) -> Machine:
    """Read `C=1,L=1`: the machine with these numbers of units, which is called "custom"."""
    capacities: dict[str, int] = {}
    for item in given.split(","):
        match = re.fullmatch(rf"\s*([^=\s]+)\s*=\s*(-?\d{{1,{_DIGITS}}})\s*", item)
        if match is None:
            raise InputError(f"{item!r} is not CLASS=NUMBER, such as C=1")
        if match[1] in capacities:
            raise InputError(f"class {match[1]} is given twice")
        capacities[match[1]] = int(match[2])
    return Machine.of(capacities)


def read_seconds(given: str) -> float:
    """Read a positive, finite number of seconds."""
    try:
        seconds = float(given)
    except ValueError:
        raise InputError(f"{given!r} is not a number of seconds") from None
    if not (math.isfinite(seconds) and seconds > 0):
        raise InputError(f"{given} must be positive and finite")
    return seconds


def read_size(given: str) -> int:
    """Read `8GiB`, `500MB` or a number of bytes; return the bytes."""
    match = re.fullmatch(rf"(\d{{1,{_DIGITS}}})\s*([A-Za-z]*)", given)
    if match is None or match[2] not in _BYTES or int(match[1]) == 0:
        raise InputError(f"{given!r} is not a size such as 8GiB; units: {', '.join(filter(None, _BYTES))}")
    return int(match[1]) * _BYTES[match[2]]


def _extent_of_toml(value: object, key: str) -> str:
    is_whole = isinstance(value, int) and not isinstance(value, bool)
    return str(count(value, key, MAX_BLOCKS)) if is_whole else text(value, key)


def _parameters_of_toml(value: object, key: str) -> tuple[str, ...]:
    """Read `["n=1024"]` or `{ n = 1024 }`."""
    if isinstance(value, dict):
        for name, number in value.items():
            if isinstance(number, bool) or not isinstance(number, (int, float)):
                raise InputError(f"{key}: {shown(name)} must be a number, not {shown(number)}")
        # As text, like on a command line: there is one parser of parameters.
        value = [f"{name}={number!r}" for name, number in value.items()]
    return texts(value, key)


def _capacity_of_toml(value: object, key: str) -> Machine:
    """Read `{ C = 2, L = 1 }` or `"C=2,L=1"`."""
    if isinstance(value, str):
        parts = [item.partition("=") for item in value.split(",")]
        value = {name.strip(): int(n) if n.strip().isdecimal() and len(n) < 10 else n for name, _, n in parts}
    if not isinstance(value, dict) or not value:
        raise InputError(f"{key} must be units per class such as {{ C = 2, L = 1 }}, not {shown(value)}")
    return Machine.of(value)


TEXT = OptionForm()
FLAG = OptionForm("", from_toml=truth, in_toml="true or false")
PATH = OptionForm("PATH", Path, in_toml="name of a file")
EXTENT = OptionForm("N|XxYxZ", str, _extent_of_toml, "whole number or text")
PARAMETER = OptionForm("NAME=N", str, _parameters_of_toml, "list of texts or table of numbers")
WARPS = OptionForm("N|A..B", read_warps, partial(count, most=MAX_WARPS), WHOLE)
CAPACITY = OptionForm("X=N,...", read_capacity, _capacity_of_toml, "table of whole numbers or text")
SECONDS = OptionForm("SECONDS", read_seconds)
SIZE = OptionForm("SIZE", read_size)


# What an option is


# fmt: off
OPTION_GROUPS: Mapping[str, str] = MappingProxyType({
    "source": "Source", "machine": "Machine", "timing": "Machine", "kernel": "Kernel", "paths": "Loops and branches",
    "launch": "Launch", "compiler": "Kernel", "residency": "Launch", "gpu": "Whole GPU", "promise": "Machine",
    "effort": "Effort", "answer": "Effort", "deadline": "Deadline",
})
# fmt: on
"""The title under which the help shows a group of options; a command takes whole groups."""


@dataclass(frozen=True, slots=True)
class QuestionOption:
    """An option of a question: how it is called, written, read and explained.

    Args:
        name: on a command line and in a spec, such as `loop-bound`.
        field: of `KernelQuestion` that it becomes, or a part of one, such as `launch.block`; empty for an option that
            is not about the kernel.
        form: how its value is written; of several values, how each is.
        group: one of `OPTION_GROUPS`.
        help: what it says, in the words of the help.
        metavar: what stands for the value in the help; empty for the name of the form.
        keyword: the parameter of functions that take it, and its name in the key of a question; empty for `name`.
        key: in a table of a file; empty for `name`, and None where tables cannot say it.
        many: whether it has several values.
        alone: whether it is no key of a launch beside others on the same GPU.
        default: the value where the option is not given, as a text or a number; None where that is nothing.
        is_file: tells whether a value is the name of a file. Such names are relative to the file that says them, and
            what the file holds belongs to the key of a question.
        label: of its field on the page that asks; empty where the page does not ask for it.
        hint: what stands below this field.
    """

    name: str
    field: str
    form: OptionForm
    group: str
    help: str
    metavar: str = ""
    keyword: str = ""
    key: str | None = ""
    many: bool = False
    alone: bool = False
    default: str | float | None = None
    is_file: Callable[[str], bool] = lambda _: False
    label: str = ""
    hint: str = ""

    def __post_init__(self) -> None:
        plain = self.name.replace("-", "_")
        object.__setattr__(self, "keyword", self.keyword or plain)
        object.__setattr__(self, "key", plain if self.key == "" else self.key)

    @property
    def unsaid(self) -> Any:
        """Return the value where the option is not given."""
        if self.many or self.form is FLAG:
            return () if self.many else False
        return self.form.read(self.default) if isinstance(self.default, str) else self.default

    @property
    def in_toml(self) -> str:
        """Return what a table of a file has under the key of this option, in words."""
        return "list of texts" if self.many and self.form is TEXT else self.form.in_toml

    def read(self, value: object) -> Any:
        """Read what plain data say: texts and numbers as on a command line, a truth value for a flag, lists of many.

        Raises:
            InputError: a value of another type, or one that the form does not take.
        """
        if self.many and isinstance(value, list | tuple):
            return tuple(self._read_one(each) for each in value)
        return (self._read_one(value),) if self.many else self._read_one(value)

    def _read_one(self, value: object) -> Any:
        is_flag = self.form is FLAG
        if is_flag and isinstance(value, bool):
            return value
        # A truth value is a whole number in Python: it must not become the text of one.
        if is_flag or isinstance(value, bool) or not isinstance(value, str | int | float):
            wanted = "true or false" if is_flag else "a text or a number"
            raise InputError(f"{self.name} must be {wanted}{' or a list of them' * self.many}, not {value!r:.60}")
        with prefix_errors(self.name):
            return self.form.read(str(value))

    def from_toml(self, value: object, folder: Path) -> Any:
        """Read what a table says under the key of this option; names of files start from `folder`.

        Raises:
            InputError: a value of another type, or out of range.
        """
        # A form that reads lists itself, such as that of parameters, is left alone.
        read = texts if self.many and self.form is TEXT else self.form.from_toml
        return self.located(read(value, str(self.key)), folder)

    def located(self, value: Any, folder: Path) -> Any:
        """Return a value, or a list of them, where names of files start from `folder`."""
        if isinstance(value, list | tuple):
            return [self.located(each, folder) for each in value]
        return str(folder / value) if isinstance(value, str) and self.is_file(value) else value


# The table

# fmt: off
KERNEL_OPTIONS = (
    QuestionOption(
        "warps", "warps", WARPS, "source", "number of warps of a block, or a range for a curve",
        label="Warps", hint="how many run it, such as 8; not beside a block"),
    QuestionOption(
        "capacity", "", CAPACITY, "machine", "units per class, such as C=2,L=1", alone=True,
        label="Ports by class", hint="in the place of a machine, such as C=2,L=1"),
    QuestionOption(
        "machine", "", TEXT, "machine", "a shipped machine or a machine file", "NAME|FILE.toml", alone=True,
        is_file=lambda name: name.endswith(".toml"),
        label="Machine of the SM", hint="empty: that of the GPU, or the paper's, C=1 and L=1"),
    QuestionOption(
        "hold", "", TEXT, "machine",
        "cycles for which a port is held, such as memory=2, where the machine has a wider range", "RESOURCE=[N..|..]N",
        keyword="holds", many=True, alone=True,
        label="Ports held for", hint="such as memory=2, each on a line"),
    QuestionOption(
        "dependences", "dependences", one_of(("registers", "blocking")), "timing",
        "what an instruction of PTX waits for [default: registers on a machine that times operations, else blocking]"),
    QuestionOption(
        "latency", "latencies", TEXT, "timing",
        "cycles of an operation, such as global=..900, where the machine does not know, or you know better",
        "OPERATION=[N..|..]N", keyword="latencies", many=True,
        label="Latencies", hint="such as global=..900, each on a line"),
    QuestionOption(
        "warm", "warm", FLAG, "timing",
        "the launch before was of the same kernel, and its code and constants are still in their caches",
        label="Warm caches", hint="of code and constants, from a launch of the same kernel before"),
    QuestionOption(
        "kernel", "entry", TEXT, "kernel", "which kernel of a module", "NAME", key="entry",
        label="Kernel", hint="its name, where there are several"),
    QuestionOption(
        "profile", "classes.profile", one_of(("paper", "fermi", "modern")), "kernel",
        "how opcodes of PTX map to unit classes", default="paper"),
    QuestionOption(
        "classes", "classes.overrides", PATH, "kernel", "TOML file: opcode = class, over the table",
        is_file=lambda _: True),
    QuestionOption(
        "unknown", "classes.unknown", TEXT, "kernel", "class of opcodes that no table knows (otherwise an error)",
        "CLASS",
        label="Unknown opcodes", hint="the class to count them in, such as C"),
    QuestionOption(
        "loop-bound", "loop_bounds", TEXT, "paths", "at most N, exactly N, or a bounds file", "LABEL=N|LABEL==N|FILE",
        keyword="loop_bounds", many=True, is_file=lambda bound: "=" not in bound,
        label="Loop bounds", hint="LABEL=N at most, LABEL==N exactly, each on a line"),
    QuestionOption(
        "trust-bounds", "loop_bounds.trusted", FLAG, "paths", "--loop-bound counts even where the code contradicts it",
        key=None),
    QuestionOption(
        "take", "take", TEXT, "paths", "fix a branch: this path only", "LABEL=taken|fall", many=True),
    QuestionOption(
        "trace", "trace", PATH, "paths", "file with one decision per executed branch", is_file=lambda _: True),
    QuestionOption(
        "paths", "paths", one_of(("automaton", "single")), "paths",
        "all paths of a warp (default), or the one that --take or --trace fixes (default with them)", key=None),
    QuestionOption(
        "param", "launch.parameters", PARAMETER, "launch", "value of a kernel parameter, by name or position",
        many=True, label="Parameters of the kernel", hint="NAME=N, each on a line"),
    QuestionOption(
        "block", "launch.block", EXTENT, "launch", "threads of a block; says how many warps it has",
        label="Block", hint="threads of a block, such as 256 or 16x16"),
    QuestionOption(
        "grid", "launch.grid", EXTENT, "launch", "blocks of the grid",
        label="Grid", hint="blocks, such as 4096 or 64x64"),
    QuestionOption(
        "arch", "arch", TEXT, "compiler",
        "sm_NN: the machine code for these GPUs; compute_NN: what PTX a .cu file becomes [default: that of the GPU or"
        " machine that is named, else compute_75]", "sm_NN|compute_NN",
        label="Architecture", hint="sm_86: machine code; compute_86: PTX; empty: CUDA as of the GPU or machine"),
    QuestionOption(
        "keep-ptx", "keep_ptx", PATH, "compiler", "leave the PTX of a .cu file", "FILE.ptx", key=None),
    QuestionOption(
        "blocks-per-sm", "blocks_per_sm", whole(1, MAX_WARPS), "residency",
        "thread blocks on the SM, each of so many warps; those of a block wait for each other at barriers [default: 1;"
        " of machine code as many as can be resident]", "N", alone=True,
        label="Blocks on an SM", hint="at once, where machine code does not tell"),
    QuestionOption(
        "dynamic-shared", "dynamic_shared", whole(0, MAX_SHARED_BYTES), "residency",
        "shared memory that the launch gives a block of machine code, which decides how many can be resident", "BYTES",
        label="Dynamic shared memory", hint="bytes of each block of machine code"),
)
# fmt: on
"""All that a `KernelQuestion` takes, and the machine that it is asked for."""

LAUNCH_OPTIONS: Mapping[str, QuestionOption] = MappingProxyType(
    {option.key: option for option in KERNEL_OPTIONS if option.key is not None}
)
"""The options that a table of a launch takes beside its kernel, by key."""

_BY_FIELD = {option.field.rpartition(".")[2]: option for option in KERNEL_OPTIONS if option.field}
_OF_KERNELS = {option.keyword: option for option in KERNEL_OPTIONS if option.field}


def option_of_field(field: str) -> str:
    """Return the name of the option that gives a field of a `KernelQuestion` or of its `Launch`.

    >>> option_of_field("latencies"), option_of_field("parameters"), option_of_field("gpu")
    ('latency', 'param', 'gpu')
    """
    return _BY_FIELD[field].name if field in _BY_FIELD else field.replace("_", "-")


def key_of_field(field: str) -> str:
    """Return the key of a table that gives a field of a `KernelQuestion` or of its `Launch`."""
    return str(_BY_FIELD[field].key) if field in _BY_FIELD else field


def given_options(values: Mapping[str, Any]) -> set[str]:
    """Return the keywords of those options of a kernel that are given."""
    return {name for name, option in _OF_KERNELS.items() if values.get(name, option.unsaid) != option.unsaid}


def launch_values(table: Mapping[str, object], folder: Path) -> dict[str, Any]:
    """Read what a table of a task or of a launch says of its kernel, by keyword; names of files start from `folder`.

    Raises:
        InputError: a value does not fit.
    """
    return {
        option.keyword: option.from_toml(table[key], folder) for key, option in LAUNCH_OPTIONS.items() if key in table
    }


def kernel_question(source: "Path | Module", values: Mapping[str, Any], named: Naming) -> "KernelQuestion":
    """Return the question that values of options ask; files that they name are read, but not the kernel.

    Args:
        source: see `KernelQuestion`.
        values: by keyword, as their forms read them. Those that are missing are not given, and those of options that
            are not about the kernel do not count.
        named: what the user calls a field.

    Raises:
        InputError: a text or a file that is not understood.
    """
    from makespan.kernels import flow, ptx
    from makespan.kernels.question import KernelQuestion

    # Every option counts, also one that is not given: its default is said in its row, not in `KernelQuestion`.
    said = {keyword: values.get(keyword, option.unsaid) for keyword, option in _OF_KERNELS.items()}
    trace, dependences = said["trace"], said["dependences"]
    classes = {} if said["classes"] is None else ptx.read_classes(Path(said["classes"]))
    made: dict[str, Any] = {
        "launch": flow.launch(said["block"], said["grid"], said["param"], named=named),
        "classes": ptx.Classes(said["profile"], classes, said["unknown"]),
        "loop_bounds": flow.loop_bounds(said["loop_bounds"], trusted=said["trust_bounds"]),
        "take": flow.parse_takes(said["take"]),
        "trace": None if trace is None else flow.read_trace(Path(trace)),
        "dependences": None if dependences is None else ptx.Dependences(dependences),
        "latencies": given_latencies(said["latencies"]),
    }
    # All other fields are what their forms read.
    plain = {option.field: said[keyword] for keyword, option in _OF_KERNELS.items() if "." not in option.field}
    return KernelQuestion(source, named=named, **{**plain, **made})
