"""What the parser survives, and how it refuses."""

import random
import subprocess
import sys
from pathlib import Path

import pytest

from makespan.host.errors import InputError, ParseError
from makespan.kernels.ptx import PtxModule, decode, parse, read
from makespan.kernels.ptx.module import Location, Note, PtxInstruction, PtxLabel, names_in
from tests.effort import calls
from tests.ptx.texts import SAMPLES, entry


def instructions(body: str) -> tuple[PtxInstruction, ...]:
    return parse(entry(body), "k.ptx").kernel().instructions


def refusal(text: str) -> ParseError:
    with pytest.raises(ParseError) as caught:
        parse(text, "k.ptx")
    return caught.value


@pytest.mark.parametrize(
    "text",
    [
        ".version 1.4\n.target sm_10, map_f64_to_f32\n",
        ".version 8.7\n.target sm_90a, debug\n.address_size 64\n",
        ".func (.reg .b32 r) f (.reg .b32 a, .reg .b32 b)\n.func g\n.visible .func h ()\n{ ret; }",
        ".extern .func (.param .b32 r) vprintf (.param .b64 a) ;",
        ".func f (.param .b64 p) .noreturn { trap; }",
        ".entry k (.param .u64 .ptr .global .align 1 x, .param .align 4 .b8 y[12]) { ret; }",
        ".entry k() .maxntid 128, 1, 1\n.minnctapersm 2 { ret; }",
        '.entry k ()\n.pragma "nounroll";\n{ ret; }\n.pragma "nounroll";',
        '.entry k { ret; }\n.file 1 "a b.cu", 1700000000, 42\n',
        ".section .debug_info\n{\n.b8 1, 2\nL: .b32 .debug_str+12\n.b64 L-M\n}\n.section .debug_str { }",
        '@@DWARF .byte 0x01\n# 1 "k.cu"\n.entry k () { ret; }',
        ".global .align 8 .u64 t[2] = {generic(a), generic(a)+4, 0xFF00(generic(a)+8), b+8};\n"
        ".const .f32 c[2][2] = {{0f3F800000, 1.5}, {-2.0e-3, .5}};",
        ".global .samplerref s = { addr_mode_0 = clamp_to_edge, filter_mode = nearest };",
        ".global .attribute(.managed) .u32 x = 0xFFU;\n.common .global .u32 z;",
        ".weak .global .attribute(.unified(19, 95)) .u32 x;",
        ".alias f, g;",
        ".tex .u32 t;\n.global .texref u;",
        "/* a .entry in a comment { */ // and another {\n",
    ],
)
def test_module_level_text_survives(text: str) -> None:
    assert isinstance(parse(text, "k.ptx"), PtxModule)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("@p bra L;\nL:", "@p bra L;"),
        ("@!p bra.uni L;\nL:", "@!p bra.uni L;"),
        ("@ ! %p1 mov.u32 %r1, 1;", "@!%p1 mov.u32 %r1, 1;"),
        ("@$p3 exit;", "@$p3 exit;"),
        ("ld.global.f32 %f1, [p+0];", "ld.global.f32 %f1, [p+0];"),
        ("ld.global.f32 %f1, [%rd1 + -4];", "ld.global.f32 %f1, [%rd1+-4];"),
        (
            "tex.1d.v4.f32.s32 {%f1,%f2,%f3,%f4}, [t, {%r3, %r5}];",
            "tex.1d.v4.f32.s32 {%f1, %f2, %f3, %f4}, [t, {%r3, %r5}];",
        ),
        ("setp.lt.and.s32 %r1|%p1, a, b, !q;", "setp.lt.and.s32 %r1|%p1, a, b, !q;"),
        ("mov.b64 {%f1, _}, %rd1;", "mov.b64 {%f1, _}, %rd1;"),
        ("mov.f32 %f1, 0f3F800000;", "mov.f32 %f1, 0f3F800000;"),
        ("mov.f64 %f1, 0d3FF0000000000000;", "mov.f64 %f1, 0d3FF0000000000000;"),
        ("mov.u32 %r1, 12U;", "mov.u32 %r1, 12U;"),
        ("mov.u32 s, a[N-1];", "mov.u32 s, a[N-1];"),
        ("mov.u32 %r1, (1<<4)|2;", "mov.u32 %r1, (1<<4)|2;"),
        ("tcgen05.wait::ld.sync.aligned;", "tcgen05.wait::ld.sync.aligned;"),
        ("st.async.shared::cluster.u32 [a], b, [c];", "st.async.shared::cluster.u32 [a], b, [c];"),
        ("call.uni (r), f, (p, q);", "call.uni (r), f, (p, q);"),
        ("call.uni\n(retval0), \nf, \n(\n);", "call.uni (retval0), f, ();"),
        ("mov.u32 %r1, %tid.x; /* why */", "mov.u32 %r1, %tid.x;"),
        ("zork.v9.frob %r1;", "zork.v9.frob %r1;"),
    ],
)
def test_instruction_survives(text: str, expected: str) -> None:
    assert str(instructions(text)[0]) == expected


