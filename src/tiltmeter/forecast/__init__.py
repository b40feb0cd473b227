"""Forecast: the group curves of a network before it is trained, from its tangent kernel on its own data."""
