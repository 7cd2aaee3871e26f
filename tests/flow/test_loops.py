"""Blocks, branches and natural loops."""

import networkx as nx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from makespan.host.errors import InputError, UnsupportedError
from makespan.kernels.flow import BranchInfo
from makespan.kernels.flow.graph import Flow, immediate_dominators, networkx_graph
from makespan.kernels.flow.loops import MAX_LOOP_DEPTH, loop_nest
from makespan.kernels.ptx import branches, flow
from tests.ptx.texts import kernel

TAILS = st.sampled_from(["add a, a, 1;", "bra L{};", "@p bra L{};", "@p bra L{};", "@p exit;", "ret;"])


@st.composite
def flows(draw: st.DrawFn) -> Flow:
    """Kernels of up to nine blocks that end at will."""
    count = draw(st.integers(1, 9))
    tails = [draw(TAILS).format(draw(st.integers(0, count - 1))) for _ in range(count)]
    return flow(kernel("\n".join(f"L{number}: {tail}" for number, tail in enumerate(tails))))


def test_blocks_end_at_branches_and_begin_at_labels() -> None:
    found = flow(kernel("add a,a,1;\nL: M: add a,a,1;\n@p bra L;\n@q ret;\nbra.uni L;\nN: trap;"))
    assert [(b.first, b.stop, b.successors) for b in found.blocks] == [
        (0, 1, (1,)),
        (1, 1, (2,)),
        (1, 3, (1, 3)),
        (3, 4, (6, 4)),
        (4, 5, (1,)),
        (5, 6, (6,)),
    ]
    assert found.exit == 6
    assert [found.name(b) for b in range(6)] == ["line:5", "L", "M", "line:8", "line:9", "N"]


def test_a_label_at_the_end_is_a_block_without_instructions() -> None:
    found = flow(kernel("@p bra Done;\nadd a,a,1;\nDone:"))
    assert [b.successors for b in found.blocks] == [(2, 1), (2,), (3,)]
    assert flow(kernel("")).blocks == ()


def test_an_indirect_branch_goes_to_all_its_targets_once() -> None:
    found = flow(kernel("t: .branchtargets L, M, L;\nbrx.idx a, t;\nL: M: @p brx.idx a, t;\nret;"))
    assert [b.successors for b in found.blocks] == [(1, 2), (2,), (1, 2, 3), (4,)]
    assert not any(found.is_branch(block) for block in range(4))
    assert not found.is_plain


def test_labels_belong_to_their_braces() -> None:
    found = flow(kernel("{ L: @p bra L; bra M; }\n{ L: @p bra L; }\nM: ret;"))
    assert [b.successors for b in found.blocks] == [(0, 1), (3,), (2, 3), (4,)]


def test_loops_that_begin_at_one_instruction_are_told_apart_by_their_labels() -> None:
    outer, inner = loop_nest(flow(kernel("O:\nI: add a,a,1;\n@p bra I;\n@q bra O;\nret;"))).loops
    assert (set(outer.blocks), set(inner.blocks), inner.outer) == ({0, 1, 2}, {1}, 0)


@pytest.mark.parametrize(
    ("body", "kind", "message"),
    [
        ("bra L;", InputError, "k.ptx:5: `bra L;` goes to a label that is not declared here"),
        ("{ L: }\nbra L;", InputError, "k.ptx:6: `bra L;` goes to a label"),
        ("L: ret;\nL: ret;", InputError, "k.ptx:6: label L is already declared in line 5"),
        ("bra;\nL:", InputError, "must name one label"),
        ("brx.idx;\nL:", InputError, "must name an index and a list of targets"),
        ("bra L, M;\nL: M:", InputError, "must name one label"),
        ("brx.idx a, t;", InputError, "k.ptx:5: `brx.idx a, t;` goes to a label that is not declared here"),
        ("brx.idx t;\nt: .branchtargets L;\nL:", InputError, "must name an index and a list of targets"),
        ("brx.idx a, L;\nL: ret;", InputError, "goes to L, which is no list of .branchtargets"),
        ("brx.idx a, t;\nt: .branchtargets L, M;\nL:", InputError, "may go to label M, which is not declared here"),
    ],
)
def test_flow_that_is_not_understood_is_refused(body: str, kind: type[Exception], message: str) -> None:
    with pytest.raises(kind) as caught:
        flow(kernel(body))
    assert message in str(caught.value)


