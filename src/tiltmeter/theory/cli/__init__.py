"""The verbs of exact theory."""

from tiltmeter.cli.verb import Verb

VERBS = {
    "predict": Verb(
        "Theory",
        "Exact learning curves of every group: who leads, when that changes, and why.",
        'predict "rho=0.8, variance=(0.5, 1.5)" --lr 0.1 --save curves.svg',
        "tiltmeter.theory.cli.predict:predict",
    ),
    "simulate": Verb(
        "Theory",
        "Simulate SGD at finite d, with the exact distribution of runs, beside the theory.",
        "simulate centred-crossing --d 2000 --seeds 16 --against theory",
        "tiltmeter.theory.cli.simulate:simulate",
    ),
    "equilibrium": Verb(
        "Theory",
        "Error of each group for the fully trained model, by number of samples, loss and weights.",
        "equilibrium centred-crossing --samples 2 --ridge 0.3",
        "tiltmeter.theory.cli.equilibrium:equilibrium",
    ),
}
