"""Prior knowledge: the dynamics of a student that has learnt something before, in closed form.

`crossing_bound` says how many crossings are possible from a start, `critical_length` how much irrelevant pre-training
removes them, `gap_parabola` which two numbers of the prior knowledge matter, and `one_after_the_other`, `forgetting`
and `better_order` what happens when groups are learnt in turn. All are functions of a `Mixture` and an `SGD`; each
result is a frozen value whose text is a sentence.
"""
