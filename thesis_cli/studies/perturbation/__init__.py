"""What only the experiments use of perturbation."""
