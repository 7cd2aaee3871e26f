"""What `import makespan` promises."""

import subprocess
import sys

import pytest

import makespan


def test_every_public_name_exists() -> None:
    assert [name for name in makespan.__all__ if not hasattr(makespan, name)] == []


def test_completion_shows_the_public_names_and_nothing_else() -> None:
    assert dir(makespan) == sorted(makespan.__all__)
    assert {"read_kernel", "Launch", "solve_gpu", "gpu_instance", "replay", "KernelQuestion"} <= set(dir(makespan))


def test_a_name_that_does_not_exist_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="module 'makespan' has no attribute 'magic'"):
        _ = makespan.magic


@pytest.mark.parametrize(
    "before", ["pass", "from makespan import solve", "import makespan.proof.engines", "import makespan.cli.solve"]
)
def test_solve_is_the_function_whatever_was_imported_before(before: str) -> None:
    code = f"{before}\nfrom makespan import Instance, solve\nassert solve(Instance.of('CLLCLL', 2)).bounds.upper == 10"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_the_package_loads_no_heavy_library() -> None:
    heavy = {"numpy", "matplotlib", "ortools", "numba", "networkx", "lark", "pulp", "pandas", "jinja2"}
    code = f"import makespan, sys; print(*sorted({heavy} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert done.stdout.split() == []


def test_commands_load_the_front_end_of_kernels_only_for_a_kernel() -> None:
    modules = "makespan.cli.solve, makespan.deadlines.command, makespan.estimates.commands.question"
    loaded = "{'makespan.kernels.ptx', 'makespan.kernels.question'} & set(sys.modules)"
    code = f"import {modules}, sys; print(*sorted({loaded}))"
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert done.stdout.split() == []
