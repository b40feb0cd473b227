"""What explains the variance of a number over a grid of settings: factors, pairs of factors, and chance.

`design` codes the factors, `estimate` turns means of cells into variances without the part that is only noise,
`resample` gives intervals, `permute` the share that a factor without effect would get, `shares` puts them together.
"""
