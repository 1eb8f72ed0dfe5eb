"""Minimum cuts: exact MAP of attractive binary pairwise models, and bounds for all binary ones.

`graph_cut.py` is the MAP solver, `maximum_flow.py` the cuts, `qpbo.py` roof duality. May import `grid`
(a cut of a grid goes through its sites in their order) and `message_passing`.
"""
