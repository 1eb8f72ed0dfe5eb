"""Inference in factor graphs, exact and approximate: ln Z, MAP, marginals, samples.

Start with `exact.py` (ln Z by the cheapest exact algorithm), `best_configuration.py` (MAP) and
`solver.py`, the interface of MAP solvers, of which `choose.py` picks one. Each room is a family of
algorithms and opens on what it does: `elimination`, `zeros` (tables with many zeros), `grid`,
`graph_cut`, `message_passing`, `mini_bucket` (bounds), `variational` (bounds and approximations),
`sampling`, `parity` (maxima under parity constraints), `external` (toulbar2 and Ganak). The files
beside them choose among rooms or serve all of them. `make lint` holds which room may import which.
Files named `*_kernels.py` hold compiled loops.
"""
