"""From a question about a PTX kernel to what is measured and what is bounded, which is the same machine code."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from makespan import kernel_file, ptx, sass
from makespan.errors import InputError, UnsupportedError
from makespan.flow import Launch
from makespan.instance import Instance
from makespan.machine import Machine
from makespan.question import KernelQuestion, LaunchedKernel, launched
from makespan.text_file import read_bytes
from makespan.validation.campaign import MAX_BUFFER_BYTES, Buffer, hashed
from makespan.validation.instrument import Harness, instrumented

_ADDRESS_BITS = 64


@dataclass(frozen=True, slots=True)
class Subject:
    """A kernel with records and without, as machine code, launched alike.

    Args:
        image: the machine code with records, as it is loaded.
        arguments: of the kernel without records, by name in the PTX.
    """

    harness: Harness
    image: bytes
    recorded: LaunchedKernel
    original: LaunchedKernel
    arguments: Mapping[str, bytes | Buffer]

    @property
    def code(self) -> str:
        """By what the machine code is known again."""
        return hashed(self.image)

    @property
    def parameters(self) -> dict[str, str]:
        """What they are, by name, in words."""
        return {name: one.hex() if isinstance(one, bytes) else str(one) for name, one in self.arguments.items()}

    @property
    def compiler(self) -> str:
        """What made the machine code."""
        kernel = self.recorded.kernel
        return (kernel.compilation if isinstance(kernel, sass.Kernel) else None) or "not known"


def subject(question: KernelQuestion, arch: str, buffers: Mapping[str, str]) -> Subject:
    """The kernel of a question, compiled for an architecture.

    Args:
        question: of a source in CUDA or PTX; one block of its launch is judged, alone on an SM.
        arch: of the GPU, such as `sm_86`.
        buffers: what each parameter that is an address points to, a number of bytes or the name of a file.

    Raises:
        InputError: a file that cannot be read, source that does not compile, a parameter that is not given.
        UnsupportedError: machine code, which cannot take records, or see `instrument.instrumented`.
    """
    source = question.source
    if not isinstance(source, Path):
        raise InputError("a kernel that is measured comes from a file: give the .cu or the .ptx")
    _check_for_both(question)
    kind = kernel_file.KINDS.get(source.suffix)
    virtual = arch.replace("sm_", "compute_") if kind is not None and kind.compiles else None
    module = kernel_file.read(source, arch=virtual, keep_ptx=question.keep_ptx, named=question.named)
    if not isinstance(module, ptx.Module):
        raise UnsupportedError(f"{source}: records are added to PTX, not to machine code: give the .cu or the .ptx")
    kernel = module.kernel(question.entry)
    harness, launch = instrumented(module, kernel.name), ptx.fitted(question.launch, kernel)
    arguments = dict(_arguments(kernel, launch, buffers))
    names = [name for declaration in kernel.parameters or () for name, _ in declaration.names]
    placed = {str(names.index(name)): value for name, value in launch.parameters.items()}  # as both copies have them
    launch = replace(launch, parameters=placed)
    common = replace(question, entry=kernel.name, launch=launch, arch=arch, keep_ptx=None, blocks_per_sm=1)
    image, code = kernel_file.assembled(harness.module, arch)
    recorded = LaunchedKernel(replace(common, source=code), code, code.kernel(kernel.name))
    return Subject(harness, image, recorded, launched(replace(common, source=module)), arguments)


def _check_for_both(question: KernelQuestion) -> None:
    """Refuse what means something else in the copy with records, or fixes a path that no run has to take."""
    if question.take or question.trace is not None or question.paths == "single":
        raise InputError(f"{question.name}: a run takes any path: leave out --take, --trace and --paths single")
    for bound in question.loop_bounds:
        if bound.key.startswith(("line:", "0x")) or ".ptx:" in bound.key:
            raise InputError(
                f"--loop-bound {bound.key}: lines and addresses of the copy with records are other ones: name the"
                " loop by its label, or by FILE:LINE of the CUDA source"
            )


def instance(kernel: LaunchedKernel, machine: Machine) -> Instance:
    """One block alone on an SM."""
    (found,) = kernel.instances(machine)
    return found


def _arguments(kernel: ptx.Kernel, launch: Launch, given: Mapping[str, str]) -> Iterator[tuple[str, bytes | Buffer]]:
    """Of every parameter its bytes, or the buffer whose address it is."""
    buffers = {}
    for key, text in given.items():
        (name,) = ptx.fitted(Launch(parameters={key: 0}), kernel).parameters
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
        elif (ptx.scalar(declaration) or ("", 0))[1] != _ADDRESS_BITS:
            raise InputError(f"--buffer {name}: parameter {name} ({declaration.text}) holds no address")
        else:
            yield name, buffers[name]


def _buffer(name: str, text: str) -> Buffer:
    """So many bytes, or the content of a file."""
    if text.isascii() and text.isdecimal() and len(text) <= len(str(MAX_BUFFER_BYTES)):
        return Buffer(int(text))
    content = read_bytes(Path(text), f"content of buffer {name}", MAX_BUFFER_BYTES)
    return Buffer(len(content), content)
