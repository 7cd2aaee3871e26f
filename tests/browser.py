"""A headless Chromium, driven through the DevTools protocol.

Source: Chrome DevTools Protocol, domains Page, Runtime, Log, Network, Input and Emulation.
"""

import json
import re
import shutil
import subprocess
import time
import urllib.request
from base64 import b64decode
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from websockets.sync.client import ClientConnection, connect

EXECUTABLE = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
_PATIENCE = 300.0
_MOST_MESSAGE = 256 << 20
_COMPLAINTS = ("Runtime.exceptionThrown", "Log.entryAdded", "Runtime.consoleAPICalled")


class Tab:
    """One page; what it complained about is kept."""

    def __init__(self, socket: ClientConnection) -> None:
        self._socket, self._number = socket, 0
        self.events: list[dict[str, Any]] = []
        for domain in ("Page", "Runtime", "Log", "Network"):
            self(f"{domain}.enable")

    def __call__(self, method: str, **parameters: Any) -> dict[str, Any]:
        """Call a method of the protocol and wait for its answer."""
        self._number += 1
        self._socket.send(json.dumps({"id": self._number, "method": method, "params": parameters}))
        while True:
            message = json.loads(self._socket.recv(timeout=_PATIENCE))
            if message.get("id") == self._number:
                if "error" in message:
                    raise RuntimeError(f"{method}: {message['error']}")
                found: dict[str, Any] = message["result"]
                return found
            self.events.append(message)

    def open(self, page: Path) -> None:
        """Load a file and wait until it is drawn."""
        self("Page.navigate", url=page.as_uri())
        while self.run("document.readyState") != "complete":
            time.sleep(0.01)
        self.settle()

    def run(self, expression: str) -> Any:
        """The value of a JavaScript expression, awaited where it is a promise."""
        answer = self("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in answer:
            raise RuntimeError(f"{expression}: {answer['exceptionDetails']}")
        return answer["result"].get("value")

    def settle(self) -> None:
        """Wait until everything asked for so far is drawn."""
        self.run("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(() => done())))")

    def resize(self, width: int, height: int, ratio: float = 1) -> None:
        self("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=ratio, mobile=False)
        self.settle()

    def mouse(self, kind: str, x: float, y: float, **more: Any) -> None:
        self("Input.dispatchMouseEvent", type=kind, x=x, y=y, **more)

    def click(self, x: float, y: float) -> None:
        for kind in ("mousePressed", "mouseReleased"):
            self.mouse(kind, x, y, button="left", clickCount=1)

    def key(self, key: str, **more: Any) -> None:
        for kind in ("keyDown", "keyUp"):
            self("Input.dispatchKeyEvent", type=kind, key=key, **more)

    def screenshot(self, *, whole: bool = False) -> bytes:
        return b64decode(self("Page.captureScreenshot", format="png", captureBeyondViewport=whole)["data"])

    def pdf(self) -> bytes:
        return b64decode(self("Page.printToPDF", printBackground=True)["data"])

    def complaints(self) -> list[dict[str, Any]]:
        """Errors, violations of the policy and whatever else stands in the console."""
        self.settle()
        return [event for event in self.events if event["method"] in _COMPLAINTS]

    def requests(self) -> list[str]:
        """The addresses that were asked for."""
        sent = [event for event in self.events if event["method"] == "Network.requestWillBeSent"]
        return [event["params"]["request"]["url"] for event in sent]


@contextmanager
def browser() -> Iterator[Tab]:
    """A fresh browser with one tab; nothing of it is left behind."""
    assert EXECUTABLE is not None
    with TemporaryDirectory(prefix="makespan-") as profile:
        process = subprocess.Popen(
            [
                EXECUTABLE, "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
                "--no-first-run", "--disable-background-networking", "--disable-extensions",
                "--force-color-profile=srgb", "--remote-debugging-port=0", f"--user-data-dir={profile}", "about:blank",
            ],
            stderr=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            text=True,
        )  # fmt: skip
        try:
            with connect(_address(process), max_size=_MOST_MESSAGE) as socket:
                yield Tab(socket)
        finally:
            process.terminate()
            process.communicate()


def _address(process: "subprocess.Popen[str]") -> str:
    """Where the tab of a browser that is starting listens."""
    assert process.stderr is not None
    for line in process.stderr:
        if match := re.search(r"DevTools listening on ws://([\d.:]+)/", line):
            with urllib.request.urlopen(f"http://{match[1]}/json/list", timeout=_PATIENCE) as answer:
                tabs = json.load(answer)
            return str(next(tab["webSocketDebuggerUrl"] for tab in tabs if tab["type"] == "page"))
    raise RuntimeError("the browser did not start")
