"""`makespan benchmark`: runs that go on, schedules that are executed, and bounds that are beaten or contradicted."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from makespan.cli.question import from_folder, question_instance, solve_question
from makespan.many.commands.answering import VERSION
from makespan.many.commands.asking import QuestionRun
from makespan.many.library import claims
from makespan.many.library.judgement import standings
from makespan.many.spec import choose_questions, read_library
from makespan.model import strings
from makespan.verify import digest
from tests.command import Outcome as Told
from tests.command import Runner
from tests.sweep.here import crew_here

WE = f"makespan {VERSION}"
SHIPPED = Path(__file__).parents[2] / "benchmarks" / "library"
STRINGS = (
    "anomalies",
    "barriers",
    "constructed",
    "latencies",
    "long-strings",
    "paper",
    "paper-capacities",
    "partitions",
)
FILES = [f"../../instruction_strings/{name}" for name in ("paper.toml", "known_worst_cases.toml", "long.jsonl")]
TINY = """
title = "tiny"
origin = "by hand"
question = [
  { name = "one", string = "CLLCLL", warps = 2 },
  { name = "several", string = "CL", warps = 2, sms = 2, grid = 3, blocks-per-sm = 1 },
]
"""


class Library:
    """A library of an instance of one SM, where the worst case is 10, and one of two SMs."""

    def __init__(self, folder: Path, command: Runner) -> None:
        self.folder, self.command, self.results = folder / "library", command, folder / "results.sqlite"
        self.kept = folder / "kept"
        self.known = self.folder / claims.KNOWN
        for made in (self.folder, self.kept):
            made.mkdir()
        (self.folder / "tiny.toml").write_text(TINY)

    def __call__(self, name: str, *arguments: object) -> Told:
        update = ("--evidence", self.kept) if name in ("run", "check") else ()
        return self.command(name, self.folder, *arguments, *update)

    def solved(self, *arguments: object) -> Told:
        return self("run", "--time-limit", 5, "-o", self.results, *arguments)

    def claims(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.known.read_text().splitlines()]

    def ours(self) -> dict[str, Any]:
        """What a run claims of the first instance; nothing is known afterwards."""
        self.solved("--instance", "one", "--update")
        (line,) = self.claims()
        self.known.unlink()
        return line

    def submit(self, **fields: object) -> Path:
        """A file with what another solver claims of the first instance."""
        (entry,) = choose_questions(read_library(self.folder), [], ["one"], self.folder)
        line = {"instance": "one", "digest": digest(question_instance(entry.ask)), "solver": "theirs", "version": "7"}
        path = self.kept / "theirs.jsonl"
        path.write_text(json.dumps(line | {"seconds": 1.0} | fields) + "\n")
        return path


@pytest.fixture
def library(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Library:
    monkeypatch.setattr(QuestionRun, "crew", crew_here(wants_bundle=True))
    return Library(tmp_path, Runner("benchmark", capsys))


def test_a_run_that_is_better_than_what_is_known_says_so_and_writes_it_on_request(library: Library) -> None:
    worse = library.submit(lower=7, upper=10)
    worse.rename(library.known)
    for options in ((), ("--update",)):
        told = library.solved("--instance", "one", *options)
        assert told.code == 0
        assert told.out.splitlines() == [
            f"BEATEN: one: lower 10 by {WE}, 7 was known",
            "1 results, 1 bounds beaten, 0 contradictions",
        ]
    assert [(line["solver"], line["lower"], line["upper"]) for line in library.claims()] == [
        ("theirs", 7, 10),
        ("makespan", 10, 10),
    ]


def test_what_was_found_for_another_question_of_the_same_name_counts_for_nothing(library: Library) -> None:
    library.solved("--update", "--instance", "one")
    family = library.folder / "tiny.toml"
    family.write_text(TINY.replace("CLLCLL", "CLL"))
    told = library.solved("--update", "--instance", "one")
    assert (told.code, told.out) == (0, "1 results, 0 bounds beaten, 0 contradictions\n")
    assert f"left out: {library.known}:1: one was another question then" in told.err
    assert len(library.claims()) == 1
    family.write_text(TINY)
    assert library("check").code == 1
    assert library("check", library.results).out.count("WRONG") == 1  # of what is known, and not of the table


def interrupt(*_: object, **__: object) -> None:
    raise KeyboardInterrupt


def test_a_run_goes_on_where_it_stopped(library: Library) -> None:
    first = library.solved("--instance", "one")
    assert first.code == 0
    assert not library.known.exists()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("makespan.many.commands.asking.run_sweep", interrupt)
        stopped = f"interrupted: 1 of 2 are in {library.results}; the same command goes on\n"
        assert library.solved("--update") == Told(130, "", stopped)
    assert library.solved("--update").code == 0
    lines = library.claims()
    assert [line["instance"] for line in lines] == ["one", "several"]
    assert (lines[0]["lower"], lines[0]["upper"], lines[0]["limit"]) == (10, 10, 5.0)
    again = library.solved("--update")
    assert (again.code, again.out) == (0, "2 results, 0 bounds beaten, 0 contradictions\n")
    assert library.claims() == lines  # with the seconds of the first run


def test_schedules_are_executed_and_bundles_verified(library: Library) -> None:
    bundles = library.folder / "bundles"
    library.solved("--update", "--bundles", bundles)
    told = library("check", library.results, "--bundles", bundles)
    assert told.code == 0
    assert "2 instances, 2 claims known and 2 new: 0 schedules executed, 8 bounds proven by bundles" in told.out
    told = library("check")
    assert "2 claims known and 0 new: 2 schedules executed, 0 bounds proven by bundles; 0 wrong" in told.out
    evidence = next(bundles.glob(f"{library.claims()[0]['bundle']}.json"))
    evidence.write_text(evidence.read_text().replace('"upper":10', '"upper":9'))
    wrong = library("check", "--bundles", bundles)
    assert wrong.code == 1
    assert f"WRONG: {library.known}:1: one: {evidence}: " in wrong.out


def test_a_contradiction_is_told_and_kept_and_never_written(library: Library) -> None:
    library.solved("--update")
    before = library.known.read_text()
    told = library("check", library.submit(upper=9, evidence="a feeling"), "--update")
    assert told.code == 1
    assert f"CONTRADICTION: one: some schedule takes 10 cycles, says {WE}, and none more" in told.out
    (kept,) = library.kept.glob("contradiction-one-*.json")
    content = json.loads(kept.read_text())
    assert (content["lower"]["lower"], content["upper"]["upper"], content["upper"]["solver"]) == (10, 9, "theirs")
    assert content["more"]["groups"] == [{"warps": 2, "string": "CLLCLL"}]
    assert library.known.read_text() == before
    assert library("check", library.submit(lower=11)).code == 1


def test_a_contradiction_is_told_even_where_it_cannot_be_kept(library: Library) -> None:
    library.solved("--instance", "one", "--update")
    theirs, folder = library.submit(upper=9), library.folder / "not" / "yet"
    told = library.command("check", library.folder, theirs, "--evidence", folder)
    assert (told.code, len(list(folder.iterdir()))) == (1, 1)
    told = library.command("check", library.folder, theirs, "--evidence", theirs)
    assert told.code == 2
    assert told.out.startswith("CONTRADICTION: one: ")
    assert f"{theirs}: cannot make the folder of contradictions: File exists" in told.err
    told = library.solved("--bundles", theirs)
    assert (told.code, told.out) == (2, "")
    assert f"{theirs}: cannot make the folder of the bundles: File exists" in told.err


def test_a_run_believes_no_result_of_another_version(library: Library) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("makespan.many.commands.answering.VERSION", "0.0.1, theory 1")
        library.solved("--instance", "one")
    assert library.solved("--instance", "one", "--update").out == "0 results, 0 bounds beaten, 0 contradictions\n"
    assert library.claims() == []
    assert "makespan 0.0.1, theory 1" in library("table", library.results).out


def test_a_run_that_contradicts_what_is_known_keeps_its_bundle(library: Library) -> None:
    library.submit(upper=9).rename(library.known)
    told = library.solved("--instance", "one", "--update")
    assert told.code == 1
    (kept,) = library.kept.glob("contradiction-one-*.json")
    assert f"kept in {kept}" in told.out
    assert json.loads(kept.read_text())["more"]["schema"] == "makespan.bundle/3"
    assert [line["upper"] for line in library.claims()] == [9]


def test_a_bound_becomes_known_with_evidence_and_not_by_a_word(library: Library) -> None:
    ours = library.ours()
    told = library("check", library.submit(lower=10, upper=10), "--update")
    assert told.code == 0
    assert library.claims() == []
    library("check", library.submit(lower=10, upper=10, schedule=ours["schedule"]), "--update")
    (known,) = library.claims()
    assert (known["solver"], known["lower"], "upper" in known) == ("theirs", 10, False)
    library(
        "check", library.results, "--update"
    )  # whoever was first keeps the honour, and an upper bound needs a bundle
    assert [line["solver"] for line in library.claims()] == ["theirs"]


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"lower": 11}, "the witness takes 10 cycles, the lower bound says 11"),
        ({"digest": "0" * 64}, "about another question: its digest is 000000000000..."),
        ({"upper": 9}, "lower 10 exceeds upper 9"),
        ({"schedule": {"cycles": []}}, "witness lacks 'paths'"),
    ],
)
def test_a_claim_that_its_evidence_does_not_prove_is_wrong(
    fields: dict[str, object], message: str, library: Library
) -> None:
    ours = library.ours()
    theirs = library.submit(**{"lower": 10, "schedule": ours["schedule"]} | fields)
    told = library("check", theirs)
    assert told.code == 1
    assert f"WRONG: {theirs}:1: one: {message}" in told.out


def test_what_cannot_be_asked_is_told_by_file_and_name_and_costs_no_other(library: Library) -> None:
    (library.folder / "other.toml").write_text(
        'title = "t"\norigin = "s"\nquestion = [{ name = "none", string = "X", warps = 1 }]\n'
    )
    for told in (library("check"), library.solved()):
        assert told.code == 2
        assert "other.toml: question 'none': instruction string: 'X' at position 1 is no unit class" in told.err
    assert told.out == "2 results, 0 bounds beaten, 0 contradictions\n"


def test_an_engine_that_does_not_serve_an_instance_costs_no_other(library: Library) -> None:
    told = library.solved("--backend", "search")
    assert told.code == 0
    assert "several: not solved: --backend search is for one SM" in told.err
    assert told.out == "1 results, 0 bounds beaten, 0 contradictions\n"
    assert "makespan search" in library("table", library.results, "--each", "--instance", "one").out
    refused = library("run", "-o", library.results.with_suffix(".jsonl"))
    assert (refused.code, refused.out) == (2, "")
    assert "results are a table, as of a sweep: give a name such as results.sqlite" in refused.err


def test_a_claim_about_no_instance_of_the_library_is_refused_by_its_line(library: Library) -> None:
    theirs = library.submit(instance="two", lower=1)
    for command in ("check", "table"):
        told = library(command, theirs)
        assert (told.code, told.out) == (2, "")
        assert f"{theirs}:1: no instance 'two' in {library.folder}" in told.err


def test_the_table_of_a_sweep_of_a_family_has_results_too(library: Library, capsys: pytest.CaptureFixture[str]) -> None:
    table = library.folder.parent / "swept.sqlite"
    assert Runner("sweep", capsys)(library.folder / "tiny.toml", "-q", "-o", table).code == 0
    assert library("check", table).out.startswith("2 instances, 0 claims known and 2 new: ")


def test_tables_are_by_family_or_by_instance(library: Library) -> None:
    library.solved("--update")
    theirs = library.submit(lower=8, upper=10)
    rows = json.loads(library("table", theirs, "--format", "json").out)["rows"]
    assert [(row["solver"], row["claimed"], row["exact"], row["median_gap"]) for row in rows] == [
        ("best known", 2, rows[0]["exact"], rows[0]["median_gap"]),
        ("theirs 7", 1, 0, 25.0),
    ]
    shown = library("table", theirs, "--each", "--format", "markdown", "--instance", "one").out.splitlines()
    assert shown[0] == "| instance | lower | upper | gap | solver | evidence | seconds | difficulty |"
    assert shown[1] == "| --- | ---: | ---: | ---: | --- | --- | ---: | --- |"
    assert shown[2].startswith(f"| one | 10 | 10 | 0.0 % | {WE} |")
    assert shown[2].endswith("| trivial |")


def test_instances_are_shown_as_others_read_them(library: Library) -> None:
    one, several = map(json.loads, library("show").out.splitlines())
    assert one["question"]["groups"] == [{"warps": 2, "string": "CLLCLL"}]
    assert one["digest"] == digest(one["question"])
    assert several["question"]["sms"] == 2


def test_schedules_of_the_library_are_executed(capsys: pytest.CaptureFixture[str]) -> None:
    """Of all families but those of kernels and GPUs."""
    few = [option for family in STRINGS for option in ("--family", family)]
    told = Runner("benchmark", capsys)("check", SHIPPED, *few)
    assert (told.code, told.err) == (0, "")
    assert "0 wrong, 0 better, 0 contradictions" in told.out
    assert int(re.findall(r"(\d+) schedules", told.out)[0]) > 90


@pytest.mark.soak
def test_the_whole_library_can_be_asked_and_holds(capsys: pytest.CaptureFixture[str]) -> None:
    told = Runner("benchmark", capsys)("check", SHIPPED)
    assert (told.code, told.err) == (0, "")


def test_the_page_has_the_table_of_what_is_known(capsys: pytest.CaptureFixture[str]) -> None:
    table = Runner("benchmark", capsys)("table", SHIPPED, "--format", "markdown").out
    assert table in (SHIPPED.parents[1] / "docs" / "library.md").read_text()


@pytest.mark.parametrize("family", ["paper", "anomalies"])
def test_tiny_instances_of_the_library_are_what_they_are_known_to_be(family: str) -> None:
    known = {claim.instance: claim for claim in claims.read_claims(SHIPPED / claims.KNOWN)}
    for entry in choose_questions(read_library(SHIPPED), [family], [], SHIPPED):
        found = solve_question(from_folder(entry.ask, SHIPPED))
        assert (found.lower, found.upper) == (known[entry.name].lower, known[entry.name].upper), entry.name
        assert found.document.get("expected") == found.upper


def test_what_is_known_encloses_the_worst_cases_that_instance_files_state() -> None:
    every = read_library(SHIPPED)
    known = standings([entry.name for entry in every], claims.read_claims(SHIPPED / claims.KNOWN))
    files = {name: strings.read_instances(SHIPPED / name) for name in FILES}
    stated = 0
    for entry in choose_questions(every, ["paper", "anomalies", "long-strings"], [], SHIPPED):
        source, which = entry.ask["source"], entry.ask["instance"]
        expected = strings.choose_instance(files[source], which, source).makespan
        lower, upper = known[entry.name].interval
        assert None not in (lower, expected, upper)
        assert lower <= expected <= upper, entry.name  # type: ignore[operator]
        stated += 1
    assert stated > 40
