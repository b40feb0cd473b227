"""MedianGradient: the median by hand, balancing with two groups, and the group that is not followed."""

import numpy as np
import torch

import tiltmeter as tm
import tiltmeter_lab as lab

I = tm.interventions


def after_one_step(targets, lr=1.0):
    """w after a step on |w - target|^2 / 2 for each group, from zero."""
    w = torch.zeros(2, requires_grad=True)
    stepper = lab.interventions.MedianGradient().optimizer(torch.optim.SGD([w], lr=lr))

    def closure(group):
        w.grad = (w - torch.tensor(targets[group])).detach()

    stepper.step(closure, list(range(len(targets))))
    return w.detach().numpy()


def test_the_step_is_the_median_of_coordinates():
    assert after_one_step([[1.0, 0.0], [2.0, 5.0], [9.0, -3.0]]).tolist() == [2.0, 0.0]
    assert after_one_step([[1.0, 0.0], [2.0, 5.0]]).tolist() == [1.5, 2.5]  # two groups: their mean


def test_two_groups_are_balanced_and_an_odd_one_out_of_three_is_not_followed():
    rng = np.random.default_rng(0)
    x, group = rng.normal(size=(600, 4)), np.repeat(["a", "b", "c"], 200)
    y = x[:, 0] * np.where(group == "c", -1.0, 1.0)
    data = tm.GroupedData(x, y, group)
    ends = {}
    for name, law in {"median": lab.interventions.MedianGradient(), "balanced": I.Balanced()}.items():
        torch.manual_seed(0)
        model = torch.nn.Linear(4, 1)
        recipe = tm.Recipe(lr=0.1, steps=150, batch=300, loss=tm.Square(), interventions=(law,))
        ends[name] = tm.train(model, data, data, recipe)["loss"].isel(time=-1)
    assert float(ends["median"].sel(group="a")) < 0.05 < float(ends["balanced"].sel(group="a"))
    assert float(ends["median"].sel(group="c")) > 1.5 > float(ends["balanced"].sel(group="c"))
