"""lightning_callback: a probe in a Lightning Trainer."""

from __future__ import annotations

from typing import Any

from tiltmeter.training.probe import Probe


def lightning_callback(probe: Probe) -> Any:
    """A callback for `Trainer(callbacks=[...])` that lets the probe look at its model while it trains.

    Steps are the trainer's `global_step`, the number of updates: with accumulated gradients, one for several batches.
    """
    try:
        from lightning.pytorch import Callback
    except ImportError:
        raise ImportError("`lightning_callback` needs Lightning: pip install 'tiltmeter[lightning]'.") from None

    class ProbeCallback(Callback):  # type: ignore[misc]
        def on_train_batch_start(self, trainer: Any, *_: Any) -> None:
            probe(trainer.global_step)

        def on_train_end(self, trainer: Any, *_: Any) -> None:
            probe.look(trainer.global_step)
            probe.close()

        def on_exception(self, trainer: Any, module: Any, exception: BaseException) -> None:  # noqa: ARG002
            probe.__exit__(type(exception), exception, exception.__traceback__)

    return ProbeCallback()
