"""Noise that makes a vector private (`mechanism.py`, from OpenDP); vectors of a table, and whom they protect
(`stages.py`).
"""
