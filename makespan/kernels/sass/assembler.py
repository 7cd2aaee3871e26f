"""From PTX to a cubin, by way of ptxas, which needs no GPU.

PTX is not trusted: ptxas gets it under a fixed name in a temporary folder, as a process of its own within limits, and
what it says is shown only in part and without control characters.
"""

import re

from makespan.host import tool
from makespan.host.errors import InputError
from makespan.kernels.sass.elf import INSTALL, MAX_BYTES

_SOURCE, _OUTPUT = "source.ptx", "output.cubin"
_ARCH = re.compile(r"sm_[1-9][0-9]{1,2}[af]?")
_ERROR = re.compile(r"ptxas (?:(?P<file>[^,;]{1,80}), line (?P<line>\d{1,9}); )?(?:error|fatal)\s*: (?P<what>.+)")
_MESSAGE_WIDTH = 300


def assemble_ptx(ptx: str, file: str, arch: str) -> bytes:
    """Return the cubin that ptxas makes of PTX, with the lines of the PTX and of its source.

    The ptxas of an installed wheel comes before one on PATH; which it was is told by `Kernel.compilation`.

    Args:
        file: what messages call the PTX.
        arch: an architecture of GPUs, such as `sm_86`.

    Raises:
        InputError: no ptxas, PTX that it does not accept, a limit that is exceeded.
    """
    if _ARCH.fullmatch(arch) is None:
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
    """Return one line about PTX that ptxas does not accept: where, and what it says first."""
    found = next(filter(None, map(_ERROR.match, said.splitlines())), None)
    what = tool.printable(found["what"] if found else "")[:_MESSAGE_WIDTH]
    place = f":{found['line']}" if found and found["file"] == _SOURCE else ""
    return f"{file}{place}: ptxas says: {what or f'nothing, but it ended with code {code} and left no cubin'}"
