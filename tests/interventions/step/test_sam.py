"""SAM: the step on a quadratic, and the statistics of one pass."""

from dataclasses import replace

import numpy as np
import torch
from torch import nn

import tiltmeter as tm

I = tm.interventions


class TestSAM:
    def test_the_step_on_a_quadratic(self):
        A, theta = torch.diag(torch.tensor([1.0, 3.0])), torch.tensor([0.5, -1.0])
        w = theta.clone().requires_grad_()
        optimizer = I.SAM(0.2).optimizer(torch.optim.SGD([w], lr=0.1))

        def closure():
            w.grad = None
            value = 0.5 * w @ A @ w
            value.backward()
            return value

        optimizer.step(closure)
        g = A @ theta
        torch.testing.assert_close(w.detach(), theta - 0.1 * A @ (theta + 0.2 * g / g.norm()))

    def test_statistics_are_those_of_one_pass(self):
        rng = np.random.default_rng(0)
        x = rng.normal(size=(80, 3)).astype("float32")
        data = tm.GroupedData(x, (x[:, 0] > 0).astype(int), np.arange(80) % 2)

        def made():
            torch.manual_seed(0)
            return nn.Sequential(nn.BatchNorm1d(3), nn.Linear(3, 1))

        plain, sharp = made(), made()
        recipe = tm.Recipe(lr=0.1, steps=1, batch=16)
        tm.train(plain, data, data, recipe)
        tm.train(sharp, data, data, replace(recipe, interventions=(I.SAM(0.5),)))
        assert sharp[0].num_batches_tracked == 1
        torch.testing.assert_close(plain[0].running_mean, sharp[0].running_mean)
        assert not torch.equal(plain[1].weight, sharp[1].weight)
