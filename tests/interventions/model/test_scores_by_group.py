"""GroupTemperature and GroupThreshold: what is fitted, what stays, and curves of a training."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from scipy.optimize import minimize_scalar
from sklearn.base import BaseEstimator
from torch import nn

import tiltmeter as tm

I = tm.interventions


def points(count=900, seed=0, sharpness=(1.0, 3.0)):
    """The odds of a point are those of its score times the sharpness of its group."""
    rng = np.random.default_rng(seed)
    late = rng.random(count) < 0.4
    x = rng.normal(size=(count, 2)).astype("float32")
    x[:, 0] -= 0.8 * late
    odds = np.where(late, sharpness[1], sharpness[0]) * (x[:, 0] + 0.8 * late)
    return tm.GroupedData(x, (rng.random(count) < 1 / (1 + np.exp(-odds))).astype(int), np.where(late, "late", "early"))


def first_input(outputs=1):
    model = nn.Linear(2, outputs)
    with torch.no_grad():
        model.weight.zero_()
        model.bias.zero_()
        model.weight[-1, 0] = 1.0
    return model


def own(data, group):
    return data.codes == data.groups.index(group)


class TestTemperature:
    def test_the_loss_of_every_group_is_smallest_there(self):
        data = points()
        fitted = I.GroupTemperature().deliver(first_input(), data)
        for code, scale in enumerate(fitted.scale.tolist()):
            margins = (np.where(data.y == 1, 1, -1) * data.x[:, 0])[data.codes == code].astype(float)
            best = minimize_scalar(lambda s, m=margins: np.logaddexp(0, -s * m).mean(), (0.1, 10.0), tol=1e-12)
            assert scale == pytest.approx(best.x, rel=1e-5)

    def test_two_outputs_are_one_score(self):
        data = points()
        one, two = (I.GroupTemperature().deliver(first_input(outputs), data).scale for outputs in (1, 2))
        torch.testing.assert_close(one, two)

    def test_it_finds_the_sharpness_and_leaves_decisions_alone(self):
        data = points(20_000, sharpness=(1.0, 3.0))
        data = tm.GroupedData(data.x + 0.8 * own(data, "late")[:, None].astype("float32"), data.y, data.codes)
        fitted = I.GroupTemperature().deliver(first_input(), data)
        np.testing.assert_allclose(fitted.scale, [1.0, 3.0], rtol=0.1)
        train, held_out, held = points().split(0.3, judge=0.3)
        plain, law = (trained(train, held_out, held, *laws) for laws in ((), (I.GroupTemperature(),)))
        np.testing.assert_array_equal(plain["error"], law["error"])
        assert float(law["loss"].isel(time=0).mean()) < float(plain["loss"].isel(time=0).mean())

    def test_scores_that_tell_everything_or_nothing_have_an_end(self):
        data = tm.GroupedData(
            np.array([[1.0, 0], [-1.0, 0]] * 40).astype("float32"), [1, 0] * 40, ["a"] * 40 + ["b"] * 40
        )
        assert I.GroupTemperature().deliver(first_input(), data).scale.tolist() == [1e3, 1e3]
        wrong = tm.GroupedData(-data.x, data.y, data.codes)
        assert I.GroupTemperature().deliver(first_input(), wrong).scale.tolist() == [1e-3, 1e-3]


def trained(train, held_out, held, *laws):
    torch.manual_seed(1)
    model = nn.Linear(2, 1)
    recipe = tm.Recipe(lr=0.1, steps=20, batch=16, loss=tm.Logistic(), interventions=laws)
    more = {"validation": held} if laws else {}
    return tm.train(model, train, held_out, recipe, watch=tm.Watch(when=tm.record.at([0, 20])), **more)


class FirstInput(BaseEstimator):
    """The first input as a score, for Fairlearn."""

    def __init__(self):
        self.fitted_ = True

    def fit(self, x, y):
        raise NotImplementedError  # it is fitted already

    def predict(self, x):
        return np.asarray(x)[:, 0].astype(float)


class TestThreshold:
    @pytest.mark.parametrize("equal", ["positive_rate", "tpr", "fpr"])
    def test_rates_are_equal_on_the_points_it_was_fitted_to(self, equal):
        data = points()
        fitted = I.GroupThreshold(equal).deliver(first_input(), data)
        scores = fitted(data.tensors()[0], np.asarray(data.groups)[data.codes].tolist()).detach().numpy()
        counted = {"tpr": data.y == 1, "fpr": data.y == 0}.get(equal, np.ones(len(data), bool))
        members = [own(data, group) & counted for group in data.groups]
        fewest = min(chosen.sum() for chosen in members)
        before = [(data.x[chosen, 0] > 0).mean() for chosen in members]
        after = [(scores[chosen] > 0).mean() for chosen in members]
        assert np.ptp(before) > 0.1
        assert np.ptp(after) <= 1.0 / fewest
        assert min(before) - 1.0 / fewest <= min(after) <= max(after) <= max(before) + 1.0 / fewest

    @pytest.mark.parametrize("equal", ["positive_rate", "tpr", "fpr"])
    def test_no_rate_between_those_of_the_groups_has_fewer_errors(self, equal):
        """Every pair of thresholds halfway between two counted scores, tried one by one."""
        data = points(300)
        fitted = I.GroupThreshold(equal).deliver(first_input(), data)
        score, counted = data.x[:, 0], {"tpr": data.y == 1, "fpr": data.y == 0}.get(equal, np.ones(len(data), bool))

        def levels(code):
            ranked = np.sort(score[(data.codes == code) & counted]).astype(float)
            return np.concatenate([[-99.0, 0.0], (ranked[1:] + ranked[:-1]) / 2, [99.0]])

        def of_group(code, levels):
            mine = data.codes == code
            decided = score[mine] > np.asarray(levels)[:, None]
            return decided[:, counted[mine]].mean(1), (decided != (data.y[mine] == 1)).sum(1)

        (one, wrong), (two, also) = (of_group(code, levels(code)) for code in range(2))
        low, high = sorted(of_group(code, [0.0])[0][0] for code in range(2))
        near = 0.5 / min((counted & (data.codes == code)).sum() for code in range(2))
        inside = (np.abs(one[:, None] - two) <= near) & ((one >= low) & (one <= high))[:, None]
        inside &= (two >= low) & (two <= high)
        reached = sum(int(of_group(code, [shift])[1][0]) for code, shift in enumerate(fitted.shift.tolist()))
        assert reached <= (wrong[:, None] + also)[inside].min()

    @pytest.mark.parametrize("equal", ["positive_rate", "tpr", "fpr"])
    def test_errors_are_as_few_as_those_of_a_threshold_optimizer(self, equal):
        """By a second route: Fairlearn's, which may also draw lots, at every rate."""
        post = pytest.importorskip("fairlearn.postprocessing")
        data = points(2000)
        names = np.asarray(data.groups)[data.codes]
        parity = {"tpr": "true_positive_rate_parity", "fpr": "false_positive_rate_parity"}
        optimizer = post.ThresholdOptimizer(
            estimator=FirstInput(),
            constraints=parity.get(equal, "demographic_parity"),
            prefit=True,
            predict_method="predict",
        )
        optimizer.fit(data.x, data.y, sensitive_features=names)
        theirs = [optimizer.predict(data.x, sensitive_features=names, random_state=seed) for seed in range(20)]
        fitted = I.GroupThreshold(equal).deliver(first_input(), data)
        ours = fitted(data.tensors()[0], names.tolist()).detach().numpy() > 0
        assert (ours != data.y).mean() <= (np.array(theirs) != data.y).mean() + 0.005

    def test_no_threshold_has_fewer_errors(self):
        data = points(300)
        fitted = I.GroupThreshold("error").deliver(first_input(), data)
        for code, shift in enumerate(fitted.shift.tolist()):
            score, y = data.x[data.codes == code, 0].astype(float), data.y[data.codes == code] == 1
            errors = [((score > c) != y).mean() for c in [*score, -99.0]]
            assert ((score > shift) != y).mean() == min(errors)

    def test_equal_scores_are_not_parted(self):
        x = np.array([[1.0, 0], [1.0, 0], [-1.0, 0], [-1.0, 0]] * 20).astype("float32")
        data = tm.GroupedData(x, [1, 0, 0, 0] * 20, ["a"] * 40 + ["b"] * 40)
        assert I.GroupThreshold("error").deliver(first_input(), data).shift.tolist() == [0.0, 0.0]

    def test_groups_alike_keep_their_threshold(self):
        """Negative control."""
        data = points(400)
        data = tm.GroupedData(np.tile(data.x, (2, 1)), np.tile(data.y, 2), ["a"] * 400 + ["b"] * 400)
        for equal in ("positive_rate", "tpr"):
            assert I.GroupThreshold(equal).deliver(first_input(), data).shift.tolist() == [0.0, 0.0]

    def test_the_curves_are_those_of_the_shifted_scores(self):
        train, held_out, held = points().split(0.3, judge=0.3)
        torch.manual_seed(1)
        model = nn.Linear(2, 1)
        recipe = tm.Recipe(lr=0.1, steps=20, batch=16, loss=tm.Logistic(), interventions=(I.GroupThreshold(),))
        run = tm.train(model, train, held_out, recipe, validation=held)
        fitted = I.GroupThreshold().deliver(model, held)  # the model is as it was trained
        scores = fitted(held_out.tensors()[0], np.asarray(held_out.groups)[held_out.codes].tolist()).detach().numpy()
        expected = [(scores[own(held_out, group)] > 0).mean() for group in held_out.groups]
        np.testing.assert_allclose(run["positive_rate"].values[-1], expected)
        plain = replace(recipe, interventions=())
        torch.manual_seed(1)
        other = nn.Linear(2, 1)
        tm.train(other, train, held_out, plain)
        assert torch.equal(model.weight, other.weight)

    def test_groups_in_another_order(self):
        train, held_out, held = points().split(0.3, judge=0.3)
        turned = tm.GroupedData(held.x, held.y, np.asarray(held.groups)[held.codes], groups=held.groups[::-1])
        assert turned.groups != held.groups
        law = I.GroupThreshold("tpr")
        one, two = trained(train, held_out, held, law), trained(train, held_out, turned, law)
        np.testing.assert_array_equal(one["positive_rate"], two["positive_rate"])


