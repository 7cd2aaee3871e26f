"""What machine code does when it is executed, the front end allows: its paths, and the values that it computes."""

from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np
import pytest

from makespan.host import tool
from makespan.host.errors import UnsupportedError
from makespan.kernels.flow import KernelWarps, Launch, TimedCode
from makespan.kernels.sass import SassKernel
from makespan.kernels.sass.cubin import assemble_ptx
from makespan.kernels.sass.disassembler import disassemble
from makespan.kernels.sass.graph import flow
from makespan.model.machine import PAPER
from makespan.model.program import BARRIER, Program
from tests import sass_interpreter
from tests.flow.simt import accepts
from tests.ptx_interpreter.values import Array
from tests.sass.test_interpreter import LISTINGS, inputs, kernel_in, stored, stored_by_ptx
from tests.sass_interpreter.machine import Warp
from tests.sass_random import SLOTS, random_kernel

BLOCK = (64, 1, 1)
REFUSED = {"breaks.86": "BREAK B1", "switch.100": "BSSY.RELIABLE"}


def programs_by_address(kernel: SassKernel, n: int) -> list[Program]:
    """The programs of the warps of a block, whose units are addresses, so that no two places are taken for one."""
    code = flow(kernel)
    units = tuple(str(instruction.address) for instruction in code.code)
    launch = Launch(block=BLOCK, parameters={"2": n})
    warps = KernelWarps(TimedCode(code, PAPER, {}, units), launch, ())
    return [warps.program(warp) for warp in (0, 1)]


def executed(kernel: SassKernel, n: int, seed: int) -> list[list[str]]:
    """What each of these warps executes, one side after the other, as units of `programs_by_address`."""
    trace = sass_interpreter.run(kernel, block=BLOCK, arguments=_arguments(n), seed=seed)
    units = {int(i.address): BARRIER if i.name == "BAR" else str(i.address) for i in kernel.code}
    return [[units[address] for address in trace.addresses(warp)] for warp in (0, 1)]


def _arguments(n: int) -> list[Array | int]:
    return [inputs(n), np.zeros((64, SLOTS), np.uint32), n]


@pytest.mark.parametrize("path", [p for p in LISTINGS if p.stem not in REFUSED], ids=lambda path: path.stem)
def test_programs_have_what_warps_execute(path: Path) -> None:
    kernel = kernel_in(path)
    for n in (0, 3):
        programs = programs_by_address(kernel, n)
        for seed in range(3):
            for program, word in zip(programs, executed(kernel, n, seed), strict=True):
                assert accepts(program, word)
                assert len(word) < 9 or not accepts(program, [*word[:7], *word[8:]])


@pytest.mark.parametrize("path", [p for p in LISTINGS if p.stem in REFUSED], ids=lambda path: path.stem)
def test_what_is_not_followed_is_refused_by_name(path: Path) -> None:
    with pytest.raises(UnsupportedError, match=REFUSED[path.stem]):
        flow(kernel_in(path))


@pytest.mark.parametrize("path", [p for p in LISTINGS if p.stem not in REFUSED], ids=lambda path: path.stem)
def test_known_results_are_what_instructions_leave(path: Path) -> None:
    kernel = kernel_in(path)
    code = flow(kernel)
    n = 3
    parameters = code.semantics.signature.known(Launch(block=BLOCK, parameters={"2": n}))
    computations = {
        int(i.address): found
        for number, i in enumerate(code.code)
        if (found := code.semantics.computation(number, parameters))
    }
    seen = set()

    def watch(warp: Warp, at: int, lanes: Array) -> Callable[[], None]:
        computation = computations.get(at)
        chosen = [int(lane) for lane in np.nonzero(lanes)[0][[0, -1]]] if computation and lanes.any() else []
        told = [computation.apply(_state(warp, lane)) for lane in chosen] if computation else []

        def after() -> None:
            for lane, values in zip(chosen, told, strict=True):
                state = _state(warp, lane)
                for name, value in zip(computation.results if computation else (), values, strict=True):
                    assert name is None or value is None or state.get(name, 0) == value, kernel.code[at // 16]
                seen.add(kernel.code[at // 16].opcode)

        return after

    sass_interpreter.run(kernel, block=BLOCK, arguments=_arguments(n), watch=watch)
    assert len(seen) >= 8


def _state(warp: Warp, lane: int) -> Mapping[str, int]:
    """The registers of a lane; those that nobody has written yet are not known."""
    words = warp.block.banks[0].view(np.uint32)
    known = {f"c[0x0][{4 * at:#x}]": int(word) for at, word in enumerate(words.tolist()) if word}
    special = {"SR_TID.X": int(warp.threads()[lane]), "SR_TID.Y": 0, "SR_TID.Z": 0, "SR_LANEID": lane}
    return {**known, **special, **{name: int(held[lane]) for name, held in warp.registers.items()}}


@pytest.mark.parametrize(("arch", "seed"), [("sm_75", 36), ("sm_90", 3), ("sm_120", 53)])
def test_freshly_compiled_kernels_store_and_go_as_the_front_end_allows(arch: str, seed: int) -> None:
    if tool.find("ptxas") is None or tool.find("nvdisasm") is None:
        pytest.skip("ptxas and nvdisasm are not installed")
    text = random_kernel(seed, steps=10, iterations=3)
    kernel = disassemble(assemble_ptx(text, "k.ptx", arch), "k.cubin", "k.ptx").kernel("k")
    assert np.array_equal(stored(kernel, 3), stored_by_ptx(text, 3))
    for program, word in zip(programs_by_address(kernel, 3), executed(kernel, 3, seed), strict=True):
        assert accepts(program, word)
