"""The verb of the explorer, as the command line knows it before the page's packages are imported."""

from tiltmeter.cli.verb import Verb

VERBS = {
    "explore": Verb(
        "Start",
        "Open a page in the browser: the theory with sliders, runs while they are written, forecasts.",
        "explore runs",
        "tiltmeter.explorer.verb:explore",
    ),
}
