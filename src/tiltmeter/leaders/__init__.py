"""Leaders: who leads, when, and how sure it is, whatever made the trajectory.

>>> import tiltmeter as tm
>>> theory = tm.predict(*tm.theory.cases.three_phases())
>>> print(tm.leaders(theory))
Group + has the lower loss until t = 1.128 (shift and label imbalance), then group - until t = 11.88 (larger variance),
then group + (more data).
Exact theory.

`leaders.py` holds the function and its result, `judgement.py` tests differences at one error rate (`bands.py`,
`seed_bands.py`, on the points of `points.py`), `phases.py` finds who led when, `headline.py` says it.
"""
