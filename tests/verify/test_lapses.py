"""The checker on instances with lapses: honest bundles of random instances, and what a forger does to them."""

import copy
import random
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from typing import Any

import pytest

from benchmarks import multiprocessors
from makespan.model.instance import Group, Instance
from makespan.model.lapses import CacheLine, PlaceLapses
from makespan.model.machine import PAPER, Machine, UnitClass, UnitQueue, WarpAssignment
from makespan.model.program import BARRIER, Program, ProgramPlace
from makespan.model.result import Bounds, LapseProof, Result, Upper
from makespan.model.strings import parse_string
from makespan.proof.bounds import lapse_proofs
from makespan.proof.engines import solve
from makespan.report.result.bundle import instance_data, result_bundle
from makespan.report.result.document import result_document
from makespan.verify import Outcome, Refused, digest, instances, interference, lapses, machine_form, queues, verify
from makespan.verify.proving import RULES
from makespan.verify.refusal import ProofBudget
from makespan.verify.rule import ClaimedBound
from tests.forgery import Document
from tests.lapsing import behind
from tests.oracle import longest_schedule
from tests.schemas import published

NAMES = "code 0", "code 1", "constants 0"
ONE = PlaceLapses(credit=1)
QUEUES = (UnitQueue("memory", ("L",), 2, False),)
FORGED = 2000
TWO = Machine("two schedulers", (UnitClass("C", 1),), issue_width=1, partitions=2)


def place_lapses(draw: random.Random) -> PlaceLapses:
    """Some places cost nothing."""
    names = sorted(draw.sample(NAMES, draw.choice((0, 0, 1, 1, 2))))
    return PlaceLapses(
        draw.choice((0, 0, 1, 2)),
        draw.choice((0, 0, 0, 1)),
        draw.choice((0, 0, 0, 1, 3)),
        tuple(CacheLine(name, draw.randint(1, 4)) for name in names),
    )


def lapsing(draw: random.Random, instance: Instance) -> Instance:
    """The same instance with lapses of some programs, of one of them for sure."""
    while True:
        groups = [
            replace(group, program=group.program.lapsing(tuple(place_lapses(draw) for _ in group.program.places)))
            if draw.random() < 0.8
            else group
            for group in instance.groups
        ]
        found = replace(instance, groups=tuple(groups))
        if any(group.program.has_lapses for group in groups):
            return found


def with_pairs(draw: random.Random) -> Instance:
    """A few warps that theorem E knows: strings that block, some with barriers, and no issue width."""
    machine = Machine("pairs", (UnitClass("C", 1, draw.randint(1, 2)), UnitClass("L", draw.randint(1, 2))))
    letters = "CL|" if draw.random() < 0.4 else "CL"
    strings = {draw.choice("CL") + "".join(draw.choices(letters, k=draw.randint(1, 5))) for _ in range(2)}
    return Instance.merged([(Program.chain(one), draw.randint(1, 3)) for one in sorted(strings)], machine)


def result_of(instance: Instance, proof: LapseProof) -> Result:
    """The result with the bound that this proof says, which need not be the smallest one."""
    # where paths join, the checker knows less of the least time of a warp alone
    found = solve(instance, best_case=all(group.program.is_chain for group in instance.groups))
    history = tuple(step._replace(upper=proof.upper) for step in found.history)
    return replace(found, bounds=Bounds(found.bounds.lower, proof.upper), history=history, lapses=proof)


@cache
def questions(count: int) -> tuple[Instance, ...]:
    draw = random.Random(43)
    made = (with_pairs if number % 3 == 2 else multiprocessors.instance for number in range(count))
    return tuple(lapsing(draw, make(draw)) for make in made)


@cache
def bundles(count: int) -> tuple[Document, ...]:
    """Of every question a bundle with each proof."""
    return tuple(
        result_bundle(result_of(question, proof)) for question in questions(count) for proof in lapse_proofs(question)
    )


