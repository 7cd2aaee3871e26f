"""All options of a question, as options of commands: those of the table of kernels, and those around a kernel.

A command takes whole groups of them, so that a row that is added to a table stands in every command of its group.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import click

from makespan.cli.help_page import Decorator, section, stack
from makespan.cli.parameters import question_option
from makespan.kernels.options import (
    FLAG,
    KERNEL_OPTIONS,
    OPTION_GROUPS,
    SECONDS,
    SIZE,
    TEXT,
    QuestionOption,
    one_of,
    whole,
)
from makespan.model.machine import SchedulerPromise, WarpAssignment
from makespan.proof.engines import BACKENDS

FORMATS = ("ptx", "toml", "jsonl")

SOURCE = QuestionOption("source", "", TEXT, "source", "a kernel or a file of instances", is_file=lambda _: True)
# fmt: off
# Help shows the options of a group in the order of the table: a string stands before --warps, which is a kernel's.
_BEFORE = (
    QuestionOption(
        "string", "", TEXT, "source", "an instruction string instead of SOURCE", "CLLC...", keyword="letters"),
)
_BEHIND = (
    QuestionOption("input-format", "", one_of(FORMATS), "source", "format of standard input (SOURCE '-')"),
    QuestionOption(
        "instance", "", TEXT, "source",
        "one instance of a file, by its number from 1 or by its name [default: all]", "N|NAME"),
    QuestionOption(
        "gpu", "", TEXT, "gpu", "all blocks of --grid on a whole GPU, a shipped one or that of a file",
        "NAME|FILE.toml", is_file=lambda name: name.endswith(".toml"),
        label="GPU", hint="a launch of all blocks of a grid on a whole GPU"),
    QuestionOption(
        "sms", "", TEXT, "gpu", "on so many SMs, or those of a MIG instance [default: all of --gpu]", "N|NAME",
        label="SMs", hint="a number or a MIG instance; empty: all of the GPU"),
    QuestionOption(
        "scheduler", "", one_of(tuple(map(str, SchedulerPromise))), "promise",
        "what the scheduler promises besides work conservation [default: what the machine says, or any]"),
    QuestionOption(
        "assignment", "", one_of((str(WarpAssignment.MODULO),)), "promise",
        "warp w belongs to partition w mod their number, where the machine leaves it open"),
    QuestionOption("backend", "", one_of(tuple(BACKENDS)), "effort", "the engine", default="auto"),
    QuestionOption("time-limit", "", SECONDS, "effort", "per instance", default=60.0),
    QuestionOption("memory-limit", "", SIZE, "effort", "for the tables of a search", default="8GiB"),
    QuestionOption("threads", "", whole(1, 256), "effort", "for solvers that use several", "N", default=1),
    QuestionOption("seed", "", whole(0, 2**31 - 1), "effort", "of solvers' random numbers", "N", default=0),
    QuestionOption("best-case", "", FLAG, "answer", "also the shortest work-conserving schedule"),
    QuestionOption(
        "deadline", "", TEXT, "deadline", "is the worst case in time? such as 200ns, or 280cycles", "TIME|Ncycles",
        label="Deadline", hint="such as 200ns, or 280cycles"),
    QuestionOption(
        "clock", "", TEXT, "deadline", "of the SM, at least, such as 1.4GHz: for a deadline in time", "FREQUENCY",
        label="Clock", hint="of the SM, at least, such as 1.4GHz"),
)
# fmt: on

SOLVE_OPTIONS: Mapping[str, QuestionOption] = MappingProxyType(
    {option.name: option for option in (SOURCE, *_BEFORE, *KERNEL_OPTIONS, *_BEHIND)}
)
"""All options of `makespan solve` that its answer depends on, by name."""

QUESTION_OPTIONS: Mapping[str, QuestionOption] = MappingProxyType(
    {name: option for name, option in SOLVE_OPTIONS.items() if name not in ("keep-ptx", "input-format")}
)
"""What a question as data can say, by name: it leaves no files, and there is no standard input to read."""


def option(name: str, title: str = "", **own: Any) -> Decorator:
    """Return one option for a command; `title` and `own` are what the command says in another way, such as `help`."""
    return question_option(SOLVE_OPTIONS[name], title, **own)


def groups(*names: str) -> Decorator:
    """Return all options of some groups for a command, in this order of groups."""
    assert set(names) <= OPTION_GROUPS.keys()  # noqa: S101 - a misspelt group would have no options
    return stack(
        *(
            question_option(option)
            for name in names
            for option in SOLVE_OPTIONS.values()
            if option.group == name and option is not SOURCE
        )
    )


launch_options, cuda_options, timing_options = groups("launch"), groups("compiler"), groups("timing")
kernel_options = groups("kernel", "paths", "launch", "compiler")
machine_option = option("machine")
source_options = stack(
    section("Source", click.argument("source", required=False)),
    groups("source", "machine", "timing", "kernel", "paths", "launch", "compiler", "residency"),
)
engine_options, deadline_options = groups("effort"), groups("deadline")
gpu_options = groups("gpu")
question_options = stack(source_options, groups("gpu", "promise", "effort", "answer", "deadline"))
