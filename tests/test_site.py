"""The documentation builds offline without a warning, and its pages fetch nothing."""

import html
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
        if path.relative_to(DOCS).parts[0] not in ("_build", "api", "evidence", "gallery")
    }
    assert sorted(page for tree in TREES for page in listed(tree)) == sorted(pages - {"index", *TREES})


def test_the_proofs_of_the_front_page_are_those_of_the_verdicts():
    front = (DOCS / "index.md").read_text(encoding="utf-8")
    page = pytest.importorskip("tiltmeter_lab.verdict_page")
    claims = page.spoken(page.read_outcomes())
    verdicts = "\n".join(" ".join(page.row(name, claim)) for name, claim in claims)
    _, published, clear, against, undecided, measured, _ = page.counted_by_origin(claims)[0]
    assert f"**{clear} of {published}** published claims" in front
    assert f"{against} are contradicted, {undecided} undecided, {measured} measured" in front
    named = float(re.search(r"in the worst of five curves \(\w+\): ([\d.]+)", verdicts)[1])
    assert f"**{100 * named:.1f} ± " in front
    distance = re.search(r"largest distance of the mean at d = 1000.*?: ([\d.]+), [^;]+; 200 seeds", verdicts)[1]
    assert f"**{distance}** standard errors" in front


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    pytest.importorskip("sphinx")
    place = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "sphinx", "-q", "-W", "--keep-going", "-d", str(place / "trees")]
    done = subprocess.run([*command, "-b", "html", str(DOCS), str(place / "html")], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return place / "html"


@pytest.mark.slow
def test_the_site_is_small_and_fetches_nothing(site):
    pages = {page: page.read_text(encoding="utf-8") for page in site.rglob("*.html")}
    assert {page.stem for page in DOCS.glob("*.md")} <= {page.stem for page in pages}
    assert (site / "api" / "tm.forecast.html") in pages
    for page, text in pages.items():
        assert not re.findall(r'<(?:script|link|img)[^>]*(?:src|href)="https?://', text), page.name
    assert sum(file.stat().st_size for file in site.rglob("*") if file.is_file()) < 30e6
    assert all(text.count("copy.js") == 1 for page, text in pages.items() if page.stem in ("probe", "cite"))
    assert "<math" in pages[site / "theory.html"]


@pytest.mark.slow
def test_every_link_leads_somewhere(site):
    texts = {page: page.read_text(encoding="utf-8") for page in site.rglob("*.html")}
    known = {page: set(re.findall(r'\b(?:id|name)="([^"]*)"', text)) for page, text in texts.items()}
    del known[site / "explorable.html"]  # what follows # there are settings
    wrong = set()
    for page, text in texts.items():
        if page.name in ("explorable.html", "search.html") or page.parent.name == "notebooks":
            continue  # their links are made by their own scripts
        for link in set(re.findall(r'<a [^>]*href="([^"]*)"', text)):
            address, _, anchor = html.unescape(link).partition("#")
            if re.match(r"[a-z]+:", address):
                continue
            target = (page.parent / address).resolve() if address else page
            if not target.exists() or (anchor and target in known and anchor not in known[target]):
                wrong.add((page.relative_to(site).as_posix(), link))
    assert sorted(wrong) == []
