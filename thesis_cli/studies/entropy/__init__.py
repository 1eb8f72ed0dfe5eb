"""What only the experiments use of entropy."""
