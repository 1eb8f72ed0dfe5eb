"""Weights of networks as files: safetensors in float16, each with a model card beside it.

`NAME.safetensors` holds the arrays, and in its metadata all that inference needs: which kind of
network, its sizes, and the semantics of the tasks that it was trained on. `NAME.json`, the model
card, states how the weights came about, how good they are, and the SHA-256 of the weights.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np
import numpy.typing as npt

from thesis_cli.base.errors import InputError
from thesis_cli.base.files import to_json, write_atomic
from thesis_cli.synthesis.language.dsl import ATTRIBUTES, DEFAULT, Semantics

FORMAT = "thesis-cli guide 1"

Kind = Literal["feed-forward", "gru", "program", "next-line"]
"""The networks; the module of each describes its arrays and sizes."""

SUFFIX = ".safetensors"

MAX_BYTES = 2**28
"""Largest file that is read."""

LARGEST = 10**4
"""Largest size of a network."""

Array = npt.NDArray[np.float32]

_FOLDER = files("thesis_cli.synthesis") / "weights"
_REMEDY = "give a file that thesis-cli train-guide has written"


@dataclass(frozen=True, eq=False)
class Weights:
    """The weights of a network.

    Attributes
    ----------
    name : name of shipped weights, or path of others.
    kind : which network.
    sizes : sizes of its layers, by name.
    semantics : range of numbers, length of lists and division of the tasks it was trained on.
    training : facts about the training.
    arrays : arrays by name, float32, rounded to float16.
    digest : SHA-256 of the file.
    """

    name: str
    kind: Kind
    sizes: Mapping[str, int]
    semantics: Semantics
    training: Mapping[str, Any]
    arrays: Mapping[str, Array]
    digest: str

    def size(self, name: str) -> int:
        """A size of the network. Raises InputError if it is missing, not positive or too large."""
        found = self.sizes.get(name, 0)
        if not 1 <= found <= LARGEST:
            raise InputError(f"its size {name!r} is {found}", f"it must be from 1 to {LARGEST:,}", source=self.name)
        return found

    def array(self, name: str, *shape: int) -> Array:
        """An array of the network. Raises InputError if it is missing, or has another shape."""
        found = self.arrays.get(name)
        if found is None or found.shape != shape:
            problem = f"its array {name} " + ("is missing" if found is None else f"has shape {found.shape}")
            raise InputError(problem, f"its sizes require {shape}; {_REMEDY}", source=self.name)
        return found

    def check_arrays(self, shapes: Mapping[str, Sequence[int]]) -> None:
        """Refuse arrays of other names or shapes; raises as `array`."""
        for name, shape in shapes.items():
            self.array(name, *shape)
        for name in self.arrays:
            if name not in shapes:
                raise InputError(f"it has the unknown array {name}", _REMEDY, source=self.name)


def config_of(semantics: Semantics, training: Mapping[str, Any] | None = None, **sizes: int) -> dict[str, Any]:
    """The `config` that `save` takes."""
    return {"sizes": sizes, "semantics": semantics.numbers, "training": dict(training or {})}


def save(
    path: str | Path,
    arrays: Mapping[str, npt.ArrayLike],
    kind: Kind,
    config: Mapping[str, Any],
    card: Mapping[str, Any],
) -> list[Path]:
    """Write weights and their model card: both or neither; the same weights give the same bytes.
    Raises InputError if the name has another suffix; a weight is not finite, or beyond float16;
    OSError naming the file that could not be written.

    Parameters
    ----------
    path : ends in .safetensors; the card goes beside it, .json.
    arrays : arrays by name; they are rounded to float16.
    config : settings as `config_of` makes them.
    card : content of the model card, in types of JSON; the kind, the config and the SHA-256 of the
        weights are added.
    """
    path = Path(path)
    if path.suffix != SUFFIX:
        raise InputError(f"the weights file {path} does not end in {SUFFIX}", f"give a name that ends in {SUFFIX}")
    halves = {}
    for name, array in sorted(arrays.items()):
        with np.errstate(over="ignore"):
            halves[name] = np.asarray(array, dtype="<f2", order="C")
        if not np.isfinite(halves[name]).all():
            raise InputError(f"the weights {name} do not fit float16", "train with a smaller step size")
    settings = {**config, "attributes": ATTRIBUTES}
    metadata = {"format": FORMAT, "kind": kind, "config": json.dumps(settings, sort_keys=True)}
    data = _serialized(halves, metadata)
    record = {"format": FORMAT, "kind": kind, **config, **card, "sha256": hashlib.sha256(data).hexdigest()}
    written: dict[Path, str | bytes] = {path: data, path.with_suffix(".json"): to_json(record)}
    write_atomic(written)
    return list(written)


def shipped() -> list[str]:
    """Names of the weights that come with this package, sorted."""
    if not _FOLDER.is_dir():
        return []
    return sorted(entry.name.removesuffix(SUFFIX) for entry in _FOLDER.iterdir() if entry.name.endswith(SUFFIX))


def load(name_or_path: str | Path, kinds: Sequence[Kind] = get_args(Kind)) -> Weights:
    """Read weights. Raises InputError for no such file, a damaged one, one of another format or
    version, another kind of network, or one for another language; shipped weights are not those of
    their model card.

    Parameters
    ----------
    name_or_path : a name of shipped weights, such as lines-4, or a file that ends in .safetensors.
    kinds : kinds of networks that the caller can run.
    """
    text = str(name_or_path)
    is_file = text.endswith(SUFFIX) or Path(text).is_file()
    if not is_file and text not in shipped():
        problem = f"there are no weights {text!r}"
        raise InputError(problem, f"give a file ending in {SUFFIX}, or one of {', '.join(shipped()) or 'none'}")
    data = _read(Path(text) if is_file else _FOLDER / f"{text}{SUFFIX}", text)
    digest = hashlib.sha256(data).hexdigest()
    if not is_file and digest != card(text).get("sha256"):
        raise InputError("these weights are not those of their model card", "install thesis-cli anew", source=text)
    try:
        return _weights(data, text, digest, kinds)
    except InputError as error:
        raise error.at(text) from None


def card(name_or_path: str | Path) -> dict[str, Any]:
    """The model card of weights. Raises InputError if there is none, or it cannot be read."""
    text = str(name_or_path)
    path = Path(text).with_suffix(".json") if text.endswith(SUFFIX) else _FOLDER / f"{text}.json"
    try:
        found = json.loads(_read(path, text))
    except ValueError as error:
        if isinstance(error, InputError):
            raise
        found = None
    if not isinstance(found, dict) or found.get("format") != FORMAT:
        raise InputError("its model card cannot be read", _REMEDY, source=text)
    return found


def _read(path: Path | Traversable, source: str) -> bytes:
    try:
        with path.open("rb") as file:
            data = file.read(MAX_BYTES + 1)
    except OSError as error:
        raise InputError(f"it cannot be read ({error.strerror})", _REMEDY, source=source) from None
    if len(data) > MAX_BYTES:
        raise InputError(f"it is larger than {MAX_BYTES >> 20} MiB", _REMEDY, source=source)
    return data


def _serialized(arrays: Mapping[str, npt.NDArray[np.float16]], metadata: Mapping[str, str]) -> bytes:
    """The bytes of a safetensors file; the package of that name writes metadata in random order."""
    header: dict[str, Any] = {"__metadata__": metadata}
    end = 0
    for name, array in arrays.items():
        header[name] = {"dtype": "F16", "shape": array.shape, "data_offsets": [end, end + array.nbytes]}
        end += array.nbytes
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    return b"".join([len(text).to_bytes(8, "little"), text, *(array.tobytes() for array in arrays.values())])


def _weights(data: bytes, name: str, digest: str, kinds: Sequence[Kind]) -> Weights:
    """The weights of a file's bytes; its name is not in the errors yet."""
    from safetensors import SafetensorError
    from safetensors.numpy import load as entries_of

    try:
        entries = entries_of(data)
        start = 8 + int.from_bytes(data[:8], "little")
        metadata = json.loads(data[8:start]).get("__metadata__") or {}
    except (SafetensorError, ValueError):
        raise InputError("it is not a whole safetensors file", _REMEDY) from None
    if metadata.get("format") != FORMAT:
        known = f"its format is {metadata['format']!r}" if "format" in metadata else "it does not name its format"
        raise InputError(known, f"it must be {FORMAT!r}: {_REMEDY}")
    kind = next((kind for kind in kinds if kind == metadata.get("kind")), None)
    if kind is None:
        raise InputError(f"its network is of the kind {metadata.get('kind')!r}", f"it must be {' or '.join(kinds)}")
    sizes, semantics, training = _config(metadata.get("config", ""))
    for key, array in entries.items():
        if array.dtype != np.float16 or not np.isfinite(array).all():
            raise InputError(f"its array {key} is not of finite numbers in float16", _REMEDY)
    arrays = {key: array.astype(np.float32) for key, array in entries.items()}
    return Weights(name, kind, sizes, semantics, training, arrays, digest)


def _config(text: str) -> tuple[Mapping[str, int], Semantics, Mapping[str, Any]]:
    """Sizes, semantics and facts of the training, from the metadata of a file."""
    try:
        config = json.loads(text)
        sizes, semantics, training = config["sizes"], config["semantics"], config["training"]
        found = Semantics(**{key: semantics[key] for key in DEFAULT.numbers})
        whole = [*sizes.values(), found.low, found.high, found.longest]
        if not all(type(value) is int for value in whole) or not isinstance(training, dict):
            raise ValueError
    except (ValueError, TypeError, LookupError, AttributeError):
        raise InputError("its config cannot be read", _REMEDY) from None
    if config.get("attributes") != list(ATTRIBUTES):
        raise InputError("its network predicts other functions and lambdas", f"it must predict the {len(ATTRIBUTES)}")
    return sizes, found, training
