"""Modules: run a PyTorch module and leave it as it was; small networks, gradients, kernels and Hessian products.

>>> import torch
>>> from tiltmeter.modules.forward import scores
>>> [tuple(score.shape) for _, score in scores(torch.nn.Linear(3, 2), torch.zeros(5, 3), None, chunk=4)]
[(4, 2), (1, 2)]
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tiltmeter.lazy_names import offer

if TYPE_CHECKING:
    from tiltmeter.modules.networks import deep_linear as deep_linear
    from tiltmeter.modules.networks import mlp as mlp
    from tiltmeter.modules.networks import two_layer as two_layer
    from tiltmeter.modules.tangent.hessian import hessian_times as hessian_times
    from tiltmeter.modules.tangent.hessian import top_eigenpairs as top_eigenpairs

__all__ = offer(__name__)  # noqa: PLE0605
