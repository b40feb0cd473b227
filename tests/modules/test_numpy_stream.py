"""NumPy's global stream is put back exactly, also where nothing is written because nobody drew."""

# ruff: noqa: NPY002 (the global stream is what is tested)

from __future__ import annotations

import ctypes

import numpy as np
import pytest

from tiltmeter.modules.untouched import SIZE, numpy_state, put_numpy_back


def _nothing() -> None:
    pass


def _uniform() -> None:
    np.random.rand()


def _normal() -> None:
    np.random.normal()


def _two_normals() -> None:
    np.random.normal(size=2)


@pytest.fixture(autouse=True)
def _own_stream():
    before = np.random.get_state()
    yield
    np.random.set_state(before)


@pytest.mark.parametrize("before", [_nothing, _uniform, _normal, _two_normals])
@pytest.mark.parametrize("inside", [_nothing, _uniform, _normal, _two_normals])
@pytest.mark.parametrize("between", [_nothing, _uniform, _normal])
def test_numbers_go_on_as_if_nobody_had_drawn(before, inside, between):
    """A waiting normal number too, which can be given out without a change of the bits."""

    def numbers(held_out: bool) -> np.ndarray:
        np.random.seed(5)
        before()
        for _ in range(3):
            if held_out:
                state = numpy_state()
                inside()
                put_numpy_back(state)
            between()
        return np.concatenate([np.random.normal(size=3), np.random.rand(3)])

    np.testing.assert_array_equal(numbers(True), numbers(False))


def test_the_bytes_in_memory_are_the_state_that_numpy_tells():
    np.random.seed(3)
    np.random.rand(7)
    told = np.random.get_state(legacy=False)["state"]
    memory = np.frombuffer(ctypes.string_at(np.random.mtrand.get_bit_generator().ctypes.state_address, SIZE), np.uint32)
    np.testing.assert_array_equal(memory[:-1], told["key"])
    assert memory[-1] == told["pos"]


def test_another_bit_generator_is_put_back_too():
    own = np.random.mtrand.get_bit_generator()
    try:
        np.random.set_bit_generator(np.random.PCG64(1))
        state = numpy_state()
        assert state.memory is None
        first = np.random.rand(3)
        put_numpy_back(state)
        np.testing.assert_array_equal(np.random.rand(3), first)
    finally:
        np.random.set_bit_generator(own)
