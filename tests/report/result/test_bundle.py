"""What a bundle holds, and how it gets to disk."""

import hashlib
import json
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from makespan.host.errors import InputError
from makespan.model.certificate import FINISHED_LABEL, Certificate, Potential, PotentialNode, PotentialTable
from makespan.model.instance import Instance
from makespan.model.machine import Latency, Machine, UnitClass
from makespan.model.program import Program, ProgramPlace
from makespan.model.result import Bounds, Result, Upper
from makespan.model.schedule import Schedule
from makespan.proof.engines import solve
from makespan.report.result import bundle as writing
from makespan.report.result import document as told
from makespan.report.result.bundle import _progressions, canonical_json, instance_data, result_bundle, write_bundle
from makespan.report.result.document import result_document
from makespan.verify import Outcome, digest, parse, proofs, reading, verify
from makespan.verify.proofs import _coefficients
from tests.effort import calls
from tests.schemas import published
from tests.strategies import general_instances, instances

ROOT = Path(__file__).parents[3]
SCHEMA = published("bundle-3")


def two_warps() -> Result:
    return solve(Instance.of("CLLCLL", 2))


def test_a_bundle_by_hand() -> None:
    result = two_warps()
    content = result_bundle(result)
    assert list(content) == ["schema", "instance", "result", "witness", "certificate", "weights", "phases", "sha256"]
    assert content["schema"] == "makespan.bundle/3"
    assert content["instance"] == {
        "machine": {
            "name": "paper",
            "capacity": {"C": 1, "L": 1},
            "interval": {"C": 1, "L": 1},
            "latency": {"C": [1, 1], "L": [1, 1]},
            "issue_width": None,
        },
        "blocks": 1,
        "groups": [{"warps": 2, "string": "CLLCLL"}],
    }
    assert {
        **content["result"],
        "any_units": None,
        "caveats": list(result.caveats),
        "robust_against": [],
    } == result_document(result)
    assert content["witness"]["paths"] is None
    assert content["witness"]["latencies"] is None
    assert content["certificate"] is None


def test_a_general_machine_by_hand() -> None:
    cached = Machine("m", (UnitClass("C", 2), UnitClass("L", 1, 2, Latency(1, 4))), issue_width=3)
    witness = Schedule(((0,), (), (), (0, 1), ()), ((0, 1), (0,)), ((3, 2), (1,)))
    instance = Instance.merged([(Program.chain("LC"), 1), (Program.chain("C"), 1)], cached)
    result = Result(instance, Bounds(5, 9), witness, Upper.SEARCH, 9, None, "search", 0.0, ())
    content = result_bundle(result)
    said = {
        "capacity": {"C": 2, "L": 1},
        "interval": {"C": 1, "L": 2},
        "latency": {"C": [1, 1], "L": [1, 4]},
        "issue_width": 3,
    }
    assert content["instance"]["machine"] == {"name": "m", **said}
    assert {key: content["result"][key] for key in said} == said
    assert content["witness"] == {
        "paths": None,
        "latencies": [[1, [3, 2]], [1, [1]]],
        "cycles": [[1, [0]], [2, []], [1, [0, 1]], [1, []]],
    }
    SCHEMA.validate(content)


