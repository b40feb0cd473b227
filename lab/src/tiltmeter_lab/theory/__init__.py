"""Theory that the experiments need beside that of tiltmeter: prior knowledge, groups in turn, random features.

`critical_length` says how much irrelevant pre-training removes the crossings of two centred groups, and `gap_parabola`
which two numbers of the prior knowledge matter; `one_after_the_other`, `forgetting` and `better_order` what happens
when groups are learnt in turn; `random_features` what over-parametrisation does to each group. All are functions of a
`Mixture` (and an `SGD`); each refuses what its formula does not cover and names what does.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tiltmeter.lazy_names import offer

if TYPE_CHECKING:
    from tiltmeter_lab.theory.equilibrium_weights import equilibrium_weights as equilibrium_weights
    from tiltmeter_lab.theory.feature_sweep import feature_sweep as feature_sweep
    from tiltmeter_lab.theory.frontier import frontier as frontier
    from tiltmeter_lab.theory.frontier import trade_off as trade_off
    from tiltmeter_lab.theory.frontier import unbeaten as unbeaten
    from tiltmeter_lab.theory.group_pulls import equalising_pulls as equalising_pulls
    from tiltmeter_lab.theory.group_pulls import first_gap as first_gap
    from tiltmeter_lab.theory.incompatibility import incompatibility as incompatibility
    from tiltmeter_lab.theory.one_after_the_other import better_order as better_order
    from tiltmeter_lab.theory.one_after_the_other import forgetting as forgetting
    from tiltmeter_lab.theory.one_after_the_other import one_after_the_other as one_after_the_other
    from tiltmeter_lab.theory.pretraining import critical_length as critical_length
    from tiltmeter_lab.theory.pretraining import gap_parabola as gap_parabola
    from tiltmeter_lab.theory.random_features import random_features as random_features

__all__ = offer(__name__)  # noqa: PLE0605
