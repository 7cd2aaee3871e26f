"""From a kernel and its launch to the profile that estimators read."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from makespan.estimates.profile.accesses import UNKNOWN_ADDRESS, Accesses
from makespan.estimates.profile.exact import ExactCounts, TooManyError, UndecidedError, exact_counts
from makespan.estimates.profile.lanes import lane_offsets
from makespan.estimates.profile.launched import Launched
from makespan.estimates.profile.opcodes import kind
from makespan.estimates.profile.probes import ALIGNMENT, Probed, insert_probes
from makespan.estimates.profile.resources import Resources, declared_shared_bytes
from makespan.estimates.profile.structure import Structure
from makespan.estimates.profile.values import Coalescing, InstructionCount, KernelProfile, MemoryOperation, WarpClass
from makespan.host.errors import InputError, UnsupportedError
from makespan.kernels.flow import GivenBound, Launch
from makespan.kernels.ptx import PtxFlow, PtxInstruction, PtxKernel, is_inlined

MAX_WARP_SIZE = 1024
# For how many warps of a block the way of each branch is asked for, where the launch does not decide all of them.
MAX_WARPS_DECIDED = 32

_NOT_ANALYSED = frozenset({"cp", "tex", "tld4", "suld", "sust", "sured", "wmma", "multimem"})


def profile(
    kernel: PtxKernel,
    launch: Launch,
    *,
    coalescing: Coalescing | None = None,
    warp_size: int = 32,
    loop_bounds: Sequence[GivenBound] = (),
    resources: Resources | None = None,
    registers: int | None = None,
    dynamic_shared_bytes: int = 0,
) -> KernelProfile:
    """Return what the warps of a launch execute, and what their accesses do to memory.

    Where the launch decides every branch (its parameters are given, and no data decides), all threads are followed and
    the counts are those of the launch. Otherwise they follow from loop bounds and branches: see `Structure`.

    Args:
        coalescing: the rule; segments of 128 bytes if not given.
        warp_size: threads of a warp. The control flow of PTX knows warps of 32: another size is an analogy.
        resources: what `ptxas -v` says.
        registers: per thread, over what `resources` says.
        dynamic_shared_bytes: per block, given at launch.

    Raises:
        InputError: no block or grid, a loop without bound, an opcode that no table knows.
        UnsupportedError: control flow that cannot be followed, or a call of what has no body in the file.
    """
    launched = Launched.of(kernel, launch, loop_bounds)
    for name, value, least in (
        ("warp size", warp_size, 1),
        ("dynamic shared memory", dynamic_shared_bytes, 0),
        ("registers per thread", registers or 0, 0),
    ):
        if value < least:
            raise InputError(f"{name} must be at least {least}, not {value}")
    if warp_size > MAX_WARP_SIZE:
        raise InputError(f"warp size must be at most {MAX_WARP_SIZE}, a whole block, not {warp_size}")
    counted = _CountedKernel(launched, coalescing or Coalescing(), warp_size).counts()
    _refuse_unknown_calls(launched.flow, counted.instructions)
    shared_bytes = resources.shared_bytes if resources else declared_shared_bytes(launched.flow.kernel)
    return replace(
        counted,
        registers=registers if registers is not None else resources.registers if resources else None,
        shared_bytes=shared_bytes + dynamic_shared_bytes,
        spill_bytes=resources.spill_bytes if resources else None,
    )


def _refuse_unknown_calls(found: PtxFlow, instructions: Sequence[InstructionCount]) -> None:
    """Refuse calls of functions outside of the file, whose instructions cannot be counted."""
    for instruction, counted in zip(found.code, instructions, strict=True):
        if instruction.name == "call" and counted.executions and not is_inlined(instruction):
            raise UnsupportedError(
                f"{found.kernel.file}:{instruction.line}: `{instruction}` calls what has no body in this file, and its"
                " instructions cannot be counted; have the function compiled into it"
            )


@dataclass(frozen=True)
class _CountedKernel:
    """A kernel whose executions and accesses are counted."""

    launched: Launched
    coalescing: Coalescing
    warp_size: int

    @property
    def flow(self) -> PtxFlow:
        return self.launched.flow

    @cached_property
    def numbered(self) -> tuple[int, ...]:
        spans = enumerate(self.flow.blocks)
        return tuple(block for block, span in spans for _ in range(span.first, span.stop))

    @cached_property
    def probed(self) -> Probed | None:
        """Return the kernel with probes; None where calls or indirect branches keep it from being followed."""
        return insert_probes(self.flow, self.launched.launch) if self.flow.is_plain else None

    def counts(self) -> KernelProfile:
        """Return exact counts if the launch decides every branch, else those of the structure."""
        if self.probed is None:
            return self._structural("calls and indirect branches are not followed thread by thread")
        try:
            try:
                return self._exact(self._executed(self.probed, with_addresses=True))
            except TooManyError:  # without addresses, fewer threads differ
                return self._exact(self._executed(self.probed, with_addresses=False))
        except UndecidedError as error:
            return self._structural(str(error))

    def _executed(self, found: Probed, *, with_addresses: bool) -> ExactCounts:
        return exact_counts(found, self.launched.launch, self.coalescing, self.warp_size, with_addresses=with_addresses)

    def _exact(self, exact: ExactCounts) -> KernelProfile:
        warps = sum(one.warps for one in exact.classes)
        per_block = [
            sum(one.warps * one.executions[block] for one in exact.classes) / warps for block in range(self.flow.exit)
        ]
        shared = (
            f"line {self.flow.last(block).line}: lanes part here, and both sides share code before they meet again;"
            " it is counted once, as if they met there"
            for block in exact.shared_ways
        )
        per_number = [WarpClass(one.warps, tuple(one.executions[b] for b in self.numbered)) for one in exact.classes]
        return self._counts(per_block, exact, [] if exact.shared_ways else per_number, after=tuple(shared))

    def _structural(self, why: str) -> KernelProfile:
        launched = self.launched
        divergent = launched.branching - launched.uniform
        structure = Structure(self.flow, launched.nest, launched.infos(), divergent, self._decided())
        counted = structure.counts()
        notes = (f"counted from loop bounds and branches: {why}", *structure.notes)
        return self._counts([float(counted[block]) for block in range(self.flow.exit)], before=notes)

    def _counts(
        self,
        per_block: Sequence[float],
        exact: ExactCounts | None = None,
        classes: Sequence[WarpClass] = (),
        *,
        before: tuple[str, ...] = (),
        after: tuple[str, ...] = (),
    ) -> KernelProfile:
        launched, known, kernel = self.launched, self.probed, self.launched.kernel
        often = [per_block[block] for block in self.numbered]
        instructions = (
            InstructionCount(i.line, str(i), i.opcode, kind(i, kernel.file), executions)
            for i, executions in zip(self.flow.code, often, strict=True)
        )
        warps = -(-launched.threads // self.warp_size) * launched.blocks
        offsets = {} if known is None else lane_offsets(known, launched.launch, launched.uniform, self.warp_size)
        accesses = Accesses(self.flow, offsets, self.coalescing, self.warp_size, launched.threads, warps)
        # an access that was looked at and has no count had no lane enabled
        idle = exact.watched if exact else frozenset[int]()
        executions = {number: 0.0 if number in idle else mean for number, mean in enumerate(often)}
        memory = tuple(accesses.operations(executions, exact.accesses if exact else {}))
        return KernelProfile(
            kernel=kernel.name,
            file=kernel.source,
            threads_per_block=launched.threads,
            blocks=launched.blocks,
            warp_size=self.warp_size,
            instructions=tuple(instructions),
            memory=memory,
            is_exact=bool(classes),
            warp_classes=tuple(classes),
            notes=(*before, *self._notes(memory), *after),
        )

    def _decided(self) -> Mapping[int, int]:
        warps = self.launched.launch.warps_per_block or 0
        if not self.flow.is_plain or warps > MAX_WARPS_DECIDED:
            return {}
        # decided only if all warps take the same side
        first, *others = (self.launched.decided(warp) for warp in range(warps))
        return {block: side for block, side in first.items() if all(other.get(block) == side for other in others)}

    def _notes(self, memory: Sequence[MemoryOperation]) -> Iterator[str]:
        executed = [one for one in memory if one.is_device and one.executions]
        if self.probed is not None and self.probed.pointers and executed:
            pointers = ", ".join(sorted(self.probed.pointers))
            yield f"pointers are taken to be aligned to {ALIGNMENT} bytes: {pointers}"
        for one in executed:
            if one.is_assumed:
                yield f"line {one.line}: `{one.text}`: {one.reason}"
            if one.reason == UNKNOWN_ADDRESS:
                served = f"{self.warp_size} transactions"
                yield f"line {one.line}: `{one.text}` counts as uncoalesced, {served}: {one.reason}"
        if lines := sorted({i.line for i in self.flow.code if i.name in _NOT_ANALYSED}):
            yield f"copies, textures and matrices are not analysed as accesses: {_lines(lines)}"
        if lines := sorted({i.line for i in self.flow.code if _is_guarded(i)}):
            yield f"guarded instructions count as executed whatever their predicate: {_lines(lines)}"


def _is_guarded(instruction: PtxInstruction) -> bool:
    return instruction.guard is not None and instruction.name not in ("bra", "ret", "exit", "brx", "call")


def _lines(lines: Sequence[int]) -> str:
    shown = ", ".join(map(str, lines[:5]))
    return f"line{'s' * (len(lines) > 1)} {shown}{', ...' * (len(lines) > 5)}"
