"""Fixed training sets: theory against runs at finite d, and what memorisation does to the order of the groups."""

import numpy as np
import pytest
import xarray as xr
from scipy.optimize import brentq

import tiltmeter as tm
from tiltmeter import SGD, Fixed, Flow, predict, simulate, teacher_mixture
from tiltmeter.theory import Descent, Direct
from tiltmeter.theory.problem.starts import Overlaps

CENTRED = teacher_mixture(rho=0.8, variance=(0.5, 1.5), overlap=0.5)
GENERAL = teacher_mixture(
    rho=0.7, shift=1.5, variance=(0.5, 1.2), overlap=0.6, shift_overlap=(0.5, -0.3), label_bias=(0.2, -0.4)
)
NOISY = teacher_mixture(
    rho=0.75, shift=1.0, variance=(0.5, 1.2), overlap=0.6, shift_overlap=(0.4, 0.2), label_bias=(0.2, -0.1)
)
#: Its two crossings of losses on a fixed set are one with fresh examples.
MAKES = teacher_mixture(rho=0.7, shift=4.0, variance=(0.1, 1.0), overlap=0.9, shift_overlap=(0.149, 0.188))
WEIGHTS, FLIPS = {"+": 0.7, "-": 1.9}, {"+": 0.1, "-": 0.25}
TEST, TRAIN = ("M", "R", "Q", "loss", "error"), ("training_loss", "training_error")
TIMES, STEPS = [0.1, 1.0, 5.0, 20.0, 100.0, 400.0], [1, 5, 20, 100, 200]
WARM = Overlaps(M={"+": 0.3, "-": -0.3}, R={"+": -0.2, "-": 0.4}, Q=2.2)


def deviations(problem, training, times, data, d, seeds, curves):
    """Largest deviation of the mean of the runs and largest z of each curve; z only where runs differ."""
    theory = predict(problem, training, times, data=data, curves=curves)
    options = {"method": Direct(), "data": data, "curves": curves}
    runs = simulate(problem, training, times, d=d, seeds=range(1000, 1000 + seeds), **options)
    found = {}
    for curve in curves:
        gap = np.abs(runs[curve].mean("seed").values - theory[curve].values)
        error = runs[curve].std("seed", ddof=1).values / np.sqrt(seeds)
        # A training error of zero in all runs has no standard error: a count below one is no deviation.
        counted = error > 1e-9
        z = np.where(counted, gap / np.where(counted, error, 1.0), 0.0)
        found[curve] = (float(gap.max()), float(z.max()))
    return found


def check(found, most, size):
    for curve, (gap, z) in found.items():
        assert z <= most, (curve, found)
        assert gap <= size, (curve, found)


class TestFast:
    def test_flow_agrees_with_runs(self):
        check(deviations(NOISY, Flow(1.0), [1.0, 20.0], Fixed(1.3, FLIPS), 100, 30, TEST + TRAIN), 4.0, 0.1)

    def test_sgd_agrees_with_runs(self):
        for replace in (False, True):
            curves = (*TEST, "training_loss")
            check(deviations(GENERAL, SGD(0.5), [1.0, 4.0], Fixed(2.0, replace=replace), 100, 30, curves), 4.0, 0.1)


