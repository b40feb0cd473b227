"""Journeys: what an engineer does with tiltmeter, end to end, each a function whose printed text is its result.

`python tests/journeys.py FOLDER [--refuse PACKAGE ...] [NAME ...]` runs them one after the other and writes what each
prints to FOLDER/NAME.txt, its runs below FOLDER/runs. With `--refuse` an import of these packages fails, as on a machine
without them: the core promises that all of these journeys need neither numba nor the other houses.
"""

from __future__ import annotations

import sys
from contextlib import redirect_stdout
from functools import cache
from importlib.abc import MetaPathFinder
from io import StringIO
from pathlib import Path

import numpy as np
import pandas as pd


class Refused(MetaPathFinder):
    """Fails every import of some packages, with the error of a package that is not installed."""

    def __init__(self, packages):
        self.packages = packages

    def find_spec(self, name, path=None, target=None):  # noqa: ARG002
        if any(name == package or name.startswith(f"{package}.") for package in self.packages):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)


def loans(rows=2400):
    """Women earn less, and repay as often."""
    rng = np.random.default_rng(0)
    sex = rng.choice(["women", "men"], rows, p=[0.3, 0.7])
    usual = np.where(sex == "women", 34, 40)
    income, debt, years = rng.normal(usual, 8), rng.normal(10, 4, rows), rng.integers(0, 20, rows)
    score = 0.2 * (income - usual - 2) - 0.2 * (debt - 10) + 0.05 * (years - 10)
    repaid = np.where(score + 0.7 * rng.logistic(size=rows) > 0, "yes", "no")
    columns = {"sex": sex, "income": income, "debt": debt, "years": years, "repaid": repaid}
    return pd.DataFrame(columns).round(1)


@cache
def task():
    """Training rows, held-out rows and settings of a small training on the loans."""
    import tiltmeter as tm

    frame = loans()
    x = frame[["income", "debt", "years"]].to_numpy("float32")
    x = (x - x.mean(0)) / x.std(0)
    data = tm.GroupedData(x, (frame.repaid == "yes").astype(int).to_numpy(), frame.sex.to_numpy())
    train, held_out = data.split(held_out=0.4, seed=0)
    return train, held_out, tm.Recipe(lr=0.1, steps=120, batch=32, order=0, loss=tm.Logistic())


def network(seed=0):
    import torch

    torch.manual_seed(seed)
    return torch.nn.Sequential(torch.nn.Linear(3, 16), torch.nn.ReLU(), torch.nn.Linear(16, 1))


def trained(**changes):
    from dataclasses import replace

    import tiltmeter as tm

    train, held_out, recipe = task()
    return tm.train(network(), train, held_out, replace(recipe, **changes), to=None)


def journey_train(folder):
    import tiltmeter as tm

    train, held_out, recipe = task()
    tm.train(network(), train, held_out, recipe, to=folder / "runs" / "train")
    print(tm.load(folder / "runs" / "train"))


def journey_leaders(folder):
    import tiltmeter as tm

    print(tm.leaders(trained()))
    print(tm.leaders(trained(), "tpr"))


def journey_probe(folder):
    import torch

    import tiltmeter as tm

    train, held_out, _ = task()
    model = network()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    x, y = train.tensors()
    with tm.Probe(model, held_out, to=folder / "runs" / "probe", budget=None) as probe:
        for step in range(60):
            probe(step)
            optimizer.zero_grad()
            torch.nn.functional.binary_cross_entropy_with_logits(model(x)[:, 0], y.float()).backward()
            optimizer.step()
    print(tm.leaders(tm.load(folder / "runs" / "probe")))


def journey_forecast(folder):
    import tiltmeter as tm

    train, held_out, recipe = task()
    ahead = tm.forecast(network(), train, held_out, recipe, method=tm.methods.Rehearsal())
    tm.save(ahead, folder / "runs" / "forecast")
    print(tm.leaders(ahead))


