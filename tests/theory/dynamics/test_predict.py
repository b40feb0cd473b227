"""predict: curves, selection, grids, schedules, divergence, refusals."""

import warnings

import numpy as np
import pytest

from tiltmeter import SGD, predict, teacher_mixture, timescales
from tiltmeter.names import CURVES
from tiltmeter.schedules import Cosine, PowerDecay, Steps, Warmup
from tiltmeter.theory import Mixture, cases
from tiltmeter.theory.dynamics.limits import asymptotes, initial_rates
from tiltmeter.theory.dynamics.stability import stability_limit
from tiltmeter.theory.population.labelled_curves import EVERY
from tiltmeter.theory.problem.starts import Overlaps, Random

PROBLEM = teacher_mixture(0.7, 1.5, (0.5, 1.2), 0.6, (0.5, -0.3), (0.2, -0.4))
TIMES = np.geomspace(0.01, 100.0, 30)


class TestCurves:
    def test_all_curves_by_default_each_described(self):
        theory = predict(PROBLEM, SGD(lr=0.1), TIMES)
        assert tuple(theory) == EVERY
        for name, curve in theory.items():
            assert curve.attrs["long_name"] == CURVES[name].meaning
            assert curve.dims[0] == "time"

    def test_a_selection_gives_the_same_values(self):
        whole, part = predict(PROBLEM, SGD(lr=0.1), TIMES), predict(PROBLEM, SGD(lr=0.1), TIMES, ["tpr_gap", "loss"])
        assert list(part) == ["tpr_gap", "loss"]
        assert part["tpr_gap"].equals(whole["tpr_gap"])
        assert part["loss"].equals(whole["loss"])

    def test_gaps_and_ratios_follow_their_definitions(self):
        theory = predict(PROBLEM, SGD(lr=0.1), TIMES)
        for name in ("loss", "error", "positive_rate", "tpr", "fpr", "ppv"):
            expected = theory[name].sel(group="+") - theory[name].sel(group="-")
            np.testing.assert_allclose(theory[f"{name}_gap"].sel(pair="+ vs -"), expected, atol=1e-15)
        rates = theory["positive_rate"].values
        np.testing.assert_allclose(theory["disparate_impact"], rates.min(1) / rates.max(1))
        odds = np.maximum(abs(theory["tpr_gap"]), abs(theory["fpr_gap"]))
        np.testing.assert_allclose(theory["equalised_odds"], odds)
        np.testing.assert_allclose(theory["risk"], theory["loss"].values @ [0.7, 0.3])

    def test_the_bias_is_a_curve_only_if_trained(self):
        assert "student_bias" in predict(PROBLEM, SGD(lr=0.1, train_bias=True), TIMES)
        with pytest.raises(KeyError, match="no curve 'student_bias'"):
            predict(PROBLEM, SGD(lr=0.1), TIMES, ["student_bias"])

    def test_an_untrained_student_decides_nobody_positive(self):
        theory = predict(PROBLEM, SGD(lr=0.1), [0.0])
        assert (theory["positive_rate"] == 0).all()
        assert theory["ppv"].isnull().all()  # an empty denominator, not divergence
        assert theory.diverged is None
        start = Overlaps(bias=0.5)
        assert (predict(PROBLEM, SGD(lr=0.1, start=start), [0.0])["positive_rate"] == 1).all()

    def test_error_of_a_centred_problem_is_an_angle(self):
        theory = predict(teacher_mixture(0.8, variance=(0.5, 1.5), overlap=0.5), SGD(lr=0.1), TIMES)
        angle = np.arccos(theory["R"] / np.sqrt(theory["Q"])) / np.pi
        np.testing.assert_allclose(theory["error"], angle, atol=1e-12)

    def test_three_groups_have_three_pairs(self):
        three = Mixture.from_vectors(
            {"a": 0.5, "b": 0.3, "c": 0.2}, {"a": 1.0, "b": 0.5, "c": 2.0},
            {"a": [1, 0, 0], "b": [0, 0.5, 0], "c": [0, 0, 0.2]}, {"a": [0, 1, 0], "b": [1, 1, 0], "c": [0, 1, 1]},
        )  # fmt: skip
        gaps = predict(three, SGD(lr=0.1), TIMES)["error_gap"]
        assert gaps.coords["pair"].values.tolist() == ["a vs b", "a vs c", "b vs c"]

    def test_one_group_alone_is_a_plain_student(self):
        single = Mixture({"all": 1.0}, {"all": 1.0}, np.diag([0.0, 1.0]))
        theory = predict(single, SGD(lr=0.1), TIMES)
        assert theory["loss_gap"].sizes["pair"] == 0
        assert theory["error"][-1].item() < 0.2


