"""band_table: writes the calibration of forecast bands that is shipped with the package.

`python -m tiltmeter.experiments.shared.band_table runs/reproduce` writes it from the runs that `tiltmeter reproduce
forecast-bands --scale full` left in that folder.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, get_args

from tiltmeter.experiments.catalogue import Runs
from tiltmeter.experiments.kept import file_name
from tiltmeter.experiments.shared.band_scores import band_scores, by_task
from tiltmeter.experiments.shared.route_runs import run_name
from tiltmeter.experiments.shared.route_tasks import CALIBRATION, draw_route_task
from tiltmeter.forecast.bands import shipped_scores
from tiltmeter.forecast.bands.kind import KINDS
from tiltmeter.forecast.bands.shipped_scores import CURVES, FILE, What
from tiltmeter.record import Trajectory, load
from tiltmeter.record.directory.atomic_files import write_json
from tiltmeter.version import __version__

#: A score that no band reaches; JSON has no infinity.
MOST = 1e9


def band_table(runs: Runs) -> dict[str, Any]:
    """Return the scores of these runs by kind of forecast, curve, and gap or level: one list for every task."""
    found = band_scores(runs)
    tasks = sorted({int(name.split()[0]) for name in runs})
    scores = {
        kind: {
            curve: {
                what: [[round(min(one, MOST), 4) for one in task] for task in by_task(found, kind, curve, what)]
                for what in get_args(What)
            }
            for curve in CURVES
        }
        for kind in KINDS
    }
    return {
        "made by": "tiltmeter reproduce forecast-bands --scale full",
        "date": datetime.now(UTC).date().isoformat(),
        "version": __version__,
        "tasks": tasks,
        "scores": scores,
    }


def calibration_runs(folder: Path) -> Runs:
    """The runs of the calibration tasks in a folder of `reproduce`, by the names that the experiment gave them."""
    found: dict[str, Trajectory] = {}
    for number in CALIBRATION:
        task = draw_route_task(number)
        for kind in ("trained", *KINDS):
            seed = 0
            while (place := folder / file_name(name := run_name(task, seed, kind))).exists():
                run = load(place)
                assert isinstance(run, Trajectory)
                found[name] = run
                seed += 1
    return found


def main(arguments: Sequence[str]) -> None:
    """Write the table of the runs in this folder into the package."""
    folder = Path(arguments[0]) / "forecast-bands" / "full"
    target = Path(shipped_scores.__file__).parent / FILE
    write_json(target, band_table(calibration_runs(folder)))
    print(target)


if __name__ == "__main__":
    main(sys.argv[1:])
