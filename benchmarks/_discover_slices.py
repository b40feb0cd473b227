"""What `tm.discover` finds: planted slices, exchanged curves, unaltered tables, images, and the loop to interventions.

    python benchmarks/_discover_slices.py PART [--to FILE]

PART is one of `adult`, `compas`, `exchanged`, `tables`, `images`, `loop`. All seeds are fixed here. Every part prints
one line of JSON for each draw and a summary at the end. It needs the data of `tiltmeter data get`. SliceLine and
pysubgroup are compared if they are installed; they are no dependencies.
"""

from __future__ import annotations

import json
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from copy import deepcopy
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch

import tiltmeter as tm
from tiltmeter.data.public.adult import LEFT_OUT, adult_table
from tiltmeter.data.public.celeba import celeba
from tiltmeter.data.public.compas import FEATURES, compas_table
from tiltmeter.data.public.german import german_table
from tiltmeter.data.public.mnist import fashion_mnist, mnist
from tiltmeter.discover.curves import halves, learning_curves
from tiltmeter.discover.pursuit import Search, standardised
from tiltmeter.discover.rules import Candidates, Rule, candidates, columns_of

#: Every random number of this file comes from this seed and the numbers of the part and the draw.
SEED = 340
KINDS = ("reversed labels", "label noise", "shuffled features")
#: Draws of planted slices of each kind, of exchanged curves, of tables, and of images.
DRAWS = {"adult": 20, "compas": 10, "exchanged": 400, "tables": 8, "images": 6, "inverted": 20, "loop": 6}
#: Sizes of planted slices, as shares of all rows, and how many labels noise turns.
SMALLEST, LARGEST, NOISE = 0.03, 0.12, 0.35
#: Groups of the methods that are compared.
GROUPS = 8
#: pysubgroup takes long: it sees the first draws of each kind.
SLOW_DRAWS = 5


@dataclass(frozen=True)
class Table:
    """Rows that people can name, the same as numbers for a network, and labels."""

    rows: pd.DataFrame
    y: np.ndarray
    trained: int

    def numbers(self) -> np.ndarray:
        encoded = pd.get_dummies(self.rows, dtype=float)
        spread = encoded.std(ddof=0).replace(0.0, 1.0)
        return ((encoded - encoded.mean()) / spread).to_numpy(np.float32)


def adult() -> Table:
    rows = adult_table("train")
    return Table(rows.drop(columns=list(LEFT_OUT)), (rows["income"] == ">50K").to_numpy(int), 20_000)


def compas() -> Table:
    rows = compas_table()
    return Table(rows[[*FEATURES, "race"]], rows["two_year_recid"].to_numpy(int), 2_500)


def faces() -> Table:
    """Attributes of faces; the label is one of them. Many are a matter of taste."""
    people = celeba("valid")
    rows = pd.DataFrame(
        {name: people.has(name) for name in people.names if name not in ("Smiling", "Mouth_Slightly_Open")}
    )
    return Table(rows, people.has("Smiling").astype(int), 10_000)


def network(inputs: int, outputs: int = 1, widths: tuple[int, int] = (128, 128)) -> torch.nn.Sequential:
    sizes = (inputs, *widths)
    layers = [part for a, b in pairwise(sizes) for part in (torch.nn.Linear(a, b), torch.nn.ReLU())]
    return torch.nn.Sequential(*layers, torch.nn.Linear(sizes[-1], outputs))


#: Updates of a training on a table.
STEPS = 1500


def recipe(steps: int = STEPS, **more: Any) -> tm.Recipe:
    return tm.Recipe(partial(torch.optim.AdamW, lr=1e-3), steps=steps, batch=128, **more)


#: 26 evaluations of 1,500 steps.
WATCH = tm.Watch(when=tm.record.log_spaced(8), entropy=True)


def all_together(x: np.ndarray, y: np.ndarray) -> tm.GroupedData:
    return tm.GroupedData(x, y, np.zeros(len(y), dtype=int))


