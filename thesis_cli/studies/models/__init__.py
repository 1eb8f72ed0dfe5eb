"""Small models with known answers, for the experiments."""
