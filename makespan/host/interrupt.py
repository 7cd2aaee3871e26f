"""Ctrl-C while the command still loads its libraries: one line and exit code 130, as later, and no traceback.

This has to be the first thing that the package imports. In a process that is not the command it does nothing.
"""

import os
import sys
from pathlib import PurePath
from types import TracebackType

_EXIT_CODE = 130


def _exit_on_interrupt(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    if not issubclass(kind, KeyboardInterrupt):
        sys.__excepthook__(kind, error, trace)
        return
    sys.stderr.write("makespan: interrupted\n")
    sys.stderr.flush()
    os._exit(_EXIT_CODE)


if [PurePath(word).name for word in sys.argv[:1]] == ["makespan"] or sys.orig_argv[1:3] == ["-m", "makespan"]:
    sys.excepthook = _exit_on_interrupt