def test_honest_bundles_are_accepted() -> None:
    evidence = set()
    for document in bundles(60):
        verdict = verify(document)
        assert verdict.outcome is Outcome.ACCEPTED, (verdict, document["instance"])
        assert verdict.upper == document["result"]["upper"] or document["instance"]["machine"]["name"] == "random"
        evidence.add(document["result"]["lapses"]["base"]["evidence"])
        published("bundle-3").validate(document)
        published("result-2").validate(document["result"])
    assert evidence == {"pessimistic", "theorem-1s", "theorem-e"}


def test_what_is_read_is_what_was_written() -> None:
    for question in questions(60):
        again = instances.instance(instance_data(question))
        assert instance_data(again) == instance_data(question)
        assert [group.program.lapses for group in again.groups] == [group.program.lapses for group in question.groups]


@pytest.mark.parametrize("name", RULES)
def test_no_rule_can_be_applied_to_an_instance_with_lapses(name: Upper) -> None:
    """Every rule takes a claim, and there is none about such an instance."""
    bare = Instance.of("CLC", 2)
    claim = ClaimedBound(bare, 6, name)
    for lapsing_ in (Instance.of(Program.chain("CLC").lapsing((ONE,) * 3), 2), behind(QUEUES, bare)):
        assert machine_form.has_lapses(lapsing_)
        with pytest.raises(Refused, match="no rule but that of lapses"):
            replace(claim, instance=lapsing_)


# What a forger does


def less(draw: random.Random, number: int) -> int:
    """A smaller number, or where there is none one more."""
    return draw.randrange(number) if number else 1


def parts_of(document: Document) -> dict[str, Any]:
    found: dict[str, Any] = document["result"]["lapses"]
    return found


def set_upper(document: Document, upper: int) -> None:
    """Claim this bound, in each place that says so."""
    result = document["result"]
    result["upper"] = upper
    result["status"] = "exact" if upper == result["lower"] else "bounded"
    for step in result["history"]:
        step["upper"] = upper


def part_changed(draw: random.Random, document: Document) -> None:
    parts = parts_of(document)
    name = draw.choice(("credits", "windows", "misses"))
    parts[name] = less(draw, parts[name])


def base_changed(draw: random.Random, document: Document) -> None:
    base = parts_of(document)["base"]
    base["upper"] = less(draw, base["upper"])


def evidence_renamed(draw: random.Random, document: Document) -> None:
    names = ("pessimistic", "theorem-1s", "theorem-e", "theorem-l", "issue-slots", "search", "phases", "lapses")
    parts_of(document)["base"]["evidence"] = draw.choice(names)


def base_exact(_: random.Random, document: Document) -> None:
    """The bound without lapses as base, whatever proves it."""
    inner = document["result"]["without_lapses"]
    parts_of(document)["base"].update(upper=inner["upper"])


def base_by_search(_: random.Random, document: Document) -> None:
    inner = document["result"]["without_lapses"]
    parts_of(document)["base"] = {"upper": inner["upper"], "evidence": inner["evidence"]["upper"]}


def upper_changed(draw: random.Random, document: Document) -> None:
    set_upper(document, draw.randint(document["result"]["lower"], document["result"]["upper"]))


def inner_changed(draw: random.Random, document: Document) -> None:
    inner = document["result"]["without_lapses"]
    inner["upper"] = max(1, inner["upper"] - draw.randint(1, 2))
    inner["status"] = "exact" if inner["upper"] == inner["lower"] else "bounded"
    inner["history"] = []


def pessimistic_changed(draw: random.Random, document: Document) -> None:
    of = draw.choice((document["result"], document["result"]["without_lapses"]))
    of["pessimistic"] = less(draw, of["pessimistic"])


def lapses_left_out(_: random.Random, document: Document) -> None:
    """The instance keeps its lapses, but the claim is that without them."""
    result = document["result"]
    del result["lapses"]
    result.update(result.pop("without_lapses"))


def lapses_forgotten(_: random.Random, document: Document) -> None:
    """As before, with the name of the evidence."""
    result = document["result"]
    inner = result["without_lapses"]
    set_upper(document, inner["upper"])
    result["lapses"] = {"base": {"upper": inner["upper"], "evidence": "theorem-1s"}} | dict.fromkeys(
        ("credits", "windows", "misses"), 0
    )


