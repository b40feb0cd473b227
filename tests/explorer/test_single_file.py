"""The page as one file."""

import importlib.util
import re
import shutil
import subprocess
from collections import Counter
from pathlib import Path
from types import SimpleNamespace

import pytest

from tiltmeter.explorer.single_file import declared, one_script, page_files, single_file

#: Names of formats, which are never asked for.
NAMESPACES = {"https://vega.github.io/schema/vega-lite/v6.json", "http://www.w3.org/2000/svg"}
MODULES = [name for name in page_files() if name.endswith(".js")]


def test_no_two_modules_declare_the_same_name():
    counted = Counter(name for module in MODULES for name in declared(module))
    assert [name for name, count in counted.items() if count > 1] == []


def test_every_module_is_used_and_nothing_is_imported_any_more():
    script = one_script("main.js")
    assert sorted(re.findall(r"^// ([\w/]+\.js)$", script, re.MULTILINE)) == sorted(MODULES)
    assert not re.search(r"^(import|export) ", script, re.MULTILINE)


@pytest.mark.skipif(shutil.which("node") is None, reason="Node.js is not installed: the script was not parsed.")
def test_the_script_parses(tmp_path):
    (tmp_path / "one.mjs").write_text(one_script("main.js"), encoding="utf-8")
    subprocess.run(["node", "--check", "one.mjs"], cwd=tmp_path, check=True)


def test_embedded_text_cannot_end_its_element():
    page = single_file("</title><script>", {"query": "</script><script>window.pwned = 1</script>"})
    assert page.count("<script") == 2
    assert "</title><script>" not in page
    assert "connect-src 'none'" in page


@pytest.mark.slow
def test_the_documentation_gets_a_page_to_play_with(tmp_path, open_page):
    ext = Path(__file__).parents[2] / "docs" / "ext" / "explorable.py"
    spec = importlib.util.spec_from_file_location("explorable", ext)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    handlers = {}
    module.setup(SimpleNamespace(connect=handlers.__setitem__))
    handlers["build-finished"](SimpleNamespace(builder=SimpleNamespace(name="html"), outdir=str(tmp_path)), None)
    page = open_page((tmp_path / "explorable.html").as_uri() + "#theory?rho=0.7")
    page.wait_for_selector("#chart-loss svg .mark-line path", state="attached")
    assert page.get_by_role("slider", name="Share of +", exact=True).get_attribute("aria-valuetext") == "0.7"
    page.get_by_role("link", name="Lessons").click()
    page.wait_for_selector("article")
    assert page.get_by_role("article").count() == 4


def test_no_page_file_names_another_machine():
    for name, text in page_files().items():
        addresses = set(re.findall(r"https?://[^\"'` )]+", text)) - NAMESPACES
        assert addresses == set(), name
