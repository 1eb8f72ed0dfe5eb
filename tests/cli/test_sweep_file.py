"""Sweep files: the tasks they list, the command lines of those, and what is refused."""

import itertools
import json
import re
import tracemalloc

import pytest

from tests.cli.test_app import COMMANDS as ALL_COMMANDS
from thesis_cli.base.errors import InputError
from thesis_cli.cli.sweep_file import COMMANDS, arguments, read_sweep
from thesis_cli.reproduction.task_file import Entry


@pytest.fixture
def sweep(tmp_path):
    def read(text):
        path = tmp_path / "sweep.toml"
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return read_sweep(path)

    return read


GLASSES = """
command = "spin-glass"
seeds = 2
out = "tables/glasses.csv"
[options]
samples = 100
any-alpha = true
alpha = [0, -0.5]
[grid]
coupling = [0.5, 1]
kind = ["attractive", "mixed"]
[slurm]
partition = "short"
time = 30
"""


def test_the_last_option_varies_fastest_and_the_seed_fastest_of_all(sweep, tmp_path):
    read = sweep(GLASSES)
    fixed = {"samples": 100, "any_alpha": True, "alpha": [0, -0.5]}
    expected = [
        Entry("spin-glass", {**fixed, "coupling": c, "kind": k}, seed)
        for c, k, seed in itertools.product([0.5, 1], ["attractive", "mixed"], [0, 1])
    ]
    assert list(read.entries()) == expected
    assert len(read) == 8
    assert (read.out, read.folder) == (tmp_path / "tables/glasses.csv", tmp_path)
    assert read.slurm == {"partition": "short", "time": 30}


def test_keys_are_in_the_order_of_the_file(sweep):
    assert list(next(sweep(GLASSES).entries()).parameters) == ["samples", "any_alpha", "alpha", "coupling", "kind"]


def test_grids_follow_one_another(sweep):
    read = sweep(
        'command = "spin-glass"\n[[grid]]\ncoupling = [1, 2]\n[[grid]]\ncoupling = [3]\nfield = [0.1]\n[[grid]]\n'
        "coupling = [1, 2]\nfield = [0.1, 0.2]"
    )
    found = [(e.parameters.get("coupling"), e.parameters.get("field")) for e in read.entries()]
    assert found == [(1, None), (2, None), (3, 0.1), (1, 0.1), (1, 0.2), (2, 0.1), (2, 0.2)]
    assert len(read) == 7


@pytest.mark.parametrize(
    ("command", "given", "seeds"),
    [
        ("spin-glass", "", [0]),
        ("spin-glass", "seeds = 3", [0, 1, 2]),
        ("spin-glass", "seeds = [5, 3]", [5, 3]),
        ("dp-audit", "", [None]),
        ("dp-test", "seeds = [7]\n[options]\nrelease = 'r.csv'\nother = 'o.csv'", [7]),
    ],
)
def test_seeds(sweep, command, given, seeds):
    assert [entry.seed for entry in sweep(f'command = "{command}"\n{given}').entries()] == seeds


@pytest.mark.parametrize(
    ("table", "values"),
    [
        ("{ from = 0.1, to = 0.5, count = 5 }", [0.1, 0.2, 0.3, 0.4, 0.5]),
        ("{ from = 2, to = -1, count = 4 }", [2, 1, 0, -1]),
        ("{ from = 0, to = 1, count = 3 }", [0.0, 0.5, 1.0]),
        ("{ from = -0.7, to = 0.1, count = 9 }", [-0.7, -0.6, -0.5, -0.4, -0.3, -0.2, -0.1, 0.0, 0.1]),
        ("{ from = 1, to = 1000, count = 4, log = true }", [1, 10, 100, 1000]),
        ("{ from = 0.1, to = 10.0, count = 5, log = true }", [0.1, 0.316227766017, 1.0, 3.16227766017, 10.0]),
        ("{ from = 1.0, to = 2.0, count = 1 }", [1.0]),
    ],
)
def test_tables_make_lists(sweep, table, values):
    found = sweep(f'command = "spin-glass"\n[grid]\ncoupling = {table}').grids[0]["coupling"]
    assert found == values
    assert list(map(type, found)) == list(map(type, values))


def test_whole_numbers_stay_whole_for_options_that_want_them(sweep):
    found = sweep('command = "spin-glass"\n[grid]\nsamples = { from = 100, to = 400, count = 4 }').grids[0]["samples"]
    assert found == [100, 200, 300, 400]
    with pytest.raises(InputError, match=r"grid\.samples: 1\.[05]: .*integer"):
        sweep('command = "spin-glass"\n[grid]\nsamples = { from = 1, to = 2, count = 3 }')