def trained(x: np.ndarray, y: np.ndarray, train: np.ndarray, held_out: np.ndarray, seed: int) -> tm.Trajectory:
    """One network; nobody is in a group."""
    torch.manual_seed(seed)
    parts = [all_together(x[places], y[places]) for places in (train, held_out)]
    return tm.train(network(x.shape[1]), *parts, recipe(loss=tm.Logistic()), seed=seed, watch=WATCH)


def planted(kind: str, table: Table, rng: np.random.Generator) -> tuple[Rule, np.ndarray, np.ndarray, np.ndarray]:
    """A random slice of one or two conditions, spoilt in one way: its rule, its rows, and the data after that."""
    columns = columns_of(table.rows)
    offered = candidates(columns)
    while True:
        places = rng.choice(len(offered.conditions), size=int(rng.integers(1, 3)), replace=False)
        members = offered.holds[:, places].all(1)
        apart = len(places) == 1 or members.sum() <= 0.9 * offered.holds[:, places].sum(0).min()
        if SMALLEST <= members.mean() <= LARGEST and apart:
            break
    x, y = table.numbers(), table.y.copy()
    inside = np.flatnonzero(members)
    if kind == "reversed labels":
        y[inside] = 1 - y[inside]
    elif kind == "label noise":
        turned = inside[rng.random(len(inside)) < NOISE]
        y[turned] = 1 - y[turned]
    else:
        x[inside] = x[rng.permutation(inside)]
    return Rule.of([offered.conditions[place] for place in places]), members, x, y


def overlap(members: np.ndarray, others: np.ndarray) -> float:
    return float((members & others).sum() / max((members | others).sum(), 1))


# The methods that are compared: each returns masks of the judging points.
Masks = list[np.ndarray]


@dataclass(frozen=True, eq=False)
class Setting:
    """What every method gets: conditions of the searched points, where they hold for all, columns as codes, losses."""

    offered: Candidates
    everywhere: np.ndarray
    coded: np.ndarray
    searched: np.ndarray
    loss: np.ndarray

    @property
    def end(self) -> np.ndarray:
        """The loss of the searched points at the end."""
        return np.asarray(self.loss[-1, self.searched], dtype=float)


def setting(rows: pd.DataFrame, searched: np.ndarray, loss: np.ndarray) -> Setting:
    columns = columns_of(rows)
    offered = candidates({title: values[searched] for title, values in columns.items()})
    everywhere = np.stack([condition.holds(columns) for condition in offered.conditions], axis=1)
    coded = []
    for values in columns.values():
        if values.dtype.kind == "O":
            coded.append(np.unique(values.astype(str), return_inverse=True)[1] + 1)
        else:  # tenths, as the conditions have them
            cuts = np.unique(np.quantile(values[searched], np.arange(1, 10) / 10))
            coded.append(np.searchsorted(cuts, values, side="left") + 1)
    return Setting(offered, everywhere, np.stack(coded, axis=1), searched, loss)


def by_final_loss(given: Setting) -> Masks:
    """The same pursuit on the loss at the end alone."""
    picks = Search(given.offered.holds, 3, 0.02).pursue(standardised(given.end[:, None]), GROUPS, 3.5)
    return [given.everywhere[:, list(pick.places)].all(1)[~given.searched] for pick in picks]


def by_tree(given: Setting, parts: int) -> Masks:
    """The leaves of a regression tree on the loss at the end, or on principal components of the curves."""
    from sklearn.decomposition import PCA
    from sklearn.tree import DecisionTreeRegressor

    curves = given.loss[:, given.searched].T
    target = PCA(parts, random_state=0).fit_transform(curves) if parts else given.end
    tree = DecisionTreeRegressor(max_leaf_nodes=GROUPS, min_samples_leaf=0.02, random_state=0)
    tree.fit(given.offered.holds, target)
    leaves = tree.apply(given.everywhere[~given.searched])
    return [leaves == leaf for leaf in np.unique(tree.apply(given.offered.holds))]


