"""What reads an input: functions of the package that take a path or bytes, and whole commands."""

import io
import json
import re
from collections.abc import Callable, Mapping
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any
from unittest.mock import patch

ROOT = Path(__file__).parents[2]
CUBIN = ROOT / "ptx/reduction.sm_86.cubin"
Reader = Callable[[Path], object]
PATIENT = patch("makespan.host.stopwatch.LEAST_SECONDS", 600.0)
"""That this machine has other work to do refuses no kernel."""


def by(name: str, *rest: str) -> Reader:
    """A function that takes a path, loaded when it is called."""
    module, _, function = name.partition(":")
    return lambda path: getattr(import_module(f"makespan.{module}"), function)(path, *rest)


@dataclass(frozen=True, slots=True)
class Command:
    """A whole command: `{path}` is the input, and `{here}` its folder, which has the files `beside` it, too."""

    words: str
    beside: Mapping[str, bytes] = field(default_factory=dict)

    def __call__(self, path: Path) -> object:
        for name, data in self.beside.items():
            (path.parent / name).write_bytes(data)
        return run([word.format(path=path, here=path.parent, root=ROOT) for word in self.words.split()])


@dataclass(frozen=True, slots=True)
class Options:
    """A command with the options of the input, one a line, but for those that write files or lift limits."""

    before: str

    def __call__(self, path: Path) -> object:
        lines = path.read_bytes().replace(b"\0", b"").decode("utf-8", "surrogateescape").split("\n")
        given = [f"--{line}" for line in lines if re.match(r"[a-z-]+(=|$)", line) and not UNSAFE.match(line)]
        return run([*self.before.split(), *given])


UNSAFE = re.compile(r"-*(bundle|gantt|help|html|keep|mem|open|output|plot|thr|time)")


def run(words: list[str]) -> int:
    """The exit code, as of a process whose output is strict UTF-8.

    Raises:
        AssertionError: it is that of a bug, or there is a traceback.
    """
    from makespan import cli
    from makespan.cli.running import BUG

    out, err = (
        io.TextIOWrapper(io.BytesIO(), "utf-8", "strict"),
        io.TextIOWrapper(io.BytesIO(), "utf-8", "backslashreplace"),
    )
    with redirect_stdout(out), redirect_stderr(err), PATIENT:
        code = cli.run(words)
    err.seek(0)
    said = err.read()
    if code == BUG or "Traceback" in said:
        raise AssertionError(f"exit code {code}: {said[:300]}")
    return code


def bundle(path: Path) -> object:
    """A forger fits the digest."""
    from makespan.verify import Outcome, parse, verify

    return int(verify(parse(_signed(path.read_bytes())), most_states=2_000).outcome is not Outcome.ACCEPTED)


def _signed(content: bytes) -> bytes:
    """With a digest that fits, if it is an object."""
    from makespan.verify import digest, parse

    document: Any = parse(content)
    return json.dumps({**document, "sha256": digest(document)}).encode() if isinstance(document, dict) else content


def kept(path: Path) -> object:
    """A result that an earlier run has kept, of another question or of this one."""
    from makespan.model.instance import Instance
    from makespan.model.machine import Machine
    from makespan.report.cache import _claim

    return _claim(
        _signed(path.read_bytes()), Instance.of("CLLC", warps=3, machine=Machine.of({"C": 2, "L": 1}, name="custom"))
    )


def cubin(path: Path) -> object:
    """With NOPs for what nvdisasm says."""
    from makespan.kernels.sass import disassembler
    from tests.sass.test_fuzz import nops

    with patch.object(disassembler, "_nvdisasm", nops):
        return disassembler.disassemble(path.read_bytes(), str(path), str(path))


def nvdisasm(words: str) -> Reader:
    """What nvdisasm says of a cubin that is as it should be, on to the end of a command."""

    def read(path: Path) -> object:
        from makespan.host import tool

        said = path.read_bytes()

        def ran(_: object, folder: Path, *, output: str | None = None, **__: object) -> tuple[int, str]:
            (folder / str(output)).write_bytes(said)
            return 0, ""

        with patch.object(tool, "run", ran), patch.object(tool, "find", lambda _: Path("x")):
            return run([*words.split(), str(CUBIN)])

    return read


def cuobjdump(path: Path) -> object:
    """What cuobjdump lists of a fat binary."""
    from makespan.kernels.sass import cubin

    return cubin._choose_arch(cubin._LISTED.findall(path.read_bytes().decode("utf-8", "replace")), "k.fatbin", None)


def string(path: Path) -> object:
    """An instruction string."""
    from makespan.model.machine import Machine
    from makespan.model.strings import parse_string

    return parse_string(path.read_bytes().decode("utf-8", "replace"), Machine.of({"C": 2, "L": 1}))


def table(path: Path) -> object:
    """All that a sweep asks of its table."""
    from makespan.many.sweep.store import open_store

    with open_store(path) as store:
        return store.answered(), store.failed(), store.contradicted(), tuple(store.asked())


def question(path: Path) -> object:
    """What a process of a sweep is asked."""
    from makespan.host.errors import InputError
    from makespan.many.commands.answering import answer
    from makespan.many.sweep.job import FailureCause

    try:
        asked = dict(json.loads(path.read_bytes()))
    except (ValueError, TypeError, RecursionError):
        raise InputError("no question") from None
    asked |= {"time-limit": 0.05, "memory-limit": "64MiB"}
    with PATIENT:
        found = answer({"question": asked, "key": "", "bundle": False})
    if found["cause"] == FailureCause.BUG:
        raise AssertionError(found["reason"])
    return 0 if found["cause"] == FailureCause.CHANGED else 2


def family(path: Path) -> object:
    """A library of one family."""
    from makespan.many.spec import read_library

    return read_library(path.parent)


def samples(path: Path) -> object:
    """Samples of a microbenchmark."""
    from makespan.estimates.microbench import samples

    return samples.remarks(path), samples.read(path, samples.LAUNCH)


def points(path: Path) -> object:
    """Measured points, of which a suite goes on."""
    from makespan.estimates.opencl_cost_table import points_file
    from makespan.estimates.opencl_cost_table.suite import Plan

    return points_file.read_points(path, type("Device", (), {"name": "d", "driver": "1"})(), Plan())


def measured(path: Path) -> object:
    """A table of measurements of dual issue."""
    from makespan.estimates import dual_issue

    return dual_issue.find(str(path))


def form(path: Path) -> object:
    """What the page of `serve` sends."""
    from makespan.many.serve.form import form_question, read_form

    return form_question(read_form(path.read_bytes()), most_seconds=60, compiles=False)


def judged(path: Path) -> object:
    """Runs of a kernel held against its bound; it is assembled once."""
    from makespan.kernels import kernel_file

    once = _assembled(kernel_file.assemble_module)
    with patch.object(kernel_file, "assemble_module", once):
        return run([*VALIDATE.split(), "--from", str(path), "--counterexample", str(path.parent / "above.jsonl")])


_assembled = cache(cache)
VALIDATE = (
    f"validate {ROOT}/ptx/vecadd.ptx --gpu rtx-3070 --block 32 --latency global=..90 --param 3=32"
    " --buffer 0=128 --buffer 1=128 --buffer 2=128 --time-limit 0.1"
)
