"""Code that several measures share: spectra, lines through inputs, layer features, searches. No measure is defined
here.
"""
