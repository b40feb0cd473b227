"""Theory: exact dynamics of bias for linear students on a `Mixture`, without simulation.

>>> from tiltmeter import predict
>>> from tiltmeter.theory import cases
>>> problem, sgd, times = cases.centred_crossing()
>>> predict(problem, sgd, times)["loss"].isel(time=-1).values.round(3)
array([0.234, 0.442])

Three routes give the same curves. `predict` sums exponentials (`modes`), `closed_form` is the published two-group
formula, and `integrate` solves the equations of motion numerically, which also covers schedules.
"""
