"""Real training on real data: the lead changes where two forces oppose one another, and not where they agree."""

from functools import partial

import numpy as np
import pytest
import torch
from torch import nn

import tiltmeter as tm
from tiltmeter.data.public.digits import digits

SEEDS = 5


def runs(share, contrast=(0.4, 1.6), seeds=SEEDS):
    train, held_out = digits(share, contrast)
    found = []
    for seed in range(seeds):
        torch.manual_seed(seed)
        model = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 10))
        sgd = partial(torch.optim.SGD, lr=0.1)
        found.append(
            tm.train(
                model,
                train,
                held_out,
                tm.Recipe(sgd, steps=1500, batch=16),
                watch=tm.Watch(when=tm.record.log_spaced(8)),
                seed=seed,
            )
        )
    return tm.stack(found)


def test_the_bright_minority_leads_first_and_the_majority_last():
    """Share 0.8 of faint upright digits against bright turned ones: over seeds, and in every seed alone."""
    together = runs(0.8)
    found = tm.leaders(together, "loss")
    last = found.changes[-1]
    assert (last.leader_before, last.leader_after) == ("turned", "upright")
    assert 400 < last.low <= last.time <= last.high <= 1000
    assert tm.theory.leader_on_grid(together.replace({"loss": together["loss"].mean("seed")})).values[-1] == "upright"
    for seed in range(SEEDS):
        alone = together.replace({name: curve.sel(seed=seed) for name, curve in together.items()})
        single = tm.leaders(alone, "loss")
        assert [c.leader_after for c in single.changes][-1:] == ["upright"], seed
        # The interval of one run, from its finite number of points, is where the mean over seeds crosses too.
        assert single.changes[-1].low < 1.5 * last.time
        assert single.changes[-1].high > last.time / 1.5


def test_negative_control_with_equal_shares_the_majority_never_takes_over():
    """Without a majority nothing overtakes the brighter group in the loss within the same time."""
    together = runs(0.5, seeds=2)
    assert "upright" not in [crossing.leader_after for crossing in tm.leaders(together, "loss").changes]


def test_negative_control_groups_alike():
    """The same contrast and share, and images only turned: no gap beyond the noise of order and start at the end."""
    together = runs(0.5, contrast=(1.0, 1.0), seeds=3)
    gap = together["error"].diff("group").isel(time=-1, group=0)
    error = np.hypot(*(together["error_se"].isel(time=-1).mean("seed").values))
    assert abs(gap.mean()) < 3 * error


@pytest.mark.slow
def test_the_larger_the_share_the_earlier_the_majority_leads():
    times = []
    for share in (0.8, 0.9):
        found = [c for c in tm.leaders(runs(share, seeds=2), "loss").changes if c.leader_after == "upright"]
        times.append(found[-1].time if found else 0.0)
    assert times[0] > 2 * times[1] > 0
