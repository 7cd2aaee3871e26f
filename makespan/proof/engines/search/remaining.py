"""What bounds the remaining cycles of a state, as arrays for the packed search.

A potential certificate gives its bound together with the least decrease d of the potential in a cycle. The
certificate does not store d, so it is measured here, in integers and over all conditions of theorem H; a certificate
that does not satisfy them is refused.
"""

from collections.abc import Callable
from itertools import accumulate

import numpy as np

from makespan.host.errors import BrokenPromiseError
from makespan.model.certificate import Certificate, Potential, PotentialTable, rank
from makespan.model.instance import Instance
from makespan.model.machine import DELAY
from makespan.model.program import Program
from makespan.proof.bounds.conditions import Mode, ProofQuestion, conditions
from makespan.proof.bounds.potential import dominates
from makespan.proof.bounds.potential import least_decrease as measured_decrease
from makespan.proof.bounds.tables import Arrays
from makespan.proof.engines.search import states_compiled_store as layout

_LARGEST = 1 << 62


def _never() -> bool:
    return False


def worst_case(
    instance: Instance, certificate: Certificate | None, stop: Callable[[], bool] = _never
) -> layout.RestBounds:
    """Return what says how long it still takes at most: the pessimistic bound and the potentials of a certificate.

    Raises:
        BrokenPromiseError: the certificate proves nothing.
        Stopped: `stop` said so while the certificate was measured.
    """
    proofs = certificate.potentials if certificate is not None and _fits(instance, certificate) else ()
    steps = {potential.last_group: least_decrease(instance, potential, stop) for potential in proofs}
    return _rest(instance, {potential.last_group: potential for potential in proofs}, steps, most=True)


def best_case(instance: Instance) -> layout.RestBounds:
    """Return what says how long it still takes at least: paths and work that cannot be avoided."""
    return _rest(instance, {}, {}, most=False)


def classes(instance: Instance) -> tuple[str, ...]:
    """Return the unit classes that some warp uses, in the order in which potentials count them; delays come last."""
    delays = (DELAY,) if any(DELAY in group.program.units for group in instance.groups) else ()
    return (*ProofQuestion(instance, 0).classes, *delays)


def least_decrease(instance: Instance, potential: Potential, stop: Callable[[], bool] = _never) -> int:
    """Return by how much every legal cycle lowers the potential, at least.

    Raises:
        BrokenPromiseError: a condition of theorem H does not hold, so the potential proves nothing.
        Stopped: `stop` said so.
    """
    question = ProofQuestion(instance, potential.last_group)
    sigma = (instance.machine.capacities[unit] for unit in question.classes)
    if potential.classes != question.classes:
        raise BrokenPromiseError(f"the certificate is about classes {potential.classes}, not {question.classes}")
    extra = tuple(threshold - capacity for threshold, capacity in zip(potential.thresholds, sigma, strict=True))
    shape = question.abstraction(extra)
    tables = {Mode(number, number): _arrays(table) for number, table in enumerate(potential.tables)}
    modes = {node: Mode(number, number) for node, number in potential.nodes}
    if missing := {node for situation in shape.situations for node in shape.nodes_of(situation)} - set(modes):
        raise BrokenPromiseError(f"the certificate has no table for {len(missing)} nodes")
    # a certificate is not trusted: all conditions of theorem H are made and measured again
    required = conditions(shape, modes.__getitem__, stop)
    if not dominates(question, required, tables):
        raise BrokenPromiseError("a potential of the certificate rises for a warp that waits")
    step = measured_decrease(question, required, tables)
    if step <= 0:
        raise BrokenPromiseError("a potential of the certificate does not fall in every cycle")
    return step


def _arrays(table: PotentialTable) -> Arrays:
    others = tuple(np.array([*own, 0], dtype=np.int64) for own in table.others)
    return Arrays(others, np.append(_last(table), 0))


def _last(table: PotentialTable) -> np.ndarray:
    """Return the last finisher's numbers with the constant, which counts as long as that warp is unfinished."""
    return np.array(table.last, dtype=np.int64) + table.constant


def _fits(instance: Instance, certificate: Certificate) -> bool:
    """Return whether all sums of the certificate's numbers fit into 64 bits."""
    tables = [table for potential in certificate.potentials for table in potential.tables]
    numbers = (abs(n) for table in tables for own in (*table.others, table.last, (table.constant,)) for n in own)
    # else a sum in the inner loop could wrap around, and prune what it must not
    return 2 * max(numbers, default=0) * (instance.warps + 2) < _LARGEST


def _rest(
    instance: Instance, potentials: dict[int, Potential], least: dict[int, int], *, most: bool
) -> layout.RestBounds:
    programs = [group.program for group in instance.groups]
    units = classes(instance)
    begin = list(accumulate((program.end for program in programs), initial=0))
    tables = [(group, table) for group, potential in potentials.items() for table in potential.tables]
    others = np.zeros((len(tables), begin[-1]), dtype=np.int64)
    ends = np.zeros((len(tables), begin[-1]), dtype=np.int64)
    for row, (group, table) in enumerate(tables):
        own = slice(begin[group], begin[group + 1])
        others[row] = np.concatenate(table.others)
        ends[row, own] = _last(table) - others[row, own]  # the sum over all warps has z among the others
    thresholds = np.zeros((len(programs), len(units)), dtype=np.int64)  # potentials count no delays
    first, nodes, before = [0], [], 0
    for group in range(len(programs)):
        if potential := potentials.get(group):
            counted = potential.thresholds
            thresholds[group, : len(counted)] = counted
            nodes += [(first[-1] + rank(node, counted), before + table) for node, table in potential.nodes]
            before += len(potential.tables)
        first.append(first[-1] + len(units) * int((thresholds[group] + 1).prod()))
    nodes.sort()
    return layout.RestBounds(
        work=np.array([_all_counts(programs, unit, most) for unit in units], dtype=np.int64),
        length=np.array(_all_counts(programs, None, most), dtype=np.int64),
        begin=np.array(begin, dtype=np.int64),
        thresholds=thresholds,
        rank_first=np.array(first, dtype=np.int64),
        node_first=np.searchsorted([number for number, _ in nodes], np.arange(first[-1] + 1)),
        table=np.array([table for _, table in nodes], dtype=np.int64),
        others=others,
        ends=ends,
        step=np.array([least.get(group, 0) for group in range(len(programs))], dtype=np.int64),
    )


def _all_counts(programs: list[Program], unit: str | None, most: bool) -> list[int]:
    return [count for program in programs for count in program.counts(unit, max if most else min)[:-1]]
