# %% [markdown]
# # The theorist: exact curves, and a simulation that must agree
#
# Two groups of inputs, each with its own teacher. Online SGD on their mixture has exact learning curves in high
# dimension.

# %%
import numpy as np

import tiltmeter as tm

problem, sgd, times = tm.theory.cases.three_phases()
theory = tm.predict(problem, sgd, times, curves=("loss", "M", "R", "Q"))
theory

# %% [markdown]
# Who leads, when does that change, and why? Every phase names its cause.

# %%
tm.leaders(theory, "loss").phases

# %%
tm.plot.curves(theory, leaders=tm.leaders(theory, "loss"), timescales=tm.timescales(problem, sgd))

# %% [markdown]
# A second route: the finite-size chain, 16 runs at d = 400. The theory should lie within a few standard errors.

# %%
few = np.geomspace(0.1, 100, 25)
runs = tm.simulate(problem, sgd, few, d=400, seeds=16)
tm.agreement(tm.predict(problem, sgd, few, curves=("loss",)), runs)
