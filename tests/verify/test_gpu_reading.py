"""Bundles of whole GPUs, read: what is one off a limit, missing or of another kind is refused, with its reason."""

import copy
import json
from collections.abc import Callable
from functools import cache
from typing import Any

import pytest

from makespan.model.gpu import GpuInstance, Grid
from makespan.model.gpu.instance import MAX_BLOCKS
from makespan.model.instance import MAX_CYCLES, MAX_WARPS
from makespan.model.machine import Latency, Machine, PortResource, UnitClass, Use
from makespan.model.program import Program, ProgramPlace
from makespan.model.simulate.choices import Choices
from makespan.model.simulate.gpu_run import run_gpu
from makespan.report.gpu.bundle import _schedule_data as written
from makespan.report.gpu.bundle import gpu_bundle, gpu_question_data
from makespan.verify import Outcome, Refused, digest, fields, gpu_reading, instances, reading, verify
from tests.verify.test_gpu import of, of_one_wave, of_theorem_g

PARTS = Machine(
    "parts",
    (
        UnitClass("C", 1, 1, Latency(1, 2), uses=(Use(("a", "b"), 1, 2),)),
        UnitClass("L", 1, shared=True),
    ),
    1,
    partitions=2,
    resources=(PortResource("a", 1), PortResource("b", 1)),
)
FORK = Program((ProgramPlace("C", (1, 2)), ProgramPlace("L", (3,)), ProgramPlace("C", (3,))), (0,))


def changed(document: Any, path: tuple[Any, ...], value: Any) -> Any:
    """A copy with another value there, or what a function makes of the one that is there."""
    copied = copy.deepcopy(document)
    inside = copied
    for key in path[:-1]:
        inside = inside[key]
    inside[path[-1]] = value(inside[path[-1]]) if isinstance(value, Callable) else value  # type: ignore[arg-type]
    return copied


# Questions


def two_grids() -> GpuInstance:
    """Of which two blocks of each fit on an SM together."""
    grids = Grid(((FORK, 1), (Program.chain("C"), 2)), 3, (1, 0)), Grid(((Program.chain("CL"), 1),), 5, (1, 2))
    return GpuInstance(grids, PARTS, 2, (4, 4), 3)


@pytest.mark.parametrize(
    ("path", "value", "why"),
    [
        (("sms",), 0, r"sms is not a whole number in 1\.\."),
        (("sms",), 10**9, r"sms is not a whole number in 1\.\."),
        (("dispatch",), -1, r"dispatch is not a whole number in 0\.\."),
        (("room",), [], r"room is not a list of 1\.\.16 items"),
        (("room",), [9] * 17, r"room is not a list of 1\.\.16 items"),
        (("room",), [9] * 16, "says of each resource how much"),
        (("room", 0), 2**40 + 1, "room holds something that is not a whole number"),
        (("room", 0), 0, "fits on no SM|what an SM has of a resource"),
        (("grids",), [], r"grids is not a list of 1\.\.16 items"),
        (("grids", 0, "takes"), [], r"takes is not a list of 1\.\.16 items"),
        (("grids", 0, "takes", 0), -1, "takes holds something that is not a whole number"),
        (("grids", 0, "takes", 0), 0, "a block takes something of an SM"),
        (("grids", 0, "takes", 0), 5, "fits on no SM"),
        (("grids", 0, "blocks"), 0, r"blocks is not a whole number in 1\.\."),
        (("grids", 0, "blocks"), MAX_BLOCKS + 1, r"blocks is not a whole number in 1\.\."),
        (("grids", 0, "block"), [], r"block is not a list of 1\.\."),
        (("grids", 0, "block", 0, "warps"), 0, r"warps is not a whole number in 1\.\."),
        (("grids", 0, "block", 1, "string"), "CX", "the machine has no units of class X"),
        (("grids", 0, "block", 1, "string"), "", "at least one instruction"),
        (("grids", 0), {}, "grid lacks 'block'"),
        (("machine",), {}, "machine lacks 'name'"),
    ],
)
def test_a_question_is_refused(path: tuple[Any, ...], value: Any, why: str) -> None:
    asked = json.loads(json.dumps(gpu_question_data(two_grids())))
    assert gpu_question_data(gpu_reading.instance(asked)) == asked
    with pytest.raises(Refused, match=rf"^not a bundle: .*({why})"):
        gpu_reading.instance(changed(asked, path, value))


