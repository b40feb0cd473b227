"""uphill: the weights of an optimiser moved along their gradient, to look at the loss nearby."""

from __future__ import annotations

from typing import Any


def move_uphill(optimiser: Any, distance: float) -> list[tuple[Any, Any]]:
    """Move all weights this distance along the gradient; return every parameter with what it was.

    A network may stand in for a wider one, as a twin does. Groups of its optimiser then say what the square of a
    gradient counts in the norm of the wider network (`gradient_norm`), and how far a parameter moves where one of the
    wider network moves by its gradient (`gradient_step`).
    """
    import torch

    moved = [(group, p) for group in optimiser.param_groups for p in group["params"] if p.grad is not None]
    kept = [(p, p.detach().clone()) for _, p in moved]
    with torch.no_grad():
        lengths = [p.grad.norm() * group.get("gradient_norm", 1.0) ** 0.5 for group, p in moved]
        short = distance / (torch.stack(lengths).norm() + 1e-12)
        for group, p in moved:
            p.add_(p.grad * (short * group.get("gradient_step", 1.0)))
    return kept
