"""Bundles of one SM, read: as they were written, or refused with a reason."""

import json
import random
from collections import Counter
from dataclasses import replace
from functools import cache
from typing import Any

import pytest

from makespan.host.errors import InputError, InvalidScheduleError
from makespan.model.instance import Instance
from makespan.model.machine import Latency, Machine, SchedulerPromise, UnitClass
from makespan.model.program import Program
from makespan.model.simulate import replay, run
from makespan.model.simulate.choices import Choices
from makespan.proof.engines import solve
from makespan.report.result.bundle import _witness as written
from makespan.report.result.bundle import instance_data, result_bundle
from makespan.verify import Refused, digest, fields, instances, reading
from makespan.verify.verdict import execute
from tests.forgery import damaged
from tests.verify.test_enumeration import instance
from tests.verify.test_gpu_reading import FORK, PARTS, changed


def plain(value: Any) -> Any:
    """As a file has it."""
    return json.loads(json.dumps(value))


def drawn(draw: random.Random) -> Instance:
    while True:
        try:
            asked = instance(draw)
        except InputError:
            continue  # a path of barriers only
        if draw.random() < 0.2:
            asked = replace(asked, machine=replace(asked.machine, scheduler=SchedulerPromise.FAIR))
        return asked


@pytest.mark.parametrize("seed", range(6))
def test_questions_and_damaged_schedules_are_those_of_the_engines(seed: int) -> None:
    draw, outcomes = random.Random(seed), Counter[str]()
    for _ in range(20):
        asked = drawn(draw)
        some = draw.choice(("random", "least"))
        choices = Choices(path="random", latency=some, interval=some, assignment="random", seed=draw.randrange(99))
        schedule = run(
            replace(asked, machine=replace(asked.machine, scheduler=SchedulerPromise.ANY)), "random", choices
        )
        question, document = plain(instance_data(asked)), plain(written(asked, schedule))
        read = instances.instance(question)
        assert instance_data(read) == question
        assert reading.witness(document, read, schedule.makespan) == schedule
        outcomes[judged(question, document, schedule.makespan)] += 1
        for _ in range(5):
            other = damaged(draw, document) if draw.random() < 0.7 else document
            outcomes[judged(damaged(draw, question) if draw.random() < 0.4 else question, other, None)] += 1
    assert min(outcomes["accepted"], outcomes["refused"]) > 9


def judged(question: Any, document: Any, makespan: int | None) -> str:
    """By the checker and by the engines, which are of one mind."""
    cycles = makespan or sum(entry[0] for entry in document["cycles"] if entry and type(entry[0]) is int)
    try:
        asked = instances.instance(question)
        schedule = reading.witness(document, asked, cycles)
    except Refused:
        with pytest.raises(Refused):
            execute(question, document, cycles)
        return "unread"
    try:
        assert replay(asked, schedule) == cycles
    except InvalidScheduleError:
        with pytest.raises(Refused):
            execute(question, document, cycles)
        return "refused"
    if any(sorted(warps) != [*warps] for warps in schedule.cycles):
        return "unread"  # the checker is strict about the order in which they are written
    execute(question, document, cycles)
    with pytest.raises(Refused, match=f"the witness takes {cycles} cycles, the lower bound says {cycles + 1}"):
        execute(question, document, cycles + 1)
    return "accepted"


@cache
def rich() -> Any:
    """With every choice that there is: paths, latencies, uses and partitions."""
    asked = Instance.merged([(FORK, 2), (Program.chain("C"), 1)], PARTS)
    return plain(result_bundle(solve(asked, best_case=True)))


@cache
def fair() -> Any:
    machine = Machine("fair", (UnitClass("C", 1, 1, Latency(2, 2)),), 1, scheduler=SchedulerPromise.FAIR)
    return plain(result_bundle(solve(Instance.of("CC", 2, machine))))


@pytest.mark.parametrize(("document", "facts"), [(rich, 15), (fair, 11)])
def test_what_a_result_says_of_its_question_follows_from_it(document: Any, facts: int) -> None:
    read = reading.bundle(document()).instance
    said = reading._fields_of_instance(read)
    assert len(said) == facts
    for key, value in said.items():
        assert document()["result"][key] == value
        for other in (value is None, [value], None if value else 1):
            forged = changed(document(), ("result", key), other)
            with pytest.raises(Refused, match=rf"^(not a bundle: |result: {key} does not follow from the instance)"):
                reading.bundle({**forged, "sha256": digest(forged)})
        del forged["result"][key]
        with pytest.raises(Refused, match=f"result lacks {key!r}"):
            reading.bundle({**forged, "sha256": digest(forged)})


WITNESS, RESULT, MACHINE = ("witness",), ("result",), ("instance", "machine")


