"""Marginal MAP: the maximum over some variables of the sum over all the others.

Start with `marginal_map.py`. `elimination.py` divides the model, eliminates sums before maxima, and
sums for given maximising states; `passes.py` bounds the answer by mini-buckets where tables are too large,
`search.py` is the branch and bound on these bounds.
May import `mini_bucket`, `zeros` and `elimination`.
"""
