"""Figures of the results of commands."""
