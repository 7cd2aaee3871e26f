"""The worst case by constraint programming: OR-Tools CP-SAT on the model of `cpsat.model`."""

import math
from concurrent.futures import ThreadPoolExecutor, wait
from typing import Any

from makespan.host.errors import BrokenPromiseError
from makespan.model.instance import Instance, requires
from makespan.model.schedule import Schedule
from makespan.proof.bounds.conditions import Stopped
from makespan.proof.engines.cpsat import NAME
from makespan.proof.engines.cpsat.model import KNOWS, CpModel, booleans, build
from makespan.proof.engines.engine import Finding
from makespan.proof.engines.limits import Limits

MOST_BOOLEANS = 2_000_000
"""Up to so many a model is built: Python takes about 20 s and 2 GB for these."""

_TOLERANCE = 1e-6
_SECONDS_PER_LOOK = 0.05


@requires(KNOWS, "CP-SAT")
def solve(
    instance: Instance,
    limits: Limits,
    *,
    horizon: int,
    hint: Schedule | None = None,
    workers: int = 1,
    seed: int = 0,
) -> Finding:
    """Return the worst case of any strings and automata; bounds and schedule so far at a time limit.

    With one worker the answer is always the same, unless a limit stops it.

    Args:
        horizon: a proven upper bound on the worst case, in cycles.
        hint: a work-conserving schedule to start from.
        workers: threads of the solver.
        seed: of the solver's random numbers.

    Raises:
        UnsupportedError: the instance has barriers.
        BrokenPromiseError: no schedule fits into the horizon, or the hint does not.
    """
    if hint is not None and hint.makespan > horizon:
        raise BrokenPromiseError(f"a schedule of {hint.makespan} cycles exceeds the upper bound of {horizon}")
    if (size := booleans(instance, horizon)) > MOST_BOOLEANS:
        limits.progress(f"no CP-SAT: about {size} booleans are more than the limit of {MOST_BOOLEANS}")
        return Finding()
    try:
        model = build(instance, horizon, hint=hint, stop=lambda: limits.expired)
    except Stopped:
        return Finding()
    limits.progress(f"CP-SAT: about {size} booleans, {len(model.problem.proto.constraints)} constraints")
    return _run(model, limits, workers, seed)


def _run(model: CpModel, limits: Limits, workers: int, seed: int) -> Finding:
    from ortools.sat.python import cp_model

    solver = cp_model.CpSolver()
    solver.parameters.num_workers = workers
    solver.parameters.random_seed = seed
    solver.parameters.linearization_level = 0  # with relaxations, one worker is 3 to 50 times slower on these models
    solver.parameters.catch_sigint_signal = False
    solver.parameters.max_time_in_seconds = max(0.01, limits.remaining)
    solver.parameters.max_memory_in_mb = max(256, limits.memory_bytes >> 20)
    status = _solve_in_thread(solver, model, limits)
    if status == cp_model.INFEASIBLE:
        raise BrokenPromiseError(f"no schedule ends within {model.horizon} cycles: the horizon is not an upper bound")
    if status == cp_model.MODEL_INVALID:
        raise BrokenPromiseError(f"CP-SAT refuses the model: {model.problem.validate()}")
    if status not in (cp_model.OPTIMAL, cp_model.FEASIBLE):
        return Finding()  # before the first schedule the solver's bound may be a mere 0
    witness = model.schedule(solver.value)
    # the schedule is read from the booleans, so it must take as many cycles as the objective says
    claim = round(solver.objective_value)
    if witness.makespan < claim or (status == cp_model.OPTIMAL and witness.makespan > claim):
        raise BrokenPromiseError(f"CP-SAT claims {claim} cycles with a schedule of {witness.makespan}")
    if status == cp_model.OPTIMAL:
        return Finding(witness, witness.makespan, NAME)
    upper = math.floor(solver.best_objective_bound + _TOLERANCE)
    return Finding(witness, upper, NAME) if upper < model.horizon else Finding(witness)


def _solve_in_thread(solver: Any, model: CpModel, limits: Limits) -> Any:
    with ThreadPoolExecutor(1) as pool:  # so that this thread hears of an interrupt, and can stop the search
        search = pool.submit(solver.solve, model.problem, _progress(limits))
        try:
            while not wait([search], _SECONDS_PER_LOOK).done:
                if limits.expired:
                    solver.stop_search()
        finally:
            while not wait([search], _SECONDS_PER_LOOK).done:
                solver.stop_search()
    return search.result()


def _progress(limits: Limits) -> Any:
    from ortools.sat.python import cp_model

    class SolutionProgress(cp_model.CpSolverSolutionCallback):
        def on_solution_callback(self) -> None:
            least, most = round(self.objective_value), math.floor(self.best_objective_bound + _TOLERANCE)
            limits.progress(f"CP-SAT: between {least} and {most} cycles")

    return SolutionProgress()
