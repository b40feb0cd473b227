"""Saved Tangents on the forecast page: found, bent like any other source, and said to have no network."""

import json
import os

import numpy as np
import pytest

import tiltmeter as tm
from tiltmeter.explorer import what_if_sources as tangent_folders
from tiltmeter.explorer.experiment import NO_TRAINING
from tiltmeter.explorer.what_if import (
    best_weights_found,
    interventions_compared,
    train_bent,
    what_if_forecast,
    what_if_start,
)
from tiltmeter.explorer.what_if_sources import what_if_sources

SOURCE = "tangent/deep/kernels"


@pytest.fixture(scope="module")
def made():
    torch = pytest.importorskip("torch")
    from tiltmeter.modules.networks import mlp

    rng = np.random.default_rng(0)
    x, rare = rng.normal(size=(400, 4)), np.arange(400) % 5 == 0
    y = np.sign(np.where(rare, x[:, 0], x[:, 1]))
    torch.manual_seed(0)
    return tm.tangent(mlp(4, (16,), 1), *tm.GroupedData(x, y, np.where(rare, "rare", "common")).split(0.5), sample=100)


@pytest.fixture(scope="module")
def folder(made, tmp_path_factory):
    root = tmp_path_factory.mktemp("tangents")
    made.save(root / "deep" / "kernels")
    return root


def asked(folder, source=SOURCE):
    return str(folder), source, None, False


def bend(start, **changes):
    return {"lr": None, "steps": start["steps"], "weights": [], "shares": [], "law": "", **changes}


def test_a_saved_tangent_is_a_source(folder, tmp_path):
    found = [one for one in what_if_sources(str(folder)) if one["kind"] == "tangent"]
    assert found == [{"source": SOURCE, "kind": "tangent", "name": "saved Tangent deep/kernels"}]
    (tmp_path / "link").symlink_to(folder / "deep")
    assert [one["kind"] for one in what_if_sources(str(tmp_path))] == ["digits"]
    assert [one["kind"] for one in what_if_sources(str(folder / "deep" / "kernels"))] == ["digits", "tangent"]


def test_it_is_bent_like_any_other_source(made, folder):
    start = what_if_start(*asked(folder))
    assert start["groups"] == ["common", "rare"]
    assert start["shares"] == pytest.approx([0.8, 0.2])
    assert "deep/kernels: a network (Sequential) and 200 training points (160 of common, 40 of rare)" in start["about"]
    plain = what_if_forecast(*asked(folder), bend(start), full=False)
    recipe = tm.Recipe(lr=start["lr"], steps=start["steps"])
    loss = made.forecast(recipe)["loss"].transpose("time", "group").values
    assert plain["values"] == loss.tolist()
    limit = made.forecast(recipe).origin.settings["stability_limit"]
    assert start["lr"] == pytest.approx(limit / 20, rel=0.05)
    assert what_if_forecast(*asked(folder), bend(start, lr=4 * start["lr"]), full=False)["values"] != plain["values"]
    for changes in ({"weights": [1.0, 8.0]}, {"shares": [0.4, 0.6]}, {"law": "group DRO"}):
        bent = what_if_forecast(*asked(folder), bend(start, **changes), full=False)
        assert bent["values"][-1][1] < plain["values"][-1][1], changes  # every one of them helps the rare group
    assert what_if_forecast(*asked(folder), bend(start, steps=10), full=False)["times"][-1] == 10


def test_weights_and_interventions_are_found_and_training_is_refused(made, folder):
    start, said = what_if_start(*asked(folder)), []
    found = best_weights_found(*asked(folder), bend(start), tell=said.append)
    best = tm.fairness.best_weights(made, tm.Recipe(lr=start["lr"], steps=start["steps"]))
    assert found["weights"] == [best.weights["common"], best.weights["rare"]]
    rows = interventions_compared(*asked(folder), bend(start), tell=said.append)["rows"]
    assert [row["law"] for row in rows if "refused" in row] == start["refused_interventions"] != []
    assert "group DRO" not in start["refused_interventions"]
    assert start["no_training"] == NO_TRAINING
    with pytest.raises(ValueError, match="does not hold its network, so it cannot be trained from here"):
        train_bent(*asked(folder), bend(start), tell=said.append)


