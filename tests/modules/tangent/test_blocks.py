"""Kernels do not depend on how they are cut into blocks, hold no more than promised, and leave the model alone."""

from queue import SimpleQueue

import numpy as np
import pytest
import torch
from torch import nn

from networks import small_cnn, transformer
from tiltmeter.modules.networks import mlp
from tiltmeter.modules.tangent import kernel_blocks as blocks
from tiltmeter.modules.tangent.kernel import check_memory, kernel_memory, kernels, tangent_kernel
from tiltmeter.modules.tangent.plan import Plan


@pytest.mark.parametrize("outputs", ["full", "trace"])
@pytest.mark.parametrize("chunk", [1, 4, 11, 100])
def test_the_chunk_does_not_matter(chunk, outputs):
    model = small_cnn(2, 2, 3, normalise=True).double()
    x = torch.randn(11, 2, 8, 8, dtype=torch.float64)
    found = kernels(model, x[:8], x[6:], chunk=chunk, outputs=outputs)
    for one, other in zip(found, kernels(model, x[:8], x[6:], outputs=outputs), strict=True):
        np.testing.assert_allclose(one, other, atol=1e-12 * abs(other).max())


@pytest.fixture
def passes(monkeypatch):
    """How many points went through the model, the trial aside, and the gradients that were held at most."""
    seen, original = [], Plan.factors

    def factors(self, x, start=0):
        if self.held:
            seen.append(len(x))
        return original(self, x, start)

    monkeypatch.setattr(Plan, "factors", factors)
    return seen


def test_gradients_are_held_while_they_are_smaller_than_the_kernel(passes, monkeypatch):
    monkeypatch.setattr(blocks, "chunk_bytes", lambda: 10_000)
    model, x = mlp(3, (4,), 1), torch.randn(200, 3)
    tangent_kernel(model, x, chunk=20)
    assert sum(passes) == 200


@pytest.mark.parametrize(("room", "size"), [(2**28, 8), (1, 1)])
def test_all_work_is_told_once(monkeypatch, room, size):
    monkeypatch.setattr(blocks, "chunk_bytes", lambda: room)
    told = []
    kernels(nn.Linear(300, 1), torch.randn(40, 300), torch.randn(15, 300), chunk=8, tell=told.append)
    assert told == sorted(told)
    assert told[0] == 40 * size  # the first gradients, before any pair
    assert told[-1] == 2 * 40 * 55


def test_without_room_gradients_come_again_and_the_kernel_is_the_same(passes, monkeypatch):
    model, x = mlp(50, (40,), 1).double(), torch.randn(12, 50, dtype=torch.float64)
    expected = kernels(model, x[:9], x[9:])
    assert sum(passes) == 12
    passes.clear()
    monkeypatch.setattr(blocks, "chunk_bytes", lambda: 4000)
    found = kernels(model, x[:9], x[9:])
    # A point's factors take (51 + 40 + 41 + 1) numbers of 8 bytes, so three fit, one to a block.
    assert set(passes) == {1}
    assert sum(passes) == 3 * 3 + (6 + 3 + 0) + 3 * 3
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(one, other, atol=1e-12 * abs(other).max())


class Expert(nn.Module):
    """The second layer is only used on points above two, of which there are none among the first."""

    def __init__(self):
        super().__init__()
        self.usual, self.rare = nn.Linear(2, 1), nn.Linear(2, 1)

    def forward(self, x):
        high = x[:, :1] > 2
        found = self.usual(x)
        return torch.where(high, self.rare(x[high[:, 0]]).mean(), found) if high.any() else found


def test_a_layer_that_strays_later_is_written_out(materialised):
    model = Expert().double()
    x = torch.linspace(-1, 1, 20, dtype=torch.float64).reshape(10, 2)
    x[3] = 5.0
    expected = materialised(model, x)
    np.testing.assert_allclose(tangent_kernel(model, x, chunk=5), expected, atol=1e-12 * abs(expected).max())


HOOKED = SimpleQueue()  # lists, closures and global variables are put back as they were


