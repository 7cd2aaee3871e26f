"""`makespan estimate --method hong-kim`: counts that are given, and counts from PTX."""

import json
from pathlib import Path
from typing import Any

import pytest

from makespan.estimates.hong_kim import HongKimKernel
from makespan.estimates.hong_kim.launch import estimate_launch
from makespan.host.errors import InputError
from makespan.model.machine import gpus
from tests.command import Outcome, Runner

EXAMPLE = ("--gpu", "isca09-example", "--grid", 80, "--block", 128, "--active-blocks", 5)
COUNTS = ("--counts", "comp=27,uncoal=6,coal=0,synch=6")
QUADRO = ("--gpu", "quadro-fx5600", "--grid", 16, "--block", 128)

MIX = """\
.version 7.0
.target sm_75
.address_size 64
.visible .entry mix(.param .u64 x, .param .u64 y)
{
    .reg .pred %p;
    .reg .b32 %i, %t;
    .reg .f32 %a, %b;
    .reg .b64 %x, %y, %o, %u;
    .shared .align 4 .b8 tile[2048];
    ld.param.u64 %x, [x];
    ld.param.u64 %y, [y];
    mov.u32 %t, %tid.x;
    mad.wide.u32 %u, %t, 132, %x;
    mad.wide.u32 %o, %t, 4, %y;
    mov.u32 %i, 0;
loop:
    ld.global.f32 %a, [%u];
    ld.global.f32 %b, [%o];
    add.f32 %a, %a, %b;
    div.rn.f32 %a, %a, %b;
    st.shared.f32 [tile], %a;
    bar.sync 0;
    add.u32 %i, %i, 1;
    setp.lt.u32 %p, %i, 3;
    @%p bra loop;
    ret;
}
"""
"""Three iterations, each with a load of every 33rd element, one of consecutive elements, and a barrier."""


@pytest.fixture
def mix(tmp_path: Path) -> Path:
    file = tmp_path / "mix.ptx"
    file.write_text(MIX)
    return file


def quantities(done: Outcome) -> dict[str, Any]:
    assert done.code == 0, done
    return {quantity["name"]: quantity["value"] for quantity in json.loads(done.out)["quantities"]}


def test_the_worked_example_of_hong_kim_isca09(estimate: Runner) -> None:
    done = estimate("--method", "hong-kim", *COUNTS, *EXAMPLE)
    assert done.code == 0
    assert done.out.splitlines()[-1] == "estimate (not a bound) by hong-kim: 50728.2 cycles, 5.07282e-05 s"
    assert "limited by: memory" in done.out
    explained = estimate("hong-kim", *COUNTS, *EXAMPLE, "--explain").out
    assert "MWP_without_BW_full = 2.28125 warps" in explained
    assert "although it moves a segment for each transaction" in explained
    as_json = estimate("hong-kim", *COUNTS, *EXAMPLE, "--format", "json")
    document = json.loads(as_json.out)
    assert (document["schema"], document["cycles"]) == ("makespan.estimate/1", 50728.1875)
    assert (document["is_bound"], quantities(as_json)["case"]) == (False, "case 2")


def test_variants_and_waves(estimate: Runner) -> None:
    heavy = ("hong-kim", "--counts", "comp=10000,coal=10", *EXAMPLE, "--format", "json")
    published, bounded = estimate(*heavy), estimate(*heavy, "--variant", "issue-bounded")
    assert quantities(published)["exec"] == 66806.625
    assert quantities(published)["below_issue_bound"] == "true"
    assert any("issue-bounded gives those" in warning for warning in json.loads(published.out)["warnings"])
    assert quantities(bounded)["exec"] == 800800
    grid = ("hong-kim", *COUNTS, "--gpu", "isca09-example", "--grid", 100, "--block", 128, "--active-blocks", 5)
    assert quantities(estimate(*grid, "--format", "json"))["rep"] == 1.25
    assert quantities(estimate(*grid, "--rep", "ceil", "--format", "json"))["rep"] == 2


def test_figures_of_the_gpu_can_be_set(estimate: Runner) -> None:
    done = estimate("hong-kim", *COUNTS, *EXAMPLE, "--set", "mem_ld=430", "--set", "mem_bw_gbs=90", "--format", "json")
    assert quantities(done)["Mem_L"] == 740
    assert quantities(done)["mem_bw_gbs"] == 90


def test_the_counts_of_a_kernel_are_those_counted_by_hand(estimate: Runner, mix: Path) -> None:
    found = quantities(estimate("--method", "hong-kim", mix, *QUADRO, "--regs", 10, "--format", "json"))
    by_hand = {
        "comp_insts": 6 + 3 * 6 + 1,
        "coal_mem_insts": 3,
        "uncoal_mem_insts": 3,
        "synch_insts": 3,
        "uncoal_per_mw": 32,
        "load_bytes_per_warp": 128,
        "smem_per_block": 2048,
        "regs_per_thread": 10,
        "f32_add_insts": 3,
        "f32_div_insts": 3,
    }
    assert {name: found[name] for name in by_hand} == by_hand


