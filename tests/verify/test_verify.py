"""The independent checker: what it accepts is true, and what was changed it rejects."""

import ast
import copy
import json
import os
import random
import secrets
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from makespan import cli
from makespan.model.certificate import Certificate, PotentialNode
from makespan.model.instance import Instance
from makespan.model.machine import Machine
from makespan.model.result import Bounds, Result, Upper
from makespan.model.schedule import Schedule
from makespan.model.simulate.semantics import WarpIssue, issuing_warps, next_state, start_states
from makespan.proof.bounds import pessimistic, theorem_e
from makespan.proof.engines import solve
from makespan.proof.engines.backends import CPSAT, ILP
from makespan.report.result.bundle import result_bundle, write_bundle
from makespan.verify import (
    Outcome,
    Refused,
    Verdict,
    digest,
    lower_bounds,
    pairs,
    parse,
    potential,
    reading,
    states,
    two_warps,
    verify,
)
from makespan.verify import pessimistic as again
from makespan.verify.reading import MOST_BYTES
from makespan.verify.refusal import ProofSteps, TooMuchWork
from makespan.verify.witness import replay
from tests import forgery
from tests.forgery import Document, bundles, by_potential, by_search, certificate, forged, results, set_bounds
from tests.mutation import copied_along
from tests.oracle import brute_force, obeys
from tests.potentials import Shape, trace
from tests.strategies import instances, paper_instances, runs

FEW, MANY = 100, 1000
SEED = int(os.environ.get("MAKESPAN_SEED", "0")) or secrets.randbits(32)
PACKAGE = Path(reading.__file__).parent


def campaign(count: int) -> Iterator[tuple[random.Random, Document]]:
    """So many draws, each with one of the good bundles; the long campaign draws new ones each time."""
    seed = 1 if count == FEW else SEED
    print(f"MAKESPAN_SEED={seed}")
    draw = random.Random(seed)
    for number in range(count):
        yield draw, bundles()[number % len(bundles())]


counts = pytest.mark.parametrize("count", [FEW, pytest.param(MANY, marks=pytest.mark.soak)])


# Accepted


def test_one_bundle_of_every_kind_of_evidence_is_accepted() -> None:
    for result, document in zip(results(), bundles(), strict=True):
        checked = verify(json.loads(json.dumps(document)))
        assert checked.outcome is Outcome.ACCEPTED, checked
        assert checked.lower == result.bounds.lower
        assert checked.upper is not None
        assert checked.upper <= result.bounds.upper
    assert {result.upper_evidence for result in results()} >= {
        Upper.THEOREM_E, Upper.TWO_WARP_DP, Upper.SEARCH, Upper.POTENTIAL
    }  # fmt: skip


def test_the_verdict_says_what_was_proven_and_how() -> None:
    assert str(verify(result_bundle(solve(Instance.of("CLLCLL", 4))))) == (
        "accepted if every instruction takes one cycle: the worst case is 18 cycles; the witness was executed, the"
        " upper bound proven by theorem E"
    )
    loose = by_potential(Instance.of("CLCCL", 4, Machine.of({"C": 2, "L": 1})))
    assert verify(result_bundle(replace(loose, bounds=Bounds(loose.bounds.lower, loose.bounds.upper + 1)))).reason == (
        f"the worst case is at least {loose.bounds.lower} and at most {loose.bounds.upper + 1} cycles;"
        " the witness was executed, the upper bound proven by its potential"
    )


@pytest.mark.parametrize("string", ["C", "C|L"])
def test_the_smallest_questions_are_accepted(string: str) -> None:
    assert verify(result_bundle(solve(Instance.of(string, 1), best_case=True))).outcome is Outcome.ACCEPTED


@given(instances(), st.booleans())
def test_what_solve_says_is_accepted(instance: Instance, best_case: bool) -> None:
    checked = verify(result_bundle(solve(instance, best_case=best_case)))
    assert checked.outcome is Outcome.ACCEPTED, checked


@given(instances())
@settings(max_examples=50)
def test_a_search_is_proven_again_by_enumeration(instance: Instance) -> None:
    truth = brute_force(instance)
    checked = verify(result_bundle(by_search(instance)))
    assert checked.outcome is Outcome.ACCEPTED, checked
    assert checked.best_case is not None
    assert checked.best_case[0] == truth.lower
    assert checked.upper == truth.upper


@pytest.mark.parametrize("evidence", [Upper.SEARCH, CPSAT.name, ILP.name])
def test_what_cannot_be_proven_again_is_said(evidence: str) -> None:
    result = replace(by_search(Instance.of("CLLCL", 4, Machine.of({"C": 2, "L": 1}))), upper_evidence=evidence)
    bare = replace(result, best_case=None)
    checked = verify(result_bundle(bare), most_states=10)
    assert checked.outcome is Outcome.UNPROVEN
    assert checked.reason == f"upper 14 reported by {evidence}, re-proved only to 17"
    assert verify(result_bundle(bare)).outcome is Outcome.ACCEPTED


