"""`tiltmeter why`: which property of a table makes the gap, early, middle and late in training."""

from __future__ import annotations

from pathlib import Path

from tiltmeter.cli.table_file import Guesses, previewed, read_task
from tiltmeter.cli.terminal import AskedCurve, Json, Switch, print_json, print_result


def why(
    config: Path,
    *,
    curve: AskedCurve = None,
    confirm: Switch = False,
    seeds: int = 5,
    guesses: Guesses = Guesses(),
    json: Json = False,
) -> None:
    """Say which property of the data makes the gap: share, base rate, position, spread or rule.

    Parameters
    ----------
    config
        A table (.csv, .parquet, .feather), or a TOML file with a table [data].
    confirm
        Train networks in the populations of the two largest causes, and print what came beside what was said.
    seeds
        Trainings in every population of --confirm.
    """
    from tiltmeter.preview.preview import COMPUTED

    if seeds < 2:
        raise ValueError(f"--seeds should be at least 2: one training has no spread. Found {seeds}.")
    task = read_task(config, guesses)
    view = previewed(task)
    causes = view.causes(curve)
    several = view.inputs.kind == "classes"
    came = view.confirm(seeds=seeds) if confirm and causes.rows else None
    if json:
        print_json(
            {
                "claim": view.claim,
                "causes": causes.to_json(),
                "ladder": None if several else view.ladder().to_json(),
                "confirmed": None if came is None else came.to_frame().to_dict("records"),
                "guessed": task.guessed,
            }
        )
        return
    print_result(view.claim)
    print(causes)
    if not several:
        print(view.ladder())
    if came is None:
        print(COMPUTED)
    else:
        print(came)
    if task.guessed:
        print(task.guessed)
    if not confirm and causes.rows:
        print(
            f"Next: tiltmeter why {task.name} --confirm   trains networks in the populations of the two largest causes"
        )
