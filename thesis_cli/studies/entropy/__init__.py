"""Entropy estimators, their variances and their baselines, for the experiments."""