@pytest.mark.parametrize(
    ("path", "value", "why"),
    [
        (("schema",), "makespan.result/2", "schema is not 'makespan.bundle/3'$"),
        (("schema",), ["makespan.bundle/3"], "schema is not 'makespan.bundle/3'$"),
        (("schema",), "makespan.bundle/4", "is of another makespan"),
        (("certificate",), {}, "certificate lacks"),
        (("partitions",), None, r"partitions is not a list of 0"),
        (("phases",), None, r"phases is not a list of 0"),
        (("weights",), None, r"weights is not a list of 0"),
        (("sha256",), 1, "sha256 is not a text"),
        ((*RESULT, "lower"), 0, r"lower is not a whole number in 1\.\."),
        ((*RESULT, "upper"), 10**12 + 1, r"upper is not a whole number in 1\.\."),
        ((*RESULT, "pessimistic"), 0, r"pessimistic is not a whole number in 1\.\."),
        ((*RESULT, "best_case"), 0, r"best_case is not a whole number in 1\.\."),
        ((*RESULT, "best_case"), [0, 3], r"best_case is not a whole number in 1\.\."),
        ((*RESULT, "best_case"), [3, 2], r"best_case is not an interval: 3\.\.2"),
        ((*RESULT, "best_case"), [1, 10**12 + 1], r"best_case is not a whole number in 1\.\."),
        ((*RESULT, "best_case"), [1, 2, 3], r"best_case is not a list of 2\.\.2"),
        ((*RESULT, "evidence"), {"lower": "witness"}, "evidence lacks 'upper'"),
        ((*RESULT, "history"), None, "history is not a list of 0"),
        ((*RESULT, "assumptions"), None, "assumptions is not a list of 0"),
        ((*RESULT, "seconds"), float("inf"), "seconds is not a duration"),
        ((*RESULT, "seconds"), "1", "seconds is not a duration"),
        ((*RESULT, "interrupted"), None, "interrupted is neither"),
        ((*RESULT, "versions"), {"makespan": "1", "python": 3}, "version is not a text"),
        ((*RESULT, "backend"), 1, "backend is not a text"),
        ((*MACHINE, "scheduler"), "any", "the promise of the scheduler is not known"),
        ((*MACHINE, "issue_width"), 0, r"issue_width is not a whole number in 1\.\.1024"),
        ((*MACHINE, "issue_width"), 1025, r"issue_width is not a whole number in 1\.\.1024"),
        ((*MACHINE, "latency", "C"), [1], r"latency is not a list of 2\.\.2"),
        ((*MACHINE, "latency", "C"), [2, 1], "a range of latencies"),
        ((*MACHINE, "interval", "C"), 0, "interval of C must be"),
        ((*MACHINE, "resources", "a"), 0, r"capacity is not a whole number in 1\.\.1024"),
        ((*MACHINE, "resources", "a"), 1025, r"capacity is not a whole number in 1\.\.1024"),
        ((*MACHINE, "resources"), {f"r{n}": 1 for n in range(65)}, r"resources are not an object of 1\.\.64 names"),
        ((*MACHINE, "uses"), [], "an object was expected"),
        ((*MACHINE, "uses", "C"), [], r"uses is not a list of 1\.\.64"),
        ((*MACHINE, "uses", "C", 0, 0), [], r"resources is not a list of 1\.\.64"),
        ((*MACHINE, "uses", "C", 0, 1), 0, "interval on a must be"),
        ((*MACHINE, "name"), "other", "result: machine does not follow"),
        (("instance", "blocks"), 0, r"blocks is not a whole number in 1\.\.65536"),
        (("instance", "groups", 0, "starts"), [0, 0], r"starts \(0, 0\) name a place twice"),
        (("instance", "groups", 0, "starts"), [], r"starts is not a list of 1"),
        (("instance", "groups", 0, "places"), [], r"places is not a list of 1"),
        (("instance", "groups", 0, "places", 0), ["C"], r"place is not a list of 2\.\.2"),
        (("instance", "groups", 0, "places", 0, 1), [], r"successors is not a list of 1"),
        (("instance", "groups", 0, "timings"), [[1, [1, 1], [], []]] * 4, r"timings is not a list of 0\.\.3"),
        (("instance", "groups", 0, "timings"), [[1, [1, 1], []]] * 3, r"timing is not a list of 4\.\.4"),
        (("instance", "groups", 0, "timings"), [[1, [1], [], []]] * 3, r"latency is not a list of 2\.\.2"),
        (("instance", "groups", 0, "timings"), [[1, [1, 1], [10**9 + 1], []]] * 3, r"tokens holds .* 0\.\.1000000000"),
        (("instance", "groups", 1, "warps"), 0, r"warps is not a whole number in 1\.\.65536"),
        (("instance", "groups", 1, "string"), 1, "string is not a text"),
        (("instance", "groups", 1), {}, "group lacks"),
        ((*WITNESS, "cycles"), [], r"cycles is not a list of 1"),
        ((*WITNESS, "cycles", 0), [1], r"cycle is not a list of 2\.\.2"),
        ((*WITNESS, "cycles", 0, 0), 0, r"repeat is not a whole number in 1"),
        ((*WITNESS, "cycles", 0, 1), [-1], r"warps holds something that is not a whole number in 0\.\.2"),
        ((*WITNESS, "cycles", 0, 1), [3], r"warps holds something that is not a whole number in 0\.\.2"),
        ((*WITNESS, "partitions"), [0, 1], "2 partitions for 3 warps"),
        ((*WITNESS, "partitions"), [0, 1, 2], r"partitions holds something that is not a whole number in 0\.\.1"),
        ((*WITNESS, "paths"), None, "paths is not a list of 1"),
        ((*WITNESS, "paths"), [[3, [0, 1]], [1, [0]]], "count is not a whole number in 1..0"),
        ((*WITNESS, "latencies"), [[2, [1, 1]]], "2 latencies for 3 warps"),
        ((*WITNESS, "latencies"), [[3, []]], "latencies is not a list of 1"),
        ((*WITNESS, "uses"), [[4, [[]]]], r"count is not a whole number in 1\.\.3"),
        ((*WITNESS, "uses"), [[3, []]], "uses is not a list of 1"),
        ((*WITNESS, "uses"), [[3]], r"uses is not a list of 2\.\.2"),
        ((*WITNESS, "uses"), [[3, [[]], 1]], r"uses is not a list of 2\.\.2"),
        ((*WITNESS, "uses"), [[2, [[]]], [2, [[]]]], r"count is not a whole number in 1\.\.1"),
        ((*WITNESS, "uses"), [[3, [[[0]]]]], r"use is not a list of 2\.\.2"),
        ((*WITNESS, "uses"), [[3, [[[0, 1, 1]]]]], r"use is not a list of 2\.\.2"),
        ((*WITNESS, "uses"), [[3, [[[0, 1]] * 65]]], r"uses is not a list of 0\.\.64"),
        ((*WITNESS, "uses"), [[3, [[[0, 1025]]]]], r"interval is not a whole number in 1\.\.1024"),
    ],
)  # fmt: skip
def test_a_bundle_is_refused(path: tuple[Any, ...], value: object, why: str) -> None:
    assert reading.bundle(rich())
    forged = changed(rich(), path, value)
    try:
        signature = digest(forged)
    except ValueError:  # of what no file holds
        signature = ""
    with pytest.raises(Refused, match=why):
        reading.bundle({**forged, "sha256": signature} if path != ("sha256",) else forged)