def weights_dropped(_: random.Random, document: Document) -> None:
    document["weights"] = []


def of_some_group(draw: random.Random, document: Document) -> tuple[list[list[Any]], list[list[Any]]]:
    """The lines and the rows of the lapses of some group that has any."""
    group = draw.choice([group for group in document["instance"]["groups"] if "lapses" in group])
    return group["lapses"]["lines"], group["lapses"]["places"]


def place_changed(draw: random.Random, document: Document) -> None:
    _, rows = of_some_group(draw, document)
    row, number = draw.choice(rows)[1], draw.randrange(3)
    row[number] = draw.choice((0, less(draw, row[number]), row[number] + 1))


def lines_dropped(draw: random.Random, document: Document) -> None:
    _, rows = of_some_group(draw, document)
    draw.choice(rows)[1][3] = []


def window_changed(draw: random.Random, document: Document) -> None:
    lines, _ = of_some_group(draw, document)
    if lines:
        line = draw.choice(lines)
        line[1] = draw.choice((0, less(draw, line[1]), line[1] + 1))


def lines_made_one(draw: random.Random, document: Document) -> None:
    lines, _ = of_some_group(draw, document)
    if lines:
        draw.choice(lines)[0] = draw.choice(lines)[0]


def places_dropped(draw: random.Random, document: Document) -> None:
    _, rows = of_some_group(draw, document)
    at = draw.randrange(len(rows))
    rows[at][0] += draw.choice((-1, 1))


def row_dropped(draw: random.Random, document: Document) -> None:
    _, rows = of_some_group(draw, document)
    if len(rows) > 1:
        rows.pop(draw.randrange(len(rows)))


def all_dropped(draw: random.Random, document: Document) -> None:
    del draw.choice([group for group in document["instance"]["groups"] if "lapses" in group])["lapses"]


CHANGES = (
    part_changed, part_changed, base_changed, evidence_renamed, base_exact, base_by_search, upper_changed,
    inner_changed, pessimistic_changed, lapses_left_out, lapses_forgotten, weights_dropped, place_changed,
    place_changed, lines_dropped, window_changed, lines_made_one, places_dropped, row_dropped, all_dropped,
)  # fmt: skip


def made_consistent(document: Document) -> None:
    """Let the parts add up to the bound, and the bound be that of the history."""
    parts = document["result"].get("lapses")
    if parts:
        set_upper(document, parts["base"]["upper"] + parts["credits"] + parts["windows"] + parts["misses"])


def honest_bound(document: Document) -> int:
    """The smallest bound of the instance that a bundle states."""
    instance = instances.instance(document["instance"])
    return min(proof.upper for proof in lapse_proofs(instance))


def accepts(document: Document) -> bool:
    verdict = verify(document)
    if verdict.outcome is not Outcome.ACCEPTED:
        return False
    assert verdict.upper is not None
    assert verdict.upper <= document["result"]["upper"]
    return True


def has_lapses_left(document: Document) -> bool:
    return "lapses" in document["result"] and any("lapses" in group for group in document["instance"]["groups"])


def test_no_forged_bundle_proves_less_than_its_instance_has() -> None:
    """Whatever of it is accepted says no less than what the engines prove of the instance that it states."""
    draw, accepted = random.Random(7), 0
    honest = bundles(60)
    for _ in range(FORGED):
        told = copy.deepcopy(draw.choice(honest))
        changes = draw.sample(CHANGES, draw.choice((1, 1, 2)))
        for change in changes:
            if has_lapses_left(told):
                change(draw, told)
        if draw.random() < 0.7:
            made_consistent(told)
        told["sha256"] = digest(told)
        if accepts(told):
            accepted += 1
            assert told["result"]["upper"] >= honest_bound(told), [one.__name__ for one in changes]
    assert FORGED // 50 < accepted < FORGED // 2


# The rule, and numbers by hand


def lapsing_string(letters: str, *places: PlaceLapses) -> Program:
    return Program.chain(letters).lapsing((*places, *[PlaceLapses()] * (len(letters) - len(places))))


def line(name: str, window: int, misses: int = 0) -> PlaceLapses:
    return PlaceLapses(misses=misses, lines=(CacheLine(name, window),))


