"""HTTP for one page and its questions, which strangers may send: limits first, then the routes.

Source: RFC 9110 for methods and codes; Fetch, WHATWG, for the headers Origin and Sec-Fetch-Site.
"""

import ipaddress
import json
import os
import re
import shutil
import socket
import socketserver
import sys
import threading
import time
from contextlib import suppress
from http import HTTPStatus
from http.client import LineTooLong
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from io import BufferedIOBase
from operator import itemgetter
from typing import Any

from makespan.many.serve.form import (
    EVIDENCE,
    MOST_SOURCE_BYTES,
    PAGE,
    POLICY,
    RefusedFieldError,
    form_question,
    page_text,
    read_form,
)
from makespan.many.serve.jobs import BusyError, ServeJobs

MOST_HEAD_BYTES = 16 << 10
MOST_BODY_BYTES = 2 * MOST_SOURCE_BYTES
"""JSON writes the end of a line as two letters."""
MOST_CONNECTIONS = 64
SECONDS_TO_ASK, SECONDS_TO_ANSWER = 10.0, 30.0
_MOST_LINGERING_BYTES = 2 * MOST_BODY_BYTES

_QUESTION = re.compile(rf"/questions/([\w-]{{22}})(?:/(stop|{re.escape(PAGE)}|{re.escape(EVIDENCE)}))?", re.ASCII)
_HOST = re.compile(r"(?:\[([0-9a-fA-F:.]{2,45})\]|([^:\[\]]{1,255}))(?::([0-9]{1,5}))?", re.ASCII)
_TYPES = {PAGE: "text/html; charset=utf-8", EVIDENCE: "application/json"}
_JSON = "application/json"
_HEADERS = {
    "Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}
_SANDBOX = "sandbox allow-scripts; frame-ancestors 'self'"
"""Beside the policy that the page of an answer has itself: it gets no origin, so it can ask this server for nothing."""


class PageServer(ThreadingHTTPServer):
    """A server with a thread for each connection, up to a limit; a connection ends after a while, however it talks."""

    daemon_threads = True
    request_queue_size = 128

    def __init__(self, host: str, port: int, jobs: ServeJobs, *, shared: bool) -> None:
        self.address_family = socket.AF_INET6 if ":" in host else socket.AF_INET
        self.jobs, self.shared = jobs, shared
        self.page = page_text(jobs.limits, shared=shared).encode()
        self._ends: dict[socket.socket, float] = {}
        self._most_threads = threading.active_count() + 2 * MOST_CONNECTIONS
        super().__init__((host, port), PageHandler)

    def server_bind(self) -> None:
        """Bind the address without asking a name server what this machine is called."""
        socketserver.TCPServer.server_bind(self)
        host, self.server_port = self.server_address[:2]
        self.server_name = str(host)

    @property
    def url(self) -> str:
        """Return the address for a browser."""
        return f"http://{f'[{self.server_name}]' if ':' in self.server_name else self.server_name}:{self.server_port}/"

    def process_request(self, request: Any, client_address: Any) -> None:
        """Give the connection a thread; where there are too many, those that would be ended first end now."""
        # A stranger who opens many connections only shortens the time of the oldest ones.
        by_end = sorted(self._ends.items(), key=itemgetter(1))
        for old, _ in by_end[: max(0, len(by_end) + 1 - MOST_CONNECTIONS)]:
            self._end(old)
        while threading.active_count() > self._most_threads:  # those of ended connections end in a moment
            time.sleep(0.001)
        self._ends[request] = time.monotonic() + SECONDS_TO_ASK
        super().process_request(request, client_address)

    def answering(self, request: socket.socket) -> None:
        """Give a connection whose request has been read the time to take the answer."""
        if request in self._ends:
            self._ends[request] = time.monotonic() + SECONDS_TO_ANSWER

    def shutdown_request(self, request: Any) -> None:
        """Close a connection, and count one less."""
        self._ends.pop(request, None)
        super().shutdown_request(request)

    def service_actions(self) -> None:
        """End connections that are too old."""
        now = time.monotonic()
        for request, end in list(self._ends.items()):
            if now > end:
                self._end(request)

    def _end(self, request: socket.socket) -> None:
        """Let the thread of a connection read and write nothing more."""
        self._ends.pop(request, None)
        with suppress(OSError):
            request.shutdown(socket.SHUT_RDWR)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Report every error but one of the connection, which only says that the client went away."""
        if not isinstance(sys.exception(), OSError):
            super().handle_error(request, client_address)


class _Head:
    """A stream whose lines may have `MOST_HEAD_BYTES` bytes together."""

    def __init__(self, stream: BufferedIOBase) -> None:
        self._stream, self._left = stream, MOST_HEAD_BYTES
        self.read, self.close = stream.read, stream.close

    def readline(self, most: int = -1) -> bytes:
        del most
        line = self._stream.readline(self._left + 1)
        self._left -= len(line)
        if self._left < 0:
            raise LineTooLong("head of the request")
        return line


class PageHandler(BaseHTTPRequestHandler):
    """A handler of one request: it gives one answer and ends the connection."""

    server: PageServer
    server_version, sys_version = "makespan", ""
    default_request_version = "HTTP/1.0"  # what is no request gets an answer with a head all the same
    timeout = SECONDS_TO_ASK

    def setup(self) -> None:
        """Prepare the streams, with a limit on the length of the head."""
        super().setup()
        self.rfile = _Head(self.rfile)  # type: ignore[assignment]
        self.command, self.request_version, self.requestline = "", self.default_request_version, ""

    def handle_one_request(self) -> None:
        """Answer one request; a request line that never ends gets an error."""
        try:
            super().handle_one_request()
        except LineTooLong:
            self.send_error(HTTPStatus.REQUEST_URI_TOO_LONG)

    def finish(self) -> None:
        """Wait a moment for what the client still sends, or the answer would be lost."""
        super().finish()
        # Closing with unread data resets the connection, and the client would lose the answer.
        end, left = time.monotonic() + 2, _MOST_LINGERING_BYTES
        with suppress(OSError):
            self.connection.shutdown(socket.SHUT_WR)
            self.connection.settimeout(1)
            while left > 0 and time.monotonic() < end and (got := self.connection.recv(1 << 16)):
                left -= len(got)

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
        """Write nothing to a log."""

    def do_GET(self) -> None:
        """Send the page, the state of a question, its page or its evidence."""
        if not self._is_meant():
            return
        path = self.path.partition("?")[0]
        if path == "/":
            self._send(HTTPStatus.OK, self.server.page, "text/html; charset=utf-8", {"Content-Security-Policy": POLICY})
        elif (match := _QUESTION.fullmatch(path)) is None or match[2] == "stop":
            self.send_error(HTTPStatus.NOT_FOUND)
        elif match[2] is None:
            state = self.server.jobs.state(match[1])
            self._json(HTTPStatus.NOT_FOUND if state is None else HTTPStatus.OK, state or {"state": "gone"})
        else:
            self._file(match[1], match[2])

    do_HEAD = do_GET  # noqa: N815 - the name is looked up

    def do_POST(self) -> None:
        """Take a question, or the wish that one should end."""
        if not self._is_meant():
            return
        match = _QUESTION.fullmatch(self.path)
        stops = match is not None and match[2] == "stop"
        if not stops and self.path != "/questions":
            self.send_error(HTTPStatus.NOT_FOUND)
        elif not self._is_own():  # a page of another site must not spend the time of this machine
            self.send_error(HTTPStatus.FORBIDDEN, explain="questions are asked on the page of this server alone")
        elif self.headers.get_content_type() != _JSON:  # a form of another site cannot send it
            self.send_error(HTTPStatus.UNSUPPORTED_MEDIA_TYPE, explain=f"Content-Type must be {_JSON}")
        elif (body := self._body()) is None:
            return
        elif match is not None:
            found = self.server.jobs.stop(match[1])
            self._json(HTTPStatus.ACCEPTED if found else HTTPStatus.NOT_FOUND, {})
        else:
            self._ask(body)

    def _ask(self, body: bytes) -> None:
        jobs = self.server.jobs
        try:
            asked = form_question(read_form(body), most_seconds=jobs.limits.seconds, compiles=not self.server.shared)
            self._json(HTTPStatus.ACCEPTED, {"name": jobs.ask(asked)})
        except RefusedFieldError as error:
            code = HTTPStatus.TOO_MANY_REQUESTS if isinstance(error, BusyError) else HTTPStatus.BAD_REQUEST
            self._json(code, {"field": error.field, "message": str(error)})

    def _body(self) -> bytes | None:
        """Return the whole body; None after an answer that says why it is not taken."""
        length = self.headers.get("Content-Length", "")
        if not re.fullmatch("[0-9]{1,18}", length, re.ASCII) or "Transfer-Encoding" in self.headers:
            self.send_error(HTTPStatus.LENGTH_REQUIRED)
        elif int(length) > MOST_BODY_BYTES:
            self.send_error(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, explain=f"at most {MOST_BODY_BYTES} bytes are read")
        elif len(body := self.rfile.read(int(length))) < int(length):
            self.send_error(HTTPStatus.BAD_REQUEST, explain="the request ended too early")
        else:
            return body
        return None

    def _is_own(self) -> bool:
        """Return whether the page of this server asks, or no page at all."""
        # A browser sets both headers itself, so that no page of another site can pretend to be ours.
        own, site = f"http://{self.headers.get('Host', '')}", "same-origin"
        return (self.headers.get("Origin", own), self.headers.get("Sec-Fetch-Site", site)) == (own, site)

    def _is_meant(self) -> bool:
        """Return whether the request names this server by its address; any other name is refused.

        A stranger may let another name lead to this machine (DNS rebinding): to a browser it would be the same origin.
        """
        if match := _HOST.fullmatch(self.headers.get("Host", "")):
            name, port = match[1] or match[2], int(match[3] or 80)
            known = is_loopback(name) or (self.server.shared and _is_address(name))
            if known and port == self.server.server_port:
                return True
        self.send_error(HTTPStatus.MISDIRECTED_REQUEST, explain=f"open this server as {self.server.url}")
        return False

    def _file(self, name: str, file: str) -> None:
        if (stream := self.server.jobs.open(name, file)) is None:
            self.send_error(HTTPStatus.NOT_FOUND, explain="there is no such answer, or no longer")
            return
        with stream:
            size = os.fstat(stream.fileno()).st_size
            self._start(HTTPStatus.OK, size, _TYPES[file], {"Content-Security-Policy": _SANDBOX})
            if self.command != "HEAD":
                shutil.copyfileobj(stream, self.wfile)

    def _json(self, code: HTTPStatus, data: dict[str, Any]) -> None:
        self._send(code, json.dumps(data).encode(), _JSON)

    def send_error(self, code: int, message: str | None = None, explain: str | None = None) -> None:
        """Send a line of plain text."""
        words = HTTPStatus(code).phrase if message is None else message[:200]
        said = f"{code} {words}: {explain}\n" if explain else f"{code} {words}\n"
        self._send(HTTPStatus(code), said.encode("utf-8", "replace"), "text/plain; charset=utf-8")

    def _send(self, code: HTTPStatus, body: bytes, kind: str, headers: dict[str, str] | None = None) -> None:
        self._start(code, len(body), kind, headers)
        if self.command != "HEAD":
            self.wfile.write(body)

    def _start(self, code: HTTPStatus, size: int, kind: str, headers: dict[str, str] | None) -> None:
        self.close_connection = True  # one request: a connection is cheap, and its state is not kept
        self.server.answering(self.connection)
        self.send_response(code)
        for name, value in {"Content-Type": kind, "Content-Length": str(size), **_HEADERS, **(headers or {})}.items():
            self.send_header(name, value)
        self.end_headers()


def is_loopback(host: str) -> bool:
    """Return whether an address is one of this machine that no other can reach.

    >>> is_loopback("127.0.0.1"), is_loopback("::1"), is_loopback("localhost"), is_loopback("0.0.0.0")
    (True, True, True, False)
    """
    return host == "localhost" or (_is_address(host) and ipaddress.ip_address(host).is_loopback)


def _is_address(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True