def test_files_are_sorted_and_named_from_the_folder_of_the_sweep(sweep, tmp_path, monkeypatch):
    (tmp_path / "models").mkdir()
    for name in ("b.uai", "a.uai", "-c.uai", ".hidden.uai", "note.txt"):
        (tmp_path / "models" / name).touch()
    (tmp_path / "models" / "folder.uai").mkdir()
    monkeypatch.chdir("/")
    text = 'command = "map"\n[grid]\nmodel = { files = "%s" }'
    assert sweep(text % "models/*.uai").grids[0]["model"] == ["models/-c.uai", "models/a.uai", "models/b.uai"]
    absolute = f"{tmp_path}/models/[ab].uai"
    assert sweep(text % absolute).grids[0]["model"] == [f"{tmp_path}/models/{name}.uai" for name in "ab"]
    assert sweep(text % "**/b.uai").grids[0]["model"] == ["models/b.uai"]


def test_a_million_tasks_are_counted_and_listed_lazily(sweep):
    read = sweep(
        'command = "spin-glass"\nseeds = 1000\n[grid]\ncoupling = { from = 0.0, to = 1.0, count = 1000 }\n'
        "field = { from = 0.0, to = 1.0, count = 1000 }"
    )
    assert len(read) == 10**9
    tracemalloc.start()
    assert sum(1 for _ in itertools.islice(read.entries(), 100_000)) == 100_000
    assert tracemalloc.get_traced_memory()[1] < 2**20
    tracemalloc.stop()


def test_numbers_parse_back_exactly():
    for number in (0.1 + 0.2, 1e-300, -5e22, 2.5, 10**17 + 1):
        (word,) = arguments("spin-glass", {"coupling": number}, None)[1:]
        assert type(number)(word.removeprefix("--coupling=")) == number


@pytest.mark.parametrize(
    ("command", "parameters", "seed", "line"),
    [
        ("spin-glass", {}, None, []),
        ("spin-glass", {"alpha": [0, -0.04]}, 3, ["--alpha=0", "--alpha=-0.04", "--seed=3"]),
        ("spin-glass", {"any-alpha": True}, None, ["--any-alpha"]),
        ("spin-glass", {"any_alpha": False}, None, []),
        ("spin-glass", {"confidence_method": "normal"}, None, ["--confidence-method=normal"]),
        ("estimate-z", {"debias": False, "model": "-m.uai"}, None, ["--no-debias", "--", "-m.uai"]),
        ("estimate-z", {"debias": True}, None, ["--debias"]),
        ("synthesize", {"range": [-5, 5], "tasks": "t"}, None, ["--range", "-5", "5", "--", "t"]),
        ("dp-query", {"queries": ["-x", "var(x)"], "release": "r.csv"}, None, ["--", "r.csv", "-x", "var(x)"]),
        ("dp-query", {"queries": "mean(x)", "release": "r.csv"}, None, ["--", "r.csv", "mean(x)"]),
    ],
)  # fmt: skip
def test_command_lines(command, parameters, seed, line):
    assert arguments(command, parameters, seed) == [command, *line]


def test_a_command_line_means_what_the_parameters_say():
    """As the command itself parses it, also where values begin with a dash."""
    from thesis_cli.cli.command_work import click_command

    parameters = {"range": [-9, 9], "tasks": "--out", "prior": "--quiet", "memory": 0.5, "max_length": 3}
    context = click_command("synthesize").make_context("synthesize", arguments("synthesize", parameters, None)[1:])
    found = context.params
    assert (tuple(found["range"]), found["tasks"], found["prior"]) == ((-9, 9), "--out", "--quiet")
    assert (found["memory"], found["max_length"], found["out"], found["quiet"]) == (0.5, 3, None, False)


def test_sweeps_are_of_commands_that_write_tables():
    assert set(ALL_COMMANDS) - set(COMMANDS) >= {"make-corpus", "reproduce", "plot", "claims", "list"}
    assert set(COMMANDS) <= set(ALL_COMMANDS)


