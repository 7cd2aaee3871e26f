"""Which unit class an instruction needs."""

from pathlib import Path

import pytest

from makespan.host.errors import InputError, ParseError
from makespan.kernels.ptx import PROFILES, Classes, PtxKernel, PtxListingRow, listing, read, read_classes
from makespan.kernels.ptx.isa import opcodes
from tests.ptx.texts import CORPUS, SAMPLES, kernel


def letters(k: PtxKernel, profile: str = "paper") -> str:
    return "".join(listed.unit or "" for listed in listing(k, profile=profile))


def test_the_listing_of_the_paper_has_its_26_letters() -> None:
    path = next(path for path in SAMPLES if path.stem == "nearest_point_paper")
    assert letters(read(path).kernel()) == "LLLLLCCCCCCCCCLLCCCCCCCCCC"


@pytest.mark.parametrize(
    ("opcode", "paper", "fermi", "modern"),
    [
        ("add.s32", "C", "C", "C"),
        ("add.f64", "C", "D", "D"),
        ("fma.rn.f64", "C", "D", "D"),
        ("setp.lt.f64", "C", "D", "D"),
        ("mov.f64", "C", "C", "C"),
        ("ld.global.f64", "L", "L", "L"),
        ("ld.param.u32", "L", "L", "L"),
        ("st.shared::cluster.u32", "L", "L", "L"),
        ("rcp.approx.ftz.f32", "C", "S", "S"),
        ("rcp.rn.f64", "C", "D", "D"),
        ("rcp.approx.ftz.f64", "C", "S", "S"),
        ("sin.approx.f32", "C", "S", "S"),
        ("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32", "C", "C", "T"),
        ("wmma.load.a.sync", "L", "L", "L"),
        ("wmma.mma.sync", "C", "C", "T"),
        ("tcgen05.wait::ld.sync.aligned", "C", "C", "C"),
        ("tcgen05.ld.sync", "L", "L", "L"),
        ("bra.uni", "C", "C", "C"),
        ("membar.gl", "L", "L", "L"),
        ("fence.acq_rel.gpu", "L", "L", "L"),
        ("cp.async.ca.shared.global", "L", "L", "L"),
        ("cp.async.commit_group", "C", "C", "C"),
        ("ret", None, None, None),
        ("exit", None, None, None),
        ("bar.sync", None, None, None),
        ("bar.warp.sync", None, None, None),
        ("shfl.sync.bfly.b32", "L", "L", "L"),
    ],
)
def test_opcode_is_classified(opcode: str, paper: str | None, fermi: str | None, modern: str | None) -> None:
    assert [Classes(profile).unit(opcode) for profile in PROFILES] == [paper, fermi, modern]


def test_a_prefix_ends_at_a_dot() -> None:
    with pytest.raises(LookupError):
        Classes().unit("address.s32")


def test_every_row_of_the_table_fits_every_profile() -> None:
    for opcode, row in opcodes().items():
        assert row.unit in "CDSLTB-", opcode
        assert row.fold in "CL-", opcode
        for profile, units in PROFILES.items():
            assert (Classes(profile).unit(opcode) or "-") in units + "-", opcode
            assert (Classes(profile).unit(f"{opcode}.f64") or "-") in units + "-", opcode


def test_a_mov_from_a_variable_is_a_load_in_the_paper_only() -> None:
    k = kernel(
        ".reg .u32 %r<4>, s;\n.shared .u32 buf[4];\n"
        "mov.u32 %r1, buf;\nmov.u32 %r1, buf+4;\nmov.u32 %r1, x;\n"
        "mov.u32 %r1, %r2;\nmov.u32 %r1, s;\nmov.u32 %r1, 7;\nmov.u32 %r1, %tid.x;\nmov.u32 %r1, WARP_SZ;\n"
        "mov.f32 %f1, 0f3F800000;\nmov.b64 %rd1, {%r1, %r2};\nmov.u32 buf, %r1;"
    )
    assert letters(k) == "LLLCCCCCCCC"
    assert letters(k, "modern") == "C" * 11


