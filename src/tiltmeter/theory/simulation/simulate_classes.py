"""The part of `simulate` for several classes."""

from __future__ import annotations

import numpy as np
import xarray as xr

from tiltmeter.record.trajectory import LazyCurves
from tiltmeter.theory.population.classes.curves import chosen_class_curves, class_curves
from tiltmeter.theory.population.classes.decisions import NODES
from tiltmeter.theory.population.classes.moments import ClassStudents, class_moments
from tiltmeter.theory.population.classes.softmax_nodes import softmax_nodes
from tiltmeter.theory.population.quadrature import Sobol
from tiltmeter.theory.problem.class_mixture import ClassMixture
from tiltmeter.theory.problem.optimisers import StudentOptimiser
from tiltmeter.theory.problem.sgd import SGD
from tiltmeter.theory.problem.starts import Overlaps
from tiltmeter.theory.problem.students import Linear, Softmax
from tiltmeter.theory.simulation.chain import Chain
from tiltmeter.theory.simulation.class_chain import ClassChain
from tiltmeter.theory.simulation.run import SimulationOptions

#: Quadrature nodes for averages of a softmax: fewer than in the theory, because there is one average per seed and
#: evaluation.
FEW = Sobol(count=2**9)
#: Curves that are cheap; the others are computed only if they are named.
CHEAP = ("loss", "class_loss", "risk", "loss_gap", "M", "R", "Q", "student_bias")


class ClassSimulation:
    """What `simulate` needs for several classes: the run, the names of its curves, and how to compute them."""

    def __init__(self, problem: ClassMixture, sgd: StudentOptimiser, options: SimulationOptions) -> None:
        _refuse(sgd, options)
        assert isinstance(sgd, SGD)
        self._data = class_moments(problem)
        self._seeds = np.asarray(options.seeds, dtype=np.int64)
        softmax = isinstance(options.student, Softmax)
        self._nodes = softmax_nodes(self._data, FEW) if softmax else None
        every = chosen_class_curves(None, sgd.train_bias)
        self.names = (
            chosen_class_curves(options.curves, sgd.train_bias)
            if options.curves is not None
            else tuple(name for name in every if name in CHEAP)
        )
        self.run = ClassChain(self._data, sgd, softmax, options.d, options.seeds)

    def label(self, evaluations: list[ClassStudents], times: np.ndarray) -> LazyCurves:
        """The curves of evaluations, with a dimension `seed`."""
        whole = ClassStudents(
            *(np.concatenate([getattr(evaluation, n) for evaluation in evaluations]) for n in ("W", "Q", "bias"))
        )
        shape = {"time": times, "seed": self._seeds}
        return class_curves(self._data, whole, shape, self.names, self._nodes, NODES)


def _refuse(sgd: StudentOptimiser, options: SimulationOptions) -> None:
    other = "Train a linear module on `samples` of the problem with `train`."
    if not isinstance(sgd, SGD):
        raise ValueError(f"Several classes are simulated with SGD only. Found {type(sgd).__name__}. {other}")
    if sgd.interventions:
        raise ValueError(f"Several classes are simulated without interventions. {other}")
    for name, given in (("momentum", sgd.momentum != 0.0), ("clip", sgd.clip is not None)):
        if given:
            raise ValueError(f"Several classes are simulated without {name}. {other}")
    if not isinstance(options.student, (Linear, Softmax)):
        raise ValueError(f"Several classes are simulated for Linear() and Softmax() students. {other}")
    if not isinstance(options.method, Chain):
        raise ValueError(f"Several classes are simulated by Chain(). For a run with all coordinates: {other}")
    if options.data is not None:
        raise ValueError(f"Several classes are simulated on fresh examples. {other}")
    if isinstance(sgd.start, Overlaps):
        raise ValueError("With several classes start from Zero() or Random(scale). Found Overlaps(...).")
    for name in ("lr", "batch", "weight_decay"):
        value = getattr(sgd, name)
        if isinstance(value, xr.DataArray) and value.ndim:
            raise ValueError(f"`{name}` should be one number here, not a grid over {', '.join(map(str, value.dims))}.")
