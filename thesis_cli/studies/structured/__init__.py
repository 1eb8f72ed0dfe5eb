"""Modules that only the experiments on structured predictors need."""
