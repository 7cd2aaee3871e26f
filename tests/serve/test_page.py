"""The page in a browser: a question is asked and its answer seen, an error stands beside its field, no more happens."""

import time

import pytest

from tests import browser
from tests.serve.conftest import Client

_TOO_WIDE = "document.documentElement.scrollWidth > document.documentElement.clientWidth"


def _wait(tab: browser.Tab, condition: str) -> None:
    while not tab.run(condition):
        time.sleep(0.05)


def test_a_question_is_asked_and_its_answer_seen(client: Client) -> None:
    if browser.EXECUTABLE is None:
        pytest.skip("no Chromium on this machine")
    with browser.browser() as tab:
        tab.resize(400, 900)
        tab("Page.navigate", url=client.server.url)
        _wait(tab, "document.readyState === 'complete' && document.getElementById('solve') !== null")
        tab.run("window.get = (id) => document.getElementById(id); get('time-limit').value = '<img src=x>'")
        tab.run("get('solve').click()")
        _wait(tab, "!get('time-limit-error').hidden")
        assert "'<img src=x>' is no number of seconds" in tab.run("get('time-limit-error').textContent")
        assert tab.run("[document.images.length, document.activeElement.id]") == [0, "time-limit"]
        assert tab.run("get('time-limit').getAttribute('aria-invalid')") == "true"
        tab.run("get('time-limit').value = '5'; get('source').value = 'CLL CLL'; get('warps').value = '2'")
        tab.run("get('warps').focus()")
        tab.key("Enter", code="Enter", windowsVirtualKeyCode=13, text="\r")
        _wait(tab, "!get('done').hidden")
        assert tab.run("document.title").endswith("the worst case is 10 cycles")
        assert tab.run("get('time-limit-error').hidden")
        page = f"{client.server.url}questions/{tab.run('location.hash')[1:]}/report.html"
        assert tab.run("[get('report').src, get('save').href]") == [page, page]
        assert not tab.run(_TOO_WIDE)
        tab.resize(1400, 900)
        assert not tab.run(_TOO_WIDE)
        _wait(tab, "performance.getEntriesByType('resource').some((each) => each.name.endsWith('/report.html'))")
        said = [complaint["params"]["entry"]["text"] for complaint in tab.complaints()]
        assert [text for text in said if "status of 400" not in text] == []
        assert {page} < set(tab.requests())
        assert all(address.startswith(client.server.url) for address in tab.requests())
