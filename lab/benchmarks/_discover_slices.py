"""What `tm.discover` finds in tables: planted slices, exchanged curves, and unaltered tables.

    python benchmarks/_discover_slices.py PART [--to FILE]

PART is one of `adult`, `compas`, `exchanged`, `tables`, `silence`. SliceLine and pysubgroup are compared if they are
installed; they are no dependencies.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import tiltmeter as tm
from tiltmeter.data.public.adult import LEFT_OUT, adult_table
from tiltmeter.discover.curves import halves, learning_curves
from tiltmeter.discover.pursuit import Search, standardised
from tiltmeter.discover.rules import Candidates, candidates, columns_of
from tiltmeter_lab.data.german import german_table

sys.path.insert(0, str(Path(__file__).parent))
from _discover_trainings import (
    KINDS,
    SEED,
    Draws,
    Table,
    adult,
    compas,
    faces,
    made_table,
    overlap,
    planted,
    run_part,
    trained,
)

#: Draws of planted slices of each kind, of exchanged curves, and of tables.
DRAWS = {"adult": 20, "compas": 10, "exchanged": 400, "tables": 8}
#: Groups of the methods that are compared.
GROUPS = 8
#: pysubgroup takes long: it sees the first draws of each kind.
SLOW_DRAWS = 5


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


def planted_slices(name: str) -> Draws:
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


def exchanged() -> Draws:
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


def tables() -> Draws:
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


#: Silence is right: of 16 draws at most 2 may name a group (a true 5 % exceeds that in 4 % of cases).
MOST_OF_SILENT = 2


def silent_tables() -> Draws:
    """Tables whose columns have nothing to do with how well a person is served.

    Of Adult, both files: which file a person is in, and the last digits of the sampling weight. And a made table that
    the network sees, in which one rule without noise decides all labels alike.
    """
    both = pd.concat([adult_table(name).assign(file=name) for name in ("train", "test")], ignore_index=True)
    people = Table(both.drop(columns=[*LEFT_OUT, "file"]), (both["income"] == ">50K").to_numpy(int), 24_000)
    digits = both["fnlwgt"].astype(int)
    chance = pd.DataFrame({"file": both["file"], "last digit": (digits % 10).astype(str), "last two": digits % 100})
    for name in ("adult", "made"):
        for draw in range(DRAWS["tables"]):
            rng = np.random.default_rng([SEED, 7, draw])
            table, named = (people, chance) if name == "adult" else (made := made_table(rng, noise=0.0), made.rows)
            order = rng.permutation(len(table.y))
            train, held_out = order[: len(order) // 2], order[len(order) // 2 :]
            run = trained(table.numbers(), table.y, train, held_out, seed=7000 + draw)
            discovery = tm.discover(run, named.iloc[held_out], seed=draw)
            yield {
                "table": name,
                "draw": draw,
                "points": len(held_out),
                "rules": [group.name for group in discovery.groups],
                "clear": [[group.name, group.verdict, round(group.gap, 4)] for group in discovery.clear],
            }


def silent_summary(rows: list[dict[str, Any]]) -> dict[str, Any]:
    summary: dict[str, Any] = {
        name: {
            "draws": sum(row["table"] == name for row in rows),
            "rules": sum(len(row["rules"]) for row in rows if row["table"] == name),
            "draws with a clear group": sum(bool(row["clear"]) for row in rows if row["table"] == name),
        }
        for name in ("adult", "made")
    }
    summary["as it should be"] = sum(bool(row["clear"]) for row in rows) <= MOST_OF_SILENT
    return summary


if __name__ == "__main__":
    run_part(
        {
            "adult": (partial(planted_slices, "adult"), planted_summary),
            "compas": (partial(planted_slices, "compas"), planted_summary),
            "exchanged": (exchanged, exchanged_summary),
            "tables": (tables, tables_summary),
            "silence": (silent_tables, silent_summary),
        }
    )
