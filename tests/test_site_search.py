"""The search of the built site finds the page that a newcomer looks for, ranked by its own script."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[1] / "docs"
FIRST = {
    "install": "start/install",
    "tutorial": "tutorials",
    "own data": "tutorials/own-table",
    "fairness": "tutorials/predictions",
    "subgroup": "tutorials/no-groups",
    "early stopping": "howto/choose-checkpoint",
    "AdamW": "tutorials/forecast-and-change",
    "Lightning": "howto/trainers",
    "MLflow": "howto/trackers",
    "boosting": "howto/boosting",
    "old checkpoints": "howto/old-checkpoints",
    "model card": "howto/model-card",
    "several processes": "howto/several-processes",
    "memory": "howto/larger-than-memory",
    "exit code": "howto/fail-ci",
    "cite": "howto/cite",
}


@pytest.fixture(scope="module")
def found(tmp_path_factory):
    pytest.importorskip("sphinx")
    if shutil.which("node") is None:
        pytest.skip("node is not installed")
    site = tmp_path_factory.mktemp("site")
    build = [sys.executable, "-m", "sphinx", "-q", "-b", "html", str(DOCS), str(site)]
    subprocess.run(build, check=True, capture_output=True)
    command = ["node", str(Path(__file__).with_name("search_site.js")), str(site), *FIRST, "zyxwvut"]
    return json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


@pytest.mark.slow
@pytest.mark.parametrize("query", FIRST)
def test_the_right_page_comes_first(found, query):
    assert found[query][:1] == [FIRST[query]]


@pytest.mark.slow
def test_words_that_are_nowhere_find_nothing(found):
    assert found["zyxwvut"] == []
