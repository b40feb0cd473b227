"""Tangent kernels: what gradient descent can learn quickly from where a network stands."""