def by_sliceline(given: Setting, alpha: float, mean: bool = False, columns: bool = False) -> Masks | None:
    """Its best slices of up to two values: of our conditions (true or false), or of the columns, numbers in tenths."""
    try:
        from sliceline.slicefinder import Slicefinder
    except ImportError:
        return None
    errors = given.loss[1:, given.searched].mean(0).astype(float) if mean else given.end
    codes = given.coded if columns else given.everywhere.astype(int) + 1
    finder = Slicefinder(alpha=alpha, k=GROUPS, max_l=2, min_sup=int(0.02 * len(errors)), verbose=False)
    finder.fit(codes[given.searched], errors)
    others = codes[~given.searched]
    masks = []
    for conditions in finder.top_slices_:
        used = [(place, value) for place, value in enumerate(conditions) if value is not None]
        masks.append(np.all([others[:, place] == value for place, value in used], axis=0))
    return masks


def by_pysubgroup(given: Setting) -> Masks | None:
    try:
        import pysubgroup as ps
    except ImportError:
        return None
    names = [f"c{place}" for place in range(given.offered.holds.shape[1])]
    frame = pd.DataFrame(given.offered.holds, columns=names).assign(loss=given.end)
    selectors = [ps.EqualitySelector(name, True) for name in names]
    target, quality = ps.NumericTarget("loss"), ps.StandardQFNumeric(a=0.5)
    task = ps.SubgroupDiscoveryTask(frame, target, selectors, quality, result_set_size=GROUPS, depth=2)
    descriptions = ps.BeamSearch().execute(task).to_descriptions()
    others = pd.DataFrame(given.everywhere[~given.searched], columns=names)
    return [np.asarray(rule.covers(others), dtype=bool) for _, rule, *_ in descriptions]


METHODS: dict[str, Callable[..., Masks | None]] = {
    "pursuit, final loss (8)": by_final_loss,
    "tree, final loss (8)": partial(by_tree, parts=0),
    "tree, 3 components of curves (8)": partial(by_tree, parts=3),
    "SliceLine, final loss, alpha 0.9 (8)": partial(by_sliceline, alpha=0.9),
    "SliceLine, final loss, alpha 0.98 (8)": partial(by_sliceline, alpha=0.98),
    "SliceLine, final loss, alpha 0.99 (8)": partial(by_sliceline, alpha=0.99),
    "SliceLine, mean curve, alpha 0.99 (8)": partial(by_sliceline, alpha=0.99, mean=True),
    "SliceLine, final loss, alpha 0.99, columns in tenths (8)": partial(by_sliceline, alpha=0.99, columns=True),
    "SliceLine, mean curve, alpha 0.99, columns in tenths (8)": partial(
        by_sliceline, alpha=0.99, mean=True, columns=True
    ),
    "pysubgroup beam, final loss (8)": by_pysubgroup,
}


def planted_slices(name: str) -> Iterator[dict[str, Any]]:
    """Every method on the same draws: the largest overlap with the planted slice on points that did not search."""
    table = {"adult": adult, "compas": compas}[name]()
    for number, kind in enumerate(KINDS):
        for draw in range(DRAWS[name]):
            rng = np.random.default_rng([SEED, len(table.y), number, draw])
            rule, members, x, y = planted(kind, table, rng)
            order = rng.permutation(len(y))
            train, held_out = order[: table.trained], order[table.trained :]
            run = trained(x, y, train, held_out, seed=1000 * number + draw)
            rows, slice_ = table.rows.iloc[held_out], members[held_out]
            start = time.process_time()
            discovery = tm.discover(run, rows, seed=draw)
            seconds = time.process_time() - start
            curves = learning_curves(run)
            searched = ~halves(curves, 0.5, draw)
            columns = columns_of(rows)
            overlaps = {
                group.name: overlap(group.rule.holds(columns)[~searched], slice_[~searched])
                for group in discovery.groups
            }
            best = max(overlaps, key=lambda name: overlaps[name], default="")
            row: dict[str, Any] = {"kind": kind, "draw": draw, "slice": rule.name, "best": best}
            row["verdict"] = discovery[best].verdict if best else "none"
            row["seconds"] = round(seconds, 2)
            row["overlap"] = {"discover (6 + 6)": overlaps.get(best, 0.0)}
            clear = [overlaps[group.name] for group in discovery.clear]
            row["overlap"]["discover, clear groups"] = max(clear, default=0.0)
            given = setting(rows, searched, curves.loss[0])
            for method, work in METHODS.items():
                if "pysubgroup" in method and draw >= SLOW_DRAWS:
                    continue
                masks = work(given)
                if masks is not None:
                    row["overlap"][method] = max((overlap(mask, slice_[~searched]) for mask in masks), default=0.0)
            yield row


