"""Where loop bounds come from, and which one counts."""

from pathlib import Path

import pytest

from makespan.host.errors import InputError, UnsupportedError
from makespan.kernels.flow import (
    BoundBasis,
    GivenBound,
    LanguageAnalysis,
    LoopBound,
    given_bound,
    launch,
    loop_bounds,
    read_bounds,
)
from makespan.kernels.ptx import (
    PtxFlow,
    PtxKernel,
    bounds_for,
    bounds_template,
    flow,
    loops,
    parse,
    program,
    programs,
    read,
    warps,
)
from makespan.model.assumptions import AssumptionKind, caveat, trusted_loop
from makespan.model.instance import Instance
from tests.ptx.texts import SAMPLES, kernel

BOTTOM = "L: add a,a,1;\n{note}\nsetp.ne p,a,4;\n@p bra L;\nret;"
TOP = "L: setp.ne p,a,4;\n@p bra E;\n{note}\nadd a,a,1;\nbra L;\nE: ret;"


def bound(k: PtxKernel, *given: str) -> LoopBound | None:
    (info,) = loops(k, loop_bounds(given))
    return info.bound


def located(body: str) -> PtxKernel:
    """The kernel with this body, all of it from one source line."""
    return kernel(f".loc 1 3 0 {body}", after='.file 1 "a.cu"\n')


def refusal(k: PtxKernel, *given: GivenBound) -> str:
    with pytest.raises(InputError) as caught:
        loops(k, given)
    return str(caught.value)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("$L__BB0_2=16", GivenBound("$L__BB0_2", 16)),
        ("L==0", GivenBound("L", 0, exact=True)),
        (" L = 65536 ", GivenBound("L", 65536)),
        ("a=b.cu:12==3", GivenBound("a=b.cu:12", 3, exact=True)),
    ],
)
def test_a_bound_is_read(text: str, expected: GivenBound) -> None:
    assert given_bound(text) == expected


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("L", "'L' is no loop bound: give LABEL=N, LABEL==N or FILE:LINE=N"),
        ("=4", "is no loop bound"),
        ("L=", "a loop bound must be a whole number 1..65536, not ''"),
        ("L=-1", "a loop bound must be a whole number 1..65536, not '-1'"),
        ("L=1_0", "a loop bound must be a whole number 1..65536, not '1_0'"),
        ("L=65537", "a loop bound must be a whole number 1..65536, not '65537'"),
        ("L=" + "9" * 10_000, "a loop bound must be a whole number 1..65536, not '9999"),
        ("L=?", "a loop bound must be a whole number"),
    ],
)
def test_an_ill_formed_bound_is_refused(text: str, message: str) -> None:
    with pytest.raises(InputError) as caught:
        given_bound(text)
    assert message in str(caught.value)
    assert len(str(caught.value)) < 11_000


def test_a_bound_out_of_range_cannot_be_built() -> None:
    with pytest.raises(InputError, match=r"command line: a loop bound must be 1..65536, not 65537"):
        GivenBound("L", 65_537)


def test_a_bounds_file_is_read(tmp_path: Path) -> None:
    path = tmp_path / "b.csv"
    path.write_text("# loops\n$L1,4 # why\n\n L2 , ==8\nL3,1,k\n")
    assert read_bounds(path) == (
        GivenBound("$L1", 4, place=f"{path}:2"),
        GivenBound("L2", 8, exact=True, place=f"{path}:4"),
        GivenBound("L3", 1, place=f"{path}:5", kernel="k"),
    )
    assert loop_bounds(["A=1", str(path)])[1].source == f"bounds file {path}:2"


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"L1", "b.csv:1: expected LABEL,N or LABEL,==N or LABEL,N,KERNEL, got 'L1'"),
        (b"\nL1,2,k,x", "b.csv:2: expected LABEL,N"),
        (b",2", "b.csv:1: expected LABEL,N"),
        (b"L1,?", "b.csv:1: the bound of L1 is not filled in: put a number in place of the ?"),
        (b"L1,=2", "b.csv:1: a loop bound must be a whole number"),
        (b"\xff", "not UTF-8 text"),
        (b"#" * (2**20 + 1), "larger than 1 MiB"),
    ],
)
def test_an_ill_formed_bounds_file_is_refused(tmp_path: Path, data: bytes, message: str) -> None:
    path = tmp_path / "b.csv"
    path.write_bytes(data)
    with pytest.raises(InputError) as caught:
        read_bounds(path)
    assert message in str(caught.value)


