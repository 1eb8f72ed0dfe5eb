"""Grids, by dynamic programming over a boundary that moves one site at a time.

Start with `grid.py`: MAP, ln Z, marginals and samples of grids of moderate width. `layout.py` finds
grids among models, `steps.py` and `sums.py` sum, `strips.py` bounds and finds the MAP of wide grids.
May import `message_passing`, which `strips.py` uses for a first configuration.
"""
