"""Forecast: the group curves of a network before it is trained.

`forecast`, `nowcast` and `best_weights` are the doors; `policy` says which method a budget buys, `methods` holds them
as values: `rehearsal` (the training itself, on copies), `twin` (narrow copies), `linear_head`, and `kernel` (the
linearised network, for what-ifs and reasons).
"""
