"""The probe: what it records, when, where, and every sentence."""

import numpy as np
import pytest
import torch
from torch import nn

import tiltmeter as tm
from tiltmeter.measures.snapshot import Snapshot

CURVES = {"loss", "error", "margin", "confidence", "calibration_gap"}
ORDER_PARAMETERS = {"M", "R", "Q", "label_alignment"}


def with_se(names):
    return {*names, *(f"{name}_se" for name in names)}


def fixed(rows):
    """A model whose scores are given: row i for the point with x = i."""

    class Fixed(nn.Module):
        def __init__(self):
            super().__init__()
            self.rows = nn.Parameter(torch.as_tensor(rows, dtype=torch.float32))

        def forward(self, x):
            return self.rows[x[:, 0].long()]

    return Fixed()


def numbered(y, group, weights=None):
    return tm.GroupedData(np.arange(float(len(y)))[:, None], y, group, weights)


def evaluated(model, data, *, loss=None, chunk=256, strict=False, **watch):
    with tm.Probe(model, data, tm.Watch(**watch), loss=loss, chunk=chunk, strict=strict, budget=None) as probe:
        pass
    run = probe.trajectory()
    return {name: curve.isel(time=0) for name, curve in run.items()}, run


class TestCurves:
    def test_two_labels_one_output(self, flat):
        _, run = evaluated(nn.Linear(6, 1), flat)
        assert set(run) == with_se({*CURVES, "positive_rate", "tpr", "fpr"}) | ORDER_PARAMETERS
        assert run["loss"].attrs["definition"] == "logistic loss"
        assert run["error"].attrs["better"] == "lower"
        assert run.origin.source == "training"
        assert run.origin.problem["held_out"]["sizes"] == [["a", 160], ["b", 40]]
        assert run.origin.settings["model"]["parameters"] == 7

    def test_several_outputs(self, images):
        _, run = evaluated(nn.Sequential(nn.Flatten(), nn.Linear(64, 4)), images)
        assert set(run) == with_se({*CURVES, "class_accuracy"})
        assert run["class_accuracy"].dims == ("time", "group", "class")

    def test_regression(self, flat):
        data = tm.GroupedData(flat.x, flat.x[:, 0] * 2.0, [flat.groups[c] for c in flat.codes])
        now, run = evaluated(nn.Linear(6, 1), data)
        assert set(run) == with_se({"loss", "squared_error"}) | ORDER_PARAMETERS
        np.testing.assert_allclose(now["squared_error"], 2 * now["loss"], rtol=1e-6)  # half squared error

    @pytest.mark.parametrize("labels", [(0, 1), (-1, 1), (False, True), (3, 7)])
    def test_any_two_labels_mean_the_same(self, labels):
        rng = np.random.default_rng(0)
        score, positive = rng.normal(size=100), rng.random(100) < 0.4
        group = np.where(np.arange(100) < 60, "a", "b")
        now, _ = evaluated(fixed(score), numbered(np.where(positive, *labels[::-1]), group))
        for i, members in enumerate((group == "a", group == "b")):
            s, p = score[members], positive[members]
            assert now["loss"][i] == pytest.approx(np.mean(np.logaddexp(0, -np.where(p, s, -s))), rel=1e-5)
            assert now["error"][i] == pytest.approx(np.mean((s > 0) != p))
            assert now["tpr"][i] == pytest.approx(np.mean(s[p] > 0))
            assert now["fpr"][i] == pytest.approx(np.mean(s[~p] > 0))
            assert now["positive_rate"][i] == pytest.approx(np.mean(s > 0))
            assert now["margin"][i] == pytest.approx(np.mean(np.where(p, s, -s)), rel=1e-5)
            sure = 1 / (1 + np.exp(-abs(s)))
            assert now["confidence"][i] == pytest.approx(sure.mean(), rel=1e-5)
            assert now["calibration_gap"][i] == pytest.approx(np.mean(sure - ((s > 0) == p)), rel=1e-4, abs=1e-6)

    def test_square_decides_at_the_midpoint(self):
        score = np.tile([0.4, 0.6], 50)
        now, _ = evaluated(fixed(score), numbered(np.tile([0, 1], 50), np.repeat(["a", "b"], 50)), loss=tm.Square())
        assert now["error"].values.tolist() == [0.0, 0.0]
        np.testing.assert_allclose(now["loss"], 0.5 * 0.4**2, rtol=1e-5)
        np.testing.assert_allclose(now["margin"], 0.1, rtol=1e-5)
        np.testing.assert_allclose(now["confidence"], 0.6, rtol=1e-5)

    def test_several_outputs_by_hand(self):
        rng = np.random.default_rng(1)
        score, y = rng.normal(size=(90, 3)), np.arange(90) % 3
        now, _ = evaluated(fixed(score), numbered(y, np.repeat(["a", "b"], 45)), chunk=7)
        p = np.exp(score) / np.exp(score).sum(1, keepdims=True)
        for i, part in enumerate((slice(0, 45), slice(45, 90))):
            s, t, q = score[part], y[part], p[part]
            rows = np.arange(45)
            right = s.argmax(1) == t
            other = np.where(np.eye(3, dtype=bool)[t], -np.inf, s).max(1)
            assert now["loss"][i] == pytest.approx(-np.log(q[rows, t]).mean(), rel=1e-5)
            assert now["error"][i] == pytest.approx(1 - right.mean())
            assert now["margin"][i] == pytest.approx((s[rows, t] - other).mean(), rel=1e-4)
            assert now["calibration_gap"][i] == pytest.approx((q.max(1) - right).mean(), rel=1e-4)
            np.testing.assert_allclose(now["class_accuracy"][i], [right[t == c].mean() for c in range(3)])

    def test_a_rate_without_points_is_nan_and_no_divergence(self):
        y = np.r_[np.tile([0, 1], 30), np.zeros(40)].astype(int)
        now, run = evaluated(fixed(np.linspace(-1, 1, 100)), numbered(y, np.repeat(["a", "b"], [60, 40])))
        assert np.isnan(now["tpr"].sel(group="b"))
        assert np.isnan(now["tpr_se"].sel(group="b"))
        assert run.diverged is None

    def test_standard_errors(self):
        """Of a mean: scatter over root n; of 0 wrong of n: not zero. The second route is the bootstrap."""
        rng = np.random.default_rng(2)
        score, y = rng.normal(size=400), rng.integers(0, 2, 400)
        now, _ = evaluated(fixed(score), numbered(y, np.repeat(["a", "b"], 200)))
        losses = np.logaddexp(0, -np.where(y == 1, score, -score))[:200]
        assert now["loss_se"][0] == pytest.approx(losses.std(ddof=1) / np.sqrt(200), rel=1e-4)
        drawn = rng.integers(0, 200, (4000, 200))
        wrong = ((score > 0) != y)[:200]
        assert now["error_se"][0] == pytest.approx(wrong[drawn].mean(1).std(), rel=0.1)
        perfect, _ = evaluated(fixed(np.where(y == 1, 1.0, -1.0)), numbered(y, np.repeat(["a", "b"], 200)))
        assert perfect["error"].values.tolist() == [0.0, 0.0]
        assert (perfect["error_se"] > 0.005).all()

    def test_weights_of_points(self):
        weights = np.tile([1.0, 0.0, 3.0, 0.0], 25)
        rng = np.random.default_rng(3)
        score, y = rng.normal(size=100), rng.integers(0, 2, 100)
        group = np.repeat(["a", "b"], 50)
        now, _ = evaluated(fixed(score), numbered(y, group, weights))
        wrong = (score > 0) != y
        for i, label in enumerate("ab"):
            members = group == label
            assert now["error"][i] == pytest.approx(np.average(wrong[members], weights=weights[members]))

    def test_chunks_do_not_matter(self, images):
        torch.manual_seed(0)
        model = nn.Sequential(nn.Flatten(), nn.Linear(64, 4))
        first, _ = evaluated(model, images, chunk=1)
        for chunk in (3, 64, 1000):
            now, _ = evaluated(model, images, chunk=chunk)
            for name in first:
                np.testing.assert_allclose(now[name], first[name], rtol=1e-5, atol=1e-6)