def test_given_and_derived_counts_give_the_same_estimate(estimate: Runner, mix: Path) -> None:
    counts = "comp=25,coal=3,uncoal=3,synch=3,uncoal_per_mw=32,load_bytes=128"
    given = estimate("hong-kim", "--counts", counts, *QUADRO, "--smem", 2048, "--format", "json")
    derived = estimate("hong-kim", mix, *QUADRO, "--format", "json")
    assert json.loads(given.out)["cycles"] == json.loads(derived.out)["cycles"]


def test_shared_memory_of_the_launch_adds_to_what_is_declared(estimate: Runner, mix: Path) -> None:
    found = quantities(estimate("hong-kim", mix, *QUADRO, "--smem", 1000, "--format", "json"))
    assert found["smem_per_block"] == 3048


def test_segments_are_shared_where_the_gpu_shares_them(estimate: Runner, tmp_path: Path) -> None:
    """Every second element: a segment of 128 bytes serves 16 lanes, where compute capability 1.0 serves each lane."""
    file = tmp_path / "mix.ptx"
    file.write_text(MIX.replace("%t, 132", "%t, 8"))
    rules = {"gtx280": 2, "quadro-fx5600": 32}
    for gpu, transactions in rules.items():
        done = estimate("hong-kim", file, "--gpu", gpu, "--grid", 16, "--block", 128, "--format", "json")
        assert quantities(done)["uncoal_per_mw"] == transactions, gpu


def test_a_rule_of_coalescing_that_the_gpu_does_not_tell_is_said_to_be_assumed(estimate: Runner, mix: Path) -> None:
    said = "how lanes share transactions is assumed, segments of 128 bytes: GPU isca09-example lacks"
    assert f"{said} hong_kim.coalescing_rule and hong_kim.segment_bytes" in estimate("hong-kim", mix, *EXAMPLE).out
    given = ("--set", "coalescing_rule=segments", "--set", "segment_bytes=128")
    for words in ((mix, *EXAMPLE, *given), (mix, *QUADRO), (*COUNTS, *EXAMPLE)):
        assert "is assumed" not in estimate("hong-kim", *words).out


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (EXAMPLE, "give either SOURCE or --counts"),
        (("mix.ptx", *COUNTS, *EXAMPLE), "give either SOURCE or --counts"),
        ((*COUNTS, "--gpu", "isca09-example", "--block", 128), "--grid is missing"),
        ((*COUNTS, "--gpu", "isca09-example", "--grid", 80), "--block is missing"),
        (("--counts", "comp=27,load=6", *EXAMPLE), "--counts: unknown name 'load'; known: comp, coal, uncoal, synch"),
        (("--counts", "comp=27,comp=6", *EXAMPLE), "--counts: comp is given twice"),
        (("--counts", "comp=many", *EXAMPLE), "--counts: comp must be a number, not 'many'"),
        (("--counts", "comp=-1", *EXAMPLE), "--counts: comp must be at least 0, not -1"),
        (("--counts", "comp=nan", *EXAMPLE), "--counts: comp must be finite, not nan"),
        (("--counts", "comp=0", *EXAMPLE), "a kernel has instructions"),
        (("--counts", "comp=1,uncoal=1,uncoal_per_mw=0.5", *EXAMPLE), "uncoal_per_mw must be at least 1"),
        ((*COUNTS, *EXAMPLE, "--set", "mem_ldd=3"), "unknown key 'mem_ldd'"),
        ((*COUNTS, *EXAMPLE, "--set", "mem_ld=soon"), "--set mem_ld must be a number, not 'soon'"),
        ((*COUNTS, *EXAMPLE, "--set", "mem_ld=0"), "hong_kim.mem_ld must be a number above 0"),
        ((*COUNTS, *EXAMPLE, "--set", "mem_ld=1", "--set", "mem_ld=2"), "--set mem_ld: given twice"),
        ((*COUNTS, *EXAMPLE, "--param", "n=3"), "--param is for a kernel file"),
        ((*COUNTS, "--gpu", "nothing", "--grid", 80, "--block", 128), "unknown GPU 'nothing'"),
        (
            (*COUNTS, "--gpu", "hd6970", "--grid", 80, "--block", 64, "--active-blocks", 1),
            "2 numbers are not known; hong_kim.mem_ld, hong_kim.departure_del_uncoal: measure it",
        ),
        ((*COUNTS, "--gpu", "gtx280", "--grid", 80, "--block", "12x"), "--block"),
        (("--counts", "comp=1_000", *EXAMPLE), "--counts: comp must be a number, not '1_000'"),
        (("--counts", "comp=٣", *EXAMPLE), "--counts: comp must be a number"),
        ((*COUNTS, *QUADRO, "--regs", 100), "it needs 12800 registers, an SM has 8192"),
        ((*COUNTS, "--gpu", "quadro-fx5600", "--grid", 80, "--block", 768), "has at most 512"),
    ],
)
def test_what_cannot_be_estimated_is_one_line(estimate: Runner, words: tuple[object, ...], said: str) -> None:
    done = estimate("hong-kim", *words)
    assert done.code == 2
    assert len(done.err.splitlines()) == 1
    assert said in done.err


