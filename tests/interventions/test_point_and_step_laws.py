"""CVaR and the gradient penalty, each against a formula."""

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
    watch = tm.Watch(when=tm.at([5]))
    both = tm.ensemble(lambda: torch.nn.Linear(3, 1), data, data, recipe, seeds=(0, 1), watch=watch)
    for seed in (0, 1):
        torch.manual_seed(seed)
        one = tm.train(torch.nn.Linear(3, 1), data, data, recipe, watch=watch, seed=seed)
        np.testing.assert_allclose(both["loss"].sel(seed=seed).values, one["loss"].values, rtol=1e-5)


def test_the_penalised_step_on_a_quadratic_is_exact():
    # Loss k w^2 / 2 has |gradient| = k |w|: the gradient of loss + s |gradient| is k w + s k sign(w).
    k, w, lr, strength = 3.0, 0.7, 0.1, 0.02
    weight = torch.nn.Parameter(torch.tensor([w], dtype=torch.float64))
    made = torch.optim.SGD([weight], lr=lr)

    def closure():
        made.zero_grad()
        loss = 0.5 * k * weight.square().sum()
        loss.backward()
        return loss

    I.GradientPenalty(strength, 0.05).optimizer(made).step(closure)
    assert weight.item() == pytest.approx(w - lr * (k * w + strength * k), rel=1e-10)


def test_without_strength_it_is_the_plain_step_and_with_all_of_it_sam():
    def after(law):
        torch.manual_seed(0)
        model = torch.nn.Linear(3, 1).double()
        rng = np.random.default_rng(0)
        data = tm.GroupedData(rng.normal(size=(60, 3)), np.sign(rng.normal(size=60)), [0, 1] * 30)
        laws = () if law is None else (law,)
        recipe = tm.Recipe(lr=0.1, steps=4, batch=16, loss=tm.Square(), interventions=laws)
        tm.train(model, data, data, recipe, watch=tm.Watch(when=tm.at([4])))
        return model.weight.detach().numpy()

    np.testing.assert_array_equal(after(I.GradientPenalty(0.0)), after(None))
    np.testing.assert_allclose(after(I.GradientPenalty(0.05, 0.05)), after(I.SAM(0.05)), rtol=1e-12)
    assert not np.allclose(after(I.GradientPenalty(0.05, 0.05)), after(None))


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda: I.CVaR(0.0), "`alpha` should lie above 0"),
        (lambda: I.GradientPenalty(-1.0), "`strength`"),
        (lambda: I.GradientPenalty(0.1, 0.0), "`distance`"),
    ],
)
def test_bad_input(make, sentence):
    with pytest.raises(ValueError, match=sentence):
        make()
