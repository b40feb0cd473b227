"""Draws the picture of the page on the scorecard: python docs/draw/scorecard.py"""

from pathlib import Path

import numpy as np
from PIL import Image

import tiltmeter as tm

STATIC = Path(__file__).parents[1] / "_static"


def main() -> None:
    problem = tm.teacher_mixture(rho=0.75, variance=(0.5, 1.5), overlap=0.7)
    times = np.append(0.0, np.geomspace(0.02, 60.0, 300))
    laws = tm.interventions
    ways = {
        "plain": tm.SGD(lr=0.2),
        "balanced": tm.SGD(lr=0.2, interventions=(laws.Balanced(by="draws"),)),
        "leveller": tm.SGD(lr=0.2, weights={"+": 0.047, "-": 3.86}),
        "group DRO": tm.SGD(lr=0.2, interventions=(laws.GroupDRO(30.0, 150.0, by="draws"),)),
    }
    runs = {name: tm.predict(problem, sgd, times) for name, sgd in ways.items()}
    path = STATIC / "scorecard.png"
    tm.plot.save(tm.plot.loss_plane(runs), path)
    Image.open(path).convert("RGB").quantize(64).save(path, optimize=True)


if __name__ == "__main__":
    main()
