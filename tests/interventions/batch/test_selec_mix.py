"""SelecMix: partners that contradict the bias."""

import numpy as np
import pytest
import torch

import tiltmeter as tm

I = tm.interventions


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
