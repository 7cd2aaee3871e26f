"""`makespan report` for a whole GPU, and its gate, there and on one SM."""

import json
import re
from pathlib import Path

import pytest

from makespan.verify import digest
from tests.command import Runner

LAUNCH = ("--string", "CLLCLL", "--warps", 2, "--grid", 18, "--sms", 4, "--blocks-per-sm", 2)


def test_a_page_has_verdict_check_picture_and_evidence(report: Runner, tmp_path: Path) -> None:
    page, bundle = tmp_path / "gpu.html", tmp_path / "evidence.json"
    told = report(*LAUNCH, "-o", page, "--bundle", bundle)
    text = page.read_text("utf-8")
    assert told.code == 3
    assert told.out.splitlines()[1:] == [f"page: {page}", f"bundle: {bundle}"]
    data = json.loads(re.findall('id="page-data">(.*?)</script>', text)[0])
    assert data["sha256"] == digest({key: value for key, value in data.items() if key != "sha256"})
    assert data["bundle_sha256"] == json.loads(bundle.read_text())["sha256"]
    assert data["verdict"] == told.out.splitlines()[0]
    assert data["verification"]["outcome"] == "accepted"
    assert text.count('<svg class="figure gantt ') == 2  # wide and narrow
    assert f"end of this schedule: cycle {data['result']['lower']}" in data["picture"]
    assert f'<dd data-value="upper">{data["result"]["upper"]}</dd>' in text
    assert not re.findall(r'(?:src|href)="(?!data:|#)', text)


def test_what_is_for_one_sm_is_refused(report: Runner, tmp_path: Path) -> None:
    told = report(*LAUNCH, "-o", tmp_path / "gpu.html", "--curve", "1..4")
    assert (told.code, list(tmp_path.iterdir())) == (2, [])
    assert "--curve and --backend are for one SM" in told.err


@pytest.mark.parametrize(
    ("words", "deadline", "code", "outcome"),
    [
        (("--string", "CLLCLL", "--warps", 2), "10ns", 0, "met"),
        (("--string", "CLLCLL", "--warps", 2), "9ns", 1, "missed"),
        ((*LAUNCH, "--time-limit", 0.1), "9ns", 1, "missed"),
    ],
)
def test_a_deadline_stands_on_the_page_and_is_the_exit_code(
    words: tuple[object, ...], deadline: str, code: int, outcome: str, report: Runner, tmp_path: Path
) -> None:
    path = tmp_path / "gate.html"
    told = report(*words, "--no-check", "--steps", "--deadline", deadline, "--clock", "1GHz", "-o", path)
    data = json.loads(re.findall('id="page-data">(.*?)</script>', path.read_text("utf-8"))[0])
    gate = data["deadline"]
    lines = told.err.splitlines()
    assert [json.loads(line)["upper"] for line in lines[-1:]] == [data["result"]["upper"]]
    assert "--steps" not in path.read_text("utf-8")
    assert (told.code, gate["outcome"], gate["slack_cycles"]) == (
        code,
        outcome,
        int(deadline[:-2]) - data["result"]["upper"],
    )
    assert f'<p class="gate {outcome}"><strong>D{gate["words"][1:]}.</strong></p>' in path.read_text("utf-8")
    assert gate["words"].startswith(f"deadline {outcome}")
    simulated = [each["line"] for each in data["commands"] if each["line"].startswith("makespan simulate")]
    assert not [line for line in simulated if "--deadline" in line or "--clock" in line]
