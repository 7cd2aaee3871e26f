"""The compiler of inner loops, by the name under which the engines know it."""

from makespan.compiled import COMPILE_SECONDS, compiled, is_quick

__all__ = ["COMPILE_SECONDS", "compiled", "is_quick"]
