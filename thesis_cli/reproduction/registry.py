"""Experiments are found by folder."""

from __future__ import annotations

import importlib.util
import sys
import traceback
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from thesis_cli.base.errors import InputError
from thesis_cli.reproduction.experiment import Experiment


@dataclass(frozen=True)
class Checkout:
    """A clone of the project: where the experiments are and where results go."""

    root: Path

    @property
    def experiments(self) -> Path:
        return self.root / "experiments"

    def results(self, preset: str) -> Path:
        """The paper preset's results are committed, those of others are scratch."""
        return self.root / "results" if preset == "paper" else self.root / "results" / preset

    @property
    def store(self) -> Path:
        return self.root / "results" / ".store"

    def files(self) -> dict[str, Path]:
        """Experiment id -> its file, in the order of the ids."""
        found = {path.stem.replace("_", "-"): path for path in self.experiments.glob("[a-z]*.py")}
        return dict(sorted(found.items()))

    def select(self, ids: list[str]) -> dict[str, Path]:
        """The files of some experiments, or of all where none is named.

        Raises
        ------
        InputError : no experiment has that id.
        """
        files = self.files()
        for name in ids:
            if name not in files:
                raise InputError(f"no experiment is called {name}", f"one of {', '.join(files)}")
        return {name: files[name] for name in ids or files}


def find_checkout(start: Path | None = None) -> Checkout:
    """The checkout that holds the working folder, else the one that this package was installed from.

    Raises
    ------
    InputError : there is none.
    """
    here = (start or Path.cwd()).resolve()
    for folder in (here, *here.parents, Path(__file__).resolve().parents[2]):
        if (folder / "experiments").is_dir() and (folder / "thesis_cli").is_dir():
            return Checkout(folder)
    raise InputError("there are no experiments here", "run this in a checkout of the project")


@lru_cache
def load(path: Path) -> Experiment:
    """Import an experiment's file.

    Raises
    ------
    InputError : the file cannot be imported, declares no EXPERIMENT, or one whose id is not the file's name.
    """
    name = f"thesis_cli_experiment_{path.stem}"
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        line = next(
            (f.lineno for f in reversed(traceback.extract_tb(error.__traceback__)) if f.filename == str(path)), None
        )
        line = error.lineno if isinstance(error, SyntaxError) else line
        raise InputError(
            f"cannot be imported ({type(error).__name__}: {error})", "an experiment is wanted", source=path, line=line
        ) from error
    experiment = getattr(module, "EXPERIMENT", None)
    if not isinstance(experiment, Experiment):
        raise InputError("declares no EXPERIMENT", "see docs/adding-an-experiment.md", source=path)
    wanted = path.stem.replace("_", "-")
    if experiment.id != wanted:
        raise InputError(f"declares {experiment.id}", f"its name makes it {wanted}", source=path)
    return experiment
