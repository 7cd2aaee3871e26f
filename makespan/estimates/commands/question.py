"""What the methods are asked about: a kernel, its launch and a GPU; the options that say so, and the report."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from makespan.cli.help_page import option_name, section
from makespan.cli.options import cuda_options, launch_options, option
from makespan.cli.output import format_option, render
from makespan.cli.parameters import FILE
from makespan.cli.source import kernel_question
from makespan.host.errors import InputError
from makespan.host.text_file import claim_input
from makespan.kernels import kernel_file

if TYPE_CHECKING:
    from makespan.estimates import Estimate
    from makespan.estimates.question import LaunchQuestion
    from makespan.model.machine.gpus import Gpu

# A kernel and its launch; how its opcodes map to units does not matter to an estimate.
kernel_options = section(
    "Kernel",
    option("kernel"),
    launch_options,
    option("loop-bound", "Kernel", help="iterations of a loop that are not inferred"),
    cuda_options,
)

resource_options = section(
    "Launch",
    click.option("--regs", type=click.IntRange(1, 4096), help="registers of a thread, as ptxas -v says"),
    click.option("--ptxas", type=FILE, metavar="FILE", help="output of ptxas -v, for registers"),
    click.option("--smem", type=click.IntRange(0, 2**31), help="bytes of dynamic shared memory of a block"),
)

gpu_options = section(
    "GPU",
    click.option("--gpu", required=True, metavar="NAME|FILE.toml", help="a shipped GPU or a description"),
    click.option("--set", "settings", multiple=True, metavar="KEY=N", help="a datum of the GPU, such as mem_ld=420"),
)

report_options = section(
    "Output",
    click.option("--explain", is_flag=True, help="all quantities, with their sources"),
    format_option(),
)


_KERNEL = ("kernel", "block", "grid", "param", "loop_bounds", "arch", "keep_ptx")
_RESOURCES = ("regs", "ptxas", "smem")


@dataclass(frozen=True, slots=True, kw_only=True)
class LaunchOptions:
    """The options of a kernel, of its launch and of its resources, by their names.

    Args:
        kernel: those of `kernel_options`, as `kernel_question` takes them.
        resources: those of `resource_options`.
    """

    source: str | None
    kernel: Mapping[str, Any]
    resources: Mapping[str, Any]

    @classmethod
    def taken(cls, options: dict[str, Any]) -> "LaunchOptions":
        """Return the options of the kernel and of its resources, and remove them from `options`."""
        kernel, resources = ({name: options.pop(name, None) for name in names} for names in (_KERNEL, _RESOURCES))
        return cls(source=options.pop("source"), kernel=kernel, resources=resources)

    def refuse(self, instead: str, *allowed: str) -> None:
        """Refuse options for kernels beside what says the same otherwise.

        Raises:
            InputError: names the first that is not allowed.
        """
        for name, value in (*self.kernel.items(), *self.resources.items()):
            if value and name not in allowed:
                raise InputError(f"{option_name(name)} is for a kernel file; {instead}")

    def arch(self, gpu: "Gpu | None") -> str | None:
        """Return the architecture of the PTX that source becomes: the one that is given, else that of the GPU.

        None is the default of `ptx.cuda`. GPUs from before sm_70 get it, too: few compilers still know them, and the
        models that were published for them count the instructions of any PTX.
        """
        from makespan.model import architecture

        given: str | None = self.kernel["arch"]
        found = architecture.default_architecture(None, gpu) if kernel_file.is_source(Path(str(self.source))) else None
        if given is not None or found is None or found.sm < architecture.OLDEST_MACHINE_CODE:
            return given
        return architecture.virtual_architecture(found.name)

    def question(self, gpu: "Gpu | None" = None) -> "LaunchQuestion":
        """Return the kernel with its launch.

        Raises:
            InputError: no such kernel, or a launch, a bound or a file that is none.
        """
        from makespan.estimates.profile import read_resources
        from makespan.estimates.question import LaunchQuestion
        from makespan.kernels.question import launch_kernel

        ptxas = self.resources["ptxas"]
        if ptxas is not None:
            claim_input(ptxas)
        found = launch_kernel(kernel_question(str(self.source), **{**self.kernel, "arch": self.arch(gpu)}))
        resources = {
            "registers": self.resources["regs"],
            "resources": None if ptxas is None else read_resources(ptxas, found.kernel.name),
            "dynamic_shared_bytes": self.resources["smem"] or 0,
        }
        return LaunchQuestion.of(found, gpu, resources)


def described_gpu(name: str, settings: tuple[str, ...], model: str | None = None) -> "Gpu":
    """Return the GPU of the options; keys of `model` may leave out its name."""
    from makespan.model.machine import gpus

    return gpus.with_settings(gpus.find_gpu(name), settings, "--set", model=model)


def show(found: "Estimate", *, explain: bool, output: str, **more: Any) -> None:
    """Print an estimate; `more` are keys of its document."""
    from makespan.estimates.report import estimate as report

    said = render(
        output, text=lambda: report.text(found, explain=explain), data=lambda: {**report.document(found), **more}
    )
    click.echo(said)
