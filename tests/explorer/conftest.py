"""An explorer as a user starts it, in a process of its own, and Chromium to look at it."""

import http.client
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

import pytest

import tiltmeter

#: The tiltmeter and the laboratory that are tested are also those that run beside the tests.
SOURCES = (Path(tiltmeter.__file__).parents[1], Path(__file__).parents[2] / "lab" / "src")
ENVIRONMENT = {**os.environ, "PYTHONPATH": os.pathsep.join(map(str, SOURCES)), "OMP_NUM_THREADS": "1"}
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")


class Explorer:
    """A running server: its address, and requests to it with any headers."""

    def __init__(self, process, address, folder):
        self.process, self.address, self.folder = process, address, folder
        self.port = urlsplit(address).port

    def ask(self, path, method="GET", body=None, host=None, **headers):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=240)
        connection.putrequest(method, path, skip_host=True, skip_accept_encoding=True)
        if host != "":
            connection.putheader("Host", host or f"127.0.0.1:{self.port}")
        for name, value in headers.items():
            connection.putheader(name.replace("_", "-"), value)
        if body is not None:
            connection.putheader("Content-Length", str(len(body)))
        connection.endheaders(body)
        answer = connection.getresponse()
        answer.text = answer.read().decode(errors="replace")
        connection.close()
        return answer

    def json(self, path, **settings):
        answer = self.ask(path, **settings)
        assert answer.status == 200, answer.text
        return json.loads(answer.text)

    def post(self, path, value, **headers):
        headers = {"Origin": f"http://127.0.0.1:{self.port}", "Content_Type": "application/json", **headers}
        return self.ask(path, "POST", json.dumps(value).encode(), **headers)


@contextmanager
def exploring(folder, *options, port=0):
    command = [sys.executable, "-m", "tiltmeter", "explore", str(folder), "--quiet", "--port", str(port), *options]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=ENVIRONMENT)
    try:
        line = process.stdout.readline()
        found = re.search(r"http://\S+", line)
        assert found, line + process.stderr.read()
        yield Explorer(process, found[0], folder)
    finally:
        if process.poll() is None:
            process.send_signal(signal.SIGINT)
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                process.kill()
        process.stdout.close()
        process.stderr.close()


@pytest.fixture(scope="session")
def start_explorer():
    return exploring


@pytest.fixture(scope="session")
def explorer(tmp_path_factory):
    """One server for all tests that only read."""
    with exploring(tmp_path_factory.mktemp("explored") / "runs") as found:
        yield found


@pytest.fixture(scope="session")
def browser():
    if CHROMIUM is None:
        pytest.skip("Chromium is not installed: the page was not looked at.")
    playwright = pytest.importorskip(
        "playwright.sync_api", reason="playwright is not installed: the page was not looked at."
    )
    with playwright.sync_playwright() as p:
        found = p.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox", "--disable-gpu"])
        yield found
        found.close()


class Seen:
    """A page with everything it did: errors and requests."""

    def __init__(self, page):
        self.page, self.errors, self.requests = page, [], []
        page.on("console", lambda message: self.errors.append(message.text) if message.type == "error" else None)
        page.on("pageerror", lambda error: self.errors.append(str(error)))
        page.on("request", lambda request: self.requests.append(request.url))

    def check(self):
        assert self.errors == []
        away = [url for url in self.requests if urlsplit(url).hostname not in ("127.0.0.1", None)]
        assert away == [], "requests off the machine"


@pytest.fixture
def open_page(browser):
    """Open an address; at the end there was no error and no request to anywhere else. Close before the server ends."""
    opened = []

    def open_page(address, width=1280, height=900, **context):
        seen = Seen(browser.new_page(viewport={"width": width, "height": height}, **context))
        seen.page.set_default_timeout(240_000)
        seen.page.goto(address)
        opened.append(seen)
        return seen.page

    yield open_page
    for seen in opened:
        seen.page.close()
    for seen in opened:
        seen.check()


def wait_until(condition, seconds=30.0, pause=0.05):
    end = time.monotonic() + seconds * slowdown()
    while not (found := condition()):
        assert time.monotonic() < end, "it did not happen in time"
        time.sleep(pause)
    return found


@pytest.fixture(scope="session")
def until():
    return wait_until


def slowdown():
    """How many times longer work takes here than alone on a core: 1 on an idle machine."""
    wall, cpu = time.perf_counter(), time.process_time()
    while time.process_time() - cpu < 0.1:
        pass
    return max(1.0, (time.perf_counter() - wall) / (time.process_time() - cpu))


@pytest.fixture
def crowded():
    return slowdown
