"""predict under interventions of groups: the table of the four cases, lowering, negative controls, refusals."""

import warnings
from dataclasses import dataclass

import numpy as np
import pytest

import tiltmeter as tm
from tiltmeter.interventions.group_intervention import GroupIntervention
from tiltmeter.theory.dynamics.ode import integrate
from tiltmeter.theory.dynamics.steered_ode import SteeredODE
from tiltmeter.theory.problem.applied_interventions import lowered

I = tm.interventions
CASES = {
    "A": (tm.teacher_mixture(0.75, 0.0, (0.5, 1.5), 0.7), 0.2, 60.0),
    "B": (tm.teacher_mixture(0.7, 4.0, (0.1, 1.0), 0.9, (0.471 * np.sqrt(0.1), 0.188)), 0.5, 40.0),
    "C": (tm.teacher_mixture(0.7, 1.5, (0.5, 1.2), 0.6, (0.5, -0.3), (0.2, -0.4)), 0.3, 40.0),
    "D": (tm.teacher_mixture(0.8, 0.0, (0.5, 1.0), 0.3), 0.2, 60.0),
}
PLAIN, DRAWS, WEIGHTS = (), (I.Balanced(by="draws"),), (I.Balanced(),)
DRO5 = (I.GroupDRO(5.0, begin="shares", by="draws"),)
DRO30 = (I.GroupDRO(30.0, begin="shares", by="draws"),)
PI = (I.GroupDRO(30.0, 150.0, begin="shares", by="draws"),)
#: Case, interventions, area under |gap|, area under the worst loss, last worst loss, crossings (None: not in the
#: table).
TABLE = [
    ("A", PLAIN, 5.233, 20.667, 0.3512, 1),
    ("A", DRAWS, 2.529, 18.123, 0.2888, None),
    ("A", WEIGHTS, 1.271, 18.752, 0.2995, None),
    ("A", DRO5, 0.555, 17.441, 0.2734, 6),
    ("A", DRO30, 0.303, 17.305, 0.2733, 15),
    ("A", PI, 0.053, 17.184, 0.2732, 1),
    ("A", (I.VREx(10.0),), 0.562, 18.170, 0.2923, None),
    ("A", (I.DualAscent(0.31, 1.0),), 2.471, 18.922, 0.3102, None),
    ("B", PLAIN, 1.237, 12.637, 0.3156, 2),
    ("B", DRAWS, 1.500, 12.373, 0.2972, None),
    ("B", WEIGHTS, 0.685, 13.257, 0.3263, None),
    ("B", DRO5, 0.584, 12.202, 0.2856, 4),
    ("B", DRO30, 0.298, 12.065, 0.2850, 9),
    ("B", PI, 0.129, 11.999, 0.2851, 2),
    ("C", PLAIN, 8.03, 18.03, 0.443, None),
    ("C", DRAWS, 1.50, 14.00, 0.339, None),
    ("C", DRO30, 0.182, None, 0.322, 23),
    ("C", PI, 0.034, None, 0.322, 0),
    ("D", PLAIN, 13.9, 29.6, 0.519, None),
    ("D", DRAWS, 3.60, 21.6, 0.349, None),
    ("D", DRO30, 0.189, None, 0.322, 18),
    ("D", PI, 0.037, None, 0.322, 0),
]


def times(until, count=600):
    return np.concatenate([[0.0], np.geomspace(until / 3000.0, until, count)])


def run(case, laws, at=None, **more):
    problem, lr, until = CASES[case]
    return tm.predict(problem, tm.SGD(lr=lr, interventions=laws, **more), times(until) if at is None else at)


def digits(value):
    text = f"{value}"
    return 0.5 * 10.0 ** -len(text.split(".")[1]) + 1e-12


