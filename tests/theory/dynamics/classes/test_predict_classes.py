"""Several classes in theory: pinned numbers, second routes, curves, refusals."""

import numpy as np
import pytest
from scipy.stats import multivariate_normal, norm

import tiltmeter as tm
from tiltmeter.theory.dynamics.classes.predict_classes import centred_class_losses
from tiltmeter.theory.population.classes.decisions import semidefinite_root
from tiltmeter.theory.population.classes.moments import class_moments
from tiltmeter.theory.problem.students import Erf

FINE = tm.theory.Sobol(2**16)


def drawn(problem, group, count, seed=0):
    """Inputs of a group in the coordinates of the problem, and their classes."""
    data = class_moments(problem)
    g = problem.groups.index(group)
    z = np.random.default_rng(seed).normal(size=(count, data.mu.shape[1]))
    x = data.mu[g] + np.sqrt(data.D[g]) * z
    return z, x, (x @ data.teachers[g].T + data.offsets[g]).argmax(1)


class TestPinned:
    def test_shares_of_classes(self, pinned):
        expected = [[0.573296, 0.092210, 0.334493], [0.155135, 0.272694, 0.572171]]
        np.testing.assert_allclose(class_moments(pinned, FINE).pi, expected, atol=1e-6)

    def test_curves_at_t_4(self, pinned):
        run = tm.predict(pinned, tm.SGD(lr=0.5, train_bias=True), [4.0], quadrature=FINE).to_dataset().isel(time=0)
        assert float(np.trace(run.Q)) == pytest.approx(0.310019, abs=1.1e-6)
        np.testing.assert_allclose(run.student_bias, [0.056073, -0.143137, 0.087065], atol=1.1e-6)
        np.testing.assert_allclose(run.loss, [0.210833, 0.315707], atol=1.1e-6)
        np.testing.assert_allclose(run.error, [0.287006, 0.405566], atol=1.1e-6)
        losses = [[0.161386, 0.424362, 0.236718], [0.314519, 0.446143, 0.253865]]
        np.testing.assert_allclose(run.class_loss, losses, atol=1.1e-6)

    def test_a_rare_class_is_first_unlearnt(self):
        rare = tm.theory.class_mixture(3, rho=0.8, overlap=0.8, class_bias=(0.6, 0.0, -0.7))
        np.testing.assert_allclose(class_moments(rare).pi[0], [0.5986, 0.2936, 0.1078], atol=6e-5)
        sgd = tm.SGD(lr=0.2, train_bias=True)
        expected = [[-0.08338, -0.05189, 0.00191], [-0.07792, -0.04274, 0.00898]]
        step = tm.predict(rare, sgd, [0.0, 1e-5], curves=("class_loss",))["class_loss"]
        np.testing.assert_allclose((step[1] - step[0]) / 1e-5, expected, atol=2e-5)

    def test_conflict_sends_classes_below_chance(self):
        """Two classes of the minority look like each other's in the majority; the loss passes through a minimum."""
        sgd, curves = tm.SGD(lr=0.1), ("loss", "error", "class_accuracy")
        conflict, harmony = (
            tm.predict(
                tm.theory.class_mixture(3, 0.8, (0.5, 1.5), overlap=0.9, swapped=swap), sgd, [1.0, 4.0, 64.0], curves
            )
            for swap in (True, False)
        )
        error = [float(run["error"].sel(group="-", time=64.0)) for run in (conflict, harmony)]
        np.testing.assert_allclose(error, (0.558, 0.174), atol=6e-4)
        swapped = conflict["class_accuracy"].sel({"group": "-", "time": 64.0, "class": [0, 1]})
        np.testing.assert_allclose(swapped, 0.224, atol=6e-4)
        loss = conflict["loss"].sel(group="-").values
        np.testing.assert_allclose(loss[1:], (0.318, 0.407), atol=6e-4)
        assert loss[0] > loss[1]

    def test_similar_classes_end_more_confused(self):
        """Confusion grows with similarity; the rate of learning does not change."""
        confused = []
        for similarity in (0.0, 0.5, 0.9):
            problem = tm.theory.class_mixture(3, similarity=similarity)
            run = tm.predict(problem, tm.SGD(lr=0.2), [1.0, 400.0], curves=("confusion", "loss", "R"))
            table = run["confusion"].sel(time=400.0, group="+")
            confused.append(float(table.sel({"class": 0, "decision": 1})))
            share = run["R"].sel(time=1.0) / run["R"].sel(time=400.0)
            rate = 1.0 - np.exp(-0.2)
            np.testing.assert_allclose(share.where(abs(run["R"].sel(time=400.0)) > 1e-6, rate), rate, atol=1e-6)
        assert confused[0] < confused[1] < confused[2]


