"""Centred problems from zero: one crossing exactly if the first and the final leader differ."""

import numpy as np
import xarray as xr

import tiltmeter as tm
from tiltmeter import SGD, predict, teacher_mixture
from tiltmeter.theory.dynamics.limits import final_leader, first_leader

NUMBER = 4000


def random_centred():
    rng = np.random.default_rng(2024)
    case = {"case": np.arange(NUMBER)}

    def draw(low, high):
        return xr.DataArray(rng.uniform(low, high, NUMBER), dims="case", coords=case)

    plus, minus = draw(0.1, 2.0), draw(0.1, 2.0)
    rho, overlap = draw(0.05, 0.95), draw(-0.2, 0.99)
    D = rho * plus + (1 - rho) * minus
    limit = 2 * D / (rho * plus**2 + (1 - rho) * minus**2)
    lr = draw(0.02, 0.95) * limit
    return rho, plus, minus, overlap, lr, teacher_mixture(rho=rho, variance=(plus, minus), overlap=overlap)


def test_one_crossing_iff_the_two_winners_differ():
    rho, plus, minus, overlap, lr, problem = random_centred()
    slowest = 1.0 / (lr * (rho * plus + (1 - rho) * minus)).min().item()
    times = np.geomspace(1e-5, 60 * slowest, 1500)
    counts = np.zeros(NUMBER, dtype=int)
    for low in range(0, NUMBER, 1000):  # in parts, to keep memory small
        part = problem.replace(
            weight={g: problem.weight.sel(group=g, drop=True)[low : low + 1000] for g in "+-"},
            variance={g: problem.variance.sel(group=g, drop=True)[low : low + 1000] for g in "+-"},
            gram=problem.gram[..., low : low + 1000],
        )
        theory = predict(part, SGD(lr=lr[low : low + 1000]), times, curves=("loss",))
        counts[low : low + 1000] = tm.theory.crossing_count(theory).values
    first, final = first_leader(problem, SGD(lr=lr)).values, final_leader(problem, SGD(lr=lr)).values
    assert (counts == (first != final)).all()
    assert 200 < counts.sum() < NUMBER / 2  # both kinds occur

    # the same winners from the analytic conditions
    early = rho * plus - (1 - rho) * minus + overlap * np.sqrt(plus * minus) * (1 - 2 * rho)
    noise = lr * np.pi / 4 * (rho * plus + (1 - rho) * minus) * (plus - minus)
    assert ((early > noise).values == (first == "+")).all()


def test_small_learning_rates_order_the_final_losses_by_representation():
    rho, plus, minus, _, _, problem = random_centred()
    final = final_leader(problem, SGD(lr=1e-7)).values
    clear = abs(rho * np.sqrt(plus) - (1 - rho) * np.sqrt(minus)).values > 1e-4
    expected = (rho * np.sqrt(plus) > (1 - rho) * np.sqrt(minus)).values
    assert ((final == "+") == expected)[clear].all()


def test_the_final_gap_has_its_closed_form():
    rho, plus, minus, overlap, lr, problem = random_centred()
    from tiltmeter.theory.dynamics.limits import asymptotes

    ends = asymptotes(problem, SGD(lr=lr))
    a, b, D = rho * np.sqrt(plus), (1 - rho) * np.sqrt(minus), rho * plus + (1 - rho) * minus
    D2 = rho * plus**2 + (1 - rho) * minus**2
    small = asymptotes(problem, SGD(lr=1e-9)).loss
    excess = lr * 2 * (rho * plus * small.sel(group="+") + (1 - rho) * minus * small.sel(group="-")) / (2 * D - lr * D2)
    order = -(a**2 - b**2) * (plus + minus - 2 * overlap * np.sqrt(plus * minus)) / (np.pi * D**2)
    expected = order + 0.5 * (plus - minus) * excess
    np.testing.assert_allclose(ends.loss_gap.isel(pair=0).values, expected.values, atol=1e-7)
