"""The rule of widths: what a twin must change so that it learns as the wide network does.

The maximal-update parametrisation (Yang and Hu, 2021; Yang et al., 2022) says how weights, learning rates and decay
depend on width so that features of every width move alike. Here it is applied between two networks: of a dimension with
n units the share r stays. `out` is the share of the units that a parameter gives, `into` of those that it takes.

| parameter | weights | rate, normalised | rate, proportional | reason |
|---|---|---|---|---|
| out only (1) | 1 | 1 | r | computed from the same inputs; its gradient is 1/r larger: more of the output is its own |
| both (2) | r^-1/2 | 1/r | 1 | a sum of r n random terms keeps its size; updates are aligned: 1/r times the rate |
| read-out (3) | 1/r | 1/r | 1/r | the output is a mean over units, on whose number it must not depend |
| into only, elsewhere | r^-1/2 | 1/r | 1/r | a dimension that could not be cut starts at its own size |
| whole: bias of the output | 1 | 1 | 1 | nothing depends on the width |

(1) Input layer, embedding, learned positions, depthwise convolution, recurrent weights from the input; and all hidden
vectors: biases, scale and shift of BatchNorm, LayerNorm and GroupNorm. (2) Hidden layers, convolutions, 1x1 shortcuts,
attention (q, k, v, o), feed-forward, recurrent weights. (3) Only its inputs were cut, and it gives the scores.

*Normalised* optimisers (Adam, RMSprop, sign descent) take steps whose size does not depend on that of the gradient;
*proportional* ones (SGD) do. Decoupled decay and the decay of SGD keep rate times decay; decay added to the gradient of
a normalised optimiser keeps its ratio to the gradient, and so does Adam's epsilon.
"""

from __future__ import annotations

from typing import NamedTuple

from tiltmeter.forecast.twin.layers import Shares


class Scale(NamedTuple):
    """Factors of one parameter: of its weights, of its gradient (found, not set), and of the two kinds of rates.

    `norm` is what the square of its gradient's norm counts in that of the wide network, for clipping.
    """

    weight: float = 1.0
    gradient: float = 1.0
    normalised_rate: float = 1.0
    proportional_rate: float = 1.0
    norm: float = 1.0

    @property
    def inner_decay(self) -> float:
        """Of decay that is added to the gradient before a normalised optimiser sees it."""
        return self.gradient / self.weight


def scale_of(shares: Shares, readout: bool) -> Scale:
    """The rule for a parameter of which these shares stay; `readout`: its outputs are those of the network.

    >>> scale_of(Shares(out=0.25, into=0.25), readout=False)
    Scale(weight=2.0, gradient=4.0, normalised_rate=4.0, proportional_rate=1.0, norm=1.0)
    >>> scale_of(Shares(into=0.25), readout=True)
    Scale(weight=4.0, gradient=1.0, normalised_rate=4.0, proportional_rate=4.0, norm=4.0)
    """
    out, into = shares
    weight = 1.0 / into if readout and out == 1.0 else into**-0.5
    return Scale(
        weight=weight,
        gradient=1.0 / out,
        normalised_rate=1.0 / into,
        proportional_rate=out / into,
        norm=out / into,
    )
