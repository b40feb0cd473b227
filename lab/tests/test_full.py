"""The published settings are no dead code: each runs, cut to a tiny size, with its claims and pictures."""

from dataclasses import fields, is_dataclass, replace

import pytest

pytest.importorskip("torch")

from tiltmeter_lab.catalogue import EXPERIMENTS, find
from tiltmeter_lab.claim import Claim
from tiltmeter_lab.reproduce import reproduce

#: What is made small of each; everything else stays as in FULL. "a.b" is the field b of the setting a.
TINY = {
    "order-parameters": {"d": (20, 40), "evaluations": 5, "until": 2.0},
    "spurious-correlation": {"d": 40, "evaluations": 8},
    "bias-crossing": {"d": 40, "problems": 20, "network_d": 20, "width": 8, "steps": 160, "evaluations": 8},
    "three-phases": {"d": 50, "network_d": 20, "width": 8, "steps": 160, "evaluations": 8},
    "phase-diagram": {"points": 6, "evaluations": 20, "d": 40},
    "deeper-wider": {"widths": (8,), "d": 20, "steps": 40},
    "other-protocols": {"d": 20, "width": 8, "steps": 60},
    "learning-rates": {"d": 100},
    "group-dro-rings": {"d": 50},
    "upweight-or-upsample": {"d": 50},
    "equalising-weights": {"problems": 4, "d": 50},
    "no-go": {"overlaps": 9, "shares": 21, "d": 50},
    "normalised-gradients": {"d": 30, "until": 2.0},
    "levelling-down": {"pieces": 2, "d": 50},
    "equilibrium-bias": {
        "samples": (0.5, 2.0),
        "overlaps": (0.0, 1.0),
        "shares": (0.5, 0.8),
        "weights": (1.0, 4.0),
        "couplings": (0.0, 1.0),
        "ridges": (0.3,),
        "criteria": ("worst-group error",),
        "d": 20,
    },
    # In this process, which knows the tiny data.
    "cifar-groups": {"steps": 6, "hidden": 4, "together": None},
    "rotated-mnist": {"steps": 6, "hidden": 4, "held_out": 100, "points": 90, "together": None},
    "tabular-groups": {"steps": 6, "hidden": 4},
    "false-alarms": {
        "block": 3,
        "points": 60,
        "groups": (30,),
        "other_groups": (30,),
        "draws": 2,
        "recipe_draws": 2,
        "recipe_runs": 10,
        "steps": 4,
        "hidden": 2,
        "bootstrap": 49,
        "permutations": 29,
    },
    "celeba-pairs": {"steps": 4, "width": 2, "points": 140, "side": 8},
    "measures-on-people": {"hidden": 4, "steps": 10, "picture_steps": 2, "held_out": 60},
    "utkface-ages": {"steps": 4, "width": 2, "points": 140, "side": 8},
    "utkface-tools": {"steps": 4, "width": 2, "points": 240, "side": 8, "copies": 3},
    "bar-actions": {"steps": 10, "width": 2, "side": 8},
    "memorisation": {"problems": 20, "d": 20, "width": 8, "steps": 30, "examples": 200, "held_out": 100},
    "multi-class": {
        "problems": 5,
        "d": 40,
        "points": 200,
        "held_out": 100,
        "width": 8,
        "pictures": ("digits",),
        "steps": 30,
    },
    "warm-start": {
        "problems": 5,
        "d": 40,
        "points": 200,
        "held_out": 100,
        "width": 8,
        "pictures": ("digits",),
        "before": (0, 5, 9),
        "steps": 30,
    },
    "order-of-groups": {
        "problems": 5,
        "d": 40,
        "points": 200,
        "held_out": 100,
        "width": 8,
        "pictures": ("digits",),
        "steps": 30,
    },
    "overparametrisation-gap": {
        "features": (0.5, 2.0, 30.0),
        "some": (0.5,),
        "d": 40,
        "points": 200,
        "held_out": 100,
        "pictures": ("digits",),
        "widths": (4, 8),
        "feature_counts": (30, 300),
        "epochs": 1,
    },
    "forecast-accuracy": {"tasks": 3, "steps": 8, "copies": 2, "held_out": 20, "most": 3},
    "advice-ranks": {"tasks": 1, "steps": 6, "points": 120, "held_out": 60, "twins": 1},
    "cures": {"steps": 6, "settings": 1},
    "erasure-reverses": {"steps": 6},
    "two-stage-inference": {"steps": 8, "long": 12, "scouts": (2, 4)},
    "late-reopening": {"steps": 20},
    "optimiser-or-speed": {"steps": 12, "per_decade": 5},
    "forecast-crossings": {
        "among": (601, 605),
        "tasks": 1,
        "sizes.steps": 12,
        "sizes.deep_steps": 12,
        "sizes.held_out": 40,
        "sizes.copies": 2,
    },
    "forecast-fine-tuning": {"tasks": 2, "steps": 8, "before": 8, "held_out": 40, "width": 32, "sample": 40},
    "spectral-1d": {"frequencies": (5, 10), "points": 32, "width": 16, "steps": 40, "held_out": 10},
    "spectral-interpolation": {"width": 8, "steps": 20, "lines": 4},
    "spectral-double-descent": {"points": 200, "width": 8, "steps": 20, "lines": 4},
    "principal-components": {"width": 20, "steps": 12, "digits_steps": 10},
    "low-dimensional-dependence": {"d": 10, "train": 500, "held_out": 100, "width": 10, "batch": 20, "steps": 10},
    "distributional": {"train": 600, "width": 8, "batch": 16, "steps": 12, "early": 5},
    "low-rank-weights": {"width": 8, "points": 40, "steps": 20, "drift_lrs": (0.2, 0.1), "drift_time": 0.4},
    "low-rank-embeddings": {"width": 8, "depths": (1, 2), "points": 40, "trained_depths": (1, 2), "steps": 6},
    "incremental-rank": {"d": 6, "measurements": 60, "steps": 60, "every": 10},
    "low-sensitivity": {
        "n": 9,
        "width": 8,
        "steps": 4,
        "noisy_points": 32,
        "noisy_steps": 4,
        "transformer_steps": 3,
        "images": 100,
        "image_steps": 5,
    },
    "second-settings": {
        "steps": 10,
        "width": 8,
        "orders": 3,
        "picture_points": 200,
        "picture_epochs": 1,
        "patch_steps": 10,
        "couplings": (0.0, 1.0),
    },
    "pipeline-atlas": {"steps": 10, "fraction": 1 / 400, "orders": 2, "real_fraction": 0.2},
    "bias-spot-checks": {"width": 2, "points": 60, "steps": 6},
    "bias-atlas": {
        "data": ("uniform", "digits"),
        "activations": ("relu",),
        "shapes": ((1, 70), (3, 16)),
        "scales": (1.5,),
        "optimisers": ("SGD",),
        "lrs": (0.1,),
        "steps": 10,
        "points": 40,
    },
    "early-alignment": {"widths": (20,), "points": 16, "scale": 1e-3, "lr": 1.0, "steps_large": 5},
    "four-neurons": {"width": 20, "points": 16, "scale": 1e-3, "lr": 1.0, "steps": 40},
    "growth-phase": {"widths": (20,), "points": 16, "scale": 1e-4, "lr": 1.0, "every": 8},
    "domino": {"epochs": 2, "width": 2, "points": 150, "held_out": 150, "side": 8, "evaluations": 3, "probe_steps": 5},
    "shortcuts": {
        "domino.steps": 80,
        "amplified.points": 300,
        "amplified.steps": 5,
        "shares.steps": 5,
        "moons.width": 10,
        "moons.steps": 5,
    },
    "diffroar": {"points": 60, "width": 8, "steps": 5, "kept": (1, 3)},
    "minority-drop": {"ratios": (1, 5, 20), "points": 100, "steps": 20},
    "hessian-rank": {"iterations": 5},
    "group-measures": {"steps": 12, "hidden": 8},
    "random-networks": {"points": 12, "width": 8},
    "edge-of-stability": {"points": 60, "units": 6, "steps": 12, "evaluations": 3, "window": 5},
    "spectral-kernel": {"width": 40, "points": 60, "grid": 32, "steps": 12},
}
#: Quick enough for every run of the tests; between them theory, simulation, pictures and a ResNet.
FAST = ("spurious-correlation", "phase-diagram", "celeba-pairs", "domino")


