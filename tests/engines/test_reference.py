"""Known worst cases: the sample files that come with the project, and 1,652 reference values."""

from collections.abc import Callable, Sequence
from itertools import islice
from pathlib import Path

import pytest

from makespan.model.instance import Instance
from makespan.model.result import Bounds
from makespan.model.simulate import replay
from makespan.model.strings import NamedInstance, read_instances
from makespan.proof.bounds import pessimistic
from makespan.proof.engines import Limits, solve
from makespan.proof.engines.certificate import improve
from makespan.proof.engines.construct import greedy
from makespan.proof.engines.engine import Finding
from makespan.proof.engines.search import plain as search
from tests.oracle import brute_force, count_states

FOLDER = Path(__file__).parents[2] / "instruction_strings"
REFERENCE = read_instances(FOLDER / "reference.jsonl")
LONG = read_instances(FOLDER / "long.jsonl")
SAMPLES = [named for name in ("paper.toml", "known_worst_cases.toml") for named in read_instances(FOLDER / name)]
PARTS = 4
MOST_STATES = 2_000
"""Two of three reference instances have no more count states, and together take a hundredth of the time."""

SOME = [
    named for number, named in enumerate(REFERENCE) if count_states(named.instance) <= MOST_STATES or number % 128 == 32
]
"""The small ones, and some of the large ones; `make soak` takes all."""

PARTS_OF_SOME = [SOME[part::PARTS] for part in range(PARTS)]


def label(named: NamedInstance) -> str:
    capacity = ",".join(f"{unit}={units}" for unit, units in named.instance.machine.capacities.items())
    return f"{named.name} on {capacity}"


def small(most_states: int) -> list[NamedInstance]:
    """The sample instances that have at most so many count states."""
    return [named for named in SAMPLES if count_states(named.instance) <= most_states]


def test_there_are_1652_reference_values_in_order() -> None:
    keys = [
        (sorted(i.machine.capacities.items()), i.groups[0].program.letters, i.warps)
        for i in (named.instance for named in REFERENCE)
    ]
    assert len(keys) == 1652
    assert keys == sorted(keys)


def search_finds(instances: Sequence[NamedInstance]) -> None:
    for named in instances:
        found = search.solve(named.instance, Limits(seconds=600))
        assert found.witness is not None
        assert named.makespan == found.upper == replay(named.instance, found.witness), named.where


def auto_finds(instances: Sequence[NamedInstance]) -> None:
    for named in instances:
        assert named.makespan is not None
        result = solve(named.instance, limits=Limits(seconds=600))
        assert result.bounds == Bounds(named.makespan, named.makespan), named.where
        assert result.pessimistic >= named.makespan


@pytest.mark.parametrize("some", PARTS_OF_SOME, ids=range(PARTS))
def test_reference_values_are_found(some: Sequence[NamedInstance], monkeypatch: pytest.MonkeyPatch) -> None:
    """Where `auto` ends in the plain search it is given what that has found, instead of the same search again."""
    anew, findings = search.solve, dict[Instance, Finding]()

    def once(instance: Instance, limits: Limits) -> Finding:
        if instance not in findings:
            findings[instance] = anew(instance, limits)
        return findings[instance]

    monkeypatch.setattr(search, "solve", once)
    search_finds(some)
    auto_finds(some)


@pytest.mark.soak
@pytest.mark.parametrize("finds", [search_finds, auto_finds])
@pytest.mark.parametrize("part", range(PARTS))
def test_all_reference_values_are_found(finds: Callable[[Sequence[NamedInstance]], None], part: int) -> None:
    finds(REFERENCE[part::PARTS])


def test_quick_bounds_enclose_the_worst_cases_of_longer_strings() -> None:
    for named in LONG:
        assert named.makespan is not None
        found = list(islice(improve.improve(named.instance, Limits(seconds=600)), 1))
        witness = max(schedule.makespan for schedule in greedy.schedules(named.instance, Limits()))
        assert found[0].upper is not None
        assert witness <= named.makespan <= found[0].upper <= pessimistic(named.instance), named.where


@pytest.mark.soak
@pytest.mark.parametrize("number", range(len(LONG)))
def test_auto_finds_the_worst_cases_of_longer_strings(number: int) -> None:
    named = LONG[number]
    assert named.makespan is not None
    result = solve(named.instance, limits=Limits(seconds=600))
    assert result.bounds == Bounds(named.makespan, named.makespan), named.where


@pytest.mark.parametrize("named", SAMPLES, ids=label)
def test_a_sample_says_its_name_its_worst_case_and_how_that_is_known(named: NamedInstance) -> None:
    assert named.name
    assert named.source
    assert named.makespan is not None
    quick = next(improve.improve(named.instance, Limits(seconds=600)))
    assert quick.upper is not None
    assert quick.upper >= named.makespan
    assert max(schedule.makespan for schedule in greedy.schedules(named.instance, Limits())) <= named.makespan


@pytest.mark.soak
@pytest.mark.parametrize("named", SAMPLES, ids=label)
def test_the_best_certificate_of_a_sample_encloses_its_worst_case(named: NamedInstance) -> None:
    bounds = solve(named.instance, backend="certificate").bounds
    assert named.makespan is not None
    assert bounds.lower <= named.makespan <= bounds.upper


@pytest.mark.parametrize("named", small(20_000), ids=label)
def test_a_sample_has_the_worst_case_that_the_search_finds(named: NamedInstance) -> None:
    assert search.solve(named.instance, Limits(seconds=600)).upper == named.makespan


@pytest.mark.parametrize("named", [named for named in SAMPLES if "brute force" in (named.source or "")], ids=label)
def test_a_sample_has_the_worst_case_that_brute_force_finds(named: NamedInstance) -> None:
    assert brute_force(named.instance).upper == named.makespan


def test_no_two_samples_have_the_same_name_and_machine() -> None:
    labels = [label(named) for named in SAMPLES]
    assert len(set(labels)) == len(labels)


def test_nothing_in_the_folder_goes_untested() -> None:
    assert {file.name for file in FOLDER.iterdir()} == {
        "README.md",
        "known_worst_cases.toml",
        "long.jsonl",
        "paper.toml",
        "reference.jsonl",
    }
