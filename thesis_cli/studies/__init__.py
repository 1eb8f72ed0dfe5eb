"""What only the experiments use: theory that a figure compares with, published inputs, example
data.

One folder for each method package. No command imports it.
"""
