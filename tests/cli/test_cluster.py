"""Where tasks run: flags beat the file, the file beats the defaults, and what Slurm could not take is refused."""

import re
import sys

import pytest

from tests.conftest import MODELS
from thesis_cli.base.errors import InputError
from thesis_cli.cli import cluster
from thesis_cli.cli.cluster import Settings, settings
from thesis_cli.reproduction import slurm
from thesis_cli.reproduction.engines import LocalEngine, NoEngine

NO_FLAGS = dict.fromkeys(Settings.__dataclass_fields__)


def test_defaults():
    found = settings({}, NO_FLAGS)
    assert found == Settings()
    assert (found.request.minutes, found.request.memory, found.request.cores) == (30, "4G", 1)
    assert "partition" not in found.request.options()


def test_a_flag_beats_the_file_and_the_file_the_default():
    table = {"time": 60, "array-limit": 5, "partition": "long", "setup": ["a", "b"], "sbatch": {"account": "x"}}
    found = settings(table, {**NO_FLAGS, "time": 90, "partition": "short"})
    assert (found.time, found.array_limit, found.partition, found.mem) == (90, 5, "short", "4G")
    assert (found.setup, found.sbatch) == (("a", "b"), {"account": "x"})
    found = settings(table, {**NO_FLAGS, "setup": ["c"], "sbatch": ["--qos=high", "constraint=a=b"]})
    assert (found.setup, found.sbatch) == (("c",), {"qos": "high", "constraint": "a=b"})


def test_a_flag_of_nothing_beats_the_file_too():
    found = settings({"settle": 5, "sbatch": {"account": "x"}}, {**NO_FLAGS, "settle": 0.0, "sbatch": ["qos=0"]})
    assert (found.settle, found.sbatch) == (0.0, {"qos": "0"})


def test_keys_may_have_dashes_or_underscores():
    assert settings({"target-minutes": 2, "array_limit": 3}, {}) == Settings(target_minutes=2, array_limit=3)


def test_what_a_job_asks_for():
    found = settings(
        {"partition": "p", "cpus": 2, "setup": "module load x", "sbatch": {"exclusive": True, "nice": 5}}, {}
    )
    assert found.setup == ("module load x",)
    asked = found.request.options()
    assert {k: asked[k] for k in ("partition", "cpus-per-task", "exclusive", "nice", "mem", "time")} == {
        "partition": "p", "cpus-per-task": 2, "exclusive": True, "nice": 5, "mem": "4G", "time": 30,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ({"tyme": 3}, "slurm.tyme: unknown key; time is known"),
        ({"array-limits": 3}, "slurm.array-limits: unknown key; array-limit is known"),
        ({"zzz": 3}, "slurm.zzz: unknown key; partition, time, mem, cpus, array-limit, target-minutes, retries"),
        ({"time": "1:00:00"}, "slurm.time = '1:00:00'; a whole number from 1 is wanted"),
        ({"time": 0}, "slurm.time = 0; a whole number from 1"),
        ({"time": True}, "slurm.time = True; a whole number from 1"),
        ({"time": 1.5}, "slurm.time = 1.5; a whole number from 1"),
        ({"cpus": -1}, "slurm.cpus = -1; a whole number from 1"),
        ({"array-limit": 0}, "slurm.array-limit = 0; a whole number from 1"),
        ({"retries": 0}, "slurm.retries = 0; a whole number from 1"),
        ({"target-minutes": 0}, "slurm.target-minutes = 0; a number from 0.01 is wanted"),
        ({"target-minutes": float("inf")}, "slurm.target-minutes = inf; a number from 0.01"),
        ({"target-minutes": float("nan")}, "slurm.target-minutes = nan; a number from 0.01"),
        ({"settle": -1}, "slurm.settle = -1; a number from 0 is wanted"),
        ({"settle": [1]}, "slurm.settle = [1]; a number from 0"),
        ({"mem": 4}, "slurm.mem = 4; a word is wanted"),
        ({"mem": "much"}, "slurm.mem = 'much'; a size is wanted, such as 4G"),
        ({"mem": "0G"}, "slurm.mem = '0G'; a size is wanted"),
        ({"partition": "a b"}, "slurm.partition = 'a b'; a word is wanted"),
        ({"partition": ""}, "slurm.partition = ''; a word is wanted"),
        ({"setup": [1]}, "slurm.setup = [1]; lines of shell are wanted"),
        ({"setup": {}}, "slurm.setup = {}; lines of shell are wanted"),
        ({"sbatch": "account=x"}, "slurm.sbatch = 'account=x'; options of sbatch are wanted, such as { account ="),
        ({"sbatch": {"account": ["x"]}}, "slurm.sbatch account=['x']; NAME=VALUE is wanted"),
        ({"sbatch": {"--account": "x"}}, "slurm.sbatch --account=x; NAME=VALUE is wanted"),
        ({"sbatch": {"comment": "a\nrm -r ~"}}, "NAME=VALUE is wanted"),
        ({"sbatch": {"exclusive": False}}, "NAME=VALUE is wanted"),
    ],
)
def test_bad_settings_in_the_file(table, message):
    with pytest.raises(InputError, match=re.escape(message)):
        settings(table, {})


