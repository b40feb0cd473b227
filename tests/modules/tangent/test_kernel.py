"""Tangent kernels equal Jacobians written out, for every kind of layer and every way of using one."""

import warnings

import numpy as np
import pytest
import torch
from torch import nn
from torch.func import functional_call, jacrev, vmap
from torch.nn import functional as F

from networks import resnet18, small_cnn, transformer
from tiltmeter.modules.networks import mlp, two_layer
from tiltmeter.modules.tangent import factors as lookup
from tiltmeter.modules.tangent.kernel import initial_scores, kernels, tangent_kernel
from tiltmeter.modules.tangent.plan import make_plan
from tiltmeter.modules.untouched import untouched


class Twice(nn.Module):
    """One layer, applied twice."""

    def __init__(self):
        super().__init__()
        self.shared, self.last = nn.Linear(6, 6), nn.Linear(6, 1)

    def forward(self, x):
        return self.last(torch.tanh(self.shared(torch.tanh(self.shared(x)))))


class Tied(nn.Module):
    """The table that reads tokens also gives the scores, as in language models."""

    def __init__(self, functional):
        super().__init__()
        self.embed, self.functional = nn.Embedding(7, 5), functional
        self.decode = nn.Identity() if functional else nn.Linear(5, 7)
        if not functional:
            self.decode.weight = self.embed.weight

    def forward(self, tokens):
        hidden = torch.tanh(self.embed(tokens).mean(1))
        return F.linear(hidden, self.embed.weight) if self.functional else self.decode(hidden)


class Bag(nn.Module):
    def __init__(self, mode, padding=None):
        super().__init__()
        self.bag, self.head = nn.EmbeddingBag(9, 5, mode=mode, padding_idx=padding), nn.Linear(5, 2)

    def forward(self, tokens):
        return self.head(torch.tanh(self.bag(tokens)))


class Attention(nn.Module):
    """nn.MultiheadAttention in its several ways."""

    def __init__(self, cross=False, mask=False, padded=False, batch_first=True, weights=False, bias=True):
        super().__init__()
        self.attend = nn.MultiheadAttention(8, 2, batch_first=batch_first, bias=bias)
        self.cross, self.mask, self.padded, self.first, self.weights = cross, mask, padded, batch_first, weights
        self.head = nn.Linear(8, 1)

    def forward(self, x):
        x = x if self.first else x.transpose(0, 1)
        there = 2 * x if self.cross else x
        out, weights = self.attend(
            x,
            there,
            there,
            attn_mask=torch.ones(3, 3, dtype=torch.bool).triu(1) if self.mask else None,
            key_padding_mask=torch.tensor([[False, False, True]]).expand(len(x), 3) if self.padded else None,
        )
        out = out if self.first else out.transpose(0, 1)
        return self.head(out.sum(1)) + (weights[:, 0, :1] if self.weights else 0)


class Routed(nn.Module):
    """Positive points through one layer, the others through another."""

    def __init__(self):
        super().__init__()
        self.one, self.two = nn.Linear(4, 1), nn.Linear(4, 1)

    def forward(self, x):
        score = x.new_zeros(len(x), 1)
        up = x[:, 0] > 0
        return score.masked_scatter(up[:, None], self.one(x[up])).masked_scatter(~up[:, None], self.two(x[~up]))


class InRow(nn.Module):
    """Places of all points in one row, point after point or place after place, as some models lay them out."""

    def __init__(self, points_first):
        super().__init__()
        self.layer, self.norm, self.head = nn.Linear(4, 5), nn.LayerNorm(5), nn.Linear(5, 2)
        self.points_first = points_first

    def forward(self, x):
        n, places = x.shape[:2]
        row = (x if self.points_first else x.transpose(0, 1)).reshape(n * places, -1)
        row = torch.tanh(self.norm(self.layer(row)))
        return self.head(row.view(n, places, 5).sum(1) if self.points_first else row.view(places, n, 5).sum(0))


class SequenceFirst(nn.Module):
    """Places before points, in every layer."""

    def __init__(self):
        super().__init__()
        self.layer, self.head = nn.Linear(4, 5), nn.Linear(5, 1)

    def forward(self, x):
        return self.head(torch.tanh(self.layer(x.transpose(0, 1))).sum(0))


class Branching(nn.Module):
    """Evaluations at a value, which vectorised gradients cannot."""

    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(4))

    def forward(self, x):
        return torch.stack([(p @ self.weight) ** 2 if p[0] > 0 else p @ self.weight for p in x])


