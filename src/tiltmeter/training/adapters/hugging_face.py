"""hugging_face_callback: a probe in a Hugging Face Trainer."""

from __future__ import annotations

from typing import Any

from tiltmeter.training.probe import Probe


def hugging_face_callback(probe: Probe) -> Any:
    """A callback for `Trainer(callbacks=[...])` that lets the probe look at its model while it trains.

    The points of the probe are the model's first argument, and its scores are found by `read`:
    `Probe(model, look, read=lambda output: output.logits)`. Steps are the trainer's `global_step`, the number of
    updates.
    """
    try:
        from transformers import TrainerCallback
    except ImportError:
        raise ImportError("`hugging_face_callback` needs transformers: pip install 'tiltmeter[hf]'.") from None

    class ProbeCallback(TrainerCallback):  # type: ignore[misc]
        def on_step_begin(self, args: Any, state: Any, control: Any, **_: Any) -> None:  # noqa: ARG002
            probe(state.global_step)

        def on_train_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:  # noqa: ARG002
            probe.look(state.global_step)
            probe.close()

    return ProbeCallback()