@pytest.mark.parametrize(
    ("case", "laws", "gap", "worst", "last", "crossed"),
    # Rows that are integrated take seconds with their crossings: of those, some of case A are fast enough for every
    # day.
    [
        pytest.param(
            *row, marks=[] if row[1] in (PLAIN, DRAWS, WEIGHTS) or row[1:] == TABLE[5][1:] else pytest.mark.slow
        )
        for row in TABLE
    ],
)
def test_the_table(case, laws, gap, worst, last, crossed):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = run(case, laws)
    loss, t = found["loss"].values, found["loss"].coords["time"].values
    assert np.trapezoid(abs(loss[:, 0] - loss[:, 1]), t) == pytest.approx(gap, abs=1.2 * digits(gap))
    if worst is not None:
        assert np.trapezoid(loss.max(1), t) == pytest.approx(worst, abs=1.2 * digits(worst))
    assert loss[-1].max() == pytest.approx(last, abs=1.2 * digits(last))
    if crossed is not None:
        assert len(tm.leaders(found, "loss").changes) == crossed


class TestLowering:
    @pytest.mark.parametrize("by", ["weights", "draws"])
    @pytest.mark.parametrize("power", [0.0, 0.5, 1.3])
    def test_a_constant_law_is_in_closed_form(self, by, power):
        problem, lr, until = CASES["C"]
        law = I.Balanced(power, by=by)
        sgd = tm.SGD(lr=lr, train_bias=True, weight_decay=0.1, batch=2, interventions=(law,))
        at = times(until, 40)
        states = SteeredODE.of(problem, sgd, law)
        overlaps, pull = states.curves(at, states.states(at)[0])
        found = tm.predict(problem, sgd, at)
        np.testing.assert_allclose(found["loss"].values, overlaps.loss[0], atol=3e-10)
        np.testing.assert_allclose(found["pull"].values, pull[0], atol=1e-14)

    def test_shares_change_nothing_bit_by_bit(self):
        for by in ("weights", "draws"):
            plain, same = run("C", ()), run("C", (I.Balanced(1.0, by=by),))
            np.testing.assert_array_equal(plain["loss"].values, same["loss"].values)
            seeds = [tm.simulate(CASES["C"][0], tm.SGD(lr=0.3, interventions=x), [1.0], d=50, seeds=2)["loss"].values
                     for x in ((), (I.Balanced(1.0, by=by),))]  # fmt: skip
            np.testing.assert_array_equal(*seeds)

    def test_it_multiplies_with_weights_and_takes_over_proportions(self):
        problem = tm.teacher_mixture(rho=0.75)
        sgd = lowered(problem, tm.SGD(lr=0.1, weights={"-": 2.0}, interventions=(I.Balanced(),)))
        assert sgd.weights == pytest.approx({"+": 0.5 / 0.75, "-": 2.0 * 0.5 / 0.25})
        assert sgd.interventions == ()
        half = lowered(
            problem, tm.SGD(lr=0.1, proportions={"+": 0.9, "-": 0.1}, interventions=(I.Balanced(0.5, by="draws"),))
        )
        assert half.proportions == pytest.approx({"+": 0.75, "-": 0.25})

    def test_weights_and_draws_have_the_noise_of_the_table(self):
        from tiltmeter.theory.problem.sgd_arrays import parameters

        problem = tm.teacher_mixture(rho=0.9, variance=(1.0, 1.0))
        noise = [
            parameters(problem, tm.SGD(lr=1.0, interventions=(I.Balanced(by=by),))).noise[0]
            for by in ("weights", "draws")
        ]
        np.testing.assert_allclose(noise[0], [0.25 / 0.9, 2.5])
        np.testing.assert_allclose(noise[1], [0.5, 0.5])

    def test_schedules_of_weights_beside_it(self):
        problem, lr, _ = CASES["C"]
        steps = tm.schedules.Steps((0.0, 2.0), (1.0, 3.0))
        sgd = tm.SGD(lr=lr, weights={"-": steps}, interventions=(I.Balanced(),))
        law = I.PullSchedule({"+": 0.5, "-": 0.5})
        again = tm.SGD(lr=lr, weights={"-": steps}, interventions=(law,))
        at = [1.0, 3.0, 9.0]
        found, other = tm.predict(problem, sgd, at), tm.predict(problem, again, at)
        np.testing.assert_allclose(found["loss"].values, other["loss"].values, atol=1e-9)


