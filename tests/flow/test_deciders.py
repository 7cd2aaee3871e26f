"""What else has to be said of a launch for a loop to end: what flows into its exits, and nothing beside it."""

import re
from collections.abc import Sequence

import pytest

from makespan.host import tool
from makespan.kernels import ptx, sass
from makespan.kernels.flow.graph import Flow
from makespan.kernels.flow.grid import Launch, LaunchInput
from makespan.kernels.flow.inference import deciders, infer_iterations
from makespan.kernels.flow.loops import loop_nest

PARAMETERS = ".param .u64 data, .param .u32 n, .param .u32 m, .param .align 8 .b8 both[16]"
REGISTERS = ".reg .pred p, q, r; .reg .b32 i, j, k, s, t, %n, %m; .reg .b64 at;"
LOADS = "ld.param.u64 at, [data]; ld.param.u32 %n, [n]; ld.param.u32 %m, [m];"


def kernel(body: str) -> ptx.PtxKernel:
    text = f".version 8.0\n.target sm_80\n.visible .entry k({PARAMETERS}) {{ {REGISTERS} {LOADS} {body} }}"
    return ptx.parse(text, "k.ptx").kernel()


def open_loops(flow: Flow, launch: Launch) -> list[int]:
    """The loops of which no end is in sight."""
    loops = loop_nest(flow)
    proven = infer_iterations(flow, loops, launch)
    return [n for n in range(len(loops.loops)) if n not in proven or proven[n].bound is None]


def decided(flow: Flow, launch: Launch) -> dict[str, str]:
    """What decides each loop of which no end is in sight, by label."""
    loops = loop_nest(flow)
    found = deciders(flow, loops, launch, open_loops(flow, launch))
    names = {n: flow.name(loops.loops[n].header) for n in open_loops(flow, launch)}
    return {name: " ".join(each.name or each.field for each in found.get(n, ())) for n, name in names.items()}


COUNTED = "mov.u32 i, 0; L: add.u32 i, i, 1; setp.lt.u32 p, i, {}; @p bra L; ret;"

