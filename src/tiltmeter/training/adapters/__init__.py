"""Adapters: a `Probe` in the loops of other libraries, a few lines each.

Each takes a probe of the model, calls it at every step and closes it at the end. (skorch makes the model itself, so its
adapter takes a function that makes the probe.) Each imports its library only when it is called.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tiltmeter.lazy_names import offer

if TYPE_CHECKING:
    from tiltmeter.training.adapters.hugging_face import hugging_face_callback as hugging_face_callback
    from tiltmeter.training.adapters.ignite import ignite_handler as ignite_handler
    from tiltmeter.training.adapters.lightning import lightning_callback as lightning_callback
    from tiltmeter.training.adapters.skorch import skorch_callback as skorch_callback

_HOMES = {
    "lightning_callback": "training.adapters.lightning",
    "hugging_face_callback": "training.adapters.hugging_face",
    "ignite_handler": "training.adapters.ignite",
    "skorch_callback": "training.adapters.skorch",
}

__all__ = offer(__name__, _HOMES)  # noqa: PLE0605
