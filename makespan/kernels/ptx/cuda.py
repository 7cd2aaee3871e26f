"""From a `.cu` file to a `PtxModule`, by way of nvcc or NVRTC; neither needs a GPU.

Source is not trusted. It is compiled under a fixed name in a temporary folder, since nvcc passes the names that it is
given to a shell; as a process group of its own with limits on time, memory and file size; and what the compiler says is
shown only in part and without control characters. The compiler can still read every file that its user can.
"""

import codecs
import os
import re
import shutil
import signal
import sys
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from makespan.host import tool
from makespan.host.errors import InputError, ParseError
from makespan.host.output_file import replace_whole
from makespan.host.text_file import claim_output, read_bytes, refuse_utf16
from makespan.host.tool import SECONDS, head, printable, wheel_roots
from makespan.kernels.ptx import nvrtc
from makespan.kernels.ptx.module import KEEP_HINT, Compilation, PtxKernel, PtxModule
from makespan.kernels.ptx.parameters import signatures
from makespan.kernels.ptx.parser import MAX_BYTES, decode, parse

DEFAULT_ARCH = "compute_75"
"""The oldest architecture that the compilers of CUDA 10 to 13 all know."""

MAX_SOURCE_BYTES = 16 * 2**20

_SOURCE, _OUTPUT, _INCLUDE = "source.cu", "output.ptx", "include"
_ARCH = re.compile(r"compute_[1-9][0-9]{1,2}[af]?")
_RELEASE = re.compile(r"^// Cuda compilation tools, release [^\n]{1,40}?, V([0-9.]{1,40})\s*$", re.MULTILINE)
_FILE = re.compile(r'^(\s*\.file\s+\d+\s+")([^"\n]+)(?=")', re.MULTILINE)
_PLACED_ERRORS = (
    re.compile(r"(?P<file>.+?)\((?P<line>\d{1,9})\): (?:catastrophic |fatal |internal )?error[^:]{0,40}: (?P<what>.+)"),
    re.compile(r"(?P<file>.+?):(?P<line>\d{1,9}):(?:\d{1,9}:)? (?:fatal )?error: (?P<what>.+)"),
)
_OTHER_ERROR = re.compile(r"(?:.{0,80}\b)?(?:error|fatal)\s*: (?P<what>.+)")
_DEVICE_CODE_ONLY = re.compile(r"host functions are not allowed|(?:could not|cannot) open source file|<<<")
_UNKNOWN_INTRINSIC = re.compile(r'identifier "__\w+" is undefined')
_UNKNOWN_ARCH = re.compile(r"[Uu]nsupported gpu architecture|invalid value for --gpu-architecture")
_MOST_LINES, _LINE_WIDTH, _MESSAGE_WIDTH = 10_000, 2_000, 300

_NO_UNIT = "0" * 8
_SEPARATOR = r"(?:,|\n\.b8 )"
_HEX_DIGIT = r"\b(?:4[89]|5[0-7]|9[7-9]|10[0-2])\b"
"""A small hexadecimal digit as the number of its byte."""


def _bytes_of(text: str) -> str:
    """Return a pattern for a text in a debug section, where the numbers of its bytes stand over several lines."""
    return _SEPARATOR.join(str(byte) for byte in text.encode())


_AFTER_UNIT = f"_{len(_SOURCE)}_{_SOURCE.replace('.', '_')}_"
_UNIT = re.compile(rf"(?:(?<=_INTERNAL_)|(?<=_GLOBAL__N__))[0-9a-f]{{8}}(?={_AFTER_UNIT})")
_UNIT_IN_BYTES = re.compile(
    rf"(?<=[ ,])((?:{_bytes_of('_INTERNAL_')}|{_bytes_of('_GLOBAL__N__')}){_SEPARATOR})"
    rf"({_SEPARATOR.join([_HEX_DIGIT] * 8)})(?={_SEPARATOR}{_bytes_of(_AFTER_UNIT)}\b)"
)
"""Where a name of a static function or of an unnamed namespace has what tells source files apart: in nvcc a digest of
the path of the source, which is in another folder every time; in NVRTC zeros."""


class Compiler(NamedTuple):
    """A command that compiles the fixed source to the fixed output; `flags` are those that may change the PTX."""

    name: str
    command: tuple[str, ...]
    flags: tuple[str, ...]


class _CompilerError(NamedTuple):
    """The first error of a compiler, with its place if it tells one."""

    what: str
    file: str | None = None
    line: int | None = None


