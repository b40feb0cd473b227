"""The outputs that the documentation shows are those of its code: every block has one, and masks hide what differs."""

import importlib.util
import sys
from pathlib import Path

import pytest

EXT = Path(__file__).parents[1] / "docs" / "ext"


def extension(name):
    spec = importlib.util.spec_from_file_location(name, EXT / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


OUTPUTS = extension("outputs")
TEXT = "Words.\n\n```python\nx = 1\nassert x\nprint(x)\n```\n\nMore.\n\n```python\nprint(2)\n```\n\n```text printed\n2\n```\n"


def test_every_block_has_its_stored_output():
    pages = [OUTPUTS.name_of(page) for page in OUTPUTS.stale(OUTPUTS.stored())]
    assert pages == [], "run `make docs`"


def test_a_block_depends_on_all_blocks_before_it():
    first, second = OUTPUTS.hashes(TEXT)
    changed = OUTPUTS.hashes(TEXT.replace("x = 1", "x = 3"))
    assert first not in changed
    assert second not in changed
    assert OUTPUTS.hashes(TEXT.replace("Words", "Other words")) == [first, second]
    assert OUTPUTS.hashes(TEXT.replace("print(2)", "print(5)"))[0] == first


def test_outputs_stand_below_their_blocks_without_asserts():
    first, second = OUTPUTS.hashes(TEXT)
    page, missing = OUTPUTS.shown(TEXT, {first: "1", second: "2"})
    assert missing == 0
    assert "```python\nx = 1\nprint(x)\n```\n\n```{code-block} text\n:class: output\n\n1\n```\n" in page
    assert page.count("\n2\n") == 1, "what the page shows already is not shown again"
    assert OUTPUTS.shown(TEXT, {first: "1"})[1] == 1


def test_seconds_paths_and_versions_are_masked():
    text = "Took 3.2 s in /tmp/a/b.json, tiltmeter 0.1.0, <f at 0x7f00aabbcc>; 5 % of 12 steps   "
    assert OUTPUTS.masked(text) == "Took … s in …, tiltmeter …, <f at 0x…>; 5 % of 12 steps"


def test_a_page_runs_in_order(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert list(OUTPUTS.executed(TEXT)[0].values()) == ["1", "2"]


def test_blocks_after_a_slow_one_are_quick_to_pass_only_while_nothing_changes(tmp_path, monkeypatch):
    monkeypatch.setattr(OUTPUTS, "QUICK", tmp_path / "quick.json")
    OUTPUTS._store_quick("page", TEXT, [0.5, 3.0])
    assert OUTPUTS.quick_blocks("page", TEXT) == 1
    assert OUTPUTS.quick_blocks("page", TEXT.replace("Words", "Other words")) == 1
    assert OUTPUTS.quick_blocks("page", TEXT.replace("print(2)", "print(5)")) == 2
    assert OUTPUTS.quick_blocks("unknown", TEXT) == 2
    OUTPUTS._store_quick("page", TEXT, [0.5, 1.9])
    assert OUTPUTS.quick_blocks("page", TEXT) == 1, "measured once"
    OUTPUTS._store_quick("page", TEXT.replace("print(2)", "print(5)"), [0.5, 1.9])
    assert OUTPUTS.quick_blocks("page", TEXT.replace("print(2)", "print(5)")) == 2


def test_the_page_of_the_command_line_lists_every_option(monkeypatch):
    pytest.importorskip("sphinx")
    monkeypatch.setattr(sys, "argv", ["tiltmeter"])
    text = extension("command_line").options()
    assert "### tiltmeter gate" in text
    assert "--unclear" in text
    assert "--per-decade" in text or "--evaluations" in text
