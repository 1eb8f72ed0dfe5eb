"""A structured predictor: its task, what it was learnt from, and its parameters, in one file."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, get_args

import numpy as np

from thesis_cli.base.arrays import Floats
from thesis_cli.base.errors import InputError
from thesis_cli.base.files import write_atomic
from thesis_cli.base.tensor_file import Form
from thesis_cli.structured.names import TaskName
from thesis_cli.structured.tasks import Task

FORM = Form(
    key="predictor",
    format="thesis-cli structured predictor 1",
    arrays=("parameters", "shift", "scale"),
    what="structured predictor",
    remedy="give a file that thesis-cli structured train has written",
)
"""Files of predictors."""


@dataclass(frozen=True, eq=False)
class Predictor:
    """p(y | x) = exp(<psi(y), z @ parameters>) / Z, where z is x standardised, then a constant 1.
    Raises InputError if the shapes do not fit, a number is not finite, or a scale is not positive.

    Attributes
    ----------
    task : task that is predicted.
    inputs : names of the inputs.
    parameters : Theta, shape (inputs + 1, dimension).
    shift, scale : standardisation of the inputs: z = (x - shift) / scale; shape (inputs,).
    about : how the parameters came about, in types of JSON.
    """

    task: Task
    inputs: tuple[str, ...]
    parameters: Floats
    shift: Floats
    scale: Floats
    about: Mapping[str, Any] = dataclasses.field(default_factory=dict)

    def __post_init__(self) -> None:
        count = len(self.inputs)
        shapes = {"parameters": (count + 1, self.task.space.dimension), "shift": (count,), "scale": (count,)}
        for name, shape in shapes.items():
            array = getattr(self, name)
            if array.shape != shape:
                raise InputError(f"its {name} have shape {array.shape}", f"they must have {shape}")
            if not np.isfinite(array).all():
                raise InputError(f"its {name} have a number that is not finite", FORM.remedy)
        if (self.scale <= 0).any():
            raise InputError("its scales are not positive", FORM.remedy)

    def weights(self, values: Floats) -> Floats:
        """Weights of the space for rows of inputs, shape (n, inputs) -> (n, dimension)."""
        return np.asarray(design(values, self.shift, self.scale) @ self.parameters)

    def to_bytes(self) -> bytes:
        """The content of the file that `save` writes; the same predictor gives the same bytes."""
        arrays = {name: getattr(self, name) for name in FORM.arrays}
        about = {"task": dataclasses.asdict(self.task), "inputs": self.inputs, "about": self.about}
        return FORM.to_bytes(arrays, about)

    def save(self, path: str | Path) -> None:
        """Write the predictor, safetensors. Raises OSError naming the file that could not be
        written."""
        write_atomic({Path(path): self.to_bytes()})

    @classmethod
    def load(cls, path: str | Path) -> Predictor:
        """Read a predictor. Raises InputError for no such file, a damaged one, one of another
        format, or parts that do not fit."""
        arrays, about = FORM.read(path)
        try:
            task, inputs = _task(about["task"]), tuple(map(str, about["inputs"]))
            return cls(task, inputs, **arrays, about=dict(about["about"]))
        except InputError as error:
            raise error.at(path) from None
        except (ValueError, LookupError, TypeError, AttributeError):
            raise InputError(f"it holds no {FORM.what}", FORM.remedy, source=path) from None


def _task(found: Mapping[str, Any]) -> Task:
    name = found["name"]
    if name not in get_args(TaskName):
        raise InputError(f"its task is {str(name)[:40]!r}", FORM.remedy)
    parents = tuple(int(parent) for parent in found["parents"])
    return Task(name, tuple(map(str, found["labels"])), str(found["features"]), parents)


def design(values: Floats, shift: Floats, scale: Floats) -> Floats:
    """Standardised inputs and a column of ones, shape (n, p) -> (n, p + 1)."""
    return np.column_stack([(values - shift) / scale, np.ones(len(values))])


def standardisation(values: Floats) -> tuple[Floats, Floats]:
    """Mean and standard deviation of each column; 1 for a constant column."""
    spread = values.std(axis=0)
    spread[spread <= 1e-12 * np.abs(values).max(axis=0, initial=0.0)] = 1.0
    return values.mean(axis=0), spread
