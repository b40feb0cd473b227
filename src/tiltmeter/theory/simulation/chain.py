"""Chain: the exact Markov chain of the student's overlaps, whose steps cost the same in any dimension."""

from __future__ import annotations

from dataclasses import dataclass

from tiltmeter.record.labelled import JSON
from tiltmeter.theory.problem.sgd import SGD
from tiltmeter.theory.problem.students import Linear
from tiltmeter.theory.simulation.gram_chain import GramChain
from tiltmeter.theory.simulation.linear_chain import LinearChain, SteeredRun
from tiltmeter.theory.simulation.network_chain import NetworkChain
from tiltmeter.theory.simulation.run import Run
from tiltmeter.theory.simulation.setting import Setting


@dataclass(frozen=True)
class Chain:
    """Simulates SGD in d dimensions with the exact distribution of its curves, at a cost per step independent of d.

    >>> from tiltmeter import SGD, simulate, teacher_mixture
    >>> simulate(teacher_mixture(), SGD(lr=0.1), [1.0], d=10**6, method=Chain(threads=1))["loss"].sizes["seed"]
    1

    Inputs are isotropic around their means, so the student's part outside the span of means and teachers matters only
    through its length (or, for several units, through the Gram matrix). See `docs/simulation.md`.

    Args:
        threads: Number of threads, on which results do not depend; None: all cores.
        progress: Whether work of more than a few seconds shows its progress on stderr.
    """

    threads: int | None = None
    progress: bool = True

    def begin(self, setting: Setting, seeds: tuple[int, ...]) -> Run:
        if not isinstance(setting.optimiser, SGD):
            raise ValueError(
                f"{type(setting.optimiser).__name__} treats coordinates separately, so the chain cannot simulate it. "
                "Use method=Direct()."
            )
        if setting.data is not None:
            raise ValueError(
                "With repeated data the student depends on every sample, so the chain cannot simulate it. "
                "Use method=Direct()."
            )
        need = setting.rank + setting.vectors + 1
        if setting.d < need:
            vectors = "one vector" if setting.vectors == 1 else f"{setting.vectors} vectors"
            raise ValueError(
                f"`d` should be at least {need}: means and teachers span {setting.rank} dimensions, and {vectors} "
                f"move. Found d = {setting.d}."
            )
        linear = isinstance(setting.student, Linear) and setting.sgd.momentum == 0.0
        law = setting.law
        if law is not None and law.sees_gram:
            if not linear or setting.sgd.clip is not None:
                raise ValueError(
                    f"{type(law).__name__} is simulated for linear students without momentum and clip only."
                )
            return GramChain(setting, seeds, law)
        run = LinearChain(setting, seeds) if linear else NetworkChain(setting, seeds)
        return run if law is None else SteeredRun(run, run.pulls, setting, law, None)

    def to_json(self) -> dict[str, JSON]:
        return {"method": "chain"}