def read(path: Path, *, arch: str | None = None, keep: Path | None = None, seconds: float = SECONDS) -> PtxModule:
    """Compile a CUDA source file and parse the PTX; the module remembers compiler, version and flags.

    Args:
        arch: a virtual architecture such as `compute_80`; None is `DEFAULT_ARCH`.
        keep: where to leave the PTX; positions in messages are then those of this file.
        seconds: the time limit of the compiler.

    Raises:
        InputError: no compiler, source that does not compile or cannot be read, a limit that is exceeded.
        ParseError: PTX that is not understood.
    """
    chosen = DEFAULT_ARCH if arch is None else arch
    if _ARCH.fullmatch(chosen) is None:  # the name becomes an argument of the compiler
        raise InputError(f"{chosen[:40]!r} is no virtual architecture; expected one such as {DEFAULT_ARCH}")
    if keep is not None and keep.suffix != ".ptx":
        raise InputError(f"{keep}: the file that keeps the PTX must end in .ptx")
    source, shown = _source(path), printable(str(path))
    if keep is not None:
        claim_output(keep)  # refuse before the long compilation, not after it
    compiler = choose_compiler(shown, chosen)
    text = compile_source(path, source, compiler, seconds)
    release = _RELEASE.search(text)
    version = f"V{release[1]}" if release else "of a version that it does not tell"
    told = signatures(source.decode("utf-8", errors="replace"))
    compilation = Compilation(shown, f"{compiler.name} {version}", compiler.flags, told, arch)
    if keep is not None:
        _write(keep, text)
    return _remembering(_parse_compiled(text, f"PTX of {shown}" if keep is None else str(keep), keep), compilation)


def choose_compiler(file: str, arch: str = DEFAULT_ARCH) -> Compiler:
    """Return the compiler to use: nvcc with a host compiler, else NVRTC.

    Raises:
        InputError: there is neither; the message names both remedies.
    """
    nvcc, library = shutil.which("nvcc"), nvrtc_library()
    if nvcc is not None and _has_host_compiler():  # without a host compiler nvcc fails on every file
        return _nvcc(Path(nvcc).absolute(), arch)
    if library is not None:
        return _nvrtc(library, arch)
    missing = "no CUDA compiler" if nvcc is None else f"{nvcc} finds no host compiler (gcc), and there is no NVRTC"
    raise InputError(
        f"{file}: {missing}: put nvcc and a host compiler such as gcc on PATH, or install NVRTC with"
        " pip install 'makespan[cuda]' (no GPU needed for either); or give the PTX"
    )


def nvrtc_library() -> Path | None:
    """Return the NVRTC of the installed wheels, the newest if there are several; None when there is none."""
    found = (path for root in wheel_roots() for path in root.glob("*/lib/libnvrtc.so.*"))
    numbered = [path for path in found if path.suffix[1:].isdecimal()]
    return max(numbered, key=lambda path: int(path.suffix[1:]), default=None)


def compile_source(path: Path, source: bytes, compiler: Compiler, seconds: float = SECONDS) -> str:
    """Return the PTX text of `source`, the same every time; `.file` directives name the file of the user.

    Raises:
        InputError: the first error of the compiler, or the limit that it exceeded.
    """
    with tool.folder_with(_SOURCE, source) as folder:
        (folder / _INCLUDE).symlink_to(path.absolute().parent, target_is_directory=True)
        code, log = _run(path, compiler, folder, seconds)
        output = head(folder / _OUTPUT, MAX_BYTES + 1) if code == 0 else None
        if output is None:
            raise InputError(_complaint(path, compiler, code, log, folder))
        text = _without_unit(decode(output, f"PTX of {printable(str(path))}"))
        return _FILE.sub(lambda match: match[1] + _user_file(match[2], path, folder).replace('"', "?"), text)


def _without_unit(text: str) -> str:
    """Return the text with zeros in place of what tells source files apart in names: here there is one file.

    If there seem to be several, some are names that the user chose, and nothing is changed: two names must stay two.

    >>> _without_unit("_ZN37_INTERNAL_f7842679_9_source_cu__Z1kPi6helperEi")
    '_ZN37_INTERNAL_00000000_9_source_cu__Z1kPi6helperEi'
    """
    listed = {
        "".join(chr(int(byte)) for byte in re.findall(_HEX_DIGIT, match[2])) for match in _UNIT_IN_BYTES.finditer(text)
    }
    if len(listed.union(_UNIT.findall(text))) != 1:  # see above: two names must stay two
        return text
    text = _UNIT.sub(_NO_UNIT, text)
    return _UNIT_IN_BYTES.sub(lambda match: match[1] + re.sub(_HEX_DIGIT, str(ord("0")), match[2]), text)


def _nvcc(nvcc: Path, arch: str) -> Compiler:
    flags = ("-ptx", f"-arch={arch}", "-lineinfo")
    command = (str(nvcc), *flags, f"-Xcompiler=-iquote,{_INCLUDE}", "-o", _OUTPUT, _SOURCE)
    own = (f"{name}={printable(os.environ[name])}" for name in _NVCC_VARIABLES if os.environ.get(name))
    return Compiler("nvcc", command, (*flags, *own))


