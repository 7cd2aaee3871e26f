"""Exact search in compiled code: one table of all count states where there is time for it, else the states that matter.

The table needs no bounds, but proves nothing before it is full. The search over states profits from certificates,
and lowers what is proven while it runs. So the search has a first try, unless the table takes no time worth saving.
"""

from dataclasses import replace
from math import inf

from makespan.host.errors import BrokenPromiseError, UnsupportedError
from makespan.model.certificate import Certificate
from makespan.model.feature import PROGRAMS, Feature
from makespan.model.instance import Instance
from makespan.model.result import Bounds, Status, Upper
from makespan.proof.bounds.delays import Expansion, contract_schedule, expand_latencies
from makespan.proof.engines.engine import Finding
from makespan.proof.engines.limits import Limits
from makespan.proof.engines.search import packing, states, table

KNOWS = PROGRAMS | {Feature.LATENCIES}

QUICK_STATES = 20_000_000
"""A table of so many states is full in about a second."""

VAST_STATES = 10**15
"""Among so many states a search ends within minutes only if next to nothing is left to prove."""

_FIRST_TRY = 0.25
"""What the search over states may take before the table, in terms of the time that the table takes."""

_SLOWER = 1.5
"""How much longer than its processor time a table may take, where others use the machine."""

_STATES_PER_SECOND = 500_000_000
"""More than any table is filled with; only to leave out samples of tables that are far too large."""


def applies(instance: Instance) -> bool:
    """Return whether `solve` takes this instance."""
    return _obstacle(instance) is None


def _obstacle(instance: Instance) -> str | None:
    if beyond := instance.beyond(KNOWS):
        return f"it does not know {', '.join(beyond)}"
    expansion = expand_latencies(instance)
    return "its latencies are too long" if expansion is None else packing.obstacle(expansion.instance)


def is_quick(instance: Instance, limits: Limits) -> bool:
    """Return whether the exact answer takes about a second, whatever the certificate."""
    expansion = None if instance.beyond(KNOWS) else expand_latencies(instance)
    return expansion is not None and _is_quick(expansion.instance, limits)


def is_vast(instance: Instance) -> bool:
    """Return whether there are so many states that time is better spent on certificates."""
    expansion = None if instance.beyond(KNOWS) else expand_latencies(instance)
    return expansion is not None and table.count_states(expansion.instance) > VAST_STATES


def spare(instance: Instance, limits: Limits) -> float | None:
    """Return the share of the time that is left over beside a table that is full in time; None without a table."""
    expansion = None if instance.beyond(KNOWS) else expand_latencies(instance)
    if expansion is None:
        return None
    with limits.preparing():
        table.load()
    left = limits.remaining - _SLOWER * _seconds(expansion.instance, limits)
    return left / limits.remaining if left > 0 else None


def _is_quick(instance: Instance, limits: Limits) -> bool:
    return table.applies(instance, limits.memory_bytes) and table.count_states(instance) <= QUICK_STATES


def solve(instance: Instance, limits: Limits, *, certificate: Certificate | None, incumbent: int) -> Finding:
    """Return the worst case, exactly, or what is proven when a limit stops the search; latencies become places.

    Args:
        certificate: where there is one, its potentials prune the search over states.
        incumbent: cycles of a schedule that is already known; only longer ones are looked for.

    Raises:
        UnsupportedError: a state does not fit into a key.
        BrokenPromiseError: the certificate proves nothing, or the table contradicts the incumbent.
    """
    expansion = _expand(instance)
    whole, found = expansion.instance, Finding()
    share, tabulates = _shares(whole, limits)
    if share is not None:
        found = states.solve(whole, share, certificate=certificate, incumbent=incumbent)
    # what the search leaves open, the table closes
    longest = incumbent if found.witness is None else found.witness.makespan
    if tabulates and not limits.expired and (found.upper is None or found.upper > longest):
        found = _solve_by_table(whole, limits, found, incumbent)
    return found if found.witness is None else replace(found, witness=contract_schedule(expansion, found.witness))


def best_case(instance: Instance, limits: Limits) -> Bounds | None:
    """Return the best case in the same way, exactly, or what is proven when a limit stops the search, if anything.

    Raises:
        UnsupportedError: a state does not fit into a key.
    """
    whole = _expand(instance).instance
    share, tabulates = _shares(whole, limits)
    found = None if share is None else states.best_case(whole, share)
    if tabulates and not limits.expired and (found is None or found.status is Status.BOUNDED):
        limits.progress(_progress(whole))
        least = table.CountTable(whole, -1).fill(limits)
        return found if least is None else Bounds(-least, -least)
    return found


def _expand(instance: Instance) -> Expansion:
    expansion = expand_latencies(instance)
    if (reason := _obstacle(instance)) is not None or expansion is None:
        raise UnsupportedError(f"the packed search cannot take this: {reason}; use backend certificate")
    return expansion


def _shares(instance: Instance, limits: Limits) -> tuple[Limits | None, bool]:
    """Return the budget of the search over states, if that begins, and whether the table follows."""
    with limits.preparing():
        table.load()
    if _is_quick(instance, limits):
        return None, True  # no search: the table alone is exact in about a second
    with limits.preparing():
        states.load()
    seconds, remaining = _seconds(instance, limits), limits.remaining
    spare = remaining - _SLOWER * seconds
    if spare <= 0:
        return limits, False  # a table that is not full proves nothing
    return limits.part(min(spare, _FIRST_TRY * seconds) / remaining), True


def _seconds(instance: Instance, limits: Limits) -> float:
    """Return how long the table takes; infinity where there is none, or it is clearly too large."""
    if not table.applies(instance, limits.memory_bytes):
        return inf
    if table.count_states(instance) > limits.remaining * _STATES_PER_SECOND:
        return inf
    return table.CountTable(instance, 1).seconds()


def _solve_by_table(instance: Instance, limits: Limits, found: Finding, incumbent: int) -> Finding:
    limits.progress(_progress(instance))
    filled = table.CountTable(instance, 1)
    most = filled.fill(limits)
    if most is None:
        return found
    if most < incumbent:  # the table is exact, and a schedule a fact: one of the two is wrong
        raise BrokenPromiseError(f"a table says {most} cycles, but there is a schedule of {incumbent}")
    return Finding(filled.witness() if most > incumbent else None, most, Upper.SEARCH)


def _progress(instance: Instance) -> str:
    return f"search: a table of {table.count_states(instance)} states"
