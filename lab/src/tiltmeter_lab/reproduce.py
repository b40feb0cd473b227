"""reproduce: run a named experiment in a directory and report, claim by claim, what was found."""

from __future__ import annotations

import dataclasses
import json
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal

import tiltmeter as tm
from tiltmeter.record.directory.atomic_files import read_sealed_json, write_atomically, write_sealed_json
from tiltmeter_lab.catalogue import EXPERIMENTS, find
from tiltmeter_lab.claim import not_run
from tiltmeter_lab.kept import Kept, file_name, silent, today
from tiltmeter_lab.origins import with_exact
from tiltmeter_lab.outcome import Outcome, State

Scale = Literal["quick", "full"]
OUTCOME, PICTURES = "outcome.json", "pictures"


def reproduce(
    name: str,
    scale: Scale = "quick",
    seeds: int | None = None,
    to: str | os.PathLike[str] = "runs/reproduce",
    tell: Callable[[str], None] = silent,
    partial: bool = False,
) -> Outcome:
    """Run an experiment in `to`/name/scale, or continue it there, and judge its claims.

    Runs that are complete there are loaded, not made again. `seeds` changes their number, and is then part of the
    folder's name. `tell` is called after every run. The outcome is written to `outcome.json`, next to its pictures. If
    data or PyTorch are missing, the outcome is "not run", with the reason; an outcome stored earlier is kept. torch
    uses one thread meanwhile, so that results do not depend on the number of cores.

    `partial` computes nothing: it judges what an interrupted experiment has, and says how much of it. It needs an
    experiment whose runs are cells of a study.

    A verdict tells whether the statistic met the rule in these runs. It does not prove the sentence.
    """
    if scale not in ("quick", "full"):
        raise ValueError(f'`scale` should be "quick" or "full". Found scale = {scale!r}.')
    if seeds is not None and (isinstance(seeds, bool) or not isinstance(seeds, int) or seeds < 1):
        raise ValueError(f"`seeds` should be a number of them, at least 1. Found seeds = {seeds!r}.")
    place = Path(to) / name / (scale if seeds is None else f"{scale}-{seeds}-seeds")
    try:
        module = find(name)
    except ModuleNotFoundError as error:
        return without(name, scale, f"Needs {error.name}, which is not installed.")
    setting = module.QUICK if scale == "quick" else module.FULL
    if seeds is not None:
        names = [field.name for field in dataclasses.fields(setting)]
        setting = dataclasses.replace(
            setting, **{name: seeds for name in names if name == "seeds" or name.endswith("_seeds")}
        )
    keep = Kept(place, setting, tell, partial)
    try:
        if absent := _absent(module.NEEDS):
            do = f"`tiltmeter data get {' '.join(absent)}` brings them, or says how to"
            raise FileNotFoundError(f"Needs the data of {', '.join(absent)}, which are not here: {do}.")
        with _one_thread():
            runs = module.run(setting, keep)
            claims = tuple(with_exact(name, claim) for claim in module.claims(runs))
            pictures = _draw(module.pictures(runs), place / PICTURES)
            tables = module.tables(runs) if hasattr(module, "tables") else {}
    except (FileNotFoundError, ModuleNotFoundError) as error:
        if (before := _read(place)) is not None and before.state == "run":
            tell(f"{_sentence(error)} The outcome of {before.date} is kept.")
            return before
        return _written(without(name, scale, _sentence(error)), place)
    except Exception as error:
        _written(without(name, scale, failure(error), "failed"), place)
        raise
    return _written(
        Outcome(
            name=name,
            title=module.TITLE,
            paper=module.PAPER,
            scale=scale,
            seeds=int(setting.seeds),
            date=keep.date,
            seconds=round(keep.seconds, 1),
            version=tm.__version__,
            claims=claims,
            runs=keep.names,
            pictures=pictures,
            tables=tuple(
                (title, tuple(table.header), tuple(tuple(map(str, row)) for row in table.rows))
                for title, table in tables.items()
            ),
            folder=str(place),
            partial=_so_far(keep.counts),
        ),
        place,
    )