class TestEvaluate:
    def test_gives_the_same_curves_at_other_times(self):
        theory = predict(PROBLEM, SGD(lr=0.1), TIMES)
        again = theory.evaluate([1.0, 2.0])
        assert again["tpr"].equals(predict(PROBLEM, SGD(lr=0.1), [1.0, 2.0])["tpr"])

    def test_survives_a_change_of_clock(self):
        steps = predict(PROBLEM, SGD(lr=0.1), TIMES).on_clock("step", d=100)
        assert steps.evaluate([200.0])["loss"].values == pytest.approx(
            predict(PROBLEM, SGD(lr=0.1), [2.0])["loss"].values
        )


class TestSchedules:
    def test_a_constant_schedule_equals_the_constant(self):
        constant = predict(PROBLEM, SGD(lr=0.3), TIMES)
        scheduled = predict(PROBLEM, SGD(lr=Steps((0.0,), (0.3,)), weights={"+": Steps((0.0,), (1.0,))}), TIMES)
        for name in ("loss", "error", "Q"):
            np.testing.assert_allclose(scheduled[name], constant[name], atol=1e-9)

    def test_steps_equal_two_runs_one_after_the_other(self):
        first = predict(PROBLEM, SGD(lr=0.3), [4.0])
        start = Overlaps(
            M=dict(zip("+-", first["M"].values[0], strict=True)), R=dict(zip("+-", first["R"].values[0], strict=True)),
            Q=first["Q"].item(),
        )  # fmt: skip
        second = predict(PROBLEM, SGD(lr=0.05, start=start), [6.0, 16.0])
        both = predict(PROBLEM, SGD(lr=Steps((0.0, 4.0), (0.3, 0.05))), [4.0, 10.0, 20.0])
        np.testing.assert_allclose(both["loss"].values[0], first["loss"].values[0], atol=1e-9)
        np.testing.assert_allclose(both["loss"].values[1:], second["loss"].values, atol=1e-9)

    def test_small_learning_rates_only_rescale_time(self):
        """As lr -> 0 only the integral of lr matters: a decaying rate is a change of clock."""
        decay = PowerDecay(1e-4, 1e4)
        t = np.array([1e3, 1e4, 5e4])
        area = 1e-4 * 1e4 * np.log1p(t / 1e4)
        scheduled = predict(PROBLEM, SGD(lr=decay), t, ["loss"])["loss"].values
        constant = predict(PROBLEM, SGD(lr=1e-4), area / 1e-4, ["loss"])["loss"].values
        np.testing.assert_allclose(scheduled, constant, atol=1e-4)

    @pytest.mark.parametrize("schedule", [Cosine(0.5, 20.0), Warmup(0.3, 5.0)])
    def test_smooth_schedules_run_over_grids(self, schedule):
        grid = teacher_mixture(rho=("rho", [0.3, 0.6]), variance=(0.5, 1.0), overlap=0.5)
        curve = predict(grid, SGD(lr=schedule), TIMES, ["loss"])["loss"]
        alone = predict(teacher_mixture(0.6, variance=(0.5, 1.0), overlap=0.5), SGD(lr=schedule), TIMES, ["loss"])[
            "loss"
        ]
        np.testing.assert_allclose(curve.sel(rho=0.6).values, alone.values, atol=1e-9)

    def test_time_dependent_weights_move_the_gap(self):
        plain = predict(PROBLEM, SGD(lr=0.02), [190.0, 500.0], ["loss"])["loss"].values
        heavier = {"-": Steps((0.0, 200.0), (1.0, 3.0))}
        late = predict(PROBLEM, SGD(lr=0.02, weights=heavier), [190.0, 500.0], ["loss"])["loss"].values
        np.testing.assert_allclose(late[0], plain[0], atol=1e-9)
        assert late[1, 1] < plain[1, 1] - 0.01

    def test_a_diverging_schedule_says_when(self):
        with pytest.raises(ValueError, match="diverges: the student grows without bound after t ="):
            predict(PROBLEM, SGD(lr=Steps((0.0, 1.0), (0.1, 50.0))), [2.0, 300.0])

    def test_a_schedule_that_gives_nonsense_is_refused(self):
        with pytest.raises(ValueError, match="The schedule of `lr` should give non-negative numbers"):
            predict(PROBLEM, SGD(lr=lambda _: -1.0), [1.0])


