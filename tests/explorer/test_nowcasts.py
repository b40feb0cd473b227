"""The rest of a run as it was forecast: which nowcast belongs to which run, and how it is drawn on."""

import numpy as np
import pytest
import xarray as xr

import tiltmeter as tm
from tiltmeter.explorer import run_rows as run_folder
from tiltmeter.explorer.nowcasts import run_nowcasts

NETWORK = {"model": {"class": "Linear"}, "train": {"points": 200}}
RECIPE = {"lr": 0.1, "batch": 32}


def saved(
    path, times, source="training", scale=1.0, seeds=None, calculation=None, order=None, seed=0, error=0.001, **changes
):
    times = np.asarray(times, dtype=float)
    values = scale * np.stack([1 / (1 + 0.1 * times), np.full(len(times), 0.4)], 1)
    loss = xr.DataArray(values, dims=("time", "group"), coords={"time": times, "group": ["a", "b"]})
    if seeds:
        spread = 1 + 0.01 * (times - times[0])[:, None, None] * np.linspace(-1, 1, seeds)
        loss = xr.DataArray(
            loss.values[:, :, None] * spread,
            dims=("time", "group", "seed"),
            coords={**loss.coords, "seed": range(seeds)},
        )
    settings = {**NETWORK, "recipe": {**RECIPE, "steps": int(times[-1])}, **changes}
    if order is not None:
        settings["recipe"]["order"] = order
    if calculation:
        settings["calculation"] = calculation
    origin = tm.record.Origin(source, problem={"held_out": {"points": 50}}, settings=settings, seeds=(seed,))
    tm.save(tm.Trajectory({"loss": loss, "loss_se": xr.full_like(loss, error)}, "step", origin), path)


def ahead(path, first=10, **changes):
    saved(path, range(first, 41, 5), "forecast", calculation={"from_step": first}, **changes)


def told(root, run="run", curve="loss"):
    run_folder._scanned.clear()  # what was found a moment ago is taken again
    return run_nowcasts(str(root), [run], curve).get(run)


def test_a_nowcast_goes_on_from_its_run(tmp_path):
    saved(tmp_path / "run", range(11))
    ahead(tmp_path / "early", first=5)
    ahead(tmp_path / "rest", seeds=3)
    found = told(tmp_path)
    assert (found["name"], found["from_step"]) == ("rest", 10.0)  # the newer one
    assert found["times"][0] == 10.0
    assert found["times"][-1] == 40.0
    assert found["values"][0] == pytest.approx([0.5, 0.4])
    assert found["band"]["lower"][0] == pytest.approx(found["band"]["upper"][0])
    assert (np.array(found["band"]["upper"][-1]) > np.array(found["band"]["lower"][-1])).all()
    assert found["outlook"].startswith("Step 10: b's lead will end near step 15; a is forecast to lead at the end")
    ahead(tmp_path / "noisy", first=10, seeds=3, error=0.1)
    assert told(tmp_path)["outlook"].startswith("Step 10: nothing seen now decides who leads at the end")
    assert told(tmp_path, "rest") is None  # it goes on from the run, not from itself
    assert told(tmp_path, curve="error") is None
    assert told(tmp_path, "nowhere") is None


@pytest.mark.parametrize(
    "changes",
    [
        {"scale": 1.01},
        {"model": {"class": "Conv2d"}},
        {"train": {"points": 201}},
    ],
)
def test_a_nowcast_of_another_run_is_not_drawn(tmp_path, changes):
    saved(tmp_path / "run", range(11))
    ahead(tmp_path / "rest", **changes)
    assert told(tmp_path) is None


def test_without_a_look_at_that_step_recipe_and_order_decide(tmp_path):
    saved(tmp_path / "run", [0, 4, 8], seed=3)
    ahead(tmp_path / "other", order=4)
    assert told(tmp_path) is None
    ahead(tmp_path / "rest", order=3)
    assert told(tmp_path)["name"] == "rest"


def test_a_forecast_from_the_beginning_is_no_nowcast_and_a_torn_one_is_passed_over(tmp_path):
    saved(tmp_path / "run", range(11))
    saved(tmp_path / "forecast", range(0, 41, 5), "forecast")
    assert told(tmp_path) is None
    ahead(tmp_path / "early", first=5)
    ahead(tmp_path / "rest")
    (tmp_path / "rest" / "curves.jsonl").write_bytes(b"not json\nnot json\n")
    assert told(tmp_path)["name"] == "early"


def test_a_nowcast_of_a_real_training_is_found(tmp_path):
    torch = pytest.importorskip("torch")
    from dataclasses import replace

    rng = np.random.default_rng(0)
    x = rng.normal(size=(200, 3))
    data = tm.GroupedData(x, np.sign(x[:, 0]), rng.choice(["a", "b"], 200)).split(0.5)
    recipe, line = tm.Recipe(torch.optim.Adam, steps=20), torch.nn.Linear(3, 1)
    tm.train(line, *data, recipe, to=tmp_path / "run")
    tm.train(torch.nn.Linear(3, 1), *data, recipe, to=tmp_path / "other", seed=1)
    tm.save(tm.nowcast(tmp_path / "run", line, *data, replace(recipe, steps=40)), tmp_path / "rest")
    assert list(run_nowcasts(str(tmp_path), ["run", "other"], "error")) == ["run"]


@pytest.mark.slow
def test_the_page_draws_a_run_on_from_where_it_stands(tmp_path, start_explorer, open_page):
    saved(tmp_path / "run", range(1, 11))
    lines = "#chart-runs svg .mark-line path"
    with start_explorer(tmp_path) as found:
        page = open_page(found.address + "#runs?run=run")
        page.wait_for_function(f"() => document.querySelectorAll('{lines}').length === 2")
        assert page.locator("#ahead").inner_text() == ""
        ahead(tmp_path / "rest", seeds=3)  # appears while the page is open
        page.wait_for_function(f"() => document.querySelectorAll('{lines}').length === 4")
        assert page.locator("#chart-runs svg .mark-area path").count() == 2
        text = page.locator("#ahead").inner_text()
        assert text.startswith("Dashed: how run was forecast to go on from step 10, by rest; shaded: from the lowest")
        ends = page.eval_on_selector_all(
            lines, "all => all.map((one) => [0, one.getTotalLength()].map((at) => one.getPointAtLength(at).x))"
        )
        assert ends[2][0] == ends[3][0] == pytest.approx(ends[0][1], abs=0.01)  # it begins where the run ends
        dashed = page.eval_on_selector_all(lines, "all => all.map((one) => one.getAttribute('stroke-dasharray'))")
        assert dashed[2:] == ["3,4", "3,4"]
        page.close()