def test_a_witness_is_counted_before_it_is_unfolded(monkeypatch: pytest.MonkeyPatch) -> None:
    alone = Instance.of("CCC", 1)
    document = {"paths": None, "latencies": None, "cycles": [[2, [0]], [1, [0]]]}
    monkeypatch.setattr(fields, "MOST_INSTRUCTIONS", 3)
    assert reading.witness(document, alone, 3).makespan == 3
    monkeypatch.setattr(fields, "MOST_INSTRUCTIONS", 2)
    with pytest.raises(Refused, match=r"^the witness is too large for this checker: over 2 warp-instructions$"):
        reading.witness(document, alone, 3)
    monkeypatch.setattr(reading, "MAX_CYCLES", 5)
    assert reading.witness({**document, "cycles": [[5, []]]}, alone, 5).makespan == 5
    with pytest.raises(Refused, match=r"^the witness is too large for this checker: over 5 cycles$"):
        reading.witness({**document, "cycles": [[5, []], [1, []]]}, alone, 6)


def test_where_there_is_no_choice_none_is_given() -> None:
    alone = Instance.of("CCC", 1)
    document: dict[str, Any] = {"paths": None, "latencies": None, "cycles": [[3, [0]]]}
    assert reading.witness(document, alone, 3).paths == ((0, 1, 2),)
    for key, value, why in (
        ("latencies", [[1, [1, 1, 1]]], "no choice of a latency: latencies must be null"),
        ("paths", [[1, [0, 1, 2]]], "a string has one path: paths must be null"),
        ("partitions", [0], "witness has the unknown key 'partitions'"),
        ("uses", [[1, [[], [], []]]], "witness has the unknown key 'uses'"),
    ):
        with pytest.raises(Refused, match=rf"^not a bundle: .*{why}$"):
            reading.witness({**document, key: value}, alone, 3)


def test_partitions_and_their_assignment_go_together() -> None:
    for key in ("partitions", "assignment"):
        forged = plain(rich())
        del forged["instance"]["machine"][key]
        with pytest.raises(Refused, match=rf"^not a bundle: machine lacks '{key}'$"):
            instances.instance(forged["instance"])


def test_a_machine_has_up_to_64_resources() -> None:
    many = changed(rich(), (*MACHINE, "resources"), {f"r{n}": 1 for n in range(62)} | {"a": 1, "b": 1})
    assert len(instances.instance(many["instance"]).machine.resources) == 64


def test_a_long_string_is_said_as_it_is() -> None:
    document = plain(result_bundle(solve(Instance.of("CL" * 40, 1))))
    assert document["result"]["groups"][0]["program"] == "CL" * 40
    assert reading.bundle(document)
