"""Saved previews: the same claims, causes and ladder; no inputs; refusals that say what is missing."""

import json

import numpy as np
import pytest

import tiltmeter as tm
from tiltmeter.results import load_preview
from two_group_tables import parts


@pytest.fixture(scope="module")
def view():
    made = tm.preview(*parts(count=1500, rate=1.5))
    made.causes(deals=0)
    made.ladder()
    return made


def test_a_saved_preview_says_the_same(view, tmp_path):
    later = load_preview(view.save(tmp_path / "view"))
    assert later.run == view.run
    assert str(later) == str(view)
    assert str(later.causes(deals=0)) == str(view.causes(deals=0))
    assert str(later.ladder()) == str(view.ladder())


def test_it_holds_no_inputs(view, tmp_path):
    folder = view.save(tmp_path / "view")
    columns = view.inputs.held_out.x.T.astype(np.float32)
    several = np.concatenate([columns, view.inputs.train.x.T.astype(np.float32)[:, :50]], axis=1)
    held = b"".join(path.read_bytes() for path in folder.rglob("*") if path.is_file())
    for column in several:
        for kind in (np.float32, np.float64):
            assert column[:2].astype(kind).tobytes() not in held
        assert repr(float(column[0]))[:9] not in held.decode("latin-1")


def test_what_needs_the_table_says_so(view, tmp_path):
    later = load_preview(view.save(tmp_path / "view"))
    for call in (lambda: later.what_if(stop=0.5), lambda: later.inputs, lambda: later.by_columns()):
        with pytest.raises(ValueError, match="saved preview does not hold"):
            call()
    with pytest.raises(ValueError, match="holds the causes that were asked for before"):
        later.causes("error", deals=3)


def test_a_folder_is_never_overwritten_and_a_strange_one_refused(view, tmp_path):
    folder = view.save(tmp_path / "view")
    with pytest.raises(FileExistsError, match="never overwritten"):
        view.save(folder)
    with pytest.raises(FileNotFoundError, match="holds no preview"):
        load_preview(tmp_path)
    (folder / "preview.json").write_text(json.dumps({"format": 9}))
    with pytest.raises(ValueError, match="format 9"):
        load_preview(folder)
    (folder / "preview.json").write_text("{")
    with pytest.raises(ValueError, match="no preview that can be read"):
        load_preview(folder)