@pytest.mark.slow
class TestRuns:
    @pytest.mark.parametrize(("d", "seeds"), [(200, 200), (400, 100)])
    def test_flow(self, d, seeds):
        check(deviations(GENERAL, Flow(1.0), TIMES, Fixed(2.0), d, seeds, TEST + TRAIN), 4.0, 0.02)
        noisy = Flow(1.0, weights=WEIGHTS, weight_decay=0.1)
        check(deviations(NOISY, noisy, TIMES, Fixed(1.3, FLIPS), d, seeds, TEST + TRAIN), 4.0, 0.02)

    @pytest.mark.parametrize("alpha", [0.5, 2.0])
    def test_warm_start(self, alpha):
        check(deviations(GENERAL, Flow(1.0, start=WARM), TIMES, Fixed(alpha), 300, 100, TEST + TRAIN), 4.0, 0.03)

    @pytest.mark.parametrize("momentum", [0.0, 0.5, 0.8])
    @pytest.mark.parametrize("bias", [False, True])
    def test_descent(self, momentum, bias):
        training = Descent(0.3, momentum=momentum, train_bias=bias)
        check(deviations(GENERAL, training, STEPS, Fixed(2.0), 300, 100, TEST + TRAIN), 4.0, 0.03)

    @pytest.mark.parametrize(("d", "seeds"), [(200, 200), (400, 100)])
    def test_replacement(self, d, seeds):
        curves = (*TEST, "training_loss")
        check(deviations(GENERAL, SGD(0.5), [0.5, 2, 4, 8], Fixed(2.0, replace=True), d, seeds, curves), 4.0, 0.02)
        check(deviations(CENTRED, SGD(0.6), [0.5, 1, 2, 4], Fixed(0.5, replace=True), d, seeds, curves), 4.0, 0.02)
        sgd, data = SGD(0.8, batch=2, weights=WEIGHTS), Fixed(1.3, FLIPS, replace=True)
        check(deviations(NOISY, sgd, [0.5, 1.3, 2.6, 5.2], data, d, seeds, curves), 4.0, 0.03)

    def test_shuffled(self):
        curves = (*TEST, "training_loss")
        check(deviations(GENERAL, SGD(0.5), [1, 2, 4, 8], Fixed(2.0), 400, 150, curves), 4.0, 0.02)
        check(deviations(CENTRED, SGD(0.6), [0.5, 1, 2, 4], Fixed(0.5), 400, 150, curves), 4.0, 0.02)
        data = Fixed(1.3, FLIPS)
        check(deviations(NOISY, SGD(0.5, weights=WEIGHTS), [0.65, 1.3, 2.6, 5.2], data, 400, 150, curves), 4.0, 0.02)

    def test_replacement_theory_fails_for_shuffled_runs(self):
        """The negative control: same problem, wrong theory. It is off by .05 in Q and by .3 in squared residuals."""
        times = [0.5, 1.0, 2.0, 4.0]
        curves = ("Q", "training_loss")
        wrong = predict(CENTRED, SGD(0.6), times, data=Fixed(0.5, replace=True), curves=curves)
        options = {"method": Direct(), "data": Fixed(0.5), "curves": curves}
        runs = simulate(CENTRED, SGD(0.6), times, d=400, seeds=150, **options)
        error = runs["Q"].std("seed", ddof=1) / np.sqrt(150)
        assert float((np.abs(runs["Q"].mean("seed") - wrong["Q"]) / error).max()) > 15.0
        assert float(np.abs(runs["Q"].mean("seed") - wrong["Q"]).max()) == pytest.approx(0.05, abs=0.01)
        residuals = 2.0 * np.abs(runs["training_loss"].mean("seed") - wrong["training_loss"])
        assert float(residuals.max()) == pytest.approx(0.3, abs=0.1)


def measured(problem, training, times, data, sizes, curves):
    """Signed deviations from the theory and their standard errors, (sizes, numbers), for each curve."""
    theory = predict(problem, training, times, data=data, curves=curves)
    found = {curve: ([], []) for curve in curves}
    for d, seeds in sizes.items():
        options = {"method": Direct(), "data": data, "curves": curves}
        runs = simulate(problem, training, times, d=d, seeds=range(2000, 2000 + seeds), **options)
        for curve, (gaps, errors) in found.items():
            gaps.append((runs[curve].mean("seed") - theory[curve]).values.ravel())
            errors.append((runs[curve].std("seed", ddof=1) / np.sqrt(runs[curve].notnull().sum("seed"))).values.ravel())
    return {curve: (np.array(gaps), np.array(errors)) for curve, (gaps, errors) in found.items()}


def scaled(gaps, errors, sizes, powers):
    """Weighted fit of gap = sum_k c_k / d^k, number by number: c_1, its standard error, and the z of what is left."""
    basis = np.stack([1.0 / np.array(list(sizes)) ** k for k in powers], axis=1)
    first, first_error, left = [], [], []
    for gap, error in zip(gaps.T, errors.T, strict=True):
        if (error < 1e-9).any():
            continue  # a training error of zero in all runs
        A = basis / error[:, None]
        covariance = np.linalg.inv(A.T @ A)
        c = covariance @ (A.T @ (gap / error))
        first.append(c[0])
        first_error.append(np.sqrt(covariance[0, 0]))
        left.append((gap - basis @ c) / error)
    return np.array(first), np.array(first_error), np.array(left)


