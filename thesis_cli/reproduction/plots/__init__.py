"""Figures of a user's own runs, from a table and the record beside it.

`run` reads both, `kinds` chooses a figure by the command that wrote them, and `sweeps` draws tables
of many tasks.
"""