KERNELS = {
    "a parameter": (COUNTED.format("%n"), {"L": "n"}),
    "a sum of two": (f"add.u32 s, %n, %m; {COUNTED.format('s')}", {"L": "m n"}),
    "the block": (f"mov.u32 s, %ntid.x; {COUNTED.format('s')}", {"L": "block"}),
    "the grid": (f"mov.u32 s, %nctaid.y; {COUNTED.format('s')}", {"L": "grid"}),
    "a place in the grid": (
        f"mov.u32 s, %ctaid.x; mov.u32 t, %ntid.x; mul.lo.u32 s, s, t; {COUNTED.format('s')}",
        {"L": "block grid"},
    ),
    "a lane, which all launches have": (f"mov.u32 s, %laneid; {COUNTED.format('s')}", {}),
    "memory": (f"ld.global.u32 s, [at]; {COUNTED.format('s')}", {"L": ""}),
    "memory and a parameter": (f"ld.global.u32 s, [at]; add.u32 s, s, %n; {COUNTED.format('s')}", {"L": ""}),
    "memory at first, in a register that is written again": (
        f"ld.global.u32 s, [at]; st.global.u32 [at], s; mov.u32 s, %n; {COUNTED.format('s')}",
        {"L": "n"},
    ),
    "memory that is counted up": (
        "ld.global.u32 i, [at]; L: add.u32 i, i, 1; setp.lt.u32 p, i, %n; @p bra L; ret;",
        {"L": ""},
    ),
    "a parameter that is no number": (f"ld.param.u32 s, [both]; {COUNTED.format('s')}", {"L": ""}),
    "one of several exits": (
        "mov.u32 i, 0; L: ld.global.u32 s, [at]; setp.eq.u32 q, s, 0; @q bra OUT; add.u32 i, i, 1;"
        " setp.lt.u32 p, i, %n; @p bra L; OUT: ret;",
        {"L": "n"},
    ),
    "the exit that needs the least": (
        "mov.u32 i, 0; L: add.u32 i, i, 1; mul.lo.u32 s, %n, %m; setp.gt.u32 q, i, s; @q bra OUT;"
        " setp.lt.u32 p, i, %m; @p bra L; OUT: ret;",
        {"L": "m"},
    ),
    "two exits in one predicate": (
        "mov.u32 i, 0; L: add.u32 i, i, 1; ld.global.u32 s, [at]; setp.eq.u32 q, s, 0; setp.ge.u32 p, i, %n;"
        " or.pred p, p, q; @!p bra L; ret;",
        {"L": "n"},
    ),
    "two exits in one comparison": (
        "mov.u32 i, 0; L: add.u32 i, i, 1; ld.global.u32 s, [at]; setp.ne.u32 q, s, 0; setp.ne.and.u32 p, i, %n, q;"
        " @p bra L; ret;",
        {"L": "n"},
    ),
    "a choice by memory": (
        "ld.global.u32 s, [at]; setp.eq.u32 q, s, 0; mov.u32 i, 0; L: add.u32 j, i, 1; add.u32 k, i, 2;"
        " selp.u32 i, j, k, q; setp.lt.u32 p, i, %n; @p bra L; ret;",
        {"L": ""},
    ),
    "a choice by a parameter": (
        f"setp.eq.u32 q, %m, 16; selp.u32 s, %n, 7, q; {COUNTED.format('s')}",
        {"L": "m n"},
    ),
    "a branch by a parameter": (
        f"mov.u32 s, 7; setp.eq.u32 q, %m, 16; @q bra JOIN; mov.u32 s, 9; JOIN: {COUNTED.format('s')}",
        {"L": "m"},
    ),
    "a guard by a parameter": (
        f"mov.u32 s, 7; setp.eq.u32 q, %m, 16; @q mov.u32 s, %n; {COUNTED.format('s')}",
        {"L": "m n"},
    ),
    "a guard by memory": (
        f"ld.global.u32 t, [at]; mov.u32 s, 7; setp.eq.u32 q, t, 0; @q mov.u32 s, 9; {COUNTED.format('s')}",
        {"L": ""},
    ),
    "steps by memory": (
        "mov.u32 i, 0; L: add.u32 i, i, 1; ld.global.u32 s, [at]; setp.eq.u32 q, s, 0; @q bra JOIN; add.u32 i, i, 1;"
        " JOIN: setp.lt.u32 p, i, %n; @p bra L; ret;",
        {"L": ""},
    ),
    "behind a loop that memory ends": (
        "mov.u32 i, 0; A: add.u32 i, i, 1; ld.global.u32 s, [at]; setp.ne.u32 q, s, 0; @q bra A;"
        " L: add.u32 i, i, 1; setp.lt.u32 p, i, %n; @p bra L; ret;",
        {"A": "", "L": ""},
    ),
    "behind a loop that a parameter ends": (
        "mov.u32 i, 0; A: add.u32 i, i, 2; setp.lt.u32 q, i, %m; @q bra A;"
        " L: add.u32 i, i, 1; setp.lt.u32 p, i, %n; @p bra L; ret;",
        {"A": "m", "L": "m n"},
    ),
    "nested": (
        "mov.u32 i, 0; A: mov.u32 j, 0; L: add.u32 j, j, 1; setp.lt.u32 p, j, %n; @p bra L;"
        " add.u32 i, i, 1; setp.lt.u32 q, i, %m; @q bra A; ret;",
        {"A": "m", "L": "n"},
    ),
    "nested, and the inner one counts to the outer one": (
        "mov.u32 i, 0; A: mov.u32 j, 0; L: add.u32 j, j, 1; setp.lt.u32 p, j, i; @p bra L;"
        " add.u32 i, i, 1; setp.lt.u32 q, i, %m; @q bra A; ret;",
        {"A": "m", "L": "m"},
    ),
    "nested, and memory ends the outer one, to which the inner one counts": (
        "mov.u32 i, 0; A: mov.u32 j, 0; L: add.u32 j, j, 1; setp.lt.u32 p, j, i; @p bra L;"
        " add.u32 i, i, 1; ld.global.u32 s, [at]; setp.ne.u32 q, s, 0; @q bra A; ret;",
        {"A": "", "L": ""},
    ),
    "nested, and memory ends the inner one": (
        "mov.u32 i, 0; A: st.global.u32 [at], i; L: ld.global.u32 s, [at]; setp.ne.u32 q, s, 0; @q bra L;"
        " add.u32 i, i, 1; setp.lt.u32 p, i, %m; @p bra A; ret;",
        {"A": "m", "L": ""},
    ),
    "around without a test, if memory says so": (
        "mov.u32 i, 0; L: add.u32 i, i, 1; ld.global.u32 s, [at]; setp.ne.u32 q, s, 0; @q bra L;"
        " setp.lt.u32 p, i, %m; @p bra L; ret;",
        {"L": ""},
    ),
    "around past one of two tests, if memory says so": (
        "mov.u32 i, 0; L: add.u32 i, i, 1; ld.global.u32 s, [at]; setp.ne.u32 q, s, 0; @q bra OTHER;"
        " setp.lt.u32 p, i, %n; @p bra L; ret; OTHER: setp.lt.u32 p, i, %m; @p bra L; ret;",
        {"L": "m n"},
    ),
    "without an end": ("mov.u32 i, 0; L: add.u32 i, i, %n; bra L;", {"L": ""}),
}


