import dataclasses
import json
import math

import pytest

from tiltmeter.record import Origin
from tiltmeter.version import __version__


def test_it_survives_json():
    origin = Origin("theory", problem={"a": [1, 2.5, None, "x"]}, settings={"lr": 0.1}, seeds=(1, 2))
    back = Origin.from_json(json.loads(json.dumps(origin.to_json())))
    assert back == origin
    assert hash(back) == hash(origin)
    assert back.version == __version__


def test_it_does_not_change_with_what_it_was_made_from():
    settings = {"lr": [0.1]}
    origin = Origin("theory", settings=settings)
    settings["lr"].append(9)
    assert origin.settings == {"lr": [0.1]}


def test_it_is_frozen():
    with pytest.raises(dataclasses.FrozenInstanceError):
        Origin("theory").source = "other"


def test_different_origins_differ():
    assert Origin("a") != Origin("b")
    assert Origin("a", seeds=(1,)) != Origin("a")
    assert Origin("a", settings={"lr": 1}) != Origin("a", settings={"lr": 2})


def test_a_missing_version_is_unknown():
    assert Origin.from_json({"source": "old"}).version == "unknown"


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ({"source": 3}, "`source` of an Origin should be a word. Found source = 3."),
        ({"source": ""}, "`source` of an Origin should be a word."),
        ({"source": "a", "problem": {1, 2}}, "`problem` of an Origin should be plain JSON"),
        ({"source": "a", "problem": math.nan}, "`problem` of an Origin should be plain JSON"),
        ({"source": "a", "settings": {"f": print}}, "`settings` of an Origin should be plain JSON"),
        ({"source": "a", "settings": [1]}, "`settings` of an Origin should be a mapping. Found list."),
        ({"source": "a", "seeds": 3}, "`seeds` of an Origin should be a sequence of integers. Found 3."),
        ({"source": "a", "seeds": (1.5,)}, "`seeds` of an Origin should be a sequence of integers"),
    ],
)
def test_what_could_not_be_stored_is_refused_at_once(arguments, sentence):
    with pytest.raises(TypeError) as caught:
        Origin(**arguments)
    assert sentence in str(caught.value)