def _so_far(counts: Mapping[str, tuple[int, int]]) -> str:
    """How much is complete, in words; "" if all is.

    >>> _so_far({"a": (5, 10), "b": (4, 10)}), _so_far({"a": (5, 5)})
    ('9 of 20 complete: a 5 of 10, b 4 of 10', '')
    """
    done, planned = (sum(pair[k] for pair in counts.values()) for k in (0, 1))
    told = ", ".join(f"{name} {one} of {whole}" for name, (one, whole) in counts.items())
    return f"{done} of {planned} complete: {told}" if done < planned else ""


def without(name: str, scale: str, reason: str, state: State = "not run") -> Outcome:
    """Return the outcome of an experiment without results, and the reason."""
    title, paper = name, ""
    try:
        module = find(name)
        title, paper = module.TITLE, module.PAPER
    except Exception:  # a module that cannot be imported has no title, but the reason is still reported
        pass
    claims = (not_run(title, reason),)
    return Outcome(name, title, paper, scale, 0, today(), 0.0, tm.__version__, claims, state=state, reason=reason)


def outcomes_in(to: str | os.PathLike[str], strict: bool = True) -> list[Outcome]:
    """All outcomes in a directory, in the order of the catalogue; what cannot be read is an error, or one that failed
    if not `strict`."""
    found = []
    for name in EXPERIMENTS:
        # The short runs first, then the published setting, then those of other seeds.
        places = sorted((Path(to) / name).glob("*"), key=lambda place: (place.name != "quick", place.name))
        for place in places:
            try:
                outcome = _read(place)
            except (ValueError, OSError) as error:
                if strict:
                    raise
                outcome = dataclasses.replace(without(name, place.name, str(error), "failed"), folder=str(place))
            found += [] if outcome is None else [outcome]
    return found


def _read(place: Path) -> Outcome | None:
    """Return the outcome in this folder, even if the folder was moved; None if there is none."""
    file = place / OUTCOME
    if not file.is_file():
        return None
    try:
        outcome = Outcome.from_json(read_sealed_json(file, "an outcome"))
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        raise ValueError(f"{file} should be what `reproduce` wrote. Found something else: remove it.") from None
    return dataclasses.replace(outcome, folder=str(place))


def _absent(needs: tuple[str, ...]) -> list[str]:
    """Data sets that are not on this machine."""
    return [name for name in needs if not tm.data.is_present(name)]


def _draw(charts: Mapping[str, Any], folder: Path) -> tuple[tuple[str, str], ...]:
    """Write every picture as Vega-Lite, which needs no runs to be drawn; return titles and file names."""
    if charts:
        folder.mkdir(parents=True, exist_ok=True)
    drawn = []
    for title, chart in charts.items():
        file = file_name(title)
        write_atomically(folder / f"{file}.json", json.dumps(chart.to_dict()).encode())
        drawn.append((title, file))
    return tuple(drawn)


def _written(outcome: Outcome, place: Path) -> Outcome:
    place.mkdir(parents=True, exist_ok=True)
    write_sealed_json(place / OUTCOME, outcome.to_json())
    return outcome


def failure(error: Exception) -> str:
    """An unexpected error in one line."""
    return f"{type(error).__name__}: {' '.join(str(error).split())}"


def _sentence(error: Exception) -> str:
    if isinstance(error, ModuleNotFoundError):
        return f"Needs {error.name}, which is not installed."
    # An outcome may be published, so it must not show where the data are on this machine.
    return " ".join(str(error).split()).replace(str(tm.data.data_folder()), "the data folder")


@contextmanager
def _one_thread() -> Iterator[None]:
    try:
        import torch
    except ModuleNotFoundError:
        yield
        return
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)
