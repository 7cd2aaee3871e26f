"""Exact search in compiled code: one table of all count states where there is time for it, else the states that matter.

The table needs no bounds, but proves nothing before it is full. The search over states profits from certificates,
and lowers what is proven while it runs. So the search has a first try, unless the table takes no time worth saving.
"""

from dataclasses import replace
from math import inf

from makespan.bounds.delays import contracted, expanded
from makespan.certificate import Certificate
from makespan.errors import BrokenPromiseError, UnsupportedError
from makespan.instance import Instance
from makespan.result import Bounds, Upper
from makespan.solve import packed_dense, packed_states
from makespan.solve.finding import Finding
from makespan.solve.limits import Limits

QUICK_STATES = 2_000_000
"""A table of so many states is full in about a second."""

_FIRST_TRY = 0.25
"""What the search over states may take before the table, in terms of the time that the table takes."""

_SLOWER = 1.5
"""How much longer than its processor time a table may take, where others use the machine."""

_STATES_PER_SECOND = 20_000_000
"""More than any table is filled with; only to leave out samples of tables that are far too large."""


def applies(instance: Instance) -> bool:
    """Whether `solve` takes this instance."""
    return _obstacle(instance) is None


def _obstacle(instance: Instance) -> str | None:
    if not instance.machine.only_latencies:
        return f"the machine has {', '.join(instance.machine.beyond_basic)}"
    expansion = expanded(instance)
    return "its latencies are too long" if expansion is None else packed_states.obstacle(expansion.instance)


def is_quick(instance: Instance, limits: Limits) -> bool:
    """Whether the exact answer takes about a second, whatever the certificate."""
    expansion = expanded(instance) if instance.machine.only_latencies else None
    return expansion is not None and _is_quick(expansion.instance, limits)


def _is_quick(instance: Instance, limits: Limits) -> bool:
    return packed_dense.applies(instance, limits.memory_bytes) and packed_dense.count_states(instance) <= QUICK_STATES


def solve(
    instance: Instance, limits: Limits, *, certificate: Certificate | None, incumbent: int, best_case: bool = False
) -> Finding:
    """The worst case, exactly, or what is proven when a limit stops the search; latencies become places.

    Args:
        certificate: where there is one, its potentials prune the search over states.
        incumbent: cycles of a schedule that is already known; only longer ones are looked for.
        best_case: look for the shortest schedule as well.

    Raises:
        UnsupportedError: a state does not fit into a key.
        BrokenPromiseError: the certificate proves nothing, or the table contradicts the incumbent.
    """
    expansion = expanded(instance)
    if (reason := _obstacle(instance)) is not None or expansion is None:
        raise UnsupportedError(f"the packed search cannot take this: {reason}; use backend certificate")
    found = _solve(expansion.instance, limits, certificate, incumbent, best_case=best_case)
    return found if found.witness is None else replace(found, witness=contracted(expansion, found.witness))


def _solve(
    instance: Instance, limits: Limits, certificate: Certificate | None, incumbent: int, *, best_case: bool
) -> Finding:
    with limits.preparing():
        packed_states.load()
        packed_dense.load()
    seconds = 0.0 if _is_quick(instance, limits) else _seconds(instance, limits) * (1 + best_case)
    remaining = limits.remaining
    spare = remaining - _SLOWER * seconds
    found = Finding()
    if seconds:
        part = limits if spare <= 0 else limits.part(min(spare, _FIRST_TRY * seconds) / remaining)
        found = packed_states.solve(instance, part, certificate=certificate, incumbent=incumbent, best_case=best_case)
    if spare <= 0 or limits.expired or _decided(found, incumbent, best_case=best_case):
        return found
    limits.progress(f"search: a table of {packed_dense.count_states(instance)} states")
    return _tabulated(instance, limits, found, incumbent, best_case=best_case)


def _seconds(instance: Instance, limits: Limits) -> float:
    """How long the table takes; infinity where there is none, or it is clearly too large."""
    if not packed_dense.applies(instance, limits.memory_bytes):
        return inf
    if packed_dense.count_states(instance) > limits.remaining * _STATES_PER_SECOND:
        return inf
    return packed_dense.Table(instance, 1).seconds()


def _decided(found: Finding, incumbent: int, *, best_case: bool) -> bool:
    """Whether nothing is left to ask."""
    longest = incumbent if found.witness is None else found.witness.makespan
    known = found.upper is not None and found.upper <= longest
    return known and (not best_case or (found.best_case is not None and found.best_case.lower == found.best_case.upper))


def _tabulated(instance: Instance, limits: Limits, found: Finding, incumbent: int, *, best_case: bool) -> Finding:
    """What the table says or, where a limit comes first, what was found before."""
    shortest = found.best_case
    if best_case:
        least = packed_dense.Table(instance, -1).fill(limits)
        shortest = shortest if least is None else Bounds(-least, -least)
    table = packed_dense.Table(instance, 1)
    most = table.fill(limits)
    if most is None:
        return Finding(found.witness, found.upper, found.evidence, best_case=shortest)
    if most < incumbent:
        raise BrokenPromiseError(f"a table says {most} cycles, but there is a schedule of {incumbent}")
    witness = table.witness() if most > incumbent else None
    return Finding(witness, most, Upper.SEARCH, best_case=shortest)