def test_a_best_case_that_cannot_be_proven_again_is_said() -> None:
    result = replace(solve(Instance.of("CLLCLCLC", 5)), best_case=Bounds(21, 21))
    checked = verify(result_bundle(result), most_states=10)
    assert checked.outcome is Outcome.UNPROVEN
    assert checked.reason == "best case 21 reported, re-proved only to 20..24"


@pytest.mark.parametrize("best_case", [Bounds(5, 5), Bounds(1, 5), Bounds(3, 20), Bounds(7, 9)])
def test_a_wrong_best_case_is_rejected(best_case: Bounds) -> None:
    truth = brute_force(Instance.of("CLC", 3))
    assert truth == Bounds(6, 7)
    result = replace(solve(Instance.of("CLC", 3)), best_case=best_case)
    expected = Outcome.ACCEPTED if best_case.lower <= 6 <= best_case.upper else Outcome.REJECTED
    assert verify(result_bundle(result)).outcome is expected


# The bounds that it computes


@given(instances())
def test_its_bounds_are_those_of_the_engines_and_never_below_the_truth(instance: Instance) -> None:
    truth = brute_force(instance)
    assert again.pessimistic(instance) == pessimistic(instance) >= truth.upper
    assert (pairs.theorem_a(instance) or truth.upper) >= truth.upper
    closed_form = theorem_e(instance)
    assert closed_form is not None
    assert pairs.bound(instance, closed_form.weights) == closed_form.upper >= truth.upper
    assert lower_bounds.least_makespan(instance) <= truth.lower
    assert states.shortest_and_longest(instance, 10**6) == (truth.lower, truth.upper)
    assert states.shortest_and_longest(instance, 1) is None or truth.upper == 1
    if instance.warps == 2:
        assert two_warps.two_warps(instance) == truth.upper
        assert two_warps.two_warps(instance, min) == truth.lower


@given(paper_instances())
def test_theorem_a_is_never_below_the_truth(instance: Instance) -> None:
    bound, new = pairs.theorem_a(instance), theorem_e(instance)
    assert bound is not None
    assert new is not None
    assert brute_force(instance).upper <= new.upper <= bound


def test_theorem_a_is_not_for_three_classes_or_more_units() -> None:
    assert pairs.theorem_a(Instance.of("CLS", 2, Machine.of({"C": 1, "L": 1, "S": 1}))) is None
    assert pairs.theorem_a(Instance.of("CL", 2, Machine.of({"C": 2, "L": 1}))) is None
    assert pairs.theorem_a(Instance.of("CL", 3, Machine.of({"C": 1, "L": 1, "S": 9}))) == 4


@given(st.data())
def test_the_witness_is_judged_as_by_the_definition(data: st.DataObject) -> None:
    instance = data.draw(instances())
    schedule = data.draw(runs(instance))
    assert replay(instance, schedule) == schedule.makespan
    cycles = [list(warps) for warps in schedule.cycles]
    for _ in range(data.draw(st.integers(1, 2))):
        a, b = (data.draw(st.integers(0, len(cycles) - 1)) for _ in range(2))
        if data.draw(st.booleans()) and cycles[a]:
            cycles[b].append(cycles[a].pop(data.draw(st.integers(0, len(cycles[a]) - 1))))
        else:
            cycles[a], cycles[b] = cycles[b], cycles[a]
    paths = list(schedule.paths)
    if data.draw(st.booleans()):
        longer = data.draw(st.booleans())
        paths[0] = (*paths[0], paths[0][-1]) if longer else tuple(data.draw(st.permutations(paths[0])))
    changed = Schedule(tuple(tuple(sorted(warps)) for warps in cycles), tuple(paths))
    if obeys(instance, changed):
        assert replay(instance, changed) == changed.makespan
    else:
        with pytest.raises(Refused, match="witness"):
            replay(instance, changed)


@pytest.mark.parametrize(
    ("cycles", "why"),
    [
        (
            [(0,), (0,), (1,), (1,)],
            "cycle 1: an instruction of class C is left out although all that it needs is free",
        ),
        ([(0, 1), (0, 1)], "cycle 0: warp 1 finds no free port of C"),
        ([(0,), (1, 0), (1,)], "cycle 1: the executing warps are not in increasing order"),
        ([(0, 0), (1,), (1,)], "cycle 0: the executing warps are not in increasing order"),
        ([(0,), (0, 1)], "1 warps have not finished after 2 cycles"),
        ([(0,), (0, 1), (1,), (1,)], "cycle 3: warp 1 has finished already"),
        ([(0,), (1,), (0,), (1,)], "cycle 1: an instruction of class L is left out although"),
    ],
)
def test_every_rule_of_the_machine_is_checked(cycles: list[tuple[int, ...]], why: str) -> None:
    instance = Instance.of("CL", 2)
    assert replay(instance, Schedule.of_chains(instance, [(0,), (0, 1), (1,)])) == 3
    with pytest.raises(Refused, match=why):
        replay(instance, Schedule(tuple(cycles), ((0, 1), (0, 1))))