@pytest.mark.parametrize("source", ["tangent/kernels", "tangent/../deep/kernels", "tangent//etc"])
def test_only_tangents_of_the_folder_are_read(folder, source):
    with pytest.raises(ValueError, match="This Tangent is no longer there"):
        what_if_start(*asked(folder, source))


def test_links_out_large_and_damaged_ones_are_refused_in_a_sentence(made, folder, tmp_path, monkeypatch):
    made.save(tmp_path / "kernels")
    kernel = tmp_path / "kernels" / "arrays" / "sample_kernel.npy"
    kernel.unlink()
    with pytest.raises(ValueError, match=r"arrays/sample_kernel\.npy is missing"):
        what_if_start(*asked(tmp_path, "tangent/kernels"))
    os.symlink(folder / "deep" / "kernels" / "arrays" / "sample_kernel.npy", kernel)
    with pytest.raises(ValueError, match=r"sample_kernel\.npy is a link that leads out of the folder"):
        what_if_start(*asked(tmp_path, "tangent/kernels"))
    monkeypatch.setattr(tangent_folders, "MOST_BYTES", 1000)
    with pytest.raises(ValueError, match="This Tangent is larger than 0 MB"):
        what_if_start(*asked(folder))


@pytest.mark.slow
def test_a_saved_tangent_is_bent_in_the_browser(folder, start_explorer, open_page):
    with start_explorer(folder, "--allow-runs") as served:
        page = open_page(f"{served.address}#forecast")
        page.wait_for_selector("#dial-lr")
        page.get_by_label("forecast of").select_option("saved Tangent deep/kernels")
        page.wait_for_function("() => document.querySelector('#about').textContent.includes('deep/kernels')")
        page.wait_for_function("() => document.querySelector('#promise').textContent.includes('promises nothing')")
        lines = "() => [...document.querySelectorAll('#chart-forecast .mark-line path')].map((one) => one.getAttribute('d')).join()"
        before = page.evaluate(lines)
        slider = page.get_by_role("slider", name="Loss weight of rare")
        slider.focus()
        for _ in range(8):
            page.keyboard.press("ArrowRight")
        page.wait_for_function(f"(before) => ({lines})() !== before", arg=before)
        page.wait_for_function("() => document.querySelector('#promise').textContent.includes('promises nothing')")
        assert "source=tangent" in page.url
        box = page.get_by_role("slider", name="Steps").bounding_box()
        page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
        page.mouse.down()
        page.mouse.move(box["x"] + 0.3 * box["width"], box["y"] + box["height"] / 2, steps=5)
        page.mouse.up()
        page.wait_for_function("() => location.hash.includes('steps=')")
        page.get_by_role("button", name="Best weights").click()
        page.wait_for_function("() => document.querySelector('.job').textContent.includes('worst')")
        train = page.get_by_role("button", name="Train it")
        assert train.is_disabled()
        assert train.get_attribute("title") == NO_TRAINING == page.locator("#no-training").text_content()
        refused = page.locator("#intervention option:disabled").all_text_contents()
        assert "SAM" in refused
        assert page.locator("#refused-interventions").text_content().endswith(f"its data: {', '.join(refused)}.")
        answer = served.post("/api/jobs", {"kind": "train", "settings": {"source": SOURCE, "steps": 10}})
        number = json.loads(answer.text)["number"]
        page.wait_for_function(
            "async (number) => (await (await fetch('/api/jobs')).json()).some((one) => one.number === number && one.error)",
            arg=number,
        )
        page.close()
