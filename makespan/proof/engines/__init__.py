"""Solve: choose engines, combine what they prove, and replay every witness before anybody sees it."""

from makespan.proof.engines.limits import Limits
from makespan.proof.engines.phased import solve
from makespan.proof.engines.portfolio import BACKENDS, ENGINES

__all__ = ["BACKENDS", "ENGINES", "Limits", "solve"]
