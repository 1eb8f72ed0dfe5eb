"""Maxima under random parity constraints, which WISH needs.

`constraints.py` draws the constraints and enumerates small models. `bands.py` and `frontier.py` solve
narrow models, `ends.py` passes with few or many constraints, `search.py` any model within a time. May
import `external`.
"""
