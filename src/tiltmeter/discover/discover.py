"""discover: find whom the model serves worse or learns later, where nobody labelled the groups."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from tiltmeter.arguments import checked_count, checked_number, checked_seed, checked_share
from tiltmeter.discover.clusters import (
    SHOWN,
    Layer,
    checked_features,
    cluster_candidates,
    fitted_layers,
    layer_columns,
    nearest_points,
    words_of_labels,
)
from tiltmeter.discover.curves import (
    LearningCurves,
    columns_of_points,
    halves,
    learning_curves,
    refuse_answers,
    regrouped,
    tells_label,
)
from tiltmeter.discover.discovery import Discovery
from tiltmeter.discover.group import (
    VERDICTS,
    DiscoveredGroup,
    Target,
    Verdict,
    judged_points,
    partition,
    rest_name,
)
from tiltmeter.discover.pursuit import Search, standardised
from tiltmeter.discover.rules import RARE, Candidates, Columns, InCluster, Rule, candidates, columns_of
from tiltmeter.leaders.judgement import trained
from tiltmeter.leaders.leaders import leaders
from tiltmeter.leaders.points import FEWEST
from tiltmeter.record.trajectory import Trajectory
from tiltmeter.shown_text import percent

#: Rules are searched up to this many conditions.
DEEPEST = 3
#: Groups of fewer points are not searched: of a table, and of features, whose clusters are finer.
LEAST, LEAST_OF_FEATURES = 0.02, 0.004
#: A group is searched if it would have this many times the fewest points that can be judged.
ENOUGH = 1.25
#: Two rules with a larger overlap (intersection over union) are one.
SAME = 0.8
#: A single rule is judged at least at this level: the tests of `leaders` draw 999 permutations.
FINEST = 0.002


class Proposal(NamedTuple):
    """A rule that goes to the judges, with what found it."""

    rule: Rule
    score: float
    target: Target


def discover(
    run: Trajectory,
    table: Any = None,
    features: Mapping[str, Any] | None = None,
    level: float = 0.05,
    judge: float = 0.5,
    most: int = 6,
    depth: int = 3,
    least: float | None = None,
    floor: float = 3.5,
    seed: int = 0,
) -> Discovery:
    """Find groups of held-out points that are worse off at the end or learned later, and judge them on other points.

    >>> import numpy as np, xarray as xr, tiltmeter as tm
    >>> rng = np.random.default_rng(0)
    >>> people = {"age": rng.integers(18, 80, 2000), "job": rng.choice(["clerk", "cook", "driver"], 2000)}
    >>> late = people["job"] == "cook"  # their loss falls ten times later
    >>> coords = {"time": [1, 10, 100, 1000], "group": ("point", ["all"] * 2000)}
    >>> size = 1 / np.sqrt(np.array([[1, 10, 100, 1000]]).T / np.where(late, [[1], [10], [10], [1]], 1))
    >>> losses = xr.DataArray(rng.exponential(size), dims=("time", "point"), coords=coords)
    >>> mean = losses.mean("point").expand_dims(group=["all"], axis=1)
    >>> run = tm.Trajectory({"loss": mean}, "step", tm.record.Origin("training"), points={"loss": losses})
    >>> print(tm.discover(run, people).claim)
    The group job = cook, 32 % of the points, is learned later: its loss is clearly higher from step 10 to 100; by the
    end it has clearly caught up.

    `run` should have kept its points, as a `Probe` does. `table` has one row for every held-out point, in the same
    order, of columns that people know: pandas, polars, Arrow, a dict of arrays or a file. It may also be the whole
    table that `GroupedData.from_frame` read and `split` divided: the run knows its rows. Without a table, `features`
    has an array for each layer, and groups are clusters within labels. With both, the table describes the clusters.

    A part of the points, the share `judge`, is set aside. The others find rules of up to `depth` conditions that hold
    for at least the share `least` of points: up to `most` by the loss at the end, and up to `most` by the loss beyond
    the model's own doubt during training, each with a score of at least `floor`. `tm.leaders` judges every rule against
    everyone else on the points set aside, at `level` for all rules and evaluations together. With several seeds, rules
    are found by the mean curve and judged by points and seeds together. A forecast by rehearsals is judged like one.

    Only clear groups are findings. A group that is not found may exist: the columns cannot name it, or it is not worse
    off than everyone else. The names of clear groups are descriptions, not causes. The error rate does not hold for
    points that chose when to stop.

    Args:
        run: Run that kept its held-out points, as a `Probe` does.
        table: One row per held-out point, of columns that people know: a DataFrame, a dict of arrays or a file.
        features: An array per layer, one row per held-out point, where there is no table: groups are then clusters.
        level: Error rate of all rules and evaluations together.
        judge: Share of the points that is set aside to judge the rules.
        most: Most rules that are judged, by the loss at the end and again by the course of training.
        depth: Most conditions in one rule.
        least: Smallest share of points that a rule should hold for; None: 0.02, or 0.004 for features.
        floor: Smallest score of a rule that is judged at all.
        seed: Seed of the division into points that find and points that judge.
    """
    checked_count("depth", depth, 20)
    if least is not None:
        checked_number("least", least)
    checked_number("floor", floor)
    checked_seed(seed)
    _check(level, most, depth, least, floor)
    curves = learning_curves(run)
    judges = halves(curves, judge, seed)
    searched = np.flatnonzero(~judges)
    columns, offered, layers, described = _offered(curves, table, features, searched, least, seed)
    if least is None:
        least = LEAST_OF_FEATURES if layers else LEAST
    # A smaller group would mostly have too few points to be judged.
    least = max(least, ENOUGH * FEWEST / int(judges.sum()))
    depth = 1 if layers else depth
    proposals = _proposals(curves, offered, searched, most, depth, least, floor, bool(layers))
    tried = proposals[: max(round(level / FINEST), 1)]
    groups = [_judged(proposal, curves, columns, judges, level, len(tried)) for proposal in tried]
    if layers and features is not None:
        groups = [_with_examples(group, curves, columns, layers, features) for group in groups]
        if described is not None:
            groups = [_with_description(group, columns, described, judges) for group in groups]
    ordered = tuple(sorted(groups, key=lambda group: (VERDICTS.index(group.verdict), -_size(group))))
    return Discovery(
        groups=ordered,
        parts=partition(ordered, columns),
        level=level,
        searched=len(searched),
        judged=int(judges.sum()),
        evaluations=int(trained(run, curves.kept.times).sum()),
        seeds=curves.kept.seeds,
        clock=run.clock,
        source=run.origin.source,
        promise=_promise(run),
        left_out=offered.left_out if described is None else described.left_out,
        notes=_notes(curves, len(proposals) - len(tried), _labelled(ordered, curves, columns)),
        layers=layers,
        curves=curves,
        judges=judges,
        columns=columns,
    )


def _check(level: float, most: int, depth: int, least: float | None, floor: float) -> None:
    checked_share("level", level)
    if isinstance(most, bool) or not isinstance(most, int) or most < 1:
        raise ValueError(f"`most` should be a positive number of rules. Found most = {most!r}.")
    if depth not in range(1, DEEPEST + 1):
        raise ValueError(f"`depth` should be 1, 2 or {DEEPEST} conditions. Found depth = {depth!r}.")
    if least is not None and not 0 < least < 0.5:
        raise ValueError(f"`least` should be a share above 0 and below 0.5. Found least = {least}.")
    if not floor > 0:
        raise ValueError(f"`floor` should be positive. Found floor = {floor}.")


def _offered(
    curves: LearningCurves, table: Any, features: Any, searched: np.ndarray, least: float | None, seed: int
) -> tuple[Columns, Candidates, dict[str, Layer], Candidates | None]:
    """The columns of all points, the conditions on those that search, and how features become clusters.

    With a table and features, the conditions of the table come last: they describe clusters.
    """
    if table is None and features is None:
        raise TypeError("`table` should hold a row for every held-out point, or `features` an array. Found neither.")
    columns: dict[str, np.ndarray] = {}
    named: Candidates | None = None
    if table is not None:
        columns, trained_on = columns_of_points(columns_of(table), curves)
        here = {name: values[searched] for name, values in columns.items()}
        labels, decisions = (None if part is None else part[searched] for part in (curves.labels, curves.decisions))
        # The table that was trained on holds the label, of course; in any other it is a mistake.
        answers = tells_label(here, labels) if trained_on else ()
        columns, here = ({name: part[name] for name in part if name not in answers} for part in (columns, here))
        refuse_answers(here, labels, decisions, curves.repeated_numbers(searched))
        named = candidates(here, RARE if least is None else least)
        named = replace(named, left_out={**dict.fromkeys(answers, "the label"), **named.left_out})
    if features is None:
        assert named is not None
        return columns, named, {}, None
    if curves.labels is None:
        raise ValueError(
            "`run` should have kept the labels of its points, since clusters lie within labels. Found none."
        )
    checked = checked_features(features, curves.points)
    words = words_of_labels(curves.labels)
    layers = fitted_layers(checked, words, searched, seed)
    columns |= layer_columns(layers, checked, words)
    here = {name: values[searched] for name, values in columns.items()}
    clusters = cluster_candidates(layers, here, LEAST_OF_FEATURES if least is None else least)
    return columns, clusters, layers, named


def _proposals(
    curves: LearningCurves,
    offered: Candidates,
    searched: np.ndarray,
    most: int,
    depth: int,
    least: float,
    floor: float,
    within_labels: bool,
) -> list[Proposal]:
    """The rules of both pursuits, best first, without those that hold for nearly the same points as a better one."""
    search = Search(offered.holds, depth, least)
    labels = curves.labels[searched] if within_labels and curves.labels is not None else None
    targets: dict[Target, np.ndarray] = {"end": curves.end(searched), "later": curves.later(searched)}
    proposals: list[Proposal] = []
    taken: list[np.ndarray] = []
    picks = [
        (pick, target)
        for target, values in targets.items()
        for pick in search.pursue(standardised(values, labels), most, floor)
    ]
    for pick, target in sorted(picks, key=lambda pair: -pair[0].score):
        members = search.members(pick.places)
        if all(_overlap(members, other) <= SAME for other in taken):
            taken.append(members)
            proposals.append(
                Proposal(Rule.of([offered.conditions[place] for place in pick.places]), pick.score, target)
            )
    return proposals


def _judged(
    proposal: Proposal, curves: LearningCurves, columns: Columns, judges: np.ndarray, level: float, rules: int
) -> DiscoveredGroup:
    """What the points that were set aside say about one rule, at its share of the level."""
    rule = proposal.rule
    places, codes = judged_points(rule, columns, judges)
    points, others = int((codes == 0).sum()), int((codes == 1).sum())
    against = rest_name(rule)
    group = DiscoveredGroup(
        rule, points, points / max(int(judges.sum()), 1), proposal.score, proposal.target, "not judged", against=against
    )
    if min(points, others) < FEWEST:
        return group
    again = regrouped(curves, places, codes, (rule.name, against), rules)
    last = again["loss"].isel(time=-1)
    loss, loss_of_others = (last.mean("seed") if "seed" in last.dims else last).values.tolist()
    judged = leaders(again, "loss", level=level / rules)
    group = replace(group, loss=loss, loss_of_others=loss_of_others)
    if not judged.differences:
        return replace(group, verdict="not clear")
    difference = judged.differences[0]
    higher = difference.sign > 0
    if not higher.any():
        return replace(group, verdict="not clear", difference=difference)
    verdict: Verdict = "worse at the end" if higher[-1] else "learned later"
    times = difference.times[higher]
    return replace(
        group,
        verdict=verdict,
        difference=difference,
        first=float(times[0]),
        last=float(times[-1]),
        clear_at=int(higher.sum()),
        most_at_end=float(difference.upper[-1]),
        # All limits hold together, so two of them may be compared.
        caught_up=bool(not higher[-1] and difference.upper[-1] < difference.lower.max()),
    )


def _with_examples(
    group: DiscoveredGroup, curves: LearningCurves, columns: Columns, layers: Mapping[str, Layer], features: Any
) -> DiscoveredGroup:
    """The group with the points nearest to its centre, and those of the largest loss at the end."""
    (cluster,) = group.rule.conditions
    assert isinstance(cluster, InCluster)
    assert curves.labels is not None
    words = words_of_labels(curves.labels)
    nearest = nearest_points(layers[cluster.layer], cluster, features[cluster.layer], words)
    members = np.flatnonzero(group.rule.holds(columns))
    order = np.argsort(-curves.end(members).ravel(), kind="stable")[:SHOWN]
    return replace(group, nearest=nearest, hardest=tuple(members[order].tolist()))


def _with_description(
    group: DiscoveredGroup, columns: Columns, named: Candidates, judges: np.ndarray
) -> DiscoveredGroup:
    """The group with the rule of the table that fits it best where it was found, and their overlap on the others."""
    members = group.rule.holds(columns)
    search = Search(named.holds, DEEPEST, LEAST_OF_FEATURES)
    picks = search.pursue(standardised(members[~judges][:, None].astype(float)), 1, 0.0)
    if not picks:
        return group
    rule = Rule.of([named.conditions[place] for place in picks[0].places])
    overlap = _overlap(members[judges], rule.holds(columns)[judges])
    return replace(group, described=f"{rule.name} (overlap {percent(overlap)})")


def _overlap(members: np.ndarray, others: np.ndarray) -> float:
    """Intersection over union."""
    return float((members & others).sum() / max(int((members | others).sum()), 1))


def _size(group: DiscoveredGroup) -> float:
    """How large a finding is: by its gap at the end, or where it is largest while it is clear."""
    if group.verdict == "learned later" and group.difference is not None:
        return float(group.difference.gap[group.difference.sign > 0].max())
    return group.gap if np.isfinite(group.gap) else group.score


def _promise(run: Trajectory) -> str:
    promise: Any = run.origin.settings.get("promise")
    return str(promise["sentence"]) if run.origin.source == "forecast" and isinstance(promise, Mapping) else ""


def _labelled(groups: Sequence[DiscoveredGroup], curves: LearningCurves, columns: Columns) -> list[str]:
    """The rules that hold for the points of a group that the run has already."""
    codes = curves.kept.codes
    members = [codes == code for code in np.unique(codes)]
    rules = [(group.rule.name, group.rule.holds(columns)) for group in groups if group.clear]
    return [name for name, holds in rules if any(np.array_equal(holds, one) for one in members)]


def _notes(curves: LearningCurves, untried: int, labelled: Sequence[str]) -> tuple[str, ...]:
    notes = [f"{name} is a group of this run already" for name in labelled]
    if curves.excess is None:
        notes.append("The entropy of predictions is not known, so groups learned later are searched by the loss itself")
    if untried:
        notes.append(f"{untried} more rules were found, too many to be judged at this level")
    return tuple(notes)
