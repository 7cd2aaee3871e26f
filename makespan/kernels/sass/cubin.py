"""Cubins, made from PTX by ptxas or taken out of a fat binary, library or executable by cuobjdump; neither needs a GPU.

Input is not trusted: a tool gets it under a fixed name in a temporary folder, as a process of its own within limits,
and what it says is shown only in part and without control characters. Names, number and sizes of what is in a file are
checked before anything is taken out.
"""

import re
from collections import Counter
from pathlib import Path

from makespan.host import tool
from makespan.host.errors import InputError
from makespan.kernels.sass.elf import INSTALL, MAX_BYTES

_SOURCE, _OUTPUT = "source.ptx", "output.cubin"
_ARCH = re.compile(r"sm_[1-9][0-9]{1,2}[af]?")
_ERROR = re.compile(r"ptxas (?:(?P<file>[^,;]{1,80}), line (?P<line>\d{1,9}); )?(?:error|fatal)\s*: (?P<what>.+)")
_PTXAS_WIDTH = 300


def assemble_ptx(ptx: str, file: str, arch: str) -> bytes:
    """Return the cubin that ptxas makes of PTX, with the lines of the PTX and of its source.

    The ptxas of an installed wheel comes before one on PATH; which it was is told by `Kernel.compilation`.

    Args:
        file: what messages call the PTX.
        arch: an architecture of GPUs, such as `sm_86`.

    Raises:
        InputError: no ptxas, PTX that it does not accept, a limit that is exceeded.
    """
    if _ARCH.fullmatch(arch) is None:  # the name becomes an argument of ptxas
        raise InputError(f"{arch[:40]!r} is no architecture of GPUs; expected one such as sm_86")
    shown, program = tool.printable(file), tool.find("ptxas")
    if program is None:
        raise InputError(f"{shown}: no ptxas to make machine code with: {INSTALL} (no GPU needed)")
    with tool.folder_with(_SOURCE, ptx.encode()) as folder:
        code, said = tool.run(
            (str(program), "-lineinfo", f"-arch={arch}", "-o", _OUTPUT, _SOURCE),
            folder,
            most_bytes=MAX_BYTES,
            late=f"{shown}: ptxas was stopped at its time limit of {tool.SECONDS:g} s; give the cubin",
        )
        cubin = tool.head(folder / _OUTPUT, MAX_BYTES) if code == 0 else None
        if cubin is None:
            raise InputError(_complaint(shown, code, said))
        return cubin


def _complaint(file: str, code: int, said: str) -> str:
    found = next(filter(None, map(_ERROR.match, said.splitlines())), None)
    what = tool.printable(found["what"] if found else "")[:_PTXAS_WIDTH]
    place = f":{found['line']}" if found and found["file"] == _SOURCE else ""
    return f"{file}{place}: ptxas says: {what or f'nothing, but it ended with code {code} and left no cubin'}"


_IMAGE = "image"
_LISTED = re.compile(r"ELF file +\d{1,9}: (?P<name>.+)")
_NAME = re.compile(r"image\.(?:\d{1,9}\.)?(?P<arch>sm_\d{2,3}[af]?)\.cubin", re.ASCII)
_PREFIX = re.compile(r"cuobjdump (?:info|error|fatal) *: *")
_MOST_CUBINS, _MOST_TOTAL_BYTES, _CUOBJDUMP_WIDTH = 64, 256 * 2**20, 200


def cubins(data: bytes, file: str, arch: str | None = None) -> tuple[bytes, ...]:
    """Return the cubins for one architecture, by name.

    Args:
        file: what messages call it.
        arch: such as `sm_86`; None for the only one.

    Raises:
        InputError: no such architecture, several and none chosen, no cuobjdump, a file that it does not understand.
    """
    program = tool.find("cuobjdump")
    if program is None:
        raise InputError(f"{file}: no cuobjdump to take machine code out with: {INSTALL} (no GPU needed)")
    with tool.folder_with(_IMAGE, data) as folder:
        listed = _LISTED.findall(_cuobjdump(program, folder, file, "-lelf", tool.MAX_LOG_BYTES))
        chosen, count = _choose_arch(listed, file, arch)
        if count > _MOST_CUBINS:
            raise InputError(f"{file}: {count} cubins for {chosen}; take out the one that matters with cuobjdump")
        most_bytes = min(MAX_BYTES, _MOST_TOTAL_BYTES // count)  # one file must not use up the room of all
        _cuobjdump(program, folder, file, f"-arch={chosen} -xelf all", most_bytes)
        names = sorted((path for path in folder.iterdir() if path.suffix == ".cubin"), key=lambda path: path.name)
        found = [tool.head(path, most_bytes) for path in names]
    if len(found) != count or None in found:  # what was listed and what came out must be the same
        raise InputError(f"{file}: cuobjdump lists {count} cubins and takes out {len(found)}; give a cubin")
    return tuple(filter(None, found))


def _choose_arch(listed: list[str], file: str, arch: str | None) -> tuple[str, int]:
    by_arch = Counter[str]()
    for name in listed:
        known = _NAME.fullmatch(name)
        if known is None:
            raise InputError(f"{file}: it has machine code by the name {tool.printable(name)[:60]!r}; give a cubin")
        by_arch[known["arch"]] += 1
    if not by_arch:
        raise InputError(f"{file}: there is no machine code in it; it may have PTX, to be compiled with --arch")
    told = ", ".join(by_arch)
    if arch is None and len(by_arch) > 1:
        raise InputError(f"{file}: it has machine code for {told}; say which with --arch")
    chosen = next(iter(by_arch)) if arch is None else arch
    if chosen not in by_arch:
        raise InputError(f"{file}: no machine code for {chosen:.40}, only for {told}")
    return chosen, by_arch[chosen]


def _cuobjdump(program: Path, folder: Path, file: str, options: str, most_bytes: int) -> str:
    late = f"{file}: cuobjdump was stopped at its time limit of {tool.SECONDS:g} s; give a cubin"
    command = (str(program), *options.split(), _IMAGE)
    code, said = tool.run(command, folder, most_bytes=most_bytes, late=late)
    if code:
        what = _PREFIX.sub("", said.split("\n")[0]).replace(f"{folder}/{_IMAGE}", file).replace(_IMAGE, file)
        what = tool.printable(what)[:_CUOBJDUMP_WIDTH]
        raise InputError(f"{file}: cuobjdump says: {what or f'nothing, but it ended with code {code}'}")
    return said
