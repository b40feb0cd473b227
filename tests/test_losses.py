"""Losses: derivatives by a second route, torch twins, JSON, and what is refused."""

from dataclasses import dataclass

import numpy as np
import pytest

from tiltmeter.losses import Hinge, Logistic, Loss, Square, checked_loss, loss_from_json, loss_to_json

LOSSES = [Square(), Logistic(), Hinge()]
SCORES = np.linspace(-4.03, 4.03, 41)


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("y", [-1.0, 1.0])
def test_derivatives_are_those_of_the_value(loss, y):
    h = 1e-5
    slope = (loss.value(SCORES + h, y) - loss.value(SCORES - h, y)) / (2 * h)
    np.testing.assert_allclose(loss.gradient(SCORES, y), slope, atol=1e-8)
    bend = (loss.gradient(SCORES + h, y) - loss.gradient(SCORES - h, y)) / (2 * h)
    np.testing.assert_allclose(loss.curvature(SCORES, y), bend, atol=1e-8)


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("y", [-1.0, 1.0])
def test_losses_are_convex_and_symmetric_in_the_labels(loss, y):
    assert (np.diff(loss.gradient(SCORES, y)) >= 0).all()
    np.testing.assert_array_equal(loss.value(SCORES, y), loss.value(-SCORES, -y))


@pytest.mark.parametrize("loss", LOSSES)
def test_torch_twin_gives_the_same_values_and_gradients(loss):
    torch = pytest.importorskip("torch")
    score = torch.tensor(SCORES, requires_grad=True)
    for y in (-1.0, 1.0):
        score.grad = None
        value = loss.torch()(score, torch.full_like(score, y))
        value.sum().backward()
        np.testing.assert_allclose(value.detach().numpy(), loss.value(SCORES, y), rtol=1e-12, atol=1e-12)
        np.testing.assert_allclose(score.grad.numpy(), loss.gradient(SCORES, y), rtol=1e-12, atol=1e-12)


def test_logistic_is_binary_cross_entropy():
    torch = pytest.importorskip("torch")
    score, y = torch.tensor(SCORES), torch.ones(len(SCORES), dtype=torch.float64)
    bce = torch.nn.functional.binary_cross_entropy_with_logits(score, y, reduction="none")
    np.testing.assert_allclose(Logistic().value(SCORES, 1.0), bce.numpy(), atol=1e-12)


def test_logistic_does_not_overflow():
    assert Logistic().value(np.array(-1e4), np.array(1.0)) == pytest.approx(1e4)
    assert Logistic().value(np.array(1e4), np.array(1.0)) == 0.0


@pytest.mark.parametrize("loss", LOSSES)
def test_json_rebuilds_the_loss(loss):
    assert loss_from_json(loss_to_json(loss)) == loss


@dataclass(frozen=True)
class Mine(Loss):
    definition = "fourth power"

    def value(self, score, y):
        return (score - y) ** 4

    def gradient(self, score, y):
        return 4 * (score - y) ** 3

    def curvature(self, score, y):
        return 12 * (score - y) ** 2


def test_a_users_loss_is_named_in_json_and_has_no_twin_unless_given():
    assert loss_to_json(Mine())["definition"] == "fourth power"
    with pytest.raises(ValueError, match="is the user's own and cannot be rebuilt"):
        loss_from_json(loss_to_json(Mine()))
    with pytest.raises(NotImplementedError, match="Mine has no torch twin: define its method `torch`"):
        Mine().torch()


@pytest.mark.parametrize(("given", "found"), [("logistic", "Found str."), (Square, "Found the class Square: call it.")])
def test_what_is_no_loss_is_refused(given, found):
    with pytest.raises(TypeError, match="`loss` should be a loss, as") as error:
        checked_loss(given)
    assert str(error.value).endswith(found)
