"""A kernel, its launch and what is known of its paths as one value, and the instances that it stands for.

    KernelQuestion      what a user asks, on a command line, in a task file or in Python
    LaunchedKernel      the kernel that was read, with its launch
    Instance            blocks on one SM of a machine

Texts and tables from outside become a question in `options.kernel_question`.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import KW_ONLY, dataclass, field, replace
from functools import cached_property
from math import prod
from pathlib import Path
from types import MappingProxyType
from typing import Any, Protocol, TypeAlias

from makespan.host.errors import InputError, MissingInput, MissingInputsError, Naming, ParseError
from makespan.kernels import kernel_file, ptx, sass
from makespan.kernels.flow import (
    BranchInfo,
    Flow,
    GivenBound,
    KernelWarps,
    Launch,
    LoopInfo,
    PathMode,
    TraceStep,
    missing_inputs_error,
)
from makespan.kernels.residency import Residency
from makespan.kernels.transfer import transfer_bounds
from makespan.model import architecture
from makespan.model.gpu import BlockPrograms, assuming, resident
from makespan.model.instance import Instance
from makespan.model.machine import FETCHES, PAPER, GivenRange, Machine, executes, machines_for
from makespan.model.machine.gpus import Gpu
from makespan.model.program import Program
from makespan.model.wording import count_words

Module: TypeAlias = ptx.PtxModule | sass.SassModule
Kernel: TypeAlias = ptx.PtxKernel | sass.SassKernel


class KernelLanguage(Protocol):
    """The interface of the package of a language: what it tells of kernels, or of what its `flow` makes of them."""

    def flow(self, kernel: Any) -> Flow:
        """Return its control flow."""

    def fit_launch(self, launch: Launch, kernel: Any) -> Launch:
        """Return the launch, with parameters by the names in the kernel."""

    def bounds_for(self, kernel: Any, given: Any, kernels: Any) -> tuple[GivenBound, ...]:
        """Return the bounds that are not meant for another kernel."""

    def loops(self, kernel: Any, loop_bounds: Any, launch: Launch) -> tuple[LoopInfo, ...]:
        """Return its loops, with bounds."""

    def branches(self, kernel: Any) -> tuple[BranchInfo, ...]:
        """Return its conditional branches."""

    def bounds_template(self, kernels: Any, *, loops: Any) -> str:
        """Return a bounds file to fill in."""

    @property
    def warps(self) -> Callable[..., KernelWarps]:
        """Return the warps of a launch."""


_LANGUAGES: Mapping[type, KernelLanguage] = MappingProxyType({ptx.PtxModule: ptx, sass.SassModule: sass})


def language(module: Module) -> KernelLanguage:
    """Return the package that knows the language of a module."""
    return _LANGUAGES[type(module)]


@dataclass(frozen=True, slots=True, repr=False)
class KernelQuestion:
    """A kernel, how it is launched, and what is known of its paths.

    Args:
        source: a file (see `kernel_file.KINDS`), which is read whenever the question is asked, or what was read.
        entry: which kernel of the module, plain or mangled; None for the only one.
        warps: of a block, where `launch` does not tell; of a range, each number is an instance of its own.
        blocks_per_sm: blocks that are on one SM at the same time and start together; None, where it is not given, is 1
            for PTX, and for machine code as many as can be resident, see `sass.residency`.
        dynamic_shared: bytes of shared memory that the launch gives each block of machine code, as `sass.residency`.
        loop_bounds: those that win over comments of the kernel; what fits only other kernels of the module is left out.
        classes: how opcodes of PTX become unit classes.
        take: `taken` or `fall` by label, or by `:LINE`, of the branch.
        trace: the outcome of every executed branch, in order.
        paths: as of `ptx.program`.
        dependences: what an instruction of PTX waits for; None leaves it to the machine.
        latencies: cycles of operations, instead of those of the machine, and of first fetches of code and constants.
        warm: whether the launch before was of the same kernel and left its code and constants in their caches.
        arch: as of `kernel_file.read`: `sm_86` asks for the machine code of these GPUs, and `compute_80` is what CUDA
            source is compiled for; None for that of the GPU or machine that is asked about, see
            `architecture.default_architecture`, and for `cuda.DEFAULT_ARCH` if neither is known.
        by_default: how `arch` was found where it is not given; `compiled_for` fills it in.
        keep_ptx: where to leave the PTX of CUDA source.
        named: what the user calls these fields, for messages.

    >>> from makespan import Launch
    >>> vecadd = KernelQuestion(Path("ptx/vecadd.ptx"), launch=Launch(block=256))
    >>> print(vecadd.instance())
    8 x automaton of 21 places on machine paper (C=1, L=1)
    """

    source: Path | Module
    _: KW_ONLY
    entry: str | None = None
    launch: Launch = field(default_factory=Launch)
    warps: int | range | None = None
    blocks_per_sm: int | None = None
    dynamic_shared: int | None = None
    loop_bounds: tuple[GivenBound, ...] = ()
    classes: ptx.Classes = field(default_factory=ptx.Classes)
    take: Mapping[str, str] = field(default_factory=dict)
    trace: tuple[TraceStep, ...] | None = None
    paths: PathMode | None = None
    dependences: ptx.Dependences | None = None
    latencies: Mapping[str, GivenRange] = field(default_factory=dict)
    warm: bool = False
    arch: str | None = None
    by_default: architecture.DefaultArchitecture | None = None
    keep_ptx: Path | None = None
    named: Naming = field(default=str, repr=False, compare=False)

    def __post_init__(self) -> None:
        if isinstance(self.source, str):
            object.__setattr__(self, "source", Path(self.source))
        # Copies: a question stays what it is when the caller changes its own dictionaries.
        object.__setattr__(self, "take", dict(self.take))
        object.__setattr__(self, "latencies", dict(self.latencies))
        for what, value, kind in (
            ("source", self.source, Path | ptx.PtxModule | sass.SassModule),
            ("launch", self.launch, Launch),
            ("classes", self.classes, ptx.Classes),
            *(("loop_bounds", bound, GivenBound) for bound in self.loop_bounds),
            *(("latencies", given, GivenRange) for given in self.latencies.values()),
        ):
            if not isinstance(value, kind):
                raise InputError(f"{what} of a kernel question: {_type_name(kind)} is needed, not {value!r:.60}")
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
        """Return the name of the file."""
        return Path(self.source if isinstance(self.source, Path) else self.source.file).name

    @property
    def counts(self) -> range | None:
        """Return all numbers of warps that are asked for."""
        return range(self.warps, self.warps + 1) if isinstance(self.warps, int) else self.warps

    def compiled_for(self, machine: Machine | None, card: Gpu | None) -> "KernelQuestion":
        """Return the question for a GPU: CUDA source without an architecture is compiled for this one.

        PTX that stands in for machine code because a tool is missing takes no notice of first fetches and of warm
        caches, which PTX does not tell; the verdict says that lapses are left out.

        Args:
            machine: each SM; None where it is not given.
            card: the GPU, which counts before the machine.
        """
        if self.arch is not None or not isinstance(self.source, Path) or not kernel_file.is_source(self.source):
            return self
        found = architecture.default_architecture(machine, card)
        if found is None:
            return self
        asked = replace(self, arch=found.name, by_default=found)
        if not found.lacks_tools:
            return asked
        timed = {name: given for name, given in self.latencies.items() if name not in FETCHES}
        return replace(asked, latencies=timed, warm=False)

    @contextmanager
    def telling(self) -> Iterator[None]:
        """Let errors say which program they are about, if the user has not named its architecture."""
        try:
            yield
        except InputError as error:
            if self.by_default is None:
                raise
            # The user did not choose this architecture, so the message must say where it comes from.
            raise self.by_default.telling(error, self.named("arch")) from None

    def module(self) -> Module:
        """Return the module with the kernel.

        Raises:
            InputError: a file that cannot be read, see `kernel_file.read`; or what machine code says itself.
        """
        with self.telling():
            return self._module()

    def _module(self) -> Module:
        if isinstance(self.source, Path):
            found = kernel_file.read(self.source, arch=self.arch, keep_ptx=self.keep_ptx, named=self.named)
        else:
            found = kernel_file.of_module(self.source, self.arch, self.keep_ptx, self.named)
        if isinstance(found, sass.SassModule):
            self._refuse_for_ptx(found.file)
        elif self.dynamic_shared is not None:
            raise InputError(
                f"{found.file}: {self.named('dynamic_shared')} is for machine code: of PTX nobody knows what else a"
                " block takes of an SM"
            )
        return found

    def _refuse_for_ptx(self, file: str) -> None:
        """Refuse options for PTX beside machine code.

        Machine code tells itself what its instructions wait for, and its opcodes are operations of the machine.
        """
        profile, classes, unknown = map(self.named, ("profile", "classes", "unknown"))
        if self.classes != ptx.Classes():
            raise InputError(
                f"{file}: {profile}, {classes} and {unknown} are for PTX: machine code has operations of the machine"
            )
        if self.dependences is not None:
            raise InputError(
                f"{file}: {self.named('dependences')} is for PTX: machine code says itself what it waits for"
            )

    def instance(self, machine: Machine | None = None) -> Instance:
        """Return the instance where there is just one; see `instances`.

        Raises:
            InputError: a range of warps; or see `instances`.
        """
        found = instances(self, machine)
        if len(found) != 1:
            raise InputError(
                f"one instance is asked for, and {self.named('warps')} means {len(found)}: choose one with"
                " dataclasses.replace(question, warps=N), or take all of them from"
                " makespan.kernels.question.instances(question)"
            )
        return found[0]


def _type_name(kind: Any) -> str:
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
        file: see `kernel_file.KINDS`; a compiler on this machine makes PTX of CUDA source.
        arch: see `kernel_file.read`. CUDA source without it is compiled whenever the question is asked, for the GPU or
            machine that is asked about then; errors in it are told then, too.

    Raises:
        InputError: a file that cannot be read, or source that does not compile.
        ParseError: a place that is not understood.

    >>> from makespan import Launch, solve
    >>> print(solve(read_kernel("ptx/vecadd.ptx", Launch(block=256))))
    exact for the PTX as written, if every instruction takes one cycle: the worst case is 140 cycles
    """
    about: dict[str, Any] = {"launch": launch or Launch(), "warps": warps, "loop_bounds": tuple(loop_bounds)}
    # Source is not compiled yet: which GPU it is for is known only when a question is asked.
    if arch is None and kernel_file.is_source(Path(file)):
        return KernelQuestion(Path(file), entry=entry, keep_ptx=keep_ptx, **about)
    module = kernel_file.read(Path(file), arch=arch, keep_ptx=keep_ptx)
    return KernelQuestion(module, entry=module.kernel(entry).name, **about)


