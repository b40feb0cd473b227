"""Interventions of data: other training data, possibly after a first short training."""
