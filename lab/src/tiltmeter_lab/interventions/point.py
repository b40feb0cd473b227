"""Point interventions: what the loss of each point is."""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import Any

import numpy as np

from tiltmeter.interventions.kinds import PointIntervention, Shown, TermIntervention
from tiltmeter.interventions.shared.log_losses import log_losses, one_number_a_point
from tiltmeter.interventions.shared.shares import checked_per_group
from tiltmeter_lab.interventions.input_mask import check_mask_fits, checked_mask


@dataclass(frozen=True)
class AttributionPrior(TermIntervention):
    """loss + strength * sum over the mask of (d score / d input)^2: right for the right reasons, Ross et al. (2017).

    >>> AttributionPrior(mask=range(64, 68), strength=10.0).mask
    (64, 65, 66, 67)

    With several scores the derivative is that of the sum of their log-probabilities, as in the paper. For a linear
    model the penalty is a ridge on the weights of the mask. In a loop of one's own the points need gradients and are
    given too: `x.requires_grad_()`, `steer(losses, group, scores=scores, y=y, x=x)`.

    It needs to know where the bias sits. A derivative of zero at the training points says nothing about inputs far from
    them, and a bias that also shows elsewhere in the point is not seen.

    Args:
        mask: Places of the inputs that should not matter, counted in the flattened point.
        strength: How much the term counts beside the loss; 0 is plain training.
    """

    sees = frozenset({"inputs", "input gradients"})
    title = "the score must not depend on inputs that are known to mislead"
    cannot = "act on a bias that does not sit in inputs of its own"

    mask: tuple[int, ...]
    strength: float = 1.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "mask", checked_mask(self.mask))
        checked_per_group(self.strength, "strength", 0.0)

    def cost(self, groups: int) -> float:  # noqa: ARG002
        return 3.0  # a gradient with respect to the inputs, and the gradient of that

    def module(self, model: Any, data: Any) -> Any:
        import torch

        like = next((p for p in model.parameters() if p.is_floating_point()), torch.empty(0))
        check_mask_fits(self.mask, data.tensor_points(like.dtype)[0], "AttributionPrior")
        return None

    def term(self, shown: Shown) -> tuple[Any, Any]:
        import torch

        check_mask_fits(self.mask, shown.x, "AttributionPrior")
        if not shown.x.requires_grad:
            raise ValueError("AttributionPrior needs derivatives with respect to the points: call x.requires_grad_().")
        shown_scores = shown.scores if shown.scores.ndim == 1 else torch.log_softmax(shown.scores, -1).sum(-1)
        (slopes,) = torch.autograd.grad(shown_scores.sum(), shown.x, create_graph=True)
        punished = slopes.flatten(1)[:, list(self.mask)].square().sum(1)
        return shown.losses + self.strength * punished, 0.0


#: scikit-learn's C of the expert: hardly any ridge, and finite weights where the mask tells the label for certain.
WEAK_RIDGE = 100.0


@dataclass(frozen=True)
class ProductOfExperts(TermIntervention):
    """The loss of score + expert's score; the model alone is delivered: Clark et al. (2019), Hinton (2002).

    >>> ProductOfExperts(mask=(64, 65, 66, 67)).routes
    ('train', 'ensemble')

    With a `mask` the expert is a logistic regression on these inputs, fitted before training: it should know the bias
    and nothing else. Without one it is a weak learner: a copy of the model, trained plainly for `steps` steps. Points
    that the expert gets right with confidence have small gradients, and the model learns from the others. If inputs
    are independent given the label, the model ends with no weight on those of the mask.

    A weak learner that knows more than the bias takes that from the model too: the result may be far worse than plain
    training. In a loop of one's own the weak learner starts as a copy of `model`: give it trained weights with
    `steer.beside[0].load_state_dict(...)`.

    Args:
        mask: Places of the inputs that the expert sees; None: the expert is a weak learner.
        steps: Steps that a weak learner is trained for.
    """

    sees = frozenset({"inputs"})
    log_loss = True
    title = "the model explains what an expert that knows the bias alone does not"
    cannot = "keep what the expert knows beside the bias: the model need not learn it"

    mask: tuple[int, ...] | None = None
    steps: int = 75

    def __post_init__(self) -> None:
        if self.mask is not None:
            object.__setattr__(self, "mask", checked_mask(self.mask))
        if isinstance(self.steps, bool) or self.steps != int(self.steps) or self.steps < 1:
            raise ValueError(f"`steps` should be a positive whole number. Found steps = {self.steps!r}.")

    @property
    def routes(self) -> tuple[str, ...]:
        return ("train",) if self.mask is None else ("train", "ensemble")

    @property
    def scout(self) -> int:
        return self.steps if self.mask is None else 0

    def cost(self, groups: int) -> float:  # noqa: ARG002
        # One more pass forwards, a third of an evaluation; a logistic regression costs nothing beside a network.
        return 4.0 / 3.0 if self.mask is None else 1.0

    def module(self, model: Any, data: Any) -> Any:
        expert = copy.deepcopy(model) if self.mask is None else _regression(self.mask, model, data)
        return expert.requires_grad_(False)

    def term(self, shown: Shown) -> tuple[Any, Any]:
        import torch

        with torch.no_grad():
            known = one_number_a_point(shown.own.eval()(shown.x), len(shown.losses), "ProductOfExperts")
        if shown.scores.ndim == shown.y.ndim and known.ndim == 1:
            return log_losses(shown.scores + known, shown.y, shown.labels), 0.0
        both = torch.log_softmax(shown.scores, -1) + torch.log_softmax(known, -1)
        return log_losses(both, shown.y, shown.labels), 0.0