class TestNegativeControls:
    def test_identical_groups_are_left_alone_by_draws_and_disturbed_by_weights(self):
        problem = tm.teacher_mixture(rho=0.8, variance=(1.0, 1.0), overlap=1.0)
        at = times(60.0, 60)
        plain = tm.predict(problem, tm.SGD(lr=0.2), at)["loss"].values
        for law in (I.Balanced(by="draws"), I.GroupDRO(5.0, by="draws")):
            found = tm.predict(problem, tm.SGD(lr=0.2, interventions=(law,)), at)["loss"].values
            np.testing.assert_allclose(found, plain, atol=1e-10)
        weighed = tm.predict(problem, tm.SGD(lr=0.2, interventions=(I.Balanced(),)), at)["loss"].values
        assert (weighed - plain).max() == pytest.approx(0.0168, abs=1e-4)
        # The end of training in this problem: (1 - 2/pi) / 2 over 1 - lr N / 2, with N = 1 and sum P^2 / p.
        ends = [0.5 * (1 - 2 / np.pi) / (1 - 0.1 * noise) for noise in (1.0, 0.25 / 0.8 + 0.25 / 0.2)]
        np.testing.assert_allclose([plain[-1, 0], weighed[-1, 0]], ends, atol=1e-6)

    def test_dro_of_rate_zero_is_balancing(self):
        for case in ("A", "C"):
            zero = run(case, (I.GroupDRO(0.0),), times(CASES[case][2], 60))
            balanced = run(case, (I.Balanced(),), times(CASES[case][2], 60))
            np.testing.assert_allclose(zero["loss"].values, balanced["loss"].values, atol=1e-9)

    def test_a_bound_that_is_met_anyway_changes_nothing(self):
        at = times(60.0, 60)
        plain, free = run("A", (), at), run("A", (I.DualAscent(np.inf, 1.0),), at)
        np.testing.assert_allclose(plain["loss"].values, free["loss"].values, atol=1e-9)

    def test_laws_of_strength_zero_are_plain(self):
        at = times(60.0, 40)
        plain = run("C", (), at)["loss"].values
        for law in (I.Tilted(0.0), I.GroupCVaR(1.0), I.ChiSquareDRO(1e-12)):
            np.testing.assert_allclose(run("C", (law,), at)["loss"].values, plain, atol=1e-8)


