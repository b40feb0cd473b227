# %% [markdown]
# # The engineer: one line in a training loop that already exists
#
# Real images of digits: many faint upright ones, few bright turned ones.

# %%
import tempfile

import torch

import tiltmeter as tm

torch.set_num_threads(1)
train, held_out = tm.data.digits(share=0.85)
train

# %%
torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.ReLU(), torch.nn.Linear(64, 10))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
loader = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(*train.tensors()), batch_size=16, shuffle=True)
place = tempfile.mkdtemp() + "/run"
step = 0
with tm.Probe(model, held_out, to=place) as probe:
    for _ in range(12):
        for x, y in loader:
            probe(step)
            optimizer.zero_grad()
            torch.nn.functional.cross_entropy(model(x), y).backward()
            optimizer.step()
            step += 1

# %% [markdown]
# The weights are bit-identical with and without the probe. What did it see?

# %%
run = tm.load(place)
tm.leaders(run, "loss").changes

# %%
tm.fairness.stopping(run)

# %%
tm.plot.curves(run, curve="loss")

# %% [markdown]
# A section for the model card:

# %%
print(tm.results.to_model_card(run))
