"""SECURITY.md: every promise names tests, and these tests exist."""

import re
from pathlib import Path

TESTS = Path(__file__).parent


def test_every_promise_is_held_by_tests_that_exist():
    text = (TESTS.parent / "SECURITY.md").read_text(encoding="utf-8")
    rows = [line.split("|")[1:-1] for line in text.splitlines() if line.startswith("| **")]
    assert len(rows) > 10
    for promise, _, held_by in rows:
        named = re.findall(r"`([^`]+)`", held_by)
        assert named, promise
        for name in named:
            file, *inside = name.split("::")
            source = (TESTS.parent / file if file.startswith("lab/") else TESTS / file).read_text(encoding="utf-8")
            for part in inside:
                assert re.search(rf"^\s*(def|class) {part}\b", source, re.MULTILINE), name