@pytest.mark.parametrize(
    "body",
    [
        "{ // callseq 0\n.param .b32 p0;\nst.param.b32 [p0+0], %r1;\ncall.uni f, (p0);\n}",
        "{ .reg .pred P1; LAB: @P1 bra LAB; }\n{ .reg .pred P1; LAB: @P1 bra LAB; }",
        ".loc 2 127 3, function_name $L, inlined_at 1 11 5\nret;",
        ".loc 2 127 3, function_name $L+16, inlined_at 1 11 5 ret;",
        '.loc 28 6 0\n$LDWbegin:\n.pragma "nounroll";\nret;',
        "brx.idx %r1, ts;\nts: .branchtargets A, B;\nA:\nB: ret;",
        "proto: .callprototype (.param .b32 _) _ (.param .b64 _, .param .b32 _) .noreturn;\nt: .calltargets f, g;",
        ".shared .align 16 .b8 s[64], u;\n.reg.u64 x;\n.reg.v2.b16 y;\n.reg .b32 %f<9>;\n.local .u32 %L1;",
    ],
)
def test_body_survives(body: str) -> None:
    assert parse(entry(body), "k.ptx").kernel().body


def test_positions_are_those_of_the_text() -> None:
    first, second = instructions("  add.s32 %r1, %r1, 1;\n\t@%p1 bra L;\nL:")
    assert (first.line, first.column, second.line, second.column) == (5, 3, 6, 7)  # of the opcode, behind the guard


def test_a_bound_comment_is_kept_with_its_line_and_others_are_not() -> None:
    body = "// plain\nL: // makespan: loop 4\n //<loop> Loop body line 3, nesting depth: 1, iterations: 8\nret;"
    notes = [s for s in parse(entry(body), "k.ptx").kernel().statements if isinstance(s, Note)]
    assert [(n.line, n.text[:12]) for n in notes] == [(6, "// makespan:"), (7, "//<loop> Loo")]


def test_a_bound_comment_inside_an_instruction_does_not_disturb() -> None:
    assert str(instructions("mov.u32 %r1, // makespan: loop 4\n 7;")[0]) == "mov.u32 %r1, 7;"


def test_version_target_and_items() -> None:
    module = parse(".version 7.8\n.target sm_90a, debug\n.entry a() { ret; }\n.func f;\n.entry b() { ret; }", "k.ptx")
    assert (module.version, module.target) == ("7.8", "sm_90a, debug")
    assert [k.name for k in module.kernels] == ["a", "b"]
    assert [f.name for f in module.functions] == ["f"]
    assert parse("", "k.ptx").version is None


def test_locations_name_their_files_wherever_they_stand() -> None:
    kernel = parse(entry(".loc 2 7 1\nret;") + '.file 1 "a.cu"\n.file 2 "b \\"x\\".cu"\n', "k.ptx").kernel()
    assert dict(kernel.files)[2] == 'b \\"x\\".cu'
    assert [(s.file_number, s.source_line) for s in kernel.statements if isinstance(s, Location)] == [(2, 7)]


def test_opcodes_are_no_labels() -> None:
    statements = parse(entry("ret:\nmov.u32 %r1, 2;\nwait::ld %r1;"), "k.ptx").kernel().statements
    assert [type(s) for s in statements] == [PtxLabel, PtxInstruction, PtxInstruction]