def test_loops_are_nested_and_know_how_they_end() -> None:
    found = flow(kernel("O: add a,a,1;\nI: add a,a,1;\n@p bra I;\n@q bra E;\nbra O;\nE: ret;"))
    outer, inner = loop_nest(found).loops
    assert (outer.header, set(outer.blocks), set(outer.latches), outer.exits) == (0, {0, 1, 2, 3}, {3}, ((2, 4),))
    assert (inner.header, set(inner.blocks), set(inner.latches), inner.exits) == (1, {1}, {1}, ((1, 2),))
    assert (outer.depth, outer.outer, inner.depth, inner.outer) == (1, None, 2, 0)
    assert (outer.is_bottom_tested, inner.is_bottom_tested) == (False, True)


def test_irreducible_flow_is_refused_by_name_and_line() -> None:
    with pytest.raises(UnsupportedError, match=r"k.ptx:\d: the loop at [AB] is also entered past its head") as caught:
        loop_nest(flow(kernel("@p bra B;\nA: add a,a,1;\nB: add a,a,1;\n@q bra A;\nret;")))
    assert "irreducible" in str(caught.value)


def test_unreachable_loops_do_not_count() -> None:
    assert loop_nest(flow(kernel("bra E;\nL: @p bra L;\nE: ret;"))).loops == ()


@given(flows())
def test_loops_are_those_that_dominators_tell(found: Flow) -> None:
    edges = nx.DiGraph(edge for edge in networkx_graph(found).edges if edge[1] != found.exit)
    edges.add_node(0)
    edges = edges.subgraph({0} | nx.descendants(edges, 0)).copy()
    above = immediate_dominators(found)

    def dominates(a: int, b: int) -> bool:
        while b != a and b != 0:
            b = above[b]
        return a == b

    back = [(u, v) for u, v in edges.edges if dominates(v, u)]
    forward = edges.copy()
    forward.remove_edges_from(back)
    if not nx.is_directed_acyclic_graph(forward):
        with pytest.raises(UnsupportedError, match="irreducible"):
            loop_nest(found)
        return
    bodies: dict[int, set[int]] = {}
    for latch, header in back:
        around = edges.subgraph(set(edges) - {header})
        body = {header} if latch == header else {header, latch} | nx.ancestors(around, latch)
        bodies.setdefault(header, set()).update(body)
    loops = loop_nest(found).loops
    assert {loop.header: loop.blocks for loop in loops} == bodies
    for loop in loops:
        assert loop.depth == sum(loop.header in body for body in bodies.values())


def nested(depth: int) -> str:
    opening = "".join(f"L{n}: add a,a,1;\n" for n in range(depth))
    return opening + "".join(f"@p bra L{n};\n" for n in reversed(range(depth)))


def test_loops_have_a_depth_limit_and_long_chains_none() -> None:
    assert loop_nest(flow(kernel(nested(MAX_LOOP_DEPTH)))).loops[-1].depth == MAX_LOOP_DEPTH
    for depth in (MAX_LOOP_DEPTH + 1, 2000):
        with pytest.raises(UnsupportedError, match=r"k.ptx:3: loops in k nest deeper than 64"):
            loop_nest(flow(kernel(nested(depth))))
    assert len(loop_nest(flow(kernel("".join(f"L{n}: @p bra L{n};\n@p exit;\n" for n in range(3000))))).loops) == 3000


def test_branches_say_what_they_are_and_which_loop_they_control() -> None:
    k = kernel("@!p bra E;\nL: add a,a,1;\n@q exit;\n@r bra L;\nE: ret;")
    assert branches(k) == (
        BranchInfo(5, "@!p bra E;", "E", None),
        BranchInfo(7, "@q exit;", "exit", "L"),
        BranchInfo(8, "@r bra L;", "L", "L"),
    )
