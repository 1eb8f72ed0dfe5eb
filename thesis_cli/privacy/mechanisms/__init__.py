"""Noise that makes a vector private (`mechanism.py`, from OpenDP), and whom it protects (`units.py`)."""
