"""Certificates and the witnesses that follow them, coarse and quick first, finer while time lasts."""

from collections.abc import Callable, Hashable, Iterator
from math import lcm
from typing import NamedTuple

from makespan.model.certificate import DELAYED_LABEL, Certificate, Potential, PotentialNode, PotentialTable
from makespan.model.instance import Instance
from makespan.model.machine import DELAY
from makespan.model.result import Upper
from makespan.proof.bounds.conditions import Mode, ProofQuestion
from makespan.proof.bounds.delays import expand_latencies
from makespan.proof.bounds.first_cycles import Front, front
from makespan.proof.bounds.pairing import Pairing
from makespan.proof.bounds.potential import PotentialProof, synthesise
from makespan.proof.bounds.theorem_e import theorem_e
from makespan.proof.engines.certificate import beam
from makespan.proof.engines.engine import Finding
from makespan.proof.engines.limits import Limits

SMALL_PLACES = 40
"""Programs up to this size get the finest certificate right after the quick one."""

FRONT_STATES = 1_000
FRONT_PLACES = 160
FRONT_WARPS = 16
MOST_CYCLES = 600_000
"""Abstract cycles, counted generously, up to which an abstraction is enumerated."""

FIRST_BEAM, QUICK_BEAM = (8, 1), (32, 1)
WIDE_BEAMS = ((256, 2), (1024, 8), (8192, 64))
"""(width, states per place of the laggard) of the beams: one before any certificate, one after each, and wide ones."""

SHARE_OF_TIME = 0.6
"""What one certificate may take of the remaining time, so that some is left for witnesses."""

GROWTH = 3
"""So many times as long as a certificate takes the next finer one, about; what would not end is not begun."""

NodeKey = Callable[[PotentialNode], Hashable]
"""What a part of a node's table depends on."""


class _Level(NamedTuple):
    """The fineness of a certificate.

    Args:
        extra: thresholds above the capacities.
        front_states: the most states in the front.
        others: what the numbers of the others depend on.
        last: what those of the last finisher depend on.
        one_delay: the same numbers for delays in all tables.
    """

    extra: tuple[int, ...]
    front_states: int
    others: NodeKey
    last: NodeKey
    one_delay: bool = True


def improve(instance: Instance, limits: Limits) -> Iterator[Finding]:
    """Yield ever better certificates, each with a quick witness, then what wider beams find.

    Certificates are about the instance with its latencies as places; there are none if these are too many. Beams follow
    the best one, if it proves fewer cycles than theorem E, which wide ones follow otherwise.
    """
    expansion = expand_latencies(instance)
    if expansion is None:
        limits.progress("no certificate: the latencies are more places than an instance may have")
        return
    whole = expansion.instance
    followed = first = _Followed.theorem_e(instance)
    fronts: dict[int, Front | None] = {}
    spent = 0.0
    for level in _levels(whole):
        # the levels become finer and slower: what would not end in time is not begun
        if spent * GROWTH > limits.remaining * SHARE_OF_TIME:
            break
        began = limits.elapsed
        if level.front_states not in fronts:
            fronts[level.front_states] = front(whole, level.front_states, lambda: limits.expired)
        states = fronts[level.front_states]
        certificate = None if states is None else _certificate(whole, level, states, limits)
        spent = limits.elapsed - began
        if certificate is not None:
            limits.progress(f"certificate: at most {certificate.upper} cycles")
            yield Finding(upper=certificate.upper, evidence=Upper.POTENTIAL, certificate=certificate)
            if followed is None or certificate.upper < followed.upper:
                followed = _Followed(certificate.upper, certificate.potentials)
                yield from _witnesses(instance, followed, QUICK_BEAM, limits)
    for wide in (QUICK_BEAM, *WIDE_BEAMS) if followed == first else WIDE_BEAMS:
        yield from _witnesses(instance, followed, wide, limits)


def follow_theorem_e(instance: Instance, limits: Limits) -> Iterator[Finding]:
    """Yield what a narrow beam finds before there is a certificate, where it knows the instance."""
    return _witnesses(instance, _Followed.theorem_e(instance), FIRST_BEAM, limits)


class _Followed(NamedTuple):
    """The potentials that beams follow, one for every group that may hold the laggard, and the bound they say."""

    upper: int
    potentials: tuple[Potential, ...]

    @classmethod
    def theorem_e(cls, instance: Instance) -> "_Followed | None":
        """Return the potentials of theorem E, where the beam knows the instance."""
        bound = None if instance.beyond(beam.KNOWS) else theorem_e(instance)
        return None if bound is None else cls(bound.upper, theorem_e_potentials(instance))


def _witnesses(
    instance: Instance, followed: _Followed | None, size: tuple[int, int], limits: Limits
) -> Iterator[Finding]:
    """Yield what a beam of this size finds for every group that may hold the laggard, where it knows the instance."""
    if followed is None or instance.beyond(beam.KNOWS):
        return
    with limits.preparing():
        beam.load()
    for potential in followed.potentials:
        witness = None if limits.expired else beam.search(instance, potential, *size, limits)
        if witness is not None:
            limits.progress(f"beam of {size[0]} states: at least {witness.makespan} cycles")
            yield Finding(witness=witness)


