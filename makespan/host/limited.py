"""A command within limits: `python -I limited.py MEMORY_BYTES FILE_BYTES CPU_SECONDS COMMAND...`.

`tool` starts compilers by way of this file, because a process can only limit itself and what it becomes, and code that
runs between fork and exec is not safe in a process with threads. It uses the standard library alone.
"""

import os
import resource
import signal
import sys


def main(memory_bytes: str, file_bytes: str, cpu_seconds: str, *command: str) -> None:
    """Become the command within these limits; limits that are lower already stay."""
    limit(resource.RLIMIT_AS, int(memory_bytes))
    limit(resource.RLIMIT_FSIZE, int(file_bytes))
    limit(resource.RLIMIT_CPU, int(cpu_seconds))
    limit(resource.RLIMIT_CORE, 0)
    signal.signal(signal.SIGXFSZ, signal.SIG_DFL)  # Python ignores it, and the command would, too
    os.execv(command[0], command)  # noqa: S606 - that no shell is between is the point


def limit(what: int, most: int) -> None:
    """Lower both limits of one kind to `most`."""
    soft, hard = (most if now == resource.RLIM_INFINITY else min(most, now) for now in resource.getrlimit(what))
    resource.setrlimit(what, (soft, hard))


if __name__ == "__main__":
    main(*sys.argv[1:])
