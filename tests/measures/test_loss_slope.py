"""Slopes by formula are the derivatives that autograd takes."""

import pytest
import torch

import tiltmeter as tm
from tiltmeter.measures.point_loss import loss_slope, point_loss

LABELS = {"minus one and one": [-1.0, 1.0], "zero and one": [0.0, 1.0]}


@pytest.mark.parametrize("labels", LABELS)
@pytest.mark.parametrize("loss", [tm.Square(), tm.Logistic(), tm.losses.Hinge()], ids=lambda loss: type(loss).__name__)
def test_one_score(loss, labels):
    draw = torch.Generator().manual_seed(0)
    scores = 3.0 * torch.randn(2, 50, generator=draw)
    y = torch.tensor(LABELS[labels])[torch.randint(2, (50,), generator=draw)]
    known = point_loss(loss, scores[0, :8], y[:8], LABELS[labels])
    found = known.slope.slope(scores, known.slope.targets(y))
    for run in range(2):
        given = scores[run].clone().requires_grad_()
        (expected,) = torch.autograd.grad(known.each(given, y).sum(), given)
        torch.testing.assert_close(found[run], expected)


def test_several_scores():
    draw = torch.Generator().manual_seed(0)
    scores, y = torch.randn(2, 50, 4, generator=draw), torch.randint(4, (50,), generator=draw)
    known = point_loss(tm.losses.CrossEntropy(), scores[0, :8], y[:8], [0.0, 1.0, 2.0, 3.0])
    found = known.slope.slope(scores, known.slope.targets(y[None]))
    for run in range(2):
        given = scores[run].clone().requires_grad_()
        (expected,) = torch.autograd.grad(known.each(given, y).sum(), given)
        torch.testing.assert_close(found[run], expected)


def test_others_go_through_autograd():
    scores, y = torch.randn(8), torch.ones(8)
    assert point_loss(torch.nn.MSELoss(), scores, y, [0.0, 1.0]).slope is None
    assert point_loss(tm.Square(), torch.randn(8, 3), y.long(), [0.0, 1.0, 2.0]).slope is None


@pytest.mark.parametrize("points", [1, 7, 16, 33, 64])
def test_the_slopes_of_a_run_do_not_depend_on_how_many_there_are(points):
    """Torch rounds numbers that fill no pair of vectors in another way: a batch of 16 alone, or beside three others."""
    found = loss_slope(tm.Logistic(), False, 1.0)
    scores = torch.randn(200, points, generator=torch.Generator().manual_seed(0))
    goals = found.targets((torch.arange(points) % 2).float())[None]
    assert torch.equal(found.slope(scores, goals), torch.cat([found.slope(row[None], goals) for row in scores]))