def normed_cnn(norm):
    return nn.Sequential(
        nn.Conv2d(2, 6, 3, padding=1),
        norm,
        nn.ReLU(inplace=True),
        nn.Conv2d(6, 4, 3, stride=2),
        nn.Flatten(),
        nn.Linear(36, 2),
    )


def moved(norm):
    """A normalisation with statistics of its own, as after some training."""
    for buffer in norm.buffers():
        if buffer.is_floating_point():
            buffer.uniform_(0.5, 1.5)
    for parameter in norm.parameters():
        nn.init.uniform_(parameter, 0.5, 1.5)
    return norm


def conv(layer, side=8):
    flat = layer(torch.zeros(1, *((4, side) if isinstance(layer, nn.Conv1d) else (4, side, side)))).numel()
    return nn.Sequential(layer, nn.Tanh(), nn.Flatten(), nn.Linear(flat, 1))


def frozen(model, *names):
    for name in names:
        model.get_parameter(name).requires_grad_(False)
    return model


def floats(*shape):
    return lambda: torch.randn(7, *shape)


def tokens(most, length):
    return lambda: torch.randint(0, most, (7, length))


# name -> (model, points, how many parameters are written out by the generic route)
CASES = {
    "linear": (lambda: nn.Linear(5, 1), floats(5), 0),
    "mlp": (lambda: mlp(5, (8, 6), 1, "tanh"), floats(5), 0),
    "mlp of three outputs": (lambda: mlp(5, (8,), 3), floats(5), 0),
    "no bias": (lambda: mlp(5, (8,), 2, bias=False), floats(5), 0),
    "frozen weight": (lambda: frozen(mlp(5, (8,), 2), "1.weight", "3.bias"), floats(5), 0),
    "cnn": (lambda: small_cnn(2, 2, 3), floats(2, 10, 10), 0),
    "batch norm": (lambda: normed_cnn(moved(nn.BatchNorm2d(6))), floats(2, 8, 8), 0),
    "group norm": (lambda: normed_cnn(moved(nn.GroupNorm(3, 6))), floats(2, 8, 8), 0),
    "instance norm": (lambda: normed_cnn(moved(nn.InstanceNorm2d(6, affine=True))), floats(2, 8, 8), 0),
    "layer norm": (lambda: normed_cnn(moved(nn.LayerNorm([8, 8]))), floats(2, 8, 8), 0),
    "layer norm without bias": (lambda: nn.Sequential(nn.LayerNorm(5, bias=False), nn.Linear(5, 1)), floats(5), 0),
    "rms norm": (lambda: nn.Sequential(moved(nn.RMSNorm(5)), nn.Flatten(), nn.Linear(10, 2)), floats(2, 5), 0),
    "batch norm of a vector": (
        lambda: nn.Sequential(nn.Linear(5, 4), moved(nn.BatchNorm1d(4)), nn.Linear(4, 2)),
        floats(5),
        0,
    ),
    "conv1d": (lambda: conv(nn.Conv1d(4, 6, 3, stride=2, padding=2, dilation=2)), floats(4, 8), 0),
    "dilated": (lambda: conv(nn.Conv2d(4, 3, (3, 2), stride=(1, 2), padding=(2, 0), dilation=2)), floats(4, 8, 8), 0),
    "grouped": (lambda: conv(nn.Conv2d(4, 6, 3, groups=2)), floats(4, 8, 8), 0),
    "depthwise, frozen bias": (lambda: frozen(conv(nn.Conv2d(4, 4, 3, groups=4)), "0.bias"), floats(4, 8, 8), 0),
    "same padding": (lambda: conv(nn.Conv2d(4, 3, 4, padding="same")), floats(4, 8, 8), 0),
    "circular padding": (lambda: conv(nn.Conv1d(4, 3, 3, padding=1, padding_mode="circular")), floats(4, 8), 0),
    "conv3d": (lambda: nn.Sequential(nn.Conv3d(2, 3, 2), nn.Flatten(), nn.Linear(24, 1)), floats(2, 3, 3, 3), 2),
    "resnet": (lambda: resnet18(2, 1, 2), floats(2, 8, 8), 0),
    "transformer of vectors": (lambda: transformer(4, 3, outputs=2, width=8, heads=2), floats(4, 3), 9),
    "transformer of tokens": (lambda: transformer(4, vocabulary=6, width=8, heads=2, layers=1), tokens(6, 4), 5),
    "attention": (Attention, floats(3, 8), 4),
    "attention across": (lambda: Attention(cross=True), floats(3, 8), 4),
    "attention with masks": (lambda: Attention(mask=True, padded=True), floats(3, 8), 4),
    "attention without bias": (lambda: Attention(bias=False), floats(3, 8), 2),
    "attention, last projection frozen": (
        lambda: frozen(Attention(), "attend.out_proj.weight", "attend.out_proj.bias"),
        floats(3, 8),
        2,
    ),
    "attention, sequence first": (lambda: Attention(batch_first=False), floats(3, 8), 4),
    "attention whose weights are read": (lambda: Attention(weights=True), floats(3, 8), 4),
    "embedding": (
        lambda: nn.Sequential(nn.Embedding(9, 5, padding_idx=0), nn.Flatten(), nn.Tanh(), nn.Linear(20, 2)),
        tokens(9, 4),
        0,
    ),
    "sparse embedding": (
        lambda: nn.Sequential(nn.Embedding(9, 5, sparse=True), nn.Flatten(), nn.Linear(20, 1)),
        tokens(9, 4),
        0,
    ),
    "bag of sums": (lambda: Bag("sum"), tokens(9, 4), 0),
    "bag of means": (lambda: Bag("mean", padding=2), tokens(9, 4), 0),
    "bag of maxima": (lambda: Bag("max"), tokens(9, 4), 1),
    "layer used twice": (Twice, floats(6), 2),
    "tied modules": (lambda: Tied(False), tokens(7, 3), 2),
    "tied by a function": (lambda: Tied(True), tokens(7, 3), 1),
    "bare parameters": (lambda: two_layer(5, 6, 1.0), floats(5), 2),
    "weight norm": (lambda: nn.utils.parametrizations.weight_norm(nn.Linear(5, 2)), floats(5), 3),
    "routed points": (Routed, floats(4), 4),
    "places in a row": (lambda: InRow(True), floats(3, 4), 0),
    "places in a row, points inside": (lambda: InRow(False), floats(3, 4), 4),
    "as many places as points are tried": (SequenceFirst, floats(3, 4), 2),
    "as many places as points": (SequenceFirst, floats(7, 4), 2),
    "branching": (Branching, floats(4), 1),
    "linear over places, few and wide": (
        lambda: nn.Sequential(nn.Linear(30, 40), nn.Tanh(), nn.Flatten(), nn.Linear(80, 1)),
        floats(2, 30),
        0,
    ),
    "linear over places, many and narrow": (
        lambda: nn.Sequential(nn.Linear(2, 3), nn.Tanh(), nn.Flatten(), nn.Linear(60, 1)),
        floats(20, 2),
        0,
    ),
}