@pytest.mark.parametrize("mode", [True, False])
def test_the_model_is_left_as_it_was(mode):
    model = nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.Dropout(0.5), nn.Linear(8, 2)).train(mode)
    model[3].weight.grad = torch.ones_like(model[3].weight)
    model[0].register_forward_hook(lambda *_: HOOKED.put(1))
    before = {name: value.clone() for name, value in model.state_dict().items()}
    torch.manual_seed(5)
    expected = torch.rand(3)
    torch.manual_seed(5)
    x = torch.randn(6, 4, generator=torch.Generator().manual_seed(1))
    tangent_kernel(model, x)
    assert torch.equal(torch.rand(3), expected)
    assert all(torch.equal(value, before[name]) for name, value in model.state_dict().items())
    assert [m.training for m in model.modules()] == [mode] * 5
    assert torch.equal(model[3].weight.grad, torch.ones_like(model[3].weight))
    assert model[0].weight.grad is None
    assert [len(m._forward_hooks) for m in model] == [1, 0, 0, 0]
    assert all(p.requires_grad for p in model.parameters())
    assert HOOKED.get(timeout=0)


def test_hooks_are_removed_and_attention_is_fast_again_after_an_error():
    model = nn.Sequential(nn.Linear(2, 1))
    with pytest.raises(ValueError, match="finite"):
        tangent_kernel(model, torch.full((3, 2), torch.nan))
    assert not model[0]._forward_hooks
    assert torch.backends.mha.get_fastpath_enabled()


def test_an_interrupt_leaves_the_model_as_it_was():
    def interrupt(done):
        raise KeyboardInterrupt

    model = transformer(4, vocabulary=6, width=8, heads=2, layers=1)
    x = torch.randint(0, 6, (12, 4))
    before, stream = [value.clone() for value in model.state_dict().values()], torch.get_rng_state()
    with pytest.raises(KeyboardInterrupt):
        kernels(model, x[:9], x[9:], tell=interrupt)
    assert all(module.training and not module._forward_hooks for module in model.modules())
    assert all(torch.equal(*pair) for pair in zip(model.state_dict().values(), before, strict=True))
    assert all(p.requires_grad and p.grad is None for p in model.parameters())
    assert torch.equal(torch.get_rng_state(), stream)
    assert torch.backends.mha.get_fastpath_enabled()


def test_a_changed_copy_of_the_output_does_not_mislead(materialised):
    """Activations in place overwrite what the layer returned."""
    model = nn.Sequential(nn.Linear(4, 6), nn.ReLU(inplace=True), nn.Linear(6, 1), nn.Sigmoid()).double()
    x = torch.randn(5, 4, dtype=torch.float64)
    np.testing.assert_allclose(tangent_kernel(model, x), materialised(model, x), atol=1e-12)


def test_the_evaluation_of_a_transformer_with_frozen_layers_has_gradients(materialised):
    """Without the switch torch would take a fused path, on which no layer can be watched."""
    model = transformer(3, 2, width=8, heads=2, layers=1).double()
    model.encoder.requires_grad_(False)
    x = torch.randn(4, 3, 2, dtype=torch.float64)
    expected = materialised(model, x)
    np.testing.assert_allclose(tangent_kernel(model, x), expected, atol=1e-12 * abs(expected).max())


def test_memory_is_the_kernel_twice_and_a_chunk():
    chunk = kernel_memory(0, 0)
    assert kernel_memory(1000, 1000) - chunk == 2 * 8 * 10**6
    assert kernel_memory(1000, 500, 10) - chunk == 2 * 8 * 500_000 * 100
    assert kernel_memory(1000, 500, 10, outputs="trace", dtype=np.float32) - chunk == 2 * 4 * 500_000


@pytest.mark.parametrize("held_out", [0, 10_000, 200_000])
@pytest.mark.parametrize("points", [50_000, 150_000])
def test_a_sample_that_would_fit_fits(points, held_out):
    """Points to look at do not become fewer with the sample, and the answer does not depend on what was asked first."""
    free = 8 * 2**30
    with pytest.raises(ValueError, match=r"`sample` should be at most \d+") as error:
        check_memory(points, points + held_out, available=free, fixed=held_out)
    fits = int(str(error.value).split("at most ")[1].split()[0])
    check_memory(fits, fits + held_out, available=free, fixed=held_out)
    with pytest.raises(ValueError, match=f"`sample` should be at most {fits} "):
        check_memory(fits + 200, fits + 200 + held_out, available=free, fixed=held_out)
