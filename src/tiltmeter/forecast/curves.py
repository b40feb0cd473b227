"""Curves: forecast outputs read by the measures that a probe uses, so that forecast and run share every name."""

from __future__ import annotations

import numpy as np
import torch

from tiltmeter.measures.answers import Answers
from tiltmeter.measures.defaults import DEFAULTS
from tiltmeter.record import Origin, Recorder, Trajectory


def curves(answers: Answers, looks: np.ndarray, outputs: np.ndarray, origin: Origin) -> Trajectory:
    """The group curves of outputs (steps, points, outputs) at these steps; a look that is not finite ends them."""
    with Recorder(None, clock="step", origin=origin) as recorder:
        for step, values in zip(looks.tolist(), outputs, strict=True):
            scores = torch.as_tensor(values[:, 0] if values.shape[1] == 1 else values)
            snapshot = answers.assemble([(0, scores)])
            readings = {name: value for measure in DEFAULTS for name, value in measure(snapshot).items()}
            recorder.append(step, readings)
            if not np.isfinite(readings["loss"].values).all():
                recorder.diverged(float(step))
                break
        return recorder.trajectory()
