"""The page about a task set: all that is known of each task, with drawings of schedules; nothing from outside runs."""

import json
import re
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import pytest

from makespan.deadlines.assessment import Assessment
from makespan.deadlines.report.chart import ALL, ChartView
from makespan.deadlines.report.page import MOST_SEGMENTS, PageContents, deadlines_page, deadlines_page_data
from makespan.host.errors import InputError
from makespan.report.gantt.svg import WIDTHS, chart_svg
from makespan.verify import digest
from tests.pages import embedded
from tests.pages import read as parsed
from tests.report.deadlines.windows import many, pipeline, shown
from tests.report.html.task_page import EVIL, TEXT, assessed, found


@pytest.fixture(scope="module")
def known(tmp_path_factory: pytest.TempPathFactory) -> Assessment:
    return assessed(tmp_path_factory.mktemp("tasks"), TEXT)


def test_each_task_has_a_section_with_what_it_waits_for(known: Assessment) -> None:
    page = deadlines_page_data(known, found(known))
    camera, net, evil = page["tasks"]
    assert [task["name"] for task in page["tasks"]] == ["camera", "net", EVIL]
    assert [(part["kind"], part["place"], part["time"]) for part in camera["segments"]] == [
        ("cpu", "cpu0", "1 ms"),
        ("copy", "h2d", "2 ms"),
        ("kernel", "gpu", "3 ms"),
    ]
    assert ("while it waits its thread", "spins") in camera["facts"]
    assert ("jitter", "1 ms") in camera["facts"]
    begun = "waits for one that has begun, of"
    assert [(wait["where"], wait["what"], wait["names"]) for wait in net["waits"]] == [
        ("data", "its jobs begin when these have ended", [("camera", "task-0")]),
        ("gpu (fixed-priority)", "lets go before it", [("camera", "task-0")]),
        ("gpu (fixed-priority)", begun, [(EVIL, "task-2")]),
    ]
    assert [wait["what"] for wait in camera["waits"]] == [begun]
    assert evil["without"] == "no time is known"
    assert page["worst"] in ("camera", "net")
    for task, verdict in zip(page["tasks"], known.verdict.tasks if known.verdict else (), strict=True):
        assert (task["method"], task["answer"]) == (verdict.method, "yes")
        assert len(task["parts"]) == len(verdict.parts)


def test_of_equal_priorities_each_goes_before_the_other(tmp_path: Path) -> None:
    page = deadlines_page_data(assessed(tmp_path, TEXT.replace("priority = 0", "priority = 1")), PageContents({}))
    before = {wait["what"]: [name for name, _ in wait["names"]] for wait in page["tasks"][2]["waits"]}
    assert before == {"lets go before it": ["camera", "net"]}


def test_the_page_stands_alone_and_shows_what_its_data_say(known: Assessment) -> None:
    page = deadlines_page(known, found(known))
    assert page == deadlines_page(known, found(known))
    content = embedded(parsed(page))
    assert content["sha256"] == digest({key: value for key, value in content.items() if key != "sha256"})
    assert content["result"]["answer"] == "schedulable"
    assert page.count("<script") == page.count("</script>") == 1
    assert "<b>" not in page
    assert not re.findall(r'(?:src|href)="(?!#|data:,")', page)
    assert " style=" not in page
    anchors = set(re.findall(r'href="#([^"]+)"', page))
    assert anchors == {anchor for anchor in anchors if f'id="{anchor}"' in page}


@pytest.mark.parametrize("layout", WIDTHS)
def test_the_drawing_has_every_bar_in_its_place_with_its_times(layout: str) -> None:
    for window, view in ((pipeline(), ALL), (pipeline(), ChartView(("a1",), (3, 12))), (many(40, 10), ALL)):
        found = shown(window, view)
        root = ElementTree.fromstring(chart_svg(found.chart, layout, "about", "x"))
        boxes = [(each.findtext("title") or "", each) for each in root.iter("rect") if each.find("title") is not None]
        runs = [each for title, each in boxes if " on " in title]
        assert len(runs) == len(found.runs)
        names = [each.text for each in root.iter("text") if each.get("class") == "name"]
        assert names == [*found.resources, *found.tasks]
        left, width = float(runs[0].get("x", 0)), WIDTHS[layout]
        (ground, *_) = (each for each in root.iter("rect") if each.get("class") == "ground")
        across = float(ground.get("width", 0)) / (found.end - found.start)
        for each, run in zip(runs, found.runs, strict=True):
            moved = (run.start - found.runs[0].start) * across
            assert float(each.get("x", 0)) == pytest.approx(left + moved, abs=0.2)
            assert float(each.get("x", 0)) + float(each.get("width", 0)) <= width
        assert len([path for path in root.iter("path") if path.get("class") == "arrow own"]) == sum(
            arrow.is_bold for arrow in found.chart.panels[0].arrows
        )


def test_what_is_written_into_a_bar_names_its_job_and_a_pointer_shows_its_times() -> None:
    for layout in WIDTHS:
        root = ElementTree.fromstring(chart_svg(shown(pipeline()).chart, layout, "about", "x"))
        written = {each.text for each in root.iter("text") if (each.get("class") or "").startswith("in")}
        assert {"a#0", "a1#0"} <= written <= {"a#0", "b#0", "a1#0", "#0"}
        titles = [each.text for each in root.iter("title")]
        assert "a1#0 on core cpu0, spins: 10 ms to 15 ms" in titles
        assert "a#0: 10 ms from arrival to end, 20 ms until its deadline" in titles


def test_a_page_that_would_be_too_large_is_refused(known: Assessment) -> None:
    task = known.task_set.tasks[1]
    many_tasks = tuple(replace(task, name=f"t{n}", segments=task.segments * 50) for n in range(101))
    huge = replace(known, task_set=replace(known.task_set, tasks=many_tasks, chains=()))
    with pytest.raises(InputError, match=f"a page has room for {MOST_SEGMENTS} segments, and these tasks have 5050"):
        deadlines_page_data(huge, PageContents({}))


def test_of_many_tasks_the_first_few_are_named(tmp_path: Path) -> None:
    row = '[[task]]\nname = "t{}"\nwcet = "1us"\nevidence = "x"\nperiod = "9ms"\ndeadline = "9ms"\npartition = "g"\n'
    text = '[[partition]]\nname = "g"\npolicy = "fifo"\n' + "".join(row.format(n) for n in range(20))
    page = deadlines_page_data(assessed(tmp_path, text), PageContents({}))
    (waits,) = page["tasks"][0]["waits"]
    assert (waits["what"], len(waits["names"]), waits["more"]) == ("takes turns with", 12, 7)
    assert page["worst"] is None
    assert json.dumps(page)
