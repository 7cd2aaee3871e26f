"""How fast the exact searches are: states and leaves a second, compiled and plain, with known answers asserted.

    python -m benchmarks.search

One JSON line per measurement. `leaves` are generated states, `seconds` is processor time without compiling, the least
of three runs. The plain path is the same code without Numba, in a process of its own; it gets a smaller question.
`every state` visits those that can be reached, `table` fills in all there are. Each stands beside flat_hash.cpp, a loop
in C++ over the states that can be reached, with the same keys, run in turn; `ratio` is its time over ours.
"""

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import NamedTuple

from benchmarks import cpp
from makespan.model.instance import Instance
from makespan.model.machine import Machine
from makespan.model.program import Program, ProgramPlace
from makespan.model.simulate import replay
from makespan.proof.engines import Limits
from makespan.proof.engines.certificate import improve
from makespan.proof.engines.search import choose, packing, remaining, states, table
from makespan.proof.engines.search import states_compiled as loops
from makespan.proof.engines.search import states_compiled_store as layout

STRING = "LLLLCCCCCCCCCLLCCCCCCC"
WORST = {(1, 2): 41, (1, 3): 60, (1, 4): 79, (1, 5): 98, (1, 6): 117, (1, 7): 136, (1, 8): 155, (2, 6): 77, (2, 8): 99}
"""Worst cases by C units and warps; L has one unit. Theorem E gives those at (1,1), the plain search the others."""


FORKED = {(1, 5): 98, (2, 7): 88}
"""Worst cases of `forked` in the same way, the second by both loops."""

RUNS = 3
WITHOUT = """
import sys
sys.modules["numba"] = None
sys.argv[1:] = ["--plain"]
from benchmarks.search import main
main()
"""


def forked() -> Program:
    """The string with a choice: after the last of the first four L, one C may be skipped. Keys are wider for it."""
    places = list(Program.chain(STRING).places)
    places[3] = ProgramPlace("L", (4, 5))
    return Program(tuple(places))


class Loop(NamedTuple):
    """What the loop in C++ says: the worst case, states, leaves, and seconds of the processor."""

    value: int
    states: int
    leaves: int
    seconds: float


def built(folder: str) -> Path | None:
    """The loop in C++, compiled; None where there is no compiler."""
    try:
        return cpp.built("flat_hash.cpp", Path(folder), "-O3", "-march=native")
    except FileNotFoundError as error:
        print(json.dumps({"what": f"nothing beside: {error}"}), flush=True)
        return None


def looped(program: Path, problem: packing.Problem) -> Loop:
    """Run it once."""
    asked = " ".join(map(str, _numbers(problem)))
    said = subprocess.run([program], input=asked, check=True, capture_output=True, text=True).stdout
    value, expanded, leaves, seconds = said.split()
    return Loop(int(value), int(expanded), int(leaves), float(seconds))


def _numbers(problem: packing.Problem) -> Iterator[int]:
    """The problem as the loop in C++ reads it."""
    one, starts = problem.automaton, list(problem.starts())
    fields = {base: number for number, (_, _, _, base, end) in enumerate(one.fields.tolist()) if not end}
    counter = [fields.get(code, -1) for code in range(len(one.unit))]
    for values in (one.sigma, one.unit, one.first, one.successors, one.height):
        yield from (len(values), *values.tolist())
    yield from (len(counter), *counter)
    yield from (len(one.fields), *chain.from_iterable(one.fields.tolist()), problem.words, len(starts))
    for state in starts:
        first, *others = problem.words_of(state, 0).tolist()
        yield from (first % (1 << int(one.high)), *others, problem.layer(state))


def measure(
    loop: Path | None,
    label: str,
    program: str | Program,
    warps: int,
    units: int,
    expected: int,
    *,
    words: int = 1,
) -> dict[str, object]:
    """Visit every reachable state: no certificate, no incumbent, floor 0."""
    instance = Instance.of(program, warps, Machine.of({"C": units, "L": 1}))
    problem = packing.Problem.of(instance)
    assert problem.words == words
    task = states.SearchTask(problem, 1, remaining.worst_case(instance, None), Limits(seconds=600))
    ours, theirs = [], []
    for _ in range(RUNS):
        began = time.process_time()
        run = states.FloorSearch(task, 0)
        value = run.search()
        ours.append(time.process_time() - began)
        assert value == expected, (value, expected)
        theirs += [] if loop is None else [looped(loop, problem)]
    witness = run.witness()
    assert witness is not None
    assert replay(instance, witness) == expected
    expanded, leaves, best = int(run.cursor[layout.EXPANDED]), int(run.cursor[layout.LEAVES]), min(ours)
    assert all(one[:3] == (expected, expanded, leaves) for one in theirs), theirs
    return {
        "what": label,
        "compiled": hasattr(loops.advance, "py_func"),
        "program": str(program),
        "warps": warps,
        "C": units,
        "L": 1,
        "words": words,
        "seconds": round(best, 3),
        "states": expanded,
        "leaves": leaves,
        "leaves_per_second": round(leaves / best),
        "states_per_second": round(expanded / best),
        **_compared(best, theirs),
    }


