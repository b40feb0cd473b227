"""Previews against trainings: how close their end rates are, beside another seed, a pilot, and trivial rules.

`python benchmarks/_preview_trainings.py calibrate rows.jsonl` (or `judge`) makes the trainings.
Then `python benchmarks/preview.py calibrate rows.jsonl` writes the numbers of the band into the package, and
`python benchmarks/preview.py judge rows.jsonl` judges previews on tables that had no part in it; its rows are what the
table of docs/preview.md is made of. What counts is fixed here and was committed before the judged trainings were read:
cells are the end rates (selection, TPR, FPR, error) of groups, large with at least 200 held-out people in the
denominator and small with 20 to 200; the truth is the training of seed 0. The rule that refuses stays only if the
refused tables' ratio of root mean squares, preview over another seed, is at least 1.5 times that of the kept ones.
"""

from __future__ import annotations

import json
import sys
import time
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
from _measure import RESULTS
from _preview_tasks import CALIBRATE, JUDGE, read
from _preview_trainings import NETWORKS, PILOT
from scipy.optimize import nnls
from sklearn.ensemble import HistGradientBoostingClassifier

import tiltmeter as tm
from tiltmeter.preview.doubt import BANDS, FEWEST, LARGE, RATES, calibrated, denominators, half_width, rate_variance

Rows = dict[str, Any]
#: Rows on which the quick non-linear model is fitted and judged, and the gain from which the rule tried refused.
FITTED, JUDGED, MOST_GAIN = 5000, 3600, 0.08
#: The share of trainings inside the band, and the ratio from which a rule of refusal stays.
INSIDE, SEPARATES = 0.9, 1.5


def pooled_loss(view: Any) -> float:
    """The held-out loss at the end of a preview, over all people."""
    people = np.array(list(view.run.origin.problem["held_out"]["sizes"]), dtype=object)[:, 1].astype(float)
    return float(np.average(view.run["loss"].values[-1], weights=people))


def gain_of(inputs: Any, least_loss: float) -> float:
    """What gradient boosting has over the preview's least held-out loss, as a share of the fall from a constant.

    Fixed numbers of rows keep this a size and not a test: a z-value would grow with the table.
    """
    rng = np.random.default_rng(0)
    fitted = rng.permutation(len(inputs.train.labels))[:FITTED]
    judged = np.random.default_rng(0).permutation(len(inputs.held_out.labels))[:JUDGED]
    mass, labels = inputs.train.mass[fitted], inputs.train.labels[fitted]
    held, share = inputs.held_out.labels[judged], inputs.held_out.mass[judged]
    x, seen = inputs.train.x[fitted], inputs.held_out.x[judged]
    options: dict[str, Any] = {"max_iter": 60, "max_leaf_nodes": 15, "early_stopping": False, "random_state": 0}
    made = HistGradientBoostingClassifier(**options).fit(x, labels > 0.5, sample_weight=mass)
    chance = np.clip(made.predict_proba(seen)[:, 1], 1e-6, 1.0 - 1e-6)
    quick = np.average(-np.where(held > 0.5, np.log(chance), np.log1p(-chance)), weights=share)
    always = float(np.clip(np.average(labels, weights=mass), 1e-6, 1.0 - 1e-6))
    constant = np.average(-np.where(held > 0.5, np.log(always), np.log1p(-always)), weights=share)
    fall = constant - min(quick, least_loss)
    return float((least_loss - quick) / fall) if fall > 1e-12 else 0.0


def previewed(which: str) -> list[Rows]:
    """What the preview says of every task, and what it cost."""
    found = []
    for task in {"calibrate": CALIBRATE, "judge": JUDGE}[which]:
        train, held_out = read(task)
        begin = time.process_time()
        view = tm.preview(train, held_out)
        spent = time.process_time() - begin
        ends = {name: view.run[name].values[-1].tolist() for name in RATES}
        plain = view.by_columns()
        facts = view.run.origin.settings["calculation"]
        found.append(
            {"task": task.name, "ends": ends, "columns": plain, "cpu": spent}
            | {"gain": gain_of(view.inputs, pooled_loss(view))}
            | {"disagreement": view.doubt.disagreement, "holds": view.doubt.holds, "rows": facts["rows"]}
            | {"people": {name: people.tolist() for name, people in denominators(view.inputs).items()}}
        )
    return found


def cells(said: Rows, came: Rows, counts: Rows, least: int, most: float) -> np.ndarray:
    """Differences of end rates in points, over groups with so many people in the denominator."""
    return np.array(
        [
            100 * (said[name][place] - came[name][place])
            for name in RATES
            for place, people in enumerate(counts[name])
            if least <= people < most
        ]
    )


