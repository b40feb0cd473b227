"""Locks: which requests are answered at all.

A page on the internet can make a browser on this machine send requests to this server. It is told apart by what it
cannot forge: the Host it asked for (a name that was rebound to this address is not on our list), the Origin it comes
from, and `Sec-Fetch-Site`. Both headers are compared with a fixed list, never with each other: after a rebinding they
agree.
"""

from __future__ import annotations

import secrets
from contextlib import suppress
from hmac import compare_digest
from http.cookies import CookieError, SimpleCookie
from urllib.parse import parse_qs

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import ClientDisconnect
from starlette.responses import PlainTextResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from tiltmeter.explorer.settings import LARGEST_TABLE, UPLOAD, Settings

#: Scripts and data only from this server, no eval, no frames. Charts carry their styles with them.
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data: blob:; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
HEADERS = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}
#: The most bytes that anyone may send.
MOST_BYTES = 65_536
#: The most visits that are remembered; the oldest have to use the shared address again.
MOST_VISITS = 1000


class Locks:
    """The outermost layer of the application."""

    def __init__(self, app: ASGIApp, settings: Settings) -> None:
        self._app, self._settings = app, settings
        self._origins = {f"http://{host}" for host in settings.hosts}
        # Cookies go to every port of a host, so this one says its port, and holds nothing that opens the door anew.
        self._cookie = f"tiltmeter-{settings.port}"
        self._visits: dict[str, None] = {}
        self._once = settings.once

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        if scope["type"] != "http":
            await send({"type": "websocket.close", "code": 1008})
            return

        async def locked(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    headers.setdefault(name, value)
            await send(message)

        left = _most_bytes(scope)

        async def limited() -> Message:
            nonlocal left
            message = await receive()
            left -= len(message.get("body", b""))
            return message if left >= 0 else {"type": "http.disconnect"}

        refusal = self._refusal(scope)
        if refusal is not None and scope["method"] == "POST":
            refusal.headers["Connection"] = "close"  # what else it may send is not read
        with suppress(ClientDisconnect):
            await (refusal or self._app)(scope, limited, locked)

    def _refusal(self, scope: Scope) -> Response | None:
        headers = Headers(scope=scope)
        if len(headers.getlist("host")) != 1 or headers["host"].lower() not in self._settings.hosts:
            return PlainTextResponse("This server does not answer under that name.", 421)
        origin = headers.get("origin")
        if origin is not None and origin not in self._origins:
            return PlainTextResponse("Requests from other pages are not answered.", 403)
        site = headers.get("sec-fetch-site")
        opened_by_link = (
            scope["method"] == "GET" and headers.get("sec-fetch-mode") == "navigate" and scope["path"] == "/"
        )
        if site not in (None, "same-origin", "none") and not opened_by_link:
            return PlainTextResponse("Requests from other pages are not answered.", 403)
        if scope["method"] not in ("GET", "HEAD", "POST"):
            return PlainTextResponse("Only GET, HEAD and POST are answered.", 405)
        refused = self._without_token(scope, headers)
        return refused or (self._of_change(scope, headers) if scope["method"] == "POST" else None)

    def _without_token(self, scope: Scope, headers: Headers) -> Response | None:
        token = self._settings.token
        if token is None:
            return None
        given = parse_qs(scope["query_string"].decode("latin-1")).get("token", [""])[0]
        first = self._once is not None and _same(given, self._once)
        if first or _same(given, token):
            self._once = None if first else self._once
            visit = secrets.token_urlsafe(24)
            self._visits[visit] = None
            while len(self._visits) > MOST_VISITS:
                del self._visits[next(iter(self._visits))]
            answer = RedirectResponse("/", 303)
            answer.set_cookie(self._cookie, visit, httponly=True, samesite="strict", path="/")
            return answer
        try:
            kept = SimpleCookie(headers.get("cookie", "")).get(self._cookie)
        except CookieError:
            kept = None
        if kept is not None and kept.value in self._visits:
            return None
        return PlainTextResponse("Open the address that `tiltmeter explore --share` printed: it holds a token.", 403)

    def _of_change(self, scope: Scope, headers: Headers) -> Response | None:
        """A change is asked for by this page only: a form of another one sends no JSON, no plain bytes, and its own
        Origin."""
        if headers.get("origin") is None:
            return PlainTextResponse("A change should be asked for by the page itself.", 403)
        wanted = "application/octet-stream" if scope["path"] == UPLOAD else "application/json"
        if headers.get("content-type", "").partition(";")[0].strip().lower() != wanted:
            return PlainTextResponse("A change should be asked for in JSON, and a table sent as plain bytes.", 415)
        if "transfer-encoding" in headers:
            return PlainTextResponse("A change should say its length and come in one piece.", 411)
        length = headers.get("content-length", "")
        most = _most_bytes(scope)
        if not length.isascii() or not length.isdigit() or len(length) > 9 or int(length) > most:
            return PlainTextResponse(f"At most {most} bytes are read.", 413)
        return None


def _most_bytes(scope: Scope) -> int:
    return LARGEST_TABLE if scope["path"] == UPLOAD else MOST_BYTES


def _same(given: str, token: str) -> bool:
    return compare_digest(given.encode(), token.encode())
