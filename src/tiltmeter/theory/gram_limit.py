"""gram_limit: curves under a Gram intervention, for batches that are large but much smaller than d."""

from __future__ import annotations

from typing import Any

from tiltmeter.problem.mixture import Mixture
from tiltmeter.problem.sgd import SGD
from tiltmeter.problem.times import checked_times
from tiltmeter.record.trajectory import Trajectory
from tiltmeter.theory.steered_theory import steered_theory


def gram_limit(problem: Mixture, sgd: SGD, times: Any) -> Trajectory:
    """Return the curves of a `GramIntervention` in the limit 1 << batch << d, where gradients of groups are orthogonal
    noise.

    >>> import tiltmeter as tm
    >>> problem = tm.teacher_mixture(rho=0.75, variance=(0.5, 1.5), overlap=0.7)
    >>> law = tm.interventions.NormalisedGradient()
    >>> sgd = tm.SGD(lr=0.05, batch=64, interventions=(law,))
    >>> gram_limit(problem, sgd, [0.0, 60.0])["loss"].values[-1].round(4)
    array([0.2155, 0.3399])

    The mean gradient of n_g = batch p_g points has squared length 2 D_g loss_g / n_g (over d) and no overlap with
    those of other groups. So `NormalisedGradient` pulls like sqrt(n_g / (2 D_g loss_g)), and `UPGrad` balances.

    At a finite batch the counts of groups and the squared errors fluctuate; `simulate` includes this, `gram_limit` does
    not.

    Args:
        problem: Groups with their shares, variances, means and labelling rules.
        sgd: How the student is trained: learning rate, batch, start, weights.
        times: Times of the evaluations, in units of t = steps / d.
    """
    if not isinstance(sgd, SGD) or sgd.law is None or not sgd.law.sees_gram:
        raise ValueError(
            "`gram_limit` is for an SGD with an intervention of gradients, as UPGrad(). Found none: use `predict`."
        )
    if len(sgd.interventions) > 1:
        others = ", ".join(type(law).__name__ for law in sgd.interventions if law is not sgd.law)
        raise ValueError(f"`gram_limit` cannot apply {others}. Use `train`.")
    for name, given in (("momentum", sgd.momentum != 0.0), ("clip", sgd.clip is not None)):
        if given:
            raise ValueError(f"`gram_limit` has no solution with {name}. Use `simulate`.")
    at = checked_times(times)
    return steered_theory(problem, sgd, sgd.law, None, at, "gram limit")(at)