def test_a_loop_of_unknown_length_is_named(estimate: Runner, tmp_path: Path) -> None:
    file = tmp_path / "mix.ptx"
    changes = {
        ".param .u64 y)": ".param .u64 y, .param .u32 n)",
        "%i, %t;": "%i, %t, %n;",
        "%i, 0;": "%i, 0;\n    ld.param.u32 %n, [n];",
        "%i, 3;": "%i, %n;",
    }
    text = MIX
    for old, new in changes.items():
        text = text.replace(old, new)
    file.write_text(text)
    refused = estimate("hong-kim", file, *QUADRO)
    assert refused.code == 2
    assert len(refused.err.splitlines()) == 1
    assert "loop" in refused.err
    bounded = estimate("hong-kim", file, *QUADRO, "--loop-bound", "loop=3", "--format", "json")
    assert quantities(bounded)["coal_mem_insts"] == 3
    known = estimate("hong-kim", file, *QUADRO, "--param", "n=3", "--format", "json")
    assert quantities(known)["coal_mem_insts"] == 3


def test_a_function_of_the_file_is_counted_with_its_call(estimate: Runner, tmp_path: Path) -> None:
    file = tmp_path / "mix.ptx"
    called = MIX.replace(".visible", ".func f() { .reg .b32 %q; mov.u32 %q, 1; ret; }\n.visible", 1)
    file.write_text(called.replace("    bar.sync 0;", "    call f;"))
    found = quantities(estimate("hong-kim", file, *QUADRO, "--loop-bound", "loop==3", "--format", "json"))
    assert found["comp_insts"] == 25 + 3 * 3


def test_numbers_that_a_table_of_throughputs_makes_superfluous_are_not_asked_for() -> None:
    bare = gpus.find_gpu("hd6970")
    amd = gpus.Gpu("hd6970", {key: one for key, one in bare.data.items() if key != "hong_kim.issue_cycles"})
    work = {"threads_per_block": 64, "blocks": 80, "active_blocks_per_sm": 1, "comp_insts": 4}
    products = {"operations": {"f32_mul": 4}}
    assert estimate_launch(amd, HongKimKernel(**work, **products)).cycles  # type: ignore[arg-type]
    with pytest.raises(InputError, match=r"hong_kim\.mem_ld, hong_kim\.departure_del_coal: measure it"):
        estimate_launch(amd, HongKimKernel(**work, **products, coal_mem_insts=1))  # type: ignore[arg-type]
    with pytest.raises(InputError, match=r"hong_kim\.issue_cycles \[cycles\] is not known"):
        estimate_launch(amd, HongKimKernel(**work))  # type: ignore[arg-type]


def test_an_allocation_that_is_not_known_is_said(estimate: Runner, tmp_path: Path) -> None:
    known = gpus.find_gpu("quadro-fx5600")
    kept = {key: one for key, one in known.data.items() if not key.endswith(("_unit", "_scope"))}
    file = tmp_path / "gpu.toml"
    file.write_text(gpus.gpu_text(gpus.Gpu("mine", kept)))
    launch = ("--grid", 80, "--block", 64, "--regs", 10)
    said = "limits.register_unit, limits.register_scope not known: registers or shared memory count without rounding"
    assert said in estimate("hong-kim", *COUNTS, "--gpu", file, *launch).out
    assert "limits.shared_unit not known" not in estimate("hong-kim", *COUNTS, "--gpu", file, *launch).out
    assert "not known: registers" not in estimate("hong-kim", *COUNTS, "--gpu", "quadro-fx5600", *launch).out
    active = estimate("hong-kim", *COUNTS, "--gpu", file, *launch, "--active-blocks", 2)
    assert "not known: registers" not in active.out  # the number of blocks was given


def test_an_unknown_key_of_a_gpu_file_is_named(estimate: Runner, tmp_path: Path) -> None:
    file = tmp_path / "gpu.toml"
    file.write_text('[hong_kim]\nmem_lt = { value = 1, source = "me", status = "measured" }\n')
    done = estimate("hong-kim", *COUNTS, "--gpu", file, "--grid", 1, "--block", 32)
    assert done.code == 2
    assert "unknown key 'hong_kim.mem_lt'" in done.err