def test_the_digest_is_that_of_the_canonical_json_of_everything_else() -> None:
    content = result_bundle(two_warps())
    said = content.pop("sha256")
    canonical = json.dumps(content, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
    assert said == hashlib.sha256(canonical.encode("ascii")).hexdigest() == digest({**content, "sha256": said})


def test_automata_are_written_with_places_and_paths() -> None:
    choice = Program((ProgramPlace("C", (1, 2)), ProgramPlace("L", (2,))), (0,))
    result = solve(Instance.merged([(choice, 2), (Program.chain("C"), 1)]))
    content = result_bundle(result)
    assert content["instance"]["groups"] == [
        {"warps": 2, "starts": [0], "places": [["C", [1, 2]], ["L", [2]]]},
        {"warps": 1, "string": "C"},
    ]
    assert sum(count for count, _ in content["witness"]["paths"]) == 3
    assert all(row in ([0], [0, 1]) for _, row in content["witness"]["paths"])


def test_equal_cycles_are_written_once() -> None:
    assert result_bundle(solve(Instance.of("CCC", 1)))["witness"]["cycles"] == [[3, [0]]]


def test_a_certificate_is_written_in_full() -> None:
    table = PotentialTable(((3, 2),), (5, 4), -1, ())
    nodes = (
        (PotentialNode(1, (1, 0)), 0),
        (PotentialNode(0, (1, 1), 1), 0),
        (PotentialNode(None, (0, 1), FINISHED_LABEL), 0),
    )
    certificate = Certificate(7, (Potential(0, ("C", "L"), (1, 1), 2, (table,), nodes),))
    written = result_bundle(replace(solve(Instance.of("CL", 2)), certificate=certificate))["certificate"]
    assert written == {
        "upper": 7,
        "potentials": [
            {
                "last_group": 0,
                "classes": ["C", "L"],
                "thresholds": [1, 1],
                "front": 2,
                "tables": [{"others": [[3, 2]], "last": [5, 4], "constant": -1, "ports": []}],
                "nodes": [[1, [1, 0], None, 0], [0, [1, 1], 1, 0], [None, [0, 1], -2, 0]],
            }
        ],
    }


@pytest.mark.parametrize(
    ("row", "written"),
    [
        ((1, 2, 3), [1, 2, 3]),
        ((1, 2, 3, 4), [[1, 1, 4]]),
        ((7, 7, 7, 7, 7, 9), [[7, 0, 5], 9]),
        ((0, 9, 8, 7, 6, 6, 6, 6, 5), [0, [9, -1, 4], 6, 6, 6, 5]),
        ((5,), [5]),
        ((3, 1, 4, 1, 5), [3, 1, 4, 1, 5]),
    ],
)
def test_long_progressions_are_written_short(row: tuple[int, ...], written: list[int | list[int]]) -> None:
    table = PotentialTable((row,), row, 0, (row,))
    certificate = Certificate(7, (Potential(0, ("C",), (1,), 0, (table,), ((PotentialNode(0, (1,)), 0),)),))
    content = result_bundle(replace(solve(Instance.of("C", 1)), certificate=certificate))
    (found,) = content["certificate"]["potentials"][0]["tables"]
    assert found["others"] == found["ports"] == [written]
    assert found["last"] == written


@given(st.lists(st.integers(-2, 2), min_size=1, max_size=20))
def test_a_row_is_read_as_it_was_written(row: list[int]) -> None:
    assert _coefficients(_progressions(row), "others", len(row)) == tuple(row)


@given(st.one_of(instances(most_warps=3), general_instances(most_warps=2)))
@settings(max_examples=50, deadline=None)
def test_every_bundle_is_valid_by_the_published_schema(instance: Instance) -> None:
    content = result_bundle(solve(instance))
    SCHEMA.validate(content)
    assert json.loads(json.dumps(content)) == content


@given(st.one_of(instances(most_warps=3), general_instances(most_warps=2)))
@settings(max_examples=50, deadline=None)
def test_what_is_read_from_a_bundle_is_what_was_written(instance: Instance) -> None:
    result = solve(instance, best_case=True)
    read = reading.bundle(parse(canonical_json(result_bundle(result))))
    assert canonical_json(instance_data(read.instance)) == canonical_json(instance_data(instance))
    assert (read.witness, read.bound.certificate, read.bound.weights) == (
        result.witness,
        result.certificate,
        result.weights,
    )
    claim, best = read.claim, result.best_case
    assert best is not None
    assert (Bounds(claim.lower, claim.upper), claim.evidence) == (result.bounds, result.upper_evidence)
    assert (claim.pessimistic, claim.best_case) == (result.pessimistic, (best.lower, best.upper))
    assert claim.history == result.history
    assert [phase for _, phase in read.bound.phases] == list(result.phases)


def test_writer_and_reader_call_their_schemas_alike() -> None:
    assert (writing.SCHEMA, told.SCHEMA) == (reading.SCHEMA, reading.RESULT_SCHEMA)
    assert writing.LEAST_PROGRESSION == proofs.LEAST_PROGRESSION


def test_a_file_is_written_whole(tmp_path: Path) -> None:
    path = tmp_path / "b.json"
    path.write_text("before")
    write_bundle(two_warps(), path)
    assert verify(parse(path.read_bytes())).outcome is Outcome.ACCEPTED
    assert [file.name for file in tmp_path.iterdir()] == ["b.json"]


def test_a_file_that_cannot_be_written_is_one_line_and_leaves_nothing(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot write the bundle: No such file or directory"):
        write_bundle(two_warps(), tmp_path / "missing" / "b.json")
    (tmp_path / "folder").mkdir()
    with pytest.raises(InputError, match="cannot write the bundle: Is a directory"):
        write_bundle(two_warps(), tmp_path / "folder")
    assert [file.name for file in tmp_path.iterdir()] == ["folder"]


def test_a_large_bundle_takes_work_in_proportion_to_its_size(tmp_path: Path) -> None:
    result = solve(Instance.of("CLLCCLCC" * 80, 64, Machine.of({"C": 1, "L": 1})))
    path = tmp_path / "b.json"
    instructions = 80 * 8 * 64
    assert calls(lambda: write_bundle(result, path), most=2 * instructions)
    accepted: list[Outcome] = []
    assert calls(lambda: accepted.append(verify(parse(path.read_bytes())).outcome), most=60 * instructions)
    assert accepted == [Outcome.ACCEPTED]
