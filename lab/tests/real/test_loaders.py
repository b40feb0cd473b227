"""Loaders on the real files, where a folder of the user's has them: the facts that are known of each set."""

import os
from pathlib import Path

import numpy as np
import pytest

from tiltmeter.data.public.adult import adult
from tiltmeter.data.public.compas import compas, compas_table
from tiltmeter.data.public.presence import check
from tiltmeter_lab.data.celeba import celeba
from tiltmeter_lab.data.cifar10 import cifar10
from tiltmeter_lab.data.german import german
from tiltmeter_lab.data.mnist import fashion_mnist, mnist

pytestmark = pytest.mark.slow


def need(name, *others):
    place = os.environ.get("TILTMETER_DATA")
    if not place or not any((Path(place) / one).is_dir() for one in (name, *others)):
        pytest.skip(f"Set TILTMETER_DATA to a folder with {name} to run this test.")
    assert check(name).state == "present", check(name).note


def test_mnist():
    need("mnist")
    train = mnist("train")
    assert train.x.shape == (60000, 28, 28)
    assert mnist("test").x.shape == (10000, 28, 28)
    x = train.x / 255.0
    assert x.mean() == pytest.approx(0.13066, abs=1e-5)
    assert x.std() == pytest.approx(0.30811, abs=1e-5)


def test_fashion_mnist():
    need("fashion-mnist")
    for part, count in (("train", 6000), ("test", 1000)):
        assert np.bincount(fashion_mnist(part).y).tolist() == [count] * 10


def test_cifar10():
    need("cifar10")
    train = cifar10("train")
    assert np.bincount(train.y).tolist() == [5000] * 10
    assert np.bincount(cifar10("test").y).tolist() == [1000] * 10
    pixels = train.x.transpose(1, 0, 2, 3).reshape(3, -1)
    np.testing.assert_allclose(pixels.mean(1) / 255, [0.49140, 0.48216, 0.44653], atol=1e-5)
    np.testing.assert_allclose(pixels.std(1) / 255, [0.24703, 0.24349, 0.26159], atol=1e-5)


def test_adult():
    need("adult")
    train, held_out = adult("sex")
    assert train.sizes == {"Female": 10771, "Male": 21790}
    assert len(held_out) == 16281
    positive = {group: int((train.y[train.of_group(group)] == 1).sum()) for group in train.groups}
    assert positive == {"Female": 1179, "Male": 6662}


def test_compas():
    need("compas")
    table = compas_table(filtered=False)
    rates = table.groupby("race")["two_year_recid"].agg(["size", "mean"])
    assert rates.loc["African-American"].tolist() == pytest.approx([3696, 0.514], abs=5e-4)
    assert rates.loc["Caucasian"].tolist() == pytest.approx([2454, 0.394], abs=5e-4)
    assert len(compas_table()) == 6172
    assert compas()[0].groups == ("African-American", "Caucasian")


def test_german():
    need("german")
    train, held_out = german("sex")
    assert len(train) + len(held_out) == 1000
    assert train.sizes["female"] + held_out.sizes["female"] == 310
    train, held_out = german("age")
    assert train.sizes["young"] + held_out.sizes["young"] == 190
    assert (train.y.sum() + held_out.y.sum()) == 700


def test_celeba():
    need("celeba", "celeba-attributes")
    train = celeba("train")
    assert [len(celeba(part)) for part in ("train", "valid", "test")] == [162770, 19867, 19962]
    blond, male = train.has("Blond_Hair"), train.has("Male")
    counts = [int(((blond == b) & (male == m)).sum()) for b in (False, True) for m in (False, True)]
    assert counts == [71629, 66874, 22880, 1387]