def cut(setting, sizes):
    """The setting with these fields replaced, those of the settings within it too."""
    here = {name: value for name, value in sizes.items() if "." not in name}
    for name in {name.partition(".")[0] for name in sizes if "." in name}:
        inner = {key.partition(".")[2]: value for key, value in sizes.items() if key.startswith(f"{name}.")}
        here[name] = cut(getattr(setting, name), inner)
    return replace(setting, **here)


def test_every_published_setting_is_run():
    assert set(TINY) == set(EXPERIMENTS)


@pytest.mark.filterwarnings("ignore")  # tiny groups, undecided curves: their sentences are tested where they are raised
@pytest.mark.parametrize("seeds", [2, pytest.param(1, marks=pytest.mark.slow)])
@pytest.mark.parametrize("name", [pytest.param(name, marks=[] if name in FAST else pytest.mark.slow) for name in TINY])
def test_a_published_setting_runs_with_any_number_of_seeds(name, seeds, tiny, tmp_path, monkeypatch):
    module = find(name)
    small = cut(module.FULL, TINY[name])
    tiny(*dict.fromkeys((*module.NEEDS, *{"cifar10"} & {getattr(small, "data", None)})))
    assert [field.name for field in fields(small) if is_dataclass(getattr(small, field.name))] or small != module.QUICK
    monkeypatch.setattr(module, "FULL", small)
    outcome = reproduce(name, "full", seeds, tmp_path)
    assert outcome.state == "run"
    assert outcome.seeds == seeds
    assert outcome.pictures
    for claim in outcome.claims:
        assert isinstance(claim, Claim)
        assert "nan" not in claim.measured or claim.verdict == "not run", str(claim)
        assert claim.seeds in (1, seeds), str(claim)  # 1: exact, whatever the seeds
