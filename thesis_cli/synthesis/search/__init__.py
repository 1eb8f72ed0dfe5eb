"""Searches forward from the inputs.

`solver.py` defines solvers, limits and solutions, and finds tasks that no program fits; `depth_first.py`
is the source's search and its variant Sort and add, and what they may leave out; `bottom_up.py` is a
bank of values; `length_by_length.py` is for searches in plain Python. `execution.py` runs partial
programs, many at once, and lists their next lines. May import `language` and `corpus`.
"""
