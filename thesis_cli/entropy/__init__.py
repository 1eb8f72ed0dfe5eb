"""Renyi entropies and other sums over a distribution, by perturb-and-MAP (Thesis chapter 3)."""
