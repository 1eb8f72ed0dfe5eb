"""Damaged files of every format: what reads them succeeds, or ends in one line that names them.

The long tier damages each file 20,000 times for its reader and 300 times for each command;
`FUZZ=1000 pytest tests/test_damaged_files.py` asks for other numbers.
"""

from __future__ import annotations

import gzip
import io
import os
import resource
import signal
import tempfile
import warnings
from pathlib import Path

import numpy as np
import pytest

from tests.conftest import MODELS, ROOT
from tests.fuzzing import damaged
from tests.synthesis.networks.random_weights import random_weights
from tests.tiers import is_long
from thesis_cli.base.errors import InputError
from thesis_cli.cli.app import main
from thesis_cli.learning.grid_model import GridWeights
from thesis_cli.learning.shared_model import SharedLayout, load_weights
from thesis_cli.learning.values import Values
from thesis_cli.models.evidence import condition
from thesis_cli.models.factor_matrix import load_factor_matrix
from thesis_cli.models.files import load_model
from thesis_cli.models.targets import load_regression
from thesis_cli.privacy.accounting import ledger
from thesis_cli.privacy.accounting.chain import Book, LedgerEntry
from thesis_cli.privacy.release.files import read_record, read_release
from thesis_cli.privacy.tables.schema import Schema
from thesis_cli.privacy.tables.table import encoded_rows, open_table
from thesis_cli.reproduction.sweep_file import read_sweep
from thesis_cli.reproduction.tasks import head
from thesis_cli.synthesis.language.dsl import Semantics
from thesis_cli.synthesis.language.task import load_tasks
from thesis_cli.synthesis.networks.network_guide import network_guide

READS = int(os.environ.get("FUZZ", 20_000 if is_long() else 12))
RUNS = int(os.environ.get("FUZZ", 300 if is_long() else 2))

SECONDS = 120
"""Longest processor time for one file; the first use of a command compiles."""

MEMORY = 2**20
"""Most KiB that reading damaged files may add to the memory of the process."""

DATA = ROOT / "data"


def saved(save, *values, **named):
    stream = io.BytesIO()
    save(stream, *values, **named)
    return stream.getvalue()


def weights():
    with tempfile.TemporaryDirectory() as folder:
        narrow = Semantics(low=-2, high=2, longest=2)
        return random_weights(Path(folder) / "w.safetensors", narrow, embedding=1, units=2).read_bytes()


def lines(path, count):
    return b"".join(path.read_bytes().splitlines(keepends=True)[:count])


VECTOR = np.linspace(-1, 1, 20)
SCHEMA = (DATA / "tables" / "people.toml").read_bytes()
SPENT = ledger.Spend(0.5, 1e-7, 0.01, "first", "2026-01-01T00:00:00+00:00")
LEDGER = Book.of((LedgerEntry("people", ledger.Budget(2.0, 1e-6), "zCDP", SPENT),) * 2).to_json().encode()
TASKS = b"""[
{"command": "estimate-z", "parameters": {"model": "m.uai", "samples": 9}, "seed": 0},
{"command": "estimate-z", "parameters": {"model": "m.uai", "samples": 9}, "seed": 1}
]
"""
SMALL_UAI = b"""MARKOV
3
2 3 2
4
1 0
2 0 1
2 1 2
0

2 0.5 1e-3
6 1 2 3 4 5.5 6
6 0 1 0 1 1 0
1 2.5
"""
SMALL_BIF = b"""// a comment
network "small one" { property p = 1; }
variable a { type discrete [ 2 ] { yes, no }; }
variable "b c" {
  type discrete [ 3 ] { <5, "5 to 12", 12+ };
}
probability ( a ) { table 0.25, 7.5e-1; }
probability ( "b c" | a ) {
  (yes) 0.1, 0.2, 0.7; /* as
  published */
  default 1 0 0;
}
"""
FG = b"2\n\n1\n0\n2\n2\n0 0.5\n1 2\n\n2\n0 5\n2 3\n3\n0 1\n3 2e-3\n5 1\n"
CNF = b"c t wmc\np cnf 3 2\nc p weight 1 .25 0\nc p weight -1 3/4 0\n1 -2 0\n-3 2 1 0\n"

