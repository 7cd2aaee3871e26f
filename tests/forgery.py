"""Bundles and what a forger does to them; certificates come from the engine, verdicts never."""

import copy
import random
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from typing import Any

from makespan.model.certificate import Certificate
from makespan.model.instance import Instance
from makespan.model.machine import Machine
from makespan.model.program import Program, ProgramPlace
from makespan.model.result import Bounds, Result, Upper
from makespan.model.simulate import replay
from makespan.proof.bounds.conditions import ProofQuestion
from makespan.proof.bounds.first_cycles import Front, _starts, front
from makespan.proof.bounds.potential import synthesise
from makespan.proof.engines import Limits, solve
from makespan.proof.engines.construct import greedy
from makespan.proof.engines.search import plain as search
from makespan.report.result.bundle import result_bundle
from makespan.verify import digest

Document = dict[str, Any]
CHOICE = Program(
    (ProgramPlace("C", (1, 2)), ProgramPlace("L", (2,)), ProgramPlace("L", (3, 4)), ProgramPlace("C", (4,))), (0,)
)


def certificate(instance: Instance, *, extra: int = 0, states: int = 1) -> Certificate:
    """What the linear programme finds, from a front of at most so many states; 0: from the start."""
    first = front(instance, max(states, 1))
    assert first is not None
    if states == 0:
        first = Front(0, frozenset(_starts(instance)))
    proofs = []
    for last in range(len(instance.groups)):
        question = ProofQuestion(instance, last)
        proof = synthesise(question, question.abstraction(extra), first, 60)
        assert proof is not None
        proofs.append(proof)
    return Certificate(max(proof.upper for proof in proofs), tuple(proof.potential for proof in proofs))


def by_potential(instance: Instance) -> Result:
    """A result that rests on its certificate."""
    proof = certificate(instance, states=0)
    witness = max(greedy.schedules(instance, Limits()), key=lambda schedule: replay(instance, schedule))
    bounds = Bounds(witness.makespan, proof.upper)
    found = replace(solve(instance), bounds=bounds, witness=witness, history=())
    return replace(found, upper_evidence=Upper.POTENTIAL, certificate=proof, weights=())


def by_search(instance: Instance) -> Result:
    """A result that rests on a search; with the best case."""
    found = search.solve(instance, Limits())
    assert found.witness is not None
    assert found.upper is not None
    return replace(
        solve(instance, best_case=True),
        bounds=Bounds(found.upper, found.upper),
        witness=found.witness,
        upper_evidence=Upper.SEARCH,
        weights=(),
        history=(),
    )


def _machine(c: int, l: int) -> Machine:  # noqa: E741
    return Machine.of({"C": c, "L": l})


@cache
def results() -> tuple[Result, ...]:
    """One for every kind of evidence and of program."""
    return (
        solve(Instance.of("CLLCLL", 4)),
        solve(Instance.of("CCLCL", 3), best_case=True),
        solve(Instance.of("CLCLCL", 2)),
        solve(Instance.merged([(CHOICE, 1), (Program.chain("CCL"), 1)], _machine(1, 2)), best_case=True),
        solve(Instance.merged([(Program.chain("CLL"), 2), (Program.chain("LCLC"), 1)])),
        by_search(Instance.of("CLLCL", 4, _machine(2, 1))),
        by_search(Instance.merged([(CHOICE, 2), (Program.chain("LLC"), 1)], _machine(2, 1))),
        by_potential(Instance.of("CLCCL", 4, _machine(2, 1))),
        by_potential(Instance.of("LLCC", 5, _machine(2, 2))),
        by_potential(Instance.merged([(CHOICE, 3), (Program.chain("LC"), 2)], _machine(2, 1))),
    )


@cache
def bundles() -> tuple[Document, ...]:
    return tuple(result_bundle(result) for result in results())


def forged(document: Document, change: Callable[[Document], None]) -> Document:
    """A changed copy with a digest that fits."""
    copied = copy.deepcopy(document)
    change(copied)
    return {**copied, "sha256": digest(copied)}


def set_bounds(document: Document, lower: int, upper: int) -> None:
    status = "exact" if lower == upper else "bounded"
    document["result"].update(lower=lower, upper=upper, status=status, history=[])


def upper_lowered(draw: random.Random, document: Document) -> None:
    result = document["result"]
    set_bounds(document, result["lower"], result["upper"] - 1)
    if document["certificate"] is not None and draw.random() < 0.5:
        document["certificate"]["upper"] -= 1


def lower_raised(draw: random.Random, document: Document) -> None:
    result = document["result"]
    set_bounds(document, result["lower"] + 1, max(result["upper"], result["lower"] + 1))
    if draw.random() < 0.5:
        draw.choice(document["witness"]["cycles"])[0] += 1


def unfold(document: Document) -> list[list[int]]:
    return [list(warps) for count, warps in document["witness"]["cycles"] for _ in range(count)]


def witness_swapped(draw: random.Random, document: Document) -> None:
    """Two cycles change places, a warp takes another's turn, or one instruction moves to another cycle."""
    cycles = unfold(document)
    a, b = draw.randrange(len(cycles)), draw.randrange(len(cycles))
    kind = draw.randrange(3)
    if kind == 0:
        cycles[a], cycles[b] = cycles[b], cycles[a]
    elif kind == 1:
        cycles[a][draw.randrange(len(cycles[a]))] = draw.randrange(document["result"]["warps"])
    elif len(cycles[a]) > 1:
        cycles[b].append(cycles[a].pop(draw.randrange(len(cycles[a]))))
    document["witness"]["cycles"] = [[1, sorted(warps)] for warps in cycles]


def letter_changed(draw: random.Random, document: Document) -> None:
    """Another program, everywhere."""
    groups = document["instance"]["groups"]
    number = draw.randrange(len(groups))
    if "string" in groups[number]:
        letters = list(groups[number]["string"])
        place = draw.randrange(len(letters))
        letters[place] = "C" if letters[place] == "L" else "L"
        groups[number]["string"] = document["result"]["groups"][number]["program"] = "".join(letters)
        if document["result"]["string"] is not None:
            document["result"]["string"] = "".join(letters)
    else:
        place = draw.choice(groups[number]["places"])
        place[0] = "C" if place[0] == "L" else "L"


def capacity_changed(draw: random.Random, document: Document) -> None:
    """Another machine, everywhere."""
    unit = draw.choice("CL")
    now = document["instance"]["machine"]["capacity"][unit]
    capacity = draw.choice([value for value in range(1, 5) if value != now])
    document["instance"]["machine"]["capacity"][unit] = document["result"]["capacity"][unit] = capacity


def damaged(draw: random.Random, document: Any) -> Any:
    """A copy with one number one off, or one item of a list gone, twice, or in the place of another."""
    copied = copy.deepcopy(document)
    some = _lists(copied)
    part = draw.choice(some)
    key = draw.choice(list(part) if isinstance(part, dict) else range(len(part)))
    match part[key], draw.randrange(4):
        case int(value), _:
            part[key] = max(0, value + draw.choice((-1, 1)))
        case _, 0 if isinstance(part, list):
            part.insert(key, copy.deepcopy(part[key]))
        case _, 1 if isinstance(part, list):
            del part[key]
        case _, _ if isinstance(part, list):
            other = draw.randrange(len(part))
            part[key], part[other] = part[other], part[key]
    return copied


def _lists(part: Any) -> list[Any]:
    """All lists and objects in it."""
    entries = part.values() if isinstance(part, dict) else part if isinstance(part, list) else ()
    return ([part] if entries else []) + [inner for entry in entries for inner in _lists(entry)]
