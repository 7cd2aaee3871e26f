"""`makespan serve`: answers are those of the command line, and whatever a stranger sends has a short, clear one."""

import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from makespan.many.serve import ServeJobs, ServeLimits, form, jobs
from makespan.many.serve.form import FormQuestion, RefusedFieldError, form_question
from makespan.many.serve.jobs import BusyError
from tests.command import Runner
from tests.serve.conftest import JSON, Client

MACHINES = Path(__file__).parents[2] / "makespan" / "data" / "machines"
SHORT = "1 input is missing: x (--warps N)"
LOG = """{"seconds": 0.1, "engine": "x", "lower": 1, "upper": 9, "evidence": "y"}
makespan: compiling something
makespan: kernel.ptx:5:6: unknown suffix '.xyz'; count every unknown opcode with --unknown C
add.xyz;
   ^
"""


@pytest.mark.parametrize(
    ("code", "log", "message", "details"),
    [
        (2, LOG, "kernel.ptx:5:6: unknown suffix '.xyz'; count every unknown opcode with --unknown C", 2),
        (-9, LOG, "ended by SIGKILL, as a rule for want of memory (4 GiB)", 0),
        (2, "makespan: 1 input is missing: x (--warps N)\n  makespan report k.ptx --warps N\n  a hint", SHORT, 1),
        (70, "Traceback\nmakespan: this is a bug", "this is a bug", 1),
        (0, "", "there is no answer, and nothing was said", 0),
    ],
)
def test_why_there_is_no_answer(code: int, log: str, message: str, details: int, idle: ServeJobs) -> None:
    name = idle.ask(FormQuestion(("--string=CL", "--warps=2"), {}, 1))
    job = idle._waiting.pop()
    job.folder.mkdir()
    (job.folder / "log.txt").write_text(log)
    assert idle.state(name) is not None
    job.code, job.ended = code, job.began
    state = idle.state(name)
    assert state is not None
    field = "warps" if message == SHORT else "source"
    assert (state["state"], state["field"], state["message"]) == ("refused", field, message)
    assert len(state["details"]) == details


@pytest.mark.parametrize(
    ("message", "field"),
    [
        ("--warps is missing: how many warps run?", "warps"),
        ("machine.toml: capacity of C must be 1..1024, not 0", "machine.toml"),
        ("kernel.ptx:42: 1 loop has no bound; give --loop-bound 'Loop=N'", "loop-bound"),
        ("Invalid value for '--block': <b>", "block"),
        ("kernel.ptx:5:3: count every unknown opcode with --unknown C", "source"),
        ("kernel.ptx:7: classify it with --classes FILE", "source"),
    ],
)
def test_a_message_stands_beside_the_field_that_mends_it(message: str, field: str) -> None:
    assert jobs._field(message) == field


