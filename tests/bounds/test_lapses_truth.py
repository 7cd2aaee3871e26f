"""The bounds with lapses against the longest schedules of tiny instances, by the definition of a cycle."""

from collections import Counter
from collections.abc import Callable
from functools import partial
from random import Random

import pytest

from makespan.model.instance import Instance
from makespan.model.result import Upper
from makespan.proof.bounds.lapses import lapse_proofs
from tests import lapsing
from tests.oracle import longest_schedule

COUNT, STATES = 40, 200
"""Instances of each kind in `make test`, and the most states of each."""

SOAK, MORE_STATES = 30_000, 1000
"""The same in `make soak`."""

BREAKS = ("own credit", "no fence", "one window")


def plain(random: Random, widths: tuple[int | None, ...] = (1, 1, None)) -> Instance:
    machine = lapsing.plain_machine(random, widths)
    return lapsing.instance(random, machine, ahead=False, barriers=random.random() < 0.3)


def multiprocessor(random: Random, *, barriers: bool) -> Instance:
    return lapsing.instance(random, lapsing.multiprocessor(random), ahead=True, barriers=barriers)


KINDS: dict[str, tuple[Upper, Callable[[Random], Instance]]] = {
    "1'": (Upper.PESSIMISTIC, plain),
    "1S": (Upper.THEOREM_1S, partial(multiprocessor, barriers=False)),
    "1S with barriers": (Upper.THEOREM_1S, partial(multiprocessor, barriers=True)),
    "E": (Upper.THEOREM_E, partial(plain, widths=(None, None, None, 1))),
}


def compare(kind: str, random: Random, count: int, most_states: int) -> Counter[str]:
    """Compare so many bounds with the truth, and count what is seen."""
    evidence, draw = KINDS[kind]
    found = Counter[str]()
    while found["instances"] < count:
        instance = draw(random)
        if not any(group.program.has_lapses for group in instance.groups):
            continue
        proof = next((proof for proof in lapse_proofs(instance) if proof.base.evidence == evidence), None)
        if proof is None or (longest := longest_schedule(instance, most_states)) is None:
            found["other bound" if proof is None else "too many states"] += 1
            continue
        charges = partial(lapsing.charges, instance, theorem_e=evidence is Upper.THEOREM_E)
        proven = proof.base.upper + charges()
        assert longest <= proven, (kind, longest, proof, instance, [g.program.lapses for g in instance.groups])
        # the product counts fences twice beside theorem E, as they may stand for waits of some warps
        fences = charges() - charges(broken="no fence") if evidence is Upper.THEOREM_E else 0
        assert proof.upper <= proven + fences
        found["instances"] += 1
        found["attained"] += longest == proven
        found["bound without lapses too small"] += longest > proof.base.upper
        for broken in BREAKS:
            found[f"{broken}: too small"] += longest > proof.base.upper + charges(broken=broken)
    return found


@pytest.mark.parametrize("kind", KINDS)
def test_no_schedule_is_longer_than_the_bound(kind: str) -> None:
    found = compare(kind, Random(3), COUNT, STATES)
    assert found["bound without lapses too small"] > COUNT / 2
    assert found["attained"] > COUNT / 10
    # what is left out in these would be missed
    assert found["own credit: too small"]
    assert found["no fence: too small"]


@pytest.mark.soak
@pytest.mark.parametrize("kind", KINDS)
def test_no_schedule_of_many_is_longer_than_the_bound(kind: str) -> None:
    found = compare(kind, Random(4), SOAK, MORE_STATES)
    print(f"\n{kind}: {dict(found)}")
    assert found["own credit: too small"]
    assert found["no fence: too small"]
    assert found["one window: too small"] or kind != "1S with barriers"
