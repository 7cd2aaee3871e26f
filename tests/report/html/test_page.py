"""The page: its numbers are those of the JSON, its text is text, and it allows no script but its own."""

import hashlib
import json
import re
import shlex
from base64 import b64encode
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from itertools import accumulate, pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from makespan import cli
from makespan.cli.source import instances
from makespan.kernels.flow import SourceLine
from makespan.kernels.sass import Address, KernelResources, SassInstruction, SassKernel
from makespan.model.instance import Instance
from makespan.model.lapses import CacheLine, PlaceLapses
from makespan.model.machine import Machine, SchedulerPromise
from makespan.model.program import InstructionOrigin, Program, ProgramPlace
from makespan.model.schedule import Schedule
from makespan.model.simulate import POLICIES, run
from makespan.model.simulate.statistics import statistics
from makespan.model.strings import NamedInstance
from makespan.proof.bounds import any_units
from makespan.proof.engines import solve
from makespan.proof.policy_gap import PolicyGap, enclosing, runs
from makespan.report.gantt.svg import TILES
from makespan.report.html import PageContext, PageInput, marks, page_data, render_page
from makespan.report.html.chart import chart_data, encode_column, occupancy_data, warp_table
from makespan.report.lines import make_visible
from makespan.report.result.document import result_document
from makespan.report.schedule.activity import ScheduleTrace
from makespan.report.schedule.picture import lane_rows
from makespan.verify import Outcome, Verdict, digest
from tests.forgery import certificate
from tests.pages import (
    CONTEXT,
    EVIDENCE,
    Element,
    data,
    embedded,
    gap,
    long_page,
    numbers,
    page,
    page_about,
    read,
    rows,
    slow,
    spans,
)
from tests.report.schedule.cases import Case, cases

ROOT = Path(__file__).parents[3]


def _cells(table: Element) -> dict[str, list[str]]:
    """The rows of a table by the text of their head."""
    rows = [[cell.words for cell in row.inside] for row in table.all("tr")]
    return {head: rest for head, *rest in rows}


def test_the_numbers_of_a_page_are_those_of_the_json() -> None:
    result = gap().result
    found = {
        element.attributes["data-value"]: element.words for element in page() if "data-value" in element.attributes
    }
    assert found == {key: str(result_document(result)[key]) for key in ("lower", "upper", "pessimistic")}
    ladder = _cells(page().one("ladder"))
    assert ladder["worst case"][0] == f"{result.bounds.upper}"
    assert ladder["ML + MC"][0] == f"{result.pessimistic}"
    assert {name: int(ladder[name][0]) for name in POLICIES} == dict(gap().runs)
    assert _cells(page().one("points"))["6"][0] == f"{result.bounds.upper}"
    assert {key: value for key, value in embedded(page())["result"].items() if key != "explanation"} == result_document(
        result
    )


def test_the_data_in_a_page_are_the_page_data_and_have_the_digest_that_it_states() -> None:
    assert embedded(page()) == json.loads(json.dumps(data()))
    assert digest(data()) == data()["sha256"]
    assert data()["sha256"] in page().one("again").text
    assert EVIDENCE in page().one("again").text


def test_what_is_not_known_is_not_computed() -> None:
    assert gap().result.certificate is None
    assert "certificate" not in _cells(page().one("ladder"))
    assert "not computed in this run" in page().all("header")[0].words
    assert not [element for element in page() if element.text.strip() in ("None", "null", "nan")]


def test_a_certificate_in_the_evidence_has_a_row_of_its_own() -> None:
    instance = Instance.of("CLLC", 3)
    proof = certificate(instance)
    result = replace(solve(instance, best_case=True), certificate=proof)
    known = enclosing(result, {"lrr": run(instance, "lrr")})
    ladder = _cells(read(render_page(page_data(known, CONTEXT, EVIDENCE))).one("ladder"))
    assert ladder["certificate"][0] == f"{proof.upper}"


