# %% [markdown]
# # The experimenter: many seeds, two learning rates, one call
#
# A single run speaks of itself. A recipe is judged by several seeds.

# %%
import numpy as np
import torch

import tiltmeter as tm

torch.set_num_threads(1)
rng = np.random.default_rng(0)
group = rng.choice(["many", "few"], 3000, p=[0.85, 0.15])
x = rng.normal(size=(3000, 20)) * np.where(group == "few", 1.6, 0.8)[:, None]
y = np.where(group == "many", x[:, 0] + 0.5 * x[:, 1] > 0, x[:, 0] - 0.5 * x[:, 1] > 0).astype(int)
train, held_out = tm.GroupedData(x, y, group).split(held_out=0.5)
held_out


# %%
def network():
    return torch.nn.Sequential(torch.nn.Linear(20, 16), torch.nn.ReLU(), torch.nn.Linear(16, 1))


recipes = [tm.Recipe(lr=rate, steps=300, batch=16, loss=tm.Logistic()) for rate in (0.03, 0.3)]
grid = tm.ensemble(network, train, held_out, recipes, seeds=6)
grid

# %% [markdown]
# Leaders are named only where the difference is shown, for points and seeds together.

# %%
fast = tm.Trajectory({name: curve.sel(lr=0.3) for name, curve in grid.items()}, grid.clock, grid.origin)
tm.leaders(fast, "error")

# %%
tm.plot.curves(fast, curve="error")

# %%
grid["error"].sel(time=300).mean("seed").to_pandas().round(3)