FILES = {
    "v.npy": saved(np.save, VECTOR),
    "v.npz": saved(np.savez, VECTOR),
    "c.npz": saved(np.savez_compressed, log_potentials=VECTOR, other=VECTOR),
    "f.npy": saved(np.save, VECTOR.reshape(4, 5)),
    "v.csv": b"log_potential\n0.5\n-inf\n-2\n1e-3\n",
    "m.uai": SMALL_UAI,
    "m.evid": b"2 0 1\n2 1\n",
    "m.fg": FG,
    "m.bif": SMALL_BIF,
    "m.cnf": CNF,
    "asia.bif": (MODELS / "asia.bif").read_bytes(),
    "line.csv": (MODELS / "line.csv").read_bytes(),
    "people.csv": lines(DATA / "tables" / "people.csv", 40),
    "people.csv.gz": gzip.compress(lines(DATA / "tables" / "people.csv", 40).replace(b",", b";"), mtime=0),
    "people.toml": SCHEMA,
    "sweep.toml": (DATA / "sweeps" / "glasses.toml").read_bytes(),
    "r.csv": lines(DATA / "releases" / "people.csv", 40),
    "r.json": (DATA / "releases" / "people.json").read_bytes(),
    "ledger.json": LEDGER,
    "tasks.json": TASKS,
    "t.json": (DATA / "tasks" / "candy.json").read_bytes(),
    "t.jsonl": lines(DATA / "tasks" / "all.jsonl", 2),
    "w.safetensors": weights(),
    "grid.safetensors": GridWeights(np.ones((3, 2)), np.ones((3, 1)), np.ones((2, 2))).to_bytes(),
    "shared.safetensors": SharedLayout(3, 2, 3, 1).model(np.ones(23), {"values": Values().write()}).to_bytes(),
}

READERS = {
    "v.npy": lambda path: load_model(path, probabilities=False),
    "v.npz": load_model,
    "c.npz": load_model,
    "f.npy": load_factor_matrix,
    "v.csv": load_model,
    "m.uai": load_model,
    "m.evid": lambda path: condition(load_model(MODELS / "asia.uai"), [path]),
    "m.fg": load_model,
    "m.bif": load_model,
    "m.cnf": load_model,
    "asia.bif": load_model,
    "line.csv": load_regression,
    "people.csv": lambda path: list(encoded_rows(open_table(path), Schema.parse(SCHEMA.decode()))),
    "people.csv.gz": lambda path: list(encoded_rows(open_table(path), Schema.parse(SCHEMA.decode()))),
    "people.toml": Schema.load,
    "sweep.toml": read_sweep,
    "r.csv": read_release,
    "r.json": read_record,
    "ledger.json": lambda path: [account.left() for account in ledger.Ledger(path).accounts().values()],
    "tasks.json": head,
    "t.json": load_tasks,
    "t.jsonl": load_tasks,
    "w.safetensors": network_guide,
    "grid.safetensors": load_weights,
    "shared.safetensors": lambda path: Values.read(load_weights(path).about),
}

