"""Interventions of points: another loss for every point, or a term beside it."""
