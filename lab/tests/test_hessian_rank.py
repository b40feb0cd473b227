"""The rank of the Hessian at interpolation, and away from it."""

from tiltmeter_lab.catalogue import find, make_now
from tiltmeter_lab.named import hessian_rank as experiment


def test_claims_hold_in_every_seed():
    assert find("hessian-rank") is experiment
    runs = experiment.run(experiment.QUICK, make_now)
    claims = experiment.claims(runs)
    assert all(claim.holds for claim in claims), "\n".join(map(str, claims))
    assert runs["fitted"]["hessian_spectrum"].sizes == {"time": 1, "seed": 4, "rank": 48}
    assert float(runs["fitted"]["hessian_spectrum"].min()) > -1e-9
    assert set(experiment.pictures(runs)) == {"Eigenvalues of the Hessian"}
