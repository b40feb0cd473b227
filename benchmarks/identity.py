"""Fixed runs as checksums: theory, chain, direct runs, training, ensembles and every intervention.

`python benchmarks/identity.py > before.txt` in one checkout and the same in another give the same lines as long as
nothing changed to the bit. Only positional arguments are used, so that the script also runs where names differ.
"""

from __future__ import annotations

import hashlib

import numpy as np
import torch

import tiltmeter as tm

torch.set_num_threads(1)
TIMES = np.geomspace(0.05, 40.0, 25)
PROBLEM = tm.teacher_mixture(rho=0.75, variance=(0.5, 1.5), overlap=0.7)
SGD = tm.SGD(lr=0.2)
#: Fields without a default, for one example of each intervention.
GIVEN = {
    "PullSchedule": {"pulls": {"+": 0.5, "-": 0.5}},
    "DualAscent": {"bound": 0.3},
    "AttributionPrior": {"mask": (0,)},
}
#: Interventions whose packages are extras, or that fit on data of their own.
LEFT_OUT = {
    "JacobianDescent",
    "FairnessPenalty",
    "DFR",
    "Erasure",
    "GroupThreshold",
    "GroupTemperature",
    "ProductOfExperts",
}


def digest(*arrays: np.ndarray) -> str:
    """One short checksum of several arrays, to the bit."""
    total = hashlib.sha256()
    for array in arrays:
        total.update(np.ascontiguousarray(array).tobytes())
    return total.hexdigest()[:16]


def told(name: str, *arrays: np.ndarray) -> None:
    print(f"{name:<40} {digest(*arrays)}", flush=True)


def curves(run: tm.Trajectory) -> list[np.ndarray]:
    """The recorded numbers of every curve, by name."""
    return [np.asarray(run[name].values, dtype=float) for name in sorted(run) if not name.endswith("_se")]


def main() -> None:
    told("theory", *curves(tm.predict(PROBLEM, SGD, TIMES)))
    told(
        "theory of a grid",
        tm.predict(tm.teacher_mixture(rho=("rho", [0.3, 0.6]), overlap=0.5), SGD, TIMES)["loss"].values,
    )
    told("fixed set", tm.predict(PROBLEM, tm.Flow(lr=1.0), TIMES, data=tm.Fixed(samples=2.0))["loss"].values)
    told(
        "classes",
        tm.predict(tm.theory.class_mixture(3, rho=0.7, overlap=0.3), SGD, TIMES, curves=("loss",))["loss"].values,
    )
    told(
        "equilibrium", *(tm.equilibrium(PROBLEM, tm.Logistic(), 2.0, 0.3)[name].values for name in ("Q", "R", "error"))
    )
    told("drivers", *curves(tm.drivers(PROBLEM, SGD, TIMES)))
    told("chain", *curves(tm.simulate(PROBLEM, SGD, TIMES[::4], d=200, seeds=3)))
    told("direct", *curves(tm.simulate(PROBLEM, SGD, TIMES[:8], d=30, seeds=2, method=tm.theory.Direct())))
    train, held_out = tm.data.digits(share=0.85, contrast=(0.5, 1.5), labels="large")
    recipe = tm.Recipe(lr=0.05, steps=60, batch=16, order=0, loss=tm.Logistic())

    def network(seed: int = 0) -> torch.nn.Module:
        torch.manual_seed(seed)
        return torch.nn.Sequential(torch.nn.Linear(64, 24), torch.nn.ReLU(), torch.nn.Linear(24, 1))

    told("train", *curves(tm.train(network(), train, held_out, recipe)))
    told("ensemble", *curves(tm.ensemble(network, train, held_out, recipe, seeds=3)))
    for name in sorted(tm.interventions.__all__):
        kind = getattr(tm.interventions, name)
        if (
            name in {*LEFT_OUT, "Intervention"}
            or not isinstance(kind, type)
            or getattr(kind, "__abstractmethods__", None)
        ):
            continue
        try:
            given = GIVEN.get(name, {})
            groups = dict(zip(train.groups, (0.5, 0.5), strict=True))
            given = {"pulls": groups} if name == "PullSchedule" else given
            intervention = kind(**given)
        except TypeError:
            continue
        changed = tm.Recipe(lr=0.05, steps=40, batch=16, order=0, loss=tm.Logistic(), interventions=(intervention,))
        try:
            told(f"train with {name}", *curves(tm.train(network(), train, held_out, changed)))
        except (ValueError, TypeError) as error:
            told(f"train with {name}", np.frombuffer(type(error).__name__.encode(), dtype=np.uint8))


if __name__ == "__main__":
    main()
