"""Marginal MAP: the maximum over some variables of the sum over all the others.

Start with `marginal_map.py`. `elimination.py` divides the model, eliminates sums before maxima, and
sums for given maximising states; `search.py` is the branch and bound where tables are too large, on bounds
by mini-buckets.
May import `mini_bucket`, `zeros` and `elimination`.
"""
