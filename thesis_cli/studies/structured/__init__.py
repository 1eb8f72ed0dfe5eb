"""What only the experiments on structured predictors need."""
