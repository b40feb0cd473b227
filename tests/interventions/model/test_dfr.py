"""DFR: the last layer fitted anew, against a logistic regression."""

import numpy as np
import pytest
import torch
from torch import nn

import tiltmeter as tm

I = tm.interventions


class TestDFR:
    @staticmethod
    def data(count, aligned, seed=0):
        rng = np.random.default_rng(seed)
        y, agree = rng.integers(0, 2, count), rng.random(count) < aligned
        x = rng.normal(size=(count, 6)).astype("float32")
        x[:, 0] += 1.0 * (2 * y - 1)
        x[:, 1] += 3.0 * (2 * y - 1) * np.where(agree, 1, -1)
        return tm.GroupedData(x, y, np.where(agree, "common", "rare"))

    def test_a_biased_last_layer_is_repaired(self):
        held, test = self.data(600, 0.9), self.data(2000, 0.5, seed=1)
        model = nn.Linear(6, 1)
        with torch.no_grad():
            model.weight.copy_(torch.tensor([[0.0, 3.0, 0, 0, 0, 0]]))
        fitted = I.DFR().deliver(model, held)
        rare = test.take(test.of_group("rare"))
        wrong = [((m(rare.tensors()[0])[:, 0] > 0).numpy() != rare.y).mean() for m in (model, fitted)]
        assert wrong[0] > 0.9
        assert wrong[1] < 0.25
        assert abs(fitted.weight[0, 1].item()) < 0.3 * fitted.weight[0, 0].item()
        assert model.weight[0, 1].item() == 3.0  # the model that was given is left alone

    def test_one_fit_on_balanced_points_is_a_logistic_regression(self):
        from sklearn.linear_model import LogisticRegression

        even = self.data(400, 0.5)
        cells = [np.flatnonzero((even.codes == c) & (even.y == y))[:60] for c in (0, 1) for y in (0, 1)]
        even = even.take(np.concatenate(cells))
        scaled = (even.x - even.x.mean(0)) / even.x.std(0)
        expected = LogisticRegression(max_iter=1000).fit(scaled, even.y).decision_function(scaled)
        for outputs in (1, 2):
            fitted = I.DFR(fits=1).deliver(nn.Linear(6, outputs), even)
            found = fitted(even.tensors()[0]).detach().numpy()
            found = found[:, 0] if outputs == 1 else found[:, 1] - found[:, 0]
            np.testing.assert_allclose(found, expected, atol=2e-2)

    def test_the_delivered_model_is_seen_and_left(self):
        train, held_out = self.data(500, 0.9).split(0.4)
        held = self.data(300, 0.9, seed=2)
        model = nn.Sequential(nn.Linear(6, 8), nn.Tanh(), nn.Linear(8, 1))
        recipe = tm.Recipe(lr=0.1, steps=10, batch=16, interventions=(I.DFR(fits=2),))
        run = tm.train(model, train, held_out, recipe, validation=held)
        again = I.DFR(fits=2).deliver(model, held)
        torch.testing.assert_close(again[2].weight, model[2].weight)
        with torch.no_grad():
            wrong = ((model(held_out.tensors()[0])[:, 0] > 0).numpy() != held_out.y)[held_out.of_group("rare")].mean()
        assert run["error"].sel(group="rare").values[-1] == pytest.approx(wrong)

    def test_bad_input(self):
        with pytest.raises(ValueError, match="`fits` should be a positive whole number"):
            I.DFR(fits=0)
        with pytest.raises(TypeError, match=r"DFR acts on the last linear layer. Found a model without any"):
            I.DFR().deliver(nn.Conv1d(1, 1, 1), self.data(50, 0.5))
