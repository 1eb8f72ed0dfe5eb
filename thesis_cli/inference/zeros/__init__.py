"""Exact answers for models with many zeros, such as constraints and deterministic networks.

`reduction.py` makes a smaller model with the same answers (`same_variables.py`, `leaves.py`);
`sparse_elimination.py` eliminates on the supports of tables (`sparse_tables.py`), and
`sparse_backward.py` goes back for marginals and maxima. May import `elimination`, for its orders.
"""
