"""report: the whole page of one run, of seeds, of several runs, of theory, of forecasts, and what is refused."""

import html
import json
import re
import shutil

import numpy as np
import pandas as pd
import pytest
import xarray as xr

import tiltmeter as tm
from tiltmeter.report.findings import findings
from tiltmeter.report.model_card import markdown, model_card

GROUPS = ["a", "b"]


def recorded(evaluations=20, groups=GROUPS, **settings):
    """A run without kept points, as of an older probe: the lead passes from b to a."""
    times = np.unique(np.geomspace(1, 1000, evaluations).astype(int))
    coords = {"time": times, "group": groups}
    fall = 1.0 / (1.0 + times[:, None] / np.arange(60, 60 + 60 * len(groups), 60))
    start = np.linspace(1.2, 0.8, len(groups))
    curves = {}
    for name, scale in (("loss", 1.0), ("error", 0.4), ("calibration_gap", 0.1)):
        values = scale * (0.1 + 0.9 * fall * start)
        curves[name] = xr.DataArray(values, dims=("time", "group"), coords=coords)
        curves[f"{name}_se"] = xr.DataArray(0.01 * values, dims=("time", "group"), coords=coords)
    problem = {
        "held_out": {"points": 100, "sizes": [[g, 20 + 60 * i] for i, g in enumerate(groups)], "label_rates": []}
    }
    origin = tm.record.Origin(
        "training", problem, {"model": {"class": "Net", "parameters": 1234}, "loss": "cross-entropy", **settings}
    )
    return tm.Trajectory(curves, "step", origin)


def words(page):
    return html.unescape(page.read_text(encoding="utf-8"))


def small(made, **more):
    return made.decided([(380, 20, 60, 40), (340, 60, 30, 70)], GROUPS, **more)


def test_one_run_has_all_its_parts(tmp_path, made):
    page = tm.report([small(made)], tmp_path / "run.html", question=tm.Question(kind="benefit"), title="Mine")
    text = words(page)
    first = "Group a has the lower true positive rate: 40\u202f% against 70\u202f%."
    assert f"<h1>{first}</h1>" in text
    for question in (
        *("Who is worse off?", "Could it be chance?", "Why do the measures disagree?", "What would an audit see?"),
        *("When did it arise?", "What would change it?", "What is not known?"),
    ):
        assert f"<summary>{question} <span>" in text, question
    for name in ("table", "why", "when", "change", "stop", "data", "method", "card"):
        assert f'<section id="{name}">' in text, name
        assert f'href="#{name}"' in text
    assert "Net, 1,234 parameters" in text
    assert "## Bias during training" in text
    assert page.stat().st_size < 200_000
    assert "http" not in text.replace("http-equiv", "")


def test_one_evaluation_is_the_model_as_it_is(tmp_path):
    """A table of predictions has no training: nothing is said of time, and no curve is drawn."""
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"who": rng.choice(GROUPS, 2000), "label": rng.integers(0, 2, 2000)})
    right = rng.random(2000) < np.where(table.who == "a", 0.7, 0.9)
    table["score"] = np.where(right == table.label, 0.8, 0.2)
    page = tm.report([tm.predictions.run(table, label="label", group="who")], tmp_path / "page.html")
    text = re.sub(r"<(style|script).*?</\1>", "", words(page), flags=re.S)
    first = text[: text.index("<main>")]
    assert "<title>Bias of the model</title>" in text
    assert '<svg class="wide"' not in text
    assert first.count("<b>") == 3  # facts: how much, how sure, what was tried
    for time_words in ("during training", "up to", "at the end", "since", "evaluations", "moment", "One training"):
        assert time_words not in first, time_words
    for time_words in ("during training", "Over training", "last evaluation", "Curves as numbers", "step 0"):
        assert time_words not in text, time_words
    assert "## Bias of the model" in text


def test_the_page_runs_no_script(tmp_path, made):
    raw = tm.report([small(made)], tmp_path / "run.html").read_text(encoding="utf-8")
    assert re.findall(r"<script([^>]*)>", raw) == [' type="application/json" id="facts"']
    assert "script-src 'none'" in raw
    facts = json.loads(re.search(r'id="facts">(.*?)</script>', raw, re.DOTALL)[1])
    assert facts["measures"]["tpr"]["values"][0][0] == pytest.approx(0.4)
    assert set(facts["answers"]) >= {"Who is worse off?", "What is not known?"}


def test_every_picture_has_words(tmp_path, made):
    raw = tm.report([small(made)], tmp_path / "run.html").read_text(encoding="utf-8")
    pictures = re.findall(r"<svg.*?</svg>", raw, re.DOTALL)
    assert len(pictures) > 8
    for picture in pictures:
        assert 'role="img"' in picture
        assert "<title>" in picture
    assert {"wide", "narrow"} <= set(re.findall(r'<svg class="(\w+)"', raw))


