"""The page in a browser: it shows what the data say, moves, prints, and neither complains nor asks for anything."""

import io
import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from matplotlib import image

from makespan.deadlines.report.page import deadlines_page
from makespan.kernels.flow import BoundBasis, LoopBound, LoopInfo
from makespan.model.instance import Instance
from makespan.model.result import Bounds, Result, Upper
from makespan.model.simulate import run
from makespan.proof.policy_gap import PolicyGap
from makespan.report.html import page_data, render_page
from tests import browser
from tests.pages import CONTEXT, EVIDENCE, data, gap, long_page, page_about, rows, slow
from tests.report.html.task_page import TEXT, assessed, found

_BLUE = """(() => {
    const chart = document.getElementById("gantt");
    const copy = new OffscreenCanvas(chart.width, chart.height).getContext("2d");
    copy.drawImage(chart, 0, 0);
    const dots = copy.getImageData(0, 0, chart.width, chart.height).data;
    let blue = 0;
    for (let at = 0; at < dots.length; at += 4) blue += !dots[at] && dots[at + 1] === 0x72 && dots[at + 2] === 0xb2;
    return blue;
})()"""
_WHEN_PRINTED = """window.seen = [];
window.addEventListener("beforeprint", () => seen.push(
    document.querySelectorAll("details:not([open])").length, document.getElementById("window").value));"""


@pytest.fixture(scope="module")
def tab() -> Iterator[browser.Tab]:
    if browser.EXECUTABLE is None:
        pytest.skip("no Chromium on this machine")
    with browser.browser() as opened:
        opened.resize(1000, 800)
        yield opened


@pytest.fixture
def opened(tab: browser.Tab, tmp_path: Path) -> Callable[[str], None]:
    """Open a page; afterwards it must have been silent and alone."""

    def call(text: str) -> None:
        path = tmp_path / "page.html"
        path.write_text(text)
        tab.events.clear()
        tab.open(path)
        assert tab.requests() == [path.as_uri()]

    return call


def _box(tab: browser.Tab) -> tuple[float, float, float, float]:
    """Left, top, width and height of the chart, in view."""
    tab.run("document.getElementById('schedule').scrollIntoView()")
    tab.settle()
    found = tab.run(
        "(b => [b.left, b.top, b.width, b.height])(document.getElementById('gantt').getBoundingClientRect())"
    )
    left, top, width, height = found
    return left, top, width, height


def _window(tab: browser.Tab) -> tuple[int, int]:
    tab.settle()
    first, last = re.findall(r"[\d,]+", tab.run("document.getElementById('window').value"))[:2]
    return int(first.replace(",", "")), int(last.replace(",", ""))


def _text(tab: browser.Tab, identity: str) -> str:
    tab.settle()
    return str(tab.run(f"document.getElementById('{identity}').textContent"))