HEAD = 'command = "spin-glass"\n'
BAD = [
    ("", "no command; command = one of estimate-z"),
    ('comand = "map"', "unknown key 'comand'; 'command' is nearest"),
    ("command = 3", "command = 3; one of estimate-z"),
    ('command = "spinglass"', "command: no command 'spinglass'; 'spin-glass' is nearest"),
    ('command = "make-corpus"', "command: make-corpus writes no table"),
    ('command = "reproduce"', "command: reproduce writes no table"),
    (HEAD + "samples = 3", r"samples stands at the top; options go under \[options\]"),
    (HEAD + "seed = 3", "unknown key 'seed'; 'seeds' is nearest"),
    (HEAD + "options = 3", r"options is no table; \[options\] is wanted"),
    (HEAD + "grid = 3", "grid is no table"),
    (HEAD + "grid = []", "grid: an empty list"),
    (HEAD + "slurm = 'short'", "slurm is no table"),
    (HEAD + "out = 'x.txt'", r'out = "x\.txt"; a file name that ends in \.csv'),
    (HEAD + "seeds = 0", "seeds = 0; how many, 1 to"),
    (HEAD + "seeds = true", "seeds = true"),
    (HEAD + "seeds = []", r"seeds = \[\]"),
    (HEAD + "seeds = [1, -1]", "seeds: -1; whole numbers from 0"),
    (HEAD + "seeds = [1, 1.0]", r"seeds: 1\.0; whole"),
    (HEAD + "seeds = [4, 2, 4]", "seeds: 4 stands there twice"),
    (HEAD + "seeds = 1" + "0" * 40, "seeds = 1000"),
    (HEAD + "seeds = 1000_000_000\n[grid]\nfield = [0, 1]", "2,000,000,000 tasks; at most 1,000,000,000"),
    ('command = "dp-audit"\nseeds = 2', "seeds: the command has no --seed"),
    (HEAD + "[options]\ncouplng = 1", r"options\.couplng: spin-glass has no option 'couplng'; 'coupling' is nearest"),
    (HEAD + "[options]\nsamples = 'many'", r'options\.samples: "many": .*integer'),
    (HEAD + "[options]\nsamples = 0", r"options\.samples: 0: .*(greater than or equal to 1|range)"),
    (HEAD + "[options]\nsamples = true", r"options\.samples: true for an option that is no flag"),
    (HEAD + "[options]\nsamples = [1, 2]", r"options\.samples: \[1, 2\]; one value is wanted; under \[grid\]"),
    (HEAD + "[options]\nsamples = { from = 1 }", r"options\.samples: .*; a string, a number or a boolean"),
    (HEAD + "[options]\nsamples = 1979-05-27", r"options\.samples: .*1979-05-27.*; a string, a number"),
    (HEAD + "[options]\nalpha = []", r"options\.alpha: an empty list"),
    (HEAD + "[options]\nalpha = [[1]]", r"options\.alpha: \[1\]; a string"),
    (HEAD + "[options]\ncoupling = inf", r'options\.coupling: inf; a finite number is wanted \(where .*"inf"\)'),
    (HEAD + "[options]\ncoupling = nan", r"options\.coupling: nan"),
    (HEAD + "[options]\nany-alpha = 1", r"options\.any-alpha: 1 for a flag; true or false"),
    (HEAD + "[options]\nany-alpha = true\nany_alpha = true", r"options\.any_alpha: stands there twice"),
    (HEAD + "[options]\nkind = 'hot'", r"options\.kind: \"hot\": .*'attractive', 'mixed'"),
    (HEAD + "[options]\nkind = \"mi\\u0000xed\"", r"options\.kind: .*cannot be printed"),
    ('command = "synthesize"\n[options]\nrange = [1]', r"options\.range: \[1\]; a list of 2 values"),
    ('command = "synthesize"\n[options]\nrange = 1', r"options\.range: 1; a list of 2 values"),
    ('command = "map"\n[options]\nmodel = "-"', r"options\.model: - is standard input"),
    ('command = "renyi"', "options: Missing argument '(model|MODEL)'; see thesis-cli renyi --help"),
    (HEAD + "[options]\nfield = 1\n[grid]\nfield = [1, 2]", r"grid\.field: stands there twice"),
    (HEAD + "[grid]\nfield = []", r"grid\.field: an empty list"),
    (HEAD + "[grid]\nfield = 3", r"grid\.field: 3 alone; a list of values"),
    (HEAD + "[grid]\nfield = [1, 2, 1.0]", r"grid\.field: 1\.0 stands there twice"),
    (HEAD + "[grid]\nfield = [0.5, '0.5']", r'grid\.field: "0\.5" stands there twice'),
    (HEAD + "[grid]\nfield = [1, 'x', 2]", r'grid\.field: "x": .*number|grid\.field: "x": .*float'),
    (HEAD + "[grid]\nalpha = [[0, 1], [0, 1]]", r"grid\.alpha: \[0, 1\] stands there twice"),
    (HEAD + "[grid]\nany-alpha = [true, true]", r"grid\.any-alpha: true stands there twice"),
    (HEAD + "[[grid]]\nfield = [1]\n[[grid]]\nfeld = [1]", r"grid\[2\]\.feld: spin-glass has no option 'feld'"),
    (HEAD + "[[grid]]\nfield = [1, 2]\n[[grid]]\nfield = [2.0]", r"grid\[1\] and grid\[2\] have a task in common"),
    (HEAD + "[grid]\nfield = { from = 1, to = 2 }", r"grid\.field: no count; from, to and count are wanted"),
    (HEAD + "[grid]\nfield = { form = 1, to = 2, count = 3 }", r"grid\.field: unknown key 'form'; 'from' is nearest"),
    (HEAD + "[grid]\nfield = { from = 1, to = 2, count = 0 }", r"grid\.field: count = 0; a whole number from 1"),
    (HEAD + "[grid]\nfield = { from = 1, to = 2, count = 2.5 }", r"grid\.field: count = 2\.5"),
    (HEAD + "[grid]\nfield = { from = 1, to = 2, count = 1000000000000 }", r"grid\.field: count = 1000000000000"),
    (HEAD + "[grid]\nfield = { from = 1, to = inf, count = 3 }", r"grid\.field: to = Infinity; a finite number"),
    (HEAD + "[grid]\nfield = { from = true, to = 2, count = 3 }", r"grid\.field: from = true; a finite number"),
    (HEAD + f"[grid]\nfield = {{ from = 1, to = {10**400}, count = 3 }}", r"grid\.field: to = 1000"),
    (HEAD + "[grid]\nfield = { from = 0, to = 2, count = 3, log = true }", r"grid\.field: log = true from 0 to 2"),
    (HEAD + "[grid]\nfield = { from = 1, to = 2, count = 3, log = 1 }", r"grid\.field: log = 1; true or false"),
    (HEAD + "[grid]\nfield = { from = 1.0, to = 1.0, count = 2 }", r"grid\.field: 1\.0 stands there twice"),
    ('command = "map"\n[grid]\nmodel = { files = "no/*.uai" }', r"grid\.model: no file fits no/\*\.uai"),
    ('command = "map"\n[grid]\nmodel = { files = 3 }', r"grid\.model: files = 3; a pattern"),
    ('command = "map"\n[grid]\nmodel = { files = "*", count = 3 }', r"grid\.model: unknown key 'count'"),
    (HEAD + "samples\n[grid]", None),
    ('command = "map"\n' + "x = " + "[" * 10_000, "no TOML"),
    ('command = "map"\n' + "x = " + "1" * 10_000, "no TOML"),
    ('command = "map"  # caf\xe9'.encode("latin-1"), "not text; a TOML file in UTF-8"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "message"), BAD)
