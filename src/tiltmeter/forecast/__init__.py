"""Forecast: the group curves of a network before it is trained, by its tangent kernel or by narrow twins."""