@pytest.mark.parametrize(
    ("path", "why"),
    [
        ((0,), "place 4 does not follow place 0"),
        ((0, 1), "place 4 does not follow place 1"),
        ((0, 2), "place 2 does not follow place 0"),
        ((1, 2, 3), "no warp of its program begins at place 1"),
        ((0, 3), "place 3 does not follow place 0"),
        ((0, 1, 2, 3, 4), "place 4 does not follow place 4"),
    ],
)
def test_a_path_that_the_program_lacks_is_rejected(path: tuple[int, ...], why: str) -> None:
    with pytest.raises(Refused, match=why):
        replay(Instance.of("CLLC", 1), Schedule(tuple((0,) for _ in path), (path,)))


# Damaged


@counts
def test_a_changed_digit_is_rejected(count: int) -> None:
    for draw, document in campaign(count):
        text = json.dumps(document)
        place = draw.choice([place for place, letter in enumerate(text) if letter.isdigit()])
        other = draw.choice([digit for digit in "0123456789" if digit != text[place]])
        assert outcome(f"{text[:place]}{other}{text[place + 1 :]}") is Outcome.REJECTED, text[place - 40 : place + 9]


@counts
def test_a_truncated_bundle_is_rejected(count: int) -> None:
    for draw, document in campaign(count):
        text = json.dumps(document)
        with pytest.raises(Refused, match=r"^not a bundle: "):
            parse(text[: draw.randrange(len(text))].encode())


@counts
def test_any_changed_byte_is_rejected(count: int) -> None:
    for draw, document in campaign(count):
        content = bytearray(json.dumps(document).encode())
        place = draw.randrange(len(content))
        content[place] = draw.choice([byte for byte in range(256) if byte != content[place]])
        try:
            same = json.loads(content) == document  # a space for another
        except (ValueError, RecursionError):
            same = False
        assert same or outcome(content.decode("latin-1")) is Outcome.REJECTED


def outcome(text: str) -> Outcome:
    try:
        return verify(parse(text.encode("latin-1"))).outcome
    except Refused:
        return Outcome.REJECTED


# Forged: the digest fits


@counts
@pytest.mark.parametrize("change", [forgery.upper_lowered, forgery.lower_raised])
def test_a_bound_that_does_not_follow_is_rejected(
    change: Callable[[random.Random, Document], None], count: int
) -> None:
    for draw, document in campaign(count):
        checked = verify(forged(document, lambda copied, draw=draw: change(draw, copied)))  # type: ignore[misc]
        assert checked.outcome is Outcome.REJECTED, (document["result"], checked)


@counts
def test_an_illegal_change_of_the_witness_is_rejected(count: int) -> None:
    rejected = 0
    for draw, document in campaign(30 * count):
        changed = forged(document, lambda copied, draw=draw: forgery.witness_swapped(draw, copied))  # type: ignore[misc]
        index = next(number for number, good in enumerate(bundles()) if good is document)
        cycles = tuple(tuple(warps) for _, warps in changed["witness"]["cycles"])
        legal = obeys(results()[index].instance, Schedule(cycles, results()[index].witness.paths))
        assert verify(changed).outcome is (Outcome.ACCEPTED if legal else Outcome.REJECTED)
        rejected += not legal
        if rejected == count:
            return
    pytest.fail(f"only {rejected} illegal changes")


@counts
def test_a_coefficient_that_breaks_an_inequality_is_rejected(count: int) -> None:
    """Far too small at a place where a warp really stands: the potential then rises in the cycle that follows."""
    good = [number for number, document in enumerate(bundles()) if document["certificate"] is not None]
    for number, (draw, _) in enumerate(campaign(count)):
        chosen = good[number % len(good)]
        instance = results()[chosen].instance
        where = _somewhere(draw, instance)
        checked = verify(forged(bundles()[chosen], lambda copied, i=instance, w=where: _lower(copied, i, *w)))  # type: ignore[misc]
        assert checked.outcome is Outcome.REJECTED, checked
        assert checked.reason.startswith("potential: "), checked


