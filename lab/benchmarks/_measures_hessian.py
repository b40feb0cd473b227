"""The largest eigenvalue of the Hessian by Lanczos against the dense Hessian and its eigenvalues.

`compare()` gives rows for `_measure.report`.
"""

from __future__ import annotations

import numpy as np
import torch
from _measure import best

import tiltmeter as tm
from tiltmeter.modules.networks import mlp
from tiltmeter.modules.tangent.gradient import count_of, trained
from tiltmeter.modules.tangent.hessian import hessian_times, top_eigenpairs
from tiltmeter.modules.untouched import untouched
from tiltmeter_lab.measures.measure import snapshot_of
from tiltmeter_lab.measures.shared.risk import point_losses

POINTS, INPUTS, UNITS, CLASSES, ITERATIONS, BAR = 256, 64, 16, 10, 24, 10.0


def compare() -> dict[str, dict[str, float]]:
    """One row: both ways on one network, which must agree."""
    torch.set_num_threads(1)
    torch.manual_seed(0)
    rng = np.random.default_rng(0)
    data = tm.GroupedData(
        rng.normal(size=(POINTS, INPUTS)).astype(np.float32), rng.integers(0, CLASSES, POINTS), np.arange(POINTS) % 2
    )
    model = mlp(INPUTS, (UNITS,), CLASSES, "tanh")
    places = torch.arange(POINTS)
    with untouched(model):
        losses, parameters = point_losses(snapshot_of(model, data).model), trained(model)
        start = torch.randn(count_of(parameters))

        def by_lanczos() -> float:
            values, _, _ = top_eigenpairs(
                lambda vector: hessian_times(losses, parameters, places, vector), start, 1, ITERATIONS
            )
            return float(values[0])

        def dense() -> float:
            columns = [hessian_times(losses, parameters, places, column) for column in torch.eye(len(start))]
            return float(torch.linalg.eigvalsh(torch.stack(columns, 1))[-1])

        fast, slow = by_lanczos(), dense()
        assert abs(fast - slow) < 1e-3 * slow, (fast, slow)
        seconds = best(by_lanczos, 3), best(dense, 1)
    ratio = seconds[1] / seconds[0]
    label = f"largest eigenvalue of a {count_of(parameters)}-parameter Hessian, dense over Lanczos"
    return {
        label: {"ratio": ratio, "seconds": seconds[0], "dense_seconds": seconds[1], "bar": BAR, "met": ratio >= BAR}
    }
