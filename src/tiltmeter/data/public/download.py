"""Download: the bytes of one address, up to a limit; a redirect to another host is named."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from urllib.parse import urlsplit

#: No published file is larger.
MOST_BYTES = 4 * 2**30
#: Seconds without an answer.
PATIENCE = 30


class Download:
    """What pooch calls to bring a file; `say` hears of another host before anything is taken from it."""

    def __init__(self, say: Callable[[str], None], most: int = MOST_BYTES) -> None:
        self._say, self._most = say, most

    def __call__(self, url: str, output_file: Any, pooch: Any) -> None:  # noqa: ARG002
        import requests

        with requests.get(url, stream=True, timeout=PATIENCE) as answer:
            answer.raise_for_status()
            asked, came = urlsplit(url).hostname, urlsplit(answer.url).hostname
            if came != asked:
                self._say(f"Redirected from {asked} to {came}")
            if urlsplit(url).scheme == "https" and urlsplit(answer.url).scheme != "https":
                raise OSError(f"redirected from https to {urlsplit(answer.url).scheme}, which is refused")
            taken = 0
            with open(output_file, "wb") as file:
                for part in answer.iter_content(2**20):
                    taken += len(part)
                    if taken > self._most:
                        raise OSError(f"the file there is larger than {self._most:,} bytes, which is refused")
                    file.write(part)