def test_a_bound_with_lapses_is_shown_with_its_parts_and_with_what_it_is_without_them() -> None:
    program = Program.chain("CLLCLL").lapsing((PlaceLapses(1, 0, 2, (CacheLine("code 0", 5),)),) * 6)
    result = solve(Instance.of(program, 3), best_case=True)
    known = page_data(enclosing(result, runs(result.instance, CONTEXT.choices)), CONTEXT, EVIDENCE)
    shown = read(render_page(known))
    assert shown.all("h1")[0].words == str(result)
    found = {element.attributes["data-value"]: element.words for element in shown if "data-value" in element.attributes}
    assert found == {"lower": "14", "upper": "53", "pessimistic": "53", "without_lapses": "14"}
    parts = _cells(shown.one("lapses"))
    assert {name: int(row[0]) for name, row in parts.items() if name != "Part"} == {
        "theorem 1'": 18, "+ lapses": 18, "+ late lines": 5, "+ misses": 12, "at most": 53
    }  # fmt: skip
    ladder = _cells(shown.one("ladder"))
    assert (ladder["without lapses"][0], ladder["worst case"][0]) == ("14", "14 to 53")
    assert "every work-conserving scheduler with known lapses" in ladder["worst case"][-1]
    assert "In this schedule no scheduler lapses, and no line is late." in shown.one("schedule").text
    assert "lapse" not in page().one("schedule").text


def test_the_pessimistic_bound_is_written_with_superscripts_everywhere() -> None:
    shown = [element.text for tag in ("header", "main") for element in page().all(tag)]
    assert not [text for text in shown if "M^L" in text]
    figures = [element for element in page().all("svg") if "figure" in (element.attributes.get("class") or "")]
    assert any("ML + MC" in figure.words for figure in figures)


def test_the_bound_for_comparison_has_the_name_that_fits_its_machine() -> None:
    instance = Instance.of("CL", 3, Machine("halves", Machine.of({"C": 1, "L": 1}).units, partitions=2))
    found = PolicyGap(solve(instance, best_case=True), {"lrr": run(instance, "lrr").makespan})
    shown = [read(render_page(page_data(of, CONTEXT, EVIDENCE))).all("header")[0].words for of in (gap(), found)]
    assert ["ML + MC" in words for words in shown] == [True, False]
    assert ["theorem 1S" in words for words in shown] == [False, True]


def test_a_page_says_which_schedulers_its_bounds_are_proven_for() -> None:
    fair = replace(gap().result.instance.machine, scheduler=SchedulerPromise.FAIR)
    instance = replace(gap().result.instance, machine=fair)
    result = replace(gap().result, instance=instance, assumptions=instance.assumptions)
    for of, words in ((gap(), "scheduler"), (replace(gap(), result=result), "scheduler that is fair")):
        shown = read(render_page(page_data(of, CONTEXT, EVIDENCE))).words
        assert f"proven for every work-conserving {words}, by " in shown
        assert f"Proven bounds hold for every work-conserving {words}. " in shown
        assert f"every work-conserving {words}; at most " in " ".join(row.remark for row in of.rows())


def test_every_figure_stands_there_for_a_wide_and_for_a_narrow_window() -> None:
    classes = Counter(element.attributes.get("class") for element in page().all("svg"))
    assert classes["figure wide"] == classes["figure narrow"] == 3


def test_the_ladder_begins_at_0_and_holds_every_mark() -> None:
    drawn = {e.attributes["class"]: e for e in page().one("bounds").all("svg")}
    for layout in marks.LAYOUTS:
        (left, right), width = layout.sides, layout.width
        figure = drawn[f"figure {layout.name}"]
        first = next(e for e in figure if e.attributes.get("class") == "tick")
        assert (first.text, float(first.attributes["x"] or 0)) == ("0", left)
        ends = []
        for row in data()["ladder"]:
            share = row["upper"] / max(row["upper"] for row in data()["ladder"])
            ends.append(left + share * (width - left - right))
        marked = [e for e in figure if e.attributes.get("class") in ("run", "proven", "bound") and e.tag != "text"]
        at = [float(e.attributes.get("cx") or re.findall(r"M(\S+)", e.attributes.get("d") or "")[0]) for e in marked]
        bars = ["H" in (e.attributes.get("d") or "") for e in marked]
        assert len(at) == len(ends)
        assert all(bar or x == pytest.approx(end, abs=0.1) for x, end, bar in zip(at, ends, bars, strict=True))
        assert max(ends) == width - right


def test_a_page_has_the_bounds_that_outlast_departures_of_the_hardware() -> None:
    ladder = _cells(page().one("ladder"))
    assert ladder["robust"][0] == f"{gap().result.pessimistic}"
    assert "even if warps run ahead" in ladder["robust"][-1]
    assert "any units" not in ladder, "there is no interval"
    ladder = _cells(read(render_page(page_data(slow(), CONTEXT, EVIDENCE))).one("ladder"))
    assert ladder["any units"][0] == str(any_units(slow().result.instance))


