"""The promise of forecast bands: how many whole trainings they hold, task by task, and whom they name."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tiltmeter.experiments.catalogue import Runs
from tiltmeter.experiments.claim import Claim, not_run, whether
from tiltmeter.experiments.shared.band_scores import BandScore, by_task
from tiltmeter.experiments.shared.route_rows import rows
from tiltmeter.forecast.bands.conformal import conformal_factor
from tiltmeter.forecast.bands.forecast_band import LEVEL
from tiltmeter.forecast.bands.kind import KINDS, Kind
from tiltmeter.forecast.bands.scale import scaled
from tiltmeter.forecast.bands.shipped_scores import What
from tiltmeter.report.page import Table


def promise(kind: Kind, what: Any, words: str, made: Any, found: Sequence[BandScore], seeds: int) -> Claim:
    """Whether .90 lies in the interval of the share of trainings that the band of this kind holds."""
    sentence = f"The 90 % band of {kind} holds whole {words}"
    factor = conformal_factor(made[kind]["loss"][what], LEVEL)
    chosen = [one for one in found if (one.kind, one.curve, one.what) == (kind, "loss", what)]
    if not np.isfinite(factor) or len({one.task for one in chosen}) < 3:
        return not_run(sentence, "Too few tasks to calibrate or to judge.")
    share, low, high = coverage(by_task(list(found), kind, "loss", what), factor)
    return whether(
        sentence,
        low <= 1.0 - LEVEL <= high,
        "does the 95 % interval of the coverage, clustered by task, contain .90",
        f"{share:.3f} of {len(chosen)} runs of {len({one.task for one in chosen})} tasks, interval {low:.3f} to "
        f"{high:.3f}; half the width is {width_of(chosen, factor):.2f} of the largest movement forecast (median).",
        seeds=seeds,
        safe=False,
    )


def table_line(
    made: Any, found: Sequence[BandScore], kind: Kind, curve: str, what: What, name: str
) -> tuple[str, ...] | None:
    """Return coverage and width of one curve as a row of a table, None without runs."""
    chosen = [one for one in found if (one.kind, one.curve, one.what) == (kind, curve, what)]
    if not chosen:
        return None
    factor = conformal_factor(made[kind][curve][what], LEVEL)
    if not np.isfinite(factor):
        return (kind, name, "", str(len(chosen)), "", "", "")
    share, low, high = coverage(by_task(list(found), kind, curve, what), factor)
    width = f"{width_of(chosen, factor):.2f}"
    return (kind, name, f"{factor:.2f}", str(len(chosen)), f"{share:.3f}", f"{low:.2f} to {high:.2f}", width)


def coverage(scores: Sequence[Sequence[float]], factor: float) -> tuple[float, float, float]:
    """Return the share of runs inside, every task counting as one, and its 95 % interval over tasks.

    Two tasks that are all inside and two that are all outside are added for the interval (Agresti and Coull, 1998): it
    has a width where all runs agree.
    """
    means = np.asarray([np.mean(np.asarray(task) <= factor) for task in scores])
    more = np.concatenate([means, [1.0, 1.0, 0.0, 0.0]])
    half = 1.96 * more.std(ddof=1) / np.sqrt(len(more))
    return float(means.mean()), float(max(0.0, more.mean() - half)), float(min(1.0, more.mean() + half))


def width_of(chosen: Sequence[BandScore], factor: float) -> float:
    """Half the width, averaged over looks, over the largest movement that was forecast; the median over runs."""
    return float(np.median([factor * one.width / one.size for one in chosen if one.size > 0]))


def leaders_named(judged: Runs, made: Any, kinds: Sequence[Kind] = KINDS) -> Table:
    """How often the band names the final leader of pairs, and whether the run shows it."""
    counts = {kind: np.zeros(5, dtype=int) for kind in kinds}
    for row in rows(judged):
        for kind in [kind for kind in kinds if kind in row.scores and row.task.perceptron]:
            ahead = judged[f"{row.run}, {kind}"]
            groups = ahead["loss"].coords["group"].values.tolist()
            weights = np.zeros((1, len(groups)))
            weights[0, groups.index(row.truth.pair[0])], weights[0, groups.index(row.truth.pair[1])] = 1.0, -1.0
            found, factor = scaled(ahead, "loss", weights), conformal_factor(made[kind]["loss"]["gap"], LEVEL)
            told, half = float(found.told[-1, 0]), factor * float(found.scale[-1, 0])
            named = int(np.sign(told)) if abs(told) > half else 0
            real = row.truth.final
            place = (3 if not named else 4) if real is None else 2 if not named else int(named != real)
            counts[kind][place] += 1
    head = ("band", "right", "wrong", "none named", "none shown, none named", "none shown, one named")
    return Table(head, [(kind, *map(str, counts[kind])) for kind in kinds])
