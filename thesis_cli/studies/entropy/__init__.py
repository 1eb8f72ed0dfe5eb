"""Entropy estimators, their variances and their rivals, for the experiments."""