def test_a_missing_bounds_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot read the bounds file: No such file"):
        read_bounds(tmp_path / "b.csv")


def test_command_line_wins_over_file_over_own_comment_over_compiler() -> None:
    notes = "//<loop> Loop body line 3, nesting depth: 1, iterations: 9\n// makespan: loop 7"
    k = kernel(BOTTOM.format(note=notes))
    in_file = GivenBound("L", 5, place="b.csv:1")
    assert loops(k, [GivenBound("L", 3), in_file])[0].bound == LoopBound(
        3, exact=False, source="command line", by=BoundBasis.USER
    )
    assert loops(k, [in_file])[0].bound == LoopBound(5, exact=False, source="bounds file b.csv:1", by=BoundBasis.USER)
    assert bound(k) == LoopBound(7, exact=False, source="comment at k.ptx:7", by=BoundBasis.COMMENT)
    assert bound(kernel(BOTTOM.format(note=notes.splitlines()[0]))) == LoopBound(
        9, exact=False, source="comment at k.ptx:6", by=BoundBasis.COMMENT
    )


@pytest.mark.parametrize(
    "note",
    [
        "//<loop> Loop body line 3, nesting depth: 1, iterations: unknown",
        "//<loop> Loop body line 3, nesting depth: 1, iterations: *",
        "//<loop> Loop body line 3, nesting depth: 1, estimated iterations: 500",
        "//<loop> Part of loop body line 73, head labeled L",
        "// nothing",
    ],
)
def test_a_comment_that_promises_nothing_is_no_bound(note: str) -> None:
    assert bound(kernel(BOTTOM.format(note=note))) is None


@pytest.mark.parametrize("key", ["L", "line:5", "loop.cu:12", "src/loop.cu:12", "/src/loop.cu:12"])
def test_a_loop_answers_to_labels_line_and_source_line(key: str) -> None:
    k = kernel("L: .loc 1 12 0\nadd a,a,1;\n@p bra L;", after='.file 1 "/src/loop.cu"\n')
    (info,) = loops(k, [GivenBound(key, 3)])
    assert (info.label, info.line, info.source_line, info.depth) == ("L", 5, "/src/loop.cu:12", 1)
    assert info.bound == LoopBound(3, exact=False, source="command line", by=BoundBasis.USER)


@pytest.mark.parametrize("key", ["N", "oop.cu:12", "loop.cu:13", "loop.cu", ":12"])
def test_a_bound_for_no_loop_is_refused_with_the_loops_there_are(key: str) -> None:
    k = kernel("L: .loc 1 12 0\nadd a,a,1;\n@p bra L;\n", after='.file 1 "/src/loop.cu"\n')
    message = refusal(k, GivenBound(key, 3, place="b.csv:2"))
    assert message == f"bounds file b.csv:2: no loop {key} in kernel k; its loops are: L (/src/loop.cu:12)"
    assert refusal(kernel("ret;"), GivenBound("L", 3)) == "command line: no loop L in kernel k; it has no loop"


def test_two_bounds_of_one_source_must_agree() -> None:
    k = kernel(BOTTOM.format(note=""))
    assert bound(k, "L=4", "line:5=4") == LoopBound(4, exact=False, source="command line", by=BoundBasis.USER)
    assert refusal(k, GivenBound("L", 4), GivenBound("L", 5)) == (
        "two bounds for loop L differ: at most 4 iterations (command line) and at most 5 iterations (command line)"
    )
    assert "differ" in refusal(k, GivenBound("L", 4), GivenBound("L", 4, exact=True))


