"""Sweep files: the tasks they list, and what is refused."""

import itertools
import json
import re
import tracemalloc

import pytest

from tests.reproduction.toy_command import toy  # noqa: F401
from thesis_cli.base.errors import InputError
from thesis_cli.reproduction import sweep_file
from thesis_cli.reproduction.sweep_file import read_sweep
from thesis_cli.reproduction.tasks import TaskSpec

pytestmark = pytest.mark.usefixtures("toy")

HEAD = 'command = "toy"\n'
MODEL = '[options]\nmodel = "m"\n'


@pytest.fixture
def sweep(tmp_path):
    def read(text):
        path = tmp_path / "sweep.toml"
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return read_sweep(path)

    return read


TOYS = """
command = "toy"
seeds = 2
out = "tables/toys.csv"
[options]
model = "m"
samples = 100
any-order = true
order = [0, 0.5]
[grid]
coupling = [0.5, 1]
method = ["auto", "slow"]
[slurm]
partition = "short"
time = 30
"""


def test_the_last_option_varies_fastest_and_the_seed_fastest_of_all(sweep, tmp_path):
    read = sweep(TOYS)
    fixed = {"model": "m", "samples": 100, "any_order": True, "order": [0, 0.5]}
    expected = [
        TaskSpec("toy", {**fixed, "coupling": c, "method": m}, seed)
        for c, m, seed in itertools.product([0.5, 1], ["auto", "slow"], [0, 1])
    ]
    assert list(read.entries()) == expected
    assert len(read) == 8
    assert (read.out, read.folder) == (tmp_path / "tables/toys.csv", tmp_path)
    assert read.slurm == {"partition": "short", "time": 30}


def test_keys_are_in_the_order_of_the_file(sweep):
    keys = ["model", "samples", "any_order", "order", "coupling", "method"]
    assert list(next(sweep(TOYS).entries()).parameters) == keys


def test_grids_follow_one_another(sweep):
    read = sweep(
        HEAD + MODEL + "[[grid]]\ncoupling = [1, 2]\n[[grid]]\ncoupling = [3]\nsamples = [1]\n[[grid]]\n"
        "coupling = [1, 2]\nsamples = [1, 2]"
    )
    found = [(e.parameters.get("coupling"), e.parameters.get("samples")) for e in read.entries()]
    assert found == [(1, None), (2, None), (3, 1), (1, 1), (1, 2), (2, 1), (2, 2)]
    assert len(read) == 7


@pytest.mark.parametrize(
    ("command", "given", "seeds"),
    [
        ("toy", "", [0]),
        ("toy", "seeds = 3", [0, 1, 2]),
        ("toy", "seeds = [5, 3]", [5, 3]),
        ("map", "", [None]),
    ],
)
def test_seeds(sweep, command, given, seeds):
    assert [entry.seed for entry in sweep(f'command = "{command}"\n{given}\n{MODEL}').entries()] == seeds


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
    found = sweep(f"{HEAD}{MODEL}[grid]\ncoupling = {table}").grids[0]["coupling"]
    assert found == values
    assert list(map(type, found)) == list(map(type, values))


def test_whole_numbers_stay_whole_for_options_that_take_them(sweep):
    found = sweep(HEAD + MODEL + "[grid]\nsamples = { from = 100, to = 400, count = 4 }").grids[0]["samples"]
    assert found == [100, 200, 300, 400]
    with pytest.raises(InputError, match=r"grid\.samples: --samples is 1\.[05]; .*whole"):
        sweep(HEAD + MODEL + "[grid]\nsamples = { from = 1, to = 2, count = 3 }")


def test_infinity_is_text_in_tasks(sweep):
    (entry,) = sweep(HEAD + MODEL + "coupling = -inf\norder = [1, inf]").entries()
    assert (entry.parameters["coupling"], entry.parameters["order"]) == ("-inf", [1, "inf"])


def test_files_are_sorted_and_start_from_the_folder_of_the_sweep(sweep, tmp_path, monkeypatch):
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
        f"{HEAD}seeds = 1000\n{MODEL}[grid]\ncoupling = {{ from = 0.0, to = 1.0, count = 1000 }}\n"
        "samples = { from = 1, to = 1000, count = 1000 }"
    )
    assert len(read) == 10**9
    tracemalloc.start()
    assert sum(1 for _ in itertools.islice(read.entries(), 100_000)) == 100_000
    assert tracemalloc.get_traced_memory()[1] < 2**20
    tracemalloc.stop()


def test_every_combination_is_checked_if_they_are_few(sweep, monkeypatch):
    text = f'{HEAD}{MODEL}order = [1]\n[grid]\nmethod = ["auto", "slow", "fast"]'
    with pytest.raises(InputError, match=r"grid: --order does not go with --method fast; it is for auto, slow"):
        sweep(text)
    monkeypatch.setattr(sweep_file, "MOST_CHECKED", 2)
    assert len(sweep(text)) == 3


