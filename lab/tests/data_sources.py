"""Where the description of a public data set stands: with the core or with the laboratory."""

from tiltmeter.data.public import sources as of_core
from tiltmeter_lab.data import sources as of_lab

EVERY = [*of_core.SOURCES, *of_lab.SOURCES]


def home_of(name):
    """The dictionary that holds this data set."""
    return of_lab.SOURCES if name in of_lab.SOURCES else of_core.SOURCES
