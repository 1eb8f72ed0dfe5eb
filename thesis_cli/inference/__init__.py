"""Exact and approximate inference in factor graphs: ln Z, MAP, marginals, samples.

Start with `exact.py` (ln Z and MAP by the cheapest exact algorithm), `choose.py` (a MAP solver for
a model) and `solver.py` (the interface of MAP solvers, which estimators use). Algorithms:
`enumeration.py`, `elimination.py` with `elimination_order.py`, `grid.py` (transfer along a grid),
`grid_strips.py` (wide binary grids), `graph_cut.py` and `qpbo.py` (binary pairwise models),
`trws.py` (on spins of `spins.py` where it can), `belief_propagation.py` and `trw.py` (message
passing), `model_counting.py` (Ganak, on a formula). `pairwise.py` brings a model
into pairwise form, `sampling.py` draws exact samples, `marginals.py` computes exact marginals,
`tempered.py` changes the temperature. Files named `*_kernels.py` hold compiled loops.
"""
