"""The table of engines: what hangs on it, and that a feature which nobody has heard of is refused everywhere."""

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from makespan.host.errors import UnsupportedError
from makespan.model.feature import Feature
from makespan.model.instance import Instance
from makespan.model.machine import DELAY, PAPER, Latency, Machine, SchedulerPromise, UnitClass
from makespan.model.program import Program, ProgramPlace
from makespan.model.result import Upper
from makespan.model.simulate import Choices, replay, run
from makespan.model.simulate.choices import choose_routes
from makespan.proof.bounds import any_units, least_possible, pessimistic, phases, theorem_e, theorem_f, theorem_l
from makespan.proof.bounds.conditions import ProofQuestion
from makespan.proof.bounds.delays import expand_latencies
from makespan.proof.bounds.first_cycles import front
from makespan.proof.engines import BACKENDS, ENGINES, Limits, solve
from makespan.proof.engines.certificate import beam
from makespan.proof.engines.construct import convoy, greedy
from makespan.proof.engines.cpsat.model import build
from makespan.proof.engines.engine import refusal
from makespan.proof.engines.ilp.model import shape
from makespan.proof.engines.search import choose, plain, states, table
from makespan.proof.engines.two_warps import events, grid

SCHEMAS = Path(__file__).parents[2] / "docs" / "schema"
PAIR = Instance.of("CL", 2)


@pytest.fixture
def strange(monkeypatch: pytest.MonkeyPatch) -> Instance:
    """An instance with something that was added to the model after everybody said what he knows."""
    features = Instance.features.fget  # type: ignore[attr-defined]
    monkeypatch.setattr(Instance, "features", property(lambda own: {**features(own), "warp drive": "a warp drive"}))
    return Instance.of("CL", 2)


REFUSING: dict[str, Callable[[Instance], Any]] = {
    **{backend: lambda one, backend=backend: solve(one, backend=backend) for backend in BACKENDS},  # type: ignore[misc]
    "pessimistic": pessimistic,
    "any units": any_units,
    "least possible": least_possible,
    "phases": phases,
    "expansion": expand_latencies,
    "question": lambda one: ProofQuestion(one, 0),
    "routes": lambda one: choose_routes(one, Choices()),
    "policy": lambda one: run(one, "gto"),
    "greedy": lambda one: greedy.longest(one, Limits(), 99),
    "plain search": lambda one: plain.solve(one, Limits()),
    "packed search": lambda one: choose.solve(one, Limits(), certificate=None, incumbent=0),
    "states": lambda one: states.solve(one, Limits(), certificate=None, incumbent=0),
    "cp-sat": lambda one: build(one, 9),
    "ilp": lambda one: shape(one, 9),
}
APPLYING: dict[str, Callable[[Instance], object]] = {
    "theorem E": theorem_e,
    "theorem F": theorem_f,
    "theorem L": theorem_l,
    "convoy": convoy.applies,
    "grid": grid.applies,
    "events": events.applies,
    "table": lambda one: table.applies(one, 1 << 30),
    "quick search": lambda one: choose.is_quick(one, Limits()),
    "beam": lambda one: not one.beyond(beam.KNOWS),
    "front": lambda one: [found.cycles for found in (front(one, 100),) if found and found.cycles],  # 0: the starts
}


@pytest.mark.parametrize("who", REFUSING)
def test_a_feature_that_nobody_has_heard_of_is_refused(who: str, strange: Instance) -> None:
    with pytest.raises(UnsupportedError, match="does not know a warp drive"):
        REFUSING[who](strange)


def test_a_schedule_of_a_strange_machine_is_not_replayed(monkeypatch: pytest.MonkeyPatch) -> None:
    schedule = run(PAIR, "oldest")
    assert replay(PAIR, schedule) == 3
    monkeypatch.setattr(Instance, "features", property(lambda own: {"warp drive": "a warp drive"}))
    with pytest.raises(UnsupportedError, match="replay does not know a warp drive"):
        replay(PAIR, schedule)


@pytest.mark.parametrize("who", APPLYING)
def test_what_is_only_for_some_instances_is_not_for_strange_ones(who: str, strange: Instance) -> None:
    assert not APPLYING[who](strange)


def test_the_same_apply_to_ordinary_instances(request: pytest.FixtureRequest) -> None:
    fair = Machine("fair", PAPER.units, issue_width=1, scheduler=SchedulerPromise.FAIR)
    others = {
        "convoy": Instance.of("CL", 3),
        "events": Instance.of("CL", 2, SLOW),
        "theorem F": Instance.of("CL", 2, fair),
    }
    assert [who for who, applies in APPLYING.items() if not applies(others.get(who, PAIR))] == []


BOUNDING_ANY_SCHEDULER = {"pessimistic", "any units", "least possible", "phases", "greedy", *BACKENDS}


@pytest.mark.parametrize("who", sorted(REFUSING.keys() - BOUNDING_ANY_SCHEDULER))
def test_who_could_break_the_promise_of_a_scheduler_refuses_it(who: str) -> None:
    fair = Instance.of("CL", 2, Machine("fair", PAPER.units, scheduler=SchedulerPromise.FAIR))
    with pytest.raises(UnsupportedError, match="does not know a fair scheduler"):
        REFUSING[who](fair)


def test_a_promise_can_be_left_out_where_nothing_else_is_refused() -> None:
    fair = Instance.of("CL", 2, Machine("fair", PAPER.units, issue_width=1, scheduler=SchedulerPromise.FAIR))
    with pytest.raises(
        UnsupportedError, match=r"know a fair scheduler; leave the promise out: scheduler = .any. in the machine file$"
    ):
        run(fair, "oldest")
    with pytest.raises(UnsupportedError, match=r"^it does not know an issue width of 1, a fair scheduler$"):
        fair.require(frozenset(), "it")


