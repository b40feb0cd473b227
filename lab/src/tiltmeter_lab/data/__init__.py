"""Data of the laboratory: generators whose structure is known, and loaders of public data sets, one file each."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tiltmeter.lazy_names import offer

if TYPE_CHECKING:
    from tiltmeter_lab.data.bar import ACTIONS as ACTIONS
    from tiltmeter_lab.data.bar import bar as bar
    from tiltmeter_lab.data.boolean import Parity as Parity
    from tiltmeter_lab.data.boolean import boolean_data as boolean_data
    from tiltmeter_lab.data.boolean import cube as cube
    from tiltmeter_lab.data.celeba import Faces as Faces
    from tiltmeter_lab.data.celeba import celeba as celeba
    from tiltmeter_lab.data.cifar10 import cifar10 as cifar10
    from tiltmeter_lab.data.clones import ClassCovariance as ClassCovariance
    from tiltmeter_lab.data.clones import Clone as Clone
    from tiltmeter_lab.data.clones import IndependentMarginals as IndependentMarginals
    from tiltmeter_lab.data.clones import Isotropic as Isotropic
    from tiltmeter_lab.data.clones import SharedCovariance as SharedCovariance
    from tiltmeter_lab.data.clusters import symmetric_clusters as symmetric_clusters
    from tiltmeter_lab.data.dominoes import dominoes as dominoes
    from tiltmeter_lab.data.dominoes import one_hot_block as one_hot_block
    from tiltmeter_lab.data.german import german as german
    from tiltmeter_lab.data.grouping import by_attributes as by_attributes
    from tiltmeter_lab.data.grouping import by_classes as by_classes
    from tiltmeter_lab.data.grouping import mixed as mixed
    from tiltmeter_lab.data.grouping import set_aside as set_aside
    from tiltmeter_lab.data.images import Images as Images
    from tiltmeter_lab.data.images import standardised as standardised
    from tiltmeter_lab.data.latents import Latents as Latents
    from tiltmeter_lab.data.mnist import fashion_mnist as fashion_mnist
    from tiltmeter_lab.data.mnist import mnist as mnist
    from tiltmeter_lab.data.moons import moons as moons
    from tiltmeter_lab.data.rectangles import rectangles as rectangles
    from tiltmeter_lab.data.sines import Sines as Sines
    from tiltmeter_lab.data.sines import random_phases as random_phases
    from tiltmeter_lab.data.sines import sines as sines
    from tiltmeter_lab.data.slabs import linear_and_slabs as linear_and_slabs
    from tiltmeter_lab.data.slabs import random_basis as random_basis
    from tiltmeter_lab.data.slabs import slabs as slabs
    from tiltmeter_lab.data.utkface import RACES as RACES
    from tiltmeter_lab.data.utkface import SEXES as SEXES
    from tiltmeter_lab.data.utkface import utkface as utkface
    from tiltmeter_lab.data.waterbirds import waterbirds as waterbirds


__all__ = offer(__name__)  # noqa: PLE0605
