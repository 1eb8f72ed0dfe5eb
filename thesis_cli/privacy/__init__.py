"""Differentially private release of a table by kernel mean embeddings (Thesis chapter 4)."""