def planted_summary(rows: list[dict[str, Any]]) -> dict[str, Any]:
    summary: dict[str, Any] = {}
    for kind in KINDS:
        own = [row for row in rows if row["kind"] == kind]
        for method in dict.fromkeys(name for row in own for name in row["overlap"]):
            values = np.array([row["overlap"][method] for row in own if method in row["overlap"]])
            error = values.std(ddof=1) / np.sqrt(len(values)) if len(values) > 1 else float("nan")
            summary.setdefault(method, {})[kind] = {
                "mean": round(float(values.mean()), 3),
                "se": round(float(error), 3),
                "above 0.5": f"{int((values > 0.5).sum())} of {len(values)}",
            }
        verdicts = [row["verdict"] for row in own if row["overlap"]["discover (6 + 6)"] > 0.5]
        summary.setdefault("verdicts of those above 0.5", {})[kind] = {
            verdict: verdicts.count(verdict) for verdict in sorted(set(verdicts))
        }
    summary["seconds, median"] = float(np.median([row["seconds"] for row in rows]))
    return summary


#: Points of an exchanged draw, and draws for each network.
EXCHANGED_POINTS, OF_ONE_NETWORK = 4_000, 40


def exchanged() -> Iterator[dict[str, Any]]:
    """Curves and labels exchanged against the rows of the table: any clear group is false. All rules are judged."""
    table = adult()
    x = table.numbers()
    for number in range(DRAWS["exchanged"] // OF_ONE_NETWORK):
        rng = np.random.default_rng([SEED, 1, number])
        order = rng.permutation(len(table.y))
        held_out = order[table.trained :]
        run = trained(x, table.y, order[: table.trained], held_out, seed=5000 + number)
        for draw in range(OF_ONE_NETWORK):
            chosen = rng.choice(len(held_out), EXCHANGED_POINTS, replace=False)
            rows = table.rows.iloc[held_out[rng.permutation(chosen)]]
            points = {name: run.points[name].isel(point=chosen) for name in ("loss", "decided_positive")}
            part = tm.Trajectory(dict(run), run.clock, run.origin, points=points)
            discovery = tm.discover(part, rows, floor=1.0, seed=draw)
            yield {
                "network": number,
                "draw": draw,
                "rules": len(discovery.groups),
                "clear": [group.name for group in discovery.clear],
                "above the usual floor": sum(group.score >= 3.5 for group in discovery.groups),
            }


def exchanged_summary(rows: list[dict[str, Any]]) -> dict[str, Any]:
    return {
        "draws": len(rows),
        "with any clear group": sum(bool(row["clear"]) for row in rows),
        "rules a draw": round(float(np.mean([row["rules"] for row in rows])), 2),
    }


def tables() -> Iterator[dict[str, Any]]:
    """Unaltered tables over seeds and splits, and a table that is too small."""
    for number, (name, make) in enumerate({"adult": adult, "compas": compas, "faces": faces}.items()):
        table = make()
        x, columns = table.numbers(), columns_of(table.rows)
        for draw in range(DRAWS["tables"]):
            order = np.random.default_rng([SEED, 2, number, draw]).permutation(len(table.y))
            held_out = order[table.trained :]
            run = trained(x, table.y, order[: table.trained], held_out, seed=draw)
            discovery = tm.discover(run, table.rows.iloc[held_out], seed=draw)
            yield {
                "table": name,
                "draw": draw,
                "sentence": str(discovery),
                "groups": [
                    [group.name, group.verdict, round(group.share, 4), round(group.gap, 4)]
                    for group in discovery.groups
                ],
                "masks": [np.packbits(group.rule.holds(columns)).tobytes().hex() for group in discovery.clear[:6]],
            }
    rows = german_table()
    small = Table(rows.drop(columns="risk"), (rows["risk"] == 1).to_numpy(int), 700)
    order = np.random.default_rng([SEED, 2, 9]).permutation(len(rows))
    run = trained(small.numbers(), small.y, order[:700], order[700:], seed=0)
    try:
        answer = str(tm.discover(run, small.rows.iloc[order[700:]]))
    except ValueError as refusal:
        answer = f"refused: {refusal}"
    yield {"table": "german", "draw": 0, "sentence": answer, "groups": [], "masks": []}


def tables_summary(rows: list[dict[str, Any]]) -> dict[str, Any]:
    """How stable the clear groups are: the largest overlap of each, by rank, with a clear group of the other draws."""
    summary: dict[str, Any] = {}
    for name in dict.fromkeys(row["table"] for row in rows):
        own = [row for row in rows if row["table"] == name]
        masks = [[np.frombuffer(bytes.fromhex(text), np.uint8) for text in row["masks"]] for row in own]
        by_rank: dict[int, list[float]] = {}
        for place, found in enumerate(masks):
            others = [part for number, part in enumerate(masks) if number != place]
            for rank, mask in enumerate(found):
                best = [max((_bits(mask, other) for other in part), default=0.0) for part in others]
                by_rank.setdefault(rank, []).append(float(np.mean(best)) if best else 0.0)
        summary[name] = {
            "clear groups a draw": [
                sum(group[1] in ("worse at the end", "learned later") for group in row["groups"]) for row in own
            ],
            "rules a draw": [len(row["groups"]) for row in own],
            "overlap with other draws, by rank": [round(float(np.mean(values)), 2) for values in by_rank.values()],
        }
        if name == "german":
            summary[name] = own[0]["sentence"]
    return summary


def _bits(mask: np.ndarray, other: np.ndarray) -> float:
    return int(np.bitwise_count(mask & other).sum()) / max(int(np.bitwise_count(mask | other).sum()), 1)


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


def pictures() -> Iterator[dict[str, Any]]:
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


def loop() -> Iterator[dict[str, Any]]:
    """The advice on discovered groups, on true groups and without groups, judged on true groups of fresh points."""
    table = adult()
    for draw in range(DRAWS["loop"]):
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


PARTS: dict[str, tuple[Callable[[], Iterator[dict[str, Any]]], Callable[[list[dict[str, Any]]], dict[str, Any]]]] = {
    "adult": (partial(planted_slices, "adult"), planted_summary),
    "compas": (partial(planted_slices, "compas"), planted_summary),
    "exchanged": (exchanged, exchanged_summary),
    "tables": (tables, tables_summary),
    "images": (pictures, pictures_summary),
    "loop": (loop, loop_summary),
}


def main(part: str, to: Path | None) -> None:
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    draw, summarise = PARTS[part]
    rows: list[dict[str, Any]] = []
    for row in draw():
        rows.append(row)
        shown = {name: value for name, value in row.items() if name != "masks"}
        print(json.dumps(shown), flush=True)
    summary = summarise(rows)
    print(json.dumps(summary, indent=2))
    if to is not None:
        to.write_text(json.dumps({"part": part, "seed": SEED, "summary": summary}, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    words = [word for word in sys.argv[1:] if word != "--to"]
    if not words or words[0] not in PARTS:
        sys.exit(f"Name a part: {', '.join(PARTS)}.")
    main(words[0], Path(words[1]) if "--to" in sys.argv else None)