def test_numbers_of_a_page_are_written_one_way() -> None:
    shown = read(long_page(3_000))
    words = " ".join(element.words for tag in ("header", "main") for element in shown.all(tag))
    assert re.findall(r"\d{4,}", words)
    assert not re.findall(r"\d,\d{3}", words)


def test_between_the_points_of_a_curve_nothing_is_drawn() -> None:
    bounded = {"warps": 2, "lower": 5, "upper": 8, "pessimistic": 10}
    exact = {"warps": 4, "lower": 9, "upper": 9, "pessimistic": 20}
    drawn = read(
        render_page({**data(), "curve": [{**each, "status": "", "evidence": ""} for each in (bounded, exact)]})
    )
    for figure in (e for e in drawn.one("curve").all("svg")):
        (circle,), (bar,) = figure.all("circle"), figure.all("path")
        pessimistic = float(figure.all("rect")[0].attributes["y"] or 0) + 3.5
        x, upper, lower = map(float, re.findall(r"^M(\S+) (\S+) .* V(\S+)", bar.attributes["d"] or "")[0])
        assert pessimistic < upper < lower
        assert x < float(circle.attributes["cx"] or 0)
    assert not page().one("curve").all("polyline")
    assert not page().one("curve").all("polygon")


def test_the_legend_shows_the_hatches_of_the_chart() -> None:
    instance = Instance.of("CS|S", 3, Machine.of({"C": 1, "S": 1}))
    schedule = run(instance, "lrr")
    told = chart_data(ScheduleTrace.of(instance, schedule))
    assert {kind["words"]: kind["tile"] for kind in told["kinds"]} == {
        "issues to C": "", "issues to S": TILES["/"], "ready, waits for a port of C": "",
        "ready, waits for a port of S": TILES["/"], "waits at a barrier": TILES["\\"],
    }  # fmt: skip
    *shown, idle = told["legend"]
    assert idle["words"].startswith("idle port")
    for each in shown:
        (kind,) = (kind for kind in told["kinds"] if kind["words"] == each["words"])
        face, hatch, line = each["look"]
        assert (kind["colour"], kind["line"], kind["tile"]) == (face, line, TILES[hatch[0]] if hatch else "")


def test_a_page_has_the_structure_that_screen_readers_need() -> None:
    root = page()
    assert [len(root.all(tag)) for tag in ("h1", "main", "header", "nav", "title")] == [1] * 5
    levels = [int(element.tag[1]) for element in root if re.fullmatch("h[1-6]", element.tag)]
    assert all(after <= before + 1 for before, after in pairwise(levels))
    identities = [element.attributes["id"] for element in root if "id" in element.attributes]
    assert len(set(identities)) == len(identities)
    for link in root.all("a"):
        assert (link.attributes["href"] or "").removeprefix("#") in identities
    for picture in (*root.all("svg"), *root.all("canvas")):
        assert picture.attributes.get("aria-hidden") or picture.attributes.get("aria-label")
    for table in root.all("table"):
        assert all(cell.attributes.get("scope") in ("row", "col") for cell in table.all("th"))
    for field in root.all("input"):
        assert any(field in label.inside and label.words for label in root.all("label"))
    assert "JavaScript" in root.all("noscript")[0].text


def test_a_page_asks_for_nothing_and_allows_nothing_but_its_own_script_and_style() -> None:
    root = page()
    (policy,) = (
        meta.attributes["content"] for meta in root.all("meta") if meta.attributes.get("http-equiv", "") is not None
        and meta.attributes.get("http-equiv") == "Content-Security-Policy"
    )  # fmt: skip
    (style,), (shown, script) = root.all("style"), root.all("script")
    assert shown.attributes["type"] == "application/json"
    assert "type" not in script.attributes
    assert policy == (
        f"default-src 'none'; script-src {_hash(script.text)}; style-src {_hash(style.text)}; img-src data:;"
        " base-uri 'none'; form-action 'none'"
    )
    for element in root:
        for name, value in element.attributes.items():
            assert not name.startswith("on")
            assert name != "style"
            assert name not in ("src", "href", "action", "data", "poster") or (value or "").startswith(("#", "data:"))
    assert not re.search(
        r"https?:|@import|url\((?!#)|\beval\b|new Function|innerHTML|fetch\(", script.text + style.text
    )


