"""Experiments on public data: they run, on tiny files in the true formats, and say what to do where data are absent."""

import gzip
import struct
from dataclasses import replace

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from tiltmeter.data import sources  # noqa: E402
from tiltmeter.experiments import (  # noqa: E402
    celeba_pairs,
    cifar_groups,
    domino,
    rotated_mnist,
    tabular_groups,
)
from tiltmeter.experiments.catalogue import EXPERIMENTS, find, make_now  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore:Groups with fewer")
MODULES = {
    "cifar-groups": cifar_groups,
    "rotated-mnist": rotated_mnist,
    "tabular-groups": tabular_groups,
    "celeba-pairs": celeba_pairs,
    "domino": domino,
}


@pytest.fixture(autouse=True)
def tiny(tmp_path, monkeypatch):
    """An empty folder of data sets, and sources that accept tiny files."""
    monkeypatch.setenv("TILTMETER_DATA", str(tmp_path))
    for name, source in list(sources.SOURCES.items()):
        files = tuple(replace(file, md5=None, content_md5=None, size=None, rows=None) for file in source.files)
        monkeypatch.setitem(sources.SOURCES, name, replace(source, files=files))
    cifar_groups.points.cache_clear()
    domino.whole.cache_clear()
    yield tmp_path
    cifar_groups.points.cache_clear()
    domino.whole.cache_clear()


def write_mnist(folder, count=200):
    rng = np.random.default_rng(0)
    (folder / "mnist").mkdir()
    for prefix in ("train", "t10k"):
        y = np.arange(count, dtype=np.uint8) % 10
        x = rng.integers(0, 60, (count, 28, 28), dtype=np.uint8)
        x[np.arange(count), 2 * y.astype(int) + 4, 5:20] = 250
        for kind, array in (("images-idx3", x), ("labels-idx1", y)):
            data = bytes([0, 0, 8, array.ndim]) + struct.pack(f">{array.ndim}I", *array.shape) + array.tobytes()
            (folder / "mnist" / f"{prefix}-{kind}-ubyte.gz").write_bytes(gzip.compress(data))


def write_cifar10(folder, count=100):
    rng = np.random.default_rng(0)
    (folder / "cifar10").mkdir()
    for name in sources.CIFAR10:
        records = rng.integers(0, 256, (count, 3073), dtype=np.uint8)
        records[:, 0] = np.arange(count) % 10
        (folder / "cifar10" / f"{name}.bin").write_bytes(records.tobytes())


def write_celeba(folder):
    image = pytest.importorskip("PIL.Image")
    rng = np.random.default_rng(0)
    pictures = folder / "celeba" / "img_align_celeba"
    pictures.mkdir(parents=True)
    names = sorted({one for pair in celeba_pairs.PAIRS for one in pair})
    marks = np.where(rng.random((240, len(names))) < 0.5, 1, -1)
    lines, parts = ["240", " ".join(names)], []
    for i, row in enumerate(marks):
        file = f"{i + 1:06}.jpg"
        image.fromarray(rng.integers(0, 256, (24, 20, 3), dtype=np.uint8)).save(pictures / file)
        lines.append(f"{file} {' '.join(map(str, row))}")
        parts.append(f"{file} {0 if i < 140 else 2}")
    (folder / "celeba" / "list_attr_celeba.txt").write_text("\n".join(lines) + "\n")
    (folder / "celeba" / "list_eval_partition.txt").write_text("\n".join(parts) + "\n")


def write_tables(folder):
    rng = np.random.default_rng(0)
    for name in ("adult", "compas", "german"):
        (folder / name).mkdir()
    line = "{}, Private, 1, Bachelors, 13, Single, Sales, Wife, White, {}, 0, 0, 40, Cuba, {}"
    rows = [
        line.format(20 + i % 40, ["Male", "Female"][i % 2], [">50K", "<=50K"][int(rng.random() < 0.5)])
        for i in range(160)
    ]
    (folder / "adult" / "adult.data").write_text("\n".join(rows))
    (folder / "adult" / "adult.test").write_text("|1x3\n" + "\n".join(f"{row}." for row in rows))
    header = "sex,age,race,juv_fel_count,juv_misd_count,juv_other_count,priors_count,days_b_screening_arrest,"
    header += "c_charge_degree,is_recid,score_text,two_year_recid"
    rows = [
        f"Male,{20 + i % 40},{['African-American', 'Caucasian'][i % 2]},0,0,0,{i % 5},0,F,1,Low,{int(rng.random() < 0.5)}"
        for i in range(200)
    ]
    (folder / "compas" / "compas-scores-two-years.csv").write_text("\n".join([header, *rows]))
    line = "A11 {} A34 A43 1169 A65 A75 4 {} A101 4 A121 {} A143 A152 2 A173 1 A192 A201 {}"
    rows = [line.format(i % 48, ["A92", "A93"][i % 2], 20 + i % 40, 1 + int(rng.random() < 0.3)) for i in range(240)]
    (folder / "german" / "german.data").write_text("\n".join(rows))