class TestDivergence:
    def test_a_single_problem_raises_with_the_limit(self):
        limit = stability_limit(PROBLEM, SGD(lr=0.1)).item()
        with pytest.raises(ValueError, match=rf"below the stability limit {limit:.6g} of this problem\. Found lr = 3"):
            predict(PROBLEM, SGD(lr=3.0), TIMES)
        with pytest.raises(ValueError, match="stability limit"):
            asymptotes(PROBLEM, SGD(lr=limit))

    def test_a_grid_is_nan_there_with_a_warning(self):
        with pytest.warns(UserWarning, match="1 of 3 grid points have `lr` at or above their stability limit"):
            theory = predict(PROBLEM, SGD(lr=("lr", [0.1, 0.5, 5.0])), TIMES)
        assert theory["error"].sel(lr=5.0).isnull().all()
        assert theory["loss"].sel(lr=[0.1, 0.5]).notnull().all()
        assert np.isnan(theory.diverged.sel(lr=0.1))
        assert theory.diverged.sel(lr=5.0) == 0.0

    def test_below_the_limit_nothing_warns(self):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            predict(PROBLEM, SGD(lr=("lr", [0.1, 0.5])), TIMES)


BAD = [
    (lambda: predict("mixture", SGD(lr=0.1), TIMES), TypeError, "`problem` should be a Mixture"),
    (lambda: predict(PROBLEM, 0.1, TIMES), TypeError, "`sgd` should be an SGD(lr=...). Found float."),
    (lambda: predict(PROBLEM, SGD(lr=0.1), []), ValueError, "`times` should be a non-empty list of numbers"),
    (lambda: predict(PROBLEM, SGD(lr=0.1), [[1.0]]), ValueError, "Found an array of shape (1, 1)"),
    (lambda: predict(PROBLEM, SGD(lr=0.1), ["soon"]), TypeError, "`times` should be numbers"),
    (lambda: predict(PROBLEM, SGD(lr=0.1), [-1.0]), ValueError, "`times` should not be negative. Found -1."),
    (lambda: predict(PROBLEM, SGD(lr=0.1), [1.0, 1.0]), ValueError, "`times` should increase strictly."),
    (lambda: predict(PROBLEM, SGD(lr=0.1), [1.0, np.inf]), ValueError, "For t -> infinity use `asymptotes`."),
    (lambda: predict(PROBLEM, SGD(lr=0.1), TIMES, ["lss"]), KeyError, "There is no curve 'lss'. There are: loss,"),
    (lambda: predict(PROBLEM, SGD(lr=0.1, momentum=0.9), TIMES), ValueError, "no exact solution with momentum. Use `simulate`"),
    (lambda: predict(PROBLEM, SGD(lr=0.1, clip=1.0), TIMES), ValueError, "no exact solution with clip. Use `simulate`"),
    (lambda: predict(PROBLEM, SGD(lr=0.1, weights={"x": 1.0}), TIMES), KeyError, "`weights` names the unknown group 'x'. There are: '+', '-'."),
    (lambda: predict(PROBLEM, SGD(lr=0.1, weights={("+", 1): 1.0}), TIMES), ValueError, "`weights` per (group, label)"),
    (lambda: predict(PROBLEM, SGD(lr=0.1, proportions={"+": 1.0}), TIMES), KeyError, "`proportions` should name every group; '-' is missing."),
    (lambda: predict(PROBLEM, SGD(lr=0.1, proportions={"+": 0.5, "-": 0.6}), TIMES), ValueError, "The proportions should sum to one. They sum to 1.1."),
    (lambda: predict(PROBLEM, SGD(lr=0.1, proportions={"x": 1.0}), TIMES), KeyError, "`proportions` names the unknown group 'x'"),
    (lambda: predict(PROBLEM, SGD(lr=0.1, start=Overlaps(M={"x": 1.0})), TIMES), KeyError, "`start` names the unknown group 'x'"),
    (lambda: predict(PROBLEM, SGD(lr=0.1, start=Overlaps(M={"+": 1.0, "-": 1.0}, Q=9.0)), TIMES), ValueError, "they contradict the geometry"),
    (lambda: predict(PROBLEM, SGD(lr=0.1, start=Overlaps(R={"+": 1.0, "-": 0.6}, Q=0.1)), TIMES), ValueError, "`Q` of the start should be at least 1"),
    (lambda: timescales(PROBLEM, SGD(lr=Warmup(0.1, 1.0))), ValueError, "`timescales` needs a constant learning rate"),
    (lambda: asymptotes(PROBLEM, SGD(lr=Warmup(0.1, 1.0))), ValueError, "Asymptotes need a constant learning rate"),
]  # fmt: skip