def test_the_checker_adds_what_the_engines_add_or_less() -> None:
    """Less only for windows that a chain meets: the checker counts the phases in which each line is needed."""
    fewer = 0
    for question in questions(300):
        for proof in lapse_proofs(question):
            own = lapses.additions(question, Upper(proof.base.evidence))
            theirs = proof.credits, proof.windows, proof.misses
            if own != theirs:
                fewer += 1
                assert question.has_barriers
                assert (own[0], own[2]) == (theirs[0], theirs[2])
                assert own[1] < theirs[1]
    assert fewer >= 3


def test_what_is_added_by_theorem_1s() -> None:
    program = lapsing_string("CCC", PlaceLapses(2, 5), line("a", 7, 3), line("a", 9, 1))
    other = lapsing_string("CC", PlaceLapses(1), line("b", 20))
    warps = Instance((Group(program, 3), Group(other, 2)), TWO)
    # any partition may have three warps: 2 of credit each, 5 for the fence of each of three warps on the whole SM
    assert lapses.additions(warps, Upper.THEOREM_1S) == (6 + 15, 20, 4)
    numbered = replace(warps, machine=replace(TWO, assignment=WarpAssignment.MODULO))
    assert lapses.additions(numbered, Upper.THEOREM_1S) == (2 + 2 + 1 + 15, 20, 4)
    # theorem E counts besides them fences again, all lines, and the misses of the warps of a partition
    assert lapses.additions(numbered, Upper.THEOREM_E) == (2 + 2 + 1 + 2 * 15, 20 + 29, 4 + 8)
    assert lapses.additions(Instance.of(other, 4, TWO), Upper.THEOREM_1S) == (2, 20, 0)
    assert lapses.additions(Instance.of(lapsing_string("C", line("a", 0)), 4, TWO), Upper.THEOREM_1S) == (0, 0, 0)


def test_what_is_added_with_barriers() -> None:
    program = lapsing_string("C|C|C", line("a", 7, 3), PlaceLapses(misses=10), line("b", 9, 1), line("a", 7))
    three = replace(TWO, partitions=3)
    # `a` is needed in the first two phases, until warps have come to the barrier, and `b` in the second one
    assert lapses.additions(Instance.of(program, 4, three), Upper.THEOREM_1S) == (0, 7 * 2 + 9, 13 + 1)
    assert lapses.additions(Instance.of(program, 4, TWO), Upper.THEOREM_1S) == (0, 7 * 2 + 9, 14)
    assert lapses.additions(Instance.of(program, 4), Upper.PESSIMISTIC) == (0, 7 + 9, 14)
    assert lapses.additions(Instance.of(program, 4), Upper.THEOREM_E) == (0, 2 * (7 + 9), 14 + 4 * 14)
    credits_ = lapsing_string("C|C", PlaceLapses(1, 2), PlaceLapses(3), PlaceLapses(0, 1))
    assert lapses.additions(Instance.of(credits_, 4, TWO, blocks=2), Upper.THEOREM_1S) == (4 * 4 + 4 * 3, 0, 0)


def test_a_phase_ends_at_the_first_barrier_of_a_path() -> None:
    """The place behind a barrier is in the same phase on another path, which does not come to that barrier."""
    places = (ProgramPlace("C", (1, 2)), ProgramPlace(BARRIER, (2,)), ProgramPlace("C", (3,)))
    program = Program(places, lapses=tuple(PlaceLapses(misses=cycles) for cycles in (1, 20, 15)))
    assert lapses.additions(Instance.of(program, 2), Upper.PESSIMISTIC)[2] == 21 + 15
    begins = Program((ProgramPlace(BARRIER, (1,)), ProgramPlace("C", (2,))), lapses=(line("a", 3, 20), line("b", 4, 1)))
    assert lapses.additions(Instance.of(begins, 2, TWO), Upper.THEOREM_1S) == (0, 7, 21)


