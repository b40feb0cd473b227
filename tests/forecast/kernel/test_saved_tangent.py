"""A Tangent in a folder: what it forecasts is the same, what needs the network says so, what is damaged is refused."""

import json
import pickle
import shutil
from dataclasses import replace
from functools import partial

import numpy as np
import pytest
import torch
from torch import nn

import tiltmeter as tm
from tiltmeter.modules.networks import mlp
from tiltmeter.record.directory.atomic_files import write_array, write_sealed_json

RECIPES = {
    "plain": tm.Recipe(lr=0.05, steps=60, loss=tm.Square()),
    "logistic, bent": tm.Recipe(lr=0.1, steps=60, batch=16, weights={"b": 3.0}, proportions={"a": 0.4, "b": 0.6}),
    "decay": tm.Recipe(lr=0.05, steps=60, weight_decay=0.02, momentum=0.5, loss=tm.Square()),
    "law": tm.Recipe(lr=0.05, steps=60, weight_decay=0.02, interventions=(tm.interventions.GroupDRO(0.05),)),
    "optimiser": tm.Recipe(partial(torch.optim.SGD, lr=0.05), steps=60),
}


@pytest.fixture(scope="module")
def made():
    rng = np.random.default_rng(3)
    x, group = rng.normal(size=(320, 6)), np.where(np.arange(320) % 4 == 0, "b", "a")
    y = np.where(x[:, 0] + 0.8 * (group == "b") * x[:, 1] > 0, 1, -1)
    torch.manual_seed(0)
    return tm.tangent(mlp(6, (32,), 1), *tm.GroupedData(x, y, group).split(0.4), sample=60)


@pytest.fixture(scope="module")
def saved(made, tmp_path_factory):
    place = tmp_path_factory.mktemp("saved") / "kernels"
    made.save(place)
    return place


@pytest.fixture
def folder(saved, tmp_path):
    """A copy, to be spoilt."""
    return shutil.copytree(saved, tmp_path / "kernels")


@pytest.mark.parametrize("name", RECIPES)
def test_forecasts_are_the_same_to_the_bit(made, folder, name):
    found = tm.results.load_tangent(folder)
    one, other = (kernels.forecast(RECIPES[name]) for kernels in (made, found))
    assert one == other
    assert one.origin == other.origin


def test_all_else_that_kernels_answer_is_the_same(made, folder):
    found, recipe = tm.results.load_tangent(folder), RECIPES["plain"]
    assert repr(found) == repr(made)
    assert str(tm.fairness.best_weights(found, recipe)) == str(tm.fairness.best_weights(made, recipe))
    assert found.learned_share(recipe) == made.learned_share(recipe)
    assert str(found.why(recipe, step=40)) == str(made.why(recipe, step=40))


def test_a_tangent_may_be_saved_again(folder, tmp_path):
    tm.results.load_tangent(folder).save(tmp_path / "again")
    names = sorted(path.relative_to(folder) for path in folder.rglob("*") if path.is_file())
    assert names == sorted(path.relative_to(tmp_path / "again") for path in (tmp_path / "again").rglob("*.*"))
    for name in names:
        assert (folder / name).read_bytes() == (tmp_path / "again" / name).read_bytes()
    with pytest.raises(FileExistsError, match="again already exists and is never overwritten"):
        tm.results.load_tangent(folder).save(tmp_path / "again")


@pytest.mark.parametrize("outputs", ["full", "trace"])
def test_several_outputs_weights_of_points_and_labels_of_any_kind(three_classes, tmp_path, outputs):
    train, held_out = (
        tm.GroupedData(part.x, part.y, [(1, g) for g in part.codes.tolist()], np.linspace(1, 2, len(part)))
        for part in three_classes
    )
    made = tm.tangent(mlp(6, (8,), 3), train, held_out, sample=50, outputs=outputs)
    made.save(tmp_path / "kernels")
    found, recipe = tm.results.load_tangent(tmp_path / "kernels"), tm.Recipe(lr=0.05, steps=30)
    assert made.forecast(recipe) == found.forecast(recipe)