def _somewhere(draw: random.Random, instance: Instance) -> tuple[int, Schedule, int, int | None]:
    """A last finisher, its schedule, a cycle, and a warp that has not finished then (or None: the constant)."""
    schedule = _random_run(draw, instance)
    states_ = [on for _, on in trace(instance, schedule)]
    t = draw.randrange(schedule.makespan)
    left = [w for w, (p, at) in enumerate(zip(instance.programs(), states_[t], strict=True)) if at < p.end]
    return draw.choice(schedule.cycles[-1]), schedule, t, draw.choice([None, *left])


def _random_run(draw: random.Random, instance: Instance) -> Schedule:
    programs = tuple(instance.programs())
    state = draw.choice(list(start_states(instance)))
    paths: list[list[int]] = [[] for _ in programs]
    cycles = []
    while executing := draw.choice(list(issuing_warps(instance, state))):
        moves = []
        for warp in executing:
            at = state.places[warp]
            paths[warp].append(at)
            moves.append(WarpIssue(warp, draw.choice(programs[warp].places[at].successors), 1))
        state = next_state(instance, state, moves)
        cycles.append(executing)
    return Schedule(tuple(cycles), tuple(map(tuple, paths)))


def _lower(
    document: Document, instance: Instance, last_warp: int, schedule: Schedule, t: int, warp: int | None
) -> None:
    last_group = instance.group_of_warp()[last_warp]
    chosen = next(item for item in document["certificate"]["potentials"] if item["last_group"] == last_group)
    capacities = (instance.machine.capacities[name] for name in chosen["classes"])
    shape = Shape(instance, tuple(map(int.__sub__, chosen["thresholds"], capacities)))
    assert list(shape.classes) == chosen["classes"]
    passed = list(trace(instance, schedule))
    labelled = {PotentialNode(last, tuple(kind)) for last, kind, label, _ in chosen["nodes"] if label is not None}
    now = shape.passed(passed, last_warp, labelled.__contains__)[t]
    number = next(table for *node, table in chosen["nodes"] if node == [now.last, list(now.kind), now.label])
    table, on = chosen["tables"][number], passed[t][1]
    if warp is None:
        table["constant"] -= 10**15
    elif warp == last_warp:
        table["last"] = _lowered(table["last"], on[warp])
    else:
        group = instance.group_of_warp()[warp]
        table["others"][group] = _lowered(table["others"][group], on[warp])


def _lowered(row: list[Any], place: int) -> list[int]:
    """A row without progressions, with a much smaller number at this place."""
    numbers = [number for item in row for number in ([item] if isinstance(item, int) else unfolded(*item))]
    numbers[place] -= 10**15
    return numbers


def unfolded(first: int, step: int, count: int) -> list[int]:
    return [first + step * n for n in range(count)]


@counts
@pytest.mark.parametrize("change", [forgery.letter_changed, forgery.capacity_changed])
def test_another_instance_is_rejected_unless_all_claims_hold_for_it(
    change: Callable[[random.Random, Document], None], count: int
) -> None:
    rejected = 0
    for draw, document in campaign(20 * count):
        only = copy.deepcopy(document)
        change(draw, only)
        everywhere = {**only, "sha256": digest(only)}
        accepted = verify(everywhere).outcome is Outcome.ACCEPTED
        if accepted:
            truth = brute_force(instance_of(everywhere))
            claim = everywhere["result"]
            assert claim["lower"] <= truth.upper <= claim["upper"]
        rejected += not accepted
        halved = {**only, "result": document["result"]}
        if halved["instance"] != document["instance"] and change is forgery.capacity_changed:
            assert verify({**halved, "sha256": digest(halved)}).outcome is Outcome.REJECTED
        if rejected == count:
            return
    pytest.fail(f"only {rejected} of {20 * count} rejected")


def instance_of(document: Document) -> Instance:
    return reading.bundle(document).instance


@pytest.mark.parametrize("number", range(10))
def test_a_bundle_with_an_instance_and_a_result_that_differ_is_rejected(number: int) -> None:
    others = [other for other in range(10) if bundles()[other]["instance"] != bundles()[number]["instance"]]
    for part, other in product(("instance", "result", "witness"), others):
        document = {**bundles()[number], part: bundles()[other][part]}
        assert verify({**document, "sha256": digest(document)}).outcome is Outcome.REJECTED


EVIDENCE = {
    "pessimistic": "upper 18 reported by pessimistic, which proves only 24",
    "issue-slots": "theorem O1 or O2 does not apply to this instance",
    "potential": "upper is reported by potential, but there is no certificate",
    "two-warp-dp": "two-warp-dp does not apply to 4 warps",
    "An oracle!": "unknown evidence: 'An oracle!'",
    "theorem-z": "unknown evidence: 'theorem-z'",
}


