"""`tiltmeter explore`: the page on this machine where theory, runs and forecasts are explored."""

from __future__ import annotations

import sys
import webbrowser
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from tiltmeter.cli.terminal import Switch

PORT = 8765
#: Reads a TOML file of the folder for the forecast page.
READER = "tiltmeter.cli.explored_file:explored_file"


def explore(
    folder: Path = Path("runs"),
    *,
    port: int = PORT,
    allow_runs: Switch = False,
    share: Annotated[str | None, Parameter(show_default=False)] = None,
    demo: Switch = False,
    quiet: Switch = False,
) -> None:
    """Open a page in the browser: the theory with sliders, the runs of a folder while they are written, forecasts.

    Parameters
    ----------
    folder
        A folder of run directories, TOML files and saved Tangents; it need not exist yet.
    port
        Where to listen; another port is taken if this one is in use.
    allow_runs
        Let the page start trainings and experiments, which write to the folder. Without it nothing is written.
    share
        Listen at this address of this machine instead of the loopback address, so that others can open the page. The
        printed address holds a token, and only those who have it get an answer. It is sent without encryption.
    demo
        First record the runs of a demo in the folder, to have something to look at.
    quiet
        Print the address and open no browser.
    """
    try:
        from tiltmeter.explorer.server import serve
    except ModuleNotFoundError as error:
        if error.name not in ("starlette", "uvicorn"):
            raise
        raise ImportError("`tiltmeter explore` needs its extra: pip install 'tiltmeter[explore]'") from None
    import secrets

    from tiltmeter.explorer.settings import LOOPBACK, Settings

    if folder.exists() and not folder.is_dir():
        raise NotADirectoryError(f"`folder` should be a folder of run directories. Found a file at {folder}.")
    token, once = (None, None) if share is None else (secrets.token_urlsafe(24), secrets.token_urlsafe(24))
    host = LOOPBACK if share is None else share
    settings = Settings(folder.resolve(), port, host, token, allow_runs, READER, once)

    if demo:
        from tiltmeter.explorer.demo_runs import demo_runs

        print("Recording the runs of the demo ...", file=sys.stderr)
        demo_runs(settings.folder)

    def ready(found: Settings) -> None:
        print(f"Explorer: {found.address}", flush=True)
        print("Stop it with Ctrl-C.", file=sys.stderr)
        if not quiet:
            webbrowser.open(found.first_visit)

    try:
        serve(settings, ready)
    except KeyboardInterrupt:
        print("Stopped.", file=sys.stderr)