def test_seeds_are_thin_lines_and_a_scope(tmp_path, made):
    text = words(
        tm.report([small(made, seeds=5, wobble=0.02)], tmp_path / "run.html", question=tm.Question(kind="benefit"))
    )
    assert "5 trainings; the gap has the same direction in all." in text
    assert text.count('class="seed g0"') == 10  # wide and narrow
    assert "The sign is the same in 5 of 5 seeds" in text


def test_several_runs_are_compared_and_named(tmp_path):
    tm.save(recorded(), tmp_path / "one")
    text = words(tm.report([tmp_path / "one", recorded(), recorded()], tmp_path / "run.html"))
    assert "The runs compared" in text
    for name in ("training 1", "training 2"):
        assert f"<summary>{name}: the whole page of this run</summary>" in text


def test_a_forecast_is_compared_with_its_run(tmp_path):
    run = recorded()
    ahead = tm.Trajectory(dict(run), "step", tm.record.Origin("forecast", run.origin.problem, {"steps": 1000}))
    text = words(tm.report([ahead, run], tmp_path / "run.html"))
    assert "What was forecast before training" in text
    last = [f"{100 * value:.1f}\u202f% for {name}" for name, value in zip(GROUPS, run["error"].values[-1], strict=True)]
    told = ", ".join(last)
    assert f"At the end the forecast of error rate is {told}; the run has {told}." in text
    assert "The forecast has the same group ahead." in text


def test_a_nowcast_goes_on_from_its_run(tmp_path):
    run = recorded()
    last = int(run["error"]["time"][-1])
    steps = last + np.array([0, 200, 1000])
    rest = {name: curve.isel(time=slice(-3, None)).assign_coords(time=steps) for name, curve in run.items()}
    settings = {"steps": last + 1000, "calculation": {"from_step": last}}
    ahead = tm.Trajectory(rest, "step", tm.record.Origin("forecast", run.origin.problem, settings))
    text = words(tm.report([ahead, run], tmp_path / "run.html"))
    assert "How the training is forecast to go on" in text
    assert "What was forecast before training" not in text
    assert "on, forecast from the weights and the optimiser at that step." in text
    assert "the run has" not in text  # it is not there yet
    chart = text.split("The runs compared")[1].split("</svg>")[0]
    ticks = re.findall(r'class="tick"[^>]*>([^<]*)</text>', chart)
    assert (
        ticks[3] == f"{run['error']['time'].values[0]:g}"
    )  # the axis begins with the run, not where the forecast does


def test_theory_with_another_clock_goes_on_the_same_page(tmp_path):
    theory = tm.predict(*tm.theory.cases.no_crossing(), curves=("loss", "error"))
    text = words(tm.report([recorded(), theory], tmp_path / "run.html"))
    assert "t = 200" in text


def test_a_theory_says_what_drives_it(tmp_path):
    text = words(tm.report([tm.predict(*tm.theory.cases.three_phases())], tmp_path / "run.html"))
    assert "<h1>Group + has the lower loss until t = 1.128 (shift and label imbalance), then group -" in text
    assert "exact values" in text


def test_three_groups_and_twelve(tmp_path):
    text = words(tm.report([recorded(groups=["a", "b", "<c>"])], tmp_path / "run.html"))
    assert "who is better off in each pair" in text
    assert "<c>" in text
    text = words(tm.report([recorded(groups=[f"g{i}" for i in range(12)])], tmp_path / "run.html"))
    assert "<span>12 groups</span>" in text


def test_a_diverged_run_names_no_leader(tmp_path, made):
    run = small(made)
    ended = tm.Trajectory(dict(run), "step", run.origin, xr.DataArray(400.0), points=run.points)
    text = words(tm.report([ended], tmp_path / "run.html"))
    assert "The run diverged at step 400, so nobody is named." in text
    assert "<b>not judged</b>" in text


def test_weighted_points_are_not_judged(tmp_path, made):
    run = small(made)
    evaluation = {**run.origin.problem["held_out"], "weighted": True}
    weighted = tm.Trajectory(dict(run), "step", tm.record.Origin("training", {"held_out": evaluation}))
    text = words(tm.report([weighted], tmp_path / "run.html"))
    assert "Not judged: it is not judged, since its points are weighted." in text


def test_several_classes_and_regression(tmp_path):
    rng = np.random.default_rng(0)
    torch = pytest.importorskip("torch")
    x = rng.normal(size=(600, 4)).astype(np.float32)
    group = np.where(rng.random(600) < 0.3, "b", "a")
    for y, outputs, loss, said in (
        (np.digitize(x[:, 0], [-0.5, 0.5]), 3, None, "in error"),
        (x[:, 0] + 0.1 * rng.normal(size=600), 1, tm.Square(), "loss"),
    ):
        torch.manual_seed(0)
        data = tm.GroupedData(x, y, group)
        run = tm.train(torch.nn.Linear(4, outputs), *data.split(0.5), tm.Recipe(lr=0.1, steps=20, loss=loss))
        assert said in words(tm.report([run], tmp_path / "run.html"))