def test_too_many_phases_count_all_partitions_and_all_misses(monkeypatch: pytest.MonkeyPatch) -> None:
    program = lapsing_string("C|C", line("a", 7, 10))
    asked = Instance.of(program, 6, replace(TWO, partitions=4))
    assert lapses.additions(asked, Upper.THEOREM_1S) == (0, 7, 10)
    monkeypatch.setattr(lapses, "MOST_STEPS", 3)
    assert lapses.additions(asked, Upper.THEOREM_1S) == (0, 7 * 4, 60)


CLAIM = lapses.LapseClaim(
    Instance.of(lapsing_string("CL", PlaceLapses(1, 0, 2, (CacheLine("a", 3),))), 3),
    lapses.LapseParts(6, 3, 3, 2),
    Upper.PESSIMISTIC,
    14,
)


def test_a_claim_may_be_larger_in_each_part_and_smaller_in_none() -> None:
    assert lapses.prove(CLAIM, ProofBudget(1)) == 14
    assert CLAIM.without_lapses == Instance.of("CL", 3)
    assert not machine_form.has_lapses(CLAIM.without_lapses)
    for name, value in CLAIM.parts._asdict().items():
        larger = CLAIM.parts._replace(**{name: value + 1})
        assert lapses.prove(replace(CLAIM, parts=larger), ProofBudget(1)) == 14
        with pytest.raises(Refused, match=f"lapses: {value - 1} cycles are claimed for {name}, and {value} are proven"):
            lapses.prove(replace(CLAIM, parts=CLAIM.parts._replace(**{name: value - 1})), ProofBudget(1))
    with pytest.raises(Refused, match="pessimistic is 14 with lapses, not 13"):
        lapses.prove(replace(CLAIM, pessimistic=13), ProofBudget(1))


@pytest.mark.parametrize("evidence", [one for one in Upper if one not in (Upper.PESSIMISTIC, Upper.THEOREM_E)])
def test_no_other_theorem_is_a_base(evidence: Upper) -> None:
    with pytest.raises(Refused, match=f"cannot rest on {evidence}, only on pessimistic or theorem-e"):
        lapses.prove(replace(CLAIM, evidence=evidence), ProofBudget(1))


def test_theorem_e_is_a_base_with_weights_and_with_what_others_are_withheld_for() -> None:
    proof = next(one for one in lapse_proofs(CLAIM.instance) if one.base.evidence is Upper.THEOREM_E)
    parts = lapses.LapseParts(proof.base.upper, *proof[1:])
    assert parts == (4, 3, 3 + 3, 2 + 6)
    claim = replace(CLAIM, parts=parts, evidence=Upper.THEOREM_E, weights=proof.base.weights)
    assert lapses.prove(claim, ProofBudget(1)) == sum(parts)
    with pytest.raises(Refused, match="theorem E needs weights"):
        lapses.prove(replace(claim, weights=()), ProofBudget(1))
    for name in ("windows", "misses"):
        without = CLAIM.parts._asdict()[name]
        with pytest.raises(Refused, match=f"{without} cycles are claimed for {name}"):
            lapses.prove(replace(claim, parts=parts._replace(**{name: without})), ProofBudget(1))
    # theorem E is too much work, so what is left is the bound that needs no evidence
    assert lapses.prove(claim, ProofBudget(0)) == 14 == CLAIM.pessimistic


def test_a_real_multiprocessor_has_theorem_1s() -> None:
    asked = Instance.of(lapsing_string("CC", ONE), 4, TWO)
    claim = lapses.LapseClaim(asked, lapses.LapseParts(4, 2, 0, 0), Upper.THEOREM_1S, 6)
    assert lapses.prove(claim, ProofBudget(1)) == 6
    with pytest.raises(Refused, match="only on theorem-1s or theorem-e"):
        lapses.prove(replace(claim, evidence=Upper.PESSIMISTIC), ProofBudget(1))