def test_scopes_decide_what_a_name_is() -> None:
    k = kernel(
        ".reg .u32 x, %q<3>, q<3>;\nmov.u32 x, q2;\nmov.u32 x, q3;\n"
        "mov.u32 x, x;\n{ .shared .u32 x;\nmov.u32 %r1, x;\n{ .reg .u32 x;\nmov.u32 %r1, x;\n} }\n"
        "mov.u32 %r1, x;\nmov.u32 %r1, %q2;\nmov.u32 %r1, %L1;",
        after=".local .u32 %L1;\n",
    )
    assert letters(k) == "CLCLCCCL"


def test_parameters_of_a_function_may_be_registers() -> None:
    module_text = kernel(
        "ret;", after=".func (.reg .u32 r) f (.reg .u32 a, .param .u32 b) { mov.u32 r, a; mov.u32 r, b; }"
    )
    assert module_text.name == "k"


def test_listing_shows_line_text_and_unit_once_and_in_text_order() -> None:
    k = kernel("L: add.s32  %r1,%r1,1;\n@%p1 bra L;\nbar.sync 0;\nret;")
    assert listing(k) == (
        PtxListingRow(5, "add.s32 %r1, %r1, 1;", "C"),
        PtxListingRow(6, "@%p1 bra L;", "C"),
        PtxListingRow(7, "bar.sync 0;", None),
        PtxListingRow(8, "ret;", None),
    )


def test_an_unknown_opcode_is_an_error_that_names_the_remedies() -> None:
    message = "k.ptx:6:1: unknown opcode 'zork.v2'; classify it with --classes FILE, or count .* with --unknown C"
    with pytest.raises(InputError, match=message):
        listing(kernel("ret;\nzork.v2 %r1;"))
    with pytest.raises(ParseError) as caught:
        listing(kernel("ret;\n  @%p1 zork.v2 %r1;"))
    assert (caught.value.line, caught.value.column) == (6, 8)
    assert caught.value.context == "@%p1 zork.v2 %r1;\n     ^"
    assert listing(kernel("zork %r1;"), unknown="C")[0].unit == "C"
    assert listing(kernel("zork %r1;"), unknown="-")[0].unit is None


@pytest.mark.parametrize(
    ("opcode", "suffix", "column"),
    [
        ("ld.global.nc.f32x7", "f32x7", 13),
        ("ld.glbal.f32", "glbal", 3),
        ("ld.global.L1::no_alocate.f32", "L1::no_alocate", 10),
        ("add.s32.s33", "s33", 8),
    ],
)
def test_a_suffix_that_ptx_does_not_have_is_an_error(opcode: str, suffix: str, column: int) -> None:
    with pytest.raises(ParseError) as caught:
        listing(kernel(f"ret;\n{opcode} a, [b];"))
    message = f"k.ptx:6:{column}: unknown suffix '.{suffix}' of opcode '{opcode}'; classify it with --classes FILE"
    assert str(caught.value).startswith(message)
    assert caught.value.context.splitlines()[1] == " " * (column - 1) + "^"
    assert listing(kernel(f"{opcode} a, [b];"), classes={opcode: "S"})[0].unit == "S"
    assert listing(kernel(f"{opcode} a, [b];"), unknown="C")[0].unit == "C"