def test_what_cannot_be_reported(tmp_path):
    with pytest.raises(ValueError, match="`report` needs at least one run"):
        tm.report([], tmp_path / "a.html")
    with pytest.raises(FileNotFoundError, match="does not exist: create it first"):
        tm.report([recorded()], tmp_path / "absent" / "a.html")
    bare = recorded().replace({"M": recorded()["loss"]})
    with pytest.raises(ValueError, match="share none of the curves loss, error, squared_error"):
        tm.report([bare], tmp_path / "a.html")
    tm.save(xr.Dataset({"x": ("i", [1.0])}), tmp_path / "set")
    with pytest.raises(ValueError, match="here is no group error"):
        tm.report([tmp_path / "set"], tmp_path / "a.html")


def test_the_card_gives_values_with_limits(made):
    card = model_card(findings(small(made), "", tm.Question(kind="benefit")))
    assert "- Group a has the lower true positive rate: 40 % against 70 %. 30 points apart, 14 to 44." in card
    assert "- Who is worse off? A, by true positive rate. True positive rate: b 30 points (" in card
    assert "| a | 40 % (31 to 50) |" in card  # Wilson's limits of 40 of 100
    assert markdown(["x|y"], [["1"]])[0] == r"| x\|y |"


def test_the_room_does_not_hide_the_daily_name():
    import tiltmeter.report.page  # noqa: F401

    assert callable(tm.report)
    assert tm.report.__name__ == "report"


CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)


@pytest.mark.slow
@pytest.mark.skipif(CHROMIUM is None, reason="Chromium is not installed on this machine.")
@pytest.mark.parametrize("width", [1200, 400])
def test_in_a_browser_nothing_sticks_out_and_nothing_is_said_or_asked_for(tmp_path, made, width):
    playwright = pytest.importorskip("playwright.sync_api")
    cells = [(300, 20, 40, 160)] * 6 + [(300, 20, 160, 40), (40, 2, 2, 1)]
    runs = {
        "two": [small(made)],
        "seeds": [small(made, seeds=5, wobble=0.02)],
        "many": [made.decided(cells, [("a long name of a group", c) for c in "abcdefgh"])],
        "several": [small(made), recorded()],
    }
    pages = {name: tm.report(given, tmp_path / f"{name}.html") for name, given in runs.items()}
    with playwright.sync_playwright() as p:
        browser = p.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox", "--disable-gpu"])
        for scheme in ("light", "dark"):
            context = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=scheme)
            for path in pages.values():
                problems = []
                page = context.new_page()
                page.on("console", lambda said, told=problems: told.append(said.text))
                page.on(
                    "request",
                    lambda asked, told=problems, own=path: (
                        told.append(asked.url) if asked.url != own.as_uri() else None
                    ),
                )
                page.goto(path.as_uri())
                assert page.evaluate("document.documentElement.scrollWidth") <= width
                narrow = page.locator("svg.narrow").first
                assert narrow.is_visible() == (width == 400)
                page.emulate_media(media="print")
                assert page.locator("pre").first.is_visible()  # folds are open on paper
                assert problems == []
                page.close()
        browser.close()


class TestTheoryIsSolvedSeldom:
    """One report of a theory asks for its curves many times; it is solved once, and once for each set of drivers."""

    def calls(self, monkeypatch, module, name):
        found, real = [], getattr(module, name)
        monkeypatch.setattr(module, name, lambda *a, **k: found.append(1) or real(*a, **k))
        return found

    @pytest.mark.parametrize("case", [tm.theory.cases.centred_crossing, tm.theory.cases.three_phases])
    def test_a_report_predicts_the_eight_problems_of_the_drivers_and_no_more(self, case, tmp_path, monkeypatch):
        from importlib import import_module

        theory = tm.predict(*case())
        calls = self.calls(monkeypatch, import_module("tiltmeter.theory.dynamics.predict"), "predict")
        tm.report([theory], tmp_path / "report.html")
        assert len(calls) == 8

    def test_with_a_schedule_nothing_is_integrated_beside_the_drivers(self, tmp_path, monkeypatch):
        from tiltmeter.schedules import Cosine
        from tiltmeter.theory.dynamics import ode

        problem, _, times = tm.theory.cases.centred_crossing()
        theory = tm.predict(problem, tm.SGD(lr=Cosine(0.2, 100.0, 0.02)), times)
        calls = self.calls(monkeypatch, ode, "by_pieces")
        tm.report([theory], tmp_path / "report.html")
        assert len(calls) == 8

    def test_a_theory_from_disk_is_solved_again_once(self, tmp_path, monkeypatch):
        from importlib import import_module

        tm.save(tm.predict(*tm.theory.cases.three_phases()), tmp_path / "run")
        calls = self.calls(monkeypatch, import_module("tiltmeter.theory.dynamics.predict"), "predict")
        again = self.calls(monkeypatch, import_module("tiltmeter.theory.runs"), "predict")
        tm.report([tmp_path / "run"], tmp_path / "report.html")
        assert len(calls) == 8  # the eight problems of the drivers
        assert len(again) == 1
