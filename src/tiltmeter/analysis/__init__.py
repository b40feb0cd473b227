"""Analysis: questions about a trajectory, whatever made it.

>>> from tiltmeter import crossings, phases, predict
>>> from tiltmeter.problem import cases
>>> theory = predict(*cases.three_phases())
>>> print(crossings(theory))
+ leads until t = 1.128, then - until t = 11.88, then +.
>>> print(phases(theory))
+ leads until t = 1.128 (shift and label imbalance), then - until t = 11.88 (larger variance), then + (more data).
"""
