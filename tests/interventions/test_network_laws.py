"""Laws of networks one by one: each against a formula or a second route."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import nn

import tiltmeter as tm

I = tm.interventions


class TestGeneralisedCrossEntropy:
    def test_its_gradient_is_the_usual_one_times_a_power_of_the_probability(self):
        # Published code of LfF multiplies by q once more; this is the gradient of the loss itself.
        scores = torch.tensor([-1.0, 0.5, 2.0], dtype=torch.float64, requires_grad=True)
        usual = nn.functional.softplus(-scores)
        (plain,) = torch.autograd.grad(usual.sum(), scores, retain_graph=True)
        (found,) = torch.autograd.grad(I.GeneralisedCrossEntropy(0.7).each(usual, None, None).sum(), scores)
        torch.testing.assert_close(found, plain * torch.sigmoid(scores) ** 0.7)

    @pytest.mark.parametrize("q", [0.0, 1.5, True])
    def test_bad_input(self, q):
        with pytest.raises(ValueError, match="`q` should lie above 0 and be at most 1"):
            I.GeneralisedCrossEntropy(q)


class TestSpectralDecoupling:
    @pytest.mark.parametrize(("strength", "margin"), [(0.05, 2.1280), (0.1, 1.6335)])
    def test_margins_of_a_linear_model_solve_their_equation(self, strength, margin):
        rng = np.random.default_rng(0)
        x = np.linalg.qr(rng.normal(size=(90, 60)))[0].T * rng.uniform(0.7, 1.0, (60, 1))  # fewer points than inputs
        data = tm.GroupedData(x, np.sign(rng.normal(size=60)), np.arange(60) % 2)
        model = nn.Linear(90, 1, bias=False).double()
        recipe = tm.Recipe(
            lr=180.0, steps=150, batch=None, loss=tm.Logistic(), interventions=(I.SpectralDecoupling(strength),)
        )
        tm.train(model, data, data, recipe, watch=tm.Watch(when=tm.at([150])))
        margins = data.y * (x @ model.weight.detach().numpy()[0])
        np.testing.assert_allclose(margins, margin, atol=1e-3)

    def test_several_scores(self):
        found = I.SpectralDecoupling(2.0).each(torch.zeros(2), torch.tensor([[1.0, 2.0], [0.0, 3.0]]), None)
        torch.testing.assert_close(found, torch.tensor([5.0, 9.0]))


class TestSAM:
    def test_the_step_on_a_quadratic(self):
        A, theta = torch.diag(torch.tensor([1.0, 3.0])), torch.tensor([0.5, -1.0])
        w = theta.clone().requires_grad_()
        optimizer = I.SAM(0.2).optimizer(torch.optim.SGD([w], lr=0.1))

        def closure():
            w.grad = None
            value = 0.5 * w @ A @ w
            value.backward()
            return value

        optimizer.step(closure)
        g = A @ theta
        torch.testing.assert_close(w.detach(), theta - 0.1 * A @ (theta + 0.2 * g / g.norm()))

    def test_statistics_are_those_of_one_pass(self):
        rng = np.random.default_rng(0)
        x = rng.normal(size=(80, 3)).astype("float32")
        data = tm.GroupedData(x, (x[:, 0] > 0).astype(int), np.arange(80) % 2)

        def made():
            torch.manual_seed(0)
            return nn.Sequential(nn.BatchNorm1d(3), nn.Linear(3, 1))

        plain, sharp = made(), made()
        recipe = tm.Recipe(lr=0.1, steps=1, batch=16)
        tm.train(plain, data, data, recipe)
        tm.train(sharp, data, data, replace(recipe, interventions=(I.SAM(0.5),)))
        assert sharp[0].num_batches_tracked == 1
        torch.testing.assert_close(plain[0].running_mean, sharp[0].running_mean)
        assert not torch.equal(plain[1].weight, sharp[1].weight)


class TestSelecMix:
    def test_partners_contradict_the_bias(self):
        rng = np.random.default_rng(0)
        y, group = torch.as_tensor(rng.integers(0, 2, 40)), torch.as_tensor(rng.integers(0, 2, 40))
        x = torch.stack([y, group], dim=1).double()
        mixed, labels, codes = I.SelecMix(plain=False).batch(x, y, group, np.random.default_rng(1))
        assert torch.equal(labels, y)  # the same label,
        assert torch.equal(codes, 1 - group)  # the other group,
        share = (mixed[:, 1] - codes).abs()
        assert (share <= 0.5).all()  # and the partner's part is the larger
        assert 0.15 < share.mean() < 0.35

    def test_another_label_where_no_other_group_has_the_same(self):
        x, y, group = torch.eye(2), torch.tensor([0, 1]), torch.tensor([0, 0])
        _, labels, codes = I.SelecMix(plain=False).batch(x, y, group, np.random.default_rng(0))
        assert labels.tolist() == [1, 0]
        assert codes.tolist() == [0, 0]

    def test_a_point_alone_stays(self):
        x, y, group = torch.ones(1, 2), torch.tensor([0]), torch.tensor([0])
        mixed, _, _ = I.SelecMix(plain=False).batch(x, y, group, np.random.default_rng(0))
        torch.testing.assert_close(mixed, x)

    def test_tokens_cannot_be_mixed(self):
        with pytest.raises(TypeError, match="SelecMix mixes points, which should be numbers with a fraction"):
            I.SelecMix().batch(torch.ones(2, 3).long(), torch.zeros(2), torch.zeros(2), np.random.default_rng(0))


class TestDownsampled:
    def test_counts_and_points(self):
        data = tm.GroupedData(np.arange(130.0)[:, None], np.zeros(130), ["a"] * 100 + ["b"] * 30)
        found = I.Downsampled(2.0).data(data, None)
        assert found.sizes == {"a": 60, "b": 30}
        assert len(np.unique(found.x)) == 90
        np.testing.assert_array_equal(found.x, I.Downsampled(2.0).data(data, None).x)
        assert not np.array_equal(found.x, I.Downsampled(2.0, seed=1).data(data, None).x)

    def test_bad_input(self):
        with pytest.raises(ValueError, match="`ratio` should be at least 1"):
            I.Downsampled(0.5)
        with pytest.raises(ValueError, match="`scout` of Downsampled should be 0"):
            I.Downsampled(scout=5)


class TestDFR:
    @staticmethod
    def data(count, aligned, seed=0):
        rng = np.random.default_rng(seed)
        y, agree = rng.integers(0, 2, count), rng.random(count) < aligned
        x = rng.normal(size=(count, 6)).astype("float32")
        x[:, 0] += 1.0 * (2 * y - 1)
        x[:, 1] += 3.0 * (2 * y - 1) * np.where(agree, 1, -1)
        return tm.GroupedData(x, y, np.where(agree, "common", "rare"))

    def test_a_biased_last_layer_is_repaired(self):
        held, test = self.data(600, 0.9), self.data(2000, 0.5, seed=1)
        model = nn.Linear(6, 1)
        with torch.no_grad():
            model.weight.copy_(torch.tensor([[0.0, 3.0, 0, 0, 0, 0]]))
        fitted = I.DFR().deliver(model, held)
        rare = test.take(test.of_group("rare"))
        wrong = [((m(rare.tensors()[0])[:, 0] > 0).numpy() != rare.y).mean() for m in (model, fitted)]
        assert wrong[0] > 0.9
        assert wrong[1] < 0.25
        assert abs(fitted.weight[0, 1].item()) < 0.3 * fitted.weight[0, 0].item()
        assert model.weight[0, 1].item() == 3.0  # the model that was given is left alone

    def test_one_fit_on_balanced_points_is_a_logistic_regression(self):
        from sklearn.linear_model import LogisticRegression

        even = self.data(400, 0.5)
        cells = [np.flatnonzero((even.codes == c) & (even.y == y))[:60] for c in (0, 1) for y in (0, 1)]
        even = even.take(np.concatenate(cells))
        scaled = (even.x - even.x.mean(0)) / even.x.std(0)
        expected = LogisticRegression(max_iter=1000).fit(scaled, even.y).decision_function(scaled)
        for outputs in (1, 2):
            fitted = I.DFR(fits=1).deliver(nn.Linear(6, outputs), even)
            found = fitted(even.tensors()[0]).detach().numpy()
            found = found[:, 0] if outputs == 1 else found[:, 1] - found[:, 0]
            np.testing.assert_allclose(found, expected, atol=2e-2)

    def test_the_delivered_model_is_seen_and_left(self):
        train, look = self.data(500, 0.9).split(0.4)
        held = self.data(300, 0.9, seed=2)
        model = nn.Sequential(nn.Linear(6, 8), nn.Tanh(), nn.Linear(8, 1))
        recipe = tm.Recipe(lr=0.1, steps=10, batch=16, interventions=(I.DFR(fits=2),))
        run = tm.train(model, train, look, recipe, held_out=held)
        again = I.DFR(fits=2).deliver(model, held)
        torch.testing.assert_close(again[2].weight, model[2].weight)
        with torch.no_grad():
            wrong = ((model(look.tensors()[0])[:, 0] > 0).numpy() != look.y)[look.of_group("rare")].mean()
        assert run["error"].sel(group="rare").values[-1] == pytest.approx(wrong)

    def test_bad_input(self):
        with pytest.raises(ValueError, match="`fits` should be a positive whole number"):
            I.DFR(fits=0)
        with pytest.raises(TypeError, match=r"DFR fits the last linear layer anew. Found a model without any"):
            I.DFR().deliver(nn.Conv1d(1, 1, 1), self.data(50, 0.5))
