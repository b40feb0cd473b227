"""Training: watch a real training without touching it (`Probe`), and a short loop of our own (`train`).

>>> import numpy as np, torch, tiltmeter as tm
>>> rng = np.random.default_rng(0)
>>> x = rng.normal(size=(400, 5)).astype("float32")
>>> data = tm.GroupedData(x, (x[:, 0] > 0).astype(int), np.where(x[:, 1] > 0, "a", "b"))
>>> train, held_out = data.split(held_out=0.5)
>>> model = torch.nn.Linear(5, 1)
>>> optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
>>> features, labels = train.tensors()
>>> with tm.Probe(model, held_out, budget=None) as probe:
...     for step in range(50):
...         probe(step)
...         optimizer.zero_grad()
...         torch.nn.functional.binary_cross_entropy_with_logits(model(features)[:, 0], labels.float()).backward()
...         optimizer.step()
>>> run = probe.trajectory()
>>> run["error"].sizes["time"], run["loss"].attrs["definition"]
(25, 'logistic loss')
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tiltmeter.lazy_names import offer

if TYPE_CHECKING:
    from tiltmeter.recipe import BatchOrder as BatchOrder
    from tiltmeter.recipe.sampling import Draws as Draws
    from tiltmeter.recipe.sampling import Epochs as Epochs
    from tiltmeter.training import adapters as adapters
    from tiltmeter.training.stacked import Stacked as Stacked
    from tiltmeter.training.stacked_updates import stacked_update as stacked_update

__all__ = offer(__name__)  # noqa: PLE0605