def journey_twin(folder):
    import torch

    import tiltmeter as tm

    train, held_out, recipe = task()
    torch.manual_seed(0)
    wide = torch.nn.Sequential(torch.nn.Linear(3, 256), torch.nn.ReLU(), torch.nn.Linear(256, 1))
    print(tm.leaders(tm.forecast(wide, train, held_out, recipe, method=tm.methods.Twin())))


def journey_agreement(folder):
    import tiltmeter as tm

    train, held_out, recipe = task()
    ahead = tm.forecast(network(), train, held_out, recipe, method=tm.methods.Rehearsal())
    print(tm.agreement(ahead, trained()))


def journey_advise(folder):
    import tiltmeter as tm

    train, held_out, recipe = task()
    asked = {"balanced": tm.interventions.Balanced(), "group DRO": tm.interventions.GroupDRO(0.01)}
    print(tm.advise(network(), train, held_out, recipe, interventions=asked))


def journey_group_dro(folder):
    import tiltmeter as tm

    print(tm.leaders(trained(interventions=(tm.interventions.GroupDRO(0.01),))))


def journey_scorecard(folder):
    import tiltmeter as tm

    print(tm.scorecard({"plain": trained(), "balanced": trained(interventions=(tm.interventions.Balanced(),))}))


def journey_report(folder):
    import tiltmeter as tm

    tm.report([folder / "runs" / "train"], folder / "page.html")
    page = (folder / "page.html").read_text(encoding="utf-8")
    print(len(page) > 10_000, "women" in page)


def journey_plot(folder):
    import tiltmeter as tm

    tm.plot.save(tm.plot.curves(trained(), curve="loss"), folder / "curves.svg")
    print((folder / "curves.svg").read_text(encoding="utf-8")[:4])


def journey_ensemble(folder):
    import tiltmeter as tm

    train, held_out, recipe = task()
    print(tm.leaders(tm.ensemble(network, train, held_out, recipe, seeds=3)))


def journey_predictions(folder):
    import tiltmeter as tm

    frame = loans()
    frame["score"] = 1 / (1 + np.exp(-0.2 * (frame.income - 38)))
    print(tm.leaders(tm.predictions.run(frame, label="repaid", score="score", group="sex", positive="yes"), "tpr"))


def journey_stopping(folder):
    import tiltmeter as tm

    print(tm.fairness.stopping(trained()))


def journey_calibration(folder):
    import tiltmeter as tm

    print(tm.fairness.calibration(trained()))


def journey_why(folder):
    import tiltmeter as tm

    print(tm.fairness.why(trained()))


def journey_discover(folder):
    import tiltmeter as tm

    frame = loans()
    frame["score"] = 1 / (1 + np.exp(-0.2 * (frame.income - 38) + 0.2 * (frame.debt - 10)))
    judged = tm.predictions.run(frame, label="repaid", score="score", group="sex", positive="yes")
    print(tm.discover(judged, frame[["income", "debt", "years"]]))


def journey_measure(folder):
    import torch

    import tiltmeter as tm

    train, held_out, recipe = task()
    scores = tm.measures.GroupMetric(lambda y_true, y_score: float(np.mean(y_score)), "mean_score", better="neither")
    torch.manual_seed(0)
    watched = tm.train(network(), train, held_out, recipe, watch=tm.Watch(measures=[scores]))
    print(watched["mean_score"].isel(time=-1).values.round(4))


JOURNEYS = {
    name.removeprefix("journey_"): made for name, made in list(globals().items()) if name.startswith("journey_")
}


def main():
    words = sys.argv[1:]
    folder = Path(words[0])
    refused = [word for word in words[1:] if "." in word or word in ("numba", "torch", "tiltmeter_lab")]
    if "--refuse" in words:
        sys.meta_path.insert(0, Refused(refused))
    chosen = [word for word in words[1:] if word in JOURNEYS] or list(JOURNEYS)
    folder.mkdir(parents=True, exist_ok=True)
    for name in chosen:
        text = StringIO()
        with redirect_stdout(text):
            JOURNEYS[name](folder)
        (folder / f"{name}.txt").write_text(text.getvalue(), encoding="utf-8")
        print(name, "done", flush=True)


if __name__ == "__main__":
    main()
