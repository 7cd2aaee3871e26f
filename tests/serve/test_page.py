"""A question is asked, in a browser where there is one, and its answer seen; an error stands beside its field."""

import json
import re
import time

from makespan.cli.running import NO
from makespan.model.instance import Instance
from makespan.verify import parse, verify
from tests import browser
from tests.oracle import brute_force
from tests.serve.conftest import Client

QUESTION = {"source": "CLL\nCLL", "warps": "2", "deadline": "9ns", "clock": "1GHz", "time-limit": "5"}
_TOO_WIDE = "document.documentElement.scrollWidth > document.documentElement.clientWidth"


def test_an_answer_is_the_page_of_the_command_line(client: Client) -> None:
    path = client.answer(kind="string", **QUESTION)[0] if browser.EXECUTABLE is None else _asked_in_a_browser(client)
    state = client("GET", path).data
    truth = brute_force(Instance.of("CLLCLL", 2)).upper
    assert (state["state"], state["code"]) == ("answered", NO)
    assert (state["steps"][-1]["lower"], state["steps"][-1]["upper"]) == (truth, truth)
    page, evidence = client("GET", f"{path}/report.html"), client("GET", f"{path}/evidence.json")
    data = json.loads(re.findall(r'id="page-data">(.*?)</script>', page.body.decode())[0])
    assert (data["verdict"], data["deadline"]["outcome"]) == (state["verdict"], "missed")
    assert page.headers["Content-Security-Policy"] == "sandbox allow-scripts; frame-ancestors 'self'"
    assert verify(parse(evidence.body)).upper == truth


def _asked_in_a_browser(client: Client) -> str:
    """The path of the question, after the page has refused another one and shown the answer."""
    with browser.browser() as tab:
        tab.resize(400, 900)
        tab("Page.navigate", url=client.server.url)
        _wait(tab, "document.readyState === 'complete' && document.getElementById('solve') !== null")
        tab.run("window.get = (id) => document.getElementById(id)")
        _fill(tab, {"time-limit": "<img src=x>"})
        tab.run("get('solve').click()")
        _wait(tab, "!get('time-limit-error').hidden")
        assert "'<img src=x>' is no number of seconds" in tab.run("get('time-limit-error').textContent")
        assert tab.run("[document.images.length, document.activeElement.id]") == [0, "time-limit"]
        assert tab.run("get('time-limit').getAttribute('aria-invalid')") == "true"
        _fill(tab, QUESTION)
        tab.run("get('warps').focus()")
        tab.key("Enter", code="Enter", windowsVirtualKeyCode=13, text="\r")
        _wait(tab, "!get('done').hidden")
        assert tab.run("get('time-limit-error').hidden")
        path = f"/questions/{tab.run('location.hash')[1:]}"
        assert tab.run("document.title") == client("GET", path).data["verdict"]
        page = f"{client.server.url[:-1]}{path}/report.html"
        assert tab.run("[get('report').src, get('save').href]") == [page, page]
        assert not tab.run(_TOO_WIDE)
        tab.resize(1400, 900)
        assert not tab.run(_TOO_WIDE)
        _wait(tab, "performance.getEntriesByType('resource').some((each) => each.name.endsWith('/report.html'))")
        said = [complaint["params"]["entry"]["text"] for complaint in tab.complaints()]
        assert [text for text in said if "status of 400" not in text] == []
        assert {page} < set(tab.requests())
        assert all(address.startswith(client.server.url) for address in tab.requests())
    return path


def _fill(tab: browser.Tab, values: dict[str, str]) -> None:
    for name, value in values.items():
        tab.run(f"get({json.dumps(name)}).value = {json.dumps(value)}")


def _wait(tab: browser.Tab, condition: str) -> None:
    while not tab.run(condition):
        time.sleep(0.05)
