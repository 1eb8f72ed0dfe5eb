"""Corpora as folders of shards: arrays that are mapped into memory, not loaded.

A folder has a card, `corpus.json`, and shards `shard-00000` and so on, which are folders of NPY
files, one for each array of `ARRAYS`. A shard is written whole or not at all, and then the card
names it, so a corpus that was cut short goes on from its shards; `complete` is true once the last one
is there. The card has the settings, the counts, and the SHA-256 of each file.

Each array has a row for each of the P programs of its shard, at most 65,536 and all of one length.
`lines`, shape (P, T, 3), has the operation of each line (a place in the card's `data.operations`) and
two variables, counted from 0, inputs first; an operation of one argument repeats it, and -1 is no line.
The other arrays are those of `Corpus`; L, the longest list, is the card's `data.longest`.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from thesis_cli.base.chained import Chained
from thesis_cli.base.errors import InputError
from thesis_cli.base.files import check_writable, locked, to_json, write_atomic
from thesis_cli.base.npy import map_array
from thesis_cli.synthesis.corpus.corpus import TYPES, Corpus, join
from thesis_cli.synthesis.language.dsl import ATTRIBUTES, DEEPCODER, MOST_INPUTS, Semantics
from thesis_cli.synthesis.language.packing import NULL
from thesis_cli.synthesis.language.program_codes import MOST_LINES, arguments_of, code_of, operation_of

FORMAT = "thesis-cli corpus 2"
CARD = "corpus.json"
SUFFIX = ".corpus"
TASKS = "tasks.jsonl"
"""The card of a corpus, the end of its folder's name, and the file of its tasks, if they are
exported."""

ARRAYS = {"lines": np.int8, "types": np.int8, "numbers": np.int16, "test": np.bool_, "weights": np.float64}
"""Arrays of a shard, one row for each program."""

_RANKS = np.array([2, 0, 1])
"""Places among the inputs, by codes of types: no input comes last."""

_VALUES = MOST_INPUTS + 1
_REMEDY = "give a folder that thesis-cli make-corpus has written"

Lines = npt.NDArray[np.int8]


class CorpusFolder:
    """A folder in which a corpus is made, shard after shard; use `opened`.

    Parameters
    ----------
    path : the folder; it is made with the first shard.
    record : content of the card beside the data, in types of JSON.
    shards : entries of the card for the shards that are there.

    Attributes
    ----------
    complete : whether there is nothing left to add.
    """

    def __init__(self, path: Path, record: Mapping[str, Any], shards: Sequence[dict[str, Any]], complete: bool) -> None:
        self._path, self._record, self._shards = path, record, list(shards)
        self._data: dict[str, Any] = {}
        self.complete = complete

    def __len__(self) -> int:
        """Shards that are there."""
        return len(self._shards)

    def parts(self) -> Iterator[Corpus]:
        """The shards that are there, one at a time."""
        if self._shards:
            card = _card(self._path)
            for entry in self._shards:
                yield _shard(self._path, card["data"], entry)

    def add(self, part: Corpus, length: int) -> None:
        """Write the next shard, on the disk before this returns; programs have up to `length`
        lines."""
        data = _data(part, length)
        name = f"shard-{len(self._shards):05}"
        target, draft = self._path / name, self._path / f".{name}"
        for folder in (target, draft):  # of a run that was killed before the card named the shard
            shutil.rmtree(folder, ignore_errors=True)
        draft.mkdir(parents=True)
        if not self._shards:
            self._write(data, False, self._record)
        digests = {}
        for array, values in _arrays(part, length).items():
            with open(draft / f"{array}.npy", "w+b") as file:
                np.save(file, values)
                file.flush()
                os.fsync(file.fileno())
                file.seek(0)
                digests[f"{array}.npy"] = hashlib.file_digest(file, "sha256").hexdigest()
        draft.rename(target)
        self._shards.append({"name": name, "programs": len(part), "made": part.made, "sha256": digests})
        self._data = data
        self._write(data, False, self._record)

    def corpus(self) -> Corpus:
        """The whole corpus that is there."""
        return _joined(list(self.parts()))

    def finish(self, record: Mapping[str, Any]) -> None:
        """Mark the corpus as complete; the card gets more entries."""
        self._write(self._data or _card(self._path)["data"], True, {**self._record, **record})
        self.complete = True

    def _write(self, data: Mapping[str, Any], complete: bool, record: Mapping[str, Any]) -> None:
        card = {"format": FORMAT, "complete": complete, **record, "data": data, "shards": self._shards}
        write_atomic({self._path / CARD: to_json(card)})


@contextmanager
def opened(path: Path, record: Mapping[str, Any], overwrite: bool = False) -> Iterator[CorpusFolder]:
    """A folder to make a corpus in, which no other process writes to meanwhile.

    Shards of the same corpus are kept, up to the first damaged one. Those of another are removed,
    if `overwrite`. Raises InputError if the folder holds another corpus, or something else; it is
    in use; its name does not end in `SUFFIX`.

    Parameters
    ----------
    record : entries of the card, in types of JSON. `made_from` determines the corpus, given the
        versions `made_by`.
    """
    check_writable("--out", path, SUFFIX, is_folder=True)
    parents = [parent for parent in path.absolute().parents if not parent.exists()]
    try:
        with locked(path):
            yield CorpusFolder(path, record, *_kept(path, json.loads(to_json(record)), overwrite))
    finally:
        for parent in parents:  # a corpus that could not be begun leaves nothing
            with suppress(OSError):
                parent.rmdir()


def _kept(path: Path, record: Mapping[str, Any], overwrite: bool) -> tuple[list[dict[str, Any]], bool]:
    """Shards to go on from, and whether they are all."""
    there = list(path.iterdir()) if path.exists() else []
    if not (path / CARD).is_file():
        if all(entry.name.startswith(".shard-") for entry in there):
            return [], False
        raise InputError(f"{path} is a folder without a corpus", "give another name")
    problem = "holds another corpus"
    try:
        card = _card(path)
    except InputError:
        problem = "holds a damaged corpus"
    else:
        if card["made_from"] == record["made_from"]:
            whole = [entry for entry, _ in zip(card["shards"], _whole(path, card), strict=False)]
            complete = card["complete"] and len(whole) == len(card["shards"])
            if complete or card["made_by"] == record["made_by"]:
                return whole, complete
            problem = "was begun with other versions of the software"
    if not overwrite:
        raise InputError(f"{path} {problem}", "give another name, or --overwrite")
    for file in (CARD, TASKS):
        (path / file).unlink(missing_ok=True)
    for shard in [*path.glob("shard-*"), *path.glob(".shard-*")]:
        shutil.rmtree(shard)
    return [], False


def _whole(path: Path, card: Mapping[str, Any]) -> Iterator[bool]:
    """True for each shard up to the first whose files differ from their digests."""
    for entry in card["shards"]:
        try:
            for name, digest in entry["sha256"].items():
                with open(path / entry["name"] / name, "rb") as file:
                    if hashlib.file_digest(file, "sha256").hexdigest() != digest:
                        return
        except OSError:
            return
        yield True


def load_shards(path: Path) -> Corpus:
    """Read a folder; only programs, types and the split are loaded, examples are mapped. Raises
    InputError for no such folder, another kind of folder, a damaged one, or one that is not
    complete."""
    card = _card(path)
    if not card["complete"]:
        raise InputError("it is not complete", "run make-corpus with the same options again", source=path)
    return _joined([_shard(path, card["data"], entry) for entry in card["shards"]])


def _joined(shards: Sequence[Corpus]) -> Corpus:
    """A corpus of mapped shards."""
    if len(shards) == 1:
        return shards[0]
    return join(shards, Chained([np.asanyarray(shard.numbers) for shard in shards]))


def _data(part: Corpus, length: int) -> dict[str, Any]:
    """Facts that a reader needs about the arrays."""

    semantics = part.semantics
    return {
        "length": length,
        "examples": part.numbers.shape[1],
        "division": semantics.division,
        "low": semantics.low,
        "high": semantics.high,
        "longest": semantics.longest,
        "null": int(NULL),
        "types": TYPES,
        "operations": [operation.name for operation in DEEPCODER.operations],
        "attributes": ATTRIBUTES,
    }


def _arrays(part: Corpus, length: int) -> dict[str, npt.NDArray[Any]]:
    """The arrays of a shard."""
    lines = np.full((len(part), length, 3), -1, dtype=np.int8)
    lines[:, : part.codes.shape[1]] = np.stack([operation_of(part.codes), *arguments_of(part.codes)], axis=-1)
    lines[lines[..., 0] < 0] = -1
    return {
        "lines": lines,
        "types": part.types,
        "numbers": np.asarray(part.numbers),
        "test": part.test,
        "weights": part.weights,
    }


def _card(path: Path) -> dict[str, Any]:
    """The card of a folder; its parts that readers rely on are checked. Raises InputError if there
    is none, or it is damaged."""
    try:
        card = json.loads((path / CARD).read_bytes())
    except OSError as error:
        raise InputError(f"it cannot be read ({error.strerror or error})", _REMEDY, source=path / CARD) from None
    except (ValueError, RecursionError):
        raise InputError("it is not JSON", _REMEDY, source=path / CARD) from None
    if not isinstance(card, dict) or card.get("format") != FORMAT:
        raise InputError(f"it is not the card of a {FORMAT}", _REMEDY, source=path / CARD)
    try:
        data, entries = card["data"], card["shards"]
        _semantics(data)
        for entry in entries:
            entry["made"] = {
                what: {int(length): int(n) for length, n in counts.items()} for what, counts in entry["made"].items()
            }
        sound = (
            [entry["name"] for entry in entries] == [f"shard-{place:05}" for place in range(len(entries))]
            and all(set(entry["sha256"]) == {f"{name}.npy" for name in ARRAYS} for entry in entries)
            and all(type(entry["programs"]) is int for entry in entries)
            and 1 <= data["length"] <= MOST_LINES
            and data["operations"] == [operation.name for operation in DEEPCODER.operations]
            and type(card["complete"]) is bool
            and (entries or not card["complete"])
            and {"made_from", "made_by"} <= card.keys()
        )
    except (KeyError, TypeError, ValueError, AttributeError):
        sound = False
    if not sound:
        raise InputError("its description cannot be read", _REMEDY, source=path / CARD)
    return card


def _semantics(data: Mapping[str, Any]) -> Semantics:
    found = Semantics(*(data[name] for name in ("division", "low", "high", "longest")))
    if not all(type(data[name]) is int for name in ("low", "high", "longest", "length", "examples")):
        raise ValueError
    return found


def _shard(path: Path, data: Mapping[str, Any], entry: Mapping[str, Any]) -> Corpus:
    """A shard; its arrays are mapped. Raises InputError if it is damaged."""
    folder = path / entry["name"]
    try:
        arrays = {name: map_array(folder / f"{name}.npy") for name in ARRAYS}
    except OSError as error:
        problem = f"it cannot be read ({error.strerror or error})"
        raise InputError(problem, _REMEDY, source=error.filename or folder) from None
    programs = entry["programs"]
    shapes = {
        "lines": (programs, data["length"], 3),
        "types": (programs, _VALUES),
        "numbers": (programs, data["examples"], _VALUES, data["longest"]),
        "test": (programs,),
        "weights": (programs,),
    }
    for name, kind in ARRAYS.items():
        if arrays[name].shape != shapes[name] or arrays[name].dtype != kind:
            raise InputError("it does not fit the card", _REMEDY, source=folder / f"{name}.npy")
    lines, types = np.array(arrays["lines"]), np.array(arrays["types"])
    if not _sound(lines, types):
        raise InputError("its arrays hold no programs", _REMEDY, source=folder)
    there = lines[..., 0] >= 0
    codes = np.where(there, code_of(*np.moveaxis(lines.astype(np.int32), -1, 0)), np.int32(-1))
    test, weights = np.array(arrays["test"]), np.array(arrays["weights"])
    return Corpus(codes, types, arrays["numbers"], test, _semantics(data), entry["made"], weights)


def _sound(lines: Lines, types: Lines) -> bool:
    """Whether arrays can be decoded: ids and variables are in bounds, numbers come first among the
    inputs, and no line follows the last."""
    there = lines[..., 0] >= 0
    inputs = np.count_nonzero(types[:, :MOST_INPUTS], axis=1)
    variables = inputs[:, None] + np.arange(lines.shape[1])
    arguments = lines[..., 1:]
    return bool(
        types.min(initial=0) >= 0
        and types.max(initial=0) < len(TYPES)
        and (_RANKS[types[:, : MOST_INPUTS - 1]] <= _RANKS[types[:, 1:MOST_INPUTS]]).all()
        and types[:, [0, -1]].all()
        and lines[..., 0].max(initial=0) < len(DEEPCODER.operations)
        and (~there[:, :-1] <= ~there[:, 1:]).all()
        and there[:, 0].all()
        and ((arguments >= 0) & (arguments < variables[..., None]))[there].all()
    )
