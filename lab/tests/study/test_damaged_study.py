"""A damaged or crafted study.json: read as it is, or refused in one sentence; never a traceback from inside."""

import json
import random
from concurrent.futures import ThreadPoolExecutor

import cells_for_tests as cells
import pytest

from tiltmeter.record.directory.atomic_files import sealed_file
from tiltmeter_lab.cli.study import find_study
from tiltmeter_lab.study import Study
from tiltmeter_lab.study.folder import Failure
from tiltmeter_lab.study.page_answers import study_rows

ODD = [None, [], {}, -1, 1e308, "x", True, [[1]], {"a": 1}, 10**30, "half \ud800", "\0"]


def mutated(whole, rng):
    """A flipped bit, a torn end or many brackets; or valid JSON with one value gone or replaced."""
    if rng.random() < 0.4:
        data, place = bytearray(whole), rng.randrange(len(whole))
        how = rng.randrange(3)
        if how == 0:
            data[place] ^= 1 << rng.randrange(8)
        elif how == 1:
            del data[place:]
        else:
            data[place:place] = b"[" * rng.choice([1, 5, 50_000])
        return bytes(data)
    table = node = {key: value for key, value in json.loads(whole).items() if key != "crc"}
    while True:
        key = rng.choice(list(node) if isinstance(node, dict) else range(len(node)))
        if isinstance(node[key], (dict, list)) and node[key] and rng.random() < 0.6:
            node = node[key]
            continue
        if rng.random() < 0.3:
            del node[key]
        else:
            node[key] = rng.choice(ODD)
        return sealed_file(json.dumps(table).encode())


@pytest.mark.parametrize("count", [150, pytest.param(3000, marks=pytest.mark.slow)])
def test_a_mutated_study_is_read_or_refused_in_a_sentence(tmp_path, count):
    root = tmp_path / "mine"
    study = Study(cells.numbers, {"a": [0.25, 0.5]}, seeds=2, to=root)
    with ThreadPoolExecutor(1) as pool:
        study.run(pool, progress=False)
    whole, rng, refusals = (root / "study.json").read_bytes(), random.Random(count), []
    for _ in range(count):
        (root / "study.json").write_bytes(mutated(whole, rng))
        study_rows(str(tmp_path))  # the page never fails for one study
        try:
            str(find_study(root).status())
        except ValueError as error:
            refusals.append(str(error))
    assert len(refusals) > count / 3
    assert not [sentence for sentence in refusals if "\n" in sentence or "study.json" not in sentence]


def test_a_failure_that_is_nested_deeply_is_refused_in_a_sentence(tmp_path):
    (tmp_path / "a.json").write_text("[" * 100_000)
    with pytest.raises(ValueError, match=r"should say why a cell failed\. Found something else: remove it\."):
        Failure.read(tmp_path / "a.json")
