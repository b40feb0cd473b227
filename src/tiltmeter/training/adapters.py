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
