"""ignite_handler: a probe in a pytorch-ignite Engine."""

from __future__ import annotations

from typing import Any

from tiltmeter.training.probe import Probe


class IgniteHandler:
    """Lets a probe look before every iteration of an engine, and once more when it is completed."""

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
        self._probe.look(engine.state.iteration)
        self._probe.close()


def ignite_handler(probe: Probe) -> IgniteHandler:
    """A handler that lets the probe look while an engine trains its model: `ignite_handler(probe).attach(engine)`.

    Steps are the engine's iterations, so every iteration should be one update.
    """
    try:
        import ignite.engine  # noqa: F401
    except ImportError:
        raise ImportError("`ignite_handler` needs pytorch-ignite: pip install 'tiltmeter[ignite]'.") from None
    return IgniteHandler(probe)
