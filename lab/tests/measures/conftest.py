"""Networks that measures of inputs in numbers are tried on."""

import pytest

from networks import small_cnn, transformer
from tiltmeter.modules.networks import mlp

NETWORKS = {
    "mlp": (lambda: mlp(64, (16,), 4), (64,)),
    "cnn": (lambda: small_cnn(1, 4, 4), (1, 8, 8)),
    "transformer": (lambda: transformer(8, 8, outputs=4, width=8, layers=1, heads=2), (8, 8)),
}


@pytest.fixture(params=list(NETWORKS))
def network(request):
    """A model of four classes, and the shape of one of its inputs."""
    make, shape = NETWORKS[request.param]
    return make(), shape
