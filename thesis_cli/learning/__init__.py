"""Learning the weights of grid models from pairs of images (Hazan et al. section V)."""