def test_kernels_are_found_by_plain_and_mangled_name() -> None:
    module = parse(".entry _Z5saxpyfPf() { ret; }\n.entry _Z5saxpydPd() { ret; }\n.entry other() { ret; }", "k.ptx")
    assert module.kernel("other").name == "other"
    assert module.kernel("_Z5saxpyfPf").name == "_Z5saxpyfPf"
    for name, message in [
        (None, "choose one of 3 kernels with --kernel NAME: _Z5saxpyfPf, _Z5saxpydPd, other"),
        ("saxpy", "several kernels match 'saxpy'"),
        ("nope", "no kernel 'nope'; the kernels are: _Z5saxpyfPf"),
    ]:
        with pytest.raises(InputError, match=r"k.ptx") as caught:
            module.kernel(name)
        assert message in str(caught.value)
    with pytest.raises(InputError, match="no kernel in this file"):
        parse(".version 8.0", "k.ptx").kernel()


@pytest.mark.parametrize(
    ("text", "message", "context"),
    [
        (
            entry("add.s32 %r1, %r2, %r3\nmul.lo.s32 %r1, %r1, 2;"),
            "k.ptx:6:1: expected ',', ';', '[' or an operator, got 'mul.lo.s32'",
            "mul.lo.s32 %r1, %r1, 2;\n^",
        ),
        (entry("\tadd.s32 %r1 %r2;"), "k.ptx:5:14: expected ',', ';', '[' or an operator, got '%r2'", None),
        (entry("ld.f32 %f1, [%rd1;"), "k.ptx:5:18: expected ',' or ']', got ';'", None),
        (entry(".unknown 3;"), "k.ptx:5:1: expected '.callprototype', '.loc', ", ".unknown 3;\n^"),
        (".entry k()\n{ ret;", "k.ptx:2:7: expected '.callprototype', '.loc', ", "{ ret;\n      ^"),
        (".entry k()", "k.ptx:1:11: expected '.pragma', ';', '{' or a type", ".entry k()\n          ^"),
        ("int main() {}", "k.ptx:1:1: expected '.address_size', ", "int main() {}\n^"),
        ("/* never closed", "got '/', a comment that is not closed", None),
        ('.file 1 "never closed', "got '\"', a quoted text that is not closed", None),
        (entry("mov.u32 %r1, 09x;"), "k.ptx:5:14: expected ", None),
        (entry(".loc 1.5 2 3\nret;"), "k.ptx:5:6: expected a whole number below 10^9, got '1.5'", None),
        (entry(".reg .u32 %r<0x10>;"), "k.ptx:5:14: expected a whole number below 10^9, got '0x10'", None),
        (entry("mov.u32 %r1, é;"), "k.ptx:5:14: expected ", "mov.u32 %r1, é;\n             ^"),
    ],
)
def test_syntax_error_names_place_and_expectation(text: str, message: str, context: str | None) -> None:
    error = refusal(text)
    assert message in str(error)
    assert context is None or error.context == context


def test_context_of_a_long_line_is_cut_around_the_caret() -> None:
    error = refusal(entry("mov.u32 %r1, " + "1+" * 10_000 + ";"))
    line, caret = error.context.split("\n")
    assert len(line) <= 120
    assert line[len(caret) - 1] == ";"


def test_a_tab_keeps_the_caret_in_place() -> None:
    line, caret = refusal(entry("\t\tadd.s32 %r1 %r2;")).context.split("\n")
    assert line[len(caret) - 1 :].startswith("%r2")


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "the file is empty"),
        (b" \n\t\0", "the file is empty"),
        (b"\x7fELF\0\0\0", "this is a binary file, not PTX text"),
    ],
)
def test_bytes_that_are_no_text_are_refused(tmp_path: Path, data: bytes, message: str) -> None:
    path = tmp_path / "k.ptx"
    path.write_bytes(data)
    with pytest.raises(InputError, match=message):
        read(path)


def test_files_that_cannot_be_read_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"k.ptx: cannot read the PTX file: No such file"):
        read(tmp_path / "k.ptx")
    with pytest.raises(InputError, match="cannot read the PTX file: Is a directory"):
        read(tmp_path)


def test_a_file_past_the_limit_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("makespan.kernels.ptx.parser.MAX_BYTES", 2**20)
    path = tmp_path / "k.ptx"
    path.write_bytes(b" " * (2**20 + 1))
    with pytest.raises(InputError, match=r"k\.ptx: larger than 1 MiB, too large for a PTX file"):
        read(path)
    with pytest.raises(InputError, match="larger than the limit of 1 MiB; split the module"):
        decode(path.read_bytes(), "<stdin>")