BAD = [
    ("", "no command; command must be one of .*map"),
    ('comand = "map"', "unknown key 'comand'; 'command' is nearest"),
    ("command = 3", "command is 3; it must be one of"),
    ('command = "tay"', "command: no command 'tay'"),
    ('command = "unswept"', "command: unswept cannot be swept; it writes no table"),
    ('command = "reproduce"', "command: no command 'reproduce'"),
    (HEAD + "samples = 3", r"samples is at the top; options go under \[options\]"),
    (HEAD + "seed = 3", "unknown key 'seed'; 'seeds' is nearest"),
    (HEAD + "options = 3", r"options is not a table; write \[options\]"),
    (HEAD + "grid = 3", "grid is not a table"),
    (HEAD + "grid = []", "grid is an empty list"),
    (HEAD + "slurm = 'short'\n" + MODEL, "slurm is not a table"),
    (HEAD + "out = 'x.txt'\n" + MODEL, r'out is "x\.txt"; .*ends in \.csv'),
    (HEAD + "seeds = 0\n" + MODEL, "seeds is 0; .*from 1 to"),
    (HEAD + "seeds = true\n" + MODEL, "seeds is true"),
    (HEAD + "seeds = []\n" + MODEL, r"seeds is \[\]"),
    (HEAD + "seeds = [1, -1]\n" + MODEL, "seeds: -1;"),
    (HEAD + "seeds = [1, 1.0]\n" + MODEL, r"seeds: 1\.0;"),
    (HEAD + "seeds = [4, 2, 4]\n" + MODEL, "seeds: 4 is listed twice"),
    (HEAD + "seeds = 1" + "0" * 40 + "\n" + MODEL, "seeds is 1000"),
    (HEAD + f"seeds = 1000_000_000\n{MODEL}[grid]\ncoupling = [0, 1]", "2,000,000,000 tasks; .*1,000,000,000"),
    ('command = "map"\nseeds = 2\n' + MODEL, "seeds: the command has no --seed"),
    (HEAD + "[options]\ncouplng = 1", r"options\.couplng: no option 'couplng'; 'coupling' is nearest"),
    (HEAD + "[options]\nsamples = 'many'", r"options\.samples: --samples is many"),
    (HEAD + "[options]\nsamples = 0", r"options\.samples: --samples is 0; .*1 or more"),
    (HEAD + "[options]\nsamples = true", r"options\.samples: --samples is True"),
    (HEAD + "[options]\nsamples = [1, 2]", r"options\.samples: --samples is \[1, 2\]; give one value"),
    (HEAD + "[options]\nsamples = { from = 1 }", r"options\.samples: --samples is dict"),
    (HEAD + "[options]\nsamples = 1979-05-27", r"options\.samples: --samples is date"),
    (HEAD + "[options]\norder = []", r"options\.order: --order is \[\]"),
    (HEAD + "[options]\norder = [[1]]", r"options\.order: --order is list"),
    (HEAD + "[options]\ncoupling = nan", r"options\.coupling: --coupling is nan"),
    (HEAD + "[options]\nany-order = 1", r"options\.any-order: --any-order is 1; .*true or false"),
    (HEAD + "[options]\nany-order = true\nany_order = true", r"options\.any_order: given twice"),
    (HEAD + "[options]\nmethod = 'hot'", r"options\.method: --method is hot; .*auto, slow, fast"),
    (HEAD + "[options]\nrange = [1]", r"options\.range: --range has 1 values; it takes 2"),
    (HEAD + "[options]\nrange = 1", r"options\.range: --range has 1 values"),
    (HEAD + "[options]\nmodel = '-'", r"options\.model: MODEL is -, standard input"),
    (HEAD + "[options]\nmodel = 3", r"options\.model: MODEL is 3; it must be text"),
    (HEAD + "[options]\nmodel = ['m']", r'options\.model: MODEL is \["m"\]; give one value'),
    (HEAD, "options: MODEL is missing"),
    (HEAD + "[options]\ncoupling = 1\n[grid]\ncoupling = [1, 2]", r"grid\.coupling: given twice"),
    (HEAD + "[grid]\ncoupling = []", r"grid\.coupling: an empty list"),
    (HEAD + "[grid]\ncoupling = 3", r"grid\.coupling: 3 is no list"),
    (HEAD + "[grid]\ncoupling = [1, 2, 1.0]", r"grid\.coupling: 1\.0 is listed twice"),
    (HEAD + "[grid]\ncoupling = [0.5, '0.5']", r'grid\.coupling: "0\.5" is listed twice'),
    (HEAD + "[grid]\ncoupling = [1, 'x', 2]", r"grid\.coupling: --coupling is x; .*a number"),
    (HEAD + "[grid]\norder = [[0, 1], [0, 1]]", r"grid\.order: \[0, 1\] is listed twice"),
    (HEAD + "[grid]\nany-order = [true, true]", r"grid\.any-order: true is listed twice"),
    (HEAD + MODEL + "[[grid]]\ncoupling = [1]\n[[grid]]\ncoupl = [1]", r"grid\[2\]\.coupl: no option 'coupl'"),
    (HEAD + MODEL + "[[grid]]\ncoupling = [1, 2]\n[[grid]]\ncoupling = [2.0]", r"grid\[1\] and grid\[2\] .* in common"),
    (HEAD + "[grid]\ncoupling = { from = 1, to = 2 }", r"grid\.coupling: no count"),
    (HEAD + "[grid]\ncoupling = { form = 1, to = 2, count = 3 }", r"grid\.coupling: unknown key 'form'; 'from'"),
    (HEAD + "[grid]\ncoupling = { from = 1, to = 2, count = 0 }", r"grid\.coupling: count is 0;"),
    (HEAD + "[grid]\ncoupling = { from = 1, to = 2, count = 2.5 }", r"grid\.coupling: count is 2\.5"),
    (HEAD + "[grid]\ncoupling = { from = 1, to = 2, count = 1000000000000 }", r"grid\.coupling: count is 10000"),
    (HEAD + "[grid]\ncoupling = { from = 1, to = inf, count = 3 }", r"grid\.coupling: to is Infinity; .*finite"),
    (HEAD + "[grid]\ncoupling = { from = true, to = 2, count = 3 }", r"grid\.coupling: from is true"),
    (HEAD + f"[grid]\ncoupling = {{ from = 1, to = {10**400}, count = 3 }}", r"grid\.coupling: to is 1000"),
    (HEAD + "[grid]\ncoupling = { from = 0, to = 2, count = 3, log = true }", r"grid\.coupling: log is true from 0"),
    (HEAD + "[grid]\ncoupling = { from = 1, to = 2, count = 3, log = 1 }", r"grid\.coupling: log is 1"),
    (HEAD + "[grid]\ncoupling = { from = 1.0, to = 1.0, count = 2 }", r"grid\.coupling: 1\.0 is listed twice"),
    ('command = "map"\n[grid]\nmodel = { files = "no/*.uai" }', r"grid\.model: no file fits no/\*\.uai"),
    ('command = "map"\n[grid]\nmodel = { files = 3 }', r"grid\.model: files is 3"),
    ('command = "map"\n[grid]\nmodel = { files = "*", count = 3 }', r"grid\.model: unknown key 'count'"),
    (HEAD + "samples\n[grid]", None),
    ('command = "map"\n' + "x = " + "[" * 10_000, "not TOML"),
    ('command = "map"\n' + "x = " + "1" * 10_000, "not TOML"),
    ('command = "map"  # caf\xe9'.encode("latin-1"), "not text; give a TOML file in UTF-8"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "message"), BAD)
