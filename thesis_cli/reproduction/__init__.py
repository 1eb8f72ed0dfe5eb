"""Run the tasks of experiments and of sweeps, once each, anywhere, and merge their results.

* `experiment.py`: what an experiment declares, and where the experiments are.
* `sweep_file.py`, `command_work.py`: a sweep's TOML file, and a command as the work of tasks.
* `tasks.py`: tasks and results on disk.
* `engines.py`, `arrays.py`, `slurm.py`: where tasks run.
* `runner.py`, `fingerprint.py`: which tasks to run.
* `publication.py`, `comparison.py`, `claims.py`, `report/`: what is made of results.
* `commands/`: `sweep`, `status`, `reproduce`, `report` and the like, each also a function of Python.
* `documents.py`, `coverage.py`: what `make docs` writes.

Start with `runner.reproduce` for experiments, or with `runner.complete` for any file of tasks.
"""
