"""Tangent: how much a step on one point moves the score of another, K(x, x') = <grad f(x), grad f(x')>.

>>> import torch
>>> from tiltmeter.tangent.kernel import tangent_kernel
>>> line = torch.nn.Linear(2, 1)
>>> tangent_kernel(line, torch.tensor([[1.0, 0.0], [1.0, 2.0]]))
array([[2., 2.],
       [2., 6.]])

A layer type of its own rule is one function in `rules/`; any other parameter goes through per-point gradients.
"""
