"""`tiltmeter train`: a network on grouped data, watched while it trains."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from tiltmeter.cli.pictures import save_pictures
from tiltmeter.cli.summary import Summary
from tiltmeter.cli.train_config import build_data, build_loss, build_model, build_optimizer, options, read_config


def train(
    config: Path,
    *,
    to: Path | None = None,
    resume: Annotated[bool, Parameter(negative="")] = False,
    curve: str = "loss",
    save: Annotated[tuple[Path, ...], Parameter(negative_iterable=())] = (),
    json: Annotated[bool, Parameter(negative="")] = False,
) -> None:
    """Train a network on grouped data as a TOML file says, and tell who leads and when that changes.

    Parameters
    ----------
    config
        A TOML file with tables [data], [model], [training], [looks].
    to
        Keep the run and its checkpoints in this directory.
    resume
        Go on with the run in that directory.
    curve
        The curve in which leaders are compared.
    save
        Draw the curves to this file (png, svg, pdf or html); may be repeated.
    json
        Print the results as JSON.
    """
    tables = read_config(config)
    try:
        import torch
    except ModuleNotFoundError:
        raise ValueError("`tiltmeter train` needs PyTorch: pip install 'tiltmeter[torch]'") from None
    from tiltmeter.training.loop import train as run

    data, look = build_data(tables["data"], config.parent)
    loss = build_loss(tables["training"])
    torch.manual_seed(tables["training"].get("seed", 0))
    model = build_model(tables["model"], data, loss)
    print(f"Training on {len(data):,} points, looking at {len(look):,} ...", file=sys.stderr)
    chosen = options(tables, data)
    trajectory = run(model, data, look, build_optimizer(tables["training"]), loss, to=to, resume=resume, **chosen)
    if trajectory.diverged is not None:
        print(f"Diverged at step {float(trajectory.diverged.min()):g}: lower the learning rate.", file=sys.stderr)
    if to is not None:
        print(f"Saved to {to}", file=sys.stderr)
    summary = Summary(trajectory, curve)
    save_pictures(summary, save)
    summary.print(as_json=json)
