"""Adapters: a `Probe` in the loops of other libraries, a few lines each.

Each takes a probe of the model, calls it at every step and closes it at the end. (skorch makes the model itself, so its
adapter takes a function that makes the probe.) Each imports its library only when it is called.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from torch import nn

from tiltmeter.training.probe import Probe

__all__ = ["hugging_face_callback", "ignite_handler", "lightning_callback", "skorch_callback"]


def hugging_face_callback(probe: Probe) -> Any:
    """A callback for `Trainer(callbacks=[...])` that lets the probe look at its model while it trains.

    >>> import numpy as np, torch, tiltmeter as tm
    >>> x = np.random.default_rng(0).normal(size=(64, 3)).astype("float32")
    >>> held_out = tm.GroupedData(x, (x[:, 0] > 0).astype("int64"), ["a", "b"] * 32)
    >>> class Classifier(nn.Module):
    ...     def __init__(self):
    ...         super().__init__()
    ...         self.network = nn.Linear(3, 2)
    ...     def forward(self, x, labels=None):
    ...         logits = self.network(x)
    ...         loss = None if labels is None else nn.functional.cross_entropy(logits, labels)
    ...         return {"loss": loss, "logits": logits}
    >>> from transformers import Trainer, TrainingArguments
    >>> model = Classifier()
    >>> probe = tm.Probe(model, held_out, tm.Watch(read=lambda output: output["logits"]), budget=None)
    >>> options = {"report_to": [], "save_strategy": "no", "disable_tqdm": True, "use_cpu": True}
    >>> settings = TrainingArguments("runs", max_steps=5, **options)
    >>> points = [{"x": x, "labels": y} for x, y in zip(*held_out.tensors(), strict=True)]
    >>> _ = Trainer(model, settings, train_dataset=points, callbacks=[hugging_face_callback(probe)]).train()
    {'train_runtime': ...}
    >>> probe.trajectory()["error"].time.values.tolist()
    [0, 1, 2, 3, 4, 5]

    The points of the probe are the model's first argument, and its scores are found by `read`:
    `Probe(model, held_out, read=lambda output: output.logits)`. Steps are the trainer's `global_step`, the number of
    updates.

    Args:
        probe: Probe that looks at the model while it trains.
    """
    try:
        from transformers import TrainerCallback
    except ImportError:
        raise ImportError("`hugging_face_callback` needs transformers: pip install 'tiltmeter[hf]'.") from None

    class ProbeCallback(TrainerCallback):  # type: ignore[misc]
        def on_step_begin(self, args: Any, state: Any, control: Any, **_: Any) -> None:  # noqa: ARG002
            probe(state.global_step)

        def on_train_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:  # noqa: ARG002
            probe.evaluate(state.global_step)
            probe.close()

    return ProbeCallback()


class IgniteHandler:
    """Lets a probe evaluation before every iteration of an engine, and once more when it is completed."""

    def __init__(self, probe: Probe) -> None:
        self._probe = probe

    def attach(self, engine: Any) -> None:
        """Follow this engine: its iterations are the steps."""
        from ignite.engine import Events

        engine.add_event_handler(Events.ITERATION_STARTED, self._before)
        engine.add_event_handler(Events.COMPLETED, self._completed)

    def _before(self, engine: Any) -> None:
        self._probe(engine.state.iteration - 1)  # ignite counts an iteration before it is done

    def _completed(self, engine: Any) -> None:
        self._probe.evaluate(engine.state.iteration)
        self._probe.close()


def ignite_handler(probe: Probe) -> IgniteHandler:
    """A handler that lets the probe look while an engine trains its model: `ignite_handler(probe).attach(engine)`.

    >>> import numpy as np, torch, tiltmeter as tm
    >>> x = np.random.default_rng(0).normal(size=(64, 3)).astype("float32")
    >>> held_out = tm.GroupedData(x, (x[:, 0] > 0).astype("int64"), ["a", "b"] * 32)
    >>> from ignite.engine import create_supervised_trainer
    >>> model = torch.nn.Linear(3, 2)
    >>> optimiser = torch.optim.SGD(model.parameters(), lr=0.1)
    >>> trainer = create_supervised_trainer(model, optimiser, torch.nn.CrossEntropyLoss())
    >>> probe = tm.Probe(model, held_out, budget=None)
    >>> ignite_handler(probe).attach(trainer)
    >>> _ = trainer.run([held_out.tensors()] * 5)
    >>> probe.trajectory()["error"].time.values.tolist()
    [0, 1, 2, 3, 4, 5]

    Steps are the engine's iterations, so every iteration should be one update.

    Args:
        probe: Probe that looks at the model while it trains.
    """
    try:
        import ignite.engine  # noqa: F401
    except ImportError:
        raise ImportError("`ignite_handler` needs pytorch-ignite: pip install 'tiltmeter[ignite]'.") from None
    return IgniteHandler(probe)


def lightning_callback(probe: Probe) -> Any:
    """A callback for `Trainer(callbacks=[...])` that lets the probe look at its model while it trains.

    >>> import numpy as np, torch, tiltmeter as tm
    >>> from lightning.pytorch import Trainer
    >>> from lightning.pytorch.demos.boring_classes import BoringModel
    >>> held_out = tm.GroupedData(np.ones((64, 32), dtype="float32"), [0, 1] * 32, ["a"] * 32 + ["b"] * 32)
    >>> model = BoringModel()  # any LightningModule whose `forward` returns scores
    >>> probe = tm.Probe(model, held_out, budget=None)
    >>> trainer = Trainer(max_steps=5, callbacks=[lightning_callback(probe)], accelerator="cpu", logger=False,
    ...                   enable_checkpointing=False, enable_progress_bar=False, enable_model_summary=False)
    >>> trainer.fit(model, torch.utils.data.DataLoader(torch.ones(8, 32)))
    >>> probe.trajectory()["error"].time.values.tolist()
    [0, 1, 2, 3, 4, 5]

    Steps are the trainer's `global_step`, the number of updates: with accumulated gradients, one for several batches.

    Args:
        probe: Probe that looks at the model while it trains.
    """
    try:
        from lightning.pytorch import Callback
    except ImportError:
        raise ImportError("`lightning_callback` needs Lightning: pip install 'tiltmeter[lightning]'.") from None

    class ProbeCallback(Callback):  # type: ignore[misc]
        def on_train_batch_start(self, trainer: Any, *_: Any) -> None:
            probe(trainer.global_step)

        def on_train_end(self, trainer: Any, *_: Any) -> None:
            probe.evaluate(trainer.global_step)
            probe.close()

        def on_exception(self, trainer: Any, module: Any, exception: BaseException) -> None:  # noqa: ARG002
            probe.__exit__(type(exception), exception, exception.__traceback__)

    return ProbeCallback()


def skorch_callback(make_probe: Callable[[nn.Module], Probe]) -> Any:
    """A callback for `NeuralNet(callbacks=[...])` that looks at the net's module while it trains.

    >>> import numpy as np, torch, tiltmeter as tm
    >>> x = np.random.default_rng(0).normal(size=(64, 3)).astype("float32")
    >>> held_out = tm.GroupedData(x, (x[:, 0] > 0).astype("int64"), ["a", "b"] * 32)
    >>> from skorch import NeuralNetClassifier
    >>> watch = skorch_callback(lambda module: tm.Probe(module, held_out, budget=None))
    >>> net = NeuralNetClassifier(torch.nn.Linear(3, 2), criterion=torch.nn.CrossEntropyLoss, max_epochs=5,
    ...                           train_split=None, callbacks=[("probe", watch)], verbose=0)
    >>> _ = net.fit(held_out.x, held_out.y)
    >>> dict(net.callbacks_)["probe"].probe_.trajectory()["error"].time.values.tolist()
    [0, 1, 2, 3, 4, 5]

    skorch makes the module itself when `fit` is called, so the callback takes a function that makes the probe:
    `skorch_callback(lambda module: Probe(module, held_out))`. Steps count the batches trained on since `fit` began. The
    probe of the last fit is the callback's `probe_`.

    Args:
        make_probe: Makes the probe of a module.
    """
    try:
        from skorch.callbacks import Callback
    except ImportError:
        raise ImportError("`skorch_callback` needs skorch: pip install 'tiltmeter[skorch]'.") from None

    class ProbeCallback(Callback):  # type: ignore[misc]
        def __init__(self, make_probe: Callable[[nn.Module], Probe]) -> None:
            self.make_probe = make_probe

        def on_train_begin(self, net: Any, **_: Any) -> None:
            self.probe_, self.step_ = self.make_probe(net.module_), 0

        def on_batch_begin(self, net: Any, training: bool = False, **_: Any) -> None:  # noqa: ARG002
            if training:
                self.probe_(self.step_)

        def on_batch_end(self, net: Any, training: bool = False, **_: Any) -> None:  # noqa: ARG002
            self.step_ += training

        def on_train_end(self, net: Any, **_: Any) -> None:  # noqa: ARG002
            self.probe_.evaluate(self.step_)
            self.probe_.close()

    return ProbeCallback(make_probe)
