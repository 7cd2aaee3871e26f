"""Theorem L: against exact values, against the checker's own, its premises, and its proof on random schedules."""

import random
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks import closed_form as campaign
from makespan.model.instance import Instance
from makespan.model.machine import Latency, Machine, UnitClass
from makespan.model.program import Program
from makespan.model.result import Upper
from makespan.proof.bounds import closed_form, theorem_l
from makespan.proof.bounds.theorem_l import MOST_LETTERS, MOST_STRINGS, _late, _StringBlock, _StringCrew
from makespan.verify import alignment
from makespan.verify.refusal import ProofBudget, TooMuchWork
from tests.bounds.alignment_ledger import Ledger, blocks_of
from tests.bounds.ledger import random_run
from tests.oracle import brute_force
from tests.strategies import letters

FORTY = "CCLCCLCCLLLLCCCLCCCLCCCCLCLLLCLLLCLCCCLC"


def machine(*latencies: int) -> Machine:
    return Machine("m", tuple(UnitClass(name, 1, 1, Latency(one, one)) for name, one in zip("CLS", latencies)))  # noqa: B905


def upper(instance: Instance) -> int | None:
    found = theorem_l(instance)
    again = alignment.bound(instance, ProofBudget(1))
    assert again == (None if found is None else found.upper)
    return again


@pytest.mark.parametrize("seed", range(4))
def test_the_checker_says_the_same_of_different_strings(seed: int) -> None:
    """Where it applies and what it proves, of short strings of several crews at latencies of all lengths."""
    draw, found = random.Random(seed), Counter[bool]()
    for _ in range(250):
        names = "CLS"[: draw.choice((2, 2, 3))]
        ready = machine(draw.choice((1, 1, 3, 8)), draw.choice((8, 15, 30)), draw.choice((1, 20, 40)))
        strings = ["".join(draw.choices(names, k=draw.randint(2, 7))) for _ in range(draw.choice((1, 2, 2, 2)))]
        one = Instance.merged([(Program.chain(string), draw.randint(1, 2)) for string in strings], ready)
        found[upper(one) is not None] += 1
    assert min(found.values()) > 5


@pytest.mark.parametrize(
    ("latencies", "strings", "cycles"),
    [
        ((1, 8), {"LC": 1, "CL": 1}, 9 + 1),  # the one C may come a cycle before the other
        ((1, 8), {"CCC": 1, "CLLCLCC": 2}, 34),
        ((1, 15, 1), {"SCCLC": 1, "CCCC": 1}, None),  # four C behind S, which takes one cycle
        ((1, 8, 1), {"CLSCCLC": 1, "CC": 1}, None),  # a run of C may be left soon, though not every one
        ((1, 8, 1), {"CSL": 2}, 11),  # just far enough apart
        ((1, 8, 1), {"LC": 1, "SCSLL": 1}, 19),  # a warp without S fills no cycle of its port
    ],
)
def test_strings_that_few_are_like(latencies: tuple[int, ...], strings: dict[str, int], cycles: int | None) -> None:
    groups = [(Program.chain(string), warps) for string, warps in strings.items()]
    assert upper(Instance.merged(groups, machine(*latencies))) == cycles


def crew(string: str, warps: int, latency: dict[str, int]) -> _StringCrew:
    """Without a look at the premises."""
    blocks = [_StringBlock(*block[:2], *block[3:]) for block in blocks_of(string, latency)]
    return _StringCrew(
        warps, blocks, {name: max((b.letters for b in blocks if b.unit == name), default=0) for name in latency}
    )


# Against exact values


def test_it_is_never_below_the_exact_value() -> None:
    draw, found = random.Random(1), Counter[str]()
    for _ in range(150):
        found.update(campaign.judge(campaign.instance(draw, campaign.KINDS["long latencies"]), patience=60))
    assert not found["wrong"]
    assert found["theorem-l"] > 40


