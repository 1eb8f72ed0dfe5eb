"""Studies of private releases (Thesis chapter 4); most of what is computed here is NOT PRIVATE.

* `published`: the setting of Figures 4.1 and 4.2 with its random streams.
* `seeded`: noise of a seeded generator, and Algorithm 2 as one call.
* `evaluation`: errors of a release, and noisy histograms as baselines.
"""
