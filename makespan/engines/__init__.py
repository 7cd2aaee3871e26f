"""Solve: choose engines, combine what they prove, and replay every witness before anybody sees it."""

from makespan.engines.limits import Limits
from makespan.engines.phased import solve
from makespan.engines.portfolio import BACKENDS, ENGINES

__all__ = ["BACKENDS", "ENGINES", "Limits", "solve"]