class TestAttribute:
    """Groups that contain the label share what is fitted to their attribute."""

    @staticmethod
    def cells():
        data = points()
        names = np.array([f"{data.groups[code]} {y}" for code, y in zip(data.codes, data.y, strict=False)])
        attribute = {f"{group} {y}": group for group in data.groups for y in (0, 1)}
        return data, tm.GroupedData(data.x, data.y, names), attribute

    @pytest.mark.parametrize("law", [I.GroupTemperature, I.GroupThreshold], ids=lambda law: law.__name__)
    def test_it_is_the_law_of_the_attribute(self, law):
        data, cells, attribute = self.cells()
        plain, told = law().deliver(first_input(), data), law(attribute=attribute).deliver(first_input(), cells)
        x = torch.as_tensor(data.x[:50])
        by_cell = [cells.groups[code] for code in cells.codes[:50]]
        by_attribute = [data.groups[code] for code in data.codes[:50]]
        torch.testing.assert_close(told(x, by_cell), plain(x, by_attribute), rtol=0, atol=0)

    def test_groups_that_were_not_held_out_are_answered_by_their_attribute(self):
        _data, cells, attribute = self.cells()
        fitted = I.GroupThreshold(attribute={**attribute, "new": "late"}).deliver(first_input(), cells)
        assert fitted(torch.zeros(1, 2), ["new"]) == fitted(torch.zeros(1, 2), ["late 0"])
        assert fitted(torch.zeros(1, 2), ["late"]) == fitted(torch.zeros(1, 2), ["late 0"])

    def test_without_it_nothing_can_be_fitted(self):
        _, cells, attribute = self.cells()
        with pytest.raises(ValueError, match=r"needs held-out points of both labels in every group. Found y = 0 alone"):
            I.GroupThreshold().deliver(first_input(), cells)
        attribute.pop("late 1")
        with pytest.raises(TypeError, match=r"`attribute` should say which one every group has, as .* Found 'late'."):
            I.GroupThreshold(attribute="late").deliver(first_input(), cells)
        with pytest.raises(ValueError, match=r"`attribute` should name every group. Missing: 'late 1'"):
            I.GroupThreshold(attribute=attribute).deliver(first_input(), cells)


