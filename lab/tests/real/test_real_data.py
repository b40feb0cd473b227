"""Real data from a folder of the user's: MNIST, Fashion-MNIST, Adult, COMPAS. Reads TILTMETER_DATA, downloads
nothing."""

import gzip
import os
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch
from torch import nn

import tiltmeter as tm

pytestmark = pytest.mark.slow

COLUMNS = [
    *("age", "workclass", "fnlwgt", "education", "education_num", "marital", "occupation", "relationship", "race"),
    *("sex", "gain", "loss", "hours", "country", "income"),
]


def folder(name):
    place = os.environ.get("TILTMETER_DATA")
    if not place:
        pytest.skip("Set TILTMETER_DATA to a folder with the data sets to run this test.")
    found = Path(place) / name
    if not found.is_dir():
        pytest.skip(f"There is no {name} in TILTMETER_DATA.")
    return found


def idx(path, header):
    return np.frombuffer(gzip.decompress(path.read_bytes()), np.uint8, offset=header)


def images(name, part):
    place = folder(name)
    x = idx(place / f"{part}-images-idx3-ubyte.gz", 16).reshape(-1, 28, 28) / 255.0
    return x.astype(np.float32), idx(place / f"{part}-labels-idx1-ubyte.gz", 8).astype(np.int64)


def two_groups(name, share, points=6000):
    """Faint upright images, a `share` of the training data, and bright turned ones."""
    rng = np.random.default_rng(0)
    parts = []
    for part, counts in (("train", (round(share * points), round((1 - share) * points))), ("t10k", (2000, 2000))):
        x, y = images(name, part)
        x = x - x.mean()
        order = rng.permutation(len(x))
        a, b = order[: counts[0]], order[counts[0] : sum(counts)]
        pixels = np.concatenate([0.4 * x[a], 1.6 * np.rot90(x[b], 1, (1, 2))])[:, ::2, ::2].reshape(-1, 196)
        parts.append(tm.GroupedData(pixels, y[np.r_[a, b]], np.repeat(["upright", "turned"], counts)))
    return parts


def trained(train, held_out, steps, seeds, outputs, lr=0.05, hidden=64, **options):
    runs = []
    for seed in range(seeds):
        torch.manual_seed(seed)
        model = nn.Sequential(nn.Linear(train.x.shape[1], hidden), nn.ReLU(), nn.Linear(hidden, outputs))
        recipe = tm.Recipe(lr=lr, steps=steps, batch=16, **options)
        runs.append(tm.train(model, train, held_out, recipe, seed=seed, watch=tm.Watch(when=tm.record.log_spaced(8))))
    return tm.stack(runs)


@pytest.mark.timeout(1800)
@pytest.mark.parametrize("name", ["mnist", "fashion-mnist"])
def test_who_leads_depends_on_the_share_and_in_between_the_lead_changes(name):
    """Equal shares: contrast decides. A large majority: share decides. In between first the one, then the other."""
    found = {}
    for share in (0.5, 0.8, 0.95):
        together = trained(*two_groups(name, share), steps=2000, seeds=3 if share == 0.8 else 2, outputs=10)
        found[share] = tm.leaders(together, "loss")
        assert tm.theory.leader_on_grid(together.replace({"loss": together["loss"].mean("seed")})).values[-1] == (
            "turned" if share == 0.5 else "upright"
        )
    assert "upright" not in [c.leader_after for c in found[0.5].changes]
    assert "turned" not in [c.leader_after for c in found[0.95].changes]
    assert [(c.leader_before, c.leader_after) for c in found[0.8].changes][-1:] == [("turned", "upright")]


def scaled(frame, y, group, weights=None):
    x = pd.get_dummies(frame, dtype=float).to_numpy()
    width = x.std(0)
    return tm.GroupedData(((x - x.mean(0)) / np.where(width > 0, width, 1)).astype(np.float32), y, group, weights)


def check_against_fairlearn(model, held_out, run):
    metrics = pytest.importorskip("fairlearn.metrics")
    with torch.no_grad():
        decided = (model(held_out.tensors()[0])[:, 0] > 0).int().numpy()
    frame = metrics.MetricFrame(
        metrics={
            "positive_rate": metrics.selection_rate,
            "tpr": metrics.true_positive_rate,
            "fpr": metrics.false_positive_rate,
        },
        y_true=held_out.y,
        y_pred=decided,
        sensitive_features=[str(held_out.groups[code]) for code in held_out.codes],
    )
    for name in ("positive_rate", "tpr", "fpr"):
        for i, group in enumerate(held_out.groups):
            assert run[name].isel(time=-1, group=i).item() == pytest.approx(frame.by_group[name][str(group)])


def adult():
    table = pd.read_csv(folder("adult") / "adult.data", names=COLUMNS, skipinitialspace=True, na_values="?").dropna()
    y = (table["income"] == ">50K").astype(int).to_numpy()
    return table.drop(columns=["income", "fnlwgt", "country"]), y


def test_adult_women_and_men():
    table, y = adult()
    train, held_out = scaled(table, y, table["sex"].tolist()).split(0.3)
    torch.manual_seed(0)
    model = nn.Linear(train.x.shape[1], 1)
    run = tm.train(model, train, held_out, tm.Recipe(lr=0.05, steps=2000, batch=64))
    check_against_fairlearn(model, held_out, run)
    last = run["positive_rate"].isel(time=-1)
    assert last.sel(group="Male") > last.sel(group="Female")
    assert tm.theory.leader_on_grid(run, "error").values[-1] == "Female"


@pytest.mark.filterwarnings("default")
def test_adult_intersections_warn_about_the_smallest():
    table, y = adult()
    table, y = table.iloc[:3000], y[:3000]
    with pytest.warns(UserWarning, match=r"give unreliable results: Female & Amer-Indian-Eskimo"):
        scaled(table, y, list(zip(table["sex"], table["race"], strict=True)))


def test_compas_by_race():
    table = pd.read_csv(folder("compas") / "compas-scores-two-years.csv")
    table = table[table["race"].isin(["African-American", "Caucasian"])]
    features = table[["age", "priors_count", "juv_fel_count", "juv_misd_count", "sex", "c_charge_degree"]]
    train, held_out = scaled(features, table["two_year_recid"].to_numpy(), table["race"].tolist()).split(0.4)
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(train.x.shape[1], 16), nn.Tanh(), nn.Linear(16, 1))
    run = tm.train(model, train, held_out, tm.Recipe(partial(torch.optim.Adam, lr=1e-3), steps=2000, batch=32))
    check_against_fairlearn(model, held_out, run)
    last = run["fpr"].isel(time=-1)
    assert last.sel(group="African-American") > last.sel(group="Caucasian")
