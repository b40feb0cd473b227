"""Theory = training: a PyTorch loop on samples of the data model follows the predicted losses."""

import numpy as np
import pytest

from tiltmeter import SGD, predict, teacher_mixture

torch = pytest.importorskip("torch")

D, SEEDS, STEPS = 200, 48, 2000


def train(problem, lr, mse, seed):
    """All seeds at once, each a column of the weights; exact population losses from the overlaps at the end."""
    generator = torch.Generator().manual_seed(seed)
    rng = np.random.default_rng(seed)
    # Vectors with the prescribed overlaps: an orthonormal frame times a factor of the Gram matrix.
    frame = np.linalg.qr(rng.normal(size=(D, 4)))[0]
    values, vectors = np.linalg.eigh(problem.gram.values)
    fixed = torch.tensor(frame @ (vectors * np.sqrt(np.maximum(values, 0))).T, dtype=torch.float64)  # unit vectors
    means, teachers = fixed[:, :2], fixed[:, 2:]
    variance = torch.tensor(problem.variance.values)
    bias = torch.tensor(problem.label_bias.values)
    w = torch.zeros(D, SEEDS, dtype=torch.float64, requires_grad=True)
    loss_of = torch.nn.MSELoss(reduction="none")
    optimizer = torch.optim.SGD([w], **{**SGD(lr=lr).to_torch(D), **({"lr": lr / D / 2} if mse else {})})
    rho = float(problem.weight[0])
    for _ in range(STEPS):
        minus = (torch.rand(SEEDS, generator=generator, dtype=torch.float64) >= rho).long()
        z = torch.randn(D, SEEDS, generator=generator, dtype=torch.float64)
        x = means[:, minus] + variance[minus].sqrt() * z
        y = torch.sign((teachers[:, minus] * x).sum(0) + bias[minus])
        loss = loss_of((w * x).sum(0), y).sum() * (1.0 if mse else 0.5)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return (fixed.T @ w.detach()).numpy(), (w.detach() ** 2).sum(0).numpy()


@pytest.mark.parametrize("mse", [False, True], ids=["half squared error", "nn.MSELoss"])
def test_training_follows_the_theory(mse):
    problem = teacher_mixture(0.7, 1.5, (0.5, 1.2), 0.6, (0.5, -0.3), (0.2, -0.4))
    overlaps, Q = train(problem, 0.3, mse, seed=11)
    theory = predict(problem, SGD(lr=0.3), [STEPS / D])
    expected = {"M": theory["M"].values[0], "R": theory["R"].values[0], "Q": theory["Q"].values}
    measured = {"M": overlaps[:2], "R": overlaps[2:], "Q": Q[None]}
    for name, values in measured.items():
        error = values.std(1, ddof=1) / np.sqrt(SEEDS)
        # 4 standard errors, and the O(1/d) distance of finite dimension from the limit.
        assert (abs(values.mean(1) - expected[name]) < 4 * error + 1.0 / D).all(), name
