"""Numba where it is installed; without it the same functions run as plain Python, slower but identical."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar, cast

Function = TypeVar("Function", bound=Callable[..., Any])

COMPILE_SECONDS = 20.0
"""What it takes at most to compile a kernel on a slow machine; it happens once per installation."""

try:
    import numba
except ImportError:

    def compiled(function: Function) -> Function:
        """The function as it is."""
        return function

    def uncounted(function: Function) -> Function:
        """The function as it is."""
        return function

    def inlined(function: Function) -> Function:
        """The function as it is."""
        return function

    def is_quick(function: Callable[..., Any], seconds: float) -> bool:
        """Nothing has to be compiled."""
        del function, seconds
        return True
else:

    def compiled(function: Function) -> Function:
        """The function in machine code, kept on disk, and without the interpreter lock."""
        return cast(Function, numba.njit(nogil=True, cache=True)(function))

    def uncounted(function: Function) -> Function:
        """The same without reference counts, for functions that make no array themselves.

        To count references to arrays in tuples takes five times as long as what an inner loop does with them.
        """
        return cast(Function, cast(Any, numba.njit)(nogil=True, cache=True, _nrt=False)(function))

    def inlined(function: Function) -> Function:
        """A part of uncounted functions, copied into each of them."""
        return cast(Function, cast(Any, numba.njit)(nogil=True, inline="always", _nrt=False)(function))

    def is_quick(function: Callable[..., Any], seconds: float) -> bool:
        """Whether `function` is compiled already, in memory or on disk, or can be within `seconds`."""
        kernel = cast(Any, function)
        kept = Path(kernel.stats.cache_path).glob(f"{kernel.__module__.rpartition('.')[2]}.{kernel.__name__}-*.nbi")
        return bool(kernel.signatures) or seconds > COMPILE_SECONDS or any(kept)
