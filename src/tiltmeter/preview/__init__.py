"""Preview: the theory reads your data.

`preview` solves one linear theory of the user's table: `flow` is its training, `features` what it sees, `curves` the
answer as a `Trajectory` over progress, `doubt` says how far a training may differ and when the preview does not hold.
`populations` and `causes` say which property of the data makes the gap, `ladder` in which order directions are learned,
`confirm` trains the network in those populations.
"""
