"""A kernel, its launch and what is known of its paths as one value, and the instances that it stands for.

    KernelQuestion      what a user asks, on a command line, in a task file or in Python
    LaunchedKernel      the kernel that was read, with its launch
    Block               the programs of the warps of one block
    Instance            blocks on one SM of a machine

Text from outside becomes a question in one place each: options in `cli.source`, tables in `schedulability.entries`.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import KW_ONLY, dataclass, field
from functools import cached_property
from math import prod
from pathlib import Path
from typing import Any, TypeAlias

from makespan import kernel_file, ptx
from makespan.errors import InputError, ParseError
from makespan.flow import GivenBound, Launch, Paths, Step
from makespan.instance import Instance
from makespan.kernel_file import Naming
from makespan.machine import PAPER, GivenRange, Machine
from makespan.program import Program

Block: TypeAlias = tuple[tuple[Program, int], ...]
"""The programs of the warps of a block, each with how many warps run it."""


@dataclass(frozen=True, slots=True, repr=False)
class KernelQuestion:
    """A kernel, how it is launched, and what is known of its paths.

    Args:
        source: a file (see `kernel_file.KINDS`), which is read whenever the question is asked, or what was read.
        entry: which kernel of the module, plain or mangled; None for the only one.
        warps: of a block, where `launch` does not tell; of a range, each number is an instance of its own.
        blocks_per_sm: blocks that are on one SM at the same time; None where nobody says, which is 1.
        loop_bounds: those that win over comments of the kernel; what fits only other kernels of the module is left out.
        classes: how opcodes become unit classes.
        take: `taken` or `fall` by label, or by `:LINE`, of the branch.
        trace: the outcome of every executed branch, in order.
        paths: as of `ptx.program`.
        dependences: what an instruction waits for; None leaves it to the machine.
        latencies: cycles of operations, instead of those of the machine.
        arch: what CUDA source is compiled for; None is `cuda.DEFAULT_ARCH`.
        keep_ptx: where to leave the PTX of CUDA source.
        named: what the user calls these fields, for messages.

    >>> from makespan import Launch
    >>> vecadd = KernelQuestion(Path("ptx/vecadd.ptx"), launch=Launch(block=(256, 1, 1)))
    >>> print(vecadd.instance())
    8 x automaton of 21 places on machine paper (C=1, L=1)
    """

    source: Path | ptx.Module
    _: KW_ONLY
    entry: str | None = None
    launch: Launch = field(default_factory=Launch)
    warps: int | range | None = None
    blocks_per_sm: int | None = None
    loop_bounds: tuple[GivenBound, ...] = ()
    classes: ptx.Classes = field(default_factory=ptx.Classes)
    take: Mapping[str, str] = field(default_factory=dict)
    trace: tuple[Step, ...] | None = None
    paths: Paths | None = None
    dependences: ptx.Dependences | None = None
    latencies: Mapping[str, GivenRange] = field(default_factory=dict)
    arch: str | None = None
    keep_ptx: Path | None = None
    named: Naming = field(default=str, repr=False, compare=False)

    def __post_init__(self) -> None:
        if isinstance(self.source, str):
            object.__setattr__(self, "source", Path(self.source))
        object.__setattr__(self, "take", dict(self.take))
        object.__setattr__(self, "latencies", dict(self.latencies))
        for what, value, kind in (
            ("source", self.source, Path | ptx.Module),
            ("launch", self.launch, Launch),
            ("classes", self.classes, ptx.Classes),
            *(("loop_bounds", bound, GivenBound) for bound in self.loop_bounds),
            *(("latencies", given, GivenRange) for given in self.latencies.values()),
        ):
            if not isinstance(value, kind):
                raise InputError(f"{what} of a kernel question: {_shown(kind)} is needed, not {value!r:.60}")
        if self.paths not in (None, "automaton", "single"):
            raise InputError(f"paths of a kernel are automaton or single, not {self.paths!r:.40}")
        if self.dependences is not None and not isinstance(self.dependences, ptx.Dependences):
            raise InputError(f"dependences of a kernel are ptx.Dependences, not {self.dependences!r:.40}")
        if self.warps is not None and (isinstance(self.warps, bool) or not isinstance(self.warps, int | range)):
            raise InputError(f"warps of a kernel are a whole number or a range, not {self.warps!r:.40}")

    def __repr__(self) -> str:
        return f"KernelQuestion({self.name!r}, entry={self.entry!r}, launch={str(self.launch)!r}, warps={self.warps})"

    @property
    def name(self) -> str:
        """The name of the file."""
        return Path(self.source.file if isinstance(self.source, ptx.Module) else self.source).name

    @property
    def counts(self) -> range | None:
        """All numbers of warps that are asked for."""
        return range(self.warps, self.warps + 1) if isinstance(self.warps, int) else self.warps

    def module(self) -> ptx.Module:
        """The module with the kernel.

        Raises:
            InputError: a file that cannot be read; see `kernel_file.read`.
        """
        if isinstance(self.source, Path):
            return kernel_file.read(self.source, arch=self.arch, keep_ptx=self.keep_ptx, named=self.named)
        kernel_file.refuse_compiling(self.source.file, self.arch, self.keep_ptx, self.named)
        return self.source

    def instance(self, machine: Machine = PAPER) -> Instance:
        """The instance where there is just one; see `instances`.

        Raises:
            InputError: a range of warps; or see `instances`.
        """
        found = instances(self, machine)
        if len(found) != 1:
            raise InputError(f"one instance is asked for, and {self.named('warps')} means {len(found)}")
        return found[0]


def _shown(kind: Any) -> str:
    return getattr(kind, "__name__", str(kind))


def read_kernel(
    file: str | Path,
    launch: Launch | None = None,
    *,
    entry: str | None = None,
    warps: int | range | None = None,
    loop_bounds: Sequence[GivenBound] = (),
    arch: str | None = None,
    keep_ptx: Path | None = None,
) -> KernelQuestion:
    """Read a kernel, once for all that is asked of it; `dataclasses.replace` says the rest of a question.

    Args:
        file: PTX, or CUDA source, which a compiler on this machine makes PTX.

    Raises:
        InputError: a file that cannot be read, or source that does not compile.
        ParseError: a place that is not understood.

    >>> from makespan import Launch, solve
    >>> print(solve(read_kernel("ptx/vecadd.ptx", Launch(block=(256, 1, 1))).instance()))
    exact for the PTX as written, if every instruction takes one cycle: the worst case is 140 cycles
    """
    module, known = kernel_file.read(Path(file), arch=arch, keep_ptx=keep_ptx), launch or Launch()
    name = module.kernel(entry).name
    return KernelQuestion(module, entry=name, launch=known, warps=warps, loop_bounds=tuple(loop_bounds))


def instances(question: KernelQuestion, machine: Machine = PAPER) -> tuple[Instance, ...]:
    """What runs on one SM: an instance for every number of warps that is asked for.

    Raises:
        InputError: a file, kernel or launch that is none, or lacks something; see `ptx.program`.
        UnsupportedError: control flow or a barrier that cannot be followed; the message names the remedy.

    >>> [instance.warps for instance in instances(KernelQuestion(Path("ptx/vecadd.ptx"), warps=range(1, 4)))]
    [1, 2, 3]
    """
    found = launched(question)
    grid, blocks = found.launch.grid, 1 if question.blocks_per_sm is None else question.blocks_per_sm
    if grid is not None and blocks > prod(grid):
        raise InputError(f"{question.named('blocks_per_sm')} {blocks}: the grid has only {prod(grid)} blocks")
    return tuple(resident(block, blocks, machine) for block in found.blocks(machine))


def resident(block: Block, blocks: int, machine: Machine) -> Instance:
    """So many blocks on one SM of a machine."""
    return Instance.merged([(program, warps * blocks) for program, warps in block], machine, blocks=blocks)


def launched(question: KernelQuestion) -> "LaunchedKernel":
    """The kernel that is asked about, read.

    Raises:
        InputError: a file that cannot be read, or no such kernel in it.
    """
    module = question.module()
    return LaunchedKernel(question, module, module.kernel(question.entry))


@dataclass(frozen=True)
class LaunchedKernel:
    """A kernel of a module that is launched as a question says; what follows is found when it is asked for."""

    question: KernelQuestion
    module: ptx.Module
    kernel: ptx.Kernel

    @cached_property
    def flow(self) -> ptx.PtxFlow:
        """Its control flow."""
        return ptx.flow(self.kernel)

    @cached_property
    def launch(self) -> Launch:
        """The launch, as far as it is known, with the parameters by their PTX names."""
        return ptx.fitted(self.question.launch, self.kernel)

    @cached_property
    def loop_bounds(self) -> tuple[GivenBound, ...]:
        """The bounds that are given for this kernel."""
        with _telling_how_to_keep(self.module):
            return ptx.bounds_for(self.kernel, self.question.loop_bounds, self.module.kernels)

    def programs(self, machine: Machine = PAPER) -> tuple[tuple[Program, int | None], ...]:
        """The programs of the warps of a block on a machine; how many run each is None where nobody knows the block.

        Raises:
            InputError, UnsupportedError: see `ptx.program`.
        """
        asked = self.question
        known: dict[str, Any] = {
            "launch": self.launch,
            "profile": asked.classes.profile,
            "classes": asked.classes.overrides,
            "unknown": asked.classes.unknown,
            "take": asked.take,
            "trace": asked.trace,
            "paths": asked.paths,
            "machine": machine,
            "dependences": asked.dependences,
            "latencies": asked.latencies,
            "loop_bounds": self.loop_bounds,
        }
        with _telling_how_to_keep(self.module):
            if self.launch.warps_per_block is None:
                return ((ptx.program(self.flow, **known), None),)
            return ptx.programs(self.flow, **known)

    def blocks(self, machine: Machine = PAPER) -> tuple[Block, ...]:
        """The programs of a block on a machine, for every number of warps that is asked for.

        Raises:
            InputError: nobody says how many warps a block has, or two say it differently; or see `programs`.
        """
        named, asked, warps = self.question.named, self.question.counts, self.launch.warps_per_block
        known = None if warps is None else range(warps, warps + 1)
        if asked is None and known is None:
            raise InputError(
                f"{named('warps')} is missing: how many warps run? (or {named('block')}, the threads of a block)"
            )
        if asked != known and None not in (asked, known):
            required = f"{self.kernel.source}: .reqntid of kernel {self.kernel.name}"
            says = required if self.question.launch.block is None else named("block")
            raise InputError(
                f"{says} means {warps} warps for each block, and {named('warps')} says otherwise:"
                f" leave {named('warps')} out"
            )
        programs = self.programs(machine)
        return tuple(tuple((program, most or count) for program, most in programs) for count in known or asked or ())


@contextmanager
def _telling_how_to_keep(module: ptx.Module) -> Iterator[None]:
    """Errors about PTX that was made on the way say so, and how to look at it."""
    try:
        yield
    except InputError as error:
        if module.compilation is None or f"PTX of {module.compilation.source}:" not in str(error):
            raise
        if isinstance(error, ParseError):
            raise error.adding(ptx.KEEP_HINT) from None
        raise type(error)(f"{error}\n({ptx.KEEP_HINT})") from None