@pytest.mark.slow
class TestFiniteSize:
    """Sizes and numbers of seeds of the reference notes (1.9); the theory is the limit, what is left falls with d."""

    def test_flow_with_fewer_examples_than_dimensions(self):
        sizes = {50: 4000, 100: 2000, 200: 1000, 400: 400}
        found = measured(CENTRED, Flow(1.0), TIMES[:-1], Fixed(0.5), sizes, TEST + TRAIN)
        largest = {}
        for curve, (gaps, errors) in found.items():
            counted = errors[-1] > 1e-9
            assert np.abs(gaps[-1][counted] / errors[-1][counted]).max(initial=0.0) <= 4.0, curve  # at d = 400
            largest[curve] = np.abs(gaps).max(1)
            if curve not in ("M", "training_error"):  # M is 0 here, training errors are mostly 0
                _, _, left = scaled(gaps, errors, sizes, (1, 2))
                assert np.abs(left).max() <= 4.0, curve
        assert largest["Q"][-1] < 0.02
        assert largest["error"][-1] < 0.003
        assert largest["error"][-1] < 0.6 * largest["error"][0]
        assert largest["Q"][-1] < 0.6 * largest["Q"][0]

    def test_shuffled_residuals_deviate_like_one_over_d(self):
        sizes = {100: 4000, 200: 2000, 400: 900, 800: 300}
        found = measured(CENTRED, SGD(0.6), [0.5, 1, 2, 4], Fixed(0.5), sizes, ("Q", "training_loss"))
        for curve, (gaps, errors) in found.items():
            assert np.abs(gaps[-1] / errors[-1]).max() <= 4.0, curve  # at d = 800
            _, _, left = scaled(gaps, errors, sizes, (1,))
            assert np.abs(left).max() <= 4.0, curve
        assert np.abs(found["Q"][0]).max() < 0.003
        slope, slope_error, _ = scaled(*found["training_loss"], sizes, (1,))
        assert np.abs(slope / slope_error).max() > 8.0  # the deviation is real: the control of the line above
        assert 0.2 < 2.0 * np.abs(slope).max() < 2.0


def crossing_of_means(runs, curve, near):
    """The time near `near` at which the mean curves of the groups cross, and its jackknife standard error."""
    values, times = runs[curve].transpose("seed", "time", "group").values, np.log(runs[curve].time.values)
    gap = values[:, :, 0] - values[:, :, 1]

    def where(mean):
        places = np.flatnonzero(np.sign(mean[1:]) != np.sign(mean[:-1]))
        i = places[np.abs(times[places] - np.log(near)).argmin()]
        return times[i] - mean[i] * (times[i + 1] - times[i]) / (mean[i + 1] - mean[i])

    count, total = len(gap), gap.sum(0)
    without = np.array([where((total - one) / (count - 1)) for one in gap])
    spread = np.sqrt((count - 1) * np.var(without))
    return np.exp(where(total / count)), np.exp(where(total / count)) * spread


@pytest.mark.slow
@pytest.mark.parametrize(
    ("problem", "alpha", "curve", "crossing_times"),
    [
        (teacher_mixture(rho=0.6, variance=(0.3, 1.2), overlap=0.3), 0.6, "error", (0.4442,)),
        (MAKES, 10.0, "loss", (0.1125, 7.327)),
        (MAKES, 4.0, "loss", (0.1319, 4.454)),
        (MAKES, 4.0, "error", (0.438, 8.42)),
    ],
)
def test_simulated_crossings(problem, alpha, curve, crossing_times):
    """Crossings that memorisation makes are there at finite d, at the times of the theory."""
    evaluations = np.unique(np.concatenate([t * np.geomspace(0.7, 1.4, 15) for t in crossing_times]))
    options = {"method": Direct(), "data": Fixed(alpha), "curves": (curve,)}
    d, seeds = (400, 200) if alpha < 10.0 else (200, 200)
    runs = simulate(problem, Flow(1.0), evaluations, d=d, seeds=range(3000, 3000 + seeds), **options)
    for expected in crossing_times:
        found, error = crossing_of_means(runs, curve, expected)
        assert abs(found - expected) < 4.0 * error, (found, error)
        assert error < 0.1 * expected


