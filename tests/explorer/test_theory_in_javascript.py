"""The page's own theory is the theory: the JavaScript closed form against `predict`, `crossings`, `drivers`,
`phases`."""

import json
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

import tiltmeter as tm
from tiltmeter.theory.dynamics.stability import stability_limit, timescales

PAGE = Path(tm.__file__).parent / "explorer" / "page"
NODE = shutil.which("node")
needs_node = pytest.mark.skipif(NODE is None, reason="Node.js is not installed: the page's theory was not checked.")
#: Twenty problems in the quick tests, all 500 in the slow ones.
COUNTS = [20, pytest.param(500, marks=pytest.mark.slow)]
TIMES = np.geomspace(0.01, 200.0, 41)

SCRIPT = """
import { readFileSync } from "node:fs";
import { constants, losses, overlaps, timescales } from "./theory/closed_form.js";
import { crossings } from "./theory/crossings.js";
import { drivers } from "./theory/drivers.js";
import { phases, sentence } from "./theory/phases.js";
import { stabilityLimit } from "./theory/problem.js";
const { problems, times } = JSON.parse(readFileSync(process.argv[2]));
const answers = problems.map((problem) => {
  const k = constants(problem);
  const split = drivers(problem);
  return {
    loss: times.map((t) => losses(k, t)),
    order: times.map((t) => { const o = overlaps(k, t); return [o.M, o.R[0], o.R[1], o.Q]; }),
    drivers: split === null ? null : times.map((t) => { const s = split(t); return [s.loss_gap, s.shift, s.variance, s.representation, s.rest]; }),
    crossings: crossings(problem).found.map((one) => one.time),
    sentence: sentence(phases(problem)),
    limit: stabilityLimit(problem),
    scales: timescales(problem),
  };
});
console.log(JSON.stringify(answers));
"""


def random_problems(count, seed=0):
    """Problems of all kinds; one in four without shift, one in four with loss weights, one in ten at resonance."""
    rng = np.random.default_rng(seed)
    found = []
    while len(found) < count:
        shift = 0.0 if rng.random() < 0.25 else float(rng.uniform(0.0, 5.0))
        overlap, alignment = float(rng.uniform(-1, 1)), rng.uniform(-0.9, 0.9, 2)
        if np.linalg.eigvalsh([[1, *alignment], [alignment[0], 1, overlap], [alignment[1], overlap, 1]])[0] < 1e-6:
            continue
        problem = {
            "rho": float(rng.uniform(0.02, 0.98)),
            "shift": shift,
            "variance": np.exp(rng.uniform(-2.5, 1.2, 2)).tolist(),
            "overlap": overlap,
            "alignment": alignment.tolist() if rng.random() < 0.7 else [0.0, 0.0],
            "label_bias": rng.uniform(-1.5, 1.5, 2).tolist() if rng.random() < 0.5 else [0.0, 0.0],
            "weights": np.exp(rng.uniform(-1, 1, 2)).tolist() if rng.random() < 0.25 else [1.0, 1.0],
            "until": 200.0,
        }
        limit = stability_limit(*in_python({**problem, "lr": 0.01})).item()
        problem["lr"] = limit * (0.5 if rng.random() < 0.1 else float(rng.uniform(0.01, 0.95)))
        found.append(problem)
    return found


def in_python(problem):
    overlaps = tuple(cosine * problem["shift"] ** 0.5 for cosine in problem["alignment"])
    mixture = tm.teacher_mixture(
        problem["rho"], problem["shift"], tuple(problem["variance"]), problem["overlap"], overlaps, tuple(problem["label_bias"])
    )  # fmt: skip
    weights = None if problem["weights"] == [1.0, 1.0] else dict(zip("+-", problem["weights"], strict=True))
    return mixture, tm.SGD(lr=problem["lr"], weights=weights)


