"""One panel per class, and the picture of what memorisation moved."""

import numpy as np
import pytest

import tiltmeter as tm

THEORY = tm.predict(
    tm.theory.class_mixture(3, rho=0.7), tm.SGD(lr=0.2), [0.1, 1.0, 10.0], curves=("loss", "class_loss")
)


def test_a_panel_for_every_class(tmp_path):
    chart = tm.plot.class_curves(THEORY, title="Classes")
    found = chart.to_dict()
    assert [
        panel["title"]["text"] if isinstance(panel["title"], dict) else panel["title"] for panel in found["hconcat"]
    ]
    assert len(found["hconcat"]) == 3
    assert found["resolve"]["scale"]["y"] == "shared"
    assert tm.plot.save(chart, tmp_path / "classes.png").stat().st_size > 5000


def test_simulated_classes_have_bands():
    runs = tm.simulate(tm.theory.class_mixture(3), tm.SGD(lr=0.2), [0.5, 2.0, 5.0], d=60, seeds=4)
    kinds = {layer["mark"]["type"] for layer in tm.plot.class_curves(runs).to_dict()["hconcat"][0]["layer"]}
    assert "area" in kinds


@pytest.mark.parametrize(
    ("ask", "kind", "said"),
    [
        (lambda: tm.plot.class_curves(1), TypeError, "draws a trajectory. Found int"),
        (lambda: tm.plot.class_curves(THEORY, "loss"), ValueError, "Found 'loss': use `plot.curves`"),
        (lambda: tm.plot.curves(THEORY, curve="class_loss"), ValueError, "use `plot.class_curves`, or select a class"),
        (lambda: tm.leaders(THEORY, "class_loss").changes, ValueError, "use `class_leaders`, or select a class"),
        (
            lambda: tm.theory.plot.memorisation(THEORY),
            TypeError,
            "draws the result of `memorisation`. Found Trajectory",
        ),
    ],
)
def test_bad_input(ask, kind, said):
    with pytest.raises(kind, match=said):
        ask()


def test_what_memorisation_moved(tmp_path):
    problem = tm.teacher_mixture(rho=0.8, variance=(0.5, 1.5), overlap=0.5)
    found = tm.theory.memorisation(problem, tm.Flow(1.0), np.geomspace(0.01, 100.0, 40), tm.Fixed(2.0))
    chart = tm.theory.plot.memorisation(found, title="Moved")
    spec = chart.to_dict()
    rules = [layer for layer in spec["layer"] if layer["mark"]["type"] == "rule"][:2]
    times = [spec["datasets"][rule["data"]["name"]][0]["time"] for rule in rules]
    assert times == pytest.approx([0.8066, 0.3473], abs=1e-4)
    assert tm.plot.save(chart, tmp_path / "moved.png").stat().st_size > 5000