class TestLosses:
    @pytest.mark.parametrize(
        ("loss", "definition", "factor"),
        [
            (nn.MSELoss(), "MSELoss()", 2.0),
            (nn.functional.mse_loss, "mse_loss", 2.0),
            (tm.Square(), "half squared error", 1.0),
            (lambda s, y: ((s - y) ** 2).mean(), "<lambda>", 2.0),
        ],
    )
    def test_a_users_loss_is_recorded_as_it_is_and_named(self, flat, loss, definition, factor):
        torch.manual_seed(0)
        model = nn.Linear(6, 1)
        half, _ = evaluated(model, flat, loss=tm.Square())
        decide = None if isinstance(loss, (nn.Module, tm.Square)) else (lambda score: score > 0.5)
        now, run = evaluated(model, flat, loss=loss, decide=decide)
        np.testing.assert_allclose(now["loss"], factor * half["loss"], rtol=1e-5)
        np.testing.assert_allclose(now["loss_se"], factor * half["loss_se"], rtol=1e-4)
        assert run["loss"].attrs["definition"] == definition
        assert run.origin.settings["loss"] == definition

    def test_a_loss_that_is_no_mean_over_points_has_no_standard_error(self, images):
        """Class weights are normalised over the batch: only the loss of a whole group is known."""
        weighted = nn.CrossEntropyLoss(weight=torch.tensor([1.0, 2.0, 3.0, 4.0]))
        torch.manual_seed(0)
        model = nn.Sequential(nn.Flatten(), nn.Linear(64, 4))
        now, _ = evaluated(model, images, loss=weighted)
        assert "loss_se" not in now
        x, y = images.tensors()
        for i in range(2):
            members = torch.as_tensor(images.codes == i)
            with torch.no_grad():
                assert float(now["loss"][i]) == pytest.approx(weighted(model(x[members]), y[members]).item(), rel=1e-5)

    def test_agreement_refuses_different_definitions(self, flat):
        runs = [evaluated(nn.Linear(6, 1), flat, loss=loss)[1] for loss in (tm.Square(), nn.MSELoss())]
        with pytest.raises(ValueError, match=r"half squared error and MSELoss\(\): they cannot be compared"):
            tm.agreement(*runs)

    def test_bce_and_logistic_agree_whatever_the_labels(self, flat):
        torch.manual_seed(0)
        model = nn.Linear(6, 1)
        signs = tm.GroupedData(flat.x, 2 * flat.y - 1, [flat.groups[c] for c in flat.codes])
        a, _ = evaluated(model, signs, loss=nn.BCEWithLogitsLoss())
        b, _ = evaluated(model, flat)
        np.testing.assert_allclose(a["loss"], b["loss"], rtol=1e-6)
        np.testing.assert_array_equal(a["error"], b["error"])

    @pytest.mark.parametrize("labels", [(0, 1), (-1, 1)])
    def test_probabilities_are_decided_at_one_half(self, labels):
        chance = np.tile([0.3, 0.9], 50)
        data = numbered(np.tile(labels, 50), np.repeat(["a", "b"], 50))
        now, _ = evaluated(fixed(chance), data, loss=nn.BCELoss())
        assert now["error"].values.tolist() == [0.0, 0.0]
        np.testing.assert_allclose(now["confidence"], 0.8, rtol=1e-5)
        np.testing.assert_allclose(now["loss"], -0.5 * (np.log(0.7) + np.log(0.9)), rtol=1e-5)

    def test_square_of_several_outputs_is_that_of_one_hot_labels(self, images):
        model = nn.Sequential(nn.Flatten(), nn.Linear(64, 4))
        now, _ = evaluated(model, images, loss=tm.Square())
        x, y = images.tensors()
        with torch.no_grad():
            expected = 0.5 * (model(x) - nn.functional.one_hot(y, 4)).square().sum(1).numpy()
        np.testing.assert_allclose(now["loss"], [expected[images.codes == i].mean() for i in range(2)], rtol=1e-5)


