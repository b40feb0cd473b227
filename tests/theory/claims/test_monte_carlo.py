"""Per-group loss, error and rates against samples of the data model itself."""

import numpy as np
import pytest

from tiltmeter import SGD, predict, teacher_mixture

SAMPLES = 400_000


@pytest.mark.parametrize("time", [0.3, 5.0, 60.0])
def test_rates_equal_those_of_samples(time):
    problem = teacher_mixture(0.7, 1.5, (0.5, 1.2), 0.6, (0.5, -0.3), (0.2, -0.4))
    theory = predict(problem, SGD(lr=0.3, train_bias=True), [time])
    gram = problem.gram.values
    rng = np.random.default_rng(int(10 * time))
    # A student with the predicted overlaps: its part in the span of means and teachers, and one direction across.
    overlaps = np.concatenate([theory["M"].values[0], theory["R"].values[0]])
    values, vectors = np.linalg.eigh(gram)
    basis = vectors * np.sqrt(np.maximum(values, 0.0))  # rows: coordinates of means and teachers
    inside = np.linalg.pinv(basis, rcond=1e-7) @ overlaps
    across = np.sqrt(theory["Q"].item() - inside @ inside)
    bias = theory["student_bias"].item()
    for g, group in enumerate(problem.groups):
        D = float(problem.variance[g])
        x = basis[g] + np.sqrt(D) * rng.normal(size=(SAMPLES, 4))
        score = x @ inside + np.sqrt(D) * across * rng.normal(size=SAMPLES) + bias
        y = np.sign(x @ basis[2 + g] + float(problem.label_bias[g]))
        decided = score > 0
        samples = {
            "loss": 0.5 * (score - y) ** 2,
            "error": decided != (y > 0),
            "positive_rate": decided,
            "tpr": decided[y > 0],
            "fpr": decided[y < 0],
            "ppv": (y > 0)[decided],
        }
        for name, sample in samples.items():
            error = np.std(sample) / np.sqrt(len(sample))
            assert abs(np.mean(sample) - theory[name].sel(group=group).item()) < 4 * error, (name, group)
