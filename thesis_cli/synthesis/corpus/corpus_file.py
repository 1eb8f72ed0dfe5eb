"""Corpora as users name them: folders, the NPZ files of earlier versions, and tasks as JSON Lines."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from thesis_cli.base.errors import InputError
from thesis_cli.base.files import atomic
from thesis_cli.base.npy import arrays_of
from thesis_cli.synthesis.corpus.corpus import TYPES, Corpus
from thesis_cli.synthesis.corpus.corpus_shards import load_shards
from thesis_cli.synthesis.language.dsl import DEEPCODER, MOST_INPUTS, Semantics
from thesis_cli.synthesis.language.packing import NULL
from thesis_cli.synthesis.language.program_codes import arguments_of, code_of, operation_of

FORMAT = "thesis-cli corpus 1"

_BITS = 3
"""Bits of a variable in the codes of a file."""

_ROWS = 2**10
"""Programs whose examples are read at a time."""

_MEMBERS = {"codes": np.int16, "types": np.int8, "sizes": np.int8, "numbers": np.int16, "test": np.bool_}
"""Arrays of a file. `numbers` holds all values without padding, `sizes` their lengths."""

_VALUES = MOST_INPUTS + 1
_REMEDY = "give a file that thesis-cli make-corpus has written"


def write_tasks(corpus: Corpus, path: Path) -> None:
    """Write the tasks as JSON Lines, which `load_tasks` reads: a task a line, with its program,
    whether it is for testing and, if weights differ, its weight. Raises OSError naming the file
    that could not be written; what was there before is still there."""
    with atomic(path) as file:
        row, weighted = 0, bool((corpus.weights != 1).any())
        for shard in corpus.shards():
            for start in range(0, len(shard), _ROWS):
                part = shard.subset(slice(start, start + _ROWS))
                for i in range(len(part)):
                    row += 1
                    task = replace(part.task(i), name=f"random-{row}")
                    about: dict[str, object] = {"program": part.program(i).one_line, "test": bool(part.test[i])}
                    if weighted:
                        about["weight"] = float(part.weights[i])
                    file.write(f"{task.to_json(about)}\n".encode())


def load_corpus(path: str | Path) -> Corpus:
    """Read a corpus: a folder, whose examples are mapped into memory, or an NPZ file of format 1.
    Raises InputError for no such file or folder, one of another kind, a damaged one, or a folder
    whose corpus is not complete."""
    if Path(path).is_dir():
        return load_shards(Path(path))
    try:
        with open(path, "rb") as file:
            members = arrays_of(file, ["about", *_MEMBERS], path)
        about = json.loads(members.pop("about").tobytes())
    except OSError as error:
        problem = f"it cannot be read ({error.strerror or error})"
        raise InputError(problem, _REMEDY, source=path) from None
    except (ValueError, RecursionError):  # an `InputError` is one too
        raise InputError("it is not a corpus, or it is damaged", _REMEDY, source=path) from None
    try:
        return _corpus(about, **members)
    except InputError as error:
        raise error.at(path) from None


def _corpus(
    about: object,
    codes: npt.NDArray[np.int16],
    types: npt.NDArray[np.int8],
    sizes: npt.NDArray[np.int8],
    numbers: npt.NDArray[np.int16],
    test: npt.NDArray[np.bool_],
) -> Corpus:
    """The corpus that is stored in the members of a file. Raises InputError if they do not fit each
    other."""

    if not isinstance(about, dict) or about.pop("format", None) != FORMAT:
        raise InputError(f"it is not a {FORMAT}", _REMEDY)
    try:
        made = {what: {int(length): n for length, n in counts.items()} for what, counts in about.pop("made").items()}
        semantics = Semantics(**about)
        whole = all(type(value) is int for value in (semantics.low, semantics.high, semantics.longest))
        if not whole or semantics.longest > np.iinfo(_MEMBERS["sizes"]).max:
            raise ValueError
    except (TypeError, ValueError, KeyError, AttributeError):
        raise InputError("its description cannot be read", _REMEDY) from None
    count = test.size if test.ndim == 1 else -1
    arrays: tuple[npt.NDArray[Any], ...] = (codes, types, sizes, numbers, test)
    fits = (
        all(array.dtype == kind for array, kind in zip(arrays, _MEMBERS.values(), strict=True))
        and (codes.ndim, types.shape, sizes.ndim) == (2, (count, _VALUES), 3)
        and sizes.shape[::2] == (count, _VALUES)
        and len(codes) == count
        and sizes.min(initial=0) >= 0
        and sizes.max(initial=0) <= semantics.longest
        and numbers.shape == (sizes.sum(dtype=np.int64),)
        and types.min(initial=0) >= 0
        and types.max(initial=0) < len(TYPES)
        and codes.min(initial=0) >= -1
        and operation_of(codes.max(initial=0), _BITS) < len(DEEPCODER.operations)
        and numbers.min(initial=semantics.high) >= semantics.low
        and numbers.max(initial=semantics.low) <= semantics.high
    )
    if not fits:
        raise InputError("its arrays do not fit each other", _REMEDY)
    padded = np.full((*sizes.shape, semantics.longest), NULL)
    padded[np.arange(semantics.longest) < sizes[..., None]] = numbers
    lines = codes.astype(np.int32)
    lines[codes >= 0] = code_of(operation_of(lines, _BITS), *arguments_of(lines, _BITS))[codes >= 0]
    return Corpus(lines, types, padded, test, semantics, made)
