"""A linear programme collected row by row as arrays, and solved by HiGHS inside OR-Tools.

Variables are free, rows are `sum coefficient * variable >= constant`, the objective is one variable to minimise.
The interior point method without crossover is five times faster here than GLOP's or HiGHS's simplex; its small
errors do no harm, because whoever uses the solution rounds it and measures it exactly.
"""

import threading
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import partial

import numpy as np
from numpy.typing import NDArray
from ortools.linear_solver.python import model_builder_helper as engine

_QUICK = "solver=ipm\nrun_crossover=off\noutput_flag=false"
_CAREFUL = "solver=ipm\noutput_flag=false"
"""With crossover, for the degenerate programmes, mostly small ones, on which the quick way stalls."""

_INFINITY = float("inf")
_SECONDS_PER_LOOK = 0.05
_TERMS_PER_LOOK = 1 << 14

Columns = NDArray[np.int64]
SolutionValues = NDArray[np.float64]
LinearTerm = tuple[Columns, SolutionValues | float]
"""Variables and their coefficients, one for all or one for each."""


@dataclass
class Programme:
    """Rows and variables so far; a variable is an index, and -1 stands for the constant zero."""

    variables: int = 0
    rows: int = 0
    _blocks: list[tuple[Columns, Columns, SolutionValues]] = field(default_factory=list)
    _constants: list[np.ndarray] = field(default_factory=list)

    def new(self, count: int) -> np.ndarray:
        """Return the indices of `count` new variables."""
        self.variables += count
        return np.arange(self.variables - count, self.variables)

    def at_least(self, terms: Iterable[LinearTerm], constant: float) -> None:
        """Add a row for every index: the sum of coefficient times variable is at least `constant`."""
        wide = list(terms)
        size = max(max(np.size(columns), np.size(values)) for columns, values in wide)
        rows = np.arange(self.rows, self.rows + size)
        for columns, values in wide:
            every, factors = np.broadcast_to(columns, size), np.broadcast_to(values, size)
            used = every >= 0  # -1 stands for zero, which adds nothing
            whole = bool(used.all())
            self._blocks.append((rows, every, factors) if whole else (rows[used], every[used], factors[used]))
        self._constants.append(np.full(size, float(constant)))
        self.rows += size

    def minimise(
        self, variable: int, seconds: float, stop: Callable[[], bool] = lambda: False
    ) -> SolutionValues | None:
        """Return all variables where `variable` is smallest; None when time ran out or `stop` said so."""
        model = engine.ModelBuilderHelper()
        for _ in range(self.variables):
            model.set_var_lower_bound(model.add_var(), -_INFINITY)
        for constant in np.concatenate(self._constants).tolist():
            model.set_constraint_lower_bound(model.add_linear_constraint(), constant)
        for number, (row, column, value) in enumerate(zip(*self._terms(), strict=True)):
            if number % _TERMS_PER_LOOK == 0 and stop():
                return None
            model.add_term_to_constraint(row, column, value)
        model.set_var_objective_coefficient(variable, 1.0)
        until = time.monotonic() + seconds
        for options in (_QUICK, _CAREFUL):  # the values need only be near: they are rounded, and measured exactly
            left = until - time.monotonic()
            if left <= 0 or stop():
                return None
            solver = engine.ModelSolverHelper("highs")
            solver.set_solver_specific_parameters(options)
            solver.set_time_limit_in_seconds(left)
            if not _finishes(partial(solver.solve, model), stop):
                solver.interrupt_solve()  # the thread ends by itself
                return None
            if solver.status() == engine.SolveStatus.OPTIMAL:
                return np.asarray(solver.variable_values())
        return None

    def _terms(self) -> tuple[list[int], list[int], list[float]]:
        """Return rows, columns and coefficients, each pair once, as the solver demands."""
        rows = np.concatenate([block[0] for block in self._blocks])
        columns = np.concatenate([block[1] for block in self._blocks])
        values = np.concatenate([block[2] for block in self._blocks])
        pairs, which = np.unique(rows * self.variables + columns, return_inverse=True)
        sums = np.bincount(which, weights=values)
        kept = sums != 0
        row, column = np.divmod(pairs[kept], self.variables)
        return row.tolist(), column.tolist(), sums[kept].tolist()


def _finishes(work: Callable[[], None], stop: Callable[[], bool]) -> bool:
    """Run `work` beside a look at `stop` every now and then; work that is stopped is left to end by itself.

    The interpreter waits for it before it exits: a solver that is torn down while it works aborts the process.
    """
    thread = threading.Thread(target=work)
    thread.start()
    while thread.is_alive():
        thread.join(_SECONDS_PER_LOOK)
        if stop():
            return False
    return True
