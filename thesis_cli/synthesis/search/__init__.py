"""Searches forward from the inputs.

`solver.py` defines solvers, limits and solutions; `depth_first.py` is the source's search and its
variant Sort and add, `spaces.py` what they examine and may leave out; `bottom_up.py` is a bank of
values; `length_by_length.py` is for searches in plain Python;
`refutation.py` says what no program can do. `execution.py` and `moves.py` run and list partial
programs, many at once. May import `language` and `corpus`.
"""
