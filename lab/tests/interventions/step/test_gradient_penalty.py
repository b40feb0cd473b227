"""GradientPenalty: exact on a quadratic, plain training without strength, SAM with all of it."""

import numpy as np
import pytest
import torch

import tiltmeter as tm
import tiltmeter_lab as lab

I = tm.interventions


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

    lab.interventions.GradientPenalty(strength, 0.05).optimizer(made).step(closure)
    assert weight.item() == pytest.approx(w - lr * (k * w + strength * k), rel=1e-10)


def test_without_strength_it_is_the_plain_step_and_with_all_of_it_sam():
    def after(law):
        torch.manual_seed(0)
        model = torch.nn.Linear(3, 1).double()
        rng = np.random.default_rng(0)
        data = tm.GroupedData(rng.normal(size=(60, 3)), np.sign(rng.normal(size=60)), [0, 1] * 30)
        laws = () if law is None else (law,)
        recipe = tm.Recipe(lr=0.1, steps=4, batch=16, loss=tm.Square(), interventions=laws)
        tm.train(model, data, data, recipe, watch=tm.Watch(when=tm.record.at([4])))
        return model.weight.detach().numpy()

    np.testing.assert_array_equal(after(lab.interventions.GradientPenalty(0.0)), after(None))
    np.testing.assert_allclose(after(lab.interventions.GradientPenalty(0.05, 0.05)), after(I.SAM(0.05)), rtol=1e-12)
    assert not np.allclose(after(lab.interventions.GradientPenalty(0.05, 0.05)), after(None))


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda: lab.interventions.GradientPenalty(-1.0), "`strength`"),
        (lambda: lab.interventions.GradientPenalty(0.1, 0.0), "`distance`"),
    ],
)
def test_bad_input(make, sentence):
    with pytest.raises(ValueError, match=sentence):
        make()
