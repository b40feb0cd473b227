"""CVaR: the mean over the worst share of a batch."""

import numpy as np
import pytest
import torch

import tiltmeter as tm

I = tm.interventions


@pytest.mark.parametrize("alpha", [0.25, 0.3, 0.5, 1.0])
def test_the_mean_over_the_worst_share(alpha):
    losses = np.random.default_rng(0).exponential(size=20)
    found = I.CVaR(alpha).each(torch.tensor(losses), None, None).mean().item()
    ranked, left, total = np.sort(losses)[::-1], alpha * 20, 0.0
    for loss in ranked:  # the point at the edge counts in part
        total += min(max(left, 0.0), 1.0) * loss
        left -= 1.0
    assert found == pytest.approx(total / (alpha * 20), rel=1e-12)


def test_every_point_is_the_usual_loss():
    losses = torch.tensor([0.3, 0.1, 0.2])
    assert torch.equal(I.CVaR(1.0).each(losses, None, None), losses)


def test_ensembles_apply_it_run_by_run():
    rng = np.random.default_rng(1)
    data = tm.GroupedData(rng.normal(size=(40, 3)).astype("float32"), np.sign(rng.normal(size=40)), [0, 1] * 20)
    recipe = tm.Recipe(lr=0.1, steps=5, batch=8, loss=tm.Square(), interventions=(I.CVaR(0.5),))
    watch = tm.Watch(when=tm.record.at([5]))
    both = tm.ensemble(lambda: torch.nn.Linear(3, 1), data, data, recipe, seeds=(0, 1), watch=watch)
    for seed in (0, 1):
        torch.manual_seed(seed)
        one = tm.train(torch.nn.Linear(3, 1), data, data, recipe, watch=watch, seed=seed)
        np.testing.assert_allclose(both["loss"].sel(seed=seed).values, one["loss"].values, rtol=1e-5)


@pytest.mark.parametrize("alpha", [0.0, 1.5, True])
def test_bad_input(alpha):
    with pytest.raises(ValueError, match="`alpha` should lie above 0"):
        I.CVaR(alpha)
