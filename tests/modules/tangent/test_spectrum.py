"""Spectrum: shares add up, match the dynamics they explain, and bad kernels are refused."""

import numpy as np
import pytest

from tiltmeter.modules.tangent import spectrum as module
from tiltmeter.modules.tangent.spectrum import spectrum


@pytest.fixture
def problem():
    rng = np.random.default_rng(0)
    features = rng.normal(size=(40, 60)) * np.linspace(2, 0.1, 60)
    return features @ features.T, rng.normal(size=40), np.where(np.arange(40) % 3 == 0, "b", "a")


def test_all_modes_hold_all_of_every_task(problem):
    kernel, y, groups = problem
    found = spectrum(kernel, y, groups)
    assert list(found.group.values) == ["a", "b"]
    np.testing.assert_allclose(found.cumulative_alignment.isel(mode=-1), 1.0)
    np.testing.assert_allclose(found.eigenvalue, np.linalg.eigvalsh(kernel)[::-1])
    assert (found.alignment >= 0).all()


@pytest.mark.parametrize("centred", [True, False])
def test_rates_and_shares_are_those_of_gradient_descent(problem, centred):
    """Only one group's residual is there to be learned: its squared norm decays by its shares, step by step."""
    kernel, y, groups = problem
    start, lr, steps = np.full(40, 0.3), 0.05, 7
    found = spectrum(kernel, y, groups, initial=start, lr=lr, centred=centred)
    for group in ("a", "b"):
        mine = groups == group
        residual = np.where(mine, y - start - (y - start)[mine].mean() * centred, 0.0)
        norm = residual @ residual
        for _ in range(steps):
            residual = residual - lr / 40 * kernel @ residual
        expected = (found.alignment.sel(group=group) * (1 - found.rate) ** (2 * steps)).sum()
        assert residual @ residual / norm == pytest.approx(float(expected))


def test_a_task_in_fast_directions_is_seen_there():
    """Both groups have the same task, which is the fastest direction of one and the slowest of the other."""
    rng = np.random.default_rng(1)
    task = np.tile([1.0, -1.0, 0.0], 5)
    block = np.linalg.qr(np.c_[task, rng.normal(size=(15, 14))])[0]
    basis = np.kron(np.eye(2), block)
    kernel = basis @ np.diag([9.0, *[1.0] * 14, 0.5, *[1.0] * 14]) @ basis.T
    found = spectrum(kernel, np.tile(task, 2), np.repeat(["fast", "slow"], 15))
    np.testing.assert_allclose(found.alignment.isel(mode=0), [1.0, 0.0], atol=1e-12)
    np.testing.assert_allclose(found.alignment.isel(mode=-1), [0.0, 1.0], atol=1e-12)


def test_lanczos_agrees_with_all_eigenvectors(problem, monkeypatch):
    kernel, y, groups = problem
    expected = spectrum(kernel, y, groups, modes=3)
    monkeypatch.setattr(module, "FULL_ROWS", 10)
    found = spectrum(kernel, y, groups, modes=3)
    np.testing.assert_allclose(found.eigenvalue, expected.eigenvalue)
    np.testing.assert_allclose(found.alignment, expected.alignment, atol=1e-10)


def test_several_outputs_are_one_task():
    rng = np.random.default_rng(2)
    features = rng.normal(size=(12, 20))
    found = spectrum(features @ features.T, rng.normal(size=(6, 2)), list("aabbab"), lr=0.1)
    np.testing.assert_allclose(found.cumulative_alignment.isel(mode=-1), 1.0)
    np.testing.assert_allclose(found.rate, 0.1 * found.eigenvalue / 6)


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"kernel": np.ones((2, 3))}, r"^`kernel` should be square. Found shape \(2, 3\)\.$"),
        ({"kernel": np.diag([1.0, np.nan, 1.0, 1.0])}, r"^`kernel` should be finite. Found nan in row 1\.$"),
        ({"kernel": np.triu(np.ones((4, 4)))}, r"^`kernel` should be symmetric."),
        ({"kernel": -np.eye(4)}, r"no negative one. Found -1 to -1\.$"),
        ({"y": np.ones(3)}, r"^`y` should have one number per row of the kernel, 4. Found 3\.$"),
        ({"groups": list("ab")}, r"^`groups` should have one label per point, 4. Found 2\.$"),
        ({"y": np.array([1, -1, 1, 1])}, r"^Labels should vary within every group. Found y = 1 alone in 'b'\.$"),
        ({"y": np.array([1, -1, 0, 0]), "centred": False}, r"Found residuals of zero in 'b'\.$"),
        ({"modes": 5}, r"^`modes` should lie between 1 and 4. Found modes = 5\.$"),
    ],
)
def test_bad_input_is_one_sentence(change, sentence):
    given = {"kernel": np.eye(4), "y": np.array([1, -1, 1, -1]), "groups": list("aabb"), **change}
    with pytest.raises(ValueError, match=sentence):
        spectrum(**given)