def _levels(instance: Instance) -> list[_Level]:
    classes = len(set().union(*(group.program.units for group in instance.groups)) - {DELAY})
    places = sum(group.program.end for group in instance.groups)
    none, all_of = (0,) * classes, (1,) * classes
    states = FRONT_STATES if places <= FRONT_PLACES and instance.warps <= FRONT_WARPS else 1
    quick = _Level(none, 1, stop_ahead, stop_ahead)
    finest = _Level(all_of, states, stop_and_kind, stop_and_kind, one_delay=places > FRONT_PLACES)
    if places <= SMALL_PLACES and instance.machine.is_basic:
        return [quick, finest]
    return [
        quick,
        _Level(none, 1, stop_ahead, stop_and_class),
        _Level(none, 1, stop_ahead, stop_and_kind),
        _Level(all_of, 1, stop_ahead, stop_and_kind),
        finest,
    ]


def _certificate(instance: Instance, level: _Level, states: Front, limits: Limits) -> Certificate | None:
    """Return one potential for every group that may hold the last finisher; None if one is too large or late."""
    proofs: list[PotentialProof] = []
    # the last finisher of any schedule is in one of the groups, so the certificate needs a potential of each
    for last in range(len(instance.groups)):
        question = ProofQuestion(instance, last)
        shape = question.abstraction(level.extra)
        if shape.most_cycles(MOST_CYCLES) > MOST_CYCLES or limits.expired:
            return None
        seconds = limits.remaining * SHARE_OF_TIME

        def mode(node: PotentialNode) -> Mode:
            return Mode(level.others(node), level.last(node))

        proof = synthesise(question, shape, states, seconds, mode, lambda: limits.expired, one_delay=level.one_delay)
        if proof is None:
            return None
        proofs.append(proof)
    return Certificate(max(proof.upper for proof in proofs), tuple(proof.potential for proof in proofs))


def stop_ahead(node: PotentialNode) -> int:
    """Return where the last finisher is at the next stop, which is this one if the node is a stop."""
    if node.label is not None:
        return node.label
    return DELAYED_LABEL if node.last is None else node.last


def stop_and_class(node: PotentialNode) -> Hashable:
    """Return the stop ahead, the last finisher's class, and how many others are ready for that."""
    return stop_ahead(node), node.last, None if node.last is None else node.kind[node.last]


def stop_and_kind(node: PotentialNode) -> Hashable:
    """Return the stop ahead and the kind; the last finisher's class counts only at stops, where it lies ahead."""
    return stop_ahead(node), node.kind


def theorem_e_potentials(instance: Instance) -> tuple[Potential, ...]:
    """Return one potential for every group that may hold the laggard.

    All classes count, and every place has its largest reserve. In the table of class Y (docs/theory.md, 3, invariants I
    and J) a warp has its mass left, less what pairs still to come take, and less what is open toward another class than
    Y; the laggard has its letters left, less one where it needs another class than Y. A beam asks for no proof, so caps
    are the masses: larger ones guide worse.
    """
    capacities = instance.machine.capacities
    classes = tuple(unit for unit in capacities if any(unit in group.program.units for group in instance.groups))
    scale = lcm(*(capacities[unit] for unit in classes))
    masses = {unit: scale // capacities[unit] for unit in classes}
    rows = [_left_and_open(Pairing.scan(group.program, masses, masses)) for group in instance.groups]
    steps = [group.program.sums(dict.fromkeys(classes, scale), max) for group in instance.groups]
    units = [[place.unit for place in group.program.places] for group in instance.groups]
    kind = (0,) * len(classes)
    numbers = range(len(classes))
    nodes = tuple((PotentialNode(last, kind, label), label) for last in numbers for label in numbers)

    def table(last: int, label: str) -> PotentialTable:
        others = (
            tuple(left - (unit != label) * opened for unit, (left, opened) in zip(own, row, strict=True))
            for own, row in zip(units, rows, strict=True)
        )
        laggard = (left - (unit != label) * scale for unit, left in zip(units[last], steps[last], strict=False))
        return PotentialTable(tuple(others), tuple(laggard), 0)

    return tuple(
        Potential(last, classes, kind, 0, tuple(table(last, label) for label in classes), nodes)
        for last in range(len(instance.groups))
    )


def _left_and_open(pairing: Pairing) -> list[tuple[int, int]]:
    """Return, for every place, the most mass from there on less what pairs take, and what is open toward it."""
    program, masses = pairing.program, pairing.masses
    left = [0] * (program.end + 1)
    for at in range(program.end - 1, -1, -1):
        unit, successors = program.places[at]
        most = masses[unit] - pairing.reserves[at][-1]
        ahead = [left[after] for after in successors]  # a heuristic, so the largest reserve stands for all
        for number, after in enumerate(successors):
            if after != program.end and program.places[after].unit != unit:
                ahead[number] -= min(most, pairing.limits[after])
        left[at] = masses[unit] + max(ahead)
    return [(left[at], reserves[-1]) for at, reserves in enumerate(pairing.reserves)]