def test_bad_files_are_refused_in_a_line_that_names_the_key(sweep, tmp_path, text, message):
    with pytest.raises(InputError) as refused:
        sweep(text)
    place, complaint = str(tmp_path / "sweep.toml"), str(refused.value)
    assert complaint.startswith(place)
    if message is None:
        assert complaint.startswith(f"{place}:2: not TOML: ")
    else:
        assert re.match(f": {message}", complaint.removeprefix(place)), complaint


@pytest.mark.parametrize(
    ("option", "why"),
    [
        *((name, "its table and nothing else") for name in ("out", "json", "quiet", "verbose", "debug", "figure")),
        *((name, "its table and nothing else") for name in ("help", "no-out", "save")),
        ("seed", "seeds at the top"),
        ("jobs", "cores"),
        ("ledger", "divide the budget"),
    ],
)
@pytest.mark.parametrize("table", ["options", "grid"])
def test_options_that_no_task_has(sweep, option, why, table):
    value = "['x']" if table == "grid" else "'x'"
    with pytest.raises(InputError, match=f"{table}.{option}: {option} is not for tasks; .*{why}"):
        sweep(f"{HEAD}[{table}]\n{option} = {value}")


def test_no_file(tmp_path):
    with pytest.raises(InputError, match=r"no\.toml: cannot be read \(no such file"):
        read_sweep(tmp_path / "no.toml")
    with pytest.raises(InputError, match="cannot be read"):
        read_sweep(tmp_path)


def test_entries_are_json(sweep):
    for entry in sweep(TOYS).entries():
        assert TaskSpec(**json.loads(json.dumps(entry._asdict()))) == entry