@pytest.mark.parametrize(
    ("ask", "what"),
    [
        (lambda kernels: kernels.forecast(tm.Recipe(lambda p: torch.optim.SGD(p, lr=0.1), steps=5)), "An optimiser"),
        (lambda kernels: kernels.points(), "This"),
    ],
)
def test_what_needs_the_network_says_so(folder, ask, what):
    with pytest.raises(ValueError, match=f"^{what}.* needs the network, which a stored Tangent does not hold: use"):
        ask(tm.results.load_tangent(folder))


def test_a_network_of_probabilities_is_still_warned_of(two_labels, tmp_path):
    model = nn.Sequential(nn.Linear(6, 1), nn.Sigmoid())
    tm.tangent(model, *two_labels).save(tmp_path / "kernels")
    with pytest.warns(UserWarning, match="outputs are probabilities"):
        tm.results.load_tangent(tmp_path / "kernels").forecast(tm.Recipe(lr=0.1, steps=5, loss=tm.Logistic()))


def changed(folder, **parts):
    """The description with some parts replaced, sealed again."""
    said = json.loads((folder / "tangent.json").read_text())
    del said["crc"]
    write_sealed_json(folder / "tangent.json", {**said, **parts})


def spoil(folder, how):
    arrays, file = folder / "arrays", folder / "tangent.json"
    if how == "torn description":
        file.write_bytes(file.read_bytes()[:-40])
    elif how == "edited description":
        file.write_text(file.read_text().replace('"positive": 1.0', '"positive": 2.0'))
    elif how == "newer":
        changed(folder, format=4)
    elif how == "strange version":
        changed(folder, format="one")
    elif how == "no part":
        changed(folder, arrays={})
    elif how == "name of a file":
        changed(folder, arrays={"../../secret": {"dtype": "float64", "shape": [1], "checksum": 0}})
    elif how == "type":
        said = json.loads(file.read_text())["arrays"]
        changed(folder, arrays={**said, "sample_kernel": {**said["sample_kernel"], "dtype": "object"}})
    elif how == "groups":
        changed(folder, groups=["a"])
    elif how == "settings":
        changed(folder, settings=3)
    elif how == "missing kernel":
        (arrays / "sample_kernel.npy").unlink()
    elif how == "torn kernel":
        (arrays / "sample_kernel.npy").write_bytes((arrays / "sample_kernel.npy").read_bytes()[:-8])
    elif how == "shape of a kernel":
        write_array(arrays / "held_out_kernel.npy", np.zeros((3, 3)))
    elif how == "not finite":
        said = json.loads(file.read_text())["arrays"]
        checksum = write_array(arrays / "sample_kernel.npy", np.full((60, 60), np.nan))
        changed(folder, arrays={**said, "sample_kernel": {**said["sample_kernel"], "checksum": checksum}})
    elif how == "no checksums":
        said = json.loads(file.read_text())["arrays"]
        said["sample_kernel"].pop("checksum")
        changed(folder, arrays=said)
    elif how == "earlier":
        changed(folder, format=2)
    elif how == "another number":
        kernel = np.load(arrays / "held_out_kernel.npy")
        kernel[3, 5] *= 1 + 1e-9
        write_array(arrays / "held_out_kernel.npy", kernel)
    elif how == "pickle":
        (arrays / "sample_kernel.npy").write_bytes(pickle.dumps(np.zeros((60, 60))))
    elif how == "objects":
        np.save(arrays / "held_out_first.npy", np.array([{"a": 1}], dtype=object), allow_pickle=True)
    elif how == "other points":
        write_array(arrays / "sample_first.npy", np.zeros((60, 1)))
    elif how == "fewer points":
        said = json.loads(file.read_text())["arrays"]
        checksum = write_array(arrays / "sample_first.npy", np.zeros((59, 1)))
        changed(folder, arrays={**said, "sample_first": {"dtype": "float64", "shape": [59, 1], "checksum": checksum}})
    elif how == "codes":
        said = json.loads(file.read_text())["arrays"]
        checksum = write_array(arrays / "sample_group.npy", np.full(60, 7))
        changed(folder, arrays={**said, "sample_group": {"dtype": "int64", "shape": [60], "checksum": checksum}})
    elif how == "no description":
        file.unlink()
    elif how == "nothing":
        shutil.rmtree(folder)
    elif how == "file":
        shutil.rmtree(folder)
        folder.write_text("kernels")


