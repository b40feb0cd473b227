"""Tangent: how much a gradient step on one point changes the score of another, K(x, x') = <grad f(x), grad f(x')>.

>>> import torch
>>> from tiltmeter.modules.tangent.kernel import tangent_kernel
>>> line = torch.nn.Linear(2, 1)
>>> tangent_kernel(line, torch.tensor([[1.0, 0.0], [1.0, 2.0]]))
array([[2., 2.],
       [2., 6.]])

Layer types with their own rule have one function each in `rules/`; all other parameters use gradients per point.
"""
