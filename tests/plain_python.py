"""Engines without numba: the same functions, run as they stand."""

import json
import subprocess
import sys
from collections.abc import Sequence
from types import ModuleType

from makespan.model.instance import Instance
from makespan.model.machine import Machine
from tests.both import both

_PLAIN = """
import json, sys
from importlib import import_module
sys.modules["numba"] = None
from makespan.model.instance import Instance
from makespan.model.machine import Machine
from makespan.proof.engines import Limits
engine = import_module(sys.argv[1])
for string, warps, c, l in json.loads(sys.argv[2]):
    instance = Instance.of(string, warps, Machine.of({"C": c, "L": l}))
    found = engine.solve(instance, Limits(), certificate=None, incumbent=0)
    best = engine.best_case(instance, Limits())
    print(json.dumps([found.upper, best.lower, found.witness.cycles]))
"""


def check_without_a_compiler(engine: ModuleType, questions: Sequence[tuple[str, int, int, int]]) -> None:
    """Worst case, best case and witness of (string, warps, ports of C, ports of L) are those of the compiled engine."""
    command = [sys.executable, "-W", "error", "-c", _PLAIN, engine.__name__, json.dumps(questions)]
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    assert not run.stderr
    for (string, warps, cores, loads), line in zip(questions, run.stdout.splitlines(), strict=True):
        instance = Instance.of(string, warps, Machine.of({"C": cores, "L": loads}))
        found = both(engine, instance, certificate=None, incumbent=0)
        assert found.witness is not None
        assert found.best_case is not None
        assert json.loads(line) == [found.upper, found.best_case.lower, [list(now) for now in found.witness.cycles]]
