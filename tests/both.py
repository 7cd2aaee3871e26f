"""Worst and best case of an instance by one engine, and the worst case by the plain search."""

from dataclasses import replace
from functools import cache
from types import ModuleType
from typing import Any

from makespan.model.instance import Instance
from makespan.proof.engines import Limits
from makespan.proof.engines.engine import Finding
from makespan.proof.engines.search import plain


def both(engine: ModuleType, instance: Instance, limits: Limits | None = None, **known: Any) -> Finding:
    """What `engine` finds, with its best case."""
    budget = limits or Limits()
    found: Finding = engine.solve(instance, budget, **known)
    return replace(found, best_case=engine.best_case(instance, budget))


@cache
def truth(instance: Instance) -> int:
    """The worst case, by the search that brute force confirms."""
    upper = plain.solve(instance, Limits()).upper
    assert upper is not None
    return upper
