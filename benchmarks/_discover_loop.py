"""The loop from groups that were found to interventions on them, judged on the true groups of fresh points.

python benchmarks/_discover_loop.py loop [--to FILE]
"""

from __future__ import annotations

import sys
from copy import deepcopy
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch

import tiltmeter as tm

sys.path.insert(0, str(Path(__file__).parent))
from _discover_trainings import (
    KINDS,
    SEED,
    STEPS,
    Draws,
    adult,
    all_together,
    network,
    planted,
    recipe,
    run_part,
    trained,
)

DRAWS = 6


def arms() -> dict[str, Any]:
    """Interventions that use groups."""
    known = tm.interventions
    return {
        "balanced weights": known.Balanced(),
        "balanced draws": known.Balanced(by="draws"),
        "group DRO": known.GroupDRO(rate=0.01),
        "down-sampled": known.Downsampled(),
    }


def without_groups(steps: int) -> dict[str, Any]:
    return {"JTT": tm.interventions.JTT(times=20, scout=max(1, steps // 10)), "CVaR": tm.interventions.CVaR(alpha=0.5)}


def errors_after(
    model: torch.nn.Module,
    fresh: tm.GroupedData,
    settings: tm.Recipe,
    seed: int,
    train: tm.GroupedData,
    intervention: Any,
) -> dict[str, float]:
    """The error of the true groups after a training from the same weights with the same batches."""
    chosen = () if intervention is None else (intervention,)
    end = tm.train(
        *(deepcopy(model), train, fresh, replace(settings, interventions=chosen)),
        seed=seed,
        watch=tm.Watch(when=tm.record.at([STEPS])),
    )["error"].isel(time=-1)
    return {str(group): round(float(end.sel(group=group)), 4) for group in ("slice", "rest")}


def loop() -> Draws:
    """The advice on discovered groups, on true groups and without groups, judged on true groups of fresh points."""
    table = adult()
    for draw in range(DRAWS):
        kind = KINDS[draw % len(KINDS)]
        rng = np.random.default_rng([SEED, 4, draw])
        rule, members, x, y = planted(kind, table, rng)
        order = rng.permutation(len(y))
        train, held_out, test = np.split(order, [16_000, 24_000])
        run = trained(x, y, train, held_out, seed=9000 + draw)
        discovery = tm.discover(run, table.rows.iloc[held_out], seed=draw)
        true = np.where(members, "slice", "rest")
        fresh = tm.GroupedData(x[test], y[test], true[test])
        plain = recipe(STEPS, loss=tm.Logistic(), order=draw)
        torch.manual_seed(9000 + draw)
        model = network(x.shape[1])

        errors = partial(errors_after, model, fresh, recipe(STEPS, loss=tm.Logistic(), order=draw), draw)
        row: dict[str, Any] = {
            "kind": kind,
            "draw": draw,
            "slice": rule.name,
            "clear": [g.name for g in discovery.clear],
        }
        together = all_together(x[train], y[train])
        row["plain"] = errors(together, None)
        for name, intervention in without_groups(STEPS).items():
            row[name] = errors(together, intervention)
        divided = {"true groups": [tm.GroupedData(x[part], y[part], true[part]) for part in (train, held_out)]}
        if discovery.clear:
            divided["discovered groups"] = [
                discovery.data(all_together(x[part], y[part]), table.rows.iloc[part]) for part in (train, held_out)
            ]
        for name, parts in divided.items():
            advice = tm.advise(
                model, *parts, plain, arms(), curve="error", method=tm.methods.Rehearsal(), progress=False
            )
            # What advise would take, and the best of what it tried by the number alone, clear or not.
            tried = {arm: advice.value(end) for arm, end in advice.runs.items()}
            for label, chosen in (
                (name, advice.ranked[0].name),
                (f"{name}, lowest", min(tried, key=tried.__getitem__)),
            ):
                intervention = None if chosen == "plain" else arms()[chosen]
                row[label] = {"advice": chosen, "clear": list(advice.better), **errors(parts[0], intervention)}
        yield row


def loop_summary(rows: list[dict[str, Any]]) -> dict[str, Any]:
    """Worst-group error on true groups, and paired differences to plain training, with standard errors."""
    summary: dict[str, Any] = {}
    for name in dict.fromkeys(key for row in rows for key in row if key not in ("kind", "draw", "slice", "clear")):
        pairs = [
            (max(row[name]["slice"], row[name]["rest"]), max(row["plain"]["slice"], row["plain"]["rest"]))
            for row in rows
            if name in row
        ]
        if pairs:
            worst = np.array(pairs)
            change = worst[:, 0] - worst[:, 1]
            error = change.std(ddof=1) / np.sqrt(len(change)) if len(change) > 1 else float("nan")
            summary[name] = {
                "worst-group error": round(float(worst[:, 0].mean()), 4),
                "change": round(float(change.mean()), 4),
                "se of the change": round(float(error), 4),
                "tasks": len(pairs),
            }
    return summary


if __name__ == "__main__":
    run_part({"loop": (loop, loop_summary)})
