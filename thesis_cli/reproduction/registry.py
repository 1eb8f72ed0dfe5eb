"""The experiments of a checkout, found by folder."""

from __future__ import annotations

import importlib.util
import sys
import traceback
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from thesis_cli.base.errors import InputError, nearest
from thesis_cli.base.modules import spec_of
from thesis_cli.reproduction.experiment import Experiment


@dataclass(frozen=True)
class Checkout:
    """A clone of the project: the experiments and their results."""

    root: Path

    @property
    def is_here(self) -> bool:
        """Whether the working folder is in it: only then do commands write into it."""
        return Path.cwd().resolve().is_relative_to(self.root)

    @property
    def experiments(self) -> Path:
        return self.root / "experiments"

    def results(self, preset: str) -> Path:
        """Folder of results; those of the paper preset are committed, others are scratch."""
        return self.root / "results" if preset == "paper" else self.root / "results" / preset

    @property
    def store(self) -> Path:
        return self.root / "results" / ".store"

    def files(self) -> dict[str, Path]:
        """The file of each experiment by its id, in the order of the ids."""
        found = {path.stem.replace("_", "-"): path for path in self.experiments.glob("[a-z]*.py")}
        return dict(sorted(found.items()))

    def select(self, ids: list[str]) -> dict[str, Path]:
        """The files of some experiments; of all if none is named.

        Raises
        ------
        InputError : no experiment has that id.
        """
        files = self.files()
        for name in ids:
            if name not in files:
                raise InputError(f"no experiment {name!r}", nearest(name, files))
        return {name: files[name] for name in ids or files}


def find_checkout(start: Path | None = None) -> Checkout:
    """The checkout that contains the working folder, or else the one that this package comes from.

    Raises
    ------
    InputError : there is none.
    """
    here = (start or Path.cwd()).resolve()
    for folder in (here, *here.parents, Path(__file__).resolve().parents[2]):
        if (folder / "experiments").is_dir() and (folder / "thesis_cli").is_dir():
            return Checkout(folder)
    raise InputError("there are no experiments here", "run this in a checkout of the project")


def checkout_here() -> Checkout:
    """The checkout that contains the working folder, for commands that write into it.

    Raises
    ------
    InputError : there is none; names the one that this package comes from.
    """
    found = find_checkout()
    if not found.is_here:
        raise InputError("this folder is in no checkout of the project", f"run the command in {found.root}")
    return found


@lru_cache
def load(path: Path) -> Experiment:
    """Import an experiment's file.

    Raises
    ------
    InputError : the file cannot be imported, or declares no EXPERIMENT with the id of its name.
    """
    name = f"thesis_cli_experiment_{path.stem}"
    spec = spec_of(name, path)
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
            f"cannot be imported ({type(error).__name__}: {error})", "correct the file", source=path, line=line
        ) from error
    experiment = getattr(module, "EXPERIMENT", None)
    if not isinstance(experiment, Experiment):
        raise InputError("declares no EXPERIMENT", "docs/adding-an-experiment.md shows how", source=path)
    name = path.stem.replace("_", "-")
    if experiment.id != name:
        raise InputError(f"declares the id {experiment.id}", f"in this file it must be {name}", source=path)
    return experiment