class TestSecondRoutes:
    def test_moments_against_draws(self, pinned):
        data = class_moments(pinned)
        for g, group in enumerate(pinned.groups):
            z, _, y = drawn(pinned, group, 60_000)
            for c in range(3):
                mine = y == c
                first = np.where(mine[:, None], z, 0.0)
                error = first.std(0) / np.sqrt(len(z))
                assert abs(mine.mean() - data.pi[g, c]) < 4 * np.sqrt(0.25 / len(z))
                assert (abs(first.mean(0) - data.J[g, c]) < 4.0 * error).all()
                second = np.einsum("ni,nj->nij", first, z)
                error = second.std(0) / np.sqrt(len(z))
                assert (abs(second.mean(0) - data.K[g, c]) < 4.0 * error + 1e-12).all()

    def test_first_moments_in_closed_form(self, pinned):
        """J_c = sqrt(D) sum_c' B_cc' (t_c - t_c'), where B needs one normal distribution function for three classes."""
        data = class_moments(pinned, FINE)
        for g in range(2):
            T, D = data.teachers[g], data.D[g]
            centre = T @ data.mu[g] + data.offsets[g]
            covariance = D * T @ T.T
            for c in range(3):
                found = np.zeros(T.shape[1])
                for other in range(3):
                    if other == c:
                        continue
                    (third,) = {0, 1, 2} - {c, other}
                    u, v = np.zeros(3), np.zeros(3)
                    u[[c, other]], v[[c, third]] = (1, -1), (1, -1)
                    mean, var = u @ centre, u @ covariance @ u
                    slope = v @ covariance @ u / var
                    rest = v @ covariance @ v - slope**2 * var
                    ahead = norm.cdf((v @ centre - slope * mean) / np.sqrt(rest))
                    found += np.sqrt(D) * norm.pdf(0, mean, np.sqrt(var)) * ahead * (T[c] - T[other])
                np.testing.assert_allclose(data.J[g, c], found, atol=3e-6)

    def test_two_classes_are_two_labels(self):
        """With C = 2 the difference of the scores is the score of the binary theory, at half its size."""
        two = tm.theory.class_mixture(2, 0.7, (0.5, 1.5), overlap=0.4)
        binary = tm.teacher_mixture(0.7, variance=(0.5, 1.5), overlap=0.4)
        times = [0.5, 3.0, 20.0]
        several = tm.predict(two, tm.SGD(lr=0.2), times, curves=("error", "loss"))
        one = tm.predict(binary, tm.SGD(lr=0.2), times, curves=("error", "loss"))
        np.testing.assert_allclose(several["error"], one["error"], atol=2e-4)
        np.testing.assert_allclose(several["loss"], one["loss"] / 2, atol=2e-6)

    def test_group_loss_is_the_mean_of_class_losses(self, pinned):
        run = tm.predict(pinned, tm.SGD(lr=0.5, train_bias=True), [0.5, 4.0], curves=("loss", "class_loss"))
        pi = class_moments(pinned).pi
        np.testing.assert_allclose((run["class_loss"].values * pi).sum(2), run["loss"], atol=1e-6)

    def test_centred_closed_form(self):
        problem, times = tm.theory.class_mixture(3, 0.7, (0.5, 1.5), overlap=0.4), np.array([0.5, 2.0, 9.0])
        for lr in (0.3, 0.8 / 0.85):  # the second is where the rates of R and Q meet
            run = tm.predict(problem, tm.SGD(lr=lr), times, curves=("loss", "class_loss"))
            groups, classes = centred_class_losses(problem, tm.SGD(lr=lr), times)
            np.testing.assert_allclose(run["loss"], groups, atol=1e-9)
            np.testing.assert_allclose(run["class_loss"], classes, atol=1e-9)

    def test_the_closed_form_refuses_what_it_has_not(self, pinned):
        with pytest.raises(ValueError, match=r"without means. Use `predict`"):
            centred_class_losses(pinned, tm.SGD(lr=0.1), np.ones(1))
        with pytest.raises(ValueError, match=r"without train_bias. Found train_bias = True: use `predict`"):
            centred_class_losses(tm.theory.class_mixture(3), tm.SGD(lr=0.1, train_bias=True), np.ones(1))

    def test_confusion_against_draws(self, pinned):
        run = tm.predict(pinned, tm.SGD(lr=0.5, train_bias=True), [2.0]).to_dataset().isel(time=0)
        data = class_moments(pinned)
        # A linear student with these overlaps: its part in the span from R and M, a random part for the rest of Q.
        stacked = np.concatenate([data.teachers.reshape(-1, data.mu.shape[1]), data.mu])
        W = np.linalg.lstsq(stacked, np.concatenate([run.R.values.reshape(-1, 3), run.M.values]), rcond=None)[0].T
        root = semidefinite_root((run.Q.values - W @ W.T)[None])[0]  # the scores sum to zero: singular
        for g, group in enumerate(pinned.groups):
            _, x, y = drawn(pinned, group, 400_000, seed=1)
            hidden = np.random.default_rng(2).normal(size=(len(x), 3)) @ root.T * np.sqrt(data.D[g])
            decision = (x @ W.T + hidden + run.student_bias.values).argmax(1)
            for c in range(3):
                for k in range(3):
                    found, count = (decision[y == c] == k).mean(), (y == c).sum()
                    expected = float(run.confusion.values[g, c, k])
                    assert abs(found - expected) < 4.0 * np.sqrt(expected * (1 - expected) / count) + 1e-4

    def test_five_classes_in_three_directions(self):
        """More classes than directions: constraints that depend on one another."""
        rng = np.random.default_rng(3)
        rows = rng.normal(size=(5, 3))
        problem = tm.theory.ClassMixture({"a": 1.0}, {"a": 0.8}, {"a": [0.1, 0.2, 0.3]}, {"a": dict(enumerate(rows))})
        _, _, y = drawn(problem, "a", 400_000)
        found = np.bincount(y, minlength=5) / len(y)
        np.testing.assert_allclose(class_moments(problem).pi[0], found, atol=4 * 0.5 / np.sqrt(len(y)))

    def test_probability_of_a_class_is_a_bivariate_normal(self):
        problem = tm.theory.class_mixture(3, class_bias=(0.6, 0.0, -0.7))
        covariance = np.array([[2.0, 1.0], [1.0, 2.0]])
        expected = multivariate_normal.cdf([0.6, 1.3], cov=covariance)
        assert class_moments(problem).pi[0, 0] == pytest.approx(expected, abs=2e-6)

    def test_softmax_against_its_definition(self, pinned):
        """At the start every softmax is 1/C; and the averages of the first step are those of the moments."""
        run = tm.predict(pinned, tm.SGD(lr=0.1, train_bias=True), [0.0, 1e-3], student=tm.theory.students.Softmax())
        np.testing.assert_allclose(run["loss"].isel(time=0), np.log(3.0), atol=1e-12)
        square = tm.predict(pinned, tm.SGD(lr=0.1, train_bias=True), [0.0, 1e-3])
        # softmax(0) - e_y = -(e_y - 1/C): the first steps coincide.
        np.testing.assert_allclose(run["R"].isel(time=1), square["R"].isel(time=1), atol=2e-8)
        assert run["loss"].attrs["definition"] == "cross-entropy"