def test_an_exact_bound_for_a_source_line_of_several_loops_is_refused() -> None:
    k = kernel(".loc 1 3 0\nL: @p bra L;\nM: @p bra M;", after='.file 1 "a.cu"\n')
    assert [info.bound.maximum for info in loops(k, [GivenBound("a.cu:3", 4)]) if info.bound] == [4, 4]
    assert "a.cu:3 is the line of several loops; say which: L, M" in refusal(k, GivenBound("a.cu:3", 4, exact=True))


def test_zero_iterations_are_for_loops_that_test_first() -> None:
    assert bound(kernel(TOP.format(note="")), "L=0") == LoopBound(
        0, exact=False, source="command line", by=BoundBasis.USER
    )
    assert "command line: loop L runs its body before it tests" in refusal(
        kernel(BOTTOM.format(note="")), GivenBound("L", 0)
    )


@pytest.mark.parametrize(
    "note", ["// makespan: loop", "// makespan: loop N", "//makespan: lop 4", "// makespan: loop 4 5"]
)
def test_an_ill_formed_comment_is_refused(note: str) -> None:
    assert refusal(kernel(BOTTOM.format(note=note))) == (
        f"k.ptx:6: expected a comment such as `// makespan: loop 16`, got `{note}`"
    )


def test_a_comment_out_of_range_is_refused() -> None:
    assert "k.ptx:6: a loop bound must be 1..65536, not 99999" in refusal(
        kernel(BOTTOM.format(note="// makespan: loop 99999"))
    )


def test_a_comment_belongs_to_the_innermost_loop_around_it() -> None:
    k = located(
        "// makespan: loop 1\nO: // makespan: loop 2\nI: add a,a,1;\n// makespan: loop 3\n@p bra I;\n"
        "@q bra O; // makespan: loop 2\n// makespan: loop 4\nM: @q bra M;\nret;"
    )
    outer, inner, last = loops(k)
    assert outer.bound == LoopBound(
        2, exact=False, source=f"comment at k.ptx:6, not divided by 2, {DOUBT}", by=BoundBasis.COMMENT
    )
    assert inner.bound == LoopBound(3, exact=False, source="comment at k.ptx:8", by=BoundBasis.COMMENT)
    assert last.bound is None


def test_equal_comments_of_two_loops_that_begin_together_are_no_copies() -> None:
    outer, inner = loops(kernel("O: // makespan: loop 4\nI: // makespan: loop 4\nadd a,a,1;\n@p bra I;\n@q bra O;"))
    assert (outer.bound, inner.bound) == (
        LoopBound(4, exact=False, source="comment at k.ptx:5", by=BoundBasis.COMMENT),
        LoopBound(4, exact=False, source="comment at k.ptx:6", by=BoundBasis.COMMENT),
    )


NOTE = "// makespan: loop {}\nadd a,a,1;\n"
DOUBT = "as these need not be copies of one comment"


@pytest.mark.parametrize(("maximum", "copies", "passes"), [(64, 4, 16), (63, 4, 15), (7, 4, 1), (3, 4, 1), (64, 1, 64)])
def test_copies_in_one_body_mean_unrolling(maximum: int, copies: int, passes: int) -> None:
    found = bound(located(f"L: {NOTE.format(maximum) * copies}@p bra L;\nret;"))
    assert found is not None
    assert found.maximum == passes
    assert copies == 1 or f"{copies} copies of {maximum} iterations" in found.source


def test_an_unrolled_loop_that_tests_first_may_run_no_pass() -> None:
    found = bound(located(f"L: setp.ne p,a,1;\n@p bra E;\n{NOTE.format(3) * 4}bra L;\nE: ret;"))
    assert found is not None
    assert found.maximum == 0


def test_copies_on_two_sides_of_a_branch_do_not_add_up() -> None:
    note = NOTE.format(8)
    found = bound(located(f"L: @q bra B;\n{note}bra J;\nB: {note}J: add a,a,1;\n@p bra L;\nret;"))
    assert found == LoopBound(8, exact=False, source="comment at k.ptx:6", by=BoundBasis.COMMENT)