@pytest.mark.parametrize("codec", ["utf-16", "utf-16-le", "utf-16-be"])
def test_utf_16_is_named_with_its_remedy(codec: str, tmp_path: Path) -> None:
    path = tmp_path / "k.ptx"
    mark = "" if codec == "utf-16" else "\ufeff"
    path.write_bytes(f"{mark}.version 7.0\n".encode(codec))
    with pytest.raises(InputError, match=r"k\.ptx: cannot read the PTX file: it is UTF-16 text; save it as UTF-8"):
        read(path)


@pytest.mark.parametrize("data", [b"\xef\xbb\xbf.version 8.0\n", b".version 8.0\0", b".version 8.0\r\n// caf\xe9\r\n"])
def test_odd_encodings_are_read(data: bytes) -> None:
    assert parse(decode(data, "k.ptx"), "k.ptx").version == "8.0"


@pytest.mark.parametrize(
    "text",
    [
        entry("{" * 20_000),
        entry("{" * 4_000 + "ret;" + "}" * 4_000),
        entry("mov.u32 %r1, " + "(" * 4_000 + "1" + ")" * 4_000 + ";"),
        entry("mov.u32 %r1, " + "-" * 4_000 + "%r2;"),
        ".global .u32 x[1] = " + "{" * 4_000 + "1" + "}" * 4_000 + ";",
        entry("a" * 200_000),
        entry("/*" * 20_000),
    ],
    ids=["open blocks", "blocks", "brackets", "signs", "initialisers", "name", "comments"],
)
def test_hostile_depth_costs_neither_recursion_nor_minutes(text: str) -> None:
    def refused_or_read() -> None:
        try:
            parse(text, "k.ptx")
        except InputError as error:
            assert "\n" not in str(error)  # noqa: PT017 - some of the texts are even valid

    assert calls(refused_or_read, most=10_000 + 100 * len(text))


def test_blocks_have_a_depth_limit() -> None:
    assert parse(entry("{" * 255 + "ret;" + "}" * 255), "k.ptx").kernel().instructions
    assert "k.ptx:5:256: blocks nest deeper than 256" in str(refusal(entry("{" * 256 + "ret;" + "}" * 256)))


@pytest.mark.parametrize("path", SAMPLES, ids=lambda p: p.stem)
def test_every_prefix_is_an_error_or_has_the_complete_kernels(path: Path) -> None:
    text = path.read_text("utf-8")
    whole = parse(text, "k.ptx")
    for length in range(0, len(text), 61):
        try:
            cut = parse(text[:length], "k.ptx")
        except InputError:
            continue
        assert cut.kernels == whole.kernels[: len(cut.kernels)]


def test_cuts_inside_a_kernel_are_errors() -> None:
    text = SAMPLES[0].read_text("utf-8")
    begin, end = text.index("{"), text.rindex("}")
    for length in range(begin, end, 97):
        assert "k.ptx:" in str(refusal(text[:length]))


def test_mutations_give_a_module_or_an_input_error() -> None:
    chance = random.Random(20120711)
    texts = [path.read_text("utf-8") for path in SAMPLES if path.stat().st_size < 3000]
    spare = '{}[]()<>,;:.@!%$|+-"/*\n\t \0é0_aZ#'
    for _ in range(300):
        text = list(chance.choice(texts))
        for _ in range(chance.randint(1, 4)):
            at = chance.randrange(len(text))
            text[at : at + chance.choice([0, 1, 1, 9])] = chance.choice(spare) * chance.choice([0, 1, 1, 3])
        try:
            assert isinstance(parse("".join(text), "k.ptx"), PtxModule)
        except InputError as error:
            assert "\n" not in str(error)  # noqa: PT017 - both outcomes are right


def test_names_are_told_from_numbers() -> None:
    assert names_in("{%f1, _}") == ("%f1", "_")
    assert names_in("[a+0x1F]") == ("a",)
    assert names_in("0f3F800000") == ()
    assert names_in("%tid.x") == ("%tid",)


def test_importing_the_front_end_loads_no_heavy_library() -> None:
    code = "import sys, makespan.kernels.ptx; print({'lark', 'networkx', 'numpy'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"
