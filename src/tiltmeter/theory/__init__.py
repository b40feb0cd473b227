"""Theory: exact dynamics of bias for linear students on a `Mixture`, with no simulation.

Three routes give the same curves. `predict` sums exponentials (`modes`), `closed_form` is the published two-group
formula, `integrate` solves the equations of motion step by step and also serves schedules.

>>> from tiltmeter import cases, predict
>>> problem, sgd, times = cases.centred_crossing()
>>> predict(problem, sgd, times)["loss"].isel(time=-1).values.round(3)
array([0.234, 0.442])
"""