def test_places_of_all_grids_are_counted_together(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = gpu_question_data(two_grids())
    monkeypatch.setattr(instances, "MOST_PLACES", 3 + 1 + 2)
    gpu_reading.instance(asked)
    monkeypatch.setattr(instances, "MOST_PLACES", 3 + 1 + 2 - 1)
    with pytest.raises(Refused, match=r"^the instance is too large for this checker: over 5 places$"):
        gpu_reading.instance(asked)


# Schedules


@cache
def free() -> GpuInstance:
    """With every choice that there is: paths, latencies, uses, partitions, and when a block begins."""
    return GpuInstance.of([(FORK, 2), (Program.chain("C"), 1)], 3, PARTS, sms=1, resident=2, dispatch=2)


@cache
def given() -> Any:
    choices = Choices(path="random", latency="random", interval="random", seed=3)
    return json.loads(json.dumps(written(free(), run_gpu(free(), "lrr", choices=choices))))


COURSE, HISTORY = ("courses", 0), ("histories", 0)
STRETCH = (*HISTORY, "stretches", 0)


@pytest.mark.parametrize(
    ("path", "value", "why"),
    [
        (("courses",), [], r"courses is not a list of 1\.\."),
        (("histories",), [], r"histories is not a list of 1\.\.1 items"),
        (("histories",), lambda own: own * 2, r"histories is not a list of 1\.\.1 items"),
        ((*COURSE, "grid"), 1, r"grid is not a whole number in 0\.\.0"),
        ((*COURSE, "grid"), -1, r"grid is not a whole number in 0\.\.0"),
        ((*COURSE, "paths"), None, "paths is not a list"),
        ((*COURSE, "paths"), lambda own: own[1:], "paths for 3 warps"),
        ((*COURSE, "paths"), lambda own: [*own, own[0]], r"count is not a whole number in 1\.\.0|not a list of 1\.\.3"),
        ((*COURSE, "paths", 0), lambda own: [own[0], []], "paths is not a list of 1"),
        ((*COURSE, "paths", 0, 0), 0, r"count is not a whole number in 1\.\.3"),
        ((*COURSE, "paths", 0, 0), 4, r"count is not a whole number in 1\.\.3"),
        ((*COURSE, "paths", 0, 1, 0), -1, "paths holds something that is not a whole number"),
        ((*COURSE, "latencies"), None, "latencies is not a list"),
        ((*COURSE, "latencies"), lambda own: own[1:], "latencies for 3 warps"),
        ((*COURSE, "latencies", 0, 1, 0), 100_001, r"latencies holds something .* 0\.\.100000"),
        ((*COURSE, "uses"), lambda own: own[1:], "uses of . warps for 3 warps"),
        ((*COURSE, "uses", 0, 1, 0, 0, 0), 64, r"resource is not a whole number in 0\.\.63"),
        ((*COURSE, "uses", 0, 1, 0, 0, 0), -1, r"resource is not a whole number in 0\.\.63"),
        ((*COURSE, "uses", 0, 1, 0, 0, 1), 0, r"interval is not a whole number in 1\.\."),
        ((*COURSE, "uses", 0, 1, 0, 0, 1), 1025, r"interval is not a whole number in 1\.\.1024"),
        ((*COURSE, "uses", 0, 1, 0), lambda own: own * 65, r"uses is not a list of 0\.\.64"),
        ((*HISTORY, "sms"), 0, r"sms is not a whole number in 1\.\.1"),
        ((*HISTORY, "sms"), 2, r"sms is not a whole number in 1\.\.1"),
        ((*HISTORY, "stretches"), [], r"stretches is not a list of 1"),
        ((*HISTORY, "partitions"), [], r"partitions is not a list of 1\.\.65536"),
        ((*HISTORY, "partitions", 0), [], "partitions is not a list of 1"),
        ((*HISTORY, "partitions", 0, 0), 2, r"partitions holds something that is not a whole number in 0\.\.1"),
        ((*STRETCH, "repeat"), 0, r"repeat is not a whole number in 1\.\."),
        ((*STRETCH, "repeat"), MAX_BLOCKS + 1, r"repeat is not a whole number in 1\.\."),
        ((*STRETCH, "cycles"), [], "cycles is not a list of 1"),
        ((*STRETCH, "cycles", 0), [1], r"cycle is not a list of 2\.\.2"),
        ((*STRETCH, "cycles", 0, 0), 0, r"repeat is not a whole number in 1\.\."),
        ((*STRETCH, "cycles", 0, 0), MAX_CYCLES + 1, r"repeat is not a whole number in 1\.\."),
        ((*STRETCH, "cycles", 0, 1), [[0]], r"warp is not a list of 2\.\.2"),
        ((*STRETCH, "cycles", 0, 1), [[-1, 0]], r"slot is not a whole number in 0\.\."),
        ((*STRETCH, "cycles", 0, 1), [[0, -1]], r"warp is not a whole number in 0\.\."),
        ((*STRETCH, "cycles", 0, 1), [[MAX_WARPS + 1, 0]], r"slot is not a whole number in 0\.\."),
        ((*STRETCH, "cycles", 0, 1), [[0, MAX_WARPS + 1]], r"warp is not a whole number in 0\.\."),
        ((*STRETCH, "begins", 0), [0, 0, 0], r"begin is not a list of 4\.\.4"),
        ((*STRETCH, "begins", 0, 0), -1, r"cycle is not a whole number in 0\.\."),
        ((*STRETCH, "begins", 0, 0), MAX_CYCLES + 1, r"cycle is not a whole number in 0\.\."),
        ((*STRETCH, "begins", 0, 1), -1, r"slot is not a whole number in 0\.\."),
        ((*STRETCH, "begins", 0, 1), MAX_WARPS + 1, r"slot is not a whole number in 0\.\."),
        ((*STRETCH, "begins", 0, 2), -1, r"course is not a whole number in 0\.\."),
        ((*STRETCH, "begins", 0, 3), -1, r"delay is not a whole number in 0\.\.2"),
        ((*STRETCH, "begins", 0, 3), 3, r"delay is not a whole number in 0\.\.2"),
    ],
)
def test_a_schedule_is_refused(path: tuple[Any, ...], value: Any, why: str) -> None:
    assert gpu_reading.schedule(given(), "witness", free()) is not None
    with pytest.raises(Refused, match=rf"^not a bundle: .*({why})"):
        gpu_reading.schedule(changed(given(), path, value), "witness", free())


def test_where_there_is_no_choice_none_is_given() -> None:
    plain = of("CL", 3, 1, 2)
    document = json.loads(json.dumps(written(plain, run_gpu(plain, "lrr"))))
    assert gpu_reading.schedule(document, "witness", plain) == run_gpu(plain, "lrr")
    for path, value, why in (
        ((*COURSE, "latencies"), [[1, [1, 1]]], "no choice of a latency: latencies must be null"),
        ((*COURSE, "paths"), [[1, [0, 1]]], "a string has one path: paths must be null"),
        ((*HISTORY,), lambda own: {**own, "partitions": [[0]]}, "history has the unknown key 'partitions'"),
        ((*COURSE,), lambda own: {**own, "uses": [[1, [[], []]]]}, "course has the unknown key 'uses'"),
    ):
        with pytest.raises(Refused, match=rf"^not a bundle: .*{why}"):
            gpu_reading.schedule(changed(document, path, value), "witness", plain)


def test_what_a_schedule_unfolds_to_is_counted_before(monkeypatch: pytest.MonkeyPatch) -> None:
    """Courses as they are, every warp of a cycle as often as it comes, and the partitions of slots."""
    plain = of("CCC", 1, 1, 1)
    document = json.loads(json.dumps(written(plain, run_gpu(plain, "lrr"))))
    assert document["histories"][0]["stretches"][0]["cycles"] == [[3, [[0, 0]]]]
    kept, cycles = fields.MOST_INSTRUCTIONS, MAX_CYCLES
    why = r"^the witness is too large for this checker: over \d+ warp-instructions, or \d+ cycles$"
    for instructions, most in ((6, cycles), (kept, 3)):
        monkeypatch.setattr(fields, "MOST_INSTRUCTIONS", instructions)
        monkeypatch.setattr(gpu_reading, "MAX_CYCLES", most)
        assert gpu_reading.schedule(document, "witness", plain) is not None
    for instructions, most in ((5, cycles), (kept, 2)):
        monkeypatch.setattr(fields, "MOST_INSTRUCTIONS", instructions)
        monkeypatch.setattr(gpu_reading, "MAX_CYCLES", most)
        longer = changed(document, (*STRETCH, "cycles"), [[2, [[0, 0]]], [1, [[0, 0]]]])
        with pytest.raises(Refused, match=why):
            gpu_reading.schedule(longer, "witness", plain)
    monkeypatch.setattr(fields, "MOST_INSTRUCTIONS", kept)


# Claims and evidence


@cache
def claimed() -> Any:
    gpu = of("CL", 5, 1, 2)
    return json.loads(json.dumps(gpu_bundle(of_theorem_g(gpu, run_gpu(gpu, "lrr"), 1))))


@cache
def of_a_wave() -> Any:
    """Of 3 blocks on 2 SMs an SM has 1 or 2."""
    return json.loads(json.dumps(gpu_bundle(of_one_wave(of("CLL", 3, 2, 2)))))


@pytest.mark.parametrize(
    ("document", "path", "value", "why"),
    [
        (claimed, ("result", "lower"), 0, r"lower is not a whole number in 1\.\."),
        (claimed, ("result", "upper"), 10**100 + 1, r"upper is not a whole number in 1\.\."),
        (claimed, ("result", "lower"), lambda _: claimed()["result"]["upper"] + 1, r"lower \d+ exceeds upper"),
        (claimed, ("result", "status"), "exact", "status does not follow from the bounds"),
        (claimed, ("result", "evidence"), "search", "unknown evidence: 'search'"),
        (claimed, ("result", "evidence"), "one-wave", "results of SMs are the evidence of one-wave"),
        (claimed, ("result", "evidence"), 1, "evidence is not a text"),
        (claimed, ("result", "best_case"), 0, "best_case is not a whole number in 1"),
        (claimed, ("result", "best_case"), [4, 4], "best_case is not an interval"),
        (claimed, ("result", "seconds"), -1, "seconds is not a duration"),
        (claimed, ("result", "interrupted"), 1, "interrupted is neither"),
        (claimed, ("witness",), {}, "witness lacks 'courses'"),
        (claimed, ("weights",), None, r"weights is not a list of 0\.\."),
        (claimed, ("schema",), None, "schema is not 'makespan.gpu-bundle/2'"),
        (claimed, ("sms",), None, r"sms is not a list of 0\.\."),
        (claimed, ("sms",), [1], "the blocks of all grids are more than fit on the GPU"),
        (of_a_wave, ("result", "evidence"), "theorem-g", "results of SMs are the evidence of one-wave"),
        (of_a_wave, ("sms",), [], "results of SMs are the evidence of one-wave"),
        (of_a_wave, ("sms",), lambda own: own[:1], r"sms is not a list of 2\.\.2 items"),
        (of_a_wave, ("sms",), lambda own: own * 2, r"sms is not a list of 2\.\.2 items"),
        (of_a_wave, ("sms",), lambda own: own[:1] * 2, r"an SM has 1\.\.2 blocks: there must be a result"),
        (of_a_wave, ("sms", 0, "blocks"), 3, r"blocks is not a whole number in 1\.\.2"),
        (of_a_wave, ("sms", 0, "blocks"), 0, r"blocks is not a whole number in 1\.\.2"),
        (of_a_wave, ("sms", 0, "upper"), 0, r"upper is not a whole number in 1\.\."),
        (of_a_wave, ("sms", 0, "evidence"), "theorem-x", "unknown evidence"),
        (of_a_wave, ("sms", 0, "partitions"), [{}], "1 partitions are given, but the machine makes 0"),
        (of_a_wave, ("sms", 0, "phases"), [{}], "phase lacks 'upper'"),
        (of_a_wave, ("sms", 0, "certificate"), {}, "certificate lacks"),
        (of_a_wave, ("sms", 0), {}, "result of an SM lacks"),
    ],
)
def test_a_claim_is_refused(document: Callable[[], Any], path: tuple[Any, ...], value: Any, why: str) -> None:
    assert gpu_reading.bundle(document())
    other = changed(document(), path, value)
    with pytest.raises(Refused, match=why):
        gpu_reading.bundle({**other, "sha256": digest(other)})


def test_a_digest_is_that_of_the_content() -> None:
    with pytest.raises(Refused, match=r"^the digest does not match the content"):
        gpu_reading.bundle({**claimed(), "sha256": "0" * 64})


def test_an_sm_has_at_least_the_blocks_that_fit_on_no_other() -> None:
    assert set(gpu_reading.bundle(of_a_wave()).sms) == {1, 2}
    full = json.loads(json.dumps(gpu_bundle(of_one_wave(of("CLL", 4, 2, 2)))))
    assert set(gpu_reading.bundle(full).sms) == {2}
    for blocks in 2, 5:
        few = json.loads(json.dumps(gpu_bundle(of_one_wave(of("CLL", blocks, 3, 2)))))
        assert set(gpu_reading.bundle(few).sms) == {1, 2}


def test_so_many_questions_are_too_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gpu_reading, "MOST_QUESTIONS", 2)
    assert gpu_reading.bundle(of_a_wave()).sms
    monkeypatch.setattr(gpu_reading, "MOST_QUESTIONS", 1)
    with pytest.raises(Refused, match="over 1 numbers of blocks on an SM"):
        gpu_reading.bundle(of_a_wave())


