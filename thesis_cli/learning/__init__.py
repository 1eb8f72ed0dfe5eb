"""Learning the weights of grid models from pairs of images (Hazan et al. section V).

`choose.py` chooses settings and learns, `train.py` learns with given ones, `decoding.py` denoises;
`grid_model.py` has weights of pixels, `shared_model.py` those that all pixels share, and `values.py`
what makes binary images of others.
"""
