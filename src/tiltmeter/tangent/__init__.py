"""Tangent: kernels of a module (stand-in)."""