def instances(question: KernelQuestion, machine: Machine | None = None) -> tuple[Instance, ...]:
    """Return the instances on one SM: one for every number of warps that is asked for.

    Args:
        machine: None for `LaunchedKernel.default_machine`.

    Raises:
        InputError: a file, kernel or launch that is none, or lacks something; see `ptx.program`.
        UnsupportedError: control flow or a barrier that cannot be followed; the message names the remedy.

    >>> [instance.warps for instance in instances(KernelQuestion(Path("ptx/vecadd.ptx"), warps=range(1, 4)))]
    [1, 2, 3]
    """
    return launch_kernel(question, machine).instances(machine)


def bounds_template(question: KernelQuestion, module: Module, kernels: Sequence[Kernel]) -> str:
    """Return a bounds file to fill in: a line for each loop of these kernels, `LABEL,?` where no bound is known.

    Raises:
        InputError: a bound for no loop, or one that another bound or the code contradicts.
    """

    def loops(kernel: Kernel) -> tuple[LoopInfo, ...]:
        return LaunchedKernel(question, module, kernel).loops

    return language(module).bounds_template(kernels, loops=loops)


def launch_kernel(
    question: KernelQuestion, machine: Machine | None = None, card: Gpu | None = None
) -> "LaunchedKernel":
    """Return the kernel that is asked about, read.

    Args:
        machine: the one that is named, and `card` the GPU: what source is compiled for, see
            `KernelQuestion.compiled_for`.

    Raises:
        InputError: a file that cannot be read, or no such kernel in it.
    """
    asked = question.compiled_for(machine, card)
    module = asked.module()
    return LaunchedKernel(asked, module, module.kernel(asked.entry))


