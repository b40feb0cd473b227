"""report: everything a reviewer asks for, on one page that needs no network."""

import html
import re
import shutil
import subprocess

import numpy as np
import pytest
import xarray as xr

import tiltmeter as tm
from tiltmeter.report.model_card import markdown, model_card
from tiltmeter.report.page import Table

GROUPS = ["a", "b"]


def made(looks=20, groups=GROUPS, **settings):
    """A run as a probe would record it: the lead passes from b to a."""
    times = np.unique(np.geomspace(1, 1000, looks).astype(int))
    coords = {"time": times, "group": groups}
    fall = 1.0 / (1.0 + times[:, None] / np.arange(60, 60 + 60 * len(groups), 60))
    start = np.linspace(1.2, 0.8, len(groups))
    curves = {}
    for name, scale in (("loss", 1.0), ("error", 0.4), ("calibration_gap", 0.1)):
        values = scale * (0.1 + 0.9 * fall * start)
        curves[name] = tm.plot and xr.DataArray(values, dims=("time", "group"), coords=coords)
        curves[f"{name}_se"] = xr.DataArray(0.01 * values, dims=("time", "group"), coords=coords)
    problem = {"look": {"points": 100, "sizes": [[g, 20 + 60 * i] for i, g in enumerate(groups)], "label_rates": []}}
    origin = tm.Origin(
        "training", problem, {"model": {"class": "Net", "parameters": 1234}, "loss": "cross-entropy", **settings}
    )
    return tm.Trajectory(curves, "step", origin)


def words(page):
    return html.unescape(re.sub(r"<script>.*?</script>", "", page.read_text(encoding="utf-8"), flags=re.DOTALL))


def test_one_run_has_all_its_parts(tmp_path):
    page = tm.report([made(lr=0.1)], tmp_path / "run.html")
    text = words(page)
    for heading in (
        "In short",
        "What was trained",
        "Groups",
        "Curves",
        "Changes of leader",
        "When to stop",
        "Settings",
        "For the model card",
    ):
        assert f"<h2>{heading}</h2>" in text, heading
    assert "In loss: In this run (all" in text
    assert "the lead changes between step" in text
    assert "Net, 1,234 parameters" in text
    assert "Too few points to judge (fewer than 30): a (20)." in text
    assert "price in mean" in text
    assert "## Bias during training" in text
    assert "<td>lr</td><td>0.1</td>" in text
    assert text.count('<div class="chart"') == 3
    assert "http" not in text.replace("http-equiv", "")
    assert "<script src" not in page.read_text(encoding="utf-8")


def test_several_runs_are_compared_and_named(tmp_path):
    tm.save(made(), tmp_path / "one")
    text = words(tm.report([tmp_path / "one", made(), made()], tmp_path / "run.html"))
    assert "<h2>Beside one another</h2>" in text
    for name in ("one", "training 1", "training 2"):
        assert f"<h2>{name}: Curves</h2>" in text


def test_theory_with_another_clock_goes_on_the_same_page(tmp_path):
    text = words(
        tm.report([made(), tm.predict(*tm.cases.no_crossing(), curves=("loss", "error"))], tmp_path / "run.html")
    )
    assert "The runs count time differently and cannot share a chart" in text


def test_three_groups(tmp_path):
    text = words(tm.report([made(groups=["a", "b", "<c>"])], tmp_path / "run.html"))
    assert "the lead changes between step" in text


def test_undecided_crossings_are_said_to_be(tmp_path):
    run = made()
    noisy = run.replace({**run, "loss_se": run["loss"] * 10})
    text = words(tm.report([noisy], tmp_path / "run.html"))
    assert "no difference in loss between a and b is shown at any look" in text
    assert "In the noise: undecided between" in text
    assert "inside the noise" in text


def test_what_cannot_be_reported(tmp_path):
    with pytest.raises(ValueError, match="`report` needs at least one run"):
        tm.report([], tmp_path / "a.html")
    with pytest.raises(TypeError, match="`runs` should be a list of runs"):
        tm.report(made(), tmp_path / "a.html")
    bare = made().replace({"M": made()["loss"]})
    with pytest.raises(ValueError, match="share none of the curves loss, error, squared_error"):
        tm.report([bare], tmp_path / "a.html")
    tm.save(xr.Dataset({"x": ("i", [1.0])}), tmp_path / "set")
    with pytest.raises(ValueError, match="here is no group error"):
        tm.report([tmp_path / "set"], tmp_path / "a.html")


