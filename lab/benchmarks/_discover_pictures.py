"""What `tm.discover` finds in pictures of which some of one class were changed.

python benchmarks/_discover_pictures.py images [--to FILE]
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import torch

import tiltmeter as tm
from tiltmeter_lab.data.mnist import fashion_mnist, mnist

sys.path.insert(0, str(Path(__file__).parent))
from _discover_trainings import SEED, WATCH, Draws, all_together, network, overlap, recipe, run_part

DRAWS = {"images": 6, "inverted": 20}
PICTURES = ("turned", "bold", "shortcut", "inverted")
#: Pictures to train on and held out, and the share of a class that is changed.
IMAGES_TRAINED, IMAGES_HELD_OUT, CHANGED = 12_000, 6_000, 0.15


def changed_pictures(kind: str, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Pictures, labels, and which ones were changed."""
    images = (fashion_mnist if kind == "inverted" else mnist)("train")
    chosen = rng.choice(len(images), IMAGES_TRAINED + IMAGES_HELD_OUT, replace=False)
    x, y = images.x[chosen].astype(np.float32) / 255.0, images.y[chosen].astype(np.int64)
    label = int(rng.integers(10))
    inside = np.flatnonzero(y == label)
    some = np.zeros(len(y), dtype=bool)
    if kind == "bold":
        ink = x[inside].mean((1, 2))
        some[inside[ink >= np.quantile(ink, 1.0 - CHANGED)]] = True
        y[some] = (label + 1) % 10
    elif kind == "shortcut":
        shown = y.copy()
        some = rng.random(len(y)) < 0.05
        shown[some] = (shown[some] + rng.integers(1, 10, some.sum())) % 10
        x[:, :3, :] = 0.0
        for place, patch in enumerate(shown):
            x[place, :3, 2 * patch : 2 * patch + 2] = 1.0
    else:
        some[rng.choice(inside, int(CHANGED * len(inside)), replace=False)] = True
        x[some] = np.rot90(x[some], axes=(1, 2)) if kind == "turned" else 1.0 - x[some]
    return x.reshape(len(x), -1), y, some


def pictures() -> Draws:
    for number, kind in enumerate(PICTURES):
        for draw in range(DRAWS["inverted" if kind == "inverted" else "images"]):
            rng = np.random.default_rng([SEED, 3, number, draw])
            x, y, some = changed_pictures(kind, rng)
            train, held_out = (
                all_together(x[part], y[part]) for part in (slice(IMAGES_TRAINED), slice(IMAGES_TRAINED, None))
            )
            torch.manual_seed(draw)
            model = network(x.shape[1], 10, (128, 64))
            run = tm.train(model, train, held_out, recipe(1000), seed=draw, watch=WATCH)
            inputs = torch.as_tensor(x[IMAGES_TRAINED:])
            with torch.no_grad():
                first = model[:2](inputs)
                second = model[2:4](first)
            layers = {"input": inputs.numpy(), "first layer": first.numpy(), "second layer": second.numpy()}
            planted_there, labels = some[IMAGES_TRAINED:], y[IMAGES_TRAINED:]
            row: dict[str, Any] = {"kind": kind, "draw": draw}
            for name, used in {"input": {"input": layers["input"]}, "three layers": layers}.items():
                discovery = tm.discover(run, features=used, seed=draw)
                judges = discovery.judges
                best = (0.0, 0.0, "none")
                false = 0
                for group in discovery.groups:
                    mask = group.rule.holds(discovery.columns)[judges]
                    truth = planted_there[judges] & (labels[judges] == labels[judges][mask][0])
                    purity = float((mask & truth).sum() / mask.sum())
                    best = max(best, (overlap(mask, truth), purity, group.verdict))
                    false += group.clear and purity > 0.5
                row[name] = {
                    "overlap": best[0],
                    "purity": best[1],
                    "verdict": best[2],
                    "clear and mostly changed": false,
                }
            yield row


def pictures_summary(rows: list[dict[str, Any]]) -> dict[str, Any]:
    summary: dict[str, Any] = {}
    for kind in PICTURES:
        own = [row for row in rows if row["kind"] == kind]
        for name in ("input", "three layers"):
            values = np.array([row[name]["overlap"] for row in own])
            verdicts = [row[name]["verdict"] for row in own]
            summary[f"{kind}, {name}"] = {
                "overlap": round(float(values.mean()), 3),
                "se": round(float(values.std(ddof=1) / np.sqrt(len(values))), 3),
                "purity": round(float(np.mean([row[name]["purity"] for row in own])), 3),
                "best group clear": sum(verdict in ("worse at the end", "learned later") for verdict in verdicts),
                "draws": len(own),
                "draws with a clear group that is mostly changed": sum(
                    row[name]["clear and mostly changed"] > 0 for row in own
                ),
            }
    return summary


if __name__ == "__main__":
    run_part({"images": (pictures, pictures_summary)})