def tabulate(loop: Path | None, warps: int, units: int, expected: int) -> dict[str, object]:
    """Fill in the table of all count states."""
    instance = Instance.of(STRING, warps, Machine.of({"C": units, "L": 1}))
    problem, filled = packing.Problem.of(instance), table.CountTable(instance, 1)
    forecast = filled.seconds()
    ours, theirs = [], []
    for _ in range(RUNS):
        began = time.process_time()
        value = filled.fill(Limits(seconds=600))
        ours.append(time.process_time() - began)
        assert value == expected, (value, expected)
        theirs += [] if loop is None else [looped(loop, problem)]
    assert replay(instance, filled.witness()) == expected
    assert all(one.value == expected for one in theirs), theirs
    number, best = table.count_states(instance), min(ours)
    return {
        "what": "table",
        "program": STRING,
        "warps": warps,
        "C": units,
        "L": 1,
        "seconds": round(best, 3),
        "forecast_seconds": round(forecast, 3),
        "states": number,
        "states_per_second": round(number / best),
        **_compared(best, theirs),
    }


def _compared(best: float, loop: list[Loop]) -> dict[str, object]:
    """The loop in C++ at its best, and its time over ours."""
    if not loop:
        return {}
    other = min(loop, key=lambda one: one.seconds)
    return {
        "c++_seconds": round(other.seconds, 3),
        "c++_states": other.states,
        "c++_states_per_second": round(other.states / other.seconds),
        "ratio": round(other.seconds / best, 2),
    }


def prove(warps: int, units: int, expected: int) -> dict[str, object]:
    """Close the gap between the first certificate and a beam's witness."""
    instance = Instance.of(STRING, warps, Machine.of({"C": units, "L": 1}))
    proof, incumbent = None, 0
    for found in improve.improve(instance, Limits(seconds=600)):
        proof = proof or found.certificate
        if found.witness is not None:
            incumbent = found.witness.makespan
            break
    began = time.process_time()
    answer = states.solve(instance, Limits(seconds=600), certificate=proof, incumbent=incumbent)
    seconds = time.process_time() - began
    assert answer.upper == expected
    assert proof is not None
    return {
        "what": "proof with a certificate",
        "program": STRING,
        "warps": warps,
        "C": units,
        "L": 1,
        "certificate": proof.upper,
        "incumbent": incumbent,
        "exact": answer.upper,
        "seconds": round(seconds, 3),
    }


def main() -> None:
    """Measure, print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--plain", action="store_true", help="only the small question, without the compiler")
    given = parser.parse_args()
    if given.plain:
        print(json.dumps(measure(None, "every state, not compiled", STRING, 3, 1, WORST[1, 3])), flush=True)
        return
    choose.solve(Instance.of("CL", 2), Limits(seconds=600), certificate=None, incumbent=0)
    with tempfile.TemporaryDirectory() as folder:
        loop = built(folder)
        quick = measure(loop, "every state", STRING, 8, 1, WORST[1, 8])
        print(json.dumps(quick), flush=True)
        print(json.dumps(measure(loop, "every state", STRING, 6, 2, WORST[2, 6])), flush=True)
        print(json.dumps(measure(loop, "every state", STRING, 8, 2, WORST[2, 8])), flush=True)
        for (units, warps), worst in FORKED.items():
            found = measure(loop, "every state, 128 bits", forked(), warps, units, worst, words=2)
            print(json.dumps(found), flush=True)
        for units in (1, 2):
            print(json.dumps(tabulate(loop, 8, units, WORST[units, 8])), flush=True)
    print(json.dumps(prove(8, 2, WORST[2, 8])), flush=True)
    print(json.dumps(prove(8, 1, WORST[1, 8])), flush=True)
    plain = subprocess.run([sys.executable, "-c", WITHOUT], check=True, capture_output=True, text=True).stdout
    print(plain, end="")
    ratio = float(str(quick["leaves_per_second"])) / json.loads(plain)["leaves_per_second"]
    print(json.dumps({"what": "compiled over plain, leaves a second", "ratio": round(ratio, 1)}), flush=True)


if __name__ == "__main__":
    main()