@pytest.mark.parametrize(("name", "why"), EVIDENCE.items())
def test_evidence_that_does_not_prove_the_claim_is_rejected(name: str, why: str) -> None:
    checked = verify(forged(bundles()[0], lambda copied: copied["result"]["evidence"].update(upper=name)))
    assert checked == Verdict(Outcome.REJECTED, why, checked.claim)


def test_a_node_or_a_start_given_twice_is_rejected() -> None:
    def twice(document: Document) -> None:
        chosen = document["certificate"]["potentials"][0]
        chosen["tables"].append({**chosen["tables"][0], "constant": 10**15})
        chosen["nodes"].append([*chosen["nodes"][0][:3], len(chosen["tables"]) - 1])

    assert verify(forged(bundles()[7], twice)).reason == "not a bundle: a node of the potential is given twice"
    checked = verify(forged(bundles()[6], lambda copied: copied["instance"]["groups"][0].update(starts=[0, 0])))
    assert checked.reason == "not a bundle: starts (0, 0) name a place twice"


def test_a_potential_for_another_group_is_rejected() -> None:
    def exchanged(document: Document) -> None:
        a, b = document["certificate"]["potentials"]
        a["last_group"], b["last_group"] = b["last_group"], a["last_group"]

    assert verify(forged(bundles()[9], exchanged)).reason.startswith("not a bundle: last ")


def test_a_potential_of_a_class_that_the_machine_lacks_is_rejected() -> None:
    other = forged(bundles()[7], lambda copied: copied["certificate"]["potentials"][0]["classes"].__setitem__(0, "X"))
    assert verify(other).reason == "potential: the classes are not C, L, each once"


def test_a_path_for_every_warp_is_needed() -> None:
    nobody = verify(forged(bundles()[6], lambda copied: copied["witness"]["paths"].append([0, [0]])))
    assert nobody.reason.startswith("not a bundle: count is not a whole number in 1..")
    checked = verify(forged(bundles()[6], lambda copied: copied["witness"]["paths"].pop()))
    assert checked.reason == "not a bundle: 2 paths for 3 warps"


def test_theorem_a_where_it_does_not_hold_is_rejected() -> None:
    instance = Instance.of("CLLCL", 4, Machine.of({"C": 2, "L": 1}))
    checked = verify(result_bundle(replace(by_search(instance), upper_evidence=Upper.THEOREM_A)))
    assert checked.reason == "theorem A does not apply to this instance"


def test_an_upper_bound_that_a_schedule_exceeds_is_rejected_whoever_reports_it() -> None:
    document = forged(bundles()[5], lambda copied: set_bounds(copied, 13, 13))
    assert "the witness takes 14 cycles" in verify(document).reason
    instance = Instance.of("CLC", 3)
    witness = Schedule.of_chains(instance, [(0,), (0, 1), (1, 2), (0, 2), (1,), (2,)])
    low = replace(solve(instance), bounds=Bounds(6, 6), witness=witness, upper_evidence=CPSAT.name)
    assert verify(result_bundle(low)).reason == "upper 6 is wrong: a schedule takes 7 cycles"


def test_a_certificate_that_promises_too_much_is_rejected_even_if_nothing_rests_on_it() -> None:
    result = by_potential(Instance.of("CLCCL", 4, Machine.of({"C": 2, "L": 1})))
    assert result.certificate is not None
    upper = result.certificate.upper
    result = replace(result, certificate=replace(result.certificate, upper=upper - 1), upper_evidence=CPSAT.name)
    assert verify(result_bundle(result)).reason == f"the certificate says {upper - 1} cycles and proves {upper}"


STEPS = [("certificate", 17, 20, "pessimistic"), ("beam", 18, 20, "pessimistic"), ("certificate", 18, 18, "theorem-e")]


@pytest.mark.parametrize(
    ("number", "change", "why"),
    [
        (0, {}, None),
        (0, {"lower": 19}, "history: 18..20 of step 2 is not within the step before"),
        (0, {"upper": 19}, "history: 18..20 of step 2 is not within the step before"),
        (1, {"lower": 21}, "history: 21..20 of step 2 is not within the step before"),
        (2, {"lower": 17}, "history: 17..18 of step 3 is not within the step before"),
        (2, {"upper": 19}, "history: it ends with 18..19 by theorem-e, not with the result"),
        (2, {"evidence": "search"}, "history: it ends with 18..18 by search, not with the result"),
        (2, {"evidence": "Theorem B"}, "unknown evidence: 'Theorem B'"),
        (1, {"engine": 1}, "not a bundle: engine is not a text of at most 1000000 letters"),
        (1, {"upper": 0}, "not a bundle: upper is not a whole number in 1..1000000000000"),
        (1, {"seconds": -1}, "not a bundle: seconds is not a duration"),
    ],
)
def test_a_history_narrows_the_bounds_down_to_those_of_the_result(
    number: int, change: dict[str, Any], why: str | None
) -> None:
    keys = ("engine", "lower", "upper", "evidence")
    steps: list[dict[str, Any]] = [{"seconds": 0.5, **dict(zip(keys, step, strict=True))} for step in STEPS]
    steps[number].update(change)
    checked = verify(forged(bundles()[0], lambda copied: copied["result"].update(history=steps)))
    assert checked.outcome is (Outcome.ACCEPTED if why is None else Outcome.REJECTED)
    if why is not None:
        assert checked.reason == why


