"""Factors: compact forms of the gradients of many points, sufficient to compute their inner products.

`Rows` stores explicit gradients, `Tokens` those of a weight used at several positions, `Lookup` those of an embedding.
"""
