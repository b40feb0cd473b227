"""Tangent: derivatives of a module in its parameters, without ever holding a matrix as large as they are many."""
