"""Variable elimination: exact sums, maxima, marginals, samples and entropies of any factor graph.

Start with `elimination.py`. `order.py` finds the order, `plan.py` lays the tables out before any
exists, `contraction.py` finds the steps that BLAS can do, `sums.py` carries the steps out, forward
and backward, `segments.py` and `slices.py` keep within the memory, `entropy.py` works in log space.
`small.py` does the same in NumPy, so that a small model compiles nothing. Imports no other room.
"""