def test_only_theorem_1q_counts_queues() -> None:
    asked = behind(QUEUES, Instance.of("CL", 2, CLAIM.instance.machine))
    # alone 2 cycles, 2 of the other warp, and 1 for its own access once more
    claim = lapses.LapseClaim(asked, lapses.LapseParts(5, 0, 0, 0), Upper.THEOREM_1S, 5)
    assert lapses.prove(claim, ProofBudget(1)) == 5 == queues.bound(asked)
    with pytest.raises(Refused, match="4 cycles are claimed for base, and 5 are proven"):
        lapses.prove(replace(claim, parts=lapses.LapseParts(4, 0, 0, 0)), ProofBudget(1))
    with pytest.raises(Refused, match="pessimistic is 5 with lapses, not 4"):
        lapses.prove(replace(claim, pessimistic=4), ProofBudget(1))
    with pytest.raises(Refused, match="theorem E knows no queues"):
        lapses.prove(replace(claim, evidence=Upper.THEOREM_E), ProofBudget(1))
    with pytest.raises(Refused, match="only on theorem-1s or theorem-e"):
        lapses.prove(replace(claim, evidence=Upper.PESSIMISTIC), ProofBudget(1))


def test_a_machine_may_have_queues_that_no_instruction_goes_through() -> None:
    unused, used = (behind(QUEUES, Instance.of(letters, 2, CLAIM.instance.machine)) for letters in ("C", "CL"))
    assert machine_form.has_queues(used)
    assert not machine_form.has_lapses(unused)
    assert instances.instance(instance_data(unused)).machine.queues == QUEUES
    assert verify(result_bundle(solve(unused))).outcome is Outcome.ACCEPTED


def test_no_schedule_is_longer_than_what_is_added_for_windows_with_barriers() -> None:
    """The checker counts less than the engines there; the truth is that of the definition."""
    draw, found, attained = random.Random(5), 0, 0
    while found < 12:
        program = lapsing_string("".join(draw.choices("C|", (2, 1), k=draw.randint(2, 3))) + "C")
        places = [line(draw.choice("ab"), draw.randint(1, 2)) if draw.random() < 0.7 else ONE for _ in program.places]
        asked = Instance.of(program.lapsing(tuple(places)), draw.randint(2, 3), TWO)
        truth = longest_schedule(asked, 3000) if asked.has_barriers else None
        if truth is not None:
            own = interference.bound(asked) + sum(lapses.additions(asked, Upper.THEOREM_1S))
            assert own >= truth
            found, attained = found + 1, attained + (own == truth)
    assert attained >= 3


# What is read, and what is said


LATE = lapsing_string("CLCL", *[PlaceLapses(2, 0, 1, (CacheLine("a", 3), CacheLine("b", 4)))] * 3)


def told() -> Document:
    return result_bundle(solve(Instance.of(LATE, 2)))


def test_the_verdict_says_both_bounds_and_the_condition() -> None:
    verdict = verify(told())
    assert verdict.outcome is Outcome.ACCEPTED
    assert str(verdict) == (
        "accepted on the SM as it is known, if every instruction takes one cycle: the worst case is at least 5 and at"
        " most 30 cycles, proven by M^L + M^C and what lapses add to it; without lapses the worst case is 5 cycles; the"
        " witness was executed, the upper bound proven by all pairs of places"
    )
    assert (verdict.lower, verdict.upper, verdict.uppers) == (5, 30, ((Upper.LAPSES, 30),))


def test_the_document_of_a_result_has_both_claims() -> None:
    result = solve(Instance.of(LATE, 2, replace(PAPER, units=(*PAPER.units[:1], UnitClass("L", 1, 2)))))
    document = result_document(result)
    published("result-2").validate(document)
    assert document["any_units"] is None  # it knows no lapses
    plain = result_document(solve(result.instance.without_lapses))
    assert plain["any_units"] is not None
    for key in ("status", "lower", "upper", "pessimistic", "best_case", "backend", "evidence"):
        assert document["without_lapses"][key] == plain[key]
    assert not {"lapses", "without_lapses"} & plain.keys()


