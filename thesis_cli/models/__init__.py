"""Models: factor graphs, vectors of log-potentials, continuous targets, and their files.

Start with `factor_graph.py`: `FactorGraph`, with `evidence.py`, and `LogPotentials`, a plain vector.
`files.py` makes a model from a file of any format (`uai.py`, `fg.py`, `bif.py`, `cnf.py`, `vector.py`,
by means of `tokens.py`), from arrays, or from networks of pgmpy. `spin_glass.py` makes random grids,
with the random numbers of the C library (`glibc.py`). Continuous targets are in `targets.py` (built in)
and `target_objects.py` (objects and functions of the user), with `proposals.py`, and `quadrature.py`
for exact integrals. `factor_matrix.py` holds log-factors that races subsample. Files named
`*_kernels.py` are compiled.
"""
