"""Problem: what is learned and how, as frozen values that theory, simulation and training share.

>>> from tiltmeter.theory.problem.sgd import SGD
>>> from tiltmeter.theory.problem.teacher_mixture import teacher_mixture
>>> problem = teacher_mixture(rho=0.8, variance=(0.5, 1.5), overlap=0.5)
>>> problem.groups, SGD(lr=0.1).batch
(('+', '-'), 1)

It contains the `Mixture` of Gaussian groups, each labelled by a teacher; the `SGD` that trains a student on it; the
start of the student; the objective of a fully trained student; and the same values as plain arrays for computations.
"""
