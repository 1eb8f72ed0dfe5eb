"""Open what commands on combinatorial structures take as a model."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from thesis_cli.base.errors import InputError, ModelTooLarge
from thesis_cli.commands.core.fields import argument, option

if TYPE_CHECKING:
    from thesis_cli.structured.model_file import StructuredModel

    StructuredSource: TypeAlias = str | Path | StructuredModel | tuple[Any, Any]
    """A path, a model, or a pair of a `Space` and its weights."""
else:
    StructuredSource = str


MOST_NUMBERS = 2**27
"""Entries of a table of structures, 1 GiB."""


def noise_option() -> Any:
    """Variables that get noise; its type is `NoiseName | None`."""
    return option(
        None,
        "Variables that get noise; each space has its own.",
        default_text="those that give the tightest upper bound",
        methods=("perturb",),
    )


def structured_argument() -> Any:
    """A space with weights; its type is `StructuredSource`."""
    return argument("Model: a TOML file with a space and its weights.", names="file", objects=True)


def open_structured(source: StructuredSource) -> StructuredModel:
    """The model of a source.

    Raises
    ------
    InputError : the file has no model, or the object is none.
    """
    import numpy as np

    from thesis_cli.structured.model_file import StructuredModel, load
    from thesis_cli.structured.space import Space

    if isinstance(source, str | Path):
        return load(source)
    if isinstance(source, StructuredModel):
        return source
    if isinstance(source, tuple) and len(source) == 2 and isinstance(source[0], Space):
        try:
            if np.iscomplexobj(source[1]):
                raise TypeError
            weights = np.asarray(source[1], dtype=np.float64)
        except (TypeError, ValueError):
            raise InputError("the weights are no numbers", "give one for each feature") from None
        return StructuredModel(source[0], weights)
    raise InputError(f"the model is of type {type(source).__name__}", "give a TOML file, or (space, weights)")


def check_linear(option: str, model: StructuredModel) -> None:
    """Refuse a method that scales weights or adds to them where log-potentials are not linear in them.

    Raises
    ------
    InputError : naming the option.
    """
    from thesis_cli.structured.catalogue import kind_of

    if not model.space.linear:
        raise InputError(f"{option} does not go with {kind_of(model.space)}", "use its exact algorithm")


def check_rows(option: str, count: int, model: StructuredModel) -> None:
    """Refuse more structures than memory shall hold.

    Raises
    ------
    ModelTooLarge : naming the option, and the most rows.
    """
    width = max(1, model.space.width)
    if count * width > MOST_NUMBERS:
        problem = f"{option} {count:,} structures of {width:,} numbers each take more than 1 GiB"
        raise ModelTooLarge(problem, f"at most {MOST_NUMBERS // width:,} fit")