def test_lapses_are_written_as_runs_and_a_table_of_lines() -> None:
    (group,) = told()["instance"]["groups"]
    rows = [[3, [2, 0, 1, [0, 1]]], [1, [0, 0, 0, []]]]
    assert group == {"warps": 2, "string": "CLCL", "lapses": {"lines": [["a", 3], ["b", 4]], "places": rows}}


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (lambda d: d.update(extra=1), "lapses has the unknown key 'extra'"),
        (lambda d: d.pop("lines"), "lapses lacks 'lines'"),
        (lambda d: d["lines"].reverse(), "lines are not in their order"),
        (lambda d: d["lines"].append(["b", 4]), "lines are not in their order"),
        (lambda d: d["lines"].append(["c", 4]), "a line is needed by none"),
        (lambda d: d["lines"][0].__setitem__(1, -1), "window is not a whole number"),
        (lambda d: d["lines"][0].__setitem__(1, 100_001), "window is not a whole number in 0..100000"),
        (lambda d: d["lines"][0].__setitem__(0, "\n"), "cannot be printed"),
        (lambda d: d["lines"][0].append(1), "line is not a list of 2..2"),
        (lambda d: d["places"].pop(), "not those of all places"),
        (lambda d: d["places"].append([1, [1, 0, 0, []]]), "not a whole number in 1..0"),
        (lambda d: d["places"][0].__setitem__(0, 0), "repeat is not a whole number in 1..4"),
        (lambda d: d["places"][0].__setitem__(0, 10**12), "repeat is not a whole number in 1..4"),
        (lambda d: d["places"][0].pop(), "lapses is not a list of 2..2"),
        (lambda d: d["places"][0].append(1), "lapses is not a list of 2..2"),
        (lambda d: d["places"].__setitem__(0, [2, [0, 0, 0, []]]), "a row follows itself"),
        (lambda d: d["places"][0][1].pop(), "lapses of a place is not a list of 4..4"),
        (lambda d: d["places"][0][1].__setitem__(0, True), "credit is not a whole number"),
        (lambda d: d["places"][0][1].__setitem__(1, 0.0), "fence is not a whole number"),
        (lambda d: d["places"][0][1].__setitem__(2, 100_001), "misses is not a whole number"),
        (lambda d: d["places"][0][1].__setitem__(3, [0, 2]), "line is not a whole number in 0..1"),
        (lambda d: d["places"][0][1].__setitem__(3, [1, 0]), "in the order of their names"),
        (lambda d: d["places"][0][1].__setitem__(3, [0, 0, 1]), "different lines"),
    ],
)
def test_lapses_are_read_strictly(change: Callable[[Document], object], why: str) -> None:
    document = told()
    change(document["instance"]["groups"][0]["lapses"])
    document["sha256"] = digest(document)
    verdict = verify(document)
    assert verdict.outcome is Outcome.REJECTED
    assert why in verdict.reason


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (lambda r: r.pop("lapses"), "result lacks 'lapses'"),
        (lambda r: r.pop("without_lapses"), "result lacks 'without_lapses'"),
        (lambda r: r["lapses"].pop("fence", r["lapses"].pop("misses")), "lapses lacks 'misses'"),
        (lambda r: r["lapses"]["base"].update(weights=[]), "base has the unknown key 'weights'"),
        (lambda r: r["lapses"].update(credits=11), "upper 30 reported by lapses, which add up to 29"),
        (lambda r: r["lapses"].update(credits=-1), "credits is not a whole number"),
        (
            lambda r: r["evidence"].update(upper="pessimistic"),
            "upper is reported by pessimistic, which knows no lapses",
        ),
        (lambda r: r["without_lapses"]["evidence"].update(upper="lapses"), "by lapses, but there are none"),
        (lambda r: r["without_lapses"].update(lower=4, status="bounded"), "lower is 5, but without lapses 4"),
        (lambda r: r["without_lapses"].update(status="bounded"), "status does not follow"),
        (lambda r: r["without_lapses"].update(warps=2), "without_lapses has the unknown key 'warps'"),
        (lambda r: r["without_lapses"].update(seconds=-1), "seconds is not a duration"),
        (lambda r: r["history"][-1].update(upper=26), "history"),
        (lambda r: r["without_lapses"]["history"][-1].update(upper=4), "history"),
        (lambda r: r.update(queues={}), "result has the unknown key 'queues'"),
        (lambda r: r.update(best_case=[4, 5]), ""),
        (lambda r: r.update(best_case=3), "best case 3 is wrong"),
    ],
)
def test_claims_are_read_strictly(change: Callable[[Document], object], why: str) -> None:
    document = told()
    change(document["result"])
    document["sha256"] = digest(document)
    verdict = verify(document)
    assert (verdict.outcome is Outcome.ACCEPTED) == (not why)
    assert why in verdict.reason


