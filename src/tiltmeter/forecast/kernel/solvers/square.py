"""Square: the outputs of the linearised network under squared loss, at all steps at once."""

from __future__ import annotations

import numpy as np

from tiltmeter.forecast.kernel.solvers.lanczos import Krylov, lanczos
from tiltmeter.forecast.kernel.solvers.linearised_outputs import LinearisedOutputs
from tiltmeter.forecast.kernel.solvers.modes import flow_responses, kept_weights, responses
from tiltmeter.recipe.plain_sgd import PlainSGD

#: Lanczos stops at this error of the sample's outputs, relative to their root mean square distance from the labels.
TOLERANCE = 1e-9


def square_course(
    kernel: np.ndarray,
    cross: np.ndarray,
    distance: np.ndarray,
    start: np.ndarray,
    share: np.ndarray,
    optimiser: PlainSGD,
    looks: np.ndarray,
    radial: tuple[np.ndarray, np.ndarray] | None = None,
) -> LinearisedOutputs:
    """Return the outputs of the linearised network after gradient descent on sum(share * 1/2 (f - y)^2).

    `kernel` (n, n) and `cross` (m, n) are tangent kernels; `distance` (n, columns) is f - y at the sample and `start`
    (m, columns) is f at the held-out points, both before training. With weight decay, `radial` holds J w0 at both. The
    symmetric matrix sqrt(share) K sqrt(share) has the curvatures of the loss as eigenvalues; only its products with
    vectors are used.
    """
    root = np.sqrt(share)[:, None]
    pulls = [root * distance] if radial is None else [root * distance, root * radial[0]]
    begin = np.concatenate(pulls, axis=1)
    columns = distance.shape[1]
    length = float(np.sqrt((pulls[0] ** 2).sum(0)).max(initial=0.0))
    times = optimiser.travelled(looks)

    def error(krylov: Krylov, moved: np.ndarray) -> float:
        # An error made at one step decays as 1 / steps, so errors of all steps add up to a logarithm.
        return krylov.leak(moved) * (1.0 + float(np.log1p(looks.max(initial=0))))

    def content(krylov: Krylov) -> bool:
        values, vectors = krylov.modes()
        answers = flow_responses(values, times)
        moved = _moved(vectors, [answers] * len(pulls), krylov.start, columns)
        return error(krylov, moved) <= TOLERANCE * length

    krylov = lanczos(lambda v: root * (kernel @ (root * v)), begin, content)
    values, vectors = krylov.modes()
    first, second = responses(values, optimiser, looks)
    moved = _moved(vectors, [first] if second is None else [first, second], krylov.start, columns)
    with np.errstate(over="ignore", invalid="ignore"):
        seen = np.tensordot(cross @ (root * krylov.basis), moved, axes=1).transpose(1, 0, 2)
        outputs = start + seen
        dual = root * np.tensordot(krylov.basis, moved, axes=1).transpose(1, 0, 2)
    kept = kept_weights(optimiser, looks)
    if radial is not None:
        outputs = outputs + (kept - 1.0)[:, None, None] * radial[1]
    sharpest = float(values.max(initial=0.0))
    method = f"Lanczos, {krylov.passes} passes"
    return LinearisedOutputs(looks, outputs, dual, kept, error(krylov, moved), sharpest, method)


def _moved(vectors: np.ndarray, answers: list[np.ndarray], start: np.ndarray, columns: int) -> np.ndarray:
    """Coefficients in the basis at every step: (basis, steps, columns)."""
    rows = vectors.T @ start
    total = np.zeros((len(vectors), len(answers[0]), columns))
    with np.errstate(over="ignore", invalid="ignore"):
        for number, answer in enumerate(answers):
            part = rows[:, number * columns : (number + 1) * columns]
            total += answer.T[:, :, None] * part[:, None, :]
        return np.tensordot(vectors, total, axes=1)
