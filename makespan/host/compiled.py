"""Numba where it is installed; without it the same functions run as plain Python, slower but identical.

Machine code is made when a function is first called, and kept beside the module or where `NUMBA_CACHE_DIR` says. Both
what takes time and what a user should know about it goes to the logger `makespan`.

For a number that stands in a call, or in a variable when it is first handed on, Numba compiles the called function once
more. So kernels begin counting at `NIL` and hand on `NIL` and `ONE`, which it takes for any number.
"""

import logging
import sys
from collections.abc import Callable, Iterable
from functools import cache
from pathlib import Path
from typing import Any, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

CompiledFunction = TypeVar("CompiledFunction", bound=Callable[..., Any])

Ints = NDArray[np.int64]
Words = NDArray[np.uint64]
"""Arrays of whole numbers, with a sign and without, as inner loops take them."""

NIL, ONE = cast(int, np.int64(0)), cast(int, np.int64(1))


def ints(values: Iterable[int]) -> Ints:
    """Return the values as inner loops take them."""
    return np.fromiter(values, dtype=np.int64)


_log = logging.getLogger("makespan")

NOT_KEPT = (
    "compiled code can be kept nowhere, so every run compiles what it needs; set NUMBA_CACHE_DIR to a folder that you"
    " may write to"
)
"""The advice for a user of a read-only installation without a home."""

try:
    import numba
except ImportError:

    def compiled(function: CompiledFunction) -> CompiledFunction:
        """Return the function as it is."""
        return function

    def uncounted(function: CompiledFunction) -> CompiledFunction:
        """Return the function as it is."""
        return function

    def inlined(function: CompiledFunction) -> CompiledFunction:
        """Return the function as it is."""
        return function
else:
    from numba.core import caching, event
    from numba.extending import register_jitable

    def compiled(function: CompiledFunction) -> CompiledFunction:
        """Return the function in machine code, kept on disk, and without the interpreter lock."""
        return _kept(function, {"nogil": True})

    def uncounted(function: CompiledFunction) -> CompiledFunction:
        """Return the same without reference counts, for functions that make no array themselves.

        To count references to arrays in tuples takes five times as long as what an inner loop does with them, and to
        compile the counting takes as long as to compile the loop.
        """
        return _kept(function, {"nogil": True, "_nrt": False})

    def inlined(function: CompiledFunction) -> CompiledFunction:
        """Return a part of uncounted functions, which LLVM copies into each of them; in Python it runs as it stands.

        To copy it before types are known (`inline="always"`) would take twice as long to compile, for the same speed.
        """
        return register_jitable(_nrt=False, forceinline=True, no_cfunc_wrapper=True)(function)

    def _kept(function: CompiledFunction, options: dict[str, Any]) -> CompiledFunction:
        njit = cast(Any, numba.njit)
        try:
            made = njit(cache=True, **options)(function)
        except RuntimeError as error:  # numba looks for a folder that it may write to when it decorates
            if "no locator available" not in str(error):
                raise
            _progress.is_kept = False
            made = njit(**options)(function)
            made._cache = cast(Any, _ReadOnly)(function)  # noqa: SLF001 - numba has no other way to load without saving
        if hasattr(made, "_cache"):  # numba looks at this before it reads the rest, which may name types of long ago
            made._cache._cache_file._version = numba.__version__, _sources(function.__module__)  # noqa: SLF001
        return cast(CompiledFunction, made)

    @cache
    def _sources(module: str) -> tuple[tuple[str, float, int], ...]:
        """Return name, time and size of the modules whose code and types are in the machine code of a module.

        Numba itself notices a change only in the file of the function that is called.
        """
        found, waiting = dict[str, tuple[str, float, int]](), [module]
        while waiting:
            name = waiting.pop()
            if isinstance(name, str) and name.startswith("makespan.") and name not in found:
                file = Path(str(sys.modules[name].__file__)).stat()
                found[name] = name, file.st_mtime, file.st_size
                waiting += [getattr(value, "__module__", "") for value in vars(sys.modules[name]).values()]
        return tuple(sorted(found.values()))

    class _Beside(caching.InTreeCacheLocator):
        """Machine code that lies beside its module, whether or not anything can be written there."""

        def ensure_cache_path(self) -> None:
            """Nothing will be written."""

    class _BesideImpl(caching.CompileResultCacheImpl):
        _locator_classes = [_Beside]  # noqa: RUF012 - as in numba

    class _ReadOnly(caching.FunctionCache):
        """The machine code that an installation was shipped with; what is compiled later is not kept."""

        _impl_class = _BesideImpl

        def save_overload(self, sig: Any, data: Any) -> None:
            """Do not keep what was compiled."""

    class _CompilationListener(event.Listener):
        """A line before each function is compiled, which takes seconds, but not for those that it needs itself."""

        def __init__(self) -> None:
            self.is_kept = True
            self._is_told = False
            self._depth = 0

        def on_start(self, event: Any) -> None:
            """Say that a function is being compiled."""
            function = event.data["dispatcher"].py_func
            if self._depth == 0 and function.__module__.startswith("makespan."):
                self._say(f"{function.__module__.rpartition('.')[2]}.{function.__name__}")
            self._depth += 1

        def on_end(self, event: Any) -> None:
            """Wait for the next one."""
            del event
            self._depth -= 1

        def _say(self, name: str) -> None:
            if not self.is_kept and not self._is_told:
                self._is_told = True
                _log.warning(NOT_KEPT)
            _log.info("compiling %s%s", name, ", once per installation" if self.is_kept else "")

    _progress = _CompilationListener()
    cast(Any, event).register("numba:compile", _progress)
