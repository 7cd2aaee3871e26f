"""`makespan export`: the optimisation model of an instance as a file, for any other solver."""

from pathlib import Path
from typing import Any

import click

from makespan.cli.help_page import HelpCommand, examples, section
from makespan.cli.options import source_options
from makespan.cli.parameters import FILE, OneOf
from makespan.cli.source import instances
from makespan.host.errors import InputError, UnsupportedError
from makespan.host.output_file import check_writable, write_whole
from makespan.host.tool import temporary_folder
from makespan.model.instance import Instance
from makespan.proof.bounds import closed_form
from makespan.proof.engines.backends import CPSAT, ILP
from makespan.proof.engines.cpsat.solver import MOST_BOOLEANS
from makespan.proof.engines.ilp.model import FORMS
from makespan.proof.engines.ilp.solver import MOST_TERMS


@click.command(
    "export",
    cls=HelpCommand,
    epilog=examples(
        "makespan export --string CLLCLL --warps 2 --model mps -o model.mps",
        "makespan export ptx/vecadd.ptx --warps 2 --model cp -o model.txt",
    ),
)
@source_options
@section(
    "Output",
    click.option(
        "--model", type=OneOf(["lp", "mps", "cp"]), required=True, help="ILP as LP or MPS, or CP-SAT as proto text"
    ),
    click.option("--form", type=OneOf(FORMS), default="published", show_default=True, help="of the ILP"),
    click.option("--output", "-o", type=FILE, required=True, help="the file to write"),
)
def command(
    model: str,
    form: str,
    output: Path,
    **source: Any,
) -> None:
    """Write the model whose optimum is the worst case.

    lp and mps minimise the negative makespan: MPS has no common way to say "maximise". cp maximises the makespan, and
    takes machines with latencies, intervals and an issue width.
    """
    asked = instances(**source)
    if len(asked) > 1:
        raise InputError(f"a model is for one instance; this is a range or a file of {len(asked)}")
    check_writable(output, "the model")
    instance = asked[0].instance
    _refuse(instance, model)
    horizon = closed_form(instance).upper  # a model with less would under-report without any sign
    text = (
        _constraint_programme(instance, horizon)
        if model == "cp"
        else _integer_programme(instance, horizon, form, model)
    )
    write_whole(output, text.encode(), "the model")
    click.echo(f"model: {output} (horizon {horizon} cycles)")


def _refuse(instance: Instance, model: str) -> None:
    engine, other = (CPSAT, None) if model == "cp" else (ILP, CPSAT)
    if beyond := instance.relaxed.beyond(engine.knows):
        remedy = "export the phases between barriers one by one, as strings"
        if other is not None and not instance.relaxed.beyond(other.knows):
            remedy = "use --model cp"
        raise UnsupportedError(f"model {model} does not know {', '.join(beyond)}; {remedy}")
    instance.require(engine.knows, f"model {model}")


def _integer_programme(instance: Instance, horizon: int, form: str, kind: str) -> str:
    from makespan.proof.engines.ilp.model import build, shape

    if (terms := shape(instance, horizon).terms(form)) > MOST_TERMS:
        raise InputError(f"the ILP would have about {terms} coefficients, more than the limit of {MOST_TERMS}")
    model = build(instance, horizon, form)
    # `build` returns None only when its time is up, and here it has no limit.
    assert model is not None  # noqa: S101 - nothing stopped it
    with temporary_folder() as folder:
        path = folder / "model"
        (model.problem.writeLP if kind == "lp" else model.problem.writeMPS)(str(path))
        return path.read_text("utf-8")


def _constraint_programme(instance: Instance, horizon: int) -> str:
    from makespan.proof.engines.cpsat.model import booleans, build

    if (size := booleans(instance, horizon)) > MOST_BOOLEANS:
        raise InputError(f"the model would have about {size} booleans, more than the limit of {MOST_BOOLEANS}")
    return str(build(instance, horizon).problem.proto)
