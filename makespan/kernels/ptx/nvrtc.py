"""NVRTC as a command: `python -I nvrtc.py LIBRARY SOURCE OUTPUT FLAG...`.

`cuda` starts this file as a process of its own, so that hostile source can neither crash nor stall its caller. It uses
the standard library alone. NVRTC needs no driver, no toolkit and no host compiler.
"""

import ctypes
import sys
from pathlib import Path


def main(library: str, source: str, output: str, *flags: str) -> int:
    """Compile `source` to PTX in `output`; what the compiler says goes to stdout. 0 is success."""
    nvrtc = ctypes.CDLL(library)
    nvrtc.nvrtcGetErrorString.restype = ctypes.c_char_p
    program = ctypes.c_void_p()
    options = (ctypes.c_char_p * len(flags))(*(flag.encode() for flag in flags))
    text = Path(source).read_bytes()

    def check(status: int) -> None:
        if status:
            raise RuntimeError(nvrtc.nvrtcGetErrorString(status).decode())

    def fetch(what: str) -> bytes:
        size = ctypes.c_size_t()
        check(getattr(nvrtc, f"nvrtcGet{what}Size")(program, ctypes.byref(size)))
        buffer = ctypes.create_string_buffer(size.value)
        check(getattr(nvrtc, f"nvrtcGet{what}")(program, buffer))
        return buffer.raw

    check(nvrtc.nvrtcCreateProgram(ctypes.byref(program), text, source.encode(), 0, None, None))
    failed: int = nvrtc.nvrtcCompileProgram(program, len(flags), options)
    sys.stdout.buffer.write(fetch("ProgramLog").rstrip(b"\0"))
    if not failed:
        Path(output).write_bytes(fetch("PTX"))
    return failed


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