class TestWhatItDoes:
    def test_dro_ends_alike_whatever_the_shares(self):
        problem = tm.teacher_mixture(rho=("rho", [0.6, 0.75, 0.9]), variance=(0.5, 1.5), overlap=0.7)
        found = tm.predict(problem, tm.SGD(lr=0.2, interventions=DRO5), [0.0, 200.0])["loss"]
        np.testing.assert_allclose(found.isel(time=-1).values, 0.273, atol=5e-4)

    def test_a_grid_is_the_same_as_one_by_one(self):
        shares = [0.6, 0.75, 0.9]
        grid = tm.teacher_mixture(rho=("rho", shares), variance=(0.5, 1.5), overlap=0.7)
        at = times(40.0, 30)
        for law in (DRO5, (I.VREx(2.0, positive=True, by="draws"),)):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                whole = tm.predict(grid, tm.SGD(lr=0.2, interventions=law), at)
                for rho in shares:
                    one = tm.predict(
                        tm.teacher_mixture(rho, 0.0, (0.5, 1.5), 0.7), tm.SGD(lr=0.2, interventions=law), at
                    )
                    for name in ("loss", "pull"):
                        np.testing.assert_allclose(whole[name].sel(rho=rho).values, one[name].values, atol=2e-7)

    def test_the_published_code_equalises_something_else(self):
        """Natural batches of one: absent groups count as loss 0, so what is made equal is p_g loss_g."""

        @dataclass(frozen=True)
        class AsPublished(GroupIntervention):
            def pull(self, z, seen):
                q = np.exp(z - z.max(-1, keepdims=True))
                return q / q.sum(-1, keepdims=True) * seen.shares

            def change(self, z, seen):  # noqa: ARG002
                return 2.0 * seen.shares * seen.losses

        loss = run("C", (AsPublished(),), [0.0, 20.0])["loss"].values[-1]
        np.testing.assert_allclose(loss, [0.2006, 0.4935], atol=1e-4)
        np.testing.assert_allclose(loss * [0.7, 0.3], [0.140, 0.148], atol=1e-3)
        even = run("C", (I.GroupDRO(1.0),), [0.0, 20.0], proportions={"+": 0.5, "-": 0.5})["loss"].values[-1]
        np.testing.assert_allclose(even, [0.3264, 0.3232], atol=1e-4)

    @pytest.mark.parametrize(("shares", "loss"), [((0.5, 0.5), (0.2495, 0.2517)), ((0.75, 0.25), (0.2155, 0.3399))])
    def test_normalised_gradients_in_their_limit(self, shares, loss):
        sgd = tm.SGD(
            lr=0.05, batch=64, proportions=dict(zip("+-", shares, strict=True)), interventions=(I.NormalisedGradient(),)
        )
        found = tm.theory.gram_limit(CASES["A"][0], sgd, [0.0, 60.0])
        np.testing.assert_allclose(found["loss"].values[-1], loss, atol=1e-4)

    def test_upgrad_is_balancing_in_its_limit(self):
        at = times(20.0, 20)
        even = {"+": 0.5, "-": 0.5}
        up = tm.theory.gram_limit(
            CASES["A"][0], tm.SGD(lr=0.2, batch=64, proportions=even, interventions=(I.UPGrad(),)), at
        )
        plain = tm.predict(CASES["A"][0], tm.SGD(lr=0.2, batch=64, proportions=even), at)
        np.testing.assert_allclose(up["loss"].values, plain["loss"].values, atol=1e-8)

    def test_crossing_times_over_rates(self):
        for lr, at in ((0.02, 1.82), (0.05, 1.73), (0.1, 1.58), (0.2, 1.27), (0.4, 0.53)):
            found = tm.leaders(tm.predict(CASES["A"][0], tm.SGD(lr=lr), times(12.0 / lr)), "loss")
            assert lr * found.changes[0].time == pytest.approx(at, abs=0.006)
        assert not tm.leaders(tm.predict(CASES["A"][0], tm.SGD(lr=0.8), times(15.0)), "loss").changes

    @pytest.mark.parametrize(("rate", "half"), [(5.0, 9.85), pytest.param(30.0, 3.91, marks=pytest.mark.slow)])
    def test_dro_rings_at_its_own_period(self, rate, half):
        found = tm.leaders(run("A", (I.GroupDRO(rate, begin="shares", by="draws"),)), "loss")
        gaps = np.diff([one.time for one in found.changes])
        assert gaps[-3:].mean() == pytest.approx(half, abs=0.03)


