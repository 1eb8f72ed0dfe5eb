"""Perturb-and-MAP: partition functions, bounds and samples from maxima under noise (Thesis 2).

Full-rank noise, on every configuration: `full_rank` solves the MAP problems, `estimators` turns
their values into estimates by one of the `tricks` (`trick_rows` lists them by name), `posterior`
and `mse` hold what is known about these estimates. Low-rank noise, on the states of variables:
`low_rank` solves the MAP problems, `low_rank_bounds` makes bounds of them; `subsets`, `clamping`
and `max_marginals` give other bounds, `concentration` gives intervals, and `sequential` draws
samples. Continuous targets: `a_star` on the tree of `boxes`. Subsampled factors: `racing`.
`estimate` defines what all estimators return. Compiled loops are in files named `*_kernels.py`.

Start with `estimators.estimate` and `low_rank_bounds.upper_bound`.
"""
