"""Code that only the experiments use. No command imports it.

There is a folder for each method package:

* `entropy/`: exact and sampled variances of entropy estimators, their errors beside those of baselines,
  bounds, and differential entropies.
* `models/`: the small models in data/models.
* `perturbation/`: statements on low-rank bounds measured on small models, samples that a trick needs
  for an MSE, rejection sampling, exactness of the sequential sampler.
* `privacy/`: published runs, seeded noise, scores of releases.
* `synthesis/`: the thesis's programs and timing of solvers.

Start at the experiment that imports a module. Nothing here imports `thesis_cli.reproduction`.
"""
