"""Bytes that are sent to `makespan serve`, answered by its handler without a network; no question ever runs."""

import re
from functools import cache
from io import BytesIO
from pathlib import Path
from tempfile import mkdtemp
from typing import cast

from makespan.many.serve import PageServer, ServeJobs, ServeLimits
from makespan.many.serve.form import EVIDENCE, PAGE, FormQuestion
from makespan.many.serve.jobs import ServeJob
from makespan.many.serve.server import PageHandler

ANSWERED = "A" * 22
_ANSWER = re.compile(
    rb"HTTP/1\.[01] (?P<code>\d{3}) [ -~]*\r\n(?:[\w-]+: [ -~]*\r\n)*Content-Length: (?P<size>\d+)\r\n"
    rb"(?:[\w-]+: [ -~]*\r\n)*\r\n(?P<body>.*)",
    re.DOTALL,
)


class _Connection:
    """A socket that has received all that it ever will."""

    def __init__(self, received: bytes) -> None:
        self.received, self.sent = received, bytearray()
        self.sendall = self.sent.extend

    def makefile(self, *_: object) -> BytesIO:
        return BytesIO(self.received)

    def recv(self, _: int) -> bytes:
        return b""

    def settimeout(self, _: float) -> None:
        pass

    def shutdown(self, _: int) -> None:
        pass


@cache
def _server() -> PageServer:
    """At the port that a browser leaves out, with one answer."""
    folder = Path(mkdtemp())
    server = PageServer("127.0.0.1", 0, ServeJobs(folder, ServeLimits(running=0, waiting=2)), shared=False)
    server.server_close()
    server.server_port = 80
    job = server.jobs._jobs[ANSWERED] = ServeJob(FormQuestion((), {}, 1), folder, ended=float("inf"))
    for name in (PAGE, EVIDENCE):
        (job.folder / name).write_bytes(b"{}")
    return server


def answer(path: Path) -> int:
    """What is sent is no answer that a browser misreads, whatever was asked.

    Raises:
        AssertionError: it is one.
    """
    server = _server()
    server.jobs._waiting.clear()
    connection = _Connection(path.read_bytes())
    PageHandler(cast("object", connection), ("127.0.0.1", 1), server)  # type: ignore[arg-type]
    sent = bytes(connection.sent)
    match = _ANSWER.fullmatch(sent)
    if not sent:  # there was no request
        return 2
    if match is None or len(match["body"]) not in (0, int(match["size"])):
        raise AssertionError(f"an answer that is none: {sent[:200]!r}")
    return 0 if int(match["code"]) < 400 else 2
