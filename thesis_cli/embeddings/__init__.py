"""Distributions as weighted expansions in reproducing kernel Hilbert spaces.

Start at `expansion`: weighted points, their statistics and functions of them.

* `kernels`: inner products, norms and distances, exact and in linear time on the
  line; `closed_forms` has those of normal and uniform laws.
* `reductions`: fewer points, with the measured error.
* `statistics` and `simplex` serve private releases too.
"""