class TestCurves:
    def test_names_and_dimensions(self, pinned):
        run = tm.predict(pinned, tm.SGD(lr=0.5, train_bias=True), [1.0])
        dims = {name: run[name].dims[1:] for name in run}
        assert dims["class_loss"] == dims["class_accuracy"] == ("group", "class")
        assert dims["confusion"] == ("group", "class", "decision")
        assert dims["Q"] == ("output", "other_output")
        np.testing.assert_allclose(run["confusion"].sum("decision"), 1.0, atol=1e-12)
        right = np.einsum("tgcc->tgc", run["confusion"].values)
        np.testing.assert_allclose(run["class_accuracy"], right, atol=1e-12)

    def test_a_student_that_knows_nothing_decides_for_the_first_class(self, pinned):
        run = tm.predict(pinned, tm.SGD(lr=0.5), [0.0], curves=("confusion",))["confusion"]
        np.testing.assert_array_equal(run.sel(decision=0), 1.0)

    def test_it_is_stored_and_evaluated_again(self, pinned, tmp_path):
        run = tm.predict(pinned, tm.SGD(lr=0.5), [0.1, 10.0], curves=("loss", "class_loss"))
        tm.save(run, tmp_path / "run")
        loaded = tm.load(tmp_path / "run")
        assert loaded == run
        assert str(tm.fairness.class_leaders(loaded)) == str(tm.fairness.class_leaders(run))

    def test_weights_decay_batch_and_schedules(self, pinned):
        plain = tm.predict(pinned, tm.SGD(lr=0.3), [3.0], curves=("loss",))["loss"]
        for other in (
            {"weights": {"-": 2.0}},
            {"weight_decay": 0.3},
            {"batch": 4},
            {"lr": tm.schedules.PowerDecay(0.3, 2.0)},
            {"proportions": tm.schedules.in_turn({"+": 1.0, "-": 1.0})},
            {"start": tm.theory.starts.Random(0.5)},
        ):
            changed = tm.predict(pinned, tm.SGD(**{"lr": 0.3, **other}), [3.0], curves=("loss",))["loss"]
            assert float(abs(changed - plain).max()) > 1e-3, other


