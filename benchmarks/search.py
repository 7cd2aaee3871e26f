"""How fast the exact searches are: states and leaves a second, compiled and plain, with known answers asserted.

    python -m benchmarks.search

One JSON line per measurement. `leaves` are generated states, `seconds` is processor time without compiling. The plain
path is the same code without Numba, in a process of its own; it gets a smaller question. `every state` visits those
that can be reached, `table` fills in all there are. The last line compares the plain path with the compiled one.
"""

import argparse
import json
import subprocess
import sys
import time

from makespan.engines import Limits
from makespan.engines.certificate import improve
from makespan.engines.search import choose, packing, remaining, states, table
from makespan.engines.search import states_compiled as loops
from makespan.instance import Instance
from makespan.machine import Machine
from makespan.program import Place, Program
from makespan.simulate import replay

STRING = "LLLLCCCCCCCCCLLCCCCCCC"
WORST = {(1, 2): 41, (1, 3): 60, (1, 4): 79, (1, 5): 98, (1, 6): 117, (1, 7): 136, (1, 8): 155, (2, 6): 77, (2, 8): 99}
"""Worst cases by C units and warps; L has one unit. Theorem E gives those at (1,1), the plain search the others."""


FORKED = 98
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
    places[3] = Place("L", (4, 5))
    return Program(tuple(places))


def measure(
    label: str, program: str | Program, warps: int, units: int, expected: int, *, words: int = 1
) -> dict[str, object]:
    """Visit every reachable state: no certificate, no incumbent, floor 0."""
    instance = Instance.of(program, warps, Machine.of({"C": units, "L": 1}))
    problem = packing.Problem.of(instance)
    assert problem.words == words
    task = states.Task(problem, 1, remaining.worst_case(instance, None), Limits(seconds=600))
    best = None
    for _ in range(3):
        began = time.process_time()
        run = states.Run(task, 0)
        value = run.search()
        seconds = time.process_time() - began
        assert value == expected, (value, expected)
        best = seconds if best is None else min(best, seconds)
    witness = run.witness()
    assert witness is not None
    assert replay(instance, witness) == expected
    expanded, leaves = int(run.cursor[loops.EXPANDED]), int(run.cursor[loops.LEAVES])
    assert best is not None
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
    }


def tabulate(warps: int, units: int, expected: int) -> dict[str, object]:
    """Fill in the table of all count states."""
    instance = Instance.of(STRING, warps, Machine.of({"C": units, "L": 1}))
    filled = table.Table(instance, 1)
    forecast = filled.seconds()
    began = time.process_time()
    value = filled.fill(Limits(seconds=600))
    seconds = time.process_time() - began
    assert value == expected, (value, expected)
    assert replay(instance, filled.witness()) == expected
    number = table.count_states(instance)
    return {
        "what": "table",
        "program": STRING,
        "warps": warps,
        "C": units,
        "L": 1,
        "seconds": round(seconds, 3),
        "forecast_seconds": round(forecast, 3),
        "states": number,
        "states_per_second": round(number / seconds),
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
        print(json.dumps(measure("every state, not compiled", STRING, 3, 1, WORST[1, 3])), flush=True)
        return
    choose.solve(Instance.of("CL", 2), Limits(seconds=600), certificate=None, incumbent=0)
    quick = measure("every state", STRING, 8, 1, WORST[1, 8])
    print(json.dumps(quick), flush=True)
    print(json.dumps(measure("every state, 128 bits", forked(), 5, 1, FORKED, words=2)), flush=True)
    print(json.dumps(measure("every state", STRING, 6, 2, WORST[2, 6])), flush=True)
    print(json.dumps(tabulate(8, 1, WORST[1, 8])), flush=True)
    print(json.dumps(tabulate(8, 2, WORST[2, 8])), flush=True)
    print(json.dumps(prove(8, 2, WORST[2, 8])), flush=True)
    print(json.dumps(prove(8, 1, WORST[1, 8])), flush=True)
    plain = subprocess.run([sys.executable, "-c", WITHOUT], check=True, capture_output=True, text=True).stdout
    print(plain, end="")
    ratio = float(str(quick["leaves_per_second"])) / json.loads(plain)["leaves_per_second"]
    print(json.dumps({"what": "compiled over plain, leaves a second", "ratio": round(ratio, 1)}), flush=True)


if __name__ == "__main__":
    main()