def test_a_history_that_ends_below_the_truth_is_rejected() -> None:
    god = {"seconds": 0.0, "engine": "god", "lower": 3, "upper": 3, "evidence": "theorem-e"}
    assert brute_force(results()[0].instance).upper == 18
    checked = verify(forged(bundles()[0], lambda copied: copied["result"].update(history=[god])))
    assert checked.reason == "history: it ends with 3..3 by theorem-e, not with the result"


# Potentials


def proven(instance: Instance, given_certificate: Certificate) -> int | None:
    try:
        return potential.bound(instance, given_certificate)
    except Refused:
        return None


@given(instances(), st.sampled_from([0, 1]), st.sampled_from([1, 5, 30, 300]))
@settings(max_examples=150)
def test_a_synthesised_certificate_proves_what_it_says(instance: Instance, extra: int, front_states: int) -> None:
    try:
        made = certificate(instance, extra=extra, states=front_states)
    except AssertionError:
        assume(False)  # the linear programme found nothing
    assert potential.bound(instance, made) == made.upper >= brute_force(instance).upper


# Strict reading


def test_work_is_limited() -> None:
    work = ProofSteps(2)
    work.spend(2)
    with pytest.raises(TooMuchWork):
        work.spend()


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "it is not JSON; the file is empty"),
        ("{", "it is not JSON; see line 1, column 2"),
        ('{"a": 1, "a": 1}', "an object has a key twice"),
        ('{"a": NaN}', "NaN is not a number"),
        ('{"a": -Infinity}', "-Infinity is not a number"),
        ('{"a": 1e999}', "a number out of range"),
        ('{"a": ' + "1" * 5000 + "}", "a number of over 100 digits"),
        ("[" * 200_000, "nested too deeply"),
        ("\xff", "not UTF-8 text"),
        ('{"a": 1} x', "it is not JSON; see line 1, column 10"),
    ],
)
def test_what_is_not_strict_json_is_one_line(text: str, why: str) -> None:
    with pytest.raises(Refused, match=f"^not a bundle: .*{why}"):
        parse(text.encode("latin-1"))


def test_a_huge_file_is_not_parsed() -> None:
    with pytest.raises(Refused, match="larger than 128 MiB"):
        parse(b" " * (MOST_BYTES + 1))


@pytest.mark.parametrize("document", [None, 1, [], "x", {}, {"schema": "makespan.result/2"}, {1: 2}])
def test_what_is_not_a_bundle_is_rejected(document: object) -> None:
    assert str(verify(document)) == "rejected: not a bundle: schema is not 'makespan.bundle/3'"


def test_a_bundle_of_another_version_is_named_with_its_remedy() -> None:
    later = {**bundles()[0], "schema": "makespan.bundle/4"}
    why = "'makespan.bundle/4' is of another makespan; verify it with that one, or solve anew"
    assert verify(later).reason == f"not a bundle: schema is not 'makespan.bundle/3': {why}"


OLD = "potentials of makespan.bundle/1 rest on an older theorem: solve the question again"


def of_words(document: Document, version: int = 1) -> None:
    """Write it as an older version does."""
    document["schema"], document["result"]["schema"] = f"makespan.bundle/{version}", "makespan.result/1"
    document["result"]["assumptions"] = [note["text"] for note in document["result"]["assumptions"]]


def test_version_2_is_read_and_its_conditions_are_not_known() -> None:
    for document in bundles():
        older = verify(forged(document, lambda copied: of_words(copied, 2)))
        assert (older.outcome, older.said) == (verify(document).outcome, None)


def test_version_1_is_read_where_nothing_rests_on_its_potentials() -> None:
    for document in bundles():
        older = verify(forged(document, of_words))
        if document["certificate"] is None:
            assert older.outcome is Outcome.ACCEPTED
        else:
            assert (older.outcome, older.reason) == (Outcome.REJECTED, OLD)


def test_nor_do_phases_rest_on_older_potentials() -> None:
    document = forged(result_bundle(solve(Instance.of("CLL|LC", 3))), of_words)
    assert verify(document).outcome is Outcome.ACCEPTED
    assert verify(forged(document, lambda copied: copied["phases"][1].update(certificate={}))).reason == OLD