class TestRefusals:
    @pytest.mark.parametrize(
        ("sgd", "said"),
        [
            ({"momentum": 0.5}, "no exact solution with momentum"),
            ({"clip": 1.0}, "no exact solution with clip"),
            ({"start": tm.theory.starts.Overlaps(Q=1.0)}, "`Overlaps` starts one score"),
            ({"weights": {("+", 0): 2.0}}, r"weights` per \(group, class\).*use `simulate`"),
            ({"lr": ("lr", [0.1, 0.2])}, "`lr` should be one number, not a grid"),
            ({"lr": 5.0}, "stability limit 2 of this problem"),
        ],
    )
    def test_training(self, pinned, sgd, said):
        with pytest.raises(ValueError, match=said):
            tm.predict(pinned, tm.SGD(**{"lr": 0.1, **sgd}), [1.0])

    def test_students(self, pinned):
        with pytest.raises(ValueError, match=r"Linear\(\) and Softmax\(\) students. Train a Network on `samples`"):
            tm.predict(pinned, tm.SGD(lr=0.1), [1.0], student=tm.theory.students.Network(2, Erf()))
        binary = tm.teacher_mixture()
        for function in (tm.predict, lambda *a, **k: tm.simulate(*a, d=50, **k)):
            with pytest.raises(ValueError, match=r"problems of several classes"):
                function(binary, tm.SGD(lr=0.1), [1.0], student=tm.theory.students.Softmax())

    def test_other_functions_refuse_by_type(self, pinned):
        sgd = tm.SGD(lr=0.1)
        for function in (tm.timescales, tm.theory.asymptotes, tm.theory.stability_limit, tm.theory.crossing_bound):
            with pytest.raises(TypeError, match=r"should be a Mixture"):
                function(pinned, sgd)
        with pytest.raises(TypeError, match=r"should be a Mixture"):
            tm.equilibrium(pinned, tm.Square(), 2.0, 0.1)
        with pytest.raises(TypeError, match=r"should be a ClassMixture"):
            class_moments(tm.teacher_mixture())

    def test_unknown_curves(self, pinned):
        with pytest.raises(KeyError, match=r"no curve 'tpr'"):
            tm.predict(pinned, tm.SGD(lr=0.1), [1.0], curves=("tpr",))