class TestBadInput:
    @pytest.mark.parametrize("law", [I.GroupTemperature(), I.GroupThreshold()], ids=lambda law: type(law).__name__)
    def test_one_class_in_a_group(self, law):
        data = points()
        one = data.take(np.flatnonzero((data.y == 1) | own(data, "early")))
        sentence = (
            rf"{type(law).__name__} needs held-out points of both labels in every group. Found y = 1 alone in 'late'"
        )
        with pytest.raises(ValueError, match=sentence):
            law.deliver(first_input(), one)
        empty = data.take(np.flatnonzero(own(data, "early")))
        with pytest.raises(ValueError, match="Found none in 'late'"):
            law.deliver(first_input(), empty)
        with pytest.raises(ValueError, match="needs validation groups: give validation="):
            tm.train(first_input(), data, data, tm.Recipe(lr=0.1, steps=2, interventions=(law,)))

    def test_values(self):
        with pytest.raises(ValueError, match='`equal` should be "positive_rate", "tpr", "fpr" or "error"'):
            I.GroupThreshold("luck")
        with pytest.raises(ValueError, match=r"decides between two labels by one score. Found 2 scores"):
            I.GroupThreshold().deliver(first_input(2), points())
        fitted = I.GroupThreshold().deliver(first_input(), points())
        with pytest.raises(KeyError, match=r"names the unknown group 'x'. There are: 'early', 'late'"):
            fitted(torch.zeros(1, 2), ["x"])

    def test_a_group_that_was_not_held_out(self):
        data = points()
        other = tm.GroupedData(data.x, data.y, np.where(own(data, "late"), "late", "new"))
        recipe = tm.Recipe(lr=0.1, steps=2, loss=tm.Logistic(), interventions=(I.GroupThreshold(),))
        with pytest.raises(ValueError, match="`validation` has no points of group 'new' of `held_out`"):
            tm.train(first_input(), other, other, recipe, validation=data)
