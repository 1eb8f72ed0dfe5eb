"""Models from files of any format, `-` being standard input, and from Python objects; both may be given evidence."""

from __future__ import annotations

import codecs
import math
import re
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from thesis_cli.base.errors import InputError
from thesis_cli.base.files import is_npy
from thesis_cli.models import networks, vector
from thesis_cli.models.evidence import condition
from thesis_cli.models.factor_graph import FactorGraph, LogPotentials, Model
from thesis_cli.models.tokens import decode, is_number, too_large, unreadable

VECTORS = ("csv", "npy", "npz")
FORMATS = ("uai", "fg", "bif", "cnf", "xmlbif", "net", "xdsl", *VECTORS)
"""Names of the formats, which are also the extensions of their files."""

MAX_BYTES = 2**28
"""Size of the largest text or NPZ file that is read; NPY files are mapped and have no limit."""


def load_model(
    path: str | Path,
    format: str | None = None,
    evidence: str | Path | Sequence[str | Path] | None = None,
    probabilities: bool = False,
) -> Model:
    """Read a model.

    Parameters
    ----------
    path : UAI (MARKOV or BAYES), libDAI's FG, BIF, DIMACS CNF, XMLBIF, NET, XDSL, or a vector of
        log-potentials as CSV, NPY or NPZ; `-` reads standard input.
    format : one of `FORMATS`. By default the extension decides, else the first bytes, which detect
        every format but FG: it begins with a number, as CSV does.
    evidence : observations that condition a factor graph, each `NAME=STATE` (names or numbers) or a
        UAI evidence file; see `evidence.condition`.
    probabilities : read the entries of a vector as probabilities up to a constant factor, not as
        log-potentials. The entries of an NPY file are checked when they are read. A factor graph is
        read as without it.

    Raises
    ------
    InputError : the message gives file, line, what is wrong and what would be right.
    """
    name = "standard input" if str(path) == "-" else str(path)
    try:
        model = _parse(path, format, name, probabilities)
        return conditioned(model, [evidence] if isinstance(evidence, str | Path) else evidence)
    except OSError as error:
        raise unreadable(error, name, "give a model file") from error
    except InputError as error:
        raise error.at(name) from error


def conditioned(model: Model, evidence: Sequence[str | Path] | None) -> Model:
    """A model given some evidence, as for `load_model`.

    Raises
    ------
    InputError : a vector is given evidence, or `evidence.condition` refuses it.
    """
    if not evidence:
        return model
    if isinstance(model, LogPotentials):
        raise InputError("a vector has no variables to observe", "leave --evidence out")
    return condition(model, evidence)


def _parse(path: str | Path, format: str | None, name: str, probabilities: bool) -> Model:
    data = _read(path, format)
    kind = "npy" if data is None else format or _format_of(path, data, name)
    if data is not None and kind not in VECTORS:
        return _parser(kind)(decode(data, name), name)
    if data is None:
        return vector.map_npy(path, probabilities)
    if kind == "npz":
        return vector.parse_npz(data, name, MAX_BYTES, probabilities)
    if kind == "npy":
        return vector.parse_npy(data, name, probabilities)
    return vector.parse_csv(decode(data, name), name, probabilities)


def _parser(kind: str) -> Callable[[str, str], FactorGraph]:
    """(text, name of the file) -> graph, for a format of graphs; imports that format alone."""
    if kind == "uai":
        from thesis_cli.models.uai import parse
    elif kind == "fg":
        from thesis_cli.models.fg import parse
    elif kind == "bif":
        from thesis_cli.models.bif import parse
    elif kind == "cnf":
        from thesis_cli.models.cnf import parse
    else:
        return lambda text, name: networks.parse(kind, text)
    return parse


def _read(path: str | Path, format: str | None) -> bytes | None:
    """The bytes of the file, or None for an NPY file, which is mapped instead. A pipe can be read but once."""
    if str(path) == "-":
        if sys.stdin is None:
            raise InputError("is closed", "write a model to it")
        data = sys.stdin.buffer.read(MAX_BYTES + 1)
        name, remedy = "standard input", "write the vector to an NPY file"
    else:
        with open(path, "rb") as file:
            head = file.read(8)
            if is_npy(head) and format in (None, "npy") and file.seekable():
                return None
            data = head + file.read(MAX_BYTES + 1 - len(head))
        name, remedy = str(path), "write a vector as NPY, which is read a block at a time"
    if len(data) > MAX_BYTES:
        raise too_large(name, MAX_BYTES, remedy)
    return data


def _format_of(path: str | Path, data: bytes, name: str) -> str:
    extension = Path(path).suffix.lower().lstrip(".")
    if extension in FORMATS:
        return extension
    if is_npy(data):
        return "npy"
    if data[:4] == b"PK\x03\x04":
        return "npz"
    data = data.removeprefix(codecs.BOM_UTF8)
    words = data[:4096].split()
    first = words[0].upper() if words else b""
    if first in (b"MARKOV", b"BAYES") or first.startswith(b"#"):
        return "uai"
    if first.startswith((b"NETWORK", b"//", b"/*")):
        return "bif"
    if first.startswith(b"<"):
        return "xdsl" if b"<smile" in data[:4096] else "xmlbif"
    if first.startswith(b"NET"):
        return "net"
    if re.search(rb"^p[ \t]+cnf\b", data[:4096], re.MULTILINE):
        return "cnf"
    if not first or first[:1] in b"0123456789+-.INE":
        return "csv"
    second = data[:4096].split(b"\n")[1:2]
    if second and is_number(second[0].decode(errors="replace")):
        return "csv"  # a heading, then numbers
    raise InputError(
        f"unknown format: the first word is {words[0][:20].decode(errors='replace')!r}",
        f"give --format {'|'.join(FORMATS)}",
        source=name,
    )


def model_of(source: Any, evidence: Sequence[str | Path] | None = None, probabilities: bool = False) -> Model:
    """The model that a Python object stands for.

    Parameters
    ----------
    source : a vector of log-potentials, shape (N,); a `FactorGraph` or `LogPotentials`; or a
        Bayesian network, Markov network or factor graph of pgmpy.
    evidence : observations that condition a model with variables, as for `load_model`.
    probabilities : the entries of a vector are probabilities up to a constant factor, not
        log-potentials.

    Raises
    ------
    InputError : the object is no model, its log-potentials may add up to more than a double holds, or
        the evidence does not go with it.
    """
    if isinstance(source, FactorGraph) and not math.isfinite(
        sum(max(float(f.table.max()), 0.0) for f in source.factors)
    ):
        raise InputError("log-potentials may add up to more than 1.8e308", "subtract a constant from a table")
    if isinstance(source, FactorGraph | LogPotentials):
        return conditioned(source, evidence)
    if is_pgmpy(source):
        return conditioned(networks.from_pgmpy(source), evidence)
    try:
        values = np.asarray(source)
    except (TypeError, ValueError):  # such as lists of different lengths
        values = np.asarray(None)
    if values.dtype.kind not in "fiu":
        raise InputError(f"an object of type {type(source).__name__} is no model", networks.KINDS)
    return conditioned(vector.model(values, "", probabilities), evidence)


def is_pgmpy(source: object) -> bool:
    """Whether an object is of a class of pgmpy, or one derived from it; pgmpy is not imported."""
    return any(kind.__module__.split(".")[0] == "pgmpy" for kind in type(source).__mro__)