def test_evidence_of_all_sms_is_counted_together(monkeypatch: pytest.MonkeyPatch) -> None:
    """Weights of three places count as six; here both SMs have them."""
    own = next(each["weights"] for each in of_a_wave()["sms"] if each["weights"])
    document = {**of_a_wave(), "sms": [{**each, "weights": own} for each in of_a_wave()["sms"]]}
    document["sha256"] = digest(document)
    monkeypatch.setattr(reading, "MOST_COEFFICIENTS", 2 * 6 * len(own))
    assert gpu_reading.bundle(document).sms
    monkeypatch.setattr(reading, "MOST_COEFFICIENTS", 2 * 6 * len(own) - 1)
    with pytest.raises(Refused, match=r"^the evidence is too large for this checker: over \d+ coefficients$"):
        gpu_reading.bundle(document)


def test_weights_of_pairs_are_of_one_grid() -> None:
    grids = Grid(((Program.chain("CL"), 1),), 3, (1,)), Grid(((Program.chain("C"), 1),), 2, (1,))
    gpu = GpuInstance(grids, Machine.of({"C": 1, "L": 1}), 1, (2,))
    document = json.loads(json.dumps(gpu_bundle(of_theorem_g(gpu, run_gpu(gpu, "lrr")))))
    assert document["weights"] == []
    assert verify(document).outcome is Outcome.ACCEPTED
    weights = {"classes": ["C"], "caps": [1], "groups": [[1, 1]]}
    other = {**document, "weights": [weights]}
    with pytest.raises(Refused, match=r"^weights of pairs are of one grid only$"):
        gpu_reading.bundle({**other, "sha256": digest(other)})