def test_a_browser_shows_the_numbers_and_the_words_of_every_cycle(
    tab: browser.Tab, opened: Callable[[str], None]
) -> None:
    content = page_data(slow(), CONTEXT, EVIDENCE)
    opened(render_page(content))
    makespan = content["result"]["lower"]
    assert tab.run("document.querySelector('[data-value=lower]').textContent") == str(makespan)
    assert _window(tab) == (0, makespan)
    drawn = rows(content["chart"])
    lanes = 4
    tab.run("document.getElementById('gantt').focus()")
    for cycle in (0, 1, 17, makespan // 2, makespan - 1):
        tab.run(
            f"(e => {{ e.value = {cycle}; e.dispatchEvent(new Event('change')) }})(document.getElementById('cycle'))"
        )
        for _ in range(lanes + 6):
            tab.key("ArrowUp")
        for _ in range(lanes):
            tab.key("ArrowDown")
        for warp, row in enumerate(drawn):
            said = _text(tab, "here")
            assert said.startswith(f"warp {warp}, cycle {cycle}: ")
            at = next((each for each in row if each[0] <= cycle < each[0] + each[1]), None)
            words = {kind["why"] + kind["unit"]: kind["words"] for kind in content["chart"]["kinds"]}
            assert ("finished in cycle" if at is None else words[at[2] + at[3]]) in said
            if at is not None and at[1] > 1:
                assert said.endswith(f" (cycles {at[0]} to {at[0] + at[1] - 1})")
            if at is not None and at[2] == "issues":
                assert f"place {at[4]}\nk.ptx:{5 + (at[4] or 0)}  op{at[4]}\nsource k.cu:{at[4]}" in said
            tab.key("ArrowDown")
    assert tab.complaints() == []


def test_a_page_of_tasks_fits_a_desk_and_a_telephone(
    tab: browser.Tab, opened: Callable[[str], None], tmp_path: Path
) -> None:
    known = assessed(tmp_path, TEXT)
    opened(deadlines_page(known, found(known)))
    for width, drawn in ((1400, "wide"), (400, "narrow")):
        tab.resize(width, 900)
        assert tab.run("document.documentElement.scrollWidth") <= width
        seen = tab.run("[...document.querySelectorAll('#schedule svg.figure')].filter(e => e.clientHeight).length")
        assert seen == tab.run(f"document.querySelectorAll('#schedule svg.{drawn}').length") == 1
    fills = tab.run("[...document.querySelectorAll('#schedule .bars rect')].map(e => getComputedStyle(e).fill)")
    assert "rgb(0, 114, 178)" in fills
    assert tab.complaints() == []
    tab.resize(1000, 800)


def test_a_chart_that_is_hidden_does_not_keep_the_browser_busy(tab: browser.Tab, opened: Callable[[str], None]) -> None:
    opened(render_page(page_data(slow(), CONTEXT, EVIDENCE)))
    tab.run("(e => e.style.display = 'none')(document.getElementById('schedule'))")
    tab.run("document.getElementById('controls').dispatchEvent(new Event('change', {bubbles: true}))")
    tab.resize(700, 500)
    assert tab.complaints() == []
    tab.run("(e => e.style.display = '')(document.getElementById('schedule'))")
    assert _box(tab)[2] > 0


def test_a_browser_unfolds_the_instructions_of_a_line(tab: browser.Tab, opened: Callable[[str], None]) -> None:
    opened(render_page(page_data(slow(), CONTEXT, EVIDENCE)))

    def shown() -> list[str]:
        return list(
            tab.run(
                "[...document.querySelectorAll('.of')].filter(e => e.offsetHeight).map(e => e.cells[0].textContent)"
            )
        )

    assert shown() == []
    tab.run("document.querySelectorAll('.folds label')[1].click()")
    at = page_data(slow(), CONTEXT, EVIDENCE)["costs"]
    assert shown() == [at["instructions"][number]["line"] for number in at["sources"][1]["instructions"]]
    assert tab.complaints() == []


def test_a_browser_zooms_moves_hovers_and_filters(tab: browser.Tab, opened: Callable[[str], None]) -> None:
    content = page_data(slow(), CONTEXT, EVIDENCE)
    opened(render_page(content))
    left, top, width, height = _box(tab)
    makespan = content["result"]["lower"]
    tab.mouse("mouseWheel", left + 300, top + 60, deltaX=0, deltaY=-200)
    assert _window(tab) == (0, makespan), "the page scrolls until the chart has been clicked"
    left, top, width, height = _box(tab)
    tab.click(left + 300, top + 60)
    tab.mouse("mouseWheel", left + 300, top + 60, deltaX=0, deltaY=-200)
    first, last = _window(tab)
    assert 0 < first < last < makespan
    tab.mouse("mousePressed", left + 300, top + 60, button="left", clickCount=1)
    tab.mouse("mouseMoved", left + 200, top + 60, button="left", buttons=1)
    tab.mouse("mouseReleased", left + 200, top + 60, button="left", clickCount=1)
    assert _window(tab)[0] > first
    assert _window(tab)[1] - _window(tab)[0] <= last - first + 1
    tab.key("0")
    assert _window(tab) == (0, makespan)
    tab.key("+")
    assert _window(tab)[1] - _window(tab)[0] <= makespan // 2 + 1
    tab.key("0")
    tab.mouse("mouseMoved", left + width - 3, top + 30)
    assert re.match(r"port C0, cycle \d+: (held by warp \d+|idle)", _text(tab, "tip"))
    tab.mouse("mouseMoved", 2, 2)
    tab.settle()
    before = tab.run(_BLUE)
    tab.run("document.querySelector('input[name=class][value=C]').click()")
    tab.settle()
    assert before > 0
    assert tab.run(_BLUE) == 0
    tab.run("document.querySelector('input[name=class][value=C]').click()")
    choose = "(e => {{ e.value = '{}'; e.dispatchEvent(new Event('input')) }})(document.getElementById('filter'))"
    tab.run(choose.format("1-2, 5"))
    assert _box(tab)[3] < height
    tab.run(choose.format("nonsense"))
    assert tab.run("document.getElementById('filter').getAttribute('aria-invalid')") == "true"
    tab.run(choose.format(""))
    assert _box(tab)[3] == height
    assert tab.run("document.getElementById('filter').getAttribute('aria-invalid')") == "false"
    assert tab.complaints() == []


def test_a_browser_prints_the_whole_and_returns_to_where_it_was(
    tab: browser.Tab, opened: Callable[[str], None]
) -> None:
    opened(render_page(page_data(slow(), CONTEXT, EVIDENCE)))
    tab.run("document.getElementById('gantt').focus()")
    tab.key("+")
    before = _window(tab)
    tab.run(_WHEN_PRINTED)
    assert tab.pdf().startswith(b"%PDF-")
    assert tab.run("seen") == [0, f"cycles 0 to {slow().result.bounds.lower} of {slow().result.bounds.lower}"]
    assert _window(tab) == before
    assert tab.run("document.querySelectorAll('details[open]').length") == 0
    assert tab.complaints() == []


def test_a_browser_runs_no_script_that_somebody_adds(tab: browser.Tab, opened: Callable[[str], None]) -> None:
    text = render_page(data())
    added = "<script>window.added = 1</script><p onclick='window.added = 1' id='lure'>x</p></body>"
    opened(text.replace("</body>", added))
    tab.run("document.getElementById('lure').click()")
    assert tab.run("window.added") is None
    assert len(tab.complaints()) >= 2


@pytest.mark.parametrize(
    "text", ["</script><script>window.added = 1</script>", "\"'><img src=x onerror='window.added=1'>"]
)
def test_a_browser_takes_hostile_text_as_text(tab: browser.Tab, opened: Callable[[str], None], text: str) -> None:
    opened(render_page(page_about(text)))
    assert tab.run("window.added") is None
    assert tab.run("document.querySelector('#assumptions li').textContent") == text
    tab.run("document.getElementById('gantt').focus()")
    tab.key("ArrowDown")
    assert f"source {text}" in _text(tab, "here")
    assert tab.complaints() == []


def test_a_browser_draws_no_more_of_30_000_cycles_than_can_be_seen(
    tab: browser.Tab, opened: Callable[[str], None]
) -> None:
    opened(long_page(30_000))
    assert tab.run("document.getElementsByTagName('*').length") < 5_000
    tab.run("document.getElementById('gantt').focus()")
    strokes = tab.run("""(async () => {
        const canvas = CanvasRenderingContext2D.prototype, drawn = [];
        for (const [name, {value}] of Object.entries(Object.getOwnPropertyDescriptors(canvas)))
            if (typeof value === "function")
                canvas[name] = function (...given) { drawn[drawn.length - 1] += 1; return value.apply(this, given); };
        for (const key of ["+", "+", "+", "+", "ArrowRight", "+", "+", "+", "-", "0"]) {
            drawn.push(0);
            document.getElementById("gantt").dispatchEvent(new KeyboardEvent("keydown", {key, cancelable: true}));
            await new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)));
        }
        return drawn;
    })()""")
    assert min(strokes) > 0
    assert max(strokes) < 20_000
    assert tab.complaints() == []


@pytest.mark.parametrize("instance", [Instance.of("C", 1), Instance.of("CL", 1024), Instance.of("C|L", 4, blocks=2)])
def test_a_browser_shows_the_smallest_and_the_widest(
    tab: browser.Tab, opened: Callable[[str], None], instance: Instance
) -> None:
    schedule = run(instance, "gto")
    exact = Bounds(schedule.makespan, schedule.makespan)
    result = Result(instance, exact, schedule, Upper.SEARCH, schedule.makespan, exact, "search", 1.0, ())
    opened(render_page(page_data(PolicyGap(result, {"gto": schedule.makespan}), CONTEXT, EVIDENCE)))
    tab.run("document.getElementById('gantt').focus()")
    for key in ("+", "+", "ArrowRight", "-", "ArrowDown", "End", "Home"):
        tab.key(key)
    tab.key("0")
    assert _window(tab) == (0, schedule.makespan)
    assert tab.run("document.getElementById('gantt').height") > 50
    assert tab.complaints() == []


def test_a_narrow_window_is_not_scrolled_sideways(tab: browser.Tab, opened: Callable[[str], None]) -> None:
    tab.resize(360, 700)
    try:
        opened(render_page(data()))
        assert tab.run("document.documentElement.scrollWidth") <= 360
    finally:
        tab.resize(1000, 800)
    assert tab.complaints() == []


def test_on_a_telephone_every_chart_and_table_fits_without_scrolling(
    tab: browser.Tab, opened: Callable[[str], float]
) -> None:
    tab.resize(400, 800)
    try:
        loops = (
            LoopInfo(
                "$L__BB0_12",
                1234,
                "kernel_with_a_name.cu:1234",
                LoopBound(1000, False, "inferred: " * 9, BoundBasis.CODE),
                3,
            ),
        )
        opened(render_page(page_data(gap(), replace(CONTEXT, curve=(gap().result,), loops=loops), EVIDENCE)))
        shown = "[...document.querySelectorAll('.figure')].filter(each => each.getClientRects().length)"
        assert tab.run(f"{shown}.map(each => each.classList[1])") == ["narrow"] * 3
        edge = tab.run("document.documentElement.clientWidth")
        right = f"{shown}.flatMap(each => [...each.querySelectorAll('*')]).map(e => e.getBoundingClientRect().right)"
        assert tab.run(f"Math.max(...{right})") <= edge
        ends = (
            "[...each.querySelectorAll('text')].map(text => text.getBBox()).flatMap(box => [box.x, box.x + box.width])"
        )
        beyond = f"{shown}.filter(each => {ends}.some(end => end < 0 || end > each.viewBox.baseVal.width))"
        assert tab.run(f"{beyond}.map(each => each.outerHTML)") == []
        crossed = "[...document.querySelectorAll('#bounds .narrow .name')].some(e => e.getBBox().x <= 8)"
        assert not tab.run(crossed), "the line at 0 runs through a name"
        scrolled = "[...document.querySelectorAll('.wide:not(svg)')].filter(e => e.scrollWidth > e.clientWidth).length"
        assert tab.run(scrolled) == 0
        assert tab.run("parseFloat(getComputedStyle(document.querySelector('.narrow text')).fontSize)") >= 12
    finally:
        tab.resize(1000, 800)


def test_a_page_is_dark_where_the_reader_likes_it_dark_and_white_on_paper(
    tab: browser.Tab, opened: Callable[[str], float]
) -> None:
    ground = "getComputedStyle(document.body).backgroundColor"
    dark = {"name": "prefers-color-scheme", "value": "dark"}
    try:
        tab("Emulation.setEmulatedMedia", features=[dark])
        opened(render_page(data()))
        assert tab.run(ground) == "rgb(20, 20, 20)"
        assert tab.run("getComputedStyle(document.body).color") == "rgb(232, 232, 232)"
        assert tab.run("getComputedStyle(document.getElementById('gantt')).filter") != "none"
        tab("Emulation.setEmulatedMedia", media="print", features=[dark])
        assert tab.run(ground) == "rgb(255, 255, 255)"
        assert tab.run("getComputedStyle(document.getElementById('gantt')).filter") == "none"
    finally:
        tab("Emulation.setEmulatedMedia", media="", features=[])
    opened(render_page(data()))
    assert tab.run(ground) == "rgb(255, 255, 255)"
    assert tab.complaints() == []


def test_in_the_dark_waits_differ_from_the_page_and_from_an_idle_port(
    tab: browser.Tab, opened: Callable[[str], float]
) -> None:
    """The legend is as bright as the chart: one filter makes both dark."""
    try:
        tab("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": "dark"}])
        opened(render_page(page_data(slow(), CONTEXT, EVIDENCE)))
        tab.run("document.querySelector('.legend').scrollIntoView()")
        tab.settle()
        shades = image.imread(io.BytesIO(tab.screenshot()))[..., :3]
        boxes = tab.run("""[...document.querySelectorAll('.legend .swatch')].map(each => {
            const box = each.getBoundingClientRect();
            return [each.parentElement.textContent.trim(), box.left, box.top];
        })""")
    finally:
        tab("Emulation.setEmulatedMedia", media="", features=[])
    found = {words: shades[int(top) + 2 : int(top) + 12, int(left) + 2 : int(left) + 24] for words, left, top in boxes}
    tints = {words: np.median(box, axis=(0, 1)) for words, box in found.items()}
    (idle,) = (tint for words, tint in tints.items() if words.startswith("idle port"))
    waits = [tint for words, tint in tints.items() if "waits for a port" in words]
    assert len(waits) == 3
    for tint in waits:
        assert max(abs(tint - 20 / 255)) > 0.2
        assert max(abs(tint - idle)) > 0.1


