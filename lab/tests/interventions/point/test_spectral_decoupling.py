"""SpectralDecoupling: the margins at which training ends."""

import numpy as np
import pytest
import torch
from torch import nn

import tiltmeter as tm
import tiltmeter_lab as lab

I = tm.interventions


class TestSpectralDecoupling:
    @pytest.mark.parametrize(("strength", "margin"), [(0.05, 2.1280), (0.1, 1.6335), (0.5, 0.6748)])
    def test_margins_of_a_linear_model_solve_their_equation(self, strength, margin):
        rng = np.random.default_rng(0)
        x = np.linalg.qr(rng.normal(size=(90, 60)))[0].T * rng.uniform(0.7, 1.0, (60, 1))  # fewer points than inputs
        data = tm.GroupedData(x, np.sign(rng.normal(size=60)), np.arange(60) % 2)
        model = nn.Linear(90, 1, bias=False).double()
        recipe = tm.Recipe(
            lr=140.0,
            steps=200,
            batch=None,
            loss=tm.Logistic(),
            interventions=(lab.interventions.SpectralDecoupling(strength),),
        )
        tm.train(model, data, data, recipe, watch=tm.Watch(when=tm.record.at([200])))
        margins = data.y * (x @ model.weight.detach().numpy()[0])
        np.testing.assert_allclose(margins, margin, atol=1e-3)

    def test_with_the_squared_error_it_is_another_rate_and_smaller_labels(self):
        """(f - y)^2 / 2 + l f^2 / 2 = (1 + l) (f - y / (1 + l))^2 / 2 and a constant."""
        rng = np.random.default_rng(0)
        x, y, strength = rng.normal(size=(80, 3)), np.sign(rng.normal(size=80)), 0.5
        found = []
        for labels, lr, laws in (
            (y, 0.1, (lab.interventions.SpectralDecoupling(strength),)),
            (y / (1 + strength), 0.15, ()),
        ):
            torch.manual_seed(0)
            model = nn.Linear(3, 1).double()
            data = tm.GroupedData(x, labels, np.arange(80) % 2)
            recipe = tm.Recipe(lr=lr, steps=20, batch=16, loss=tm.Square(), interventions=laws)
            tm.train(model, data, data, recipe, watch=tm.Watch(when=tm.record.at([20])))
            found.append(model.weight.detach())
        torch.testing.assert_close(*found, atol=1e-12, rtol=0)

    def test_several_scores(self):
        found = lab.interventions.SpectralDecoupling(2.0).each(
            torch.zeros(2), torch.tensor([[1.0, 2.0], [0.0, 3.0]]), None
        )
        torch.testing.assert_close(found, torch.tensor([5.0, 9.0]))
