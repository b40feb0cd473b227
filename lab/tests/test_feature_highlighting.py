"""DiffROAR: known rankings give known values."""

from functools import partial

import pytest
import torch

from tiltmeter.modules.networks import mlp
from tiltmeter_lab.shared.feature_highlighting import attacked, diffroar, fitted, kept, signal_points


def test_the_right_ranking_gives_a_half_and_the_wrong_one_minus_a_half():
    """With the signal kept a network is always right, without it always at chance."""
    x, y, place = signal_points(6, 800, 0, noise=0.05)
    train, test = (x[:400], y[:400]), (x[400:], y[400:])
    at_signal = torch.nn.functional.one_hot(torch.as_tensor(place), 6).float()

    def fit(make, shown, labels):
        return fitted(make, shown, labels, 60, 0.05, 0)

    for ranking, value in ((at_signal, 0.5), (-at_signal, -0.5)):
        found = diffroar(partial(mlp, 6, (20,)), (ranking[:400], ranking[400:]), train, test, 1, fit)
        assert found == pytest.approx(value, abs=0.1)


def test_what_is_not_kept_is_the_mean():
    x = torch.tensor([[1.0, 5.0], [3.0, 7.0]])
    shown = kept(x, torch.tensor([[2.0, 1.0], [1.0, 2.0]]), 1, top=True)
    assert shown.tolist() == [[1.0, 6.0], [2.0, 7.0]]


def test_attacks_stay_within_their_radius_and_raise_the_loss():
    x, y, _ = signal_points(6, 100, 1)
    model = fitted(partial(mlp, 6, (20,)), x, y, 60, 0.05, 0)
    moved = attacked(model, x, y, 0.3)
    assert (moved - x).norm(dim=1).max() <= 0.3 + 1e-5

    def loss(points):
        return float(torch.nn.functional.softplus(-y * model(points).squeeze(-1)).mean().detach())

    assert loss(moved) > loss(x)
