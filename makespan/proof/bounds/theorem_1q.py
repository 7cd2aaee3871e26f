"""Theorem 1Q: theorem 1S for machines whose classes have queues before their ports.

A warp that is left out may find all ports of its instruction free: its issue slot went to an instruction that waits in
a queue, or a queue is full and the scheduler issues nothing. But then some queue of its partition is not empty. The
first instruction of that queue is served in this cycle, or a gate of it is full. So the gates of all classes that have
queues count for every warp, and instructions of the last warp itself may be what fills them: they are charged there
from their first cycle on. What the warp takes alone is what it takes without queues.

The bound does not depend on the number of places, and holds for machines without some of the queues. Barriers: the
proof leaves out what is still in a queue when a barrier opens, so there the theorem does not apply.

Source: docs/theory.md, 17, "Queues: theorem 1Q".
"""

from collections.abc import Callable, Iterable
from functools import partial
from itertools import chain

from makespan.model.feature import MULTIPROCESSOR, PROGRAMS, SCHEDULER, TIMES, Feature
from makespan.model.instance import Instance, requires
from makespan.model.lowered import ISSUE_SLOT
from makespan.model.result import Upper, UpperBound
from makespan.proof.bounds.gates import Gate, PortGates
from makespan.proof.bounds.theorem_1s import (
    CostKind,
    Families,
    KindCharges,
    PortPrices,
    families_of,
    least_of_prices,
    one_after_another,
    prices_elsewhere,
)

KNOWS = PROGRAMS | TIMES | SCHEDULER | MULTIPROCESSOR | {Feature.QUEUES}


@requires(KNOWS, "theorem 1Q")
def theorem_1q(instance: Instance) -> UpperBound:
    """Return the bound of theorem 1Q, whose evidence has the name of theorem 1S.

    Raises:
        UnsupportedError: there are barriers, delays as places, or lapses.

    >>> from makespan.model.lapses import NO_LAPSES
    >>> from makespan.model.machine import Machine, UnitClass, UnitQueue
    >>> from makespan.model.strings import parse_string
    >>> units = UnitClass("C", 1), UnitClass("L", 1, interval=3)
    >>> queued = Machine("queued", units, issue_width=1, queues=(UnitQueue("memory", ("L",), 4, blocks=True),))
    >>> loads = parse_string("L()L()C()", queued).lapsing((NO_LAPSES,) * 3)  # else nothing is known of its queues
    >>> theorem_1q(Instance.of(loads, 2, queued)).upper  # 5 alone, 7 of the other warp, 6 of its own L
    18
    """
    ports, queued = PortGates.of(instance.machine), _queued_units(instance)
    before = _gates_behind_queues(instance, ports, queued)
    charge = partial(_charges, queued=queued, before=before)
    families = _families(instance, ports, before)
    found = least_of_prices(instance, ports, families, charge)
    # an instruction of a queue passes its stall first, and its latency and holds perhaps later
    cycles = 2 * one_after_another(instance, ports) if found is None else found
    return UpperBound(cycles, Upper.THEOREM_1S)


def _queued_units(instance: Instance) -> frozenset[str]:
    used = frozenset[str]().union(*(group.program.units for group in instance.groups))
    return used.intersection(chain.from_iterable(queue.units for queue in instance.used_queues))


def _gates_behind_queues(instance: Instance, ports: PortGates, queued: frozenset[str]) -> tuple[Gate, ...]:
    """Return the gates that an instruction out of a queue waits at, or fills with others; never the issue slots."""
    programs = [group.program for group in instance.groups]
    holds = chain.from_iterable(ports.by_class[unit].holds for unit in queued)
    names = frozenset(chain.from_iterable(hold.pools for hold in holds)) - {ISSUE_SLOT}
    return tuple(gate for gate in ports.gates(ports.reservations(*programs)) if names.intersection(gate))


def _families(instance: Instance, ports: PortGates, before: tuple[Gate, ...]) -> Families:
    """Return the gates that can keep z out. Those behind queues always count, whoever z is.

    A warp may be served at several queues in one cycle, so how many of their ports it holds at once is not known.
    """
    found: Families = {}
    for family, places in families_of(instance, ports).items():
        found.setdefault(tuple(dict.fromkeys((*family, *before))), []).extend(places)
    return found


def _charges(
    ports: PortGates, kinds: Iterable[CostKind], prices: PortPrices, *, queued: frozenset[str], before: tuple[Gate, ...]
) -> KindCharges:
    """Return what these kinds cost at these prices.

    Args:
        ports: of the machine.
        kinds: of instructions.
        prices: of the gates that count, those behind queues among them.
        queued: the classes that have a queue.
        before: the gates behind queues.
    """
    kinds = tuple(kinds)
    behind = {gate: prices[gate] for gate in before}
    # z holds no single port that it needs in a cycle that counts, unless something waits in a queue
    several = {gate: price for gate, price in prices.items() if gate in behind or not ports.is_own(gate)}
    shared = prices_elsewhere(ports, prices)

    def at_service(kind: CostKind, charge: Callable[..., int]) -> int:
        """Return the charge of a kind. In a cycle in which a queue serves it, nothing else has to be full."""
        unit = kind.reservation.unit
        if unit not in queued:
            return charge(kind)
        return max(charge(kind), charge(kind, since=1) + prices[(unit,)][unit] * ports.capacities[unit])

    def here(kind: CostKind, since: int = 0) -> int:
        return ports.charge(kind.reservation, prices, since=since)

    def own(kind: CostKind, since: int = 0) -> int:
        early, late = ports.charge(kind.reservation, behind, since=since), max(since, kind.stall)
        at_stall = ports.charge(kind.reservation, behind, since=late)
        return early - at_stall + ports.charge(kind.reservation, several, since=late)

    return KindCharges(
        {kind: at_service(kind, here) for kind in kinds},
        {kind: ports.charge(kind.reservation, shared) for kind in kinds},
        {kind: at_service(kind, own) for kind in kinds},
    )
