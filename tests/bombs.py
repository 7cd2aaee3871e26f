"""Small bundles that ask for much: each must be answered within 1.5 GiB, the limit of `python -m tests.bombs`.

A claim here is too small to follow from the pessimistic bound, so that the checker tries all that it knows. With
`--tenth` it may spend a tenth of the steps, and a third of the memory.
"""

import json
import random
import resource
import sys
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any
from unittest.mock import patch

from makespan.model.instance import Group, Instance
from makespan.model.machine import Latency, Machine, UnitClass
from makespan.model.program import Program, ProgramPlace
from makespan.model.result import Bounds, Result, Upper
from makespan.model.simulate import run
from makespan.proof.bounds import pessimistic
from makespan.report.result.bundle import result_bundle
from makespan.verify import digest, parse, verify
from makespan.verify.refusal import ProofBudget
from tests.mutation import copied_along

MOST_BYTES = 3 << 29
Document = dict[str, Any]
ALPHABET = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"


def document(instance: Instance, certificate: Document | None = None, phases: list[Document] | None = None) -> Document:
    """A bundle that claims the shorter schedule of two to be the longest."""
    witness = min((run(instance, policy) for policy in ("oldest", "lrr")), key=lambda made: made.makespan)
    bounds = Bounds(witness.makespan, witness.makespan)
    made = result_bundle(
        Result(instance, bounds, witness, Upper.SEARCH, pessimistic(instance), None, "auto", 0.0, instance.assumptions)
    )
    return signed({**made, "certificate": certificate, "phases": phases or []})


def signed(made: Document) -> Document:
    return {**made, "sha256": digest(made)}


def unit(name: str, capacity: int = 1, interval: int = 1, least: int = 1, most: int = 1) -> UnitClass:
    return UnitClass(name, capacity, interval, Latency(least, most))


def certificate(classes: str, thresholds: list[int], *, front: int = 0, groups: int = 1) -> Document:
    """Potentials without tables."""
    rest = {"classes": list(classes), "thresholds": thresholds, "front": front, "tables": [], "nodes": []}
    return {"upper": 10**9, "potentials": [{"last_group": group, **rest} for group in range(groups)]}


def thresholds(most: int, width: int | None = None) -> Document:
    slow = Machine("m", (unit("C", least=2, most=2), unit("L")), width)
    return document(Instance.of("CLC", 3, slow), certificate("CL", [most, most]))


def many_that_stay() -> Document:
    machine = Machine("m", tuple(unit(name, most=2) for name in ALPHABET[:9]), 1)
    return document(Instance.of(ALPHABET[:9], 300, machine), certificate(ALPHABET[:9], [10**6] * 9))


def many_labels() -> Document:
    machine = Machine("m", tuple(unit(name, 9, most=2) for name in "ABCD"))
    return document(Instance.of("ABCD", 40, machine), certificate("ABCD", [11] * 4))


def endless_front() -> Document:
    return document(Instance.of("CLC" * 10, 20, Machine.of({"C": 2, "L": 1})), certificate("CL", [2, 1], front=10**12))


def starting_anywhere(places: int) -> Program:
    """So many C, any of which goes on to the L."""
    return Program(
        (*(ProgramPlace("C", (places,)) for _ in range(places)), ProgramPlace("L", (places + 1,))), tuple(range(places))
    )


def starts() -> Document:
    groups = tuple(Group(starting_anywhere(300 + number), 1) for number in range(4))
    return document(Instance(groups, Machine.of({"C": 2, "L": 1})))


def long_integers() -> Document:
    return document(Instance.of(starting_anywhere(9_000), 3, Machine.of({"C": 2, "L": 1})))


def fork_behind_barriers() -> Document:
    def fork(width: int) -> Program:
        end = width + 2
        last = (ProgramPlace("L", (end,)) for _ in range(width))
        return Program(
            (ProgramPlace("C", (1,)), ProgramPlace("|", tuple(range(2, end))), *last, ProgramPlace("C", (end + 1,)))
        )

    groups = tuple(Group(fork(300 + number), 1) for number in range(4))
    return document(Instance(groups, Machine.of({"C": 2, "L": 1})))


def blocks() -> Document:
    machine = Machine.of({"C": 1000, "L": 1000})
    return document(Instance((Group(Program.chain("CL|" * 9 + "C"), 4096),), machine, 4096))


