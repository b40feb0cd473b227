"""Adam in one pass over large stacked tensors is Adam step by step, up to rounding."""

import pytest
import torch

from tiltmeter.training.stacked_updates import LARGE, stacked_update


@pytest.mark.parametrize("kind", [torch.optim.Adam, torch.optim.AdamW])
def test_one_pass_is_the_formula(kind):
    found = []
    for at_once in (False, True):
        draw = torch.Generator().manual_seed(0)
        weights = torch.randn(2, 120, 60, generator=draw).transpose(1, 2)  # stored transposed, as of Linear layers
        assert weights.numel() >= LARGE
        parameters = {"weight": weights, "bias": torch.randn(2, 60, generator=draw)}
        settings = kind([torch.zeros(1, requires_grad=True)], lr=1e-2)
        update = stacked_update(settings, 0.1, at_once=at_once)
        for _ in range(5):
            gradients = {
                "weight": torch.randn(2, 120, 60, generator=draw).transpose(1, 2),
                "bias": torch.randn(2, 60, generator=draw),
            }
            update(parameters, gradients, 1e-2)
        found.append(parameters)
    for name in found[0]:
        torch.testing.assert_close(found[0][name], found[1][name], rtol=1e-5, atol=1e-6)