FEW = ["--samples", "5", "--seed", "1"]
RELEASE = ["dp-release", "--epsilon", "1", "--delta", "1e-7", "--rows", "5", "--out", "o.csv"]
COMMANDS = {
    "v.npy": [
        ["estimate-z", *FEW],
        ["renyi", "--log-z", "exact", *FEW],
        ["map"],
        ["sample", "--count", "3", "--seed", "1"],
    ],
    "c.npz": [["estimate-z", *FEW], ["map"]],
    "f.npy": [["race", "--samples", "5", "--seed", "1"]],
    "v.csv": [["estimate-z", "--exact", *FEW]],
    "m.uai": [["estimate-z", *FEW], ["map"], ["marginals"], ["bound", *FEW]],
    "m.evid": [["map", str(MODELS / "asia.uai"), "--evidence"]],
    "m.bif": [["map"], ["marginals"], ["sample", "--count", "3", "--seed", "1"]],
    "line.csv": [["posterior", *FEW, "--regression"]],
    "people.csv": [[*RELEASE, "people.csv", "--schema", "people.toml"]],
    "people.toml": [[*RELEASE, "people.csv", "--schema"]],
    "ledger.json": [[*RELEASE, "people.csv", "--schema", "people.toml", "--limit", "2", "1e-6", "--ledger"]],
    "sweep.toml": [["sweep", "--dry-run"]],
    "r.csv": [["dp-query", "--replicates", "2", "mean(income)"]],
    "r.json": [["dp-query", "--replicates", "2", "mean(income)"]],
    "tasks.json": [["run-task", "tasks.json", "0"]],
    "t.json": [["synthesize", "--max-length", "1"]],
}


@pytest.fixture(autouse=True)
def guarded(tmp_path, monkeypatch):
    """A folder with all files; a hang ends in an error, and so does a warning."""
    monkeypatch.chdir(tmp_path)
    for name, data in FILES.items():
        Path(name).write_bytes(data)

    def late(*_):
        raise RuntimeError(f"no end after {SECONDS} s")

    before = signal.signal(signal.SIGPROF, late)
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        warnings.simplefilter("error", UserWarning)
        warnings.simplefilter("error", SyntaxWarning)
        yield
    signal.setitimer(signal.ITIMER_PROF, 0)
    signal.signal(signal.SIGPROF, before)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - memory < MEMORY


def cases(name, count):
    """The whole file, which must be read, then damaged ones."""
    text = Path(name).suffix not in (".npy", ".npz", ".gz", ".safetensors")
    yield None, FILES[name]
    for seed in range(count):
        signal.setitimer(signal.ITIMER_PROF, SECONDS)
        yield seed, damaged(FILES[name], np.random.default_rng(seed), text)


@pytest.mark.parametrize("name", READERS)
def test_readers(name):
    refused = 0
    for seed, data in cases(name, READS):
        Path(name).write_bytes(data)
        problem = None
        try:
            READERS[name](Path(name))
        except InputError as error:
            refused += 1
            if seed is None or Path(name).stem not in str(error):
                problem = f"the message is {error}"
        except Exception as error:  # noqa: BLE001
            problem = f"{type(error).__name__}: {error}"
        assert not problem, f"seed {seed}: {problem}\n{data[:2000]!r}"
    assert refused >= READS / 20


@pytest.mark.parametrize(
    ("name", "command"),
    [(name, command) for name, commands in COMMANDS.items() for command in commands],
    ids=lambda part: part if isinstance(part, str) else part[0],
)
def test_commands(name, command, capsys):
    path = "r.csv" if name == "r.json" else name
    flag = command[-1].startswith("--") and command[-1] != "--exact" and command[-1] != "--dry-run"
    argv = command if path in command else [*command, path] if flag else [command[0], path, *command[1:]]
    for seed, data in cases(name, RUNS):
        Path(name).write_bytes(data)
        try:
            status = main(argv)
        except BaseException as error:  # noqa: BLE001
            pytest.fail(f"seed {seed}: {argv}: {type(error).__name__}: {error}\n{data[:2000]!r}")
        err = [line for line in capsys.readouterr().err.splitlines() if line.startswith(("error:", "Traceback"))]
        wrong = status in (1, 2) and len(err) == 1 and err[0].startswith("error: ")
        found = not err and (status == 0 or (status == 1 and command[0] == "synthesize"))  # 1: no program
        assert found or (wrong and seed is not None), f"seed {seed}: {argv}: status {status}, {err}\n{data[:2000]!r}"
