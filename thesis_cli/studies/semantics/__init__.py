"""Expressions with known laws, and rates of their embeddings, for the experiment on kernel semantics."""
