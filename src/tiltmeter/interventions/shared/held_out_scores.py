"""The scores of a model on held-out points."""

from __future__ import annotations

from typing import Any

import numpy as np

#: Points that go through the network together.
CHUNK = 1024


def held_out_scores(model: Any, data: Any, law: str) -> np.ndarray:
    """Scores (points,) or (points, outputs) in evaluation mode; modes are put back."""
    import torch

    from tiltmeter.interventions.shared.log_losses import one_number_a_point

    like = next((p for p in model.parameters() if p.is_floating_point()), torch.empty(0))
    x = data.tensors(like.dtype)[0].to(like.device)
    modes = [(module, module.training) for module in model.modules()]
    try:
        for module, _ in modes:
            module.training = False
        with torch.no_grad():
            parts = [
                one_number_a_point(model(x[at : at + CHUNK]), len(x[at : at + CHUNK]), law)
                for at in range(0, len(x), CHUNK)
            ]
    finally:
        for module, mode in modes:
            module.training = mode
    return np.asarray(torch.cat(parts).double().cpu().numpy())