class TestTrajectory:
    def test_evaluated_again_and_from_the_disk(self, tmp_path):
        found = run("A", DRO5, times(60.0, 80))
        at = [3.3, 17.0, 59.0]
        again = tm.predict(CASES["A"][0], tm.SGD(lr=0.2, interventions=DRO5), at)
        np.testing.assert_allclose(found.evaluate(at)["loss"].values, again["loss"].values, atol=1e-9)
        tm.save(found, tmp_path / "run")
        loaded = tm.load(tmp_path / "run")
        assert len(tm.leaders(loaded, "loss").changes) == len(tm.leaders(found, "loss").changes) == 6
        assert tm.leaders(loaded, "loss").changes[0].time == pytest.approx(
            tm.leaders(found, "loss").changes[0].time, abs=1e-9
        )
        assert tm.SGD.from_json(loaded.origin.settings["sgd"]).law == DRO5[0]

    def test_phases_name_no_driver_under_a_law(self):
        found = tm.leaders(run("A", DRO5, times(60.0, 80)), "loss")
        assert len(found.phases) == 7
        assert {phase.driver for phase in found.phases} == {None}

    def test_breaks_inside_a_law_reach_the_integrator(self):
        steps = tm.schedules.Steps((0.0, 5.0), (0.9, 0.2)), tm.schedules.Steps((0.0, 5.0), (0.1, 0.8))
        law = I.PullSchedule(dict(zip("+-", steps, strict=True)), by="weights")
        sgd = tm.SGD(lr=0.2, interventions=(law,))
        assert sgd.breaks == (5.0,)
        problem = CASES["A"][0]
        weights = {
            "+": tm.schedules.Steps((0.0, 5.0), (0.9 / 0.75, 0.2 / 0.75)),
            "-": tm.schedules.Steps((0.0, 5.0), (0.4, 3.2)),
        }
        at = np.array([4.0, 5.0, 6.0, 20.0])
        other = integrate(problem, tm.SGD(lr=0.2, weights=weights), at)[1]
        np.testing.assert_allclose(tm.predict(problem, sgd, at)["loss"].values, other.loss[0], atol=1e-9)

    def test_one_that_diverges_raises_and_in_a_grid_leaves_the_others(self):
        with pytest.raises(ValueError, match=r"grows without bound after t = 8.4"):
            run("B", (I.VREx(10.0),))
        problem, lr, _ = CASES["B"]
        sgd = tm.SGD(lr=("lr", [0.1, lr]), interventions=(I.VREx(10.0),))
        with pytest.warns(UserWarning, match="1 of 2 grid points diverge under VREx"):
            found = tm.predict(problem, sgd, times(40.0, 20))
        assert np.isfinite(found["loss"].sel(lr=0.1)).all()
        assert np.isnan(found["loss"].sel(lr=lr)).all()
        assert np.isnan(found["pull"].sel(lr=lr)).all()
        assert found.diverged.sel(lr=lr) == pytest.approx(8.49, abs=0.05)

    def test_a_bound_out_of_reach_is_told(self):
        with pytest.warns(
            UserWarning, match="is still above its bound 0.25. It may need more time, or the bound cannot"
        ):
            run("A", (I.DualAscent(0.25, 1.0, by="draws"),))

    def test_networks_are_left_to_simulate(self):
        sgd = tm.SGD(lr=0.2, interventions=DRO5)
        with pytest.raises(ValueError, match=r"`predict` applies GroupDRO to linear students only. Use `simulate`."):
            tm.predict(CASES["A"][0], sgd, [1.0], student=tm.theory.students.Network(2))
        balanced = tm.predict(CASES["A"][0], tm.SGD(lr=0.2, start=tm.theory.starts.Random(1.0), interventions=(I.Balanced(by="draws"),)),
                              [1.0], student=tm.theory.students.Network(2))  # fmt: skip
        even = tm.predict(CASES["A"][0], tm.SGD(lr=0.2, start=tm.theory.starts.Random(1.0), proportions={"+": 0.5, "-": 0.5}),
                          [1.0], student=tm.theory.students.Network(2))  # fmt: skip
        np.testing.assert_array_equal(balanced["loss"].values, even["loss"].values)


def test_three_groups():
    weight = {"a": 0.6, "b": 0.3, "c": 0.1}
    rng = np.random.default_rng(0)
    vectors = rng.normal(size=(3, 8)) / np.sqrt(8)
    teachers = rng.normal(size=(3, 8))
    teachers /= np.linalg.norm(teachers, axis=1, keepdims=True)
    problem = tm.theory.Mixture.from_vectors(
        weight=weight, variance={"a": 1.0, "b": 0.5, "c": 1.5},
        means=dict(zip(weight, 0.5 * vectors, strict=True)), teachers=dict(zip(weight, teachers, strict=True)),
    )  # fmt: skip
    plain = tm.predict(problem, tm.SGD(lr=0.2), [0.0, 200.0])["loss"].isel(time=-1)
    steered = tm.predict(problem, tm.SGD(lr=0.2, interventions=(I.GroupDRO(2.0, 10.0, by="draws"),)), [0.0, 200.0])[
        "loss"
    ]
    assert steered.isel(time=-1).max() < plain.max()
