"""The key of a question: equal for equal questions, whatever the names of their files are."""

import hashlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from makespan.cli.help_page import option_name
from makespan.cli.options import SOLVE_OPTIONS, SOURCE
from makespan.cli.question import QuestionData, read_question
from makespan.cli.source import given_machine, kernel_question
from makespan.host.errors import InputError
from makespan.host.text_file import decode_text, is_file, named_file, parse_toml, read_bytes
from makespan.kernels import kernel_file
from makespan.kernels.options import QuestionOption
from makespan.model import architecture
from makespan.model.machine import Machine, gpus
from makespan.report.result.bundle import canonical_json, named_machine_document
from makespan.version import THEORY

MAX_INPUT_BYTES = 256 * 2**20
"""Of a file that a key is made of; the readers of each kind have limits of their own."""

_PROGRAM = "arch", "machine", "gpu"
"""The options that decide for which architecture a kernel is compiled."""


def question_key(question: QuestionData, *, known: dict[str, str] | None = None) -> str:
    """Return a SHA-256 that equal questions share, whatever the names of their files are.

    A new `THEORY` gives new keys.

    It covers the content of every file that is read; of a file of launches also what it names. Of a kernel that is
    compiled or assembled first it covers the PTX and, where that is asked about, the machine code: so included files
    and the versions of the tools count, and two programs never share a key. The PTX has the name of its source in it.

    Args:
        known: digests of files by name, of keys that were made at the same time, to be read and extended.

    Raises:
        InputError: see `read_question`, or a file that cannot be read.

    >>> question_key({"string": "CL", "warps": 2}) == question_key({"warps": "2", "string": "CL", "seed": 0})
    True
    """
    given = read_question(question)
    digests = {} if known is None else known
    said = {
        option.keyword: _plain(option, value, given, digests)
        for option in SOLVE_OPTIONS.values()
        # A value counts where something is said, even if that is 0: None, False and an empty list of values are not.
        if (value := given[option.keyword]) is not None and value is not False and value != ()
    }
    return hashlib.sha256(canonical_json({"theory": THEORY, **said})).hexdigest()


def _plain(option: QuestionOption, value: Any, given: Mapping[str, Any], known: dict[str, str]) -> Any:
    """Return a value of an option as plain data; for a file what it holds."""
    if isinstance(value, tuple):
        return [_plain(option, each, given, known) for each in value]
    if isinstance(value, range):
        return [value.start, value.stop]
    if isinstance(value, Machine):
        return named_machine_document(value)
    if option is SOURCE:
        return _digest(Path(value), known, **{about: given[about] for about in _PROGRAM})
    if option.is_file(str(value)):
        return _digest(Path(value), known)
    if option.name in ("machine", "gpu"):  # one that comes with the package, whose file may change with it
        return _sha256(named_file(value, f"{option.name}s", ".toml", option.name)[0].read_bytes())
    return value


def _digest(path: Path, known: dict[str, str], **about: Any) -> str:
    """Return the digest of what a file holds and leads to.

    Args:
        about: the options that decide what a kernel is compiled for; none for a file that is no source.
    """
    # One source may be compiled for several architectures in a sweep: each has a digest of its own.
    kept = f"{path} {about}"
    if kept not in known:
        found = (path.suffix, *(_program(path, **about) if about else ()), *_contents(path, about))
        known[kept] = hashlib.sha256("\n".join(found).encode()).hexdigest()
    return known[kept]


def _program(path: Path, arch: str | None, machine: str | None, gpu: str | None) -> Iterator[str]:
    """Yield digests of what a compiler and an assembler make of a kernel."""
    if arch is not None:
        architecture.check_architecture(arch, option_name("arch"))
    if kernel_file.is_source(path):
        from makespan.kernels.ptx import cuda

        card = None if gpu is None else gpus.find_gpu(gpu)
        asked = kernel_question(str(path), arch=arch).compiled_for(given_machine(None, machine), card)
        arch = asked.arch
        with asked.telling():
            text = cuda.read(path, arch=arch and architecture.virtual_architecture(arch)).text
        yield _sha256(text.encode())
    elif path.suffix == ".ptx":
        text = read_bytes(path, "input", MAX_INPUT_BYTES).decode("utf-8-sig", "replace")
    else:
        return
    if arch is not None and architecture.is_machine_code(arch):
        yield _machine_code(text, str(path), arch)


def _machine_code(ptx: str, file: str, arch: str) -> str:
    """Return the digest of the machine code of PTX; where there is none, the question has no answer, which says why."""
    from makespan.kernels import sass

    try:
        return _sha256(sass.assemble_ptx(ptx, file, arch))
    except InputError:
        return "no machine code"


def _contents(path: Path, about: Mapping[str, Any]) -> Iterator[str]:
    """Yield digests of what is read as it is, and of what a file of launches leads to."""
    if kernel_file.is_source(path):  # what the compiler makes of it counts, with all files that it includes
        return
    content = read_bytes(path, "input", MAX_INPUT_BYTES)
    yield _sha256(content)
    if path.suffix != ".toml":
        return
    document = parse_toml(decode_text(content, "file", str(path)), "file", str(path))
    # Nothing knows better which texts of a file of launches are names: all that are files count.
    for name in sorted(set(_texts(document))):  # one that is the name of a file may well be meant as such
        if is_file(found := path.parent / name):
            yield from (name, _sha256(read_bytes(found, "input", MAX_INPUT_BYTES)))
    launches = document.get("launch")
    for launch in launches if about and isinstance(launches, list) else ():
        kernel, arch = (launch.get(name) for name in ("kernel", "arch")) if isinstance(launch, dict) else (None, None)
        if isinstance(kernel, str) and isinstance(arch, str | None) and is_file(found := path.parent / kernel):
            yield from _program(found, arch, about["machine"], about["gpu"])


def _sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def _texts(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for item in value.values() if isinstance(value, dict) else value:
            yield from _texts(item)