def held_ports() -> Document:
    machine = Machine("m", tuple(unit(name, 1024, 64) for name in ALPHABET), 1)
    return document(Instance.of(ALPHABET, 12, machine), certificate(ALPHABET, [1024] * 26))


def many_groups() -> Document:
    words = [first + second for first in ALPHABET[:10] for second in ALPHABET]
    groups = (Group(starting_anywhere(300), 1), *(Group(Program.chain(word), 1) for word in words))
    machine = Machine.of(dict.fromkeys(ALPHABET, 1024))
    return document(Instance(groups, machine), certificate(ALPHABET, [1024] * 26, groups=len(groups)))


def progressions() -> Document:
    """A certificate of a few kilobytes with 30 million coefficients, of which each potential has few enough."""
    instance = Instance(tuple(Group(Program.chain("C" * (50_000 + n)), 1) for n in range(5)), Machine.of({"C": 2}))
    sizes = [group.program.end for group in instance.groups]
    made = certificate("C", [2], groups=5)
    for last, potential in zip(sizes, made["potentials"], strict=True):
        table = {"others": [[[0, 0, n]] for n in sizes], "last": [[0, 0, last]], "constant": 0, "ports": []}
        potential["tables"] = [table] * 20
        potential["nodes"] = [[0, [number], None, number] for number in range(20)]
    return document(instance, made)


def long_latencies() -> Document:
    slow = Machine("slow", (unit("C", interval=40, least=8_000, most=8_000),))
    return document(Instance((Group(Program.chain("C"), 1), Group(Program.chain("C" * 60), 1)), slow))


def unfolded_delays() -> Document:
    groups = tuple(Group(Program.chain("C" * (50 + number)), 1) for number in range(9))
    slow = Machine("slow", (unit("C", most=9_000),))
    return document(Instance(groups, slow), certificate("C", [1], groups=9))


BOMBS: dict[str, Callable[[], Document]] = {
    "thresholds of 10^9": partial(thresholds, 10**9),
    "thresholds of 10^12": partial(thresholds, 10**12),
    "thresholds of 10^12, issue width": partial(thresholds, 10**12, 1),
    **{
        made.__name__: made
        for made in (
            many_that_stay, many_labels, endless_front, starts, long_integers, fork_behind_barriers, blocks, held_ports,
            many_groups, progressions, long_latencies, unfolded_delays,
        )
    },
}  # fmt: skip

ABSURD: list[Any] = [
    10**12,
    -(10**12),
    10**99,
    0.5,
    "x" * 10**5,
    [0] * 10**4,
    [[1, 1]] * 10**3,
    {"a": {}},
    json.loads("[" * 400 + "]" * 400),
]

ABSURD_PER_VALUE = 5


def everywhere(made: Document) -> Iterator[tuple[str, Document]]:
    """Every value of a bundle, of long lists the first two, replaced by some of the absurd ones."""
    draw = random.Random(0)
    for path in _paths(made, ()):
        for number in draw.sample(range(len(ABSURD)), ABSURD_PER_VALUE):
            value = ABSURD[number]
            changed, inside = copied_along(made, path[:-1])
            inside[path[-1]] = value
            yield f"{'.'.join(map(str, path))} = {number}", signed(changed)


def _paths(value: Any, path: tuple[Any, ...]) -> Iterator[tuple[Any, ...]]:
    if path and path != ("sha256",):
        yield path
    for key in value if isinstance(value, dict) else range(len(value[:2])) if isinstance(value, list) else ():
        yield from _paths(value[key], (*path, key))


def main(names: list[str]) -> None:
    """Print the outcome of each, with no more memory than `MOST_BYTES`; of a file every change of the bundle in it."""
    is_tenth = names[:1] == ["--tenth"]
    resource.setrlimit(resource.RLIMIT_AS, (MOST_BYTES // (3 if is_tenth else 1),) * 2)
    if is_tenth:
        whole = ProofBudget.part
        patch.object(ProofBudget, "part", lambda effort, most: whole(effort, most // 10)).start()
    for name in names[is_tenth:]:
        file = Path(name)
        made = everywhere(json.loads(file.read_text())) if file.is_file() else [(name, BOMBS[name]())]
        for what, changed in made:
            verdict = verify(parse(json.dumps(changed).encode()))
            print(json.dumps([what, f"{verdict.outcome}: {verdict.reason}"]), flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
