"""The verbs of the laboratory, as the command line knows them before their files are imported."""

from tiltmeter.cli.verb import Verb

VERBS = {
    "measure": Verb(
        "Laboratory",
        "Measure simplicity and group biases of a model during training, with null values.",
        "measure effective-rank --save rank.svg",
        "tiltmeter_lab.cli.measure:measure",
    ),
    "study": Verb(
        "Laboratory",
        "Run a grid of settings that survives crashes, on this machine or on a Dask cluster.",
        "",  # an application of its own, with its own example
        "tiltmeter_lab.cli.study:study",
    ),
    "reproduce": Verb(
        "Laboratory",
        "Run published experiments again and report, claim by claim, whether they hold.",
        "reproduce bias-crossing --to runs/reproduce",
        "tiltmeter_lab.cli.reproduce:reproduce",
    ),
}
