"""What only the experiments use of models."""
