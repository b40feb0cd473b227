"""GeneralisedCrossEntropy: its gradient, by hand."""

import pytest
import torch
from torch import nn

import tiltmeter as tm

I = tm.interventions


class TestGeneralisedCrossEntropy:
    def test_its_gradient_is_the_usual_one_times_a_power_of_the_probability(self):
        # Published code of LfF multiplies by q once more; this is the gradient of the loss itself.
        scores = torch.tensor([-1.0, 0.5, 2.0], dtype=torch.float64, requires_grad=True)
        usual = nn.functional.softplus(-scores)
        (plain,) = torch.autograd.grad(usual.sum(), scores, retain_graph=True)
        (found,) = torch.autograd.grad(
            tm.interventions.GeneralisedCrossEntropy(0.7).each(usual, None, None).sum(), scores
        )
        torch.testing.assert_close(found, plain * torch.sigmoid(scores) ** 0.7)

    @pytest.mark.parametrize("q", [0.0, 1.5, True])
    def test_bad_input(self, q):
        with pytest.raises(ValueError, match="`q` should lie above 0 and be at most 1"):
            tm.interventions.GeneralisedCrossEntropy(q)
