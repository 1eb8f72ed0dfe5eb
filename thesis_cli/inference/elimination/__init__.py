"""Variable elimination: exact sums, maxima, marginals, samples and entropies of any factor graph.

Start with `elimination.py`. `order.py` finds the order, `plan.py` lays the tables out before any
exists, `sums.py` carries the steps out, forward and backward, `slices.py` keeps within the memory,
`entropy.py` works in log space. `contraction.py` multiplies two tables at a time along a tree
(`tree.py`), which `planners.py` chooses, with BLAS or `pair_kernels.py`.
`small.py` does the same in NumPy, so that a small model compiles nothing. Imports no other room.
"""
