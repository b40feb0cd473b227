"""What a stranger sends, and what lies in the folder: one bad thing never stops the rest."""

import asyncio
import json
import os
import re
import socket
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import quote

import pytest

import tiltmeter as tm
from tiltmeter.explorer.settings import Settings
from tiltmeter.explorer.state import State
from tiltmeter.record import Origin, Recorder

HASTY = """
import runpy, sys
from tiltmeter.explorer import server
server.DEADLINE, server.MOST_CONNECTIONS = 1.0, 30
sys.argv = ["tiltmeter", "explore", sys.argv[1], "--quiet", "--port", "0"]
runpy.run_module("tiltmeter", run_name="__main__")
"""


def record(path, steps=3):
    with Recorder(path, clock="step", origin=Origin("test")) as recorder:
        for step in range(steps):
            recorder.append(step, {"loss": 1.0 / (1 + step)})


@contextmanager
def hasty(folder):
    """A server that waits for a second only."""
    environment = {**os.environ, "PYTHONPATH": str(Path(tm.__file__).parents[1])}
    process = subprocess.Popen(
        [sys.executable, "-c", HASTY, str(folder)], stdout=subprocess.PIPE, text=True, env=environment
    )
    try:
        yield int(re.search(r":(\d+)/", process.stdout.readline())[1])
    finally:
        process.kill()
        process.wait()
        process.stdout.close()


def closed_after(connection, limit=10.0):
    connection.settimeout(limit)
    begun = time.monotonic()
    try:
        while connection.recv(1000):
            pass
    except ConnectionResetError:
        pass
    return time.monotonic() - begun


def start(port):
    """A whole request, answered."""
    with socket.create_connection(("127.0.0.1", port), timeout=30) as connection:
        connection.sendall(b"GET / HTTP/1.1\r\nHost: 127.0.0.1:%d\r\nConnection: close\r\n\r\n" % port)
        return connection.recv(100)


def test_half_open_requests_end_and_block_nobody(tmp_path):
    with hasty(tmp_path) as port:
        begun = b"POST /api/jobs HTTP/1.1\r\nHost: 127.0.0.1:%d\r\n" % port
        headers = b"Origin: http://127.0.0.1:%d\r\nContent-Type: application/json\r\n" % port
        for part in (b"", begun, begun + headers + b"Content-Length: 10\r\n\r\n{"):
            with socket.create_connection(("127.0.0.1", port)) as connection:
                connection.sendall(part)
                assert closed_after(connection) < 8
        many = [socket.create_connection(("127.0.0.1", port)) for _ in range(100)]
        try:
            for connection in many:
                connection.sendall(begun)
            assert b"200 OK" in start(port)
        finally:
            for connection in many:
                connection.close()


def test_a_body_without_an_end_is_not_read(explorer):
    with socket.create_connection(("127.0.0.1", explorer.port), timeout=30) as connection:
        head = (
            f"POST /api/jobs HTTP/1.1\r\nHost: 127.0.0.1:{explorer.port}\r\nOrigin: http://127.0.0.1:{explorer.port}\r\n"
            "Content-Type: application/json\r\nContent-Length: 10\r\nTransfer-Encoding: chunked\r\n\r\n"
        )
        connection.sendall(head.encode())
        sent, block = 0, b"10000\r\n" + b" " * 65536 + b"\r\n"
        try:
            while sent < 400 * 2**20:
                connection.sendall(block)
                sent += 65536
        except (ConnectionResetError, BrokenPipeError, TimeoutError):
            pass
        assert sent < 100 * 2**20
    assert explorer.ask("/api/start").status == 200


BODIES = [
    b'{"number": Infinity}',
    b'{"number": 1e999}',
    b'{"number": NaN}',
    b'{"number": ' + b"[" * 30_000 + b"]" * 30_000 + b"}",
    b'{"number": "\\ud800"}',
    b'{"number": null}',
    b"[]",
    b"\xff",
]


