"""Synthetic data: generators whose structure is known, one file each."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tiltmeter.lazy_names import offer

if TYPE_CHECKING:
    from tiltmeter.data.synthetic.boolean import Parity as Parity
    from tiltmeter.data.synthetic.boolean import boolean_data as boolean_data
    from tiltmeter.data.synthetic.boolean import cube as cube
    from tiltmeter.data.synthetic.clones import ClassCovariance as ClassCovariance
    from tiltmeter.data.synthetic.clones import Clone as Clone
    from tiltmeter.data.synthetic.clones import IndependentMarginals as IndependentMarginals
    from tiltmeter.data.synthetic.clones import Isotropic as Isotropic
    from tiltmeter.data.synthetic.clones import SharedCovariance as SharedCovariance
    from tiltmeter.data.synthetic.clusters import symmetric_clusters as symmetric_clusters
    from tiltmeter.data.synthetic.dominoes import dominoes as dominoes
    from tiltmeter.data.synthetic.dominoes import one_hot_block as one_hot_block
    from tiltmeter.data.synthetic.latents import Latents as Latents
    from tiltmeter.data.synthetic.moons import moons as moons
    from tiltmeter.data.synthetic.rectangles import rectangles as rectangles
    from tiltmeter.data.synthetic.shortcut_digits import shortcut_digits as shortcut_digits
    from tiltmeter.data.synthetic.sines import Sines as Sines
    from tiltmeter.data.synthetic.sines import random_phases as random_phases
    from tiltmeter.data.synthetic.sines import sines as sines
    from tiltmeter.data.synthetic.slabs import linear_and_slabs as linear_and_slabs
    from tiltmeter.data.synthetic.slabs import random_basis as random_basis
    from tiltmeter.data.synthetic.slabs import slabs as slabs
    from tiltmeter.theory.samples import samples as samples

__all__ = offer(__name__)  # noqa: PLE0605