class TestMeasures:
    def test_a_users_function_becomes_a_curve(self, flat):
        def spread(y_true, y_score):
            return y_score.std()

        now, run = evaluated(
            nn.Linear(6, 1), flat, measures=[spread, tm.measures.GroupMetric(lambda y, s: s.max(), "top", "higher")]
        )
        assert now["spread"].shape == (2,)
        assert run["top"].attrs["better"] == "higher"
        assert run["spread"].attrs["better"] == "neither"

    def test_a_function_of_the_snapshot_may_give_any_curve(self, flat):
        def extremes(snapshot: Snapshot):
            return {"extreme": snapshot.by_group("extreme", np.asarray([1.0, 2.0]), better="lower")}

        now, _ = evaluated(nn.Linear(6, 1), flat, measures=[extremes])
        assert now["extreme"].values.tolist() == [1.0, 2.0]

    def test_several_outputs_come_as_rows(self, images):
        now, _ = evaluated(
            nn.Sequential(nn.Flatten(), nn.Linear(64, 4)),
            images,
            measures=[tm.measures.GroupMetric(lambda y, s: s.shape[1], "k")],
        )
        assert now["k"].values.tolist() == [4.0, 4.0]

    def test_an_error_in_a_measure_names_it(self, flat):
        def broken(y_true, y_score):
            raise RuntimeError("no")

        with pytest.raises(RuntimeError) as error:
            evaluated(nn.Linear(6, 1), flat, measures=[broken], strict=True)
        assert error.value.__notes__ == ["Raised by the measure 'broken' in group 'a'."]

    def test_decide_overrides(self):
        data = numbered(np.tile([0, 1], 50), np.repeat(["a", "b"], 50))
        now, _ = evaluated(fixed(np.full(100, 0.1)), data, decide=lambda score: score > 0.5)
        assert now["positive_rate"].values.tolist() == [0.0, 0.0]


