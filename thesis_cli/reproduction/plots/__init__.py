"""Figures of a user's own runs, from a table and the record beside it.

`run` reads both, `kinds` chooses a figure and writes it, and `sweeps` draws tables of many tasks.
"""