@pytest.mark.parametrize("engine", ENGINES, ids=lambda engine: engine.name)
def test_no_engine_sees_what_it_does_not_know(engine: Any, strange: Instance) -> None:
    assert refusal(engine, strange, Limits()) == f"backend {engine.backend} does not know a warp drive"


SLOW = Machine("slow", (UnitClass("C", 1, 2, Latency(2, 3)), UnitClass("L", 1)), issue_width=1)
FORK = Program((ProgramPlace("C", (1, 2)), ProgramPlace("L", (3,)), ProgramPlace("C", (3,))))


@pytest.mark.parametrize(
    ("instance", "features"),
    [
        (PAIR, {}),
        (Instance.of("CLCC", 3, Machine.of({"C": 4, "L": 2})), {}),
        (Instance.of("CS", 2, Machine.of({"C": 1, "S": 1})), {Feature.CLASSES: "classes besides C and L (S)"}),
        (Instance.of(FORK, 2), {Feature.CHOICES: "programs with a choice of paths"}),
        (
            Instance.merged([(Program.chain("C"), 1), (Program.chain("L"), 1)]),
            {Feature.GROUPS: "warps of different programs"},
        ),
        (
            Instance.of("CL", 2, SLOW),
            {
                Feature.ISSUE_WIDTH: "an issue width of 1",
                Feature.INTERVALS: "intervals (C=2)",
                Feature.LATENCIES: "latencies (C=2..3)",
            },
        ),
    ],
)
def test_features_are_told_in_words(instance: Instance, features: dict[Feature, str]) -> None:
    assert instance.features == features


@pytest.mark.parametrize(("warps", "width"), [(3, 2), (2, 2), (1, 1)])
def test_a_width_that_cannot_bind_is_no_feature(warps: int, width: int) -> None:
    """As many slots as ports of classes that are used, or as warps; delays need none."""
    units = UnitClass("C", 1, 1, Latency(2, 2)), UnitClass("L", 1), UnitClass("S", 4)
    wide, free = (Instance.of("CLLC", warps, Machine("m", units, slots)) for slots in (width, None))
    assert wide.features == free.features
    expansion = expand_latencies(wide)
    assert expansion is not None
    assert expansion.instance.machine.issue_width is None
    for backend in ("certificate", "search"):
        assert solve(wide, backend=backend).bounds == solve(free, backend=backend).bounds
    with_all = Instance.of("CLS", 3, Machine("m", units, 2))
    assert with_all.features[Feature.ISSUE_WIDTH] == "an issue width of 2"


def test_delays_are_a_feature_only_beside_an_issue_width_of_which_they_need_none() -> None:
    slow = expand_latencies(Instance.of("CL", 2, SLOW))
    free = expand_latencies(Instance.of("C", 2, Machine("free", (UnitClass("C", 1, 1, Latency(3, 3)),))))
    assert slow is not None
    assert free is not None
    assert Feature.DELAYS in slow.instance.features
    assert free.instance.features == {Feature.CLASSES: f"classes besides C and L ({DELAY})"}


def test_backends_are_those_of_the_engines_and_auto() -> None:
    assert list(BACKENDS) == ["auto", *dict.fromkeys(engine.backend for engine in ENGINES)]
    assert len({engine.name for engine in ENGINES}) == len(ENGINES)
    assert all(re.fullmatch("[a-z][a-z0-9-]{0,39}", engine.name) for engine in ENGINES)  # the checker reads no other


@pytest.mark.parametrize("name", ["result-2", "bundle-3"])
def test_the_schemas_list_the_proofs_and_the_engines(name: str) -> None:
    """A phase or a partition has no lapses, and is not proven by its phases or partitions.

    The base of a bound with lapses is of a theorem that outlasts them.
    """
    document = json.loads((SCHEMAS / f"{name}.schema.json").read_text("utf-8"))
    listed = [set(one) for one in _enumerations(document) if "pessimistic" in one]
    proofs = {*map(str, Upper), *(engine.name for engine in ENGINES)} - {"certificate"}
    bases = {str(one) for one in (Upper.PESSIMISTIC, Upper.THEOREM_1S, Upper.THEOREM_E)}
    assert [one for one in listed if one == bases] == [bases] * (name == "result-2")
    whole = [one for one in listed if one != bases]
    assert whole
    assert all(one | {"phases", "partitions", "lapses"} == proofs for one in whole)


def _enumerations(value: object) -> list[list[str]]:
    if isinstance(value, dict):
        own = [value["enum"]] if "enum" in value else []
        return own + [one for inner in value.values() for one in _enumerations(inner)]
    return [one for inner in value for one in _enumerations(inner)] if isinstance(value, list) else []


def test_an_engine_that_was_asked_for_in_vain_says_who_can() -> None:
    with pytest.raises(UnsupportedError) as raised:
        solve(Instance.of("CS", 2, Machine.of({"C": 1, "S": 1})), backend="ilp")
    assert str(raised.value) == (
        "backend ilp does not know classes besides C and L (S); use backend auto, certificate, search or cpsat"
    )


def test_an_engine_that_was_asked_for_refuses_beside_a_promise_what_it_refuses_without_it() -> None:
    """However soon closed forms leave no gap: an exact result is not the engine's that never saw the question."""
    fair = Instance.of("CLLC", 2, Machine("fair", PAPER.units, issue_width=1, scheduler=SchedulerPromise.FAIR))
    assert solve(fair).bounds == solve(fair, backend="certificate").bounds
    with pytest.raises(UnsupportedError, match=r"^backend ilp does not know an issue width of 1; use backend "):
        solve(fair, backend="ilp")
