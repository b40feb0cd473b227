"""compare: what trainings change against another one, from points that all of them were judged on."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import replace

import numpy as np

from tiltmeter.arguments import A_RUN, checked_choice, checked_kind, checked_number, checked_scalar
from tiltmeter.changes.change import Amount, Change, ChangeScope
from tiltmeter.leaders.difference import Difference
from tiltmeter.leaders.headline import size_of
from tiltmeter.leaders.leaders import leaders
from tiltmeter.leaders.points import KeptPoints, kept_points
from tiltmeter.leaders.seed_bands import FEWEST_SEEDS
from tiltmeter.record.trajectory import Trajectory
from tiltmeter.shown_text import group_name

#: How often means are drawn again, and how often a clear change may be named among trainings that do nothing.
DRAWS, LEVEL = 2000, 0.05
#: By how much the error may rise, of all or of any group, in a change that is recommended.
PRICE = 0.01
#: By which part the selection may move where the gap does not clearly shrink.
SELECTION = 0.2


def compare(before: Trajectory, after: Trajectory, scope: ChangeScope | None = None, price: float = PRICE) -> Change:
    """What the second run changes in the gap that the first one's headline names.

    >>> import numpy as np, pandas as pd, tiltmeter as tm
    >>> rng = np.random.default_rng(0)
    >>> people = pd.DataFrame({"sex": rng.choice(["women", "men"], 2000), "repaid": rng.integers(0, 2, 2000)})
    >>> def scored(right):
    ...     hit = rng.random(2000) < np.where(people.sex == "women", right, 0.9)
    ...     return tm.predictions.run(people.assign(score=np.where(hit, people.repaid, 1 - people.repaid)),
    ...                               label="repaid", group="sex")
    >>> print(tm.compare(scored(0.6), scored(0.85)))
    In error, women against men: with the second the gap falls from 30 to 4 points, error 23 to 12 %, nobody pays.
    These two models. At most 5 of 100 such statements are wrong.

    Both should have been judged on the same held-out points; their differences are then paired. With three trainings of
    each, stacked by `tm.stack` or made by `tm.ensemble`, the statement is about trainings like these.

    Args:
        before: Run that is compared with: training, table of predictions, or several seeds.
        after: Run that is compared.
        scope: Whether to speak of these two "models" or of "trainings" like these (needs three of each).
        price: By how much the error, of all or of any group, may rise in a change that is recommended.
    """
    checked_choice("scope", scope, (None, "models", "trainings"))
    checked_scalar("scope", scope)
    checked_number("price", price)
    for name, run in (("before", before), ("after", after)):
        checked_kind(name, run, Trajectory, A_RUN)
    found = changes({"the first": before, "the second": after}, "the first", scope, price)
    if not found:
        raise ValueError("A change needs points that both runs were judged on, as a probe keeps them. Found none.")
    return found["the second"]


def changes(
    runs: Mapping[str, Trajectory],
    against: str,
    scope: ChangeScope | None = None,
    price: float = PRICE,
    people: np.ndarray | None = None,
    curve: str | None = None,
) -> dict[str, Change]:
    """The changes of every run, whose limits hold together; empty if no points were kept or nothing is judged.

    Only the points of `people` count (None: all); `curve` is the declared rate (None: that of the run). Runs that
    diverged, or were judged on other points, are left out.
    """
    plain = runs[against]
    chosen, first = _chosen(plain, curve), kept_points(plain)
    if chosen is None or first is None:
        return {}
    kept = {name: one for name, run in runs.items() if (one := kept_points(run)) is not None and _alike(one, first)}
    kept = {name: one for name, one in kept.items() if runs[name].diverged is None or _seeds(runs[name]) > 1}
    if against not in kept:
        return {}
    trainings = min(one.seeds for one in kept.values())
    if scope == "trainings" and trainings < FEWEST_SEEDS:
        raise ValueError(
            f"Trainings like these need at least {FEWEST_SEEDS} of each. Found {trainings}: ask about these two "
            f'models, scope="models", or train {FEWEST_SEEDS - trainings} more of each.'
        )
    scope = scope or ("trainings" if trainings >= FEWEST_SEEDS else "models")
    pair, weights = _behind_first(chosen)
    table = _Table(kept, against, people, scope)
    gaps = table.amounts(chosen.curve, weights[None])
    groups = len(first.groups)
    errors = table.amounts("error", np.vstack([np.full(groups, np.nan), np.eye(groups)]))
    selections = table.amounts("positive_rate", np.full((1, groups), np.nan))
    found: dict[str, Change] = {}
    for name in kept:
        if name == against:
            continue
        of_groups = {group: errors[name][1 + place] for place, group in enumerate(first.groups)} if errors else {}
        change = Change(
            name,
            against,
            chosen.curve,
            pair,
            gaps[name][0],
            errors[name][0] if errors else None,
            {group: amount for group, amount in of_groups.items() if np.isfinite(amount.change)},
            selections[name][0] if selections else None,
            scope,
            trainings,
        )
        found[name] = replace(change, reason=_reason(change, price))
    return found


def _reason(one: Change, price: float) -> str:
    """Why a change is not recommended; "" if nothing speaks against it."""
    if one.error is not None and one.error.low > price:
        return f"the error of all clearly rises by more than {size_of('error', price)}"
    worse = [group for group, amount in one.errors.items() if amount.low > price]
    if worse:
        return f"the error of {group_name(worse[0])} clearly rises by more than {size_of('error', price)}"
    if one.selection is not None and one.gap.sign >= 0 and one.selection.before > 0:
        moved = abs(one.selection.change) / one.selection.before
        if moved > SELECTION:
            return "it selects many more or fewer people, and the gap does not clearly shrink"
    return ""


def _seeds(run: Trajectory) -> int:
    return max((curve.sizes.get("seed", 1) for curve in run.values()), default=1)


def _alike(one: KeptPoints, other: KeptPoints) -> bool:
    """Whether two runs were judged on the same points."""
    return one.groups == other.groups and np.array_equal(one.codes, other.codes)


class _Table:
    """The last evaluation of several runs on the same points, and how far sums over groups differ from one of them."""

    def __init__(
        self, kept: Mapping[str, KeptPoints], against: str, people: np.ndarray | None, scope: ChangeScope
    ) -> None:
        self.kept, self.names, self.place, self.scope = kept, list(kept), list(kept).index(against), scope
        codes = next(iter(kept.values())).codes
        self.people = np.full(len(codes), True) if people is None else people
        self.codes, self.groups = codes, len(next(iter(kept.values())).groups)

    def amounts(self, curve: str, rows: np.ndarray) -> dict[str, list[Amount]]:
        """For every run the weighted sums of the groups' means, against the one run; a row of NaN is all points.

        All limits of one call hold together.
        """
        chosen = {name: one.named([curve]) for name, one in self.kept.items()}
        if not all(chosen.values()):
            return {}
        where = next(iter(chosen.values()))[0].where
        inside = self.people if where is None else self.people & where
        codes = self.codes[inside]
        # (seeds, points, runs); runs with more seeds than the others count with as many.
        trainings = min(one.seeds for one in self.kept.values())
        values = np.stack(
            [
                np.asarray(one[0].values[-1:] if one[0].values.ndim == 2 else one[0].values[:trainings, -1], float)[
                    :, inside
                ]
                for one in chosen.values()
            ],
            axis=-1,
        )
        counts = np.bincount(codes, minlength=self.groups)
        weights = np.where(np.isnan(rows), counts / max(counts.sum(), 1), rows)
        means = np.zeros((len(values), self.groups, len(self.names)))
        drawn = np.zeros((DRAWS, self.groups, len(self.names)))
        rng = np.random.default_rng(0)
        averaged = values.mean(0)
        for group in range(self.groups):
            own = codes == group
            if not own.any():
                means[:, group], drawn[:, group] = np.nan, np.nan
                continue
            means[:, group] = values[:, own].mean(1)
            members = averaged[own]
            covariance = np.cov(members, rowvar=False, bias=True).reshape(len(self.names), -1) / len(members)
            drawn[:, group] = rng.multivariate_normal(members.mean(0), covariance, size=DRAWS, method="eigh")
        sums, again = _weighted(weights, means), _weighted(weights, drawn)
        change = sums - sums[:, :, [self.place]]
        redrawn = again - again[:, :, [self.place]]
        half = self._half_widths(change, redrawn)
        value = sums.mean(0)
        return {
            name: [
                Amount(
                    float(value[row, self.place]),
                    float(value[row, number]),
                    float(change[:, row, number].mean() - half[row, number]),
                    float(change[:, row, number].mean() + half[row, number]),
                )
                for row in range(len(rows))
            ]
            for number, name in enumerate(self.names)
        }

    def _half_widths(self, change: np.ndarray, redrawn: np.ndarray) -> np.ndarray:
        """(rows, runs): limits by the points, and over trainings by their scatter, for all rows and runs together."""
        spread = redrawn.std(0)
        spread[spread < 1e-9] = 0.0  # an intervention that changes nothing differs by rounding only
        others = spread > 0
        quantile = 0.0
        if others.any():
            standard = np.abs(redrawn - redrawn.mean(0))[:, others] / spread[others]
            quantile = float(np.quantile(standard.max(1), 1.0 - LEVEL))
        half = quantile * spread
        if self.scope == "trainings":
            from scipy.special import stdtrit

            statements = max(int(others.sum()), 1)
            factor = -float(stdtrit(len(change) - 1, LEVEL / (2.0 * statements)))
            half = np.hypot(half, factor * change.std(0, ddof=1) / np.sqrt(len(change)))
        return np.asarray(half)


def _weighted(weights: np.ndarray, means: np.ndarray) -> np.ndarray:
    """(..., rows, runs) of means (..., groups, runs); groups that do not count in a row may be missing."""
    found = [np.tensordot(means[..., row != 0, :], row[row != 0], axes=([-2], [0])) for row in weights]
    return np.stack(found, axis=-2)


def gap_of(run: Trajectory, curve: str | None = None) -> tuple[str, tuple[float, ...]]:
    """The curve and the weights of the groups in the gap that the headline of a run names, positive as it is."""
    chosen = _chosen(run, curve)
    if chosen is None:
        return curve or "loss", ()
    return chosen.curve, tuple(_behind_first(chosen)[1].tolist())


def _chosen(run: Trajectory, curve: str | None) -> Difference | None:
    """The difference that the headline of a run is about; a rehearsal is a run here, whatever it promises."""
    if run.origin.source == "forecast":
        origin = replace(run.origin, source="training")
        run = Trajectory(dict(run), run.clock, origin, run.diverged, points=run.points)
    judged = leaders(run, *([] if curve is None else [curve]), scope="models" if _seeds(run) > 1 else None)
    return judged.chosen if judged.chosen is not None and judged.chosen.weights is not None else None


def _behind_first(chosen: Difference) -> tuple[tuple[Hashable, Hashable], np.ndarray]:
    """The pair with the one that is behind first, and weights of the groups that make this gap positive."""
    assert chosen.weights is not None
    behind = (float(chosen.gap[-1]) >= 0) == (chosen.better == "lower")
    turned = chosen.weights if behind else -chosen.weights
    return chosen.pair if behind else chosen.pair[::-1], turned if chosen.better == "lower" else -turned
