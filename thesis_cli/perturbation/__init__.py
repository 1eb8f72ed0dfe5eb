"""Perturb-and-MAP: noise in, estimates out."""
