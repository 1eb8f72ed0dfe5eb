"""Exact answers for models with many zeros, such as constraints and deterministic networks.

`reduction.py` makes a smaller model with the same answers (`leaves.py` sums out leaves);
`sparse_elimination.py` eliminates on the supports of tables (`sparse_tables.py`), and goes back for
marginals and maxima. May import `elimination`, for its orders.
"""