@pytest.mark.parametrize("body", BODIES, ids=range(len(BODIES)))
@pytest.mark.parametrize("path", ["/api/cancel", "/api/jobs"])
def test_odd_numbers_and_brackets_are_refused_in_a_sentence(explorer, path, body):
    headers = {"Origin": f"http://127.0.0.1:{explorer.port}", "Content_Type": "application/json"}
    answer = explorer.ask(path, "POST", body, **headers)
    assert answer.status == 400
    assert json.loads(answer.text)["error"]


def test_half_a_character_in_a_job_does_not_break_the_list_of_jobs(tmp_path, start_explorer):
    with start_explorer(tmp_path / "runs", "--allow-runs") as found:
        for settings in ({"name": "\ud800"}, {"source": "\udfff"}):
            for kind in ("run quick", "train", "\ud800"):
                assert found.post("/api/jobs", {"kind": kind, "settings": settings}).status == 400
        assert found.json("/api/jobs") == []


def test_one_bad_file_never_hides_the_others(tmp_path, start_explorer):
    runs = tmp_path / "runs"
    record(runs / "good")
    (runs / "deep.toml").write_text("a = " + "[" * 5000 + "]" * 5000)
    (runs / "good.toml").write_text("[training]\nsteps = 3\n")
    for name, text in (("deep", '{"format": ' + "[" * 100_000), ("odd", "[1]"), ("text", "study")):
        (runs / name).mkdir()
        (runs / name / "study.json").write_text(text)
    for name in ("run.json", "curves.jsonl", "end.json") if hasattr(os, "mkfifo") else ():
        record(runs / f"pipe {name}")
        (runs / f"pipe {name}" / name).unlink()
        os.mkfifo(runs / f"pipe {name}" / name)
    with start_explorer(runs) as found:
        rows = found.json("/api/runs")["rows"]
        assert "good" in [row["name"] for row in rows]
        sources = [one["name"] for one in found.json("/api/sources")]
        assert "good.toml" in sources
        assert "deep.toml" not in sources
        studies = found.json("/api/studies")
        assert len(studies) == 3
        assert all("error" in row for row in studies)
        for row in rows:
            assert found.ask(f"/api/curves?run={quote(row['run'])}&curve=loss").status in (200, 400)


def test_the_cookie_is_not_the_token_and_the_first_address_is_good_once(tmp_path):
    from starlette.testclient import TestClient

    from tiltmeter.explorer.server import make_app

    settings = Settings(tmp_path, 8765, "127.0.0.1", token="shared", once="once")
    assert settings.first_visit.endswith("?token=once")
    assert "once" not in settings.address
    app = make_app(settings)

    def visit(token):
        client = TestClient(app, base_url="http://127.0.0.1:8765")
        answer = client.get(f"/?token={token}", follow_redirects=False)
        return answer.status_code, answer.cookies.get("tiltmeter-8765"), client

    status, cookie, client = visit("once")
    assert status == 303
    assert cookie not in ("once", "shared", None)
    assert client.get("/").status_code == 200
    assert visit("once")[0] == 403
    assert visit(cookie)[0] == 403, "what is in the cookie opens no door anew"
    status, other, _ = visit("shared")
    assert status == 303
    assert other != cookie
    stranger = TestClient(app, base_url="http://127.0.0.1:8765", cookies={"tiltmeter-8765": "shared"})
    assert stranger.get("/").status_code == 403


def test_one_scan_of_the_folder_serves_everybody(tmp_path, run_async):
    record(tmp_path / "run")
    asked = []

    class Reader:
        async def answer(self, job, **_):
            asked.append(job)
            await asyncio.sleep(0.05)
            return {"now": 1.0, "version": "v", "rows": [1]}

        def stop(self):
            pass

    async def visit():
        state = State(Settings(tmp_path, 0))
        state.reader = Reader()
        answers = await asyncio.gather(*(state.rows("v" if n % 2 else "") for n in range(40)))
        await asyncio.sleep(0.5)
        await state.rows("")
        return answers

    answers = run_async(visit())
    assert asked == ["rows", "rows"]
    assert [("rows" in answer) for answer in answers] == [True, False] * 20