PTX_9 = """
    wgmma.mma_async.sp.sync.aligned.m64n248k32.f32.e4m3.e5m2 tcgen05.ld.sync.aligned.16x32bx2.x128.pack::16b.b32
    tcgen05.mma.cta_group::2.kind::mxf4nvf4.block_scale.scale_vec::4X.collector::a::lastuse
    cp.async.bulk.tensor.5d.shared::cluster.global.im2col::w::128.mbarrier::complete_tx::bytes.multicast::cluster
    fence.proxy.tensormap::generic.acquire.sys vmad.u32.s32.s32.po.shr15 vadd4.s32.u32.s32.add vset2.u32.s32.lt.b3210
    tensormap.replace.tile.swizzle_atomicity.global.b1024.b32 ld.relaxed.sys.global.L1::evict_last.L2::cache_hint.v8.f32
    red.async.relaxed.cluster.global.shared::cluster.mbarrier::complete_tx::bytes.and.b32
    wmma.store.d.sync.row.m8n32k16.f16
    fma.rn.oob.relu.bf16x2 cvt.rn.satfinite.relu.e2m3x2.f32 createpolicy.cvt.L2.b64 tex.level.acube.v4.f32.f32
    mma.sync.aligned.m16n8k256.row.col.s32.b1.b1.s32.and.popc setp.ltu.or.f32 prmt.b32.rc16
    barrier.cluster.arrive.relaxed
    clusterlaunchcontrol.query_cancel.get_first_ctaid::x.b32.b128 redux.sync.max.abs.NaN.f32 membar.gl bar.red.popc.u32
""".split()  # noqa: SIM905 - a list of so many strings cannot be read


@pytest.mark.parametrize("opcode", PTX_9)
def test_suffixes_of_every_version_are_known(opcode: str) -> None:
    assert Classes("modern").classifies(opcode)


def test_own_classes_win_for_equal_or_longer_prefixes() -> None:
    own = {"zork": "S", "add.s32": "X", "ret": "C", "ld": "C", "mov": "C", "st.shared::cta": "D"}
    k = kernel(
        "zork.a;\nadd.s32 a,b,c;\nadd.u32 a,b,c;\nret;\nld.param.u32 a,[p];\nld.u32 a,[p];\n"
        "mov.u32 a,sym;\nst.shared::cta.u32 [a],b;"
    )
    assert "".join(u or "-" for *_, u in listing(k, classes=own)) == "SXCCLCCD"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"profile": "volta"}, "unknown profile 'volta'; known: paper, fermi, modern"),
        ({"overrides": {"ADD": "C"}}, "'ADD' is not an opcode prefix"),
        ({"overrides": {"add": "CC"}}, "the class of add must be one capital letter A-Z, or - for none, not 'CC'"),
        ({"overrides": {"add": "É"}}, "the class of add must be one capital letter"),
        ({"unknown": "c"}, "the class of unknown opcodes must be one capital letter A-Z"),
    ],
)
def test_ill_formed_classes_are_refused(arguments: dict[str, object], message: str) -> None:
    with pytest.raises(InputError, match=message):
        Classes(**arguments)  # type: ignore[arg-type]


def test_a_classes_file_is_read(tmp_path: Path) -> None:
    path = tmp_path / "my.toml"
    path.write_text('zork = "S"\n"ld.param" = "-"  # constant bank\n')
    assert read_classes(path) == {"zork": "S", "ld.param": "-"}


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"zork", "not a TOML classes file"),
        (b'ld.param = "C"', 'quote a prefix that has dots, as in "ld.x" = "C"'),
        (b"zork = 1", "the class of zork must be a letter in quotes"),
        (b'zork = "cc"', "my.toml: the class of zork must be one capital letter"),
        (b"\xff", "not UTF-8 text"),
        (b"a = " + b"[" * 100_000, "not a TOML classes file"),
        (b"#" * (2**20 + 1), "larger than 1 MiB"),
    ],
)
def test_ill_formed_classes_files_are_refused(tmp_path: Path, data: bytes, message: str) -> None:
    path = tmp_path / "my.toml"
    path.write_bytes(data)
    with pytest.raises(InputError, match=message):
        read_classes(path)


def test_a_missing_classes_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot read the classes file: No such file"):
        read_classes(tmp_path / "my.toml")


@pytest.mark.skipif(not CORPUS.is_dir(), reason="the corpus is not beside this checkout")
def test_every_instruction_of_the_corpus_is_classified() -> None:
    unknown: set[str] = set()
    for path in sorted(CORPUS.rglob("*.ptx")):
        try:
            module = read(path)
        except InputError:
            continue
        for k in (*module.kernels, *module.functions):
            unknown |= Classes(unknown="C").unclassified(i.opcode for i in k.instructions)
    assert not unknown
