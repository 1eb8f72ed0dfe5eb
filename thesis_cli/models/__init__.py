"""What is summed over: factor graphs, vectors of log-potentials, and the files they live in."""
