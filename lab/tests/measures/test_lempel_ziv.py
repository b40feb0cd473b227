"""Lempel-Ziv sizes against known values and a second parser."""

import numpy as np
import pytest

from tiltmeter_lab.measures.network_complexity import lempel_ziv


def parsed(text):
    """The phrases themselves, as words."""
    words, word = set(), ""
    for symbol in text:
        word += symbol
        if word not in words:
            words.add(word)
            word = ""
    return words


def test_known_sizes():
    random = np.random.default_rng(0).integers(0, 2, 1024).tolist()
    assert lempel_ziv("1001111011000010") == 8
    assert lempel_ziv("01" * 8) == 7
    assert lempel_ziv([0] * 1024) == 44
    assert lempel_ziv(random) == 177


@pytest.mark.parametrize("seed", range(5))
def test_size_is_the_number_of_phrases(seed):
    rng = np.random.default_rng(seed)
    text = "".join(rng.choice(list("abc"), 300))
    assert lempel_ziv(text) == len(parsed(text))


@pytest.mark.parametrize("count", [1, 5, 1000])
def test_a_constant_has_phrases_of_growing_length(count):
    phrases = lempel_ziv("0" * count)
    assert phrases * (phrases + 1) // 2 <= count < (phrases + 1) * (phrases + 2) // 2


def test_nothing_has_no_phrases():
    assert lempel_ziv("") == 0
