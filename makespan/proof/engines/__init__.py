"""Solve: choose engines, combine what they prove, and replay every witness before anybody sees it."""

from makespan.proof.engines.backends import BACKENDS, ENGINES
from makespan.proof.engines.limits import Limits
from makespan.proof.engines.phased import solve

__all__ = ["BACKENDS", "ENGINES", "Limits", "solve"]
