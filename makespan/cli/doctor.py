"""`makespan doctor`: what this installation has, and the one-time compilation of its inner loops."""

import platform
import time
from importlib.metadata import PackageNotFoundError, version

import click

from makespan.errors import InputError
from makespan.version import __version__

_LIBRARIES = ("numpy", "ortools", "numba", "lark", "networkx", "matplotlib", "pulp")


@click.command("doctor")
def command() -> None:
    """Print versions, and compile the inner loops so that later runs start at once."""
    click.echo(f"makespan {__version__}, Python {platform.python_version()} on {platform.machine()}")
    for library in _LIBRARIES:
        click.echo(f"{library:<11} {_version(library)}")
    click.echo(_compiler())
    began = time.monotonic()
    _run_every_kernel()
    click.echo(f"inner loops ready after {time.monotonic() - began:.1f} s")


def _version(library: str) -> str:
    try:
        return version(library)
    except PackageNotFoundError:
        return "missing (optional; a slower way is taken)" if library == "numba" else "missing"


def _compiler() -> str:
    """What would compile CUDA source, or why nothing would."""
    from makespan.ptx import cuda

    try:
        return f".cu files   compiled by {cuda.choose('.cu').name}"
    except InputError as refusal:
        return str(refusal)


def _run_every_kernel() -> None:
    from makespan.bounds.conditions import Question
    from makespan.bounds.front import Front, front
    from makespan.bounds.potential import synthesise
    from makespan.instance import Instance
    from makespan.machine import Machine, UnitClass
    from makespan.simulate.runner import Runner
    from makespan.solve import Limits, beam, packed_dense, packed_states, two_warps

    instance = Instance.of("CCLLC", warps=3)
    question = Question(instance, 0)
    states = front(instance, 1) or Front(0, frozenset())
    proof = synthesise(question, question.abstraction(0), states, 60.0)
    if proof is not None:
        beam.search(instance, proof.potential, 2, 1, Limits())
    packed_states.compile_kernels()
    table = packed_dense.Table(instance, 1)
    table.fill(Limits())
    table.witness()
    Runner(instance).makespan("lrr")
    two_warps.solve(Instance.of("CL", 2, Machine("slow", (UnitClass("C", 1, 2), UnitClass("L", 1)))), Limits())
