"""Prior knowledge at finite d: crossings after irrelevant pre-training, and groups one after the other."""

import numpy as np
import pytest

import tiltmeter as tm

CENTRED = tm.teacher_mixture(0.8, variance=(0.5, 1.5), overlap=0.5)
SIZE = {"d": 1000, "seeds": range(1000, 1300)}


def over(values):
    """Mean over seeds and its standard error."""
    return values.mean("seed").values, values.std("seed", ddof=1).values / np.sqrt(values.sizes["seed"])


@pytest.mark.slow
@pytest.mark.parametrize(("length", "times"), [(0.0, [5.643]), (0.015, [1.356, 4.631]), (0.06, [])])
def test_irrelevant_pretraining(length, times):
    """One crossing without, two below the critical length .022788, none above (reference notes 3.2)."""
    evaluations = np.concatenate([np.arange(0.1, 1.0, 0.1), np.arange(1.0, 10.0, 0.5), [20.0, 40.0]])
    sgd = tm.SGD(lr=0.1, start=tm.problem.starts.Overlaps(Q=length))
    theory = tm.predict(CENTRED, sgd, evaluations, ("loss_gap",))["loss_gap"]
    runs = tm.simulate(CENTRED, sgd, evaluations, curves=("loss_gap",), **SIZE)["loss_gap"]
    mean, error = over(runs)
    gap = np.abs(mean - theory.values)
    assert (gap / error).max() < 4.0
    assert gap.max() < 0.002
    # The order of the means is that of the theory wherever the theory is four standard errors away from a tie.
    clear = np.abs(theory.values) > 4.0 * error
    assert (np.sign(mean[clear]) == np.sign(theory.values[clear])).all()
    sign = np.sign(mean[clear])
    assert (sign[1:] != sign[:-1]).sum() == len(times)


@pytest.mark.slow
@pytest.mark.parametrize(
    "problem", [CENTRED, tm.teacher_mixture(0.6, variance=(1.0, 1.0), overlap=0.3)], ids=["centred", "equal variances"]
)
@pytest.mark.parametrize("order", [("+", "-"), ("-", "+")])
def test_groups_one_after_the_other(problem, order):
    """Losses after the first and after the second phase are those of the closed form (reference notes 3.3)."""
    durations = dict(zip(order, (15.0, 10.0), strict=True))
    sgd = tm.SGD(lr=0.1, proportions=tm.schedules.in_turn(durations))
    runs = tm.simulate(problem, sgd, [15.0, 25.0], curves=("loss",), **SIZE)["loss"]
    ends = (
        tm.theory.one_after_the_other(problem, tm.SGD(lr=0.1), {order[0]: 15.0}),
        tm.theory.one_after_the_other(problem, tm.SGD(lr=0.1), durations),
    )
    for i, end in enumerate(ends):
        for group in "+-":
            mean, error = over(runs.isel(time=i).sel(group=group))
            assert abs(mean - end.loss[group]) < 4.0 * error, (i, group)


@pytest.mark.slow
def test_control_the_other_order_is_another_end():
    """Taking the closed form of the wrong order misses the runs by far more than four standard errors."""
    sgd = tm.SGD(lr=0.1, proportions=tm.schedules.in_turn({"+": 15.0, "-": 10.0}))
    mean, error = over(tm.simulate(CENTRED, sgd, [25.0], curves=("loss",), **SIZE)["loss"].isel(time=0))
    wrong = tm.theory.one_after_the_other(CENTRED, tm.SGD(lr=0.1), {"-": 10.0, "+": 15.0}).loss
    assert (np.abs(mean - [wrong[g] for g in "+-"]) / error).max() > 40.0
