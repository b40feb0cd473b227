"""Theory that the experiments need beside that of tiltmeter: prior knowledge, groups in turn, random features.

`critical_length` says how much irrelevant pre-training removes the crossings of two centred groups, and `gap_parabola`
which two numbers of the prior knowledge matter; `one_after_the_other`, `forgetting` and `better_order` what happens
when groups are learnt in turn; `random_features` what over-parametrisation does to each group. All are functions of a
`Mixture` (and an `SGD`); each refuses what its formula does not cover and names what does.
"""