@pytest.mark.parametrize(("call", "kind", "sentence"), BAD, ids=[sentence[:60] for _, _, sentence in BAD])
def test_bad_input_gets_one_clear_sentence(call, kind, sentence):
    with pytest.raises(kind) as raised:
        call()
    assert sentence in str(raised.value)
    assert "\n" not in str(raised.value)


def test_resampling_changes_what_is_learnt_but_not_the_population():
    drawn = predict(PROBLEM, SGD(lr=0.1, proportions={"+": 0.5, "-": 0.5}), TIMES)
    other = predict(PROBLEM.replace(weight={"+": 0.5, "-": 0.5}), SGD(lr=0.1), TIMES)
    np.testing.assert_allclose(drawn["loss"], other["loss"], atol=1e-13)
    np.testing.assert_allclose(drawn["risk"], drawn["loss"].values @ [0.7, 0.3], atol=1e-13)


def test_weights_equal_resampling_in_drift_but_not_in_noise():
    """Doubling a loss and doubling its share pull alike; the noise of the former is larger at finite lr."""
    share = {"+": 0.4, "-": 0.6}
    weights = {g: share[g] / w for g, w in (("+", 0.7), ("-", 0.3))}
    gap = {}
    for lr in (1e-4, 0.3):
        t = [5.0 / lr]
        drawn = predict(PROBLEM, SGD(lr=lr, proportions=share), t, ["loss"])["loss"]
        weighted = predict(PROBLEM, SGD(lr=lr, weights=weights), t, ["loss"])["loss"]
        gap[lr] = float(abs(drawn - weighted).max())
    assert gap[1e-4] < 1e-4
    assert gap[0.3] > 1e-2


def test_large_batches_are_gradient_flow():
    flow = predict(PROBLEM, SGD(lr=0.3, batch=10**9), TIMES, ["loss"])["loss"]
    tiny = predict(PROBLEM, SGD(lr=0.3e-6), TIMES * 1e6, ["loss"])["loss"]
    np.testing.assert_allclose(flow.values, tiny.values, atol=1e-6)


def test_random_start_has_its_length_and_no_direction():
    theory = predict(PROBLEM, SGD(lr=0.1, start=Random(0.5)), [0.0])
    assert theory["Q"].item() == 0.25
    assert not theory["R"].any()


def test_cases_have_the_leaders_their_docstrings_promise():
    from tiltmeter.theory.dynamics.limits import final_leader, first_leader

    expected = {
        "centred_crossing": ("-", "+"),
        "three_phases": ("+", "+"),
        "no_crossing": ("+", "+"),
        "no_bias": ("", ""),
    }
    for name, leaders in expected.items():
        problem, sgd, _ = getattr(cases, name)()
        assert (first_leader(problem, sgd).item(), final_leader(problem, sgd).item()) == leaders


def test_initial_leader_from_a_warm_start_is_the_one_ahead():
    from tiltmeter.theory.dynamics.limits import first_leader

    start = Overlaps(R={"+": 0.5, "-": 0.25}, Q=0.25)
    problem = teacher_mixture(0.3, variance=(0.5, 1.5), overlap=0.5)
    assert first_leader(problem, SGD(lr=0.1, start=start)).item() == "+"
    assert initial_rates(problem, SGD(lr=0.1)).loss.values[0] > initial_rates(problem, SGD(lr=0.1)).loss.values[1]