def size(errors: np.ndarray) -> dict[str, float]:
    """Median, share within 3 points, 90 % quantile and root mean square of differences."""
    away = np.abs(errors)
    return {
        "cells": len(away),
        "median": float(np.median(away)),
        "within 3": float(np.mean(away <= 3)),
        "90 %": float(np.quantile(away, 0.9)),
        "rms": rms(away),
    }


def rms(errors: np.ndarray) -> float:
    return float(np.sqrt(np.mean(errors**2)))


def trainings(file: Path) -> dict[tuple[str, str, int], Rows]:
    rows = map(json.loads, file.read_text().splitlines())
    return {(row["task"], row["network"], row["seed"]): row for row in rows}


def pilot(row: Rows) -> Rows:
    """The rates after 5 % of the training."""
    return next(one for one in row["path"] if one["step"] == PILOT)


def gaps(said: Rows, truth: Rows) -> list[tuple[float, float, float]]:
    """Of every pair of groups and rate: the difference of gaps, p (1 - p) / n of both, and the fewer people."""
    found = []
    counts = truth["counts"]
    came = truth["path"][-1]
    for name in RATES:
        for a, b in combinations(range(len(truth["groups"])), 2):
            people = np.array([counts[name][a], counts[name][b]], dtype=float)
            if people.min() < FEWEST:
                continue
            rate = np.array([said[name][a], said[name][b]])
            away = (rate[0] - rate[1]) - (came[name][a] - came[name][b])
            found.append((away, float(rate_variance(rate, people).sum()), float(people.min())))
    return found


def single(said: Rows, truth: Rows) -> list[tuple[float, float, float]]:
    """The same of every group's rate alone."""
    found = []
    for name in RATES:
        for place, people in enumerate(truth["counts"][name]):
            if people >= FEWEST:
                rate = said[name][place]
                away = rate - truth["path"][-1][name][place]
                found.append((away, float(rate_variance(np.array(rate), np.array(float(people)))), float(people)))
    return found


def calibrate(file: Path) -> None:
    """Fit the band: squared differences on a floor, p (1 - p) / n and the disagreement; then its factor by size."""
    truths, views = trainings(file), previewed("calibrate")
    table: Rows = {}
    for what, collect in (("rate", single), ("gap", gaps)):
        rows = [
            (*cell, view["disagreement"])
            for view in views
            for name in NETWORKS
            for seed in (0, 1)
            for cell in collect(view["ends"], truths[view["task"], name, seed])
        ]
        away, variance, people, doubt = np.array(rows).T
        design = np.stack([np.ones(len(away)), variance, doubt**2], axis=1)
        scale = 1.0 / np.maximum(variance, 1e-5)  # every cell counts by its own size, not by that of small groups
        parts, _ = nnls(design * scale[:, None], away**2 * scale)
        length = np.sqrt(design @ parts)
        factors = {
            word: float(np.quantile(np.abs(away[chosen]) / length[chosen], INSIDE))
            for word, chosen in (("large", people >= LARGE), ("small", people < LARGE))
        }
        floor, points, spread = np.sqrt(parts)
        table[what] = {"floor": floor, "points": points, "spread": spread, **factors, "cells": len(away)}
    tables = sorted({task.file for task in CALIBRATE})
    calibrated.cache_clear()
    BANDS.write_text(
        json.dumps({**table, "tables": tables, "tasks": [view["task"] for view in views]}, indent=1) + "\n"
    )


def covered(view: Rows, truth: Rows) -> list[tuple[bool, float, bool]]:
    """Whether every gap of a training is inside the band, with the fewer people, and whether the preview holds."""
    inside = []
    for away, variance, people in gaps(view["ends"], truth):
        half = half_width("gap", np.array(people), np.array(variance), view["disagreement"])
        inside.append((abs(away) <= half, people, view["holds"]))
    return inside