@pytest.mark.parametrize(("body", "expected"), KERNELS.values(), ids=KERNELS)
def test_what_flows_into_an_exit_decides_a_loop(body: str, expected: dict[str, str]) -> None:
    assert decided(ptx.flow(kernel(body)), Launch()) == expected


@pytest.mark.parametrize(("body", "expected"), KERNELS.values(), ids=KERNELS)
def test_a_loop_ends_once_what_decides_it_is_said(body: str, expected: dict[str, str]) -> None:
    """And none ends without, whatever else is said."""
    flow = ptx.flow(kernel(body))
    loops = loop_nest(flow)
    for number in open_loops(flow, Launch()):
        inputs = deciders(flow, loops, Launch(), open_loops(flow, Launch())).get(number, ())
        said = tuple(LaunchInput("parameters", name) for name in ("data", "n", "m"))
        everything = (*said, LaunchInput("block"), LaunchInput("grid"))
        assert (number in open_loops(flow, launch(inputs or everything))) is not bool(inputs)
        for left in inputs:
            assert number in open_loops(flow, launch([each for each in everything if each != left]))


def launch(inputs: Sequence[LaunchInput]) -> Launch:
    """A launch of which these are said."""
    fields = {each.field for each in inputs}
    values = {each.name: 16 for each in inputs if each.name}
    return Launch(64 if "block" in fields else None, 2 if "grid" in fields else None, values)


def test_what_is_said_already_decides_nothing() -> None:
    flow = ptx.flow(kernel(KERNELS["a place in the grid"][0]))
    assert decided(flow, Launch(block=64)) == {"L": "grid"}
    assert decided(flow, Launch(block=64, grid=2)) == {}
    assert decided(ptx.flow(kernel(KERNELS["memory"][0])), launch(())) == {"L": ""}


def test_a_parameter_is_called_as_a_user_calls_it() -> None:
    parameters = ".param .u32 k_param_0, .param .u32 count"
    for name, called in (("k_param_0", "0"), ("count", "count")):
        body = f".reg .pred p; .reg .b32 i, n; ld.param.u32 n, [{name}]; {COUNTED.format('n')}"
        text = f".version 8.0\n.target sm_80\n.visible .entry k({parameters}) {{ {body} }}"
        assert decided(ptx.flow(ptx.parse(text, "k.ptx").kernel()), Launch()) == {"L": called}


needs_tools = pytest.mark.skipif(
    None in map(tool.find, ("ptxas", "nvdisasm")), reason="ptxas and nvdisasm are not installed"
)


@needs_tools
@pytest.mark.parametrize("architecture", ["sm_75", "sm_86", "sm_90", "sm_120"])
def test_machine_code_is_decided_by_what_decides_its_ptx(architecture: str) -> None:
    text = ".version 8.7\n.target sm_75\n.address_size 64\n" + "".join(
        f".visible .entry k{number}({PARAMETERS}) {{ {REGISTERS} {LOADS} {_storing(body)} }}\n"
        for number, (body, _) in enumerate(KERNELS.values())
    )
    module = sass.disassemble(sass.assemble_ptx(text, "k.ptx", architecture), "k.cubin", "k.cubin")
    for number, (name, (_, expected)) in enumerate(KERNELS.items()):
        flow = sass.flow(module.kernel(f"k{number}"))
        if flow.is_plain:
            assert set(decided(flow, Launch()).values()) == _by_position(expected), name


def _by_position(expected: dict[str, str]) -> set[str]:
    """What decides the loops, with parameters by the positions that machine code knows."""
    position = {"n": "1", "m": "2"}
    return {" ".join(sorted(position.get(word, word) for word in words.split())) for words in expected.values()}


def _storing(body: str) -> str:
    """The same with a store in every loop, which keeps it."""
    return re.sub(r"@(!?[pq]) bra ([AL]);", r"st.global.u32 [at+64], i; @\1 bra \2;", body)
