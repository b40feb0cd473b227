"""Solvers: the outputs of a linearised network along its training, in closed form or step by step in few features."""