def case(name, dtype):
    build, points, written = CASES[name]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = build().to(dtype)
    x = points()
    return model, x.to(dtype) if x.is_floating_point() else x, written


@pytest.mark.parametrize("name", CASES)
def test_kernels_in_double_precision_equal_written_jacobians(name, materialised):
    model, x, _ = case(name, torch.float64)
    expected = materialised(model, x)
    np.testing.assert_allclose(tangent_kernel(model, x, chunk=3), expected, atol=1e-12 * abs(expected).max())
    cross = materialised(model, x[:5], x[4:])
    np.testing.assert_allclose(tangent_kernel(model, x[:5], x[4:], chunk=3), cross, atol=1e-12 * abs(expected).max())


@pytest.mark.parametrize("name", CASES)
def test_kernels_in_single_precision_are_good_to_1e_5(name, materialised):
    model, x, _ = case(name, torch.float32)
    expected = materialised(model, x)
    np.testing.assert_allclose(tangent_kernel(model, x), expected, atol=1e-5 * abs(expected).max())


@pytest.mark.parametrize("name", CASES)
def test_only_parameters_without_a_rule_are_written_out(name):
    model, x, written = case(name, torch.float64)
    with untouched(model):
        assert len(make_plan(model, x, None, False, []).rest) in (
            (written,) if name != "routed points" else (0, written)
        )


@pytest.mark.parametrize(
    "name", ["mlp of three outputs", "transformer of vectors", "bag of means", "tied modules", "cnn", "grouped"]
)
def test_trace_is_the_mean_over_equal_outputs(name):
    model, x, _ = case(name, torch.float64)
    full = tangent_kernel(model, x)
    outputs = len(full) // len(x)
    expected = np.einsum("icjc->ij", full.reshape(len(x), outputs, len(x), outputs)) / outputs
    np.testing.assert_allclose(tangent_kernel(model, x, outputs="trace", chunk=4), expected, atol=1e-12 * full.max())


