"""Exact answers about a model: the sum over its configurations."""
