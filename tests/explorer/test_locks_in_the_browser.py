"""What another page in the same browser can do to the explorer: nothing. Tried in Chromium, not with made-up
headers."""

import http.server
import threading

import pytest

pytestmark = pytest.mark.slow

PAGE = b"<!DOCTYPE html><title>elsewhere</title><p>Another page."
TRIES = """async (address) => {
  const told = {};
  const ask = async (name, options) => {
    try {
      const answer = await fetch(address + "api/jobs", options);
      told[name] = answer.type === "opaque" ? "opaque" : answer.status;
    } catch (error) { told[name] = "no answer"; }
  };
  const start = { kind: "run quick", settings: { name: "three-phases" } };
  await ask("read", {});
  await ask("read without cors", { mode: "no-cors" });
  await ask("change as text", { method: "POST", mode: "no-cors", headers: { "Content-Type": "text/plain" }, body: JSON.stringify(start) });
  await ask("change as json", { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(start) });
  const script = document.createElement("script");
  told.script = await new Promise((done) => {
    script.onload = () => done("loaded");
    script.onerror = () => done("no answer");
    script.src = address + "vega.js";
    document.head.append(script);
  });
  const frame = document.createElement("iframe");
  frame.src = address;
  document.body.append(frame);
  await new Promise((done) => { frame.onload = done; setTimeout(done, 3000); });
  try { told.frame = frame.contentDocument ? "open" : "closed"; } catch { told.frame = "closed"; }
  return told;
}"""


@pytest.fixture
def elsewhere():
    """A page of another origin: the same machine, another port."""

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            self.send_response(200)
            self.send_header("Content-Type", "text/html")
            self.end_headers()
            self.wfile.write(PAGE)

        def log_message(self, *_):
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}/"
    server.shutdown()


@pytest.fixture
def writable(tmp_path, start_explorer):
    with start_explorer(tmp_path / "runs", "--allow-runs") as found:
        yield found


def test_another_page_reads_and_starts_nothing(writable, elsewhere, browser):
    page = browser.new_page()
    page.goto(elsewhere)
    told = page.evaluate(TRIES, writable.address)
    assert told["read"] == told["change as json"] == "no answer"
    assert told["read without cors"] in ("opaque", "no answer")
    assert told["script"] == "no answer"
    assert told["frame"] == "closed"
    assert writable.json("/api/jobs") == []
    page.close()


def test_a_page_of_a_disk_reads_nothing(writable, browser, tmp_path):
    (tmp_path / "page.html").write_bytes(PAGE)
    page = browser.new_page()
    page.goto((tmp_path / "page.html").as_uri())
    told = page.evaluate(TRIES, writable.address)
    assert told["read"] == told["change as json"] == told["script"] == "no answer"
    assert writable.json("/api/jobs") == []
    page.close()


def test_a_name_that_was_made_to_point_here_is_not_answered(writable, browser):
    """DNS rebinding: for Chromium, evil.example is this machine, so page and server are of one origin."""
    with browser.browser_type.launch(
        executable_path=_chromium(),
        args=["--no-sandbox", "--disable-gpu", "--host-resolver-rules=MAP evil.example 127.0.0.1"],
    ) as rebound:
        page = rebound.new_page()
        answer = page.goto(f"http://evil.example:{writable.port}/")
        assert answer.status == 421
        assert "does not answer under that name" in page.content()
        told = page.evaluate(
            "async () => (await fetch('/api/jobs', { method: 'POST', headers: { 'Content-Type': 'application/json' }, "
            'body: \'{"kind": "run quick", "settings": {"name": "three-phases"}}\' })).status'
        )
        assert told == 421
    assert writable.json("/api/jobs") == []


def _chromium():
    import shutil

    return shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
