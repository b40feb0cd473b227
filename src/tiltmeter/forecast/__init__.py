"""Forecast: the group curves of a network before it is trained.

`forecast`, `nowcast` and `best_weights` are the doors; `choice` says which route is taken. One room for every route:
`kernel` (the linearised network, solved), `coordinates` (the linearised network, trained through some of its weights)
and `twin` (a narrow copy, trained).
"""