@pytest.mark.parametrize(
    ("how", "sentence"),
    [
        ("torn description", "tangent.json is damaged: "),
        ("edited description", "tangent.json is damaged: its checksum does not match or is missing."),
        ("newer", "tangent.json should have format 3. Found format 4. Upgrade tiltmeter to read it."),
        ("strange version", "should have format 3. Found format 'one'. Make it anew with `tm.tangent`."),
        ("no part", "is no Tangent that can be read: 'held_out_first' is missing in tangent.json."),
        ("name of a file", "is not the name of an array."),
        ("type", "'object' is not a type of numbers."),
        ("groups", "its groups do not fit its sizes."),
        ("settings", "is no Tangent that can be read: "),
        ("missing kernel", "arrays/sample_kernel.npy is missing."),
        ("torn kernel", "arrays/sample_kernel.npy cannot be read: it does not have the 28800 bytes of float64"),
        ("shape of a kernel", r"arrays/held_out_kernel.npy holds float64 of shape \(3, 3\) where float64 of shape"),
        ("not finite", "sample_kernel.npy does not fit the 60 points of the sample."),
        ("no checksums", "is no Tangent that can be read: 'checksum' is missing in tangent.json."),
        ("earlier", "should have format 3. Found format 2. Make it anew with `tm.tangent`."),
        (
            "another number",
            "arrays/held_out_kernel.npy cannot be read: its checksum does not match: it was changed after",
        ),
        ("pickle", "arrays/sample_kernel.npy cannot be read: it does not begin like a NumPy file."),
        ("objects", "arrays/held_out_first.npy cannot be read: it holds objects, and nothing is ever unpickled."),
        ("other points", "arrays/sample_first.npy cannot be read: its checksum does not match"),
        ("fewer points", "sample_first.npy does not fit the 60 points of the sample."),
        ("codes", "sample_group.npy does not fit the 2 groups."),
        ("no description", "is no Tangent: it has no tangent.json."),
        ("nothing", "`path` should be the folder of a Tangent. Found nothing at"),
        ("file", "`path` should be the folder of a Tangent. Found a file at"),
    ],
)
def test_a_folder_that_is_damaged_is_refused_in_a_sentence(folder, how, sentence):
    spoil(folder, how)
    with pytest.raises((ValueError, FileNotFoundError), match=sentence) as caught:
        tm.results.load_tangent(folder)
    assert str(caught.value).count("\n") == 0


@pytest.mark.parametrize("count", [60, pytest.param(700, marks=pytest.mark.slow)])
def test_a_damaged_tangent_never_gives_another_forecast(made, saved, tmp_path, count):
    """One bit flipped, a piece cut off or a byte repeated, anywhere in any file."""
    rng, recipe = np.random.default_rng(count), RECIPES["plain"]
    right = made.forecast(recipe)
    names = sorted(path.relative_to(saved) for path in saved.rglob("*") if path.is_file())
    refusals = []
    for _ in range(count):
        name = names[rng.integers(len(names))]
        whole = (saved / name).read_bytes()
        data, place = bytearray(whole), int(rng.integers(len(whole)))
        how = rng.integers(4)
        if how < 2:
            data[place] ^= 1 << int(rng.integers(8))
        elif how == 2:
            del data[place:]
        else:
            data.insert(place, data[place])
        try:
            (saved / name).write_bytes(data)
            assert tm.results.load_tangent(saved).forecast(recipe) == right
        except ValueError as error:
            refusals.append(str(error))
        finally:
            (saved / name).write_bytes(whole)
    assert len(refusals) > 0.9 * count
    assert not [sentence for sentence in refusals if "\n" in sentence]


def test_a_tangent_without_all_its_points_keeps_the_correction_of_the_sample(made, folder):
    """Control: the halves matter here, so that equality above is not that of two forecasts without them."""
    recipe = replace(RECIPES["plain"], lr=0.02)
    assert "sample_error" in made.forecast(recipe)
    assert "sample_error" in tm.results.load_tangent(folder).forecast(recipe)