def test_copies_that_a_pass_may_avoid_do_not_add_up() -> None:
    note = NOTE.format(8)
    found = bound(located(f"L: {note}{note}@q bra J;\n{note}{note}J: @p bra L;\nret;"))
    assert found is not None
    assert found.maximum == 8


def test_comments_that_differ_in_one_loop_tell_no_bound() -> None:
    (info,) = loops(kernel(f"L: {NOTE.format(8)}{NOTE.format(4)}@p bra L;\nret;"))
    assert info.bound is None
    assert (info.hint or "").startswith("k.ptx:7: this comment and that in line 5 differ, but stand in one loop, L")
    body = f"L: .loc 1 3 0\n{NOTE.format(8)}.loc 1 4 0\n{NOTE.format(8)}@p bra L;\nret;"
    (info,) = loops(kernel(body, after='.file 1 "a.cu"\n'))
    assert "differ" in (info.hint or "")
    (info,) = loops(kernel(body, after='.file 1 "a.cu"\n'), loop_bounds(["L=3"]))
    assert (info.bound, info.hint) == (LoopBound(3, exact=False, source="command line", by=BoundBasis.USER), None)


def test_equal_comments_without_source_lines_are_copies_where_the_code_repeats_itself() -> None:
    found = bound(kernel(f"L: {NOTE.format(8) * 4}@p bra L;\nret;"))
    assert found == LoopBound(
        2, exact=False, by=BoundBasis.COMMENT, source="comment at k.ptx:5, 4 copies of 8 iterations"
    )
    body = "ld.global.u32 a,[b];\n// makespan: loop 9\nadd a,a,1;\n"
    found = bound(kernel(f"L: setp.ne.u32 q,a,b;\n{body * 3}add b,b,6;\n@p bra L;\nret;"))
    assert found == LoopBound(
        3, exact=False, source="comment at k.ptx:7, 3 copies of 9 iterations", by=BoundBasis.COMMENT
    )


NESTED = {
    "another comment first": "// makespan: loop 16\nmul a,a,b;\n" + NOTE.format(16) * 3,
    "adjacent comments": "// makespan: loop 16\n" + NOTE.format(16) * 3,
    "inner comments last": "// makespan: loop 16\n" + "add a,a,1;\n// makespan: loop 16\n" * 3,
    "nothing between": "// makespan: loop 16\n" * 4 + "add a,a,1;\n",
    "two copies": NOTE.format(16) * 2,
    "equal bodies": NOTE.format(16).replace("add", "ld") * 4 + "add i,i,1;\n",
    "equal bodies, one pointer": NOTE.format(16).replace("add", "ld") * 3 + "add p,p,4;\n",
    "nothing counted": NOTE.format(16).replace("add", "ld") * 4,
}


@pytest.mark.parametrize("body", NESTED.values(), ids=NESTED)
def test_equal_comments_that_may_be_those_of_an_unrolled_inner_loop_are_not_divided(body: str) -> None:
    for is_located in (False, True):  # one line of a macro or of an inlined function says nothing
        text = f"L: {body}sub b,b,a;\n@p bra L;\nret;"
        found = bound(located(text) if is_located else kernel(text))
        assert found is not None
        assert found.maximum == 16
        assert DOUBT in found.source


def test_copies_at_different_columns_are_not_divided() -> None:
    body = "".join(f".loc 1 3 {column}\n{NOTE.format(8)}" for column in (1, 1, 9))
    found = bound(kernel(f"L: {body}@p bra L;\nret;", after='.file 1 "a.cu"\n'))
    assert found is not None
    assert found.maximum == 8


def test_a_comment_that_a_pass_avoids_tells_no_bound() -> None:
    (info,) = loops(kernel(f"L: @q bra J;\n{NOTE.format(8)}J: @p bra L;\nret;"))
    assert info.bound is None
    assert (info.hint or "").startswith("k.ptx:6: loop L can repeat without passing this comment")


COUNTED = "mov.u32 %r1, 0;\nL: {}add.u32 %r1, %r1, 1;\nsetp.lt.u32 %p1, %r1, 5;\n@%p1 bra L;\nret;"
REGISTERS = ".reg .u32 %r<2>; .reg .pred %p<2>; "


