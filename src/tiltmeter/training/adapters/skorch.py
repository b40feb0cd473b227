"""skorch_callback: a probe in a skorch net."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from torch import nn

from tiltmeter.training.probe import Probe


def skorch_callback(make_probe: Callable[[nn.Module], Probe]) -> Any:
    """A callback for `NeuralNet(callbacks=[...])` that looks at the net's module while it trains.

    skorch makes the module itself when `fit` is called, so the callback takes a function that makes the probe:
    `skorch_callback(lambda module: Probe(module, look))`. Steps count the batches trained on since `fit` began. The
    probe of the last fit is the callback's `probe_`.
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
            self.probe_.look(self.step_)
            self.probe_.close()

    return ProbeCallback(make_probe)
