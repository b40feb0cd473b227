"""The constants and presets that the papers' formulas give, to the digits noted when they were derived."""

import numpy as np
import pytest

import tiltmeter as tm
from tiltmeter import SGD, drivers, predict, teacher_mixture, timescales
from tiltmeter.theory import cases
from tiltmeter.theory.dynamics.closed_form import two_group_constants
from tiltmeter.theory.dynamics.limits import asymptotes
from tiltmeter.theory.dynamics.stability import stability_limit
from tiltmeter.theory.problem.starts import Random

GENERAL = teacher_mixture(0.7, 1.5, (0.5, 1.2), 0.6, (0.5, -0.3), (0.2, -0.4))
CENTRED = teacher_mixture(0.75, 0.0, (0.5, 1.5), 0.7)
FIG10 = {"rho": 0.7, "shift": 4.0, "variance": (0.1, 1.0), "overlap": 0.9}
H2 = teacher_mixture.from_thresholds((0.471, -0.188), **FIG10)
H2_PRIME = teacher_mixture(shift_overlap=(0.471 * np.sqrt(0.1), -0.188), **FIG10)
H7 = teacher_mixture.from_mean_labels((0.471, -0.188), **FIG10)


def test_constants_of_the_general_case():
    k = two_group_constants(GENERAL, SGD(lr=0.3, start=Random(1.0)))
    assert round(k.Minf, 5) == 0.35614
    assert k.Rinf.round(5).tolist() == [0.66013, 0.51302]
    assert round(k.Qinf, 5) == 0.58691
    assert {name: round(tau, 5) for name, tau in k.tau.items()} == {"M": 1.5083, "R": 4.69484, "Q": 2.69273}


def test_constants_of_the_centred_case():
    k = two_group_constants(CENTRED, SGD(lr=0.2))
    assert k.Rinf.round(5).tolist() == [0.79220, 0.72067]
    assert (round(k.Qinf, 5), round(k.k2, 5)) == (0.74065, 1.41645)
    assert (round(k.tau["R"], 5), round(k.tau["Q"], 5)) == (6.66667, 3.70370)


def test_constants_of_figure_10():
    k = two_group_constants(H2, SGD(lr=0.1))
    assert round(k.Minf, 5) == 0.28863
    assert k.Rinf.round(5).tolist() == [1.0032, 1.02507]
    assert round(k.Qinf, 5) == 1.11319
    assert k.k1.round(5).tolist() == [0.01075, 0.01357]
    assert (round(k.k2, 5), round(k.k3, 5), round(k.k4, 5)) == (2.17745, 0.04091, -0.02036)


@pytest.mark.parametrize("sgd_problem", [(GENERAL, 0.3), (CENTRED, 0.2), (H2, 0.1), (H2, 0.5)])
def test_the_general_solution_has_the_same_limits_and_time_scales(sgd_problem):
    problem, lr = sgd_problem
    k, ends, scales = (
        two_group_constants(problem, SGD(lr=lr)),
        asymptotes(problem, SGD(lr=lr)),
        timescales(problem, SGD(lr=lr)),
    )
    assert ends.M.values == pytest.approx([k.Minf, -k.Minf], abs=1e-12)
    assert ends.R.values == pytest.approx(k.Rinf, abs=1e-12)
    assert ends.Q.item() == pytest.approx(k.Qinf, abs=1e-12)
    assert [scales.M.values[0], scales.R.item(), scales.Q.item()] == pytest.approx(list(k.tau.values()), rel=1e-12)


def centred(rho, minus, overlap):
    return teacher_mixture(rho=rho, variance=(0.5, minus), overlap=overlap)


