"""Files of kernels: what reads them, by suffix; a reader is loaded when it is needed."""

from collections.abc import Mapping
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from makespan.host.errors import InputError, Naming
from makespan.host.text_file import is_file
from makespan.model import architecture

if TYPE_CHECKING:
    from makespan.kernels import ptx, sass

    Module: TypeAlias = ptx.PtxModule | sass.SassModule
    Kernel: TypeAlias = ptx.PtxKernel | sass.SassKernel

_PROGRAM = b"\x7fELF"


class FileKind(NamedTuple):
    """A kind of file: the module whose `read` gives its kernels, whether that compiles, and whether it is machine code.

    What compiles takes `arch` and `keep`; machine code takes `arch`, to choose among several.
    """

    reader: str
    compiles: bool = False
    is_machine_code: bool = False


_MACHINE_CODE = FileKind("makespan.kernels.sass", is_machine_code=True)

KINDS: Mapping[str, FileKind] = MappingProxyType(
    {
        ".ptx": FileKind("makespan.kernels.ptx"),
        ".cu": FileKind("makespan.kernels.ptx.cuda", compiles=True),
        ".cubin": _MACHINE_CODE,
        ".fatbin": _MACHINE_CODE,
    }
)
"""The kinds of files that have a suffix of their own; programs and libraries are known by how they begin."""


def is_kernel(file: str) -> bool:
    """Return whether a file holds kernels, as its suffix or its first bytes tell.

    >>> is_kernel("saxpy.cu"), is_kernel("saxpy.cubin"), is_kernel("tasks.toml")
    (True, True, False)
    """
    return _kind(Path(file)) is not None


def is_source(path: Path) -> bool:
    """Return whether a file is compiled before it is read, as its suffix tells.

    >>> is_source(Path("saxpy.cu")), is_source(Path("saxpy.ptx"))
    (True, False)
    """
    return path.suffix in KINDS and KINDS[path.suffix].compiles


def read(path: Path, *, arch: str | None = None, keep_ptx: Path | None = None, named: Naming = str) -> "Module":
    """Return the kernels in a file: machine code where the file has it or `arch` is that of GPUs, else PTX.

    Args:
        arch: a virtual architecture such as `compute_80`, for which source is compiled; or one of GPUs such as `sm_86`,
            for which PTX is assembled, and which is chosen of several that a file has.
        keep_ptx: where to leave the PTX that source is compiled to.

    Raises:
        InputError: another kind of file, one that cannot be read, source that does not compile, or no architecture.
        ParseError: a place that is not understood.
    """
    if arch is not None:
        architecture.check_architecture(arch, named("arch"))
    kind = _kind(path)
    if kind is None:
        raise InputError(f"{path}: not a kernel file; expected {' or '.join(KINDS)}")
    if not kind.compiles:
        _refuse_compiling(str(path), arch, keep_ptx, named)
    options: dict[str, object] = {}
    if kind.compiles:
        options = {"arch": arch and architecture.virtual_architecture(arch), "keep": keep_ptx}
    elif kind.is_machine_code:
        options = {"arch": arch}
    module: Module = import_module(kind.reader).read(path, **options)
    return _for_gpu(module, arch)


def _kind(path: Path) -> FileKind | None:
    """Return the kind of a file; a program or a library in the format of Linux may have any suffix, or none."""
    # The suffix counts first: a file that is not there gets the message of its reader.
    if path.suffix in KINDS or not is_file(path):
        return KINDS.get(path.suffix)
    try:
        with path.open("rb") as stream:
            return _MACHINE_CODE if stream.read(len(_PROGRAM)) == _PROGRAM else None
    except OSError:  # whoever reads it tells why
        return None


def of_module(module: "Module", arch: str | None = None, keep_ptx: Path | None = None, named: Naming = str) -> "Module":
    """Return a module that was read before: PTX is assembled where `arch` is that of GPUs, anything else stays.

    Raises:
        InputError: what says how CUDA source is compiled, or an architecture that the machine code is not for.
    """
    from makespan.kernels import sass

    if arch is not None:
        architecture.check_architecture(arch, named("arch"))
    _refuse_compiling(module.file, arch, keep_ptx, named)
    if isinstance(module, sass.SassModule) and arch is not None:
        # Suffixes a and f choose variants of an architecture that run on the same GPUs.
        sms = {f"sm_{kernel.sm}" for kernel in module.kernels}
        if sms != {arch.rstrip("af")}:
            raise InputError(f"{module.file}: this is machine code for {', '.join(sorted(sms))}, not for {arch:.40}")
    return _for_gpu(module, arch)


def _for_gpu(module: "Module", arch: str | None) -> "Module":
    """Return the machine code that the assembler makes of PTX where `arch` is that of GPUs; else the module itself."""
    from makespan.kernels import ptx

    if arch is None or not architecture.is_machine_code(arch) or not isinstance(module, ptx.PtxModule):
        return module
    return assemble_module(module, arch)[1]


def assemble_module(module: "ptx.PtxModule", arch: str) -> "tuple[bytes, sass.SassModule]":
    """Return the machine code that the assembler makes of PTX: a file to load, and the kernels in it.

    Raises:
        InputError: see `sass.assemble_ptx` and `sass.disassemble`.
    """
    from makespan.kernels import sass

    source = module.compilation.source if module.compilation else module.file
    words = sass.assemble_ptx(module.text, module.file, arch)
    found = sass.disassemble(words, f"machine code of {source}", source)
    # Assemblers drop comments and names of parameters; PTX still has them, by the name of the kernel.
    told = {kernel.name: kernel for kernel in module.kernels}
    kernels = (_telling(kernel, told[kernel.name], module.text, arch) for kernel in found.kernels)
    return words, replace(found, kernels=tuple(kernels))


def _telling(kernel: "sass.SassKernel", told: "ptx.PtxKernel", text: str, arch: str) -> "sass.SassKernel":
    """Return the kernel with what its PTX tells, and with how to ask for it again.

    These are names of parameters, how it was made, and the text with its comments, which assemblers leave out.
    """
    from makespan.kernels import ptx

    parameters, names = kernel.parameters, ptx.parameter_names(told)
    # Parameters that the compiler dropped would shift all names: then none is given.
    if len(names) == len(parameters):
        floats = [(ptx.scalar_type(one) or ("", 0))[0] == "f" for one in told.parameters or () for _ in one.names]
        said = zip(parameters, names, floats, strict=True)
        parameters = tuple(each._replace(name=name, is_float=is_float) for each, name, is_float in said)
    made = "; ".join(str(each) for each in (kernel.compilation, told.compilation) if each is not None)
    return replace(
        kernel,
        source=f"{kernel.source} --arch {arch}",
        parameters=parameters,
        ptx_text=text,
        compilation=made or None,
    )


def _refuse_compiling(file: str, arch: str | None, keep_ptx: Path | None, named: Naming = str) -> None:
    """Refuse, for a file that is not source, what says how it is compiled.

    Raises:
        InputError: something is given.
    """
    # An architecture of GPUs assembles PTX as well; only a virtual one says how source is compiled.
    virtual = None if arch is None or architecture.is_machine_code(arch) else arch
    given = [named(name) for name, value in (("arch", virtual), ("keep_ptx", keep_ptx)) if value is not None]
    if given:
        unless = ", unless it is that of GPUs, such as sm_86" if virtual is not None else ""
        raise InputError(f"{file}: {' and '.join(given)} {'are' if given[1:] else 'is'} for CUDA source (.cu){unless}")
