"""A structured predictor: its task, how it reads inputs, and its parameters, in one file."""

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
from thesis_cli.structured.encoding import Encoding, Input
from thesis_cli.structured.forest import ARRAYS, Forest
from thesis_cli.structured.learning_data import Table
from thesis_cli.structured.names import TaskName, Unranked
from thesis_cli.structured.tasks import Task

FORM = Form(
    key="predictor",
    format="thesis-cli structured predictor 2",
    arrays=("parameters", "shift", "scale", *ARRAYS),
    what="structured predictor",
    remedy="give a file that thesis-cli structured train has written",
)
"""Files of predictors."""


@dataclass(frozen=True, eq=False)
class Predictor:
    """p(y | x), of which z @ parameters are the weights of the space, where z are the numbers that stand for
    x, and 1. Raises InputError if the shapes do not fit, a number is not finite, or a scale is not positive.

    Attributes
    ----------
    task : task that is predicted.
    encoding : how inputs become z.
    parameters : Theta, shape (numbers, dimension).
    about : how the parameters came about, in types of JSON.
    """

    task: Task
    encoding: Encoding
    parameters: Floats
    about: Mapping[str, Any] = dataclasses.field(default_factory=dict)

    def __post_init__(self) -> None:
        count, encoding = len(self.encoding.columns), self.encoding
        arrays = {"parameters": self.parameters, "shift": encoding.shift, "scale": encoding.scale}
        shapes = {"parameters": (count + 1, self.task.space.dimension), "shift": (count,), "scale": (count,)}
        for name, array in arrays.items():
            if array.shape != shapes[name]:
                raise InputError(f"its {name} have shape {array.shape}", f"they must have {shapes[name]}")
            if not np.isfinite(array).all():
                raise InputError(f"its {name} have a number that is not finite", FORM.remedy)
        if (encoding.scale <= 0).any():
            raise InputError("its scales are not positive", FORM.remedy)

    @property
    def inputs(self) -> tuple[str, ...]:
        """Names of the inputs."""
        return tuple(one.name for one in self.encoding.inputs)

    def weights(self, table: Table) -> Floats:
        """Weights of the space for the rows of a table, shape (n, dimension). Raises InputError if an input is
        missing, or has text where it had numbers."""
        return np.asarray(self.encoding(table.columns(self.inputs), table.count) @ self.parameters)

    def to_bytes(self) -> bytes:
        """The content of the file that `save` writes; the same predictor gives the same bytes."""
        encoding, none = self.encoding, {name: np.empty((0, 0)) for name in ARRAYS}
        forest = none if encoding.forest is None else encoding.forest.arrays()
        arrays = {"parameters": self.parameters, "shift": encoding.shift, "scale": encoding.scale, **forest}
        inputs = [dataclasses.asdict(one) for one in encoding.inputs]
        return FORM.to_bytes(arrays, {"task": dataclasses.asdict(self.task), "inputs": inputs, "about": self.about})

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
            task, inputs = _task(about["task"]), tuple(map(_input, about["inputs"]))
            columns = sum(len(one.columns) for one in inputs)
            forest = Forest.of(arrays, columns) if arrays["roots"].size else None
            encoding = Encoding(inputs, arrays["shift"], arrays["scale"], forest)
            return cls(task, encoding, arrays["parameters"], dict(about["about"]))
        except InputError as error:
            raise error.at(path) from None
        except (ValueError, LookupError, TypeError, AttributeError):
            raise InputError(f"it holds no {FORM.what}", FORM.remedy, source=path) from None


def _task(found: Mapping[str, Any]) -> Task:
    name, unranked = found["name"], found["unranked"]
    if name not in get_args(TaskName):
        raise InputError(f"its task is {str(name)[:40]!r}", FORM.remedy)
    if unranked not in get_args(Unranked):
        raise ValueError
    parents = tuple(int(parent) for parent in found["parents"])
    labels = tuple(map(str, found["labels"]))
    return Task(name, labels, str(found["features"]), parents, str(found["preferences"]), unranked)


def _input(found: Mapping[str, Any]) -> Input:
    levels = None if found["levels"] is None else tuple(map(str, found["levels"]))
    return Input(str(found["name"]), levels, bool(found["marked"]))
