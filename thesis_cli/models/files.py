"""Open a model file, whatever its format; `-` is standard input."""

from __future__ import annotations

import sys
from pathlib import Path

from thesis_cli.base.errors import InputError
from thesis_cli.models import bif, fg, uai, vector
from thesis_cli.models.factor_graph import FactorGraph, Model
from thesis_cli.models.tokens import is_number

FORMATS = ("uai", "fg", "bif", "csv", "npy", "npz")
"""Names of formats, which are also the extensions of their files."""

MAX_BYTES = 2**28
"""Largest text or NPZ file that is read. NPY files are mapped, of any size."""

MAX_EVIDENCE = 2**24
"""Largest evidence file that is read."""


def load_model(
    path: str | Path,
    format: str | None = None,
    evidence: str | Path | None = None,
    probabilities: bool = False,
) -> Model:
    """Read a model.

    Parameters
    ----------
    path : UAI (MARKOV or BAYES), libDAI's FG, BIF, or a vector of log-potentials as CSV, NPY or NPZ; `-` reads
        standard input.
    format : one of `FORMATS`; by default told from the extension, else from the first bytes (but for FG, which
        begins with a number as CSV does).
    evidence : a UAI evidence file, which conditions a factor graph.
    probabilities : the entries of a vector are probabilities up to a factor, not their logarithms (the potentials
        of a factor graph are what they are). Those of an NPY file are checked as they are read.

    Raises
    ------
    InputError : naming file, line, what is wrong and what would be right.
    """
    name = "standard input" if str(path) == "-" else str(path)
    try:
        data = _read(path, format)
        if data is None:
            return _refuse_evidence(vector.map_npy(path, probabilities), evidence, name)
        kind = format or _format_of(path, data, name)
        if kind == "npz":
            return _refuse_evidence(vector.parse_npz(data, name, MAX_BYTES, probabilities), evidence, name)
        if kind == "npy":
            return _refuse_evidence(vector.parse_npy(data, name, probabilities), evidence, name)
        text = _decode(data, name)
        if kind == "csv":
            return _refuse_evidence(vector.parse_csv(text, name, probabilities), evidence, name)
        graph = {"uai": uai.parse, "fg": fg.parse, "bif": bif.parse}[kind](text, name)
    except OSError as error:
        raise _unreadable(error, name) from error
    except InputError as error:
        raise error.at(name) from error
    return graph if evidence is None else _condition(graph, evidence)


def _read(path: str | Path, format: str | None) -> bytes | None:
    """The bytes of the file, or None for an NPY file, which is mapped instead."""
    if str(path) == "-":
        if sys.stdin is None:
            raise InputError("is closed", "a model is wanted there")
        data = sys.stdin.buffer.read(MAX_BYTES + 1)
    else:
        with open(path, "rb") as file:
            if vector.is_npy(file.read(8)) and format in (None, "npy"):
                return None
        return _read_whole(path, MAX_BYTES, "write a vector as NPY, which is read a block at a time")
    if len(data) > MAX_BYTES:
        raise _too_large("standard input", MAX_BYTES, "write a vector as an NPY file")
    return data


def _read_whole(path: str | Path, most: int, remedy: str = "a small text file is wanted") -> bytes:
    """The bytes of a file, refused beyond `most`."""
    with open(path, "rb") as file:
        data = file.read(most + 1)
    if len(data) > most:
        raise _too_large(str(path), most, remedy)
    return data


def _too_large(name: str, most: int, remedy: str) -> InputError:
    return InputError(f"the file is larger than {most >> 20} MiB", remedy, source=name)


def _format_of(path: str | Path, data: bytes, name: str) -> str:
    extension = Path(path).suffix.lower().lstrip(".")
    if extension in FORMATS:
        return extension
    if vector.is_npy(data):
        return "npy"
    if data[:4] == b"PK\x03\x04":
        return "npz"
    words = data[:4096].split()
    first = words[0].upper() if words else b""
    if first in (b"MARKOV", b"BAYES") or first.startswith(b"#"):
        return "uai"
    if first.startswith((b"NETWORK", b"//", b"/*")):
        return "bif"
    if not first or first[:1] in b"0123456789+-.INE":
        return "csv"
    second = data[:4096].split(b"\n")[1:2]
    if second and is_number(second[0].decode(errors="replace")):
        return "csv"  # a heading, then numbers
    raise InputError(
        f"the format is not told by the name, nor by the first word {words[0][:20].decode(errors='replace')!r}",
        f"give --format {'|'.join(FORMATS)}",
        source=name,
    )


def _decode(data: bytes, name: str) -> str:
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise InputError("not text", "a UAI, FG, BIF or CSV file is text", source=name, line=line) from error


def _condition(graph: FactorGraph, evidence: str | Path) -> FactorGraph:
    name = str(evidence)
    try:
        text = _decode(_read_whole(evidence, MAX_EVIDENCE), name)
        return graph.condition(uai.parse_evidence(text, graph.cardinalities, name))
    except OSError as error:
        raise _unreadable(error, name, "an evidence file is wanted") from error
    except InputError as error:
        raise error.at(name) from error


def _refuse_evidence(model: Model, evidence: str | Path | None, name: str) -> Model:
    if evidence is not None:
        raise InputError("evidence wants variables, this is a vector", "drop --evidence", source=name)
    return model


def _unreadable(error: OSError, name: str, remedy: str = "a model file is wanted") -> InputError:
    return InputError(f"cannot be read ({(error.strerror or str(error)).lower()})", remedy, source=name)
