"""Minimum cuts: exact MAP of attractive binary pairwise models, bounds for all binary ones, and moves
between labellings of more labels.

`graph_cut.py` is the MAP solver, `maximum_flow.py` the cuts, `qpbo.py` roof duality,
`expansion.py` alpha-expansion. May import `grid`
(a cut of a grid goes through its sites in their order) and `message_passing`.
"""