class TestOnlyWhatIsAsked:
    def counted(self, monkeypatch):
        from tiltmeter.theory.population import labelled_curves

        calls, real = [], labelled_curves.rates
        monkeypatch.setattr(labelled_curves, "rates", lambda *a, **k: calls.append(1) or real(*a, **k))
        return calls

    def test_the_loss_takes_no_rates(self, monkeypatch):
        calls = self.counted(monkeypatch)
        theory = predict(*cases.centred_crossing())
        theory["loss"], theory["loss_gap"], theory["risk"], theory["Q"]
        assert calls == []

    def test_all_curves_take_the_rates_once(self, monkeypatch):
        calls = self.counted(monkeypatch)
        assert list(dict(predict(*cases.centred_crossing()))) == list(EVERY)
        assert len(calls) == 1

    def test_a_curve_asked_for_alone_is_the_one_among_all(self):
        problem, sgd, times = cases.three_phases()
        every = predict(problem, sgd, times)
        for name in EVERY:
            assert predict(problem, sgd, times, curves=(name,))[name].identical(every[name])

    def test_gaps_of_a_grid_keep_its_memory_layout(self):
        grid = teacher_mixture(rho=("rho", np.linspace(0.2, 0.8, 7)), variance=(0.5, 1.5), overlap=0.5)
        theory = predict(grid, SGD(lr=0.1), np.geomspace(0.01, 10, 5))
        gap = theory["tpr_gap"]
        for curve in (gap, theory["tpr"]):  # the grid is furthest apart in both, so that nothing is copied across it
            assert curve.dims[-1] == "rho"
            assert max(curve.values.strides) == curve.values.strides[-1]
        np.testing.assert_array_equal(
            gap.isel(pair=0, drop=True).transpose("time", "rho"),
            (theory["tpr"].sel(group="+", drop=True) - theory["tpr"].sel(group="-", drop=True)).transpose(
                "time", "rho"
            ),
        )


class TestEvaluateNamedCurves:
    @pytest.mark.parametrize("lr", [0.1, Cosine(0.4, 20.0), Steps((0.0, 5.0), (0.4, 0.1))])
    def test_named_curves_at_other_times_are_those_of_a_fresh_prediction(self, lr):
        theory = predict(PROBLEM, SGD(lr=lr), TIMES, curves=("loss",))
        again = theory.evaluate([0.5, 5.0, 60.0], curves=("error", "loss_gap"))
        fresh = predict(PROBLEM, SGD(lr=lr), [0.5, 5.0, 60.0])
        assert list(again) == ["error", "loss_gap"]
        for name in again:
            np.testing.assert_allclose(again[name], fresh[name], rtol=1e-8, atol=1e-10)
        assert list(theory.evaluate([0.5])) == ["loss"]
        with pytest.raises(KeyError, match="There is no curve 'lose'"):
            theory.evaluate([0.5], curves=("lose",))

    def test_the_times_asked_for_are_had_again_to_the_bit(self):
        theory = predict(PROBLEM, SGD(lr=Cosine(0.4, 20.0)), TIMES)
        for name, curve in theory.evaluate(TIMES).items():
            np.testing.assert_array_equal(curve, theory[name])

    def test_schedules_are_integrated_once_up_to_the_last_time_and_again_beyond_it(self, monkeypatch):
        from tiltmeter.theory.dynamics import ode

        calls, real = [], ode.by_pieces
        monkeypatch.setattr(ode, "by_pieces", lambda *a, **k: calls.append(1) or real(*a, **k))
        theory = predict(PROBLEM, SGD(lr=Cosine(0.4, 20.0)), TIMES)
        theory.evaluate([1.0]), theory.evaluate([1.0, 100.0], ("loss",))
        assert len(calls) == 1
        beyond = theory.evaluate([150.0])["loss"]
        assert len(calls) == 2
        np.testing.assert_allclose(beyond, predict(PROBLEM, SGD(lr=Cosine(0.4, 20.0)), [150.0])["loss"], rtol=1e-9)

    def test_a_grid_with_a_schedule_keeps_no_steps(self):
        grid = teacher_mixture(rho=("rho", [0.2, 0.8]), variance=(0.5, 1.5), overlap=0.5)
        theory = predict(grid, SGD(lr=Cosine(0.4, 20.0)), TIMES)
        assert theory.evaluate._solved is None
        np.testing.assert_allclose(theory.evaluate([TIMES[7]])["loss"], theory["loss"].isel(time=[7]), rtol=1e-8)