def test_the_card_gives_values_with_two_standard_errors():
    run = made()
    card = model_card(run, ["b leads."])
    assert "- b leads." in card
    last = run["loss"].isel(time=-1).sel(group="a").item()
    assert f"| a | {last:.4f} ± {0.02 * last:.4f} |" in card
    assert markdown(Table(["x|y"], [["1"]]))[0] == r"| x\|y |"


def test_the_room_does_not_hide_the_daily_name():
    import tiltmeter.report.page  # noqa: F401

    assert callable(tm.report)
    assert tm.report.__name__ == "report"


def opened(browser, address, log):
    """What a browser without network makes of a page: its DOM, its messages, the hosts that anything asked for."""
    done = subprocess.run(
        [
            *(browser, "--headless", "--no-sandbox", "--disable-gpu", "--enable-logging=stderr", "--v=0"),
            *("--host-resolver-rules=MAP * ~NOTFOUND", "--disable-background-networking", "--disable-component-update"),
            *(f"--log-net-log={log}", "--virtual-time-budget=20000", "--dump-dom", address),
        ],
        capture_output=True,
        text=True,
        timeout=120,
    )
    hosts = set(re.findall(r'"url":"https?://([^/"]+)', log.read_text(encoding="utf-8", errors="replace")))
    return done.stdout, [line for line in done.stderr.splitlines() if "CONSOLE" in line], hosts


@pytest.mark.slow
def test_a_browser_draws_every_chart_without_errors_or_requests(tmp_path):
    browser = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    if browser is None:
        pytest.skip("No Chromium on this machine: the page was not opened.")
    page = tm.report([made()], tmp_path / "run.html")
    shown, messages, hosts = opened(browser, page.as_uri(), tmp_path / "page.json")
    _, _, its_own = opened(browser, "about:blank", tmp_path / "blank.json")
    assert len(re.findall(r'id="chart\d+"[^>]*>.*?<svg', shown, flags=re.DOTALL)) == 3
    assert messages == []
    browsers = {"clients2.google.com", "redirector.gvt1.com", "update.googleapis.com", "accounts.google.com"}
    assert hosts <= its_own | browsers


class TestTheoryIsSolvedSeldom:
    """One report of a theory asks for its curves many times; it is solved once, and once for each set of drivers."""

    def calls(self, monkeypatch, module, name):
        found, real = [], getattr(module, name)
        monkeypatch.setattr(module, name, lambda *a, **k: found.append(1) or real(*a, **k))
        return found

    @pytest.mark.parametrize("case", [tm.cases.centred_crossing, tm.cases.three_phases])
    def test_a_report_predicts_the_eight_problems_of_the_drivers_and_no_more(self, case, tmp_path, monkeypatch):
        from importlib import import_module

        theory = tm.predict(*case())
        calls = self.calls(monkeypatch, import_module("tiltmeter.theory.predict"), "predict")
        tm.report([theory], tmp_path / "report.html")
        assert len(calls) == 8

    def test_with_a_schedule_nothing_is_integrated_beside_the_drivers(self, tmp_path, monkeypatch):
        from tiltmeter.schedule import Cosine
        from tiltmeter.theory import ode

        problem, _, times = tm.cases.centred_crossing()
        theory = tm.predict(problem, tm.SGD(lr=Cosine(0.2, 100.0, 0.02)), times)
        calls = self.calls(monkeypatch, ode, "by_pieces")
        tm.report([theory], tmp_path / "report.html")
        assert len(calls) == 8

    def test_a_theory_from_disk_is_solved_again_once(self, tmp_path, monkeypatch):
        from tiltmeter.analysis import exact

        tm.save(tm.predict(*tm.cases.three_phases()), tmp_path / "run")
        calls = self.calls(monkeypatch, exact, "predict")
        tm.report([tmp_path / "run"], tmp_path / "report.html")
        assert len(calls) == 1