def _hash(text: str) -> str:
    return f"'sha256-{b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


# ---- text from outside

NASTY = st.text(min_size=1, max_size=30) | st.sampled_from(
    [
        "<script>alert(1)</script>", "</script><script>alert(1)</script>", "<!--<script>",
        "\"'><img src=x onerror=alert(1)>",
        "a\u202egnp.exe", "{{ 7*7 }}{% raw %}", "&lt;b&gt;", "]]>", "\udcff\ud800", "\u2028\u2029\x00", "é漢字🙂" * 900,
        "x" * 100_000, "javascript:alert(1)", "${alert(1)}", "\\u003c/script",
    ]
)  # fmt: skip


def _tags(root: Element) -> list[tuple[str, tuple[str, ...]]]:
    return [(element.tag, tuple(element.attributes)) for element in root]


@cache
def _harmless_tags() -> list[tuple[str, tuple[str, ...]]]:
    return _tags(read(render_page(page_about("harmless"))))


@settings(max_examples=60)
@given(NASTY)
def test_text_from_outside_is_text_everywhere(text: str) -> None:
    content = page_about(text)
    made = render_page(content)
    root = read(made)
    assert _tags(root) == _harmless_tags()
    made.encode("utf-8")
    assert not set(made) & {*map(chr, range(0x202A, 0x202F)), *map(chr, range(0x2066, 0x206A)), "\u2028", "\0", "\x1b"}
    assert embedded(root) == json.loads(json.dumps(content))
    plain = "\n".join(element.text for element in root.all("body"))
    assert plain.count(make_visible(text)) >= 8
    assert len(made) < 500_000


@given(st.text())
def test_visible_text_hides_nothing_and_keeps_what_prints(text: str) -> None:
    assert make_visible(text, 10**6).isprintable()
    assert not text.isprintable() or make_visible(text, 10**6) == text


# ---- the chart


@given(st.lists(st.integers(-(2**40), 2**40) | st.sampled_from([0, 1, -1, 63, 64, -64, -65])))
def test_a_column_is_read_as_it_was_written(values: list[int]) -> None:
    assert numbers(encode_column(values)) == values


@settings(max_examples=150)
@given(cases())
def test_the_chart_of_a_page_is_the_schedule(case: Case) -> None:
    instance, schedule = case
    found = ScheduleTrace.of(instance, schedule)
    data = chart_data(found)
    drawn = rows(data)
    issued = [(warp, stretch) for warp, row in enumerate(drawn) for stretch in row if stretch[2] == "issues"]
    ops = sorted((first, warp, place) for warp, (first, _, _, _, place, _) in issued)
    assert ops == [tuple(op) for op in schedule.ops(instance)]
    on_ports = {(first, warp, unit, port) for warp, (first, _, _, unit, _, port) in issued}
    assert on_ports == {(bar.first_cycle, bar.warp, bar.unit, bar.port) for bar in found.bars}
    for row in (row for row in data["rows"] if row["warp"] is not None):
        assert set(numbers(row["who"])) == {row["warp"]}
    lanes = lane_rows(found, 10**9)
    told_lanes = Counter(
        (row["name"], first, cycles, why, unit, who)
        for row in data["rows"]
        if row["warp"] is None
        for (first, cycles, why, unit, *_), who in zip(spans(data, row), numbers(row["who"]), strict=True)
    )
    assert told_lanes == Counter(
        (
            lanes.rows[s.row].label, s.first_cycle, s.cycles, "issues" if s.why is None else str(s.why), s.unit,
            -1 if s.warp is None else s.warp,
        )
        for s in lanes.spans
    )  # fmt: skip
    told = Counter[str]()
    for row in drawn:
        for _, cycles, why, *_ in row:
            told[why] += cycles
    ways, classes = statistics(instance, schedule).warps, instance.machine.capacities
    assert told["stalled"] + told["result"] == ways.latency
    del told["stalled"], told["result"]
    assert +told == +Counter(
        issues=ways.issuing,
        port=sum(cycles for name, cycles in ways.ports.items() if name in classes),
        resource=sum(cycles for name, cycles in ways.ports.items() if name not in classes),
        slot=ways.issue_slot,
        barrier=ways.barrier,
    )


