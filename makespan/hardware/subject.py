"""The way from a question about a PTX kernel to what is measured and bounded, which is the same machine code."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from makespan.hardware.campaign import MAX_BUFFER_BYTES, SCHEMA, Campaign, KernelBuffer, code_hash
from makespan.hardware.device import DeviceIdentity
from makespan.hardware.instrument import RecordedModule, add_records
from makespan.host.errors import InputError, Naming, UnsupportedError
from makespan.host.text_file import read_bytes
from makespan.kernels import kernel_file, ptx, sass
from makespan.kernels.flow import Launch
from makespan.kernels.gpu_question import as_given, at_work, of_kernel
from makespan.kernels.question import KernelQuestion, LaunchedKernel, launch_kernel
from makespan.model.architecture import check_architecture, default_architecture, is_machine_code, virtual_architecture
from makespan.model.gpu import GpuInstance
from makespan.model.instance import Instance
from makespan.model.machine import Machine, is_compatible
from makespan.model.machine.gpus import Gpu

_ADDRESS_BITS = 64
_SAME = {
    "code": "machine code",
    "block": "block",
    "grid": "grid",
    "parameters": "parameters",
    "shared": "dynamic shared memory",
}
"""The fields of a campaign that have to be the same, in words."""


@dataclass(frozen=True, slots=True)
class MeasuredKernel:
    """A kernel with records and without, as machine code, launched alike.

    Args:
        image: the machine code with records, as it is loaded.
        arguments: the arguments of the kernel without records, by their names in the PTX.
    """

    harness: RecordedModule
    image: bytes
    recorded: LaunchedKernel
    original: LaunchedKernel
    arguments: Mapping[str, bytes | KernelBuffer]

    @property
    def code(self) -> str:
        """Return the SHA-256 by which the machine code is recognised."""
        return code_hash(self.image)

    @property
    def parameters(self) -> dict[str, str]:
        """Return the parameters by name, as texts."""
        return {name: one.hex() if isinstance(one, bytes) else str(one) for name, one in self.arguments.items()}

    @property
    def compiler(self) -> str:
        """Return the compiler that made the machine code."""
        kernel = self.recorded.kernel
        return (kernel.compilation if isinstance(kernel, sass.SassKernel) else None) or "not known"

    @property
    def shared(self) -> int:
        """Return the bytes of dynamic shared memory of a block."""
        return self.recorded.question.dynamic_shared or 0

    @property
    def registers(self) -> int | None:
        """Return the registers of a thread of the machine code with records."""
        kernel = self.recorded.kernel
        return kernel.resources.registers if isinstance(kernel, sass.SassKernel) else None

    @property
    def recorded_ptx(self) -> LaunchedKernel:
        """Return the kernel with records as PTX, launched alike."""
        question = replace(self.recorded.question, arch=None, dynamic_shared=None)
        return launch_kernel(replace(question, source=self.harness.module))

    @property
    def capability(self) -> str:
        """Return the compute capability for which the machine code is."""
        number = str(getattr(self.recorded.kernel, "sm", 0))
        return f"{number[:-1]}.{number[-1]}"

    def campaign(self, device: DeviceIdentity, source: str, seed: int) -> Campaign:
        """Return the launch on a device.

        Raises:
            InputError: the number of threads of a block is missing or too large.
        """
        launch, shared = self.recorded.launch, self.shared
        if launch.block is None:
            raise InputError("--block is missing: how many threads has a block?")
        known = (source, self.harness.name, self.code, self.compiler, launch.grid or (1, 1, 1), launch.block, shared)
        return Campaign(SCHEMA, device, *known, self.parameters, seed)

    def check_same(self, kept: Campaign, path: Path) -> None:
        """Refuse runs of another kernel or launch than what is bounded.

        Raises:
            InputError: something differs. The message says what.
        """
        own = self.campaign(kept.device, kept.file, kept.seed)
        for name, what in _SAME.items():
            if (has := getattr(kept, name)) != (asked := getattr(own, name)):
                raise InputError(f"{path}: these runs are of another {what}: {has!s:.200}, not {asked!s:.200}")


def measured_kernel(question: KernelQuestion, arch: str, buffers: Mapping[str, str]) -> MeasuredKernel:
    """Return the kernel of a question, compiled for an architecture.

    Args:
        question: a question about a source in CUDA or PTX. Without a grid, one block is launched.
        arch: the architecture of the GPU, such as `sm_86`.
        buffers: for each parameter that is an address, a number of bytes or the name of a file.

    Raises:
        InputError: a file that cannot be read, source that does not compile, a parameter that is not given.
        UnsupportedError: machine code, which cannot take records, or see `instrument.add_records`.
    """
    source = question.source
    if not isinstance(source, Path):
        raise InputError("a kernel that is measured comes from a file: give the .cu or the .ptx")
    _check_for_both(question)
    # records are added to PTX, so source is compiled to PTX first
    of_source = virtual_architecture(arch) if kernel_file.is_source(source) else None
    module = kernel_file.read(source, arch=of_source, keep_ptx=question.keep_ptx, named=question.named)
    if not isinstance(module, ptx.PtxModule):
        raise UnsupportedError(f"{source}: records are added to PTX, not to machine code: give the .cu or the .ptx")
    kernel = module.kernel(question.entry)
    harness, launch = add_records(module, kernel.name), ptx.fit_launch(question.launch, kernel)
    arguments = dict(_arguments(kernel, launch, buffers))
    names = [name for declaration in kernel.parameters or () for name, _ in declaration.names]
    placed = {str(names.index(name)): value for name, value in launch.parameters.items()}  # as both copies have them
    launch = replace(launch, parameters=placed, grid=launch.grid or (1, 1, 1))
    named = _without_warm(question.named)
    common = replace(question, entry=kernel.name, launch=launch, arch=arch, keep_ptx=None, named=named)
    image, code = kernel_file.assemble_module(harness.module, arch)
    recorded = LaunchedKernel(replace(common, source=code), code, code.kernel(kernel.name))
    return MeasuredKernel(harness, image, recorded, launch_kernel(replace(common, source=module)), arguments)


def _without_warm(named: Naming) -> Naming:
    """Return the same names without one for warm caches, so that no message offers them as a remedy."""
    return lambda field: "" if field == "warm" else named(field)


def _check_for_both(question: KernelQuestion) -> None:
    """Refuse options that mean something else in the copy with records, or that suppose what a run need not do."""
    if question.warm:
        # a block may come to an SM that has not run the kernel yet, and a GPU may empty caches between two launches
        raise InputError(
            f"{question.name}: no record tells whether a run found its code and constants in the caches: leave out"
            f" {question.named('warm')}, and give the latencies of fetch and constant-miss"
        )
    if question.take or question.trace is not None or question.paths == "single":
        raise InputError(f"{question.name}: a run takes any path: leave out --take, --trace and --paths single")
    for bound in question.loop_bounds:
        if bound.key.startswith(("line:", "0x")) or ".ptx:" in bound.key:
            raise InputError(
                f"--loop-bound {bound.key}: lines and addresses of the copy with records are other ones: name the"
                " loop by its label, or by FILE:LINE of the CUDA source"
            )


@dataclass(frozen=True, slots=True)
class BoundTarget:
    """The GPU for which bounds are computed.

    Args:
        machine: the machine of its SMs.
        sms: the number of SMs that the device reports.
        card: the description of the GPU. None means that it is not known.
        named: the machine if the user gave it.

    Raises:
        InputError: more SMs than `card` has.
    """

    machine: Machine
    sms: int
    card: Gpu | None = None
    named: Machine | None = None

    def __post_init__(self) -> None:
        if self.card is not None:
            self.card.count_sms(str(self.sms))

    def alone(self, kernel: LaunchedKernel) -> Instance:
        """Return one block alone on an SM, with all other SMs at work.

        Raises:
            InputError: a latency depends on all that a launch asks of DRAM.
        """
        for name, latency in kernel.question.latencies.items():
            if latency.dram is not None:
                raise InputError(
                    f"latency of {name}: {latency} is for a whole launch, not for a block: give {name}=..N"
                )
        # latencies hold with all SMs at work, which is the worst case for a block alone, too
        busy = at_work(kernel, self.sms, self.sms, self.card)
        one = replace(busy.question, blocks_per_sm=1)
        (found,) = LaunchedKernel(one, kernel.module, kernel.kernel).instances(self.machine)
        return found

    def launched(self, kernel: LaunchedKernel) -> GpuInstance:
        """Return all blocks on all SMs."""
        found = of_kernel(kernel, self.machine, sms=self.sms, card=self.card)
        return as_given(found, self.named, self.card)


def target_architecture(arch: str | None, card: Gpu | None, machine: Machine | None = None) -> str:
    """Return the architecture to compile for: that of the GPU or machine, or a given one that the GPU executes.

    Raises:
        InputError: it is not known, or the GPU does not execute it.
    """
    if arch is None:
        found = default_architecture(machine, card)
        if found is None:
            raise InputError("for which GPU is the kernel compiled? give --gpu, or --arch sm_NN")
        return f"sm_{found.sm}"
    check_architecture(arch, "--arch")
    if not is_machine_code(arch):
        raise InputError(f"--arch {arch:.40}: what is measured is machine code: give sm_NN, such as sm_86")
    number = int(arch.removeprefix("sm_").rstrip("af"))
    if card is not None and card.sm is not None and not is_compatible(number, card.sm):
        raise InputError(f"--arch {arch}: GPU {card.name}, of sm_{card.sm}, does not execute this code")
    return arch


def _arguments(
    kernel: ptx.PtxKernel, launch: Launch, given: Mapping[str, str]
) -> Iterator[tuple[str, bytes | KernelBuffer]]:
    """Yield the bytes of every parameter, or the buffer whose address it is."""
    buffers = {}
    for key, text in given.items():
        (name,) = ptx.fit_launch(Launch(parameters={key: 0}, named=lambda _: "--buffer"), kernel).parameters
        if name in buffers or name in launch.parameters:
            raise InputError(f"--buffer {key}: parameter {name} is given twice")
        buffers[name] = _buffer(key, text)
    known = ptx.known_parameters(kernel, launch)
    for declaration in kernel.parameters or ():
        ((name, _),) = declaration.names
        if name in known:
            yield name, known[name].value.to_bytes(known[name].bits // 8, "little")
        elif name not in buffers:
            raise InputError(
                f"{kernel.source}: what is parameter {name} of kernel {kernel.name} when it is measured? give --param"
                f" {name}=N or, if it is an address, --buffer {name}=BYTES"
            )
        elif (ptx.scalar_type(declaration) or ("", 0))[1] != _ADDRESS_BITS:
            raise InputError(f"--buffer {name}: parameter {name} ({declaration.text}) holds no address")
        else:
            yield name, buffers[name]


def _buffer(name: str, text: str) -> KernelBuffer:
    if text.isascii() and text.isdecimal() and len(text) <= len(str(MAX_BUFFER_BYTES)):
        return KernelBuffer(int(text))
    content = read_bytes(Path(text), f"content of buffer {name}", MAX_BUFFER_BYTES)
    return KernelBuffer(len(content), content)
