"""Kernel: the network linearised at its initial weights; `network_kernels` has the kernels, `solvers` the training."""