def test_the_page_allows_its_own_script_and_style_alone(client: Client) -> None:
    page = client("GET", "/")
    policy = page.headers["Content-Security-Policy"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    assert not re.findall(rb"(?:src|href)=\"(?!data:)", page.body)
    assert not re.findall(rb" on\w+=| style=", page.body)
    labels = set(re.findall(rb'<label for="([^"]+)"', page.body))
    assert labels >= {name.encode() for name in ("source", "warps", "block", "loop-bound", "deadline", "time-limit")}
    head = client("HEAD", "/")
    assert (head.code, head.body, head.headers["Content-Length"]) == (200, b"", str(len(page.body)))


ASK = b'{"kind": "string", "source": "CL", "warps": "2"}'


@pytest.mark.parametrize(
    ("method", "path", "body", "headers", "code"),
    [
        ("GET", "/", None, {"Host": "evil.example:{port}"}, 421),
        ("GET", "/", None, {"Host": "127.0.0.1:1"}, 421),
        ("GET", "/", None, {"Host": "10.0.0.1:{port}"}, 421),
        ("GET", "/", None, {"Host": "localhost:{port}"}, 200),
        ("GET", "/../../etc/passwd", None, {}, 404),
        ("GET", "/questions", None, {}, 404),
        ("GET", f"/questions/{'a' * 22}", None, {}, 404),
        ("GET", f"/questions/{'a' * 22}/report.html", None, {}, 404),
        ("GET", f"/questions/{'a' * 22}/../{'a' * 22}/kernel.ptx", None, {}, 404),
        ("POST", f"/questions/{'a' * 22}/stop", b"", JSON, 404),
        ("POST", "/questions", ASK, {**JSON, "Origin": "http://evil.example"}, 403),
        ("POST", "/questions", ASK, {**JSON, "Origin": "null"}, 403),
        ("POST", "/questions", ASK, {**JSON, "Sec-Fetch-Site": "cross-site"}, 403),
        ("POST", "/questions", ASK, {"Content-Type": "text/plain"}, 415),
        ("POST", "/questions", ASK, {**JSON, "Content-Length": "-1"}, 411),
        ("POST", "/questions", ASK, {**JSON, "Transfer-Encoding": "chunked"}, 411),
        ("POST", "/questions", ASK, {**JSON, "Content-Length": "99999999999"}, 413),
        ("POST", "/questions", b"[" * 100_000, JSON, 400),
        ("POST", "/questions", b'{"kind": 7}', JSON, 400),
        ("POST", "/questions", b'{"kind": "\xff"}', JSON, 400),
        ("POST", "/questions", ASK.replace(b"warps", b"output"), JSON, 400),
        ("POST", "/questions", ASK.replace(b'"2"', rb'"2\u0000"'), JSON, 400),
        ("POST", "/", ASK, JSON, 404),
        ("PUT", "/questions", ASK, JSON, 501),
        ("GET", "/" + "a" * 70_000, None, {}, 414),
        ("GET", "/", None, {"Cookie": "a" * 20_000}, 431),
    ],
)
def test_what_no_page_sends_has_a_plain_answer(
    method: str, path: str, body: bytes | None, headers: dict[str, str], code: int, client: Client
) -> None:
    port = client.server.server_port
    answer = client(method, path, body, **{name: value.format(port=port) for name, value in headers.items()})
    assert answer.code == code
    assert code == 200 or len(answer.body) < 300
    assert b"Traceback" not in answer.body
    assert answer.headers["X-Content-Type-Options"] == "nosniff"


@pytest.mark.parametrize(
    "sent", [b"\0\xff\r\n\r\n", b"GET /\r\n", b"<a>\r\n\r\n", b"GET / HTTP/9.9\r\n\r\n", b"\r\n", b"GET " * 9000]
)
def test_what_is_no_http_ends(sent: bytes, client: Client) -> None:
    with socket.create_connection(("127.0.0.1", client.server.server_port), 30) as connection:
        connection.sendall(sent)
        connection.shutdown(socket.SHUT_WR)
        answer = b"".join(iter(lambda: connection.recv(1 << 16), b""))
    assert not answer or (
        answer.startswith((b"HTTP/1.0 4", b"HTTP/1.0 5")) and b"X-Content-Type-Options: nosniff" in answer
    )


def test_who_is_slow_makes_room_for_others_and_ends(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("makespan.many.serve.server.MOST_CONNECTIONS", 4)
    address = ("127.0.0.1", client.server.server_port)
    slow = [socket.create_connection(address, 5) for _ in range(6)]
    for connection in slow:
        connection.sendall(b"GET / HT")
    assert client("GET", "/").code == 200
    assert [connection.recv(1 << 16) for connection in slow[:2]] == [b"", b""]
    assert len(client.server._ends) <= 4
    slow[5].setblocking(False)
    with pytest.raises(BlockingIOError):  # the last of them has its time still
        slow[5].recv(1)
    monkeypatch.setattr("makespan.many.serve.server.SECONDS_TO_ASK", -1)
    with socket.create_connection(address, 30) as late:
        assert late.recv(1 << 16) == b""
    for connection in slow:
        connection.close()


NAMES = [field.name for part in form.form_fields() for field in part]
WORDS = st.text(max_size=8) | st.sampled_from(["-x", "--output=/x", "a=1\n-b", "../k.ptx", "turing", "A=1", "\ud800"])


@given(
    st.dictionaries(st.sampled_from([*NAMES, "time-limit", "best-case"]), WORDS, max_size=5),
    st.sampled_from([*form.KINDS, "x"]),
    WORDS,
)
def test_no_value_becomes_an_option_or_the_name_of_a_file(values: dict[str, str], kind: str, source: str) -> None:
    try:
        asked = form_question({**values, "kind": kind, "source": source}, most_seconds=60, compiles=True)
    except RefusedFieldError as error:
        refused_in = error.field
        assert refused_in in (*NAMES, "source", "time-limit")
        return
    assert set(asked.files) <= {"kernel.ptx", "kernel.cu", "machine.toml"}
    for word in asked.words:
        name, _, value = word.partition("=")
        assert word in (*form.FILES.values(), "--best-case") or name[2:] in ("string", "machine", "time-limit", *values)
        assert value.isprintable()
        if name == "--machine":
            assert value in (*dict.fromkeys(form.form_fields()[0][2].choices), "machine.toml")
        if name == "--loop-bound":
            assert "=" in value


def test_a_flag_is_a_word_alone_and_each_shipped_machine_can_be_changed_there() -> None:
    texts = [path.read_text() for path in MACHINES.glob("*.toml")]
    assert max(map(len, texts)) > 16 << 10  # the largest that the page took before
    for text in texts:
        values = {"kind": "ptx", "source": "x", "warm": "yes", "machine.toml": text}
        asked = form_question(values, most_seconds=60, compiles=False)
        assert asked.words == ("kernel.ptx", "--warm", "--machine=machine.toml", "--time-limit=20")
        assert asked.files["machine.toml"] == text.encode()


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("machine", "/x/machine.toml", "'/x/machine.toml' is none of the list"),
        ("gpu", "gpu.toml", "'gpu.toml' is none of the list"),
        ("loop-bound", "bounds.csv", "'bounds.csv' is no loop bound: give LABEL=N or LABEL==N"),
        ("param", "\n".join(["a=1"] * 65), "65 lines are more than 64"),
        ("warm", "no", "'no' is none of the list"),
        ("machine.toml", "#" * 32769, "32769 bytes are more than 32768: use makespan on the command line"),
        ("kernel", "k" * 201, "201 bytes are more than 200: use makespan on the command line"),
        ("time-limit", "inf", "'inf' is no number of seconds above 0 and at most 60"),
    ],
)
def test_what_the_form_does_not_offer_is_refused_there(field: str, value: str, message: str) -> None:
    with pytest.raises(RefusedFieldError) as refused:
        form_question({"kind": "string", "source": "CL", field: value}, most_seconds=60, compiles=True)
    assert (refused.value.field, str(refused.value)) == (field, message)