@pytest.mark.parametrize(
    ("string", "warps", "latencies", "cycles", "exact"),
    [
        ("CCLCL", 4, (1, 20), 43 + 3 * 2, True),  # nobody meets again
        ("LLL", 3, (1, 5), 15 + 2, True),
        ("CSLSCC", 3, (1, 9, 9), 30 + 2 * 2, True),  # three classes
        ("CLCLCL", 3, (4, 4), 24 + 2, True),  # no class has a latency of 1
        ("CCCC", 5, (1,), 20, True),
        ("LCLLCCLCL", 3, (1, 5), 29 + 2 * 3, False),  # they meet again
    ],
)
def test_by_hand(string: str, warps: int, latencies: tuple[int, ...], cycles: int, exact: bool) -> None:
    instance = Instance.of(string, warps, machine(*latencies))
    assert upper(instance) == cycles
    assert (brute_force(instance).upper == cycles) is exact


def test_a_warp_that_delays_two_runs_one_after_another_counts_one_less() -> None:
    """CCSSS takes five cycles alone; CC before its CC, and SS before its SSS, delay it by 2 + 2 - 1."""
    two = Instance.merged([(Program.chain("CCSSS"), 1), (Program.chain("CCSS"), 1)], machine(1, 40, 1))
    assert upper(two) == brute_force(two).upper == 5 + 3


@given(letters("CLS", most=60), st.integers(1, 9), st.tuples(*[st.integers(1, 90)] * 3), st.booleans())
def test_the_checker_has_the_same_bound(string: str, warps: int, times: tuple[int, int, int], fast: bool) -> None:
    upper(Instance.of(string, warps, machine(1 if fast else times[0], *times[1:])))


@given(st.lists(st.tuples(letters("CLS", most=20), st.integers(1, 4)), min_size=2, max_size=4), st.integers(2, 60))
def test_the_checker_has_the_same_bound_for_different_strings(warps: list[tuple[str, int]], latency: int) -> None:
    crews = [(Program.chain(string), count) for string, count in warps]
    upper(Instance.merged(crews, machine(1, latency, latency + 5)))


def test_different_strings_by_hand() -> None:
    """Who begins with another class never meets the others; who meets them at the start costs a cycle and his run."""
    apart = Instance.merged([(Program.chain("CCCCL"), 3), (Program.chain("L"), 1)], machine(1, 20))
    assert upper(apart) == 24 + 2 * (1 + 3) == brute_force(apart).upper
    together = Instance.merged([(Program.chain("CCL"), 2), (Program.chain("CCCL"), 1)], machine(1, 20))
    assert upper(together) == max(22 + (1 + 1) + 3, 23 + 2 * 2) == brute_force(together).upper == 27


# Large ones


@pytest.mark.parametrize(
    ("warps", "latency", "cycles"),
    [(8, 400, 6914), (16, 400, 7018), (48, 400, 7763), (8, 100, 1828), (16, 100, 2053), (8, 30, 715), (16, 30, None)],
)
def test_long_latencies(warps: int, latency: int, cycles: int | None) -> None:
    assert upper(Instance.of(FORTY, warps, machine(1, latency))) == cycles


def test_far_apart_it_is_a_formula() -> None:
    """c + (W-1) (1 + S), with S letters C behind a C."""
    for warps in (2, 8, 48):
        found = closed_form(Instance.of(FORTY, warps, machine(1, 2000)))
        assert (found.upper, found.evidence) == (23 + 17 * 2000 + (warps - 1) * (1 + 12), Upper.THEOREM_L)


def test_it_is_left_out_where_theorem_e_says_as_much() -> None:
    short = Instance.of("CL", 4, machine(1, 20))
    assert upper(short) == closed_form(short).upper
    assert closed_form(short).evidence is Upper.THEOREM_E


# Its premises


@pytest.mark.parametrize(
    "unknown",
    [
        Instance.of("CL", 2, Machine("m", (UnitClass("C", 2), UnitClass("L", 1, 1, Latency(9, 9))))),
        Instance.of("CL", 2, Machine("m", (UnitClass("C", 1), UnitClass("L", 1, 2, Latency(9, 9))))),
        Instance.of("CL", 2, Machine("m", (UnitClass("C", 1), UnitClass("L", 1, 1, Latency(8, 9))))),
        Instance.of("CL", 2, Machine("m", (UnitClass("C", 1), UnitClass("L", 1, 1, Latency(9, 9))), issue_width=1)),
        Instance.of("C|L", 2, machine(1, 9)),
        Instance.of(Program(tuple(Program.chain("CL").places), (0, 1)), 2, machine(1, 9)),
    ],
    ids=["capacity", "interval", "range", "width", "barrier", "choice"],
)
def test_what_it_does_not_know(unknown: Instance) -> None:
    assert upper(unknown) is None