@pytest.mark.parametrize("size", ["4G", "500M", "1t", "16384", "8GB"])
def test_sizes(size):
    assert settings({"mem": size}, {}).mem == size


SWEEP = f"""
command = "map"
[options]
model = "{MODELS}/asia.uai"
[slurm]
time = 60
mem = "2G"
"""


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "s.toml"
    path.write_text(SWEEP)
    return path


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["--sbatch", "account"], "--sbatch account=; NAME=VALUE is wanted, such as account=NAME"),
        (["--sbatch", "=x"], "--sbatch =x; NAME=VALUE is wanted"),
        (["--sbatch", "A B=x"], "--sbatch A B=x; NAME=VALUE is wanted"),
        (["--mem", "4 G"], "--mem = '4 G'; a word is wanted"),
        (["--settle", "inf"], "--settle = inf; a number from 0 is wanted"),
        (["--target-minutes", "inf"], "--target-minutes = inf; a number from 0.01 is wanted"),
        (["--detach"], "--detach with --engine local; --engine slurm is wanted"),
        (["--detach", "--engine", "none"], "--detach with --engine none; --engine slurm is wanted"),
        (["--time", "0"], "Invalid value for '--time'"),
        (["--engine", "pbs"], "Invalid value for '--engine'"),
    ],
)
@pytest.mark.parametrize("command", [["sweep", "s.toml"], ["reproduce", "fig-2-1"]])
def test_bad_flags_are_one_line_and_write_nothing(cli, file, command, flags, message):
    result = cli(*command, *flags)
    assert (result.status, result.out) == (2, "")
    assert result.err.startswith(f"error: {message}"), result.err
    assert result.err.count("\n") == 1
    assert [p.name for p in file.parent.iterdir()] == ["s.toml"]


def test_bad_settings_name_the_file_even_where_a_flag_beats_them(cli, file):
    file.write_text(SWEEP.replace("60", "'1h'"))
    result = cli("sweep", "s.toml", "--time", 5)
    assert (result.status, result.err) == (2, "error: s.toml: slurm.time = '1h'; a whole number from 1 is wanted\n")


def test_a_dry_run_prints_the_line_of_sbatch_also_where_there_is_no_slurm(cli, file, monkeypatch):
    monkeypatch.setenv("PATH", "")
    result = cli("sweep", "s.toml", "--dry-run", "--engine", "slurm", "--mem", "3G", "--array-limit", 7)
    assert result.status == 0
    line = result.out.splitlines()[-1]
    assert line == "sbatch --array=0-0%7 --time=60 --mem=3G --nodes=1 --ntasks=1 --cpus-per-task=1"
    assert [p.name for p in file.parent.iterdir()] == ["s.toml"]


@pytest.mark.parametrize("command", [["sweep", "s.toml"], ["reproduce", "fig-2-1"]])
def test_without_slurm_it_says_what_is_missing(cli, file, monkeypatch, command):
    monkeypatch.setenv("PATH", "/nonexistent")
    result = cli(*command, "--engine", "slurm")
    assert (result.status, result.out) == (2, "")
    assert result.err == (
        "error: no Slurm on this host (sbatch, squeue, srun, scontrol not found); log in where jobs are submitted, or "
        "load its module\n"
    )
    assert [p.name for p in file.parent.iterdir()] == ["s.toml"]


def test_without_submitit_it_says_how_to_get_it(cli, file, monkeypatch):
    monkeypatch.setattr(slurm.shutil, "which", lambda name: f"/usr/bin/{name}")
    monkeypatch.setitem(sys.modules, "submitit", None)
    result = cli("sweep", "s.toml", "--engine", "slurm")
    assert (result.status, result.err) == (
        2, "error: submitit is not installed; pip install 'thesis-cli[cluster]'\n",
    )  # fmt: skip


def test_engines():
    local = cluster.engine("local", 3, Settings(retries=5), detach=False)
    assert isinstance(local, LocalEngine)
    assert (local.jobs, local.retries) == (3, 5)
    assert isinstance(cluster.engine("none", None, Settings(), detach=False), NoEngine)


def test_an_engine_for_arrays_has_the_settings(monkeypatch):
    pytest.importorskip("submitit")
    monkeypatch.setattr(slurm.shutil, "which", lambda name: f"/usr/bin/{name}")
    wanted = Settings(time=5, array_limit=4, target_minutes=2.5, retries=7, settle=9.0)
    made = cluster.engine("slurm", None, wanted, detach=True)
    assert (made.parallel, made.target_minutes, made.retries, made.settle, made.detach) == (4, 2.5, 7, 9.0, True)
    assert made.cluster.request.minutes == 5


def test_a_queue_that_does_not_answer_is_told_of(monkeypatch, caplog):
    monkeypatch.setattr(slurm, "queue", lambda: None)
    assert cluster.queue() == {}
    assert "Slurm does not answer; which tasks run is not known" in caplog.text
    monkeypatch.setattr(slurm, "queue", lambda: {"a": {0: "RUNNING"}})
    assert cluster.queue() == {"a": {0: "RUNNING"}}
