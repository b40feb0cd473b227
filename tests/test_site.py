"""The documentation builds offline without a warning, and its pages fetch nothing."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[1] / "docs"
TREES = ("start", "tutorials", "howto", "understand", "reference", "evidence")


def listed(page):
    """The pages in the tables of contents of a page."""
    text = (DOCS / f"{page}.md").read_text(encoding="utf-8")
    lines = [
        line for block in re.findall(r"^```{toctree}\n(.*?)^```", text, re.M | re.S) for line in block.splitlines()
    ]
    return [re.sub(r".*<(.*)>", r"\1", line) for line in lines if line and not line.startswith(":")]


def test_every_page_is_in_exactly_one_tree():
    assert listed("index") == list(TREES)
    pages = {
        path.relative_to(DOCS).with_suffix("").as_posix()
        for path in DOCS.rglob("*.md")
        if path.relative_to(DOCS).parts[0] not in ("_build", "api", "evidence")
    }
    assert sorted(page for tree in TREES for page in listed(tree)) == sorted(pages - {"index", *TREES})


def test_the_proofs_of_the_front_page_are_those_of_the_verdicts():
    front = (DOCS / "index.md").read_text(encoding="utf-8")
    page = pytest.importorskip("tiltmeter_lab.verdict_page")
    claims = page.spoken(page.read_outcomes(DOCS / "lab" / "verdicts.json"))
    verdicts = "\n".join(" ".join(page.row(name, claim)) for name, claim in claims)
    _, published, clear, against, undecided, measured, _ = page.counted_by_origin(claims)[0]
    assert f"**{clear} of {published}** published claims" in front
    assert f"{against} are contradicted, {undecided} undecided, {measured} measured" in front
    named = float(re.search(r"in the worst of five curves \(\w+\): ([\d.]+)", verdicts)[1])
    assert f"**{100 * named:.1f} ± " in front
    distance = re.search(r"largest distance of the mean at d = 1000.*?: ([\d.]+); 200 seeds", verdicts)[1]
    assert f"**{distance}** standard errors" in front


@pytest.mark.slow
def test_the_site_builds_without_warnings_and_fetches_nothing(tmp_path):
    pytest.importorskip("sphinx")
    command = [sys.executable, "-m", "sphinx", "-q", "-W", "--keep-going", "-b", "html", str(DOCS), str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    parts = ("*.html", "start/*.html", "tutorials/*.html", "howto/*.html")
    pages = sorted(page for part in parts for page in tmp_path.glob(part))
    assert {page.stem for page in DOCS.glob("*.md")} <= {page.stem for page in pages}
    for page in pages:
        text = page.read_text(encoding="utf-8")
        assert not re.findall(r'<(?:script|link|img)[^>]*(?:src|href)="https?://', text), page.name
    assert all(
        (tmp_path / name).read_text(encoding="utf-8").count("copy.js") == 1
        for name in ("probe.html", "howto/cite.html")
    )
    assert "<math" in (tmp_path / "theory.html").read_text(encoding="utf-8")
