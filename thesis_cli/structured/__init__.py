"""Exponential families over combinatorial spaces (Vembu, Gaertner and Boley 2009).

Start at `space.Space`: what a space of structures offers, and what follows from that alone.
"""
