"""`makespan doctor`: what this installation has, and the one-time compilation of its inner loops."""

import platform
import time
from importlib.metadata import PackageNotFoundError, version

import click

from makespan.cli.help_page import HelpCommand, examples
from makespan.host.errors import InputError
from makespan.report.lines import fact_lines, terminal_width
from makespan.version import __version__

_LIBRARIES = ("numpy", "ortools", "numba", "lark", "networkx", "matplotlib", "pulp")
_TOOLS = "ptxas", "nvdisasm", "cuobjdump"


@click.command("doctor", cls=HelpCommand, epilog=examples("makespan doctor"))
def command() -> None:
    """Print versions, and compile the inner loops so that later runs start at once."""
    click.echo(f"makespan {__version__}, Python {platform.python_version()} on {platform.machine()}")
    known = {library: _version(library) for library in _LIBRARIES}
    known |= {".cu files": _compiler(), **{tool: _tool(tool) for tool in _TOOLS}}
    click.echo("\n".join(fact_lines(known, terminal_width())))
    began = time.process_time()  # not of the clock: compilation may share the machine
    _load_everything()
    click.echo(f"inner loops ready after {time.process_time() - began:.1f} s of processor time")


def _version(library: str) -> str:
    try:
        return version(library)
    except PackageNotFoundError:
        return "missing (optional; a slower way is taken)" if library == "numba" else "missing"


def _compiler() -> str:
    """Return which compiler CUDA source would be compiled with, or why there is none."""
    from makespan.kernels.ptx import cuda

    try:
        return f"compiled by {cuda.choose_compiler('.cu').name}"
    except InputError as refusal:
        return str(refusal)


def _tool(name: str) -> str:
    from makespan.host import tool

    found = tool.find(name)
    return str(found) if found else "missing (optional, for machine code: pip install 'makespan[sass]')"


def _load_everything() -> None:
    from makespan.model.simulate import runner
    from makespan.proof.engines import levels
    from makespan.proof.engines.certificate import beam
    from makespan.proof.engines.construct import ranking
    from makespan.proof.engines.search import states, table
    from makespan.proof.engines.two_warps import events

    for inner_loops in (runner, ranking, events, levels, beam, table, states):
        inner_loops.load()
