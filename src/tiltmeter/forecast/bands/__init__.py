"""Bands of forecasts: how far a training may be from what was forecast, calibrated on trainings of other tasks."""
