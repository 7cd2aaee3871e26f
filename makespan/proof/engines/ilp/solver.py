"""The worst case by integer linear programming: CBC (from PuLP), in a process that can be killed.

What the solver proves is taken with care:

* PuLP calls a solution "Optimal" even after a time limit; only `sol_status == LpSolutionOptimal` proves it.
* The best schedule of a solver that was stopped proves nothing from above. Its bound does; it is in the log only.
* A bound is rounded outward, to the next whole cycle above it.
"""

import math
import re
import shutil
import signal
import subprocess
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

from makespan.host.errors import BrokenPromiseError, InputError, UnsupportedError
from makespan.host.tool import temporary_folder
from makespan.model.instance import Instance
from makespan.proof.engines.engine import Finding
from makespan.proof.engines.ilp import NAME
from makespan.proof.engines.ilp.model import FORMS, IlpModel, IlpValues, build, pulp, shape
from makespan.proof.engines.limits import Limits

MOST_TERMS = 5_000_000
"""Coefficients up to which a programme is built: PuLP takes about 2 s and 250 MB for a million."""

_TOLERANCE = 2e-3
"""By how much a bound may be off: CBC prints three decimals, and accepts errors of 1e-6."""

_INFINITY = 1e20
"""What CBC prints for "no bound" lies beyond this."""

_SECONDS_PER_LOOK = 0.05
_GRACE_SECONDS = 2.0
"""How long a solver that was told to stop may take to write down what it has."""


class _SolverAnswer(NamedTuple):
    """The answer of a solver: values of a solution, whether it is optimal, and a lower bound on the objective."""

    values: IlpValues | None = None
    optimal: bool = False
    infeasible: bool = False
    least: float | None = None


def solve(instance: Instance, limits: Limits, *, horizon: int, form: str = "published") -> Finding:
    """Return the worst case of equal strings over C and L, or bounds and schedule so far at a time limit.

    Args:
        horizon: a proven upper bound on the worst case, in cycles.
        form: `published`, or `tightened`, which has the same answer and is solved much faster.

    Raises:
        InputError: an unknown form.
        UnsupportedError: an instance that the ILP does not describe.
        BrokenPromiseError: no schedule fits into the horizon.
    """
    if form not in FORMS:
        raise InputError(f"unknown ILP {form!r}; known: {', '.join(FORMS)}")
    size = shape(instance, horizon)
    if horizon < len(size.letters):
        raise BrokenPromiseError(f"{len(size.letters)} instructions do not fit into a horizon of {horizon} cycles")
    if (terms := size.terms(form)) > MOST_TERMS:
        limits.progress(f"no ILP: about {terms} coefficients are more than the limit of {MOST_TERMS}")
        return Finding()
    model = build(instance, horizon, form, lambda: limits.expired)
    if model is None or limits.expired:
        return Finding()
    limits.progress(f"ILP: {model.problem.numVariables()} binaries, {model.problem.numConstraints()} rows")
    with temporary_folder() as folder:
        answer = _cbc(model, folder, limits)
    return _finding(model, answer, horizon)


def _finding(model: IlpModel, answer: _SolverAnswer, horizon: int) -> Finding:
    if answer.infeasible:
        raise BrokenPromiseError(f"no schedule ends within {horizon} cycles: the horizon is not an upper bound")
    witness = None if answer.values is None else model.schedule(answer.values)
    if answer.optimal and witness is not None:
        return Finding(witness, witness.makespan, NAME)
    # the objective is the negative makespan, so its lower bound is an upper bound; floor, as cycles are whole
    upper = None if answer.least is None else math.floor(_TOLERANCE - answer.least)
    if upper is None or upper >= horizon:
        return Finding(witness)
    return Finding(witness, upper, NAME)


def _cbc(model: IlpModel, folder: Path, limits: Limits) -> _SolverAnswer:
    solver = pulp().COIN_CMD(path=cbc_path(), msg=False)
    files = {name: folder / name for name in ("model.mps", "solution", "log")}
    written = model.problem.writeMPS(str(files["model.mps"]), rename=1)
    options = f"-sec {max(0.01, limits.remaining):.2f} -timeMode elapsed -ratio 0 -allow 0 -solve -printingOptions all"
    command = [solver.path, str(files["model.mps"]), *options.split(), "-solution", str(files["solution"])]
    _run(command, files["log"], limits)
    if not files["solution"].exists():
        return _SolverAnswer()
    status, values, _, _, _, sol_status = solver.readsol_MPS(str(files["solution"]), model.problem, *written[:3])
    return _SolverAnswer(
        values=values if sol_status in (pulp().LpSolutionOptimal, pulp().LpSolutionIntegerFeasible) else None,
        optimal=sol_status == pulp().LpSolutionOptimal,
        infeasible=status == pulp().LpStatusInfeasible and not limits.expired,  # a stopped solver may say so, too
        least=cbc_bound(_text(files["log"])),
    )


def cbc_path() -> str:
    """Return the program CBC: the one inside PuLP, or else the one on the path.

    Raises:
        UnsupportedError: there is none for this platform.
    """
    for path in (pulp().PULP_CBC_CMD.pulp_cbc_path, shutil.which("cbc")):
        if path is not None and pulp().COIN_CMD(path=path).available():
            return str(path)
    raise UnsupportedError("PuLP brings no CBC for this platform; put cbc on the path")


def cbc_bound(log: str) -> float | None:
    """Return the proven lower bound on the objective in a log of CBC.

    Only the final report counts, and only once the first relaxation was solved: before that, the number stands for
    a simplex that was on its way.
    """
    _, solved, rest = log.partition("Continuous objective value is")
    _, ended, report = rest.rpartition("\nResult - ")
    if not (solved and ended):
        return None
    found = re.search(r"^ *Lower bound:\s+(-?\d+(?:\.\d+)?(?:e[+-]?\d+)?)\s*$", report, re.MULTILINE)
    return float(found[1]) if found and abs(float(found[1])) < _INFINITY else None


def _text(path: Path) -> str:
    """Return what a solver wrote; nothing where it was stopped before that."""
    return path.read_text("utf-8", "replace") if path.exists() else ""


def _run(command: Sequence[str], log: Path, limits: Limits) -> None:
    """Run a solver until it ends; past the limits it is asked to stop, then killed."""
    told: float | None = None
    with log.open("wb") as out, _start(command, out) as child:
        try:
            while child.poll() is None:
                with suppress(subprocess.TimeoutExpired):
                    child.wait(_SECONDS_PER_LOOK)
                if limits.interrupted and told is None:
                    child.send_signal(signal.SIGINT)
                if limits.expired and told is None:
                    told = time.monotonic()
                if told is not None and time.monotonic() - told > _GRACE_SECONDS:
                    return
        finally:
            child.kill()


def _start(command: Sequence[str], out: Any) -> "subprocess.Popen[bytes]":
    """Start a process in a session of its own, so that a Ctrl-C for us does not stop it before it is asked to."""
    return subprocess.Popen(  # noqa: S603 - the command is ours
        command, stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.STDOUT, start_new_session=True
    )