@dataclass(frozen=True)
class LaunchedKernel:
    """A kernel of a module with its launch; what follows from it is computed when it is asked for."""

    question: KernelQuestion
    module: Module
    kernel: Kernel

    @property
    def language(self) -> KernelLanguage:
        """Return the package that knows it."""
        return language(self.module)

    @cached_property
    def flow(self) -> Flow:
        """Return its control flow."""
        with self.question.telling():
            return self.language.flow(self.kernel)

    @cached_property
    def launch(self) -> Launch:
        """Return the launch, as far as it is known, with the parameters by their names in the kernel."""
        return self.language.fit_launch(self.question.launch, self.kernel)

    @cached_property
    def _bounded(self) -> tuple[Flow, tuple[GivenBound, ...]]:
        """Return the control flow, with what PTX tells of loops of machine code, and the bounds that are given."""
        flow, given = self.flow, self.question.loop_bounds
        with self.question.telling(), _telling_how_to_keep(self.module):
            # What PTX tells of a loop moves to the loop of machine code that was made of it.
            if isinstance(flow, sass.SassFlow) and isinstance(self.module, sass.SassModule):
                flow, given = transfer_bounds(flow, given, self.launch, self.module.kernels)
            return flow, self.language.bounds_for(self.kernel, given, self.module.kernels)

    @property
    def loop_bounds(self) -> tuple[GivenBound, ...]:
        """Return the bounds that are given for this kernel."""
        return self._bounded[1]

    @cached_property
    def loops(self) -> tuple[LoopInfo, ...]:
        """Return its loops, with their bounds as far as they are known."""
        flow, given = self._bounded
        with self.question.telling():
            return self.language.loops(flow, given, self.launch)

    @property
    def branches(self) -> tuple[BranchInfo, ...]:
        """Return its conditional branches that can be reached."""
        with self.question.telling():
            return self.language.branches(self.flow)

    @cached_property
    def default_machine(self) -> Machine:
        """Return the machine of the paper for PTX, and for machine code the shipped machine of its architecture.

        Raises:
            InputError: there is none for this architecture, or several.
        """
        if isinstance(self.kernel, ptx.PtxKernel):
            return PAPER
        found = machines_for(self.kernel.sm)
        # Several GPUs may share an architecture and differ in latencies: the user has to choose.
        if len(found) != 1:
            raise InputError(
                f"{self.kernel.source}: {len(found) or 'no'} machines for sm_{self.kernel.sm} come with the package:"
                f" say which one with {self.question.named('machine')}"
            )
        return found[0]

    def programs(self, machine: Machine | None = None) -> tuple[tuple[Program, int | None], ...]:
        """Return the programs of the warps of a block on a machine, each with how many warps run it.

        None as this number means that the block is not known.

        Raises:
            InputError, UnsupportedError: see `ptx.program`.
        """
        return self._programs(self._warps(machine))

    def _programs(self, warps: KernelWarps) -> tuple[tuple[Program, int | None], ...]:
        how = self.question.by_default
        with self.question.telling(), _telling_how_to_keep(self.module):
            found = ((warps.program(), None),) if self.launch.warps_per_block is None else warps.programs()
        if how is None:
            return found
        return tuple((program.assuming((*program.assumptions, how.assumption)), count) for program, count in found)

    def _warps(self, machine: Machine | None) -> KernelWarps:
        """Return the warps on a machine."""
        asked, (flow, given) = self.question, self._bounded
        chosen = machine or self.default_machine
        with asked.telling():
            self._check_executed_by(chosen)
        known: dict[str, Any] = {
            "launch": self.launch,
            "take": asked.take,
            "trace": asked.trace,
            "paths": asked.paths,
            "machine": chosen,
            "latencies": asked.latencies,
            "warm": asked.warm,
            "loop_bounds": given,
        }
        if isinstance(self.kernel, ptx.PtxKernel):
            known |= {
                "profile": asked.classes.profile,
                "classes": asked.classes.overrides,
                "unknown": asked.classes.unknown,
                "dependences": asked.dependences,
            }
        with asked.telling(), _telling_how_to_keep(self.module):
            return self.language.warps(flow, **known)

    def _check_executed_by(self, machine: Machine) -> None:
        """Refuse machine code on a machine whose GPUs do not execute it."""
        if isinstance(self.kernel, sass.SassKernel) and not executes(machine, self.kernel.sm):
            raise InputError(
                f"{self.kernel.source}: GPUs of machine {machine.name!r} do not execute machine code for"
                f" sm_{self.kernel.sm}: leave {self.question.named('machine')} out, or name the one of your GPU"
            )

    def instances(self, machine: Machine | None = None) -> tuple[Instance, ...]:
        """Return the instances on one SM, see the function `instances`."""
        asked, grid, chosen = self.question.blocks_per_sm, self.launch.grid, machine or self.default_machine
        if grid is not None and asked is not None and asked > prod(grid):
            raise InputError(f"{self.question.named('blocks_per_sm')} {asked}: the grid has only {prod(grid)} blocks")
        launched, room, found = None if grid is None else prod(grid), self.residency, []
        for block in self.blocks(chosen, room.missing_shared):
            count, told = room.on_one_sm(sum(warps for _, warps in block), launched)
            found.append(resident(assuming(block, *told), count, chosen))
        return tuple(found)

    @property
    def residency(self) -> Residency:
        """Return what decides how many of its blocks are resident on an SM."""
        asked, threads = self.question, self.launch.threads_per_block
        return Residency(self.kernel, asked.blocks_per_sm, threads, asked.dynamic_shared, asked.named, asked.telling)

    def blocks(self, machine: Machine | None = None, missing: Sequence[MissingInput] = ()) -> tuple[BlockPrograms, ...]:
        """Return the programs of a block on a machine, for every number of warps that is asked for.

        Args:
            missing: what else is missing for the question; all that is missing is asked for at once.

        Raises:
            MissingInputsError: the number of warps of a block or an input of its programs is missing; or see `missing`.
            InputError: two say differently how many warps a block has; or see `programs`.
        """
        named, asked, per_block = self.question.named, self.question.counts, self.launch.warps_per_block
        known = None if per_block is None else range(per_block, per_block + 1)
        if asked is not None and per_block is not None and asked != known:
            said = ".reqntid" if isinstance(self.kernel, ptx.PtxKernel) else "the required block"
            required = f"{self.kernel.source}: {said} of kernel {self.kernel.name}"
            says = required if self.question.launch.block is None else named("block")
            raise InputError(
                f"{says} means {count_words(per_block, 'warp')} for each block, and {named('warps')} says otherwise:"
                f" leave {named('warps')} out"
            )
        warps = self._warps(machine)
        if known is None and asked is None:
            threads = MissingInput("block", "N", "the threads of a block, or its warps", (("warps", "N"),))
            missing = (threads, *missing)
        with self.question.telling(), _telling_how_to_keep(self.module):
            # Inputs of the launch and of the code are asked for together, or a user would try again and again.
            own = warps.missing([each.field for each in missing])
            if lacks := sorted((*missing, *own), key=lambda each: _ORDER.index(each.field)):
                raise missing_inputs_error(self.kernel, lacks, named)
        programs = self._programs(warps)
        return tuple(tuple((program, most or count) for program, most in programs) for count in known or asked or ())


_ORDER = ("block", "grid", "loop_bounds", "latencies", "blocks_per_sm", "dynamic_shared")
"""In which missing inputs are asked for: the launch first, what the machine does last."""


@contextmanager
def _telling_how_to_keep(module: Module) -> Iterator[None]:
    """Let errors about PTX that was made on the way say so, and how to look at it."""
    try:
        yield
    except InputError as error:
        made = module.compilation if isinstance(module, ptx.PtxModule) else None
        if made is None or f"PTX of {made.source}:" not in str(error):  # an error about something else
            raise
        if isinstance(error, ParseError):
            raise error.adding(ptx.KEEP_HINT) from None
        if isinstance(error, MissingInputsError):
            raise error.adding(f"({ptx.KEEP_HINT})") from None
        raise type(error)(f"{error}\n({ptx.KEEP_HINT})") from None