_NVCC_VARIABLES = ("NVCC_PREPEND_FLAGS", "NVCC_APPEND_FLAGS")
"""nvcc takes flags from these, as some distributions need for the host compiler; so they are listed among the flags."""


def _nvrtc(library: Path, arch: str) -> Compiler:
    flags = (f"--gpu-architecture={arch}", "--generate-line-info")
    roots = [root for parent in wheel_roots() for root in sorted(parent.glob("*/include"))]
    headers = [folder for root in roots for folder in (root, root / "cccl") if folder.is_dir()]
    # isolated: no module of the working folder is imported
    worker = (sys.executable, "-I", nvrtc.__file__, str(library), _SOURCE, _OUTPUT)
    return Compiler("NVRTC", (*worker, *flags, *(f"-I{folder}" for folder in headers), f"-I{_INCLUDE}"), flags)


def _has_host_compiler() -> bool:
    told = "NVCC_CCBIN" in os.environ or any("-ccbin" in os.environ.get(name, "") for name in _NVCC_VARIABLES)
    return told or shutil.which("gcc") is not None


def _run(path: Path, compiler: Compiler, folder: Path, seconds: float) -> tuple[int, str]:
    late = (
        f"{printable(str(path))}: {compiler.name} was stopped at its time limit of {seconds:g} s; compile the"
        " file yourself and give the PTX"
    )
    return tool.run(compiler.command, folder, most_bytes=MAX_BYTES + 1, seconds=seconds, late=late)


def _complaint(path: Path, compiler: Compiler, code: int, log: str, folder: Path) -> str:
    failure = _first_error(log)
    file = printable(str(path)) if failure.file is None else _user_file(failure.file, path, folder)
    where = file if failure.line is None else f"{file}:{failure.line}"
    what = printable(failure.what)[:_MESSAGE_WIDTH] or f"nothing, but it ended with code {code} and left no PTX"
    if code == -signal.SIGXFSZ:  # the limit on the size of files has struck
        what = f"nothing, but it wrote more than the limit of {MAX_BYTES >> 20} MiB"
    hint = ""
    if compiler.name == "NVRTC" and _DEVICE_CODE_ONLY.search(log):
        hint = (
            "; NVRTC takes device code only: no main, no <<<...>>> and no header of the host such as <cstdio>; move"
            " them to another file, or put nvcc and gcc on PATH"
        )
    elif _UNKNOWN_INTRINSIC.search(failure.what):
        chosen = next(flag.partition("=")[2] for flag in compiler.flags if "arch" in flag)
        hint = f"; this was compiled for {chosen}, and what only newer GPUs have needs --arch, such as compute_90"
    elif _UNKNOWN_ARCH.search(failure.what):
        hint = f"; with --arch name an architecture that this compiler knows, such as {DEFAULT_ARCH}"
    return f"{where}: {compiler.name} says: {what}{hint}"


def _first_error(log: str) -> _CompilerError:
    lines = [line[:_LINE_WIDTH].strip() for line in log.splitlines()[:_MOST_LINES] if line.strip()]
    for match in (pattern.fullmatch(line) for line in lines for pattern in _PLACED_ERRORS):
        if match is not None:
            return _CompilerError(match["what"], match["file"], int(match["line"]))
    for match in map(_OTHER_ERROR.fullmatch, lines):
        if match is not None:
            return _CompilerError(match["what"])
    return _CompilerError(lines[-1] if lines else "")


def _user_file(name: str, path: Path, folder: Path) -> str:
    local = name.removeprefix(f"{folder}/").removeprefix("./")
    if local == _SOURCE:  # the fixed name stands for the file of the user
        return printable(str(path))
    if local.startswith(f"{_INCLUDE}/"):
        return printable(str(path.parent / local.removeprefix(f"{_INCLUDE}/")))
    return printable(name)


def _source(path: Path) -> bytes:
    data = read_bytes(path, "CUDA source", MAX_SOURCE_BYTES).removeprefix(codecs.BOM_UTF8)
    refuse_utf16(data, "CUDA source", str(path))
    if b"\0" in data:  # one compiler would stop there, the other go on
        raise InputError(f"{path}: this is a binary file, not CUDA source")
    return data


def _write(keep: Path, text: str) -> None:
    try:
        replace_whole(keep, text.encode())
    except OSError as error:
        raise InputError(f"{keep}: cannot keep the PTX there: {error.strerror or error}") from None


def _parse_compiled(text: str, file: str, keep: Path | None) -> PtxModule:
    try:
        return parse(text, file)
    except ParseError as error:
        if keep is not None:
            raise
        raise error.adding(KEEP_HINT) from None


def _remembering(module: PtxModule, compilation: Compilation) -> PtxModule:
    items = (replace(item, compilation=compilation) if isinstance(item, PtxKernel) else item for item in module.items)
    return replace(module, items=tuple(items), compilation=compilation)