def test_a_class_that_no_instruction_needs_may_be_anything() -> None:
    units = *machine(1, 9).units, UnitClass("S", 4, 4, Latency(3, 8))
    assert upper(Instance.of("CLC", 2, Machine("m", units))) == 12


@pytest.mark.parametrize(("latency", "cycles"), [(7, 17), (6, None)])
def test_the_distance_that_it_asks_for(latency: int, cycles: int | None) -> None:
    """Two other warps fill six cycles with CCC; without the premise the bound would be wrong at a latency of 5."""
    assert upper(Instance.of("CCCLC", 3, machine(1, latency))) == cycles
    short = Instance.of("CCCLC", 3, machine(1, 5))
    assert 9 + _late([crew("CCCLC", 3, {"C": 1, "L": 5})])[0][-1] == 15 < brute_force(short).upper == 16


def test_a_chain_of_warps_must_not_be_overtaken() -> None:
    """(L2): eleven cycles can be filled with C, and a warp comes from one C to the next L but one within ten."""
    assert upper(Instance.of("CLLCC", 6, machine(1, 9))) is None
    assert upper(Instance.of("CLLCC", 5, machine(1, 9))) == 21 + 4 * 2


def test_long_strings_are_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    most = Instance.of("CCL" * (MOST_LETTERS // 3), 2, machine(1, 2000))
    assert theorem_l(most) is not None
    assert theorem_l(Instance.of("CCL" * (MOST_LETTERS // 3 + 1), 2, machine(1, 2000))) is None
    many = [(Program.chain("C" * length + "L"), 1) for length in range(1, MOST_STRINGS + 2)]
    assert theorem_l(Instance.merged(many, machine(1, 2000))) is None
    assert theorem_l(Instance.merged(many[1:], machine(1, 2000))) is not None
    monkeypatch.setattr(alignment, "MOST_STEPS", 10_000)
    with pytest.raises(TooMuchWork):
        alignment.bound(most, ProofBudget(1))


# Its proof


def evaluated(without: str = "", count: int = 150) -> Counter[str]:
    """How often each inequality was evaluated, held with equality, and was violated."""
    draw, found = random.Random(f"{without} {count}"), Counter[str]()
    while count:
        units = "CLS"[: draw.choice((2, 2, 3))]
        groups = [
            ("".join(draw.choice(units) * draw.randint(1, 3) for _ in range(draw.randint(2, 15))), draw.randint(1, 6))
            for _ in range(draw.choice((1, 1, 2, 3)))
        ]
        warps = dict(groups)
        times = [1, *(draw.randint(1, 4 * sum(warps.values())) for _ in units[1:])]
        latency = dict(zip(units, times, strict=True))
        programs = [(Program.chain(string), many) for string, many in warps.items()]
        instance = Instance.merged(programs, machine(*times))
        if without != "distance" and theorem_l(instance) is None:
            continue
        count -= 1
        if without == "range":
            some = (UnitClass(name, 1, 1, Latency(max(1, one - 3), one)) for name, one in latency.items())
            instance = Instance.merged(programs, Machine("m", tuple(some)))
        late = _late([crew(string, many, latency) for string, many in warps.items()])
        lates = {string: own[1:] for string, own in zip(warps, late, strict=True)}
        strings = [program.letters or "" for program in instance.programs()]
        for _ in range(3):
            run = [segments[0] for segments in random_run(draw, instance).segments]
            for name, left in Ledger(strings, latency, run, lates, without).inequalities():
                found[name] += 1
                found[f"{name} tight"] += left == 0
                found[f"{name} violated"] += left < 0
    return found


def test_the_inequalities_of_the_proof_hold_on_every_chain() -> None:
    found = evaluated()
    assert not any(found[name] for name in found if name.endswith("violated")), found
    for name in ("late", "step", "near", "far", "order", "value", "one job"):
        assert found[f"{name} tight"], found


@pytest.mark.parametrize("without", ["distance", "range", "one port", "run", "start", "late", "period"])
def test_the_inequalities_notice_what_is_left_out(without: str) -> None:
    found = evaluated(without, 40)
    assert any(found[name] for name in found if name.endswith("violated")), found
