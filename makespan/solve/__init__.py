"""Solve: choose engines, combine what they prove, and replay every witness before anybody sees it."""

from makespan.solve.limits import Limits
from makespan.solve.phased import solve
from makespan.solve.portfolio import BACKENDS

__all__ = ["BACKENDS", "Limits", "solve"]
