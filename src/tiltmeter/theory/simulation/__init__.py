"""Simulation: runs of SGD at finite d, with the exact distribution, at a cost per step that does not grow with d.

>>> from tiltmeter import simulate
>>> from tiltmeter.theory import cases
>>> problem, sgd, _ = cases.centred_crossing()
>>> runs = simulate(problem, sgd, [1.0, 5.0], d=1_000_000, seeds=2, curves=("loss",))
>>> runs["loss"].sel(group="+", time=5.0).mean("seed").round(2).item()
0.39

`simulate` gives the curves of `predict` for many seeds. `Chain()` follows only the overlaps, an exact Markov chain for
Gaussian groups; `Direct()` is the plain d-dimensional run. `moments` gives the exact mean over runs with no simulation.
"""
