"""`makespan bounds-template`: a loop-bounds file to fill in."""

from typing import Any

import click

from makespan.cli.help_page import HelpCommand, examples
from makespan.cli.options import cuda_options, launch_options, option
from makespan.cli.parameters import OneOf
from makespan.cli.source import chosen_kernels, kernel_question


@click.command("bounds-template", cls=HelpCommand, epilog=examples("makespan bounds-template ptx/fir.ptx"))
@click.argument("source")
@click.option("--input-format", type=OneOf(["ptx"]), help="format of standard input (SOURCE '-')")
@option("kernel", help="only this kernel")
@option("loop-bound", metavar="LABEL=N|FILE", help="bounds already known")
@launch_options
@cuda_options
def command(source: str, input_format: str | None, kernel: str | None, **options: Any) -> None:
    """Print a bounds file for the loops of SOURCE; fill in the numbers and pass it as --loop-bound FILE."""
    from makespan.kernels.question import bounds_template

    asked = kernel_question(source, input_format, **options)
    module = asked.module()
    kernels = chosen_kernels(module, kernel)
    click.echo(bounds_template(asked, module, kernels), nl=False)
