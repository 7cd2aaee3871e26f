"""Solve: choose engines, combine what they prove, and replay every witness before anybody sees it."""

from makespan.solve.limits import Limits
from makespan.solve.portfolio import BACKENDS, solve

__all__ = ["BACKENDS", "Limits", "solve"]
