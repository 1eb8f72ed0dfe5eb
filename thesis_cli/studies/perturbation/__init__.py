"""Perturb-and-MAP estimates and samplers beside theory and rivals, for the experiments."""
