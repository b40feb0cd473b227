# %% [markdown]
# # The teacher: when does the smaller group lead?
#
# The majority has more examples. A group with a larger variance is learned faster at first. Which of the two wins, and
# when?

# %%
import numpy as np

import tiltmeter as tm

times = np.geomspace(0.05, 100, 200)
sgd = tm.SGD(lr=0.1)


def story(variance):
    problem = tm.teacher_mixture(rho=0.8, variance=variance, overlap=0.5)
    return tm.predict(problem, sgd, times, curves=("loss",))


# %% [markdown]
# Both groups equally spread: a control. Only their sizes differ.

# %%
tm.leaders(story((1.0, 1.0)), "loss")

# %% [markdown]
# The small group ("-") is spread three times as wide:

# %%
wide = story((0.5, 1.5))
tm.leaders(wide, "loss")

# %%
tm.plot.curves(wide, leaders=tm.leaders(wide, "loss"))

# %% [markdown]
# A question for the class: what happens to the crossing if the minority becomes smaller still?

# %%
for rho in (0.6, 0.7, 0.8, 0.9):
    problem = tm.teacher_mixture(rho=rho, variance=(0.5, 1.5), overlap=0.5)
    print(f"majority {rho:.0%}:", tm.leaders(tm.predict(problem, sgd, times, curves=("loss",)), "loss"))