def test_the_best_case_with_queues_is_no_shorter_than_the_stalls() -> None:
    """A warp has ended when its second load is in the queue, though without one it would wait for the port."""
    machine = Machine("queued", (UnitClass("L", 1, 3),), 1)
    result = solve(behind(QUEUES, Instance.of(parse_string("L()L()", machine), 1, machine)), best_case=True)
    assert result.without_lapses is not None
    assert result.without_lapses.best_case == Bounds(4, 4)
    assert result.best_case == Bounds(2, 4)
    document = result_bundle(result)
    assert verify(document).outcome is Outcome.ACCEPTED
    document["result"]["best_case"] = [3, 4]
    document["sha256"] = digest(document)
    assert verify(document).reason == "best case 3..4 reported, re-proved only to 2..4"
    blocking = solve(behind(QUEUES, Instance.of("LL", 1, machine)), best_case=True)
    assert blocking.best_case == Bounds(2, 4)
    assert verify(result_bundle(blocking)).outcome is Outcome.ACCEPTED


def test_a_queue_may_have_all_classes() -> None:
    queues_ = (UnitQueue("all", ("L", "C"), 1, blocks=True),)
    asked = behind(queues_, Instance.of("CL", 2))
    assert instances.instance(instance_data(asked)).machine.queues == queues_


def test_a_bundle_cannot_gain_by_queues_that_do_not_count() -> None:
    """The claim without queues is true of the warps without them, and no claim about a machine that has some."""
    why = "the machine has queues, but no program states its lapses"
    of_both = solve(behind(QUEUES, Instance.of("LL", 2)))
    assert of_both.without_lapses is not None
    plain = result_bundle(of_both.without_lapses)
    assert "SM as it is known" not in str(verify(plain))
    forged = result_bundle(of_both)
    lapses_left_out(random.Random(1), forged)
    all_dropped(random.Random(1), forged)
    for document in plain, forged:
        document["instance"]["machine"]["queues"] = instance_data(of_both.instance)["machine"]["queues"]
        document["result"]["queues"] = document["instance"]["machine"]["queues"]
        document["sha256"] = digest(document)
        verdict = verify(document)
        assert verdict.outcome is Outcome.REJECTED
        assert why in verdict.reason
    # without queues it is a bundle of the warps without them, which may not say more
    for part in forged["instance"]["machine"], forged["result"]:
        del part["queues"]
    forged["sha256"] = digest(forged)
    assert "what is said of lapses does not follow from the instance" in verify(forged).reason
    notes = forged["result"]["assumptions"]
    forged["result"]["assumptions"] = [note for note in notes if note["kind"] != "lapses"]
    forged["sha256"] = digest(forged)
    verdict = verify(forged)
    assert verdict.outcome is Outcome.ACCEPTED
    assert "SM as it is known" not in str(verdict)


@pytest.mark.parametrize(
    ("queues", "why"),
    [
        ({}, "queues are not an object of different classes"),
        ({"q": [["L"], 1, False], "r": [["L"], 1, False]}, "queues are not an object of different classes"),
        ({"q": [["L", "L"], 1, False]}, "queues are not an object of different classes"),
        ({"q": [["X"], 1, False]}, "queues are not an object of different classes"),
        ({"q": [[], 1, False]}, "classes of a queue is not a list"),
        ({"q": [["L"], 0, False]}, "places is not a whole number"),
        ({"q": [["L"], 1, 0]}, "does not say whether it blocks"),
        ({"q": [["L"], 1]}, "queue is not a list of 3..3"),
    ],
)
def test_queues_are_read_strictly(queues: Document, why: str) -> None:
    document = result_bundle(solve(Instance.of("C", 2)))
    document["instance"]["machine"]["queues"] = queues
    document["sha256"] = digest(document)
    verdict = verify(document)
    assert verdict.outcome is Outcome.REJECTED
    assert why in verdict.reason