def test_bad_files_are_refused_in_a_line_that_names_the_key(sweep, tmp_path, text, message):
    with pytest.raises(InputError) as refused:
        sweep(text)
    complaint = str(refused.value)
    place, complaint = complaint[: len(str(tmp_path / "sweep.toml"))], complaint[len(str(tmp_path / "sweep.toml")) :]
    assert place == str(tmp_path / "sweep.toml")
    if message is None:
        assert complaint.startswith(":2: no TOML: ")
    else:
        assert re.match(f": {message}", complaint), complaint


@pytest.mark.parametrize(
    ("command", "option", "why"),
    [
        *(("estimate-z", name, "") for name in ("out", "json", "quiet", "verbose", "debug", "jobs", "figure", "help")),
        ("estimate-z", "seed", "seeds at the top"),
        ("spin-glass", "save", "its table and no other file"),
        ("spin-glass", "sweep", r"couplings under \[grid\]"),
        ("synthesize", "run", "writes no table"),
        ("dp-release", "init-schema", "no other file"),
        ("dp-release", "ledger", "lock holds on one machine only; divide the budget"),
        ("dp-query", "holdout", "go into no file"),
    ],
)
@pytest.mark.parametrize("table", ["options", "grid"])
def test_options_that_no_task_has(sweep, command, option, why, table):
    value = "['x']" if table == "grid" else "'x'"
    with pytest.raises(InputError, match=f"{table}.{option}: {option} is not for the tasks of a sweep; .*{why}"):
        sweep(f'command = "{command}"\n[{table}]\n{option} = {value}')


def test_no_file(tmp_path):
    with pytest.raises(InputError, match=r"no\.toml: cannot be read \(no such file"):
        read_sweep(tmp_path / "no.toml")
    with pytest.raises(InputError, match="cannot be read"):
        read_sweep(tmp_path)


def test_entries_are_json(sweep):
    for entry in sweep(GLASSES).entries():
        assert Entry(**json.loads(json.dumps(entry._asdict()))) == entry
