"""Kernel mean embeddings of tables: exact means (`means.py`), random features of norm 1
(`features.py`), and points whose mean feature is near a noisy one (`points.py`, by `atoms.py`).
Imports no other room.
"""
