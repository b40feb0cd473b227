"""Settings and the second route that the tests of tangent kernels share."""

import pytest
import torch


def _jacobian(model, x, read):
    """Gradients of every point and output, one backward pass each, (points x outputs, parameters)."""
    parameters = [p for p in model.parameters() if p.requires_grad]
    rows = []
    for i in range(len(x)):
        output = model(x[i : i + 1])
        for score in (output if read is None else read(output)).reshape(-1):
            found = torch.autograd.grad(score, parameters, retain_graph=True, allow_unused=True)
            rows.append(
                torch.cat(
                    [
                        torch.zeros(p.numel(), dtype=p.dtype) if g is None else g.to_dense().flatten()
                        for g, p in zip(found, parameters, strict=True)
                    ]
                )
            )
    return torch.stack(rows).double().numpy()


@pytest.fixture
def materialised():
    """K from Jacobians written out whole: the second route, which shares nothing with the first."""

    def kernel(model, x, other=None, read=None):
        modes = [m.training for m in model.modules()]
        model.eval()
        left = _jacobian(model, x, read)
        right = left if other is None else _jacobian(model, other, read)
        for module, mode in zip(model.modules(), modes, strict=True):
            module.training = mode
        return left @ right.T

    return kernel
