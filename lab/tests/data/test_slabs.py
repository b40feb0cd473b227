"""Slab data: the published widths and shares, and no linear rule on a slab coordinate."""

import numpy as np
import pytest

from tiltmeter_lab.data.slabs import five_and_seven, linear_and_slabs, random_basis, slabs


def test_five_slabs_lie_where_the_paper_puts_them():
    m = 0.1
    data = slabs((5,), 20_000, margin=m)
    x, y = np.abs(data.x[:, 0]), data.y
    width = (2 - 8 * m) / 5
    first, outer = (1 + 6 * m) / 5, (3 + 8 * m) / 5
    assert ((x[y == 1] >= first - 1e-6) & (x[y == 1] <= first + width + 1e-6)).all()
    centre = x[y == 0] <= width / 2 + 1e-6
    assert (x[y == 0][~centre] >= outer - 1e-6).all()
    assert x.max() <= 1 + 1e-6
    # 3/4 of 10,000 within 4 standard errors
    assert abs(centre.mean() - 0.75) < 4 * np.sqrt(0.75 * 0.25 / 10_000)


def test_seven_slabs_have_their_shares_and_margins():
    m = 0.1
    data = slabs((7,), 20_000, margin=m)
    x, y = np.abs(data.x[:, 0]), data.y
    width = (2 - 12 * m) / 7
    slab = np.round(x / (width + 2 * m)).astype(int)
    assert set(slab[y == 1]) == {1, 3}
    assert set(slab[y == 0]) == {0, 2}
    assert abs((slab[y == 1] == 1).mean() - 7 / 8) < 0.014  # 4 standard errors
    for k in range(4):  # nothing in the margins
        assert (np.abs(x[slab == k] - k * (width + 2 * m)) <= width / 2 + 1e-6).all()


@pytest.mark.parametrize("kinds", [linear_and_slabs(4), linear_and_slabs(4, 7), five_and_seven(4)])
def test_slab_coordinates_carry_nothing_linear(kinds):
    data = slabs(kinds, 40_000, seed=3)
    sign = 2 * data.y - 1
    for kind, column in zip(kinds, data.x.T, strict=True):
        moment = np.mean(sign * column)
        if kind == 1:
            assert moment > 0.5
        else:
            assert abs(moment) < 4 * column.std() / np.sqrt(len(sign))  # 4 standard errors


def test_a_basis_turns_the_data_and_turns_them_back():
    basis = random_basis(6, seed=1)
    plain, turned = slabs(linear_and_slabs(6), 100, seed=2), slabs(linear_and_slabs(6), 100, basis=basis, seed=2)
    assert np.allclose(turned.x @ basis.T, plain.x, atol=1e-6)
    assert not np.allclose(turned.x, plain.x, atol=0.1)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (((2,), 10), r"`kinds` should be 1 \(linear\) or slabs of 3, 5, 7. Found \[2\]."),
        (((1,), 1), "`points` should be at least 2. Found points = 1."),
        (((1,), 10, 0.3), "`margin` should be at least 0 and below 1/6. Found margin = 0.3."),
        (((1, 5), 10, 0.1, np.eye(3)), r"`basis` should be 2 rows of 2. Found shape \(3, 3\)."),
    ],
)
def test_bad_input_gets_a_sentence(arguments, message):
    with pytest.raises(ValueError, match=message):
        slabs(*arguments)
