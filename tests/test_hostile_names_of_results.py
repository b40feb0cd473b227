"""Hostile names through papers' tables, model cards, scorecards, advice, studies and forecasts: text, never obeyed."""

import re
import shutil
from html import unescape

import numpy as np
import pytest
import xarray as xr

import tiltmeter as tm
from hostile_names import NAMES
from tiltmeter.advice.advice import Advice
from tiltmeter.cli import main

lab = pytest.importorskip("tiltmeter_lab")

OBEYED = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")
GROUPS = NAMES[:6]


def run_of(groups, shift=0.0):
    times = np.arange(1.0, 6.0)
    values = np.add.outer(1.0 / times, 0.01 * np.arange(len(groups))) + shift
    loss = xr.DataArray(values, dims=("time", "group"), coords={"time": times, "group": np.array(groups, dtype=object)})
    held_out = {"sizes": [[name, 40] for name in groups], "points": 40 * len(groups)}
    return tm.Trajectory(
        {"loss": loss}, clock="step", origin=tm.record.Origin("training", problem={"held_out": held_out})
    )


def hostile_card():
    """Runs named by hostile names, of groups named so."""
    return tm.scorecard({name: run_of(GROUPS, 0.01 * k) for k, name in enumerate(["plain", *NAMES[:42]])})


def hostile_advice():
    runs = {name: run_of(GROUPS, 0.01 * k) for k, name in enumerate(["plain", *NAMES[:42]])}
    return Advice(
        tm.scorecard(runs), runs, dict.fromkeys(runs, ()), {name: name for name in NAMES}, NAMES[0], rehearsed=False
    )


def hostile_table(first):
    """A study whose factors and levels are named so."""
    levels = {"width": NAMES[first : first + 3], "lr": NAMES[first + 3 : first + 6]}
    values = np.random.default_rng(0).normal(size=(3, 3, 5))
    return xr.DataArray(values, dims=("width", "lr", "seed"), coords=levels, name=NAMES[first])


def plain_html(text):
    assert {tag.lower() for tag in re.findall(r"<\s*/?\s*([a-zA-Z]+)", text)} <= {"div", "p", "pre"}
    assert not OBEYED.search(unescape(text).replace("\n", " "))


def test_a_table_for_a_paper_holds_no_command_of_a_name(tmp_path):
    text = tm.export.write(run_of(NAMES), tmp_path / "t.tex").read_text(encoding="utf-8")
    assert len([line for line in text.splitlines() if line.endswith(r"\\")]) == len(NAMES) + 1
    for command in (
        *(r"\begin", r"\end", r"\toprule", r"\midrule", r"\bottomrule", r"\\", r"\textbackslash", r"\textasciitilde"),
        *(
            r"\textasciicircum",
            r"\textless",
            r"\textgreater",
            r"\textquotedbl",
            r"\textbar",
            r"\&",
            r"\%",
            r"\$",
            r"\#",
        ),
        *(r"\_", r"\{", r"\}"),
    ):
        text = text.replace(command, " ")
    assert "\\" not in text
    assert not OBEYED.search(text.replace("\n", " "))


def test_a_section_of_a_model_card_is_text(tmp_path):
    (tmp_path / "README.md").write_text("---\nlicense: mit\n---\n# Model\n", encoding="utf-8")
    text = tm.results.to_model_card(run_of(NAMES), tmp_path / "README.md")
    assert text in (tmp_path / "README.md").read_text(encoding="utf-8")
    assert "<" not in text
    assert not re.search(r"(?<!\\)[\[\]`]", text)
    assert not OBEYED.search(text.replace("\n", " "))


RESULTS = {
    "scorecard": hostile_card,
    "advice": hostile_advice,
    "judged advice": lambda: hostile_advice().judged_by({name: run_of(GROUPS) for name in ["plain", *NAMES[:42]]}),
    "shares": lambda: lab.shares(hostile_table(0), draws=20, permutations=0),
    "standing": lambda: tm.leaders(run_of(NAMES[:2])),
}


@pytest.mark.parametrize("result", RESULTS)
def test_notebooks_show_text(result):
    plain_html(RESULTS[result]()._repr_html_())


def test_the_terminal_shows_a_scorecard_as_text(tmp_path, capsys):
    for k in range(2):
        tm.save(run_of(NAMES[28:38], 0.1 * k), tmp_path / f"run {k}")
    assert main(["scorecard", str(tmp_path / "run 0"), str(tmp_path / "run 1")]) == 0
    out, err = capsys.readouterr()
    assert not OBEYED.search((out + err).replace("\x1b[1m", "").replace("\x1b[0m", ""))


def forecast_of(names):
    """A forecast of a small network, with its band."""
    torch = pytest.importorskip("torch")
    rng = np.random.default_rng(0)
    x = rng.normal(size=(120, 3)).astype("float32")
    data = tm.GroupedData(x, (x[:, 0] > 0).astype(int), np.array(names, dtype=object)[np.arange(120) % len(names)])
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(3, 64), torch.nn.ReLU(), torch.nn.Linear(64, 1))
    recipe = tm.Recipe(lr=0.1, steps=20, batch=120, loss=tm.Logistic())
    return tm.forecast(model, data, data, recipe, watch=tm.Watch(when=tm.record.every(5)), progress=False)


def pictures(first):
    """Every picture that is not of the page of `test_hostile_names`."""
    names = NAMES[first : first + 6]
    runs = {name: run_of(names, 0.01 * k) for k, name in enumerate(["plain", *names])}
    card = tm.scorecard(runs)
    yield from (tm.plot.who_paid(card), tm.plot.areas(card), tm.plot.loss_plane(runs), tm.plot.pulls(runs))
    table = hostile_table(first)
    yield lab.plot.variance_shares([lab.shares(table, draws=20, permutations=0)])
    yield lab.plot.cell_means(table, x="lr", colour="width")


CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")


@pytest.mark.slow
@pytest.mark.timeout(1500)
@pytest.mark.skipif(CHROMIUM is None, reason="Chromium is not installed on this machine.")
def test_pictures_and_forecasts_in_a_browser(tmp_path):
    playwright = pytest.importorskip("playwright.sync_api")
    pages = []
    for first in range(0, 36, 6):
        for k, chart in enumerate(pictures(first)):
            pages.append(tm.plot.save(chart, tmp_path / f"{first}-{k}.html"))
    for first in (0, 2, 16):
        ahead = forecast_of(NAMES[first : first + 2])
        pages.append(tm.plot.save(tm.plot.curves(ahead), tmp_path / f"forecast-{first}.html"))
        pages.append(tm.report([ahead], tmp_path / f"report-{first}.html"))
    problems = []
    with playwright.sync_playwright() as p:
        browser = p.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox", "--disable-gpu"])
        page = browser.new_context(offline=True).new_page()
        page.on("console", lambda said: problems.append(said.text))
        page.on("pageerror", lambda error: problems.append(str(error)))
        page.on(
            "request", lambda asked: None if asked.url.startswith(("file:", "data:")) else problems.append(asked.url)
        )
        for path in pages:
            page.goto(path.as_uri(), timeout=120_000)
            charts = page.locator("div[id^=chart]").count()
            drawn = f"() => document.querySelectorAll('div[id^=chart] svg').length >= {charts}"
            page.wait_for_function(drawn, timeout=120_000)
            assert page.evaluate("() => window.pwned === undefined"), path.name
            assert problems == [], path.name
        browser.close()
    assert len(pages) == 42
