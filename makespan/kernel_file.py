"""Files of kernels: what reads them, by suffix; a reader is loaded when it is needed."""

from collections.abc import Callable, Mapping
from importlib import import_module
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from makespan.errors import InputError

if TYPE_CHECKING:
    from makespan.ptx import Module

Naming: TypeAlias = Callable[[str], str]
"""What the user calls a field: `--keep-ptx` on a command line, `keep_ptx` in Python."""


class Kind(NamedTuple):
    """A kind of file: the module whose `read` gives its kernels, and whether that compiles, with `arch` and `keep`."""

    reader: str
    compiles: bool = False


KINDS: Mapping[str, Kind] = MappingProxyType({".ptx": Kind("makespan.ptx"), ".cu": Kind("makespan.ptx.cuda", True)})
"""All kinds of files, by suffix."""


def is_kernel(file: str) -> bool:
    """Whether a file holds kernels, as its suffix tells.

    >>> is_kernel("saxpy.cu"), is_kernel("tasks.toml")
    (True, False)
    """
    return Path(file).suffix in KINDS


def read(path: Path, *, arch: str | None = None, keep_ptx: Path | None = None, named: Naming = str) -> "Module":
    """The kernels in a file.

    Args:
        arch: what source is compiled for, such as `compute_80`.
        keep_ptx: where to leave the PTX that source is compiled to.

    Raises:
        InputError: another kind of file, one that cannot be read, or source that does not compile.
        ParseError: a place that is not understood.
    """
    kind = KINDS.get(path.suffix, Kind(""))
    if not kind.compiles:
        refuse_compiling(str(path), arch, keep_ptx, named)
    if not kind.reader:
        raise InputError(f"{path}: not a kernel file; expected {' or '.join(KINDS)}")
    reader = import_module(kind.reader)
    module: Module = reader.read(path, arch=arch, keep=keep_ptx) if kind.compiles else reader.read(path)
    return module


def refuse_compiling(file: str, arch: str | None, keep_ptx: Path | None, named: Naming = str) -> None:
    """Refuse, for a file that is not source, what says how it is compiled.

    Raises:
        InputError: something is given.
    """
    given = [named(name) for name, value in (("arch", arch), ("keep_ptx", keep_ptx)) if value is not None]
    if given:
        raise InputError(f"{file}: {' and '.join(given)} {'are' if given[1:] else 'is'} for CUDA source (.cu)")
