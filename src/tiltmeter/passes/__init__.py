"""Passes: run a module on points, in chunks, and leave it bit-identical.

>>> import torch
>>> from tiltmeter.passes.forward import scores
>>> [tuple(score.shape) for _, score in scores(torch.nn.Linear(3, 2), torch.zeros(5, 3), None, chunk=4)]
[(4, 2), (1, 2)]
"""