LONG = {"d": 800, "seeds": 8, "method": Direct(), "curves": ("Q",)}


@pytest.mark.slow
class TestStability:
    """The limit with replacement is 1.754 here; shuffled epochs are stabler (reference notes 1.6, 1.7)."""

    def test_replacement_settles_below_its_limit_and_diverges_above(self):
        data = Fixed(2.0, replace=True)
        below = simulate(CENTRED, SGD(1.7), [200.0], data=data, **LONG)["Q"].values
        with pytest.warns(UserWarning, match="seeds diverged"):
            above = simulate(CENTRED, SGD(1.8), [200.0], data=data, **LONG)["Q"].values
        assert np.median(below) < 100.0
        assert np.median(np.nan_to_num(above, nan=np.inf)) > 10.0 * np.median(below)

    def test_shuffled_epochs_settle_where_replacement_diverges(self):
        shuffled = simulate(CENTRED, SGD(1.9), [80.0], data=Fixed(2.0), **LONG)["Q"].values
        assert np.median(shuffled) == pytest.approx(5.5, rel=0.2)
        with pytest.warns(UserWarning, match="seeds diverged"):
            drawn = simulate(CENTRED, SGD(1.9), [80.0], data=Fixed(2.0, replace=True), **LONG)["Q"].values
        assert np.median(np.nan_to_num(drawn, nan=np.inf)) > 1000.0


def random_centred(count, seed):
    rng = np.random.default_rng(seed)

    def along(values):
        return xr.DataArray(values, dims="case", coords={"case": np.arange(count)})

    p, D = rng.uniform(0.1, 0.9, count), rng.uniform(0.2, 2.0, (2, count))
    problem = teacher_mixture(
        rho=along(p), variance=(along(D[0]), along(D[1])), overlap=along(rng.uniform(-0.5, 0.95, count))
    )
    # |1 - alpha| small relaxes slowly: those problems would need much later times.
    alpha = np.where(rng.random(count) < 0.5, rng.uniform(0.3, 0.75, count), rng.uniform(1.3, 3.0, count))
    return problem, np.stack([p, 1.0 - p]), D, alpha, along(alpha)


def end_of_training(p, D, alpha):
    """p sqrt(D) k of both groups at the end of ridgeless training: their order is that of the errors."""
    if alpha <= 1.0:
        return p / np.sqrt(D)
    q = brentq(lambda q: (p * D * q / (1.0 + D * q)).sum() - 1.0 / alpha, 0.0, 1e9)
    return p * np.sqrt(D) / (1.0 + D * q)


def test_errors_cross_on_a_fixed_set_just_where_the_first_and_the_last_order_differ():
    """200 random centred problems; with fresh examples the errors of centred groups never cross."""
    problem, p, D, alpha, samples = random_centred(200, 7)
    times = np.geomspace(1e-3, 3e4, 160)
    found = predict(problem, Flow(1.0), times, ("error",), data=Fixed(samples))
    count = tm.theory.crossing_count(found, "error").values
    first = p * np.sqrt(D)
    last = np.stack([end_of_training(p[:, i], D[:, i], alpha[i]) for i in range(200)], axis=1)
    expected = ((first[0] > first[1]) != (last[0] > last[1])).astype(int)
    assert expected.sum() >= 15
    np.testing.assert_array_equal(count, expected)
    online = predict(problem, Flow(1.0), times[times < 300.0], ("error",))
    assert tm.theory.crossing_count(online, "error").values.max() == 0


