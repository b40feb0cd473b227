"""SpectralDecoupling: the margins at which training ends."""

import numpy as np
import pytest
import torch
from torch import nn

import tiltmeter as tm

I = tm.interventions


class TestSpectralDecoupling:
    @pytest.mark.parametrize(("strength", "margin"), [(0.05, 2.1280), (0.1, 1.6335)])
    def test_margins_of_a_linear_model_solve_their_equation(self, strength, margin):
        rng = np.random.default_rng(0)
        x = np.linalg.qr(rng.normal(size=(90, 60)))[0].T * rng.uniform(0.7, 1.0, (60, 1))  # fewer points than inputs
        data = tm.GroupedData(x, np.sign(rng.normal(size=60)), np.arange(60) % 2)
        model = nn.Linear(90, 1, bias=False).double()
        recipe = tm.Recipe(
            lr=180.0, steps=150, batch=None, loss=tm.Logistic(), interventions=(I.SpectralDecoupling(strength),)
        )
        tm.train(model, data, data, recipe, watch=tm.Watch(when=tm.at([150])))
        margins = data.y * (x @ model.weight.detach().numpy()[0])
        np.testing.assert_allclose(margins, margin, atol=1e-3)

    def test_several_scores(self):
        found = I.SpectralDecoupling(2.0).each(torch.zeros(2), torch.tensor([[1.0, 2.0], [0.0, 3.0]]), None)
        torch.testing.assert_close(found, torch.tensor([5.0, 9.0]))