class TestWhen:
    def loop(self, probe, model, steps):
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for step in range(steps):
            probe(step)
            optimizer.zero_grad()
            model(torch.ones(2, 6)).sum().backward()
            optimizer.step()

    def test_the_final_model_is_always_seen(self, flat):
        model = nn.Linear(6, 1)
        with tm.Probe(model, flat, watch=tm.Watch(when=tm.record.log_spaced(3)), budget=None) as probe:
            self.loop(probe, model, 15)
        assert probe.trajectory()["loss"].time.values.tolist() == [0, 1, 2, 5, 10, 15]
        last, _ = evaluated(model, flat)
        np.testing.assert_array_equal(probe.trajectory()["loss"].isel(time=-1), last["loss"])

    def test_a_call_after_the_last_update_is_the_last_look(self, flat):
        model = nn.Linear(6, 1)
        with tm.Probe(model, flat, watch=tm.Watch(when=tm.record.every(5)), budget=None) as probe:
            self.loop(probe, model, 10)
            probe(10)
        assert probe.trajectory()["loss"].time.values.tolist() == [0, 5, 10]

    def test_an_exception_takes_no_last_look_and_is_noted(self, flat, tmp_path):
        model = nn.Linear(6, 1)

        def fail():
            with tm.Probe(
                model, flat, watch=tm.Watch(when=tm.record.every(5)), to=tmp_path / "run", budget=None
            ) as probe:
                self.loop(probe, model, 8)
                raise ZeroDivisionError("by hand")

        with pytest.raises(ZeroDivisionError):
            fail()
        assert tm.load(tmp_path / "run")["loss"].time.values.tolist() == [0, 5]
        report = tm.record.check(tmp_path / "run")
        assert (report.state, report.reason) == ("failed", "ZeroDivisionError: by hand")

    def test_steps_count_over_all_epochs(self, flat):
        probe = tm.Probe(nn.Linear(6, 1), flat, strict=True, budget=None)
        probe(3)
        probe(3)  # gradient accumulation: the same step again is no new one
        with pytest.raises(
            ValueError, match=r"`step` should count updates over the whole training\. Found step = 0 after 3\."
        ):
            probe(0)

    def test_a_resumed_run_that_begins_again_replaces_what_it_had(self, flat, tmp_path):
        model = nn.Linear(6, 1)
        with tm.Probe(model, flat, watch=tm.Watch(when=tm.record.every(5)), to=tmp_path / "run", budget=None) as probe:
            self.loop(probe, model, 10)
        with tm.Probe(
            model, flat, watch=tm.Watch(when=tm.record.every(5)), to=tmp_path / "run", resume=True, budget=None
        ) as probe:
            with pytest.warns(UserWarning, match="evaluations after step 0 are dropped"):
                probe(0)
            self.loop(probe, model, 10)
        assert tm.load(tmp_path / "run")["loss"].time.values.tolist() == [0, 5, 10]
        with pytest.raises(FileExistsError, match="already holds a run"):
            tm.Probe(model, flat, watch=tm.Watch(when=tm.record.every(5)), to=tmp_path / "run", budget=None)

    def test_divergence_is_recorded_and_training_goes_on(self, flat, tmp_path):
        model = nn.Linear(6, 1)
        with tm.Probe(model, flat, watch=tm.Watch(when=tm.record.every(1)), to=tmp_path / "run", budget=None) as probe:
            probe(0)
            with torch.no_grad():
                model.weight.fill_(torch.nan)
            probe(1)
            probe(2)
        run = tm.load(tmp_path / "run")
        assert run.diverged.item() == 1.0
        assert np.isnan(run["loss"].sel(time=2)).all()


class Outer(nn.Module):
    """Bigger than its outputs: returns a tuple."""

    def __init__(self):
        super().__init__()
        self.inner = nn.Linear(6, 1)

    def forward(self, x):
        return self.inner(x), x


