"""Coordinates: the linearised network trained on a sample of its weights, by the user's own optimiser."""