def judge(which: str, file: Path) -> Rows:
    """All numbers that are reported, of one list of tasks."""
    truths, views = trainings(file), previewed(which)
    found: Rows = {"tasks": len(views), "refused": [view["task"] for view in views if not view["holds"]]}
    for name in NETWORKS:
        per_task = []
        for view in views:
            truth, other = (truths[view["task"], name, seed] for seed in (0, 1))
            end = truth["path"][-1]
            parts = {
                "preview": view["ends"],
                "columns": view["columns"],
                "another seed": other["path"][-1],
                "pilot": pilot(truth),
            }
            per_task.append(
                {
                    "task": view["task"],
                    "holds": view["holds"],
                    "gain": view["gain"],
                    "disagreement": view["disagreement"],
                    "base rate": base_rate(truth),
                    **{
                        f"{word}, {kind}": cells(said, end, truth["counts"], *between)
                        for word, said in parts.items()
                        for kind, between in (("large", (LARGE, np.inf)), ("small", (FEWEST, LARGE)))
                    },
                }
            )
        found[name] = summary(per_task)
        inside = [one for view in views for seed in (0, 1) for one in covered(view, truths[view["task"], name, seed])]
        for kind, least, most in (("large", LARGE, np.inf), ("small", FEWEST, LARGE)):
            for label, held in (("all", (True, False)), ("kept", (True,))):
                chosen = [one for one, people, holds in inside if least <= people < most and holds in held]
                found[name][f"inside the band, {kind}, {label}"] = [float(np.mean(chosen)), len(chosen)]
    found["cpu seconds"] = [view["cpu"] for view in views]
    return found


def base_rate(truth: Rows) -> float:
    counts = truth["counts"]
    return float(np.sum(counts["tpr"]) / np.sum(counts["positive_rate"]))


def summary(rows: list[Rows]) -> Rows:
    """Sizes over kept and refused tasks, ratios by task with an interval over tables, and risk against coverage."""
    found: Rows = {}
    kept = [row for row in rows if row["holds"]]
    for kind in ("large", "small"):
        for word in ("preview", "columns", "another seed", "pilot"):
            for label, chosen in (("all", rows), ("kept", kept), ("refused", [r for r in rows if not r["holds"]])):
                errors = np.concatenate([row[f"{word}, {kind}"] for row in chosen]) if chosen else np.zeros(0)
                if errors.size:
                    found[f"{word}, {kind}, {label}"] = size(errors)
    ratio = {row["task"]: rms(row["preview, large"]) / max(rms(row["another seed, large"]), 1e-9) for row in rows}
    rules = {
        "disagreement": [not row["holds"] for row in rows],
        "boosting": [row["gain"] > MOST_GAIN for row in rows],
    }
    for rule, refuses in rules.items():
        parts = {
            "kept": [row for row, away in zip(rows, refuses, strict=True) if not away],
            "refused": [row for row, away in zip(rows, refuses, strict=True) if away],
        }
        for label, chosen in parts.items():
            if chosen:
                found[f"ratio by {rule}, {label}"] = middle([ratio[row["task"]] for row in chosen])
        if all(parts.values()):
            refused, left = (found[f"ratio by {rule}, {label}"][0] for label in ("refused", "kept"))
            found[f"{rule} separates"] = bool(refused >= SEPARATES * left)
    found["ratio, all"] = middle(list(ratio.values()))
    found["risk by coverage"] = {
        rule: at_coverage(rows, order)
        for rule, order in (
            ("refuse by boosting", lambda row: row["gain"]),
            ("refuse by disagreement", lambda row: row["disagreement"]),
            ("refuse by base rate", lambda row: -abs(row["base rate"] - 0.5)),
            ("refuse at random", None),
        )
    }
    found["by task"] = {
        row["task"]: {
            "preview": rms(row["preview, large"]),
            "another seed": rms(row["another seed, large"]),
            "gain": row["gain"],
            "disagreement": row["disagreement"],
            "holds": row["holds"],
        }
        for row in rows
    }
    return found


def middle(values: list[float]) -> list[float]:
    """The median over tasks with a 90 % interval, from tables drawn again; and how many tasks."""
    drawn = np.median(np.random.default_rng(0).choice(values, (4000, len(values))), axis=1)
    return [float(np.median(values)), *np.quantile(drawn, (0.05, 0.95)).tolist(), len(values)]


def at_coverage(rows: list[Rows], order: Any) -> dict[str, float]:
    """The 90 % quantile of differences over the tasks kept at several coverages, the least doubtful first."""
    if order is None:
        every = np.concatenate([row["preview, large"] for row in rows])
        return {f"{share:g}": float(np.quantile(np.abs(every), 0.9)) for share in (0.25, 0.5, 0.75, 1.0)}
    ranked = sorted(rows, key=order)
    found = {}
    for share in (0.25, 0.5, 0.75, 1.0):
        part = ranked[: max(1, round(share * len(ranked)))]
        found[f"{share:g}"] = float(np.quantile(np.abs(np.concatenate([r["preview, large"] for r in part])), 0.9))
    return found


def main() -> None:
    what, file = sys.argv[1], Path(sys.argv[2])
    if what == "calibrate":
        calibrate(file)
    found = judge(what, file)
    if what == "judge":
        (RESULTS / "preview.json").write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    print(json.dumps(found, indent=1))


if __name__ == "__main__":
    main()
