"""Numba where it is installed; without it the same functions run as plain Python, slower but identical."""

from collections.abc import Callable
from typing import Any, TypeVar, cast

Function = TypeVar("Function", bound=Callable[..., Any])

try:
    import numba
except ImportError:
    AVAILABLE = False

    def compiled(function: Function) -> Function:
        """The function as it is."""
        return function
else:
    AVAILABLE = True

    def compiled(function: Function) -> Function:
        """The function in machine code, kept on disk, and without the interpreter lock."""
        return cast(Function, numba.njit(nogil=True, cache=True)(function))