PRESETS = [
    ("rho .8, D .5/1.5, T .5", centred(0.8, 1.5, 0.5), 0.1, ["5.643"], (0.2340, 0.4416)),
    ("rho .8, D .5/1.5, T .9", centred(0.8, 1.5, 0.9), 0.1, ["21.55"], (0.2049, 0.2915)),
    ("rho .75, D .5/1, T .5", centred(0.75, 1.0, 0.5), 0.1, ["2.836"], (0.2293, 0.3778)),
    ("rho .75, D .5/1, T .9", centred(0.75, 1.0, 0.9), 0.3, ["6.598"], (0.2108, 0.2689)),
    ("rho .9, D .5/1, T .9", centred(0.9, 1.0, 0.9), 0.05, ["37.51"], (0.1866, 0.2836)),
    ("rho .7, D .5/1, T .2", centred(0.7, 1.0, 0.2), 0.1, [], (0.2728, 0.4235)),
    ("H2, lr .5", H2, 0.5, ["1.128", "11.88"], (0.2726, 0.3158)),
    ("H2', lr .1", H2_PRIME, 0.1, ["7.79", "64.16"], (0.2778, 0.3113)),
    ("H7, lr .3", H7, 0.3, ["3.62", "20.71"], (0.249, 0.280)),
    ("H2, lr .1", H2, 0.1, ["1.74"], None),
    ("H2, lr 1", H2, 1.0, [], None),
]


@pytest.mark.parametrize(("problem", "lr", "times", "final"), [p[1:] for p in PRESETS], ids=[p[0] for p in PRESETS])
def test_presets(problem, lr, times, final):
    theory = predict(problem, SGD(lr=lr), np.geomspace(1e-3, 4000.0, 400), curves=("loss",))
    found = tm.leaders(theory, "loss")
    assert [f"{c.time:.{len(t.replace('.', ''))}g}" for c, t in zip(found.changes, times, strict=True)] == times
    if final is not None:
        digits = 3 if final == (0.249, 0.280) else 4
        assert tuple(asymptotes(problem, SGD(lr=lr)).loss.values.round(digits)) == final


def test_errors_and_time_scales_of_the_presets():
    problem, sgd, _ = cases.centred_crossing()
    assert asymptotes(problem, sgd).error.values.round(4).tolist() == [0.1167, 0.2460]
    problem, sgd, _ = cases.three_phases()
    scales = timescales(problem, sgd)
    assert [round(float(scales[n].values.flat[0]), 2) for n in "MRQ"] == [0.46, 5.41, 3.41]
    assert round(stability_limit(problem, sgd).item(), 2) == 2.41


DRIVERS = [
    ("H2, lr .5", H2, 0.5, [(0.1, -0.00457, -0.00463, 0.00153, -0.00146), (0.6, -0.01000, -0.01891, 0.01607, -0.00716),
                            (4.0, 0.04234, -0.02549, 0.08355, -0.01571), (30.0, -0.04121, -0.01287, 0.02275, -0.05109)]),
    ("H2', lr .1", H2_PRIME, 0.1, [(1.0, -0.01871, -0.01596, 0.00919, -0.01194), (25.0, 0.04815, -0.04349, 0.13022, -0.03857),
                                   (300.0, -0.03351, -0.03314, 0.06908, -0.06945)]),
    ("centred", centred(0.8, 1.5, 0.5), 0.1, [(1.0, 0.00512, 0.0, 0.02360, -0.01848), (30.0, -0.14743, 0.0, 0.05863, -0.20606)]),
]  # fmt: skip


@pytest.mark.parametrize(("problem", "lr", "rows"), [d[1:] for d in DRIVERS], ids=[d[0] for d in DRIVERS])
def test_drivers_table(problem, lr, rows):
    split = drivers(problem, SGD(lr=lr), [row[0] for row in rows])
    for i, (_, *expected) in enumerate(rows):
        found = [split[name].values[i] for name in ("loss_gap", "shift", "variance", "representation")]
        assert np.round(found, 5) == pytest.approx(expected, abs=1e-9)
    total = sum(split[name] for name in ("shift", "variance", "representation", "rest"))
    np.testing.assert_allclose(total, split["loss_gap"], atol=1e-14)


def test_the_spurious_weight_peaks_and_fades_to_its_known_limit():
    problem, sgd, _ = cases.spurious_correlation()
    theory = predict(problem, sgd, np.linspace(0.1, 400.0, 4000), curves=("M", "R", "loss_gap"))
    M, R, A, v = theory["M"].sel(group="+"), theory["R"].sel(group="+"), 0.3, 1.0
    spurious = (M - A * R) / (v - A**2)
    peak = spurious.isel(time=int(spurious.values.argmax()))
    assert (round(peak.item(), 4), round(float(peak.time), 1)) == (0.1295, 11.4)
    assert round(spurious.values[-1], 5) == 0.01283
    assert abs(theory["loss_gap"]).max() < 1e-14  # negative control: equal groups, so no bias between them