@pytest.mark.parametrize("name", ["embedding", "bag of means", "transformer of tokens"])
def test_large_tables_without_their_zeros_are_the_same(name, monkeypatch):
    model, x, _ = case(name, torch.float64)
    expected = tangent_kernel(model, x)
    monkeypatch.setattr(lookup, "SPARSE", 0)
    np.testing.assert_allclose(tangent_kernel(model, x, chunk=3), expected, atol=1e-12 * abs(expected).max())


def test_one_point_against_as_many_as_places(materialised):
    """On one point alone nothing shows that the layer has places first."""
    model, x, _ = case("as many places as points", torch.float64)
    np.testing.assert_allclose(tangent_kernel(model, x[:1], x), materialised(model, x[:1], x), atol=1e-12)


def test_kernels_equal_jacrev():
    model, x, _ = case("mlp of three outputs", torch.float64)
    jacobians = vmap(jacrev(lambda p, point: functional_call(model, p, (point[None],))[0]), (None, 0))(
        dict(model.named_parameters()), x
    )
    rows = torch.cat([j.flatten(2) for j in jacobians.values()], 2).flatten(0, 1).detach()
    np.testing.assert_allclose(tangent_kernel(model, x), (rows @ rows.T).numpy(), atol=1e-12)


@pytest.mark.parametrize("name", ["mlp of three outputs", "batch norm", "transformer of tokens"])
def test_kernels_in_one_go_equal_kernels_apart(name):
    model, x, _ = case(name, torch.float64)
    train, held_out = kernels(model, x[:4], x[4:], chunk=2)
    scale = 1e-12 * abs(train).max()
    np.testing.assert_allclose(train, tangent_kernel(model, x[:4]), atol=scale)
    np.testing.assert_allclose(held_out, tangent_kernel(model, x[4:], x[:4]), atol=scale)


def test_a_kernel_is_exactly_symmetric_and_has_no_negative_eigenvalues():
    model, x, _ = case("cnn", torch.float32)
    found = tangent_kernel(model, x, chunk=2)
    assert np.array_equal(found, found.T)
    assert np.linalg.eigvalsh(found).min() > -1e-6 * found.max()


def test_scores_are_chosen_by_read(materialised):
    class Pair(nn.Linear):
        def forward(self, x):
            return {"scores": super().forward(x), "other": x}

    model, x = Pair(3, 2).double(), torch.randn(5, 3, dtype=torch.float64)
    found = tangent_kernel(model, x, read=lambda output: output["scores"])
    np.testing.assert_allclose(found, materialised(model, x, read=lambda output: output["scores"]), atol=1e-12)


def test_one_step_of_gradient_descent_moves_scores_by_the_kernel():
    """f(x) changes by -lr/n K r to first order: what the kernel is for, by training."""
    model = mlp(5, (32,), 1, "tanh").double()
    x, y, lr = torch.randn(9, 5, dtype=torch.float64), torch.randn(9, 1, dtype=torch.float64), 1e-6
    kernel, before = tangent_kernel(model, x), initial_scores(model, x)
    loss = 0.5 * ((model(x) - y) ** 2).mean()
    loss.backward()
    with torch.no_grad():
        for p in model.parameters():
            p -= lr * p.grad
    step = (initial_scores(model, x) - before) / lr
    np.testing.assert_allclose(step, -kernel @ (before - y.numpy()) / 9, rtol=1e-4)


def test_single_precision_on_request_halves_the_kernel():
    model, x, _ = case("mlp", torch.float32)
    found = tangent_kernel(model, x, dtype=np.float32)
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, tangent_kernel(model, x), rtol=1e-5)


def test_half_precision_models_are_multiplied_in_single_precision():
    model = nn.Linear(3, 1).bfloat16()
    x = torch.tensor([[1.0, 2.0, 3.0]])
    np.testing.assert_allclose(tangent_kernel(model, x), [[15.0]])


def test_initial_scores_are_those_of_the_model():
    model = mlp(5, (8,), 3).double().train()
    x = torch.randn(7, 5, dtype=torch.float64)
    np.testing.assert_allclose(initial_scores(model, x, chunk=2), model(x).detach().numpy(), rtol=1e-6)
    assert initial_scores(nn.Linear(5, 1).double(), x).shape == (7, 1)
