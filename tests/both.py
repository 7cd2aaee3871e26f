"""Worst and best case of an instance by one engine."""

from dataclasses import replace
from types import ModuleType
from typing import Any

from makespan.model.instance import Instance
from makespan.proof.engines import Limits
from makespan.proof.engines.engine import Finding


def both(engine: ModuleType, instance: Instance, limits: Limits | None = None, **known: Any) -> Finding:
    """What `engine` finds, with its best case."""
    budget = limits or Limits()
    found: Finding = engine.solve(instance, budget, **known)
    return replace(found, best_case=engine.best_case(instance, budget))
