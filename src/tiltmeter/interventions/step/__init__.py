"""Interventions of steps: another step of the optimiser."""