def in_node(tmp_path, problems, times):
    shutil.copytree(PAGE / "theory", tmp_path / "theory")
    (tmp_path / "package.json").write_text('{"type": "module"}')
    (tmp_path / "ask.js").write_text(SCRIPT)
    (tmp_path / "asked.json").write_text(json.dumps({"problems": problems, "times": times.tolist()}))
    done = subprocess.run([NODE, "ask.js", "asked.json"], cwd=tmp_path, capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


@pytest.fixture(scope="module", params=COUNTS)
def answers(request, tmp_path_factory):
    if NODE is None:
        pytest.skip("Node.js is not installed: the page's theory was not checked.")
    problems = random_problems(request.param)
    return list(zip(problems, in_node(tmp_path_factory.mktemp("page"), problems, TIMES), strict=True))


def test_losses_and_order_parameters_equal_predict(answers):
    worst = 0.0
    for problem, found in answers:
        theory = tm.predict(*in_python(problem), TIMES, curves=("loss", "M", "R", "Q"))
        order = np.array(found["order"])
        assert np.shape(found["loss"]) == theory["loss"].shape
        scale = np.maximum(1.0, np.abs(theory["loss"].values))
        worst = max(worst, float((np.abs(found["loss"] - theory["loss"].values) / scale).max()))
        for name, place in (("M", 0), ("R", 1), ("Q", 3)):
            curve = theory[name].values if name == "Q" else theory[name].isel(group=0).values
            worst = max(worst, float((np.abs(order[:, place] - curve) / np.maximum(1.0, np.abs(curve))).max()))
        worst = max(worst, float(np.abs(order[:, 2] - theory["R"].isel(group=1).values).max()))
    assert worst < 1e-12


def test_the_comparison_tells_another_learning_rate(answers):
    problem, found = answers[0]
    other = tm.predict(*in_python({**problem, "lr": problem["lr"] * (1 + 1e-9)}), TIMES, curves=("loss",))["loss"]
    assert np.abs(found["loss"] - other.values).max() > 1e-12


def test_limits_and_time_scales_equal(answers):
    for problem, found in answers[:100]:
        mixture, sgd = in_python(problem)
        assert found["limit"] == pytest.approx(stability_limit(mixture, sgd).item(), rel=1e-12)
        scales = timescales(mixture, sgd)
        for name in ("M", "R", "Q"):
            expected = np.atleast_1d(scales[name].values)[0]
            assert found["scales"][name] == pytest.approx(expected, rel=1e-9), name


def test_crossings_equal(answers):
    several = 0
    for problem, found in answers:
        mixture, sgd = in_python(problem)
        expected = tm.leaders(tm.predict(mixture, sgd, np.geomspace(0.01, 200.0, 2), curves=("loss",)), "loss")
        assert len(found["crossings"]) == len(expected.changes), problem
        for one, other in zip(found["crossings"], expected.changes, strict=True):
            # Where curves touch at a small angle, a crossing is no better known than rounding of the gap allows.
            evaluate = tm.predict(mixture, sgd, [other.time * (1 - 1e-6), other.time * (1 + 1e-6)], curves=("loss",))
            gap = evaluate["loss"].diff("group").values[:, 0]
            slope = abs(gap[1] - gap[0]) / (2e-6 * other.time)
            assert abs(one - other.time) <= 1e-9 * other.time + 1e-15 / slope
        several += len(expected.changes) > 0
    assert several >= len(answers) // 12


@pytest.mark.timeout(1500)
def test_drivers_equal(answers):
    compared = 0
    for problem, found in answers:
        try:
            split = tm.drivers(*in_python(problem), TIMES)
        except ValueError:
            assert found["drivers"] is None
            continue
        expected = np.stack(
            [split[name].values for name in ("loss_gap", "shift", "variance", "representation", "rest")], 1
        )
        scale = np.maximum(1.0, np.abs(expected).max())
        assert np.abs(np.array(found["drivers"]) - expected).max() < 1e-10 * scale
        compared += 1
    assert compared > len(answers) // 2


def test_the_sentence_is_that_of_phases(answers):
    told = 0
    for problem, found in answers[:60]:
        mixture, sgd = in_python(problem)
        try:
            expected = tm.leaders(
                tm.predict(mixture, sgd, np.geomspace(0.01, 200.0, 2), curves=("loss",)), "loss"
            ).headline.line
        except ValueError:
            continue
        assert found["sentence"] == expected
        told += 1
    assert told > min(60, len(answers)) // 2


@needs_node
def test_named_cases_have_their_sentences(tmp_path):
    problems = [
        {"rho": 0.8, "shift": 0, "variance": [0.5, 1.5], "overlap": 0.5, "alignment": [0, 0], "label_bias": [0, 0], "lr": 0.1, "weights": [1, 1], "until": 200},
        {"rho": 0.5, "shift": 0, "variance": [1, 1], "overlap": 0.5, "alignment": [0, 0], "label_bias": [0, 0], "lr": 0.1, "weights": [1, 1], "until": 200},
    ]  # fmt: skip
    first, control = in_node(tmp_path, problems, TIMES)
    assert (
        first["sentence"] == "Group - has the lower loss until t = 5.643 (larger variance), then group + (more data)."
    )
    assert control["sentence"] == "No group leads: the loss of all groups is the same up to rounding."