def paths_into(document: object, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Every value in the document, by the keys that lead there."""
    if path:
        yield path
    if isinstance(document, dict):
        for key, item in document.items():
            yield from paths_into(item, (*path, key))
    if isinstance(document, list):
        for number, item in enumerate(document):
            yield from paths_into(item, (*path, number))


WRONG: list[Any] = [None, True, False, -1, 0, 10**30, 1.0, "", "x", [], [[]], {}, {"a": 1}, [True], [[1, [True]]]]
REMARKS = ("seconds", "interrupted", "history", "backend", "assumptions", "versions")


@pytest.mark.parametrize("number", [1, 6, 9])
def test_a_value_of_another_type_is_rejected_anywhere(number: int) -> None:
    draw, document = random.Random(number), bundles()[number]
    for path in paths_into(document):
        for wrong in draw.sample(WRONG, draw.randrange(2) if len(path) > 4 else len(WRONG)):
            changed = changed_at(document, path, wrong)
            if changed is None or path == ("certificate",) or path[0] == "sha256" or path[1:2] == ("best_case",):
                continue
            if (path[0], *path[1:2]) in {("result", name) for name in REMARKS}:
                continue
            checked = verify(changed)
            bigger = path[-1] == "upper" and wrong == 10**30
            assert checked.outcome is Outcome.REJECTED or bigger or harmless(document, changed), (path, wrong, checked)


def harmless(document: Document, changed: Document) -> bool:
    """Only coefficients may differ, and then the claim still follows, or who is said to vouch for the upper bound."""
    evidence = changed["result"]["evidence"]
    if evidence["upper"] not in list(Upper):
        restored = copy.deepcopy(changed)
        restored["result"]["evidence"]["upper"] = document["result"]["evidence"]["upper"]
        return {**restored, "sha256": 0} == {**document, "sha256": 0}
    claim = {key: item for key, item in changed.items() if key not in ("certificate", "sha256")}
    if any(document[key] != item for key, item in claim.items()):
        return False
    return proven(instance_of(changed), certificate_of(changed)) is not None


def certificate_of(document: Document) -> Certificate:
    found = reading.bundle(document).bound.certificate
    assert found is not None
    return found


def changed_at(document: Document, path: tuple[Any, ...], wrong: object) -> Document | None:
    copied, inside = copied_along(document, path[:-1])
    if type(inside[path[-1]]) is type(wrong) and inside[path[-1]] == wrong:
        return None
    inside[path[-1]] = wrong
    try:
        return {**copied, "sha256": digest(copied)}
    except ValueError:
        return None


@pytest.mark.parametrize("number", [1, 6, 9])
def test_unknown_and_missing_keys_are_rejected_anywhere(number: int) -> None:
    document = bundles()[number]
    for path in [(), *paths_into(document)]:
        for change in ("more", *objects_keys(document, path)):
            copied, inside = copied_along(document, path)
            if not isinstance(inside, dict) or (path, change, document["weights"]) == ((), "weights", []):
                continue  # bundles from before theorem E have no weights
            if change == "more":
                inside["unknown"] = 1
            else:
                del inside[change]
            checked = verify({**copied, "sha256": digest(copied)} if change != "sha256" else copied)
            assert checked.outcome is Outcome.REJECTED, (path, change)


def objects_keys(document: Any, path: tuple[Any, ...]) -> list[str]:
    for key in path:
        document = document[key]
    return list(document) if isinstance(document, dict) else []


@pytest.mark.parametrize(
    ("path", "wrong", "why"),
    [
        (("result", "status"), "bounded", "result: status does not follow from the instance and the bounds"),
        (("result", "warps"), 5, "result: warps does not follow"),
        (("result", "warps"), True, "result: warps does not follow"),
        (("result", "machine"), "mine", "result: machine does not follow"),
        (("result", "pessimistic"), 25, "pessimistic is 24, not 25"),
        (("result", "seconds"), -1.0, "seconds is not a duration"),
        (("result", "seconds"), True, "seconds is not a duration"),
        (("result", "interrupted"), 0, "interrupted is neither true nor false"),
        (("result", "assumptions"), [1], "an object was expected"),
        (("result", "backend"), None, "backend is not a text"),
        (("result", "lower"), 19, "lower 19 exceeds upper 18"),
        (("result", "best_case"), [5, 5], "best_case is not an interval: 5..5"),
        (("result", "best_case"), [5], "best_case is not a list of 2..2 items"),
        (("result", "versions"), {"makespan": "1"}, "versions lacks 'python'"),
        (("result", "evidence", "lower"), "search", "unknown evidence: 'search'"),
        (("instance", "groups"), [], "groups is not a list of 1"),
        (("instance", "groups", 0, "warps"), 10**9, "warps is not a whole number in 1..65536"),
        (("instance", "groups", 0, "string"), "CXC", "has no units of class X"),
        (("instance", "groups", 0, "string"), "", "needs at least one instruction"),
        (("instance", "machine", "capacity", "C"), 0, "capacity of C must be 1..1024, not 0"),
        (("instance", "machine", "capacity"), {}, "interval has the unknown key 'C'"),
        (("witness", "paths"), [[4, [0, 1, 2, 3, 4, 5]]], "a string has one path: paths must be null"),
        (("witness", "cycles", 0, 0), 10**12, "the witness is too large for this checker"),
        (("witness", "cycles", 0, 0), 0, "repeat is not a whole number in 1"),
        (("witness", "cycles", 0, 1), [], "cycle 0: an instruction of class C is left out although"),
        (("witness", "cycles", 0, 1), [4], "warps holds something that is not a whole number in 0..3"),
        (("sha256",), "0" * 64, "the digest does not match the content"),
        (("sha256",), None, "sha256 is not a text"),
    ],
)
def test_the_reason_is_one_line_that_names_the_fault(path: tuple[Any, ...], wrong: object, why: str) -> None:
    document = copy.deepcopy(bundles()[0])
    inside: Any = document
    for key in path[:-1]:
        inside = inside[key]
    inside[path[-1]] = wrong
    if path[0] != "sha256":
        document["sha256"] = digest(document)
    checked = verify(document)
    assert checked.outcome is Outcome.REJECTED
    assert why in checked.reason
    assert "\n" not in checked.reason


# Independence and command line


def test_the_checker_imports_only_the_values_and_the_standard_library() -> None:
    values = {
        "assumptions",
        "certificate",
        "conditions",
        "feature",
        "gpu",
        "instance",
        "lapses",
        "machine",
        "program",
        "result",
        "schedule",
    }
    allowed = {*(f"model.{name}" for name in values), "host.errors", "verify"}
    for file in PACKAGE.glob("*.py"):
        for node in ast.walk(ast.parse(file.read_text())):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            for name in names:
                top, *rest = name.split(".")
                inside = {".".join(rest[:1]), ".".join(rest[:2])}
                assert top in sys.stdlib_module_names or (top == "makespan" and inside & allowed), name


def run(*arguments: str) -> int:
    return cli.run(["verify", *arguments])


def written(tmp_path: Path, result: Result) -> str:
    path = tmp_path / "bundle.json"
    write_bundle(result, path)
    return str(path)


def test_an_accepted_bundle_is_exit_0(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(written(tmp_path, results()[0])) == 0
    assert capsys.readouterr().out.startswith(
        "accepted if every instruction takes one cycle: the worst case is 18 cycles"
    )


def test_a_rejected_bundle_is_exit_1(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = Path(written(tmp_path, results()[0]))
    path.write_text(path.read_text().replace('"upper":18', '"upper":19'))
    assert run(str(path)) == 1
    assert capsys.readouterr().out.count("\n") == 1
    path.write_text(path.read_text()[:100])
    assert run(str(path)) == 1
    assert capsys.readouterr().out.startswith("rejected: not a bundle: ")


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "it is not JSON; the file is empty"),
        ("\n", "it is not JSON; the file is empty"),
        ("{\n  upper", "it is not JSON; see line 2, column 3"),
        ('{"a": NaN}', "NaN is not a number"),
    ],
)
def test_what_is_not_json_is_told_in_plain_words(
    text: str, reason: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "b.json"
    path.write_text(text)
    assert run(str(path)) == 1
    assert capsys.readouterr().out == f"rejected: not a bundle: {reason}\n"


def test_an_unproven_bundle_is_exit_3(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("makespan.verify.states.shortest_and_longest", lambda instance, most: None)
    assert run(written(tmp_path, replace(results()[5], best_case=None))) == 3
    first, second, third = capsys.readouterr().out.splitlines()
    assert first == "unproven if every instruction takes one cycle: upper 14 reported by search, re-proved only to 17"
    assert second == f"of: {results()[5].instance}"
    assert third.startswith("not checked: other assumptions, interrupted, ")


def test_a_file_that_is_not_there_is_exit_2(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(str(tmp_path / "none.json")) == 2
    assert run(str(tmp_path)) == 2
    assert "cannot read the bundle: No such file or directory" in capsys.readouterr().err


def test_the_verdict_as_json(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(written(tmp_path, results()[1]), "--format", "json") == 0
    document = json.loads(capsys.readouterr().out)
    assert document["schema"] == "makespan.verdict/1"
    assert document["outcome"] == "accepted"
    assert {"other assumptions", "interrupted"} < set(document["unchecked"])
    assert document["claim"]["evidence"] == "theorem-e"
    assert document["proven"]["lower"] == document["proven"]["upper"] == document["claim"]["upper"]
