"""Renyi entropies and other sums over a distribution, by perturb-and-MAP (Thesis chapter 3).

`estimators` solves MAP problems for many orders under the same noise, and turns these maxima into
entropies with confidence intervals; `quantities` turns them into sums of powers such as the
collision probability. `exact` computes the same entropies exactly, `approximate` with Bethe or
tree-reweighted values of ln Z, and `low_rank` bounds them for models too large to enumerate.
`integrals` estimates ln E_p[f]. Compiled loops are in `staircase_kernels` and `pair_kernels`.

Start with `estimators.renyi_entropy`.
"""
