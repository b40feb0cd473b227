"""Interventions that were tried and are on no menu, beside those of tiltmeter; a TOML file finds them by name.

>>> import tiltmeter_lab as lab
>>> lab.interventions.SpectralDecoupling().strength
0.1
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tiltmeter.lazy_names import homes_of, offer

if TYPE_CHECKING:
    from tiltmeter_lab.interventions.data import USEFUL as USEFUL
    from tiltmeter_lab.interventions.data import Amplified as Amplified
    from tiltmeter_lab.interventions.data import PrunedEasy as PrunedEasy
    from tiltmeter_lab.interventions.point import AttributionPrior as AttributionPrior
    from tiltmeter_lab.interventions.point import ProductOfExperts as ProductOfExperts
    from tiltmeter_lab.interventions.point import SpectralDecoupling as SpectralDecoupling
    from tiltmeter_lab.interventions.step import Fish as Fish
    from tiltmeter_lab.interventions.step import GradientPenalty as GradientPenalty
    from tiltmeter_lab.interventions.step import MedianGradient as MedianGradient

__all__ = offer(__name__)  # noqa: PLE0605

#: Name that may stand in a file -> its module.
INTERVENTIONS: dict[str, str] = dict(homes_of(__name__))
