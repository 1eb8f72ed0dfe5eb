"""Perturb-and-MAP estimates and samplers beside theory and baselines, for the experiments."""
