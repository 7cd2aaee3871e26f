"""One server for all tests of this folder."""

import http.client
import json
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from email.message import Message
from pathlib import Path
from typing import Any

import pytest

from makespan.many.serve import PageServer, ServeJobs, ServeLimits

JSON = {"Content-Type": "application/json"}


@dataclass
class Answer:
    code: int
    headers: Message
    body: bytes

    @property
    def data(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.body)
        return found


@dataclass
class Client:
    server: PageServer

    def __call__(self, method: str, path: str, body: bytes | None = None, **headers: str) -> Answer:
        connection = http.client.HTTPConnection("127.0.0.1", self.server.server_port, timeout=60)
        connection.request(method, path, body, {name.replace("_", "-"): value for name, value in headers.items()})
        answer = connection.getresponse()
        found = Answer(answer.status, answer.headers, answer.read())
        connection.close()
        return found

    def ask(self, **values: str) -> Answer:
        return self("POST", "/questions", json.dumps(values).encode(), Content_Type="application/json")

    def answer(self, **values: str) -> tuple[str, dict[str, Any]]:
        """The path of a question, and its state once it has ended."""
        path = f"/questions/{self.ask(**values).data['name']}"
        while (state := self("GET", path).data)["state"] in ("waiting", "running"):
            time.sleep(0.05)
        return path, state


@pytest.fixture(scope="package")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    jobs = ServeJobs(
        tmp_path_factory.mktemp("serve"), ServeLimits(running=1, waiting=5, seconds=9, memory_bytes=2 << 30)
    )
    with PageServer("127.0.0.1", 0, jobs, shared=False) as server:
        threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
        yield Client(server)
        server.shutdown()
        jobs.close()


@pytest.fixture
def idle(tmp_path: Path) -> ServeJobs:
    """Questions wait here, and none ever runs."""
    return ServeJobs(tmp_path, ServeLimits(running=0, waiting=2))
