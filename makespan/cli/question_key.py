"""The key of a question: equal for equal questions, whatever their files are called."""

import hashlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from makespan import kernel_file
from makespan.cli.asking import Question, checked
from makespan.errors import InputError
from makespan.machine import Machine
from makespan.report.result.bundle import canonical, of_named_machine
from makespan.text_file import decoded, is_file, named_file, parse_toml, read_bytes
from makespan.version import THEORY

MAX_INPUT_BYTES = 256 * 2**20
"""Of a file that a key is made of; the readers of each kind have limits of their own."""


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
        if is_file(found := path.parent / name):
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