def _regression(mask: tuple[int, ...], model: Any, data: Any) -> Any:
    """A linear layer that is a logistic regression on the inputs of the mask, and zero on all others."""
    import torch
    from sklearn.linear_model import LogisticRegression

    like = next((p for p in model.parameters() if p.is_floating_point()), torch.empty(0))
    x = data.tensor_points(like.dtype)[0]
    check_mask_fits(mask, x, "ProductOfExperts")
    flat = x.flatten(1).double().cpu().numpy()
    labels = np.unique(data.y)
    if len(labels) < 2:
        raise ValueError(f"ProductOfExperts needs points of two labels. Found y = {labels[0]!r} alone.")
    fit = LogisticRegression(C=WEAK_RIDGE, max_iter=1000).fit(flat[:, mask], data.y)
    rows, offsets = fit.coef_, fit.intercept_
    outputs = _outputs(model, x, like)
    if outputs == 2 and len(rows) == 1:  # scikit-learn gives the difference of the two
        rows, offsets = np.concatenate([-rows, rows]) / 2.0, np.concatenate([-offsets, offsets]) / 2.0
    if len(rows) != outputs:
        raise ValueError(
            f"ProductOfExperts needs points of all {max(outputs, 2)} labels that the model tells apart. Found "
            f"{len(labels)}."
        )
    layer = torch.nn.Linear(flat.shape[1], outputs).to(like.device, like.dtype)
    with torch.no_grad():
        layer.weight.zero_()
        layer.weight[:, list(mask)] = torch.as_tensor(rows).to(like)
        layer.bias.copy_(torch.as_tensor(offsets))
    return torch.nn.Sequential(torch.nn.Flatten(), layer)


def _outputs(model: Any, x: Any, like: Any) -> int:
    """How many scores the model gives a point; modes are put back."""
    import torch

    modes = [(module, module.training) for module in model.modules()]
    try:
        for module, _ in modes:
            module.training = False
        with torch.no_grad():
            found = one_number_a_point(model(x[:2].to(like.device)), 2, "ProductOfExperts")
    finally:
        for module, mode in modes:
            module.training = mode
    return 1 if found.ndim == 1 else int(found.shape[1])


@dataclass(frozen=True)
class SpectralDecoupling(PointIntervention):
    """loss + (strength / 2) `|score|^2` for every point, Pezeshki et al. (2021).

    >>> import torch
    >>> SpectralDecoupling(0.1).each(torch.zeros(2), torch.tensor([1.0, -2.0]), None)
    tensor([0.0500, 0.2000])

    With the logistic loss a linear model that can fit all its points ends where every margin m solves
    1 / (1 + e^m) = strength m; without the penalty margins grow for ever.

    It also slows training down: compare runs at equal loss, not at equal steps. With `Square` it is plain training with
    another learning rate and smaller labels.

    Args:
        strength: How much the term counts beside the loss; 0 is plain training.
    """

    title = "a penalty on the size of scores, so that one easy feature does not starve the others"
    cannot = "tell a spurious feature from a useful one: it holds back whatever is learned first"

    strength: float = 0.1

    def __post_init__(self) -> None:
        checked_per_group(self.strength, "strength", 0.0)

    def each(self, losses: Any, scores: Any, y: Any) -> Any:  # noqa: ARG002
        square = scores.square() if scores.ndim == losses.ndim else scores.square().sum(-1)
        return losses + 0.5 * self.strength * square
