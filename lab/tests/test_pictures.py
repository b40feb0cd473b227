"""Ticks of the lines that experiments share."""

from tiltmeter_lab.shared.pictures import lines


def encoding(chart):
    return chart.to_dict()["layer"][0]["encoding"]


def test_steps_are_written_out_and_not_in_powers():
    """With the format "~g" vega rounds the ticks of a linear axis: 150 becomes 1.5e+2."""
    found = encoding(lines([(0.0, 1.0, "a"), (800.0, 2.0, "a")], "step", "loss", "run"))
    assert found["x"]["axis"]["format"] == "~f"


def test_logarithmic_axes_show_the_powers_of_ten():
    found = encoding(lines([(1.0, 0.09, "a"), (1000.0, 1.6, "a")], "step", "loss", "run", log_x=True, log_y=True))
    assert found["x"]["axis"]["values"] == [1.0, 10.0, 100.0, 1000.0]
    assert {0.1, 1.0} <= set(found["y"]["axis"]["values"])