def shades(tab: browser.Tab, opened: Callable[[str], float], instance: Instance, rectangle: str) -> list[str]:
    """The colours that the chart of a run has in a rectangle: left, top, width and height."""
    schedule = run(instance, "gto")
    exact = Bounds(schedule.makespan, schedule.makespan)
    result = Result(instance, exact, schedule, Upper.SEARCH, schedule.makespan, exact, "search", 1.0, ())
    opened(render_page(page_data(PolicyGap(result, {"gto": schedule.makespan}), CONTEXT, EVIDENCE)))
    found: list[str] = tab.run(
        """(() => {
        const chart = document.getElementById("gantt"), paper = chart.getContext("2d");
        const dots = paper.getImageData(RECTANGLE).data, found = new Set();
        for (let at = 0; at < dots.length; at += 4) found.add(dots.slice(at, at + 3).join());
        return [...found].sort();
    })()""".replace("RECTANGLE", rectangle)
    )
    return found


def test_bars_that_touch_leave_no_seam(tab: browser.Tab, opened: Callable[[str], float]) -> None:
    found = shades(tab, opened, Instance.of("C" * 601, 1), "chart.width / 2, 26, chart.width / 3, 1")
    assert found == ["0,114,178"]


def test_where_columns_mix_cycles_a_barrier_is_hatched_as_in_the_legend(
    tab: browser.Tab, opened: Callable[[str], float]
) -> None:
    found = shades(tab, opened, Instance.of("C" * 3000 + "|C", 2), "chart.width * 0.7, 54, 30, 10")
    assert found == ["154,154,154", "255,255,255"]