def test_cuda_is_not_compiled_for_strangers() -> None:
    with pytest.raises(RefusedFieldError, match="#include could read files of this machine"):
        form_question({"kind": "cuda", "source": "int", "warps": "1"}, most_seconds=1, compiles=False)


def test_a_queue_has_an_end(idle: ServeJobs) -> None:
    asked = FormQuestion(("--string=CL", "--warps=2"), {}, 1)
    names = [idle.ask(asked) for _ in range(2)]
    with pytest.raises(BusyError, match="2 questions wait already"):
        idle.ask(asked)
    assert idle.state(names[1]) == {"state": "waiting", "ahead": 1}
    assert idle.stop(names[0])
    assert idle.state(names[0]) == {
        "state": "refused", "field": "source", "message": "stopped before anything was proven", "details": []
    }  # fmt: skip
    assert idle.state(names[1]) == {"state": "waiting", "ahead": 0}
    assert idle.open(names[0], "report.html") is None


def test_who_comes_too_late_is_told_to_come_again(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client.server.jobs, "limits", ServeLimits(running=0, waiting=0))
    answer = client.ask(kind="string", source="CL", warps="2")
    message = "0 questions wait already: try again in a minute"
    assert (answer.code, answer.data) == (429, {"field": "source", "message": message})


def test_old_answers_are_forgotten(idle: ServeJobs, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = FormQuestion(("--string=CL", "--warps=2"), {}, 1)
    first, second = idle.ask(asked), idle.ask(asked)
    for name in (first, second):
        (idle._folder / name).mkdir()
        (idle._folder / name / "report.html").write_text("x" * 100)
        idle.stop(name)
        jobs._shrink(idle._jobs[name])
        page = idle.open(name, "report.html")
        assert page is not None
        page.close()
    monkeypatch.setattr(jobs, "MOST_KEPT_BYTES", 150)
    idle.ask(asked)
    assert idle.state(first) is None
    assert [path.name for path in idle._folder.iterdir()] == [second]
    monkeypatch.setattr(jobs, "KEPT_SECONDS", 0)
    idle.ask(asked)
    assert list(idle._folder.iterdir()) == []


def test_a_question_that_does_not_end_is_ended(client: Client, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    endless = tmp_path / "endless"
    endless.write_text("#!/bin/sh\ntrap '' INT\nwhile :; do sleep 60; done\n")
    endless.chmod(0o700)
    monkeypatch.setattr("makespan.many.serve.jobs.sys.executable", str(endless))
    monkeypatch.setattr(jobs, "SECONDS_BESIDE", 0.2)
    monkeypatch.setattr(jobs, "_SECONDS_TO_END", 0.1)
    _, state = client.answer(kind="string", source="CLLC", warps="2", **{"time-limit": "0.1"})
    assert (state["state"], state["message"][:30]) == ("refused", "not done 0.2 s after its time ")


def test_the_end_of_the_server_is_that_of_its_children(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "makespan", "serve", "--port", "0"]
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    with subprocess.Popen(command, stdout=subprocess.PIPE, env=environment, text=True) as server:
        assert server.stdout is not None
        url = server.stdout.readline().split()[0]
        long = {"kind": "string", "source": "CLLCLCCLLC" * 30, "warps": "40", "capacity": "C=3,L=2"}
        with urllib.request.urlopen(
            urllib.request.Request(f"{url}questions", json.dumps(long).encode(), JSON)
        ) as answer:
            name = json.load(answer)["name"]
        while json.load(urllib.request.urlopen(f"{url}questions/{name}"))["state"] != "running":
            time.sleep(0.05)
        (folder,) = tmp_path.glob("makespan-*")
        children = [path for path in Path("/proc").glob("[0-9]*/cwd") if _leads_into(path, folder)]
        server.send_signal(signal.SIGTERM)
        assert server.wait(60) == 0
    assert len(children) == 1
    assert not children[0].exists()
    assert not folder.exists()


def _leads_into(link: Path, folder: Path) -> bool:
    try:
        return folder in link.readlink().parents
    except OSError:
        return False


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--host", "0.0.0.0"), "--host 0.0.0.0 lets other machines in"),
        (("--memory", "900MiB"), "--memory: a question needs 1GiB"),
    ],
)
def test_what_cannot_be_meant_is_refused(words: tuple[str, ...], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    told = Runner("serve", capsys)(*words)
    assert (told.code, told.out) == (2, "")
    assert said in told.err


def test_a_port_that_is_taken_is_an_error_of_one_line(client: Client, capsys: pytest.CaptureFixture[str]) -> None:
    told = Runner("serve", capsys)("--port", client.server.server_port)
    assert (told.code, told.err.count("\n")) == (2, 1)
    assert "cannot listen at 127.0.0.1" in told.err
