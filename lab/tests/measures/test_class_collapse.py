"""Class collapse: variances add up, collapsed classes have none, random groups are as the null value."""

import numpy as np
import pytest
from torch import nn

import tiltmeter as tm
import tiltmeter_lab as lab
from tiltmeter_lab.measures.class_collapse import ClassCollapse, between


def made(shift, spread=1.0, points=4000):
    rng = np.random.default_rng(0)
    y, group = rng.integers(0, 2, points), rng.integers(0, 2, points)
    x = spread * rng.normal(size=(points, 3)) + np.column_stack([4.0 * y, shift * group, np.zeros(points)])
    return tm.GroupedData(x, y, group)


def test_variance_within_and_between_groups_add_up():
    rng = np.random.default_rng(1)
    rows, codes = rng.normal(size=(90, 4)), rng.integers(0, 3, 90)
    within = sum((codes == c).mean() * rows[codes == c].var(0).sum() for c in range(3))
    assert between(rows, codes) + within == pytest.approx(rows.var(0).sum())


def test_normal_classes_have_their_variances():
    """Within a class 3 + 1 (the groups' shift of 2 has variance 1); between classes 4."""
    found = lab.measure(ClassCollapse(), nn.Linear(3, 2), made(2.0))
    assert found["class_scatter"].values == pytest.approx([0.5, 0.5], abs=0.02)
    assert found["subclass_scatter"].values == pytest.approx([0.25, 0.25], abs=0.03)
    assert (found["subclass_scatter_null"].values < 0.01).all()


def test_collapsed_classes_and_equal_groups():
    collapsed = lab.measure(ClassCollapse(), nn.Linear(3, 2), made(0.0, spread=0.0))
    assert collapsed["class_scatter"].values == pytest.approx([0.0, 0.0])
    assert np.isnan(collapsed["subclass_scatter"].values).all()
    alike = lab.measure(ClassCollapse(), nn.Linear(3, 2), made(0.0))
    assert (alike["subclass_scatter"].values < 0.005).all()


def test_a_regression_is_refused():
    data = tm.GroupedData(np.ones((60, 2)), np.linspace(0, 1, 60), ["a", "b"] * 30)
    with pytest.raises(ValueError, match="ClassCollapse needs 2 to"):
        lab.measure(ClassCollapse(), nn.Linear(2, 1), data, tm.Square())