@pytest.mark.slow
def test_what_memorisation_does_to_random_centred_problems():
    """It makes crossings of losses, removes none, and the best times of the groups differ by a factor.

    Who stops first depends on how problems are drawn: here the group of larger variance in 115 of 200.
    """
    problem, _, _, _, _ = random_centred(200, 11)
    times = np.geomspace(1e-3, 300.0, 240)
    online = tm.theory.crossing_count(predict(problem, Flow(1.0), times, ("loss",)), "loss").values
    counts = {}
    for alpha in (2.0, 0.5):
        found = predict(problem, Flow(1.0), times, ("loss",), data=Fixed(alpha))
        counts[alpha] = tm.theory.crossing_count(found, "loss").values
        if alpha == 2.0:
            stops = found["loss"].idxmin("time").transpose("group", "case").values
    without = online == 0
    assert without.sum() > 100
    assert (counts[2.0][without] > 0).mean() > 0.3
    assert (counts[0.5][without] > 0).sum() >= (counts[2.0][without] > 0).sum()
    assert (counts[2.0][~without] > 0).all()
    factor = np.maximum(stops[0] / stops[1], stops[1] / stops[0])
    assert 2.0 < np.median(factor) < 5.0


def test_crossings_that_memorisation_moves():
    times = np.geomspace(0.01, 100.0, 100)
    expected = {None: 0.807, 10.0: 0.644, 2.0: 0.347, 1.05: 0.226, 0.4: 0.102}
    for alpha, time in expected.items():
        data = None if alpha is None else Fixed(alpha)
        (only,) = tm.leaders(predict(CENTRED, Flow(1.0), times, ("loss",), data=data), "loss").changes
        assert only.time == pytest.approx(time, abs=6e-4)


def test_crossings_that_memorisation_makes_and_removes():
    times = np.geomspace(0.01, 100.0, 100)
    assert len(tm.leaders(predict(MAKES, Flow(1.0), times, ("loss",)), "loss").changes) == 1
    for alpha, places in ((10.0, (0.1125, 7.327)), (4.0, (0.1319, 4.454))):
        found = tm.leaders(predict(MAKES, Flow(1.0), times, ("loss",), data=Fixed(alpha)), "loss")
        np.testing.assert_allclose([one.time for one in found.changes], places, rtol=1e-3)
    errors = tm.leaders(predict(MAKES, Flow(1.0), times, ("error",), data=Fixed(4.0)), "error")
    np.testing.assert_allclose([one.time for one in errors.changes], (0.438, 8.42), rtol=2e-3)
    removes = teacher_mixture(rho=0.7, shift=4.0, variance=(0.1, 1.0), overlap=0.9, shift_overlap=(0.149, -0.188))
    assert len(tm.leaders(predict(removes, Flow(1.0), times, ("loss",)), "loss").changes) == 2
    assert len(tm.leaders(predict(removes, Flow(1.0), times, ("loss",), data=Fixed(4.0)), "loss").changes) == 0


def test_error_crossings_pinned():
    problem = teacher_mixture(rho=0.6, variance=(0.3, 1.2), overlap=0.3)
    times = np.geomspace(0.01, 300.0, 100)
    for alpha, time in ((0.6, 0.4442), (1.5, 1.2279)):
        (only,) = tm.leaders(predict(problem, Flow(1.0), times, ("error",), data=Fixed(alpha)), "error").changes
        assert only.time == pytest.approx(time, rel=7e-4)  # the reference notes interpolate between evaluations


def test_each_group_has_a_best_time_and_a_peak_of_its_own():
    times = np.geomspace(0.05, 3000.0, 500)
    data = Fixed(("samples", [0.6, 1.1, 2.0, 3.0]))
    clean = predict(CENTRED, Flow(1.0), times, ("loss",), data=data)
    stops = clean["loss"].idxmin("time").sel(samples=2.0).values
    np.testing.assert_allclose(stops, (3.20, 0.58), rtol=0.03)
    ends = clean["loss"].isel(time=-1).sel(samples=[0.6, 1.1, 3.0]).values.T
    np.testing.assert_allclose(ends, [(0.609, 1.468), (2.171, 6.567), (0.316, 0.839)], atol=6e-4)
    noisy = predict(CENTRED, Flow(1.0), times, ("loss",), data=Fixed(("samples", [0.6, 1.1, 3.0]), {"+": 0.3}))
    ends = noisy["loss"].isel(time=-1).values.T
    np.testing.assert_allclose(ends, [(0.962, 2.137), (4.103, 11.718), (0.483, 0.790)], atol=6e-4)
    best = clean["loss"].min("time").values
    assert (np.diff(best, axis=1) < 0).all()
