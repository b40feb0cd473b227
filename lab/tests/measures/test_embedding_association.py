"""Embedding association: the effect by its definition, a table of tokens, and a uniform p for random groups."""

import numpy as np
import pytest
import torch
from torch import nn

import tiltmeter as tm
import tiltmeter_lab as lab
from tiltmeter_lab.measures.embedding_association import EmbeddingAssociation

SETS = ((0, 1), (2, 3), (4, 5), (6, 7))


def tokens(rows):
    model = nn.Sequential(
        nn.Embedding.from_pretrained(torch.as_tensor(rows, dtype=torch.float32)), nn.Flatten(), nn.Linear(3, 2)
    )
    return model, tm.GroupedData(np.arange(60)[:, None] % 8, [0, 1] * 30, ["a", "b"] * 30)


def test_the_effect_is_that_of_the_paper():
    """A second route: all cosines, one by one."""
    rows = np.random.default_rng(0).normal(size=(8, 3)).astype(np.float32).astype(float)
    cosine = (rows @ rows.T) / np.outer(*[np.linalg.norm(rows, axis=1)] * 2)
    s = [np.mean([cosine[w, a] for a in SETS[2]]) - np.mean([cosine[w, b] for b in SETS[3]]) for w in range(4)]
    expected = (np.mean(s[:2]) - np.mean(s[2:])) / np.std(s, ddof=1)
    found = lab.measure(EmbeddingAssociation(SETS), *tokens(rows))
    assert float(found["association_effect"]) == pytest.approx(expected, abs=1e-6)


def test_an_association_is_found_and_a_random_one_is_not():
    rng = np.random.default_rng(1)
    group, y = rng.integers(0, 2, 400), rng.integers(0, 2, 400)
    x = rng.normal(size=(400, 6))
    x[:, 0] += 3 * y - 1.5
    model = nn.Sequential(nn.Identity(), nn.Linear(6, 1))
    linked = x.copy()
    linked[:, 0] += 2 * group - 1
    ps = []
    for seed in range(40):
        random = tm.GroupedData(x, y, np.random.default_rng(seed).permutation(group))
        ps.append(
            float(lab.measure(EmbeddingAssociation(permutations=99), model, random, tm.Logistic())["association_p"])
        )
    assert np.mean(np.array(ps) <= 0.1) < 0.1 + 4 * (0.1 * 0.9 / 40) ** 0.5
    found = lab.measure(EmbeddingAssociation(), model, tm.GroupedData(linked, y, group), tm.Logistic())
    assert float(found["association_effect"]) < -0.4  # the first group lies towards the smaller label
    assert float(found["association_p"]) == pytest.approx(1 / 200)
    assert abs(float(found["association_effect_null"])) < 0.1


def test_bad_input_is_one_sentence():
    with pytest.raises(ValueError, match="four sets of token numbers"):
        EmbeddingAssociation(((0,), (), (1,), (2,)))
    with pytest.raises(ValueError, match="`permutations` should be at least 2"):
        EmbeddingAssociation(permutations=1)
    rows = np.eye(8, 3)
    with pytest.raises(ValueError, match="numbers of tokens below 8"):
        lab.measure(EmbeddingAssociation(((0,), (1,), (2,), (9,))), *tokens(rows))
    data = tm.GroupedData(np.ones((60, 3)), [0, 1] * 30, "label")
    with pytest.raises(ValueError, match="needs a model with an Embedding"):
        lab.measure(EmbeddingAssociation(SETS), nn.Linear(3, 2), data)