@pytest.mark.parametrize(
    ("make", "kind", "sentence"),
    [
        (lambda d: tm.Probe("model", d, budget=None), TypeError, "`model` should be a torch.nn.Module. Found str."),
        (lambda d: tm.Probe(nn.Linear(6, 1), d.x, budget=None), TypeError, "`held_out` should be GroupedData, which says who belongs to which group. Found ndarray."),
        (lambda d: tm.Probe(nn.Linear(6, 1), d, watch=tm.Watch(when=5), budget=None), TypeError, "`when` should choose steps, as log_spaced(20) or every(100). Found int."),
        (lambda d: tm.Probe(nn.Linear(6, 1), d, chunk=0, budget=None), ValueError, "`chunk` should be a positive number of points. Found chunk = 0."),
        (lambda d: tm.Probe(nn.Linear(6, 1), d.take(d.of_group("a")), budget=None), ValueError, "`held_out` should have points of every group. Found none in group 'b'."),
        (lambda d: tm.Probe(nn.LazyLinear(1), d, budget=None), ValueError, "lazy parameters that are not initialised yet: run one batch"),
        (lambda d: tm.Probe(Outer(), d, budget=None), TypeError, "`model` should return a tensor of scores. Found tuple. Pass read=, as"),
        (lambda d: tm.Probe(Outer(), d, watch=tm.Watch(read=lambda o: o), budget=None), TypeError, "`read` should return a tensor of scores. Found tuple."),
        (lambda d: tm.Probe(nn.Unflatten(1, (2, 3)), d, budget=None), ValueError, "Scores should have one number or one row per point. Found shape (8, 2, 3)"),
        (lambda d: tm.Probe(nn.Linear(6, 2), tm.GroupedData(d.x, d.y + 1, d.codes), budget=None), ValueError, "Labels should lie among the model's 2 outputs, 0 to 1. Found y = 2."),
        (lambda d: tm.Probe(nn.Linear(6, 2), tm.GroupedData(d.x, 2 * d.y - 1, d.codes), budget=None), ValueError, "0 to 1. Found y = -1."),
        (lambda d: tm.Probe(nn.Linear(6, 2), tm.GroupedData(d.x, d.x[:, 0], d.codes), budget=None), ValueError, "With 2 outputs labels should be classes 0 to 1. Found y ="),
        (lambda d: tm.Probe(nn.Linear(6, 1), tm.GroupedData(d.x, d.y * 0 + 1, d.codes), budget=None), ValueError, "The held-out points should have both labels. Found y = 1 only."),
        (lambda d: tm.Probe(nn.Linear(6, 1), tm.GroupedData(d.x, np.arange(200), d.codes), loss=nn.BCEWithLogitsLoss(), budget=None), ValueError, "decides between two labels. Found 200 different ones."),
        (lambda d: tm.Probe(nn.Linear(6, 1), d, loss=lambda s, y: (s * y).mean(), budget=None), ValueError, "say when the decision is positive with decide="),
        (lambda d: tm.Probe(nn.Linear(6, 1), d, loss=nn.MSELoss, budget=None), TypeError, "`loss` should be a loss. Found the class MSELoss: call it."),
        (lambda d: tm.Probe(nn.Linear(6, 1), d, loss="mse", budget=None), TypeError, "`loss` should be a loss, such as Square() or nn.MSELoss(). Found str."),
        (lambda d: tm.Probe(nn.Linear(6, 1), d, loss=tm.losses.CrossEntropy(), budget=None), TypeError, "CrossEntropy() does not fit a model with one output."),
        (lambda d: tm.Probe(nn.Linear(6, 2), d, loss=tm.losses.Hinge(), budget=None), TypeError, "Hinge() does not fit a model with several outputs."),
        (lambda d: tm.Probe(nn.Linear(6, 1), d, watch=tm.Watch(measures=(lambda y, s: 0.0,)), budget=None), ValueError, "A measure needs a name for its curve"),
        (lambda d: tm.Probe(nn.Linear(6, 1), d, watch=tm.Watch(measures=(3,)), budget=None), TypeError, "A measure should be a function. Found int."),
        (lambda d: tm.Probe(nn.Linear(6, 1), d, watch=tm.Watch(measures=(tm.measures.GroupMetric(max, "tpr"),)), budget=None), ValueError, "'tpr' already means share of positives decided positive: choose another name"),
        (lambda d: tm.Probe(nn.Linear(6, 1), d, watch=tm.Watch(measures=[tm.measures.GroupMetric(lambda y, s: 1, "m")] * 2), strict=True, budget=None)(0), ValueError, "Two measures give a curve 'm': rename one."),
        (lambda d: tm.Probe(nn.Linear(6, 1), d, watch=tm.Watch(decide=lambda s: s[:3]), strict=True, budget=None)(0), ValueError, "`decide` should give one decision per point. Found shape (3,)."),
    ],
)  # fmt: skip
def test_sentences(make, kind, sentence, flat):
    with pytest.raises(kind) as error:
        make(flat)
    assert sentence in str(error.value)
