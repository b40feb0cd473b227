"""noise-sensitivity: how often noise on one token or one image patch changes the decision (Vasudeva et al., 2024)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
import torch
import xarray as xr
from torch import Tensor

from tiltmeter.measures.snapshot import Snapshot

#: Inputs per forward pass, and noise numbers that are drawn together (64 MB).
TOGETHER, DRAWN = 4096, 2**24
#: Default side of an image patch, in pixels.
PATCH = 4


@dataclass(frozen=True)
class NoiseSensitivity:
    """P[decision changes] when Gaussian noise of *standard deviation* `sigma` is added to one token of the input.

    >>> import tiltmeter as tm
    >>> import tiltmeter_lab as lab
    >>> from tiltmeter.data.public.digits import digits
    >>> _, held_out = digits()
    >>> lab.measure(NoiseSensitivity(patch=8), torch.nn.Linear(64, 10), held_out)["token_sensitivity"].shape
    (8,)

    A token is one contiguous piece: a square of `patch` x `patch` pixels in all channels of an image (channels, height,
    width), `patch` neighbouring positions of a sequence (length, features), or `patch` neighbouring coordinates of flat
    points. The defaults are patches of 4 pixels, 1 position, 1 coordinate. `sigma` is in units of the model's input.
    Every token of every point is tried `repeats` times, for at most `points` of the held-out points, evenly chosen. For
    a linear classifier the answer is Phi(-margin / (sigma norm(w_token))).

    The null value is the probability that two random points get different decisions: the effect of noise that erases
    the whole input.

    What it does not mean: a low number does not mean that the model ignores a token, only that small noise there does
    not matter. Compare models only at equal training accuracy (`at_matched_error`): an untrained model
    that always makes the same decision is not sensitive at all.

    Args:
        sigma: Standard deviation of the noise, in units of the model's input.
        patch: Size of a token; None: 4 pixels, 1 position or 1 coordinate.
        repeats: Tries of every token of every point.
        points: Most held-out points that are used, evenly chosen.
        seed: Seed of the random draws, the same at every evaluation.
    """

    sigma: float = 0.1
    patch: int | None = None
    repeats: int = 5
    points: int = 200
    seed: int = 0
    title: ClassVar[str] = "How often noise on one token or patch changes the decision"
    takes: ClassVar[str] = "Images, sequences of vectors or flat points of real numbers, and labels"
    exact: ClassVar[str] = "Never: sampled, with its standard error over points"
    absent: ClassVar[str] = "Models of different training accuracy: compare only at matched error"

    def __post_init__(self) -> None:
        if not self.sigma > 0:
            raise ValueError(f"`sigma` should be positive. Found sigma = {self.sigma}.")
        for name in ("patch", "repeats", "points"):
            value = getattr(self, name)
            if value is not None and value < 1:
                raise ValueError(f"`{name}` should be at least 1. Found {name} = {value}.")

    def __call__(self, snapshot: Snapshot) -> dict[str, xr.DataArray]:
        seen = replace(snapshot.model, chunk=max(snapshot.model.chunk, TOGETHER))
        if not seen.x.is_floating_point():
            raise TypeError(
                "Noise is added to real numbers. Found integer tokens: measure the model after its embedding, or use "
                "BooleanSensitivity for two tokens."
            )
        chosen = np.unique(np.linspace(0, len(seen.x) - 1, min(self.points, len(seen.x))).round().astype(np.int64))
        x = seen.x[torch.as_tensor(chosen)]
        before = seen.decide(seen.scores(x))
        tokens = token_masks(tuple(x.shape[1:]), self.patch)
        stream = torch.Generator().manual_seed(self.seed)
        changed = np.zeros((len(x), len(tokens)))
        for _ in range(self.repeats):
            for start in range(0, len(tokens), block := max(1, DRAWN // x.numel())):
                part = tokens[start : start + block].to(x.dtype)
                noise = torch.randn(len(part), *x.shape, generator=stream, dtype=x.dtype)
                noisy = (x + self.sigma * part[:, None] * noise).reshape(-1, *x.shape[1:])
                after = seen.decide(seen.scores(noisy)).reshape(len(part), len(x))
                changed[:, start : start + block] += (after != before).T
        return self._readings(snapshot, changed / self.repeats, before)

    def _readings(self, snapshot: Snapshot, changed: np.ndarray, decision: np.ndarray) -> dict[str, xr.DataArray]:
        shares = np.unique(decision, return_counts=True)[1] / len(decision)
        null = np.asarray(1.0 - (shares**2).sum())
        count = len(changed)
        scatter = 0.0 if count < 2 else 1.0 / np.sqrt(count)
        token = {"token": np.arange(changed.shape[1])}
        each = changed.mean(1)
        said = "share of points whose decision changes with noise on "
        chance = "probability that two points get different decisions"
        found: dict[str, xr.DataArray] = {}
        for name, values, coords, meaning in (
            ("token_sensitivity", changed.mean(0), token, said + "this token"),
            ("token_sensitivity_se", scatter * changed.std(0, ddof=min(1, count - 1)), token, "its standard error"),
            ("token_sensitivity_null", np.full(changed.shape[1], null), token, chance),
            ("noise_sensitivity", np.asarray(each.mean()), {}, said + "one token, averaged over tokens"),
            ("noise_sensitivity_se", np.asarray(scatter * each.std(ddof=min(1, count - 1))), {}, "its standard error"),
            ("noise_sensitivity_null", null, {}, chance),
        ):
            found[name] = snapshot.reading(name, values, coords, long_name=meaning, better="lower", sigma=self.sigma)
        return found

    def passes(self, snapshot: Snapshot) -> float:
        x = snapshot.model.x
        tokens = len(token_masks(tuple(x.shape[1:]), self.patch))
        return min(self.points, len(x)) * (1 + tokens * self.repeats) / len(x)


def token_masks(shape: tuple[int, ...], patch: int | None = None) -> Tensor:
    """Which entries of an input of this shape belong to each token: (tokens, *shape), contiguous, each entry in one
    token.

    >>> [int(mask.sum()) for mask in token_masks((3, 8, 8), 4)], len(token_masks((6, 5))), len(token_masks((10,), 4))
    ([48, 48, 48, 48], 6, 3)
    """
    if len(shape) == 3:
        rows, columns = (_pieces(size, patch or PATCH) for size in shape[1:])
        places = [(slice(None), row, column) for row in rows for column in columns]
    elif len(shape) in (1, 2):
        places = [(piece,) for piece in _pieces(shape[0], patch or 1)]  # type: ignore[misc]
    else:
        raise ValueError(
            "Tokens are defined for images (channels, height, width), sequences (length, features) and flat points. "
            f"Found points of shape {shape}."
        )
    masks = torch.zeros(len(places), *shape, dtype=torch.bool)
    for mask, place in zip(masks, places, strict=True):
        mask[place] = True
    return masks


def _pieces(size: int, patch: int) -> list[slice]:
    return [slice(start, min(start + patch, size)) for start in range(0, size, patch)]
