"""HiGHS on an MPS file, as a program of its own, so that it can be killed.

It uses the HiGHS inside OR-Tools. The package `highspy` cannot be loaded beside OR-Tools: both bring a HiGHS, and the
symbols clash.
"""

import json
import signal
import sys
import time
from pathlib import Path


def main(model_file: str, result_file: str, improving_file: str, until: str) -> None:
    """Minimise until the given time of day in seconds, with a log on stdout.

    Args:
        model_file: the programme, as MPS.
        result_file: receives the status and, when optimal, the value of every variable, as JSON.
        improving_file: receives every better solution as soon as it is found; OR-Tools loses them at a time limit.
        until: seconds since the epoch.
    """
    from ortools.linear_solver.python import model_builder_helper as engine

    signal.signal(signal.SIGINT, signal.SIG_DFL)
    model = engine.ModelBuilderHelper()
    if not model.import_from_mps_file(model_file):
        sys.exit(f"{model_file}: not an MPS file")
    solver = engine.ModelSolverHelper("highs")
    solver.enable_output(True)
    solver.set_solver_specific_parameters(
        "output_flag=true\nlog_to_console=true\nthreads=1\nmip_rel_gap=0\n"
        f"mip_improving_solution_save=true\nmip_improving_solution_file={improving_file}"
    )
    solver.set_time_limit_in_seconds(max(0.01, float(until) - time.time()))
    solver.solve(model)
    values = {}
    if solver.status() == engine.SolveStatus.OPTIMAL:
        values = {model.var_name(v): solver.variable_value(v) for v in range(model.num_variables())}
    _write(Path(result_file), json.dumps({"status": solver.status().name, "values": values}))


def _write(path: Path, text: str) -> None:
    """Whole or not at all, for we may be killed at any time."""
    part = path.with_suffix(".part")
    part.write_text(text, "utf-8")
    part.replace(path)


if __name__ == "__main__":
    main(*sys.argv[1:])
