"""Simulation: finite dimension, many seeds, the same observables as the theory."""
