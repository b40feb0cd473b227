"""Forecasts, verdicts and the work that the page may start."""

import json
import re
import time
from pathlib import Path

import pytest


def test_nothing_can_be_started_unless_it_was_allowed(explorer):
    for kind in ("train", "run quick"):
        answer = explorer.post("/api/jobs", {"kind": kind, "settings": {"name": "three-phases"}})
        assert answer.status == 403
        assert "--allow-runs" in answer.text
    assert explorer.post("/api/cancel", {"number": 1}).status == 400
    assert explorer.json("/api/jobs") == []
    assert not Path(explorer.folder).exists()


IMPOSSIBLE = [
    "lr=x&steps=9",
    "lr=nan&steps=9",
    "lr=1",
    "steps=9&weights=1,x",
    "steps=9&shares=" + ",".join(["1"] * 200),
    *(
        pytest.param(one, marks=pytest.mark.slow)
        for one in ("steps=9&lr=0", "steps=0", "steps=1e9", "steps=9&weights=1,2,3", "steps=9&law=alchemy")
    ),
]


@pytest.mark.parametrize("query", IMPOSSIBLE)
def test_impossible_forecasts_are_refused_in_a_sentence(explorer, query):
    answer = explorer.ask(f"/api/forecast?{query}")
    assert answer.status == 400
    assert re.search("should|There is no intervention 'alchemy'", json.loads(answer.text)["error"])


@pytest.mark.slow
def test_a_forecast_is_that_of_the_library_and_the_server_answers_meanwhile(explorer):
    torch = pytest.importorskip("torch")
    import tiltmeter as tm
    from tiltmeter.modules.networks import mlp

    told = explorer.json("/api/forecast?lr=0.006&steps=100&weights=1,3&full=no")
    train, held_out = tm.data.digits(share=0.9, contrast=(0.2, 2.5), labels="large")
    torch.manual_seed(0)
    recipe = tm.Recipe(
        lr=0.006, steps=100, batch=16, loss=tm.Square(), weights=dict(zip(train.groups, (1.0, 3.0), strict=True))
    )
    ahead = tm.tangent(mlp(64, (256,), 1), train, held_out, progress=False).forecast(recipe)
    assert told["values"] == pytest.approx(ahead["loss"].transpose("time", "group").values, rel=1e-4)
    assert told["groups"] == list(train.groups) == ["turned", "upright"]  # the order that the page relies on


@pytest.mark.slow
def test_work_can_be_started_watched_and_cancelled(tmp_path, start_explorer, until):
    pytest.importorskip("torch")
    with start_explorer(tmp_path / "runs", "--allow-runs") as found:
        settings = {"source": "digits", "steps": 20_000}
        job = json.loads(found.post("/api/jobs", {"kind": "train", "settings": settings}).text)
        assert job["state"] == "running"
        run = until(
            lambda: next((one["progress"][0]["run"] for one in found.json("/api/jobs") if one["progress"]), None), 90
        )
        until(lambda: found.json(f"/api/curves?run={run}&curve=loss")[run].get("evaluations", 0) > 3, 90)
        assert found.json(f"/api/curves?run={run}&curve=loss")[run]["state"] == "running"
        begun = time.monotonic()
        assert json.loads(found.post("/api/cancel", {"number": job["number"]}).text)["state"] == "cancelled"
        assert found.ask("/api/start").status == 200
        until(lambda: found.json(f"/api/curves?run={run}&curve=loss")[run]["state"] == "died", 20)
        assert time.monotonic() - begun < 20
        short = {**settings, "steps": 30}
        second = json.loads(found.post("/api/jobs", {"kind": "train", "settings": short}).text)
        done = until(
            lambda: next(
                (
                    one
                    for one in found.json("/api/jobs")
                    if one["number"] == second["number"] and one["state"] != "running"
                ),
                None,
            ),
            120,
        )
        assert done["state"] == "done"
        assert done["answer"]["run"] == "from-explorer/digits-2"
        refused = found.post("/api/jobs", {"kind": "rm -rf", "settings": {}})
        assert refused.status == 400
        assert "There is no work called 'rm -rf'" in json.loads(refused.text)["error"]


@pytest.mark.slow
def test_forecast_and_verdicts_in_the_browser(explorer, open_page):
    pytest.importorskip("torch")
    page = open_page(explorer.address + "#forecast")
    page.wait_for_selector("#chart-forecast svg .mark-line path", state="attached")
    before = page.locator("#chart-forecast svg .mark-line path").first.get_attribute("d")
    page.wait_for_function("() => document.querySelector('#promise').textContent.length > 20")
    assert page.locator("#forecast-key").inner_text().split() == ["turned", "upright"]
    assert page.locator("#trust summary").inner_text() == "Trust is low: nothing is promised"
    assert not page.locator("#promise").is_visible()
    page.locator("#trust summary").click()
    assert page.locator("#promise").inner_text() == "The linearised network, which promises nothing."
    assert page.locator("#why").inner_text().startswith("A sketch, not a promise: ")
    slider = page.get_by_role("slider", name="Loss weight of turned")
    slider.focus()
    for _ in range(5):
        page.keyboard.press("ArrowRight")
    page.wait_for_function(
        "before => [...document.querySelectorAll('#chart-forecast svg .mark-line path')].some((one) => one.getAttribute('d') !== before)",
        arg=before,
    )
    page.wait_for_function("() => location.hash.includes('weights=')")
    assert page.get_by_role("button", name="Train it").is_disabled()
    catalogue = pytest.importorskip("tiltmeter_lab.catalogue")
    page.goto(explorer.address + "#verdicts")
    page.wait_for_selector("#verdicts details")
    assert page.locator("#verdicts > details").count() == len(catalogue.EXPERIMENTS)
