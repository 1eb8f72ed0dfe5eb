"""Perturb-and-MAP: partition functions, bounds and samples from maxima under noise (Thesis 2).

Start with `tricks/tricks.py` (noise on every configuration) and `low_rank/low_rank_bounds.py`
(noise on the states of variables). Further rooms: `a_star` (continuous targets), `racing` (subsampled
factors), `expanded` (copies of variables). `estimate.py` defines what all estimators return; `wish.py`
and `mesh_bethe.py` are baselines. Compiled loops are in files named `*_kernels.py`.
"""
