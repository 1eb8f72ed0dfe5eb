"""Run the tasks of experiments and of sweeps, once each, anywhere, and merge their results.

* `experiment.py`, `registry.py`: what an experiment is, and where the experiments are.
* `sweep_file.py`, `grid_values.py`, `parameters.py`, `command_work.py`: a sweep's TOML file, and a
  command as the work of tasks.
* `task_file.py`, `store.py`, `run_folder.py`: tasks and results on disk.
* `engines.py`, `arrays.py`, `job_arrays.py`, `slurm.py`, `worker.py`: where tasks run.
* `runner.py`, `fingerprint.py`, `survey.py`: what to run, and how far it has come.
* `table.py`, `claims.py`, `figures.py`: what is made of results.
* `commands/`: `sweep`, `status`, `reproduce`, `report` and the like, each also a function of Python.
* `documents.py`, `coverage.py`, `costs.py`: what `make docs` writes.

Start with `runner.reproduce` for experiments, or with `runner.complete` for any file of tasks.
"""
