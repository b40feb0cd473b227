"""Adapters: a `Probe` in the loops of other libraries, a few lines each.

Each takes a probe of the model that will be trained (skorch makes its own model, so there it takes a function that
makes the probe), asks it at every step and closes it at the end. Each imports its library only when it is called.
"""