SMALL = {
    "cifar-groups": {"seeds": 2, "steps": 6, "hidden": 4, "look": 30},
    "rotated-mnist": {"seeds": 2, "steps": 6, "hidden": 4, "look": 100, "points": 90},
    "tabular-groups": {"seeds": 2, "steps": 6, "hidden": 4},
    "celeba-pairs": {"seeds": 2, "steps": 4, "width": 2, "points": 140, "look": 100, "side": 8},
    "domino": {"seeds": 2, "epochs": 2, "width": 2, "points": 150, "look": 150, "side": 8, "looks": 3},
}
WRITE = {
    "cifar-groups": (write_cifar10,),
    "rotated-mnist": (write_mnist,),
    "tabular-groups": (write_tables,),
    "celeba-pairs": (write_celeba,),
    "domino": (write_mnist, write_cifar10),
}


@pytest.mark.parametrize("name", MODULES)
def test_it_runs_on_tiny_files(tiny, name):
    module = find(name)
    for write in WRITE[name]:
        write(tiny)
    setting = replace(module.QUICK, **SMALL[name])
    runs = module.run(setting, make_now)
    claims = module.claims(runs)
    assert claims
    assert all(claim.verdict in ("holds", "does not hold") for claim in claims)
    assert all(len(str(claim)) < 900 for claim in claims)
    for chart in module.pictures(runs).values():
        assert chart.to_dict()["layer"]
    assert all(one["loss"].sizes["seed"] == 2 for one in runs.values())


def test_the_same_numbers_come_again(tiny):
    write_tables(tiny)
    setting = replace(tabular_groups.QUICK, **SMALL["tabular-groups"])
    one, two = (tabular_groups.run(setting, make_now) for _ in range(2))
    assert all(one[name]["loss"].equals(two[name]["loss"]) for name in one)


@pytest.mark.parametrize("name", MODULES)
def test_absent_data_are_said_in_one_sentence(name):
    module = MODULES[name]
    with pytest.raises(FileNotFoundError) as error:
        module.run(module.QUICK, make_now)
    text = str(error.value)
    assert f"tiltmeter data get {module.NEEDS[0]}" in text or "its publishers hand it out" in text
    assert "\n" not in text


@pytest.mark.parametrize("name", MODULES)
def test_what_every_experiment_offers(name):
    module = find(name)
    assert name in EXPERIMENTS
    assert module.TITLE
    assert module.PAPER
    assert set(module.NEEDS) <= set(sources.SOURCES)
    assert 3 <= module.QUICK.seeds <= module.FULL.seeds


def test_pairs_of_celeba_without_photographs_are_not_run():
    assert [claim.verdict for claim in celeba_pairs.claims({})] == ["not run"] * 3


def test_the_published_network_of_dominoes_is_made_and_scaled():
    model = domino.network(replace(domino.FULL, width=4))
    assert model(torch.zeros(2, 3, 64, 32)).shape == (2, 10)
    scale = next(m for m in model.modules() if isinstance(m, torch.nn.BatchNorm2d)).weight
    assert torch.allclose(scale, torch.full_like(scale, 2.0**-5))


def test_dominoes_hold_the_photograph_and_its_digit(tiny):
    write_mnist(tiny)
    write_cifar10(tiny)
    setting = replace(domino.QUICK, points=60, look=150, side=8)
    train, look = domino.data(setting, seed=0, digits=True)
    assert train.x.shape == (60, 3, 16, 8)
    assert train.groups == ("agree",)
    assert set(look.groups) == {"agree", "disagree"}
    blank, _ = domino.data(setting, seed=0, digits=False)
    assert blank.x[:, :, :8].std() == 0
    np.testing.assert_array_equal(blank.x[:, :, 8:], train.x[:, :, 8:])


def test_answers_of_rotated_mnist_start_at_zero_and_both_groups_show_the_same_digits(tiny):
    write_mnist(tiny)
    setting = replace(rotated_mnist.QUICK, look=100, points=90)
    train, look = rotated_mnist.two_groups(setting, (0.5, 2.0), None)
    upright, turned = (look.x[look.of_group(group)].reshape(-1, 28, 28) for group in ("upright", "turned"))
    np.testing.assert_allclose(np.rot90(upright, 1, (1, 2)) * 4, turned, rtol=1e-5)
    assert train.sizes == {"upright": 90, "turned": 90}
    assert rotated_mnist.network(5)(torch.ones(3, 784)).abs().max() == 0
