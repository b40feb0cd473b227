"""Who gets an answer: foreign hosts, origins, ports and sites, rebinding, traversal, changes, tokens."""

import socket
from pathlib import Path

import pytest

from tiltmeter.explorer.settings import Settings


def test_the_page_itself_is_answered(explorer):
    answer = explorer.ask("/")
    assert answer.status == 200
    assert "<main" in answer.text
    for host in ("localhost", "LOCALHOST", "[::1]"):
        assert explorer.ask("/api/start", host=f"{host}:{explorer.port}").status == 200
    own = f"http://127.0.0.1:{explorer.port}"
    assert explorer.ask("/api/start", Origin=own, Sec_Fetch_Site="same-origin").status == 200


def test_a_foreign_host_is_not_answered(explorer):
    # A rebound name points here, and its page sends an Origin that agrees with its Host.
    for host in (
        "evil.example",
        f"evil.example:{explorer.port}",
        "127.0.0.1",
        "127.0.0.1:1",
        f"127.0.0.1.evil.example:{explorer.port}",
        f"127.0.0.1:{explorer.port}.evil.example",
        "",
    ):
        answer = explorer.ask("/api/start", host=host, **({"Origin": f"http://{host}"} if host else {}))
        assert answer.status in (400, 421), host
        assert "presets" not in answer.text


def test_two_hosts_are_not_answered(explorer):
    with socket.create_connection(("127.0.0.1", explorer.port), timeout=10) as raw:
        host = f"Host: 127.0.0.1:{explorer.port}\r\n"
        raw.sendall(f"GET /api/start HTTP/1.1\r\n{host}Host: evil.example\r\n\r\n".encode())
        assert raw.recv(200).split()[1] in (b"400", b"421")


@pytest.mark.parametrize(
    "origin",
    ["http://evil.example", "null", "http://127.0.0.1:1", "https://127.0.0.1:{port}", "http://localhost", "file://"],
)
def test_a_foreign_origin_is_not_answered(explorer, origin):
    assert explorer.ask("/api/start", Origin=origin.format(port=explorer.port)).status == 403


@pytest.mark.parametrize("site", ["cross-site", "same-site", "nonsense"])
def test_requests_of_other_sites_are_not_answered(explorer, site):
    assert explorer.ask("/api/start", Sec_Fetch_Site=site).status == 403
    assert explorer.ask("/", "HEAD", Sec_Fetch_Site=site).status == 403
    # A link to the page may be followed; it only opens the page.
    assert explorer.ask("/", Sec_Fetch_Site=site, Sec_Fetch_Mode="navigate").status == 200
    assert explorer.ask("/api/start", Sec_Fetch_Site=site, Sec_Fetch_Mode="navigate").status == 403


@pytest.mark.parametrize("method", ["PUT", "DELETE", "OPTIONS", "PATCH", "TRACE"])
def test_other_methods_are_refused(explorer, method):
    assert explorer.ask("/api/start", method).status == 405


@pytest.mark.parametrize(
    "path",
    [
        "/page/../server.py",
        "/page/..%2fserver.py",
        "/page/%2e%2e/server.py",
        "/page/..%252fserver.py",
        "/page//etc/passwd",
        "/page/..\\server.py",
        "/../../etc/passwd",
        "/page/theory/../../locks.py",
        "/page/%00",
        "/page/theory",
    ],
)
def test_paths_lead_nowhere(explorer, path):
    answer = explorer.ask(path)
    assert answer.status in (400, 404)
    assert "root:" not in answer.text
    assert "import" not in answer.text


def test_a_change_must_come_from_the_page(explorer):
    own = {"Origin": f"http://127.0.0.1:{explorer.port}", "Content_Type": "application/json"}
    assert explorer.ask("/api/jobs", "POST", b"{}", Content_Type="application/json").status == 403
    assert explorer.ask("/api/jobs", "POST", b"{}", **{**own, "Content_Type": "text/plain"}).status == 415
    assert explorer.ask("/api/jobs", "POST", b"{}", **{**own, "Origin": "http://evil.example"}).status == 403
    assert explorer.ask("/api/jobs", "POST", b" " * 70_000, **own).status == 413


def test_every_answer_has_its_policy(explorer):
    for path in ("/", "/page/main.js", "/api/start", "/nothing"):
        answer = explorer.ask(path)
        policy = answer.getheader("Content-Security-Policy")
        assert policy.startswith("default-src 'none'; script-src 'self';")
        assert "unsafe-eval" not in policy
        assert "frame-ancestors 'none'" in policy
        assert answer.getheader("X-Content-Type-Options") == "nosniff"
        assert answer.getheader("Cross-Origin-Resource-Policy") == "same-origin"
        assert answer.getheader("Access-Control-Allow-Origin") is None


def test_a_websocket_is_not_opened(explorer):
    upgrade = {
        "Connection": "Upgrade",
        "Upgrade": "websocket",
        "Sec_WebSocket_Key": "x" * 22 + "==",
        "Sec_WebSocket_Version": "13",
    }
    assert explorer.ask("/", **upgrade).status == 200  # an ordinary answer: there is nothing to upgrade to


def test_only_the_loopback_address_listens(explorer):
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("192.0.2.1", 9))  # sends nothing; tells which address of this machine would be used
            own = probe.getsockname()[0]
        except OSError:
            pytest.skip("This machine has no other address: nothing to try.")
    if own.startswith("127."):
        pytest.skip("This machine has no other address: nothing to try.")
    with pytest.raises(OSError, match="refused"):
        socket.create_connection((own, explorer.port), timeout=5)


def test_other_addresses_need_a_token():
    with pytest.raises(
        ValueError, match=r"`host` should be the loopback address unless there is a token. Found host = '0.0.0.0'."
    ):
        Settings(Path("runs"), 8765, host="0.0.0.0")
    shared = Settings(Path("runs"), 8765, host="Lab.example", token="secret")
    assert shared.hosts == {"lab.example:8765"}
    assert shared.address == "http://lab.example:8765/?token=secret"


@pytest.mark.slow
def test_sharing_needs_the_token(tmp_path, start_explorer):
    with start_explorer(tmp_path, "--share", "127.0.0.1") as shared:
        assert shared.ask("/").status == shared.ask("/api/start").status == 403
        assert shared.ask("/?token=wrong").status == 403
        first = shared.ask("/" + shared.address.partition("/?")[2].join(["?", ""]))
        assert first.status == 303
        cookie = first.getheader("Set-Cookie")
        assert "HttpOnly" in cookie
        assert "SameSite=strict" in cookie
        assert shared.ask("/api/start", Cookie=cookie.partition(";")[0]).status == 200
        assert shared.ask("/api/start", Cookie=cookie.partition(";")[0] + "x").status == 403
        assert shared.ask("/api/start", Cookie=cookie.partition(";")[0], host="evil.example").status == 421