def test_what_is_proven_makes_a_comment_exact_and_must_keep_it() -> None:
    found = bound(kernel(REGISTERS + COUNTED.format(NOTE.format(9))))
    assert found is not None
    assert found[:2] == (5, True)
    assert "inferred" in found.source
    assert "loop L: at most 4 iterations (comment at k.ptx:6), but it makes exactly 5 iterations (inferred" in refusal(
        kernel(REGISTERS + COUNTED.format(NOTE.format(4)))
    )


FIVE = REGISTERS + COUNTED.format("")
MAKES_FIVE = "but it makes exactly 5 iterations (inferred: from the code alone); correct the bound or leave it out"


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("L=4", "at most 4 iterations (command line)"),
        ("L==4", "exactly 4 iterations (command line)"),
        ("L==6", "exactly 6 iterations (command line)"),
        ("line:6=1", "at most 1 iteration (command line)"),
    ],
)
def test_a_given_bound_that_the_code_contradicts_is_an_error(given: str, said: str) -> None:
    assert refusal(kernel(FIVE), given_bound(given)).startswith(f"loop L: {said}, {MAKES_FIVE}")


def test_so_is_one_from_a_file(tmp_path: Path) -> None:
    path = tmp_path / "b.csv"
    path.write_text("# stale\nL,4\n")
    assert refusal(kernel(FIVE), *read_bounds(path)).startswith(f"loop L: at most 4 iterations (bounds file {path}:2)")


@pytest.mark.parametrize(("given", "expected"), [("L=9", (9, False)), ("L=5", (5, False)), ("L==5", (5, True))])
def test_a_given_bound_that_is_only_loose_counts(given: str, expected: tuple[int, bool]) -> None:
    found = bound(kernel(FIVE), given)
    assert found is not None
    assert found[:2] == expected


def test_a_trusted_bound_counts_and_says_what_it_contradicts() -> None:
    (info,) = loops(kernel(FIVE), loop_bounds(["L=4"], trusted=True))
    assert info.bound == LoopBound(4, exact=False, source="command line", by=BoundBasis.USER)
    assert info.against == "exactly 5 iterations (inferred: from the code alone)"
    made = program(kernel(FIVE), loop_bounds=loop_bounds(["L=4"], trusted=True))
    assert info.against is not None
    assert trusted_loop("L", str(info.bound), info.against) in made.assumptions
    (info,) = loops(kernel(FIVE), loop_bounds(["L=5"], trusted=True))
    assert info.against is None


def test_only_what_is_given_can_be_trusted_and_no_comment() -> None:
    note = kernel(REGISTERS + COUNTED.format(NOTE.format(4)))
    assert refusal(note).endswith("correct the bound")
    assert bound(note, "L=5") == LoopBound(5, exact=False, source="command line", by=BoundBasis.CODE)


def test_equal_warps_are_one_group_under_what_any_of_them_contradicts() -> None:
    text = "mov.u32 i, 0; mov.u32 t, %tid.x; shr.u32 t, t, 5; add.u32 t, t, 2;"
    text += "L: add.u32 i, i, 1; setp.lt.u32 p, i, t; @p bra L; ret;"
    given = loop_bounds(["L==2"], trusted=True)
    ((made, warps),) = programs(kernel(text), launch=launch(block="64"), loop_bounds=given)
    assert warps == 2
    (doubt,) = [note for note in made.assumptions if note.kind is AssumptionKind.TRUSTED_LOOP]
    assert "but it makes exactly 3 iterations (inferred: block 64x1x1)" in str(doubt)
    told = program(kernel(text), launch=launch(block="64"), loop_bounds=loop_bounds(["L=3"]), warp=0)
    instance = Instance.merged(
        [(told.assuming(()), 1), (told.assuming([caveat("a")]), 1), (told.assuming([caveat("b")]), 1)]
    )
    assert instance.groups[0].program.assumptions == (caveat("a"), caveat("b"))