@settings(max_examples=80)
@given(cases(), st.integers(1, 12))
def test_the_occupancy_is_that_of_the_schedule(case: Case, most: int) -> None:
    instance, schedule = case
    trace = ScheduleTrace.of(instance, schedule)
    issued, beside = trace.bars, trace.holds
    use = occupancy_data(trace, most_buckets=most)
    width, held = use["bucket_cycles"], Counter[tuple[str, int]]()
    stretches = [(bar.unit, bar.first_cycle, bar.cycles) for bar in issued]
    for name, first, cycles in [*stretches, *((hold.resource, hold.first_cycle, hold.cycles) for hold in beside)]:
        for cycle in range(first, min(first + cycles, schedule.makespan)):
            held[name, cycle // width] += 1
    for each in use["classes"]:
        assert len(each["held"]) == -(-schedule.makespan // width) <= most
        assert each["held"] == [held[each["name"], bucket] for bucket in range(len(each["held"]))]
    counts = statistics(instance, schedule).classes
    assert {each["name"]: each["total"] for each in use["classes"]} == {u: counts[u].port_cycles for u in counts}


@settings(max_examples=80)
@given(cases())
def test_the_table_of_warps_is_that_of_the_schedule(case: Case) -> None:
    instance, schedule = case
    table = list(warp_table(ScheduleTrace.of(instance, schedule), instance.warps))
    assert max(row["finish_cycle"] for row in table) == schedule.makespan
    counts = statistics(instance, schedule).warps
    assert sum(schedule.makespan - row["finish_cycle"] for row in table) == counts.finished
    assert [sum(row[key] for row in table) for key in ("instructions", "slot", "barrier")] == [
        counts.issuing, counts.issue_slot, counts.barrier
    ]  # fmt: skip
    assert sum(row["stalled"] + row["result"] for row in table) == counts.latency
    assert sum(row["port"] + row["resource"] for row in table) == sum(counts.ports.values())


def test_a_place_is_told_with_the_line_that_it_comes_from() -> None:
    origins = (
        InstructionOrigin("k.ptx", 7, "add", "k.cu:3"),
        InstructionOrigin("k.ptx", 9, "ld"),
        InstructionOrigin("k.ptx", 7, "add", "k.cu:3"),
    )
    places = (ProgramPlace("C", (1, 2)), ProgramPlace("L", (2,)), ProgramPlace("C", (3,)))
    instance = Instance.of(Program(places, origins=origins), 1)
    schedule = Schedule(((0,), (0,)), ((0, 2),))
    drawn = chart_data(ScheduleTrace.of(instance, schedule))
    (known,) = drawn["places"]
    assert list(accumulate(numbers(known["place"]))) == [0, 2]
    assert numbers(known["line"]) == [0, 0]
    assert drawn["lines"] == [{"at": "k.ptx:7", "text": "add", "source": "k.cu:3"}]


def test_a_chart_that_no_browser_would_like_is_left_out_with_a_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("makespan.report.html.chart.MOST_STRETCHES", 10)
    root = read(render_page(page_data(gap(), CONTEXT, EVIDENCE)))
    assert not root.all("canvas")
    assert "a page holds" in root.one("schedule").words


def test_a_page_about_30_000_cycles_is_small() -> None:
    assert len(long_page(30_000).encode()) < 900_000  # it grows in proportion or less, so 100,000 stay below 3 MB


# ---- the command


Shell = Callable[[str], tuple[int, str, str]]


@pytest.fixture
def shell(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Shell:
    """Run a line `makespan ...` in an empty folder, with a copy of some samples."""
    for name in ("divergent.ptx", "polynomial.ptx", "fir.ptx"):
        (tmp_path / name).write_bytes((ROOT / "ptx" / name).read_bytes())
    monkeypatch.chdir(tmp_path)

    def call(line: str) -> tuple[int, str, str]:
        word, *words = shlex.split(line)
        assert word == "makespan"
        code = cli.run(words)
        return code, *capsys.readouterr()

    return call


def test_a_page_is_about_what_solve_finds_and_verify_accepts(shell: Shell) -> None:
    asked = "makespan report polynomial.ptx --warps 8 --capacity C=1,L=1 --time-limit 2"
    code, out, _ = shell(f"{asked} --curve 7..8 --bundle e.json -o p.html")
    assert (code, out) == (
        0,
        "exact for the PTX as written, if every instruction takes one cycle: the worst case is 267 cycles\n"
        "page: p.html\nbundle: e.json\n",
    )
    root = read(Path("p.html").read_text())
    content = embedded(root)
    assert content["verification"]["outcome"] == "accepted"
    assert content["bundle_sha256"] == json.loads(Path("e.json").read_bytes())["sha256"]
    assert [point["warps"] for point in content["curve"]] == [7, 8]
    assert content["curve"][1]["upper"] == content["result"]["upper"] == 267
    source = (ROOT / "ptx" / "polynomial.ptx").read_bytes()
    assert content["inputs"] == [
        {"what": "source", "name": "polynomial.ptx", "bytes": len(source), "sha256": hashlib.sha256(source).hexdigest()}
    ]
    solve_it, verify_it, _, make_it = (command["line"] for command in content["commands"])
    assert sorted(make_it.split()) == sorted(f"{asked}.0 --curve 7..8 --bundle e.json --output p.html".split())
    Path("e.json").unlink()
    assert shell(solve_it)[0] == shell(verify_it)[0] == 0


def test_loops_and_their_bounds_are_told(shell: Shell) -> None:
    Path("bounds.csv").write_text("$L__BB0_1,==16\n")
    assert shell("makespan report fir.ptx --warps 2 --loop-bound bounds.csv -o p.html")[0] == 0
    content = embedded(read(Path("p.html").read_text()))
    (loop,) = content["loops"]
    assert (loop["label"], loop["bound"], loop["exact"]) == ("$L__BB0_1", 16, True)
    assert "bounds.csv" in loop["bound_source"]
    assert [each["what"] for each in content["inputs"]] == ["source", "loop bounds"]


def test_a_page_without_check_says_so(shell: Shell) -> None:
    assert shell("makespan report --string CLLC --warps 3 --no-check -o p.html")[0] == 0
    root = read(Path("p.html").read_text())
    assert embedded(root)["verification"] is None
    assert "not computed in this run" in root.words
    assert "--no-check" in embedded(root)["commands"][3]["line"]


def test_an_expected_value_that_is_wrong_is_an_answer_of_no(shell: Shell) -> None:
    Path("i.toml").write_text('[[instance]]\nstring = "CL"\nwarps = 2\ncapacity = {C = 1, L = 1}\nmakespan = 9\n')
    assert shell("makespan report i.toml -o p.html")[0] == 1


def test_what_the_checker_rejects_never_becomes_a_page(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("makespan.verify.verify", lambda document: Verdict(Outcome.REJECTED, "made up"))
    code, _, err = shell("makespan report --string CL --warps 2 -o p.html")
    assert (code, Path("p.html").exists()) == (70, False)
    assert "the independent checker rejects the result: made up" in err


def test_a_file_that_changes_meanwhile_is_refused(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    def changing(**source: Any) -> tuple[NamedInstance, ...]:
        found = instances(**source)
        Path("divergent.ptx").write_text("// another kernel", "utf-8")
        return found

    monkeypatch.setattr("makespan.cli.report.instances", changing)
    monkeypatch.setattr("makespan.cli.report._launched_kernel", lambda source: None)
    code, _, err = shell("makespan report divergent.ptx --warps 2 -o p.html")
    assert (code, err) == (2, "makespan: a file changed while it was read: run this again\n")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("--string CL --warps 2 -o p.txt", "must end in .html"),
        ("--string CL --warps 2 -o missing/p.html", "cannot write the page"),
        ("--string CL --warps 2 --bundle p.html -o p.html", "the name of a bundle must end in .json"),
        ("--string CL --warps 1..3 -o p.html", "for a range of warps give --curve"),
        ("- --input-format ptx --warps 2 -o p.html", "give a file, not '-'"),
        ("i.toml --curve 1..2 -o p.html", "--curve stands beside --warps"),
        ("nowhere.ptx --warps 2 -o p.html", "nowhere.ptx: cannot read the source: No such file"),
    ],
)
def test_what_cannot_become_a_page_is_refused(shell: Shell, options: str, message: str) -> None:
    Path("i.toml").write_text('[[instance]]\nstring = "CL"\nwarps = 2\ncapacity = {C = 1, L = 1}\n')
    code, _, err = shell(f"makespan report {options}")
    assert code == 2
    assert message in err
    assert not Path("p.html").exists()


def test_points_of_the_curve_that_an_interrupt_left_out_are_named() -> None:
    known = gap()
    context = replace(CONTEXT, curve=(known.result,), missing=(7, 8))
    page = page_data(known, context, EVIDENCE)
    assert page["curve_missing"] == [7, 8]
    assert render_page(page).count("not computed</td><td>interrupted") == 2


def data_of(instance: Instance, context: PageContext = CONTEXT) -> dict[str, Any]:
    runs = {policy: run(instance, policy) for policy in POLICIES}
    return page_data(enclosing(solve(instance), runs), context, EVIDENCE)


def test_every_cycle_of_a_warp_is_in_the_costs_of_one_line() -> None:
    places = (ProgramPlace("C", (1,)), ProgramPlace("L", (2,)), ProgramPlace("C", (3,)))
    origins = (
        InstructionOrigin("k.ptx", 7, "add", "k.cu:2"),
        InstructionOrigin("k.ptx", 9, "ld"),
        InstructionOrigin("k.ptx", 10, "sub", "k.cu:2"),
    )
    source = PageInput("source", "k.cu", b"\nx = y;\r\n")
    content = data_of(Instance.of(Program(places, origins=origins), 2), replace(CONTEXT, inputs=(source,)))
    told = content["costs"]
    assert [(row["line"], row["text"], row["issued"]) for row in told["instructions"]] == [
        ("7", "add", 2), ("9", "ld", 2), ("10", "sub", 2)
    ]  # fmt: skip
    assert [(row["source"], row["text"], row["issued"], row["instructions"]) for row in told["sources"]] == [
        ("k.cu:2", "x = y;", 4, [0, 2]), ("", "", 2, [1])
    ]  # fmt: skip
    assert sum(row["cycles"] for row in told["sources"]) == told["total"]["cycles"]
    assert told["total"]["cycles"] == sum(row["finish_cycle"] for row in content["warps"]["listed"])
    section = read(render_page(content)).one("costs")
    by_line, by_instruction = section.all("table")
    assert [row.inside[0].words for row in by_line.all("tr")] == ["Line", "2", "7", "10", "not known", "9"]
    assert [[cell.words for cell in row.inside[:5]] for row in by_instruction.all("tr")][1:] == [
        ["7", "3", "42.9 %", "add", "2 x = y;"],
        ["9", "2", "28.6 %", "ld", ""],
        ["10", "2", "28.6 %", "sub", "2 x = y;"],
    ]
    assert "For a port" in by_line.words
    assert not any(left_out in section.words for left_out in ("At a barrier", "Control bits", "PTX"))
    assert data_of(Instance.of("CL", 2))["costs"] is None


def test_machine_code_stands_beside_its_ptx_and_control_bits() -> None:
    ptx = SourceLine("PTX of k.cubin", 2)
    code = SassInstruction(Address(0), "MOV", word=5 << 105, ptx=ptx), SassInstruction(Address(16), "EXIT", ptx=ptx)
    kernel = SassKernel("k", "k.cubin", "k.cubin", 86, code, KernelResources(1), ptx_text="\n\tmov\t%r1;\n")
    origins = [InstructionOrigin("k.cubin", each.address, str(each)) for each in code]
    told = data_of(Instance.of(Program.chain("CL", origins=origins), 2), replace(CONTEXT, kernel=kernel))
    rows = read(render_page(told)).one("costs").all("tr")[1:]
    assert [[cell.words for cell in (row.inside[0], *row.inside[3:6])] for row in rows] == [
        ["0x0", "MOV;", "2 mov %r1;", "B------:R0:W0:Y:S05"], ["0x10", "EXIT;", "", "B------:R0:W0:Y:S00"]
    ]  # fmt: skip


def test_instructions_that_cost_least_are_left_out_of_a_page(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("makespan.report.html.data.MOST_INSTRUCTIONS", 2)
    origins = [InstructionOrigin("k.ptx", line, "op", f"k.cu:{line}") for line in range(4)]
    told = data_of(Instance.of(Program.chain("CLCL", origins=origins), 3))["costs"]
    kept = [row["line"] for row in told["instructions"]]
    assert (told["left_out"], kept) == (2, sorted(kept))
    assert [row["source"] for row in told["sources"]] == [
        f"k.cu:{told['instructions'][at]['line']}" for row in told["sources"] for at in row["instructions"]
    ]
    assert sum(row["cycles"] for row in told["instructions"]) * 2 >= told["total"]["cycles"]
