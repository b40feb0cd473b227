"""Networks: small architectures in plain PyTorch, for experiments. tiltmeter itself works with any module.

>>> from tiltmeter.networks.mlp import mlp
>>> mlp(784, (256,), 1)
Sequential(
  (0): Flatten(start_dim=1, end_dim=-1)
  (1): Linear(in_features=784, out_features=256, bias=True)
  (2): ReLU()
  (3): Linear(in_features=256, out_features=1, bias=True)
)
"""