def test_the_sample_that_nvcc_unrolled_is_bounded_by_its_parameter() -> None:
    path = next(path for path in SAMPLES if path.stem == "nbody")
    main, remainder = loops(read(path).kernel())
    assert (main.bound and main.bound.maximum, remainder.bound and remainder.bound.maximum) == (16, 64)
    main, remainder = loops(read(path).kernel(), launch=launch(parameters=["2=63"]))
    assert [b and b[:2] for b in (main.bound, remainder.bound)] == [(15, True), (3, True)]


def test_the_template_is_a_bounds_file_to_fill_in(tmp_path: Path) -> None:
    text = "L: .loc 1 12 0\nadd a,a,1;\n@p bra L;\nM: // makespan: loop 4\nadd a,a,1;\n@p bra M;"
    k = kernel(text, after='.file 1 "a.cu"\n')
    template = bounds_template(k)
    assert template.splitlines()[3:] == [
        "# kernel k: 2 loops",
        "# k.ptx:5, source a.cu:12, depth 1",
        "L,?",
        "# k.ptx:8, source a.cu:12, depth 1, at most 4 iterations (comment at k.ptx:8)",
        "M,4",
    ]
    path = tmp_path / "b.csv"
    path.write_text(template)
    with pytest.raises(InputError, match=r"b.csv:6: the bound of L is not filled in"):
        read_bounds(path)
    path.write_text(template.replace("?", "==2"))
    assert [str(info.bound).partition(" (")[0] for info in loops(k, read_bounds(path))] == [
        "exactly 2 iterations",
        "at most 4 iterations",
    ]
    assert "L,==2" in bounds_template(k, read_bounds(path))


def test_one_bounds_file_serves_several_kernels(tmp_path: Path) -> None:
    text = ".entry a() { L: @p bra L; }\n.entry b() { L: @p bra L; M: @p bra M; }"
    a, b = parse(text, "k.ptx").kernels
    path = tmp_path / "b.csv"
    path.write_text(bounds_template([a, b]).replace("?", "3"))
    given = read_bounds(path)
    assert [g.kernel for g in given] == ["a", "b", "b"]
    assert len(loops(a, given)) == 1
    assert bounds_for(a, loop_bounds(["L=1", "M=2", "X=3"]), [a, b]) == loop_bounds(["L=1", "X=3"])


IRREDUCIBLE = "@p bra M; H: add a, a, 1; M: add a, a, 2; @p bra H; ret;"


def test_bounds_of_one_kernel_need_nothing_of_another_that_cannot_be_analysed() -> None:
    text = f".entry a() {{ L: @p bra L; }}\n.entry b() {{ {IRREDUCIBLE} }}"
    a, b = parse(text, "k.ptx").kernels
    assert bounds_for(a, loop_bounds(["L=1"]), [a, b]) == loop_bounds(["L=1"])
    # its labels are not mistaken for misspelt ones
    assert bounds_for(a, loop_bounds(["L=1", "H=2", "X=3"]), [a, b]) == loop_bounds(["L=1", "X=3"])
    template = bounds_template([a, b])
    assert "L,?,a" in template
    assert "# kernel b is refused: k.ptx:2: the loop at H is also entered past its head" in template
    with pytest.raises(UnsupportedError, match="irreducible"):
        bounds_template(b)


def test_other_kernels_are_looked_at_only_for_bounds_that_do_not_fit() -> None:
    a, b = parse(".entry a() { L: @p bra L; }\n.entry b() { M: @p bra M; }", "k.ptx").kernels
    seen: list[str] = []

    def watched(kernel: PtxKernel | PtxFlow) -> PtxFlow:
        assert isinstance(kernel, PtxKernel)
        seen.append(kernel.name)
        return flow(kernel)

    bounds_for = LanguageAnalysis(PtxKernel, watched, warps, "PTX").bounds_for
    bounds_for(a, (), [a, b])
    bounds_for(a, [given_bound("L=1"), GivenBound("M", 2, kernel="b")], [a, b])
    assert seen == ["a"]
    bounds_for(a, loop_bounds(["M=1"]), [a, b])
    assert seen == ["a", "a", "b"]
