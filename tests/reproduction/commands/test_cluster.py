"""Where tasks run: flags override the file, the file overrides defaults, bad values are refused."""

import re
import sys

import pytest

from tests.conftest import MODELS
from thesis_cli.base.errors import InputError
from thesis_cli.reproduction import slurm
from thesis_cli.reproduction.commands import cluster
from thesis_cli.reproduction.commands.cluster import EngineRequest, JobSettings, settings
from thesis_cli.reproduction.engines import LocalEngine, NoEngine
from thesis_cli.reproduction.experiment import Checkout


def test_defaults():
    found = settings({})
    assert found == JobSettings() == settings({}, EngineRequest())
    assert (found.request.minutes, found.request.memory, found.request.cores) == (30, "4G", 1)
    assert "partition" not in found.request.options()


def test_a_flag_beats_the_file_and_the_file_the_default():
    table = {"time": 60, "array-limit": 5, "partition": "long", "setup": ["a", "b"], "sbatch": {"account": "x"}}
    found = settings(table, EngineRequest(time=90, partition="short"))
    assert (found.time, found.array_limit, found.partition, found.mem) == (90, 5, "short", "4G")
    assert (found.setup, found.sbatch) == (("a", "b"), {"account": "x"})
    found = settings(table, EngineRequest(setup=("c",), sbatch=("--qos=high", "constraint=a=b")))
    assert (found.setup, found.sbatch) == (("c",), {"qos": "high", "constraint": "a=b"})


def test_a_flag_of_zero_beats_the_file_too():
    found = settings({"settle": 5, "sbatch": {"account": "x"}}, EngineRequest(settle=0.0, sbatch=("qos=0",)))
    assert (found.settle, found.sbatch) == (0.0, {"qos": "0"})


def test_keys_may_have_dashes_or_underscores():
    assert settings({"target-minutes": 2, "array_limit": 3}) == JobSettings(target_minutes=2, array_limit=3)


def test_what_a_job_asks_for():
    found = settings({"partition": "p", "cpus": 2, "setup": "module load x", "sbatch": {"exclusive": True, "nice": 5}})
    assert found.setup == ("module load x",)
    asked = found.request.options()
    assert {k: asked[k] for k in ("partition", "cpus-per-task", "exclusive", "nice", "mem", "time")} == {
        "partition": "p", "cpus-per-task": 2, "exclusive": True, "nice": 5, "mem": "4G", "time": 30,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ({"tyme": 3}, "slurm.tyme: unknown key; 'time' is nearest"),
        ({"array-limits": 3}, "slurm.array-limits: unknown key; 'array-limit' is nearest"),
        ({"zzz": 3}, "slurm.zzz: unknown key; it must be one of 'partition', 'time'"),
        ({"engine": "local"}, "slurm.engine: unknown key"),
        ({"time": "1:00:00"}, "slurm.time: --time is 1:00:00; it must be a whole number, 1 or more"),
        ({"time": 0}, "slurm.time: --time is 0;"),
        ({"time": True}, "slurm.time: --time is True;"),
        ({"time": 1.5}, "slurm.time: --time is 1.5;"),
        ({"cpus": -1}, "slurm.cpus: --cpus is -1;"),
        ({"array-limit": 0}, "slurm.array-limit: --array-limit is 0;"),
        ({"retries": 0}, "slurm.retries: --retries is 0;"),
        ({"target-minutes": 0}, "slurm.target-minutes: --target-minutes is 0; it must be a number, 0.01 or more"),
        ({"target-minutes": float("inf")}, "slurm.target-minutes: --target-minutes is inf;"),
        ({"target-minutes": float("nan")}, "slurm.target-minutes: --target-minutes is nan;"),
        ({"settle": -1}, "slurm.settle: --settle is -1; it must be a number, 0 or more"),
        ({"settle": [1]}, "slurm.settle: --settle is list;"),
        ({"mem": 4}, "slurm.mem: --mem is 4; it must be text"),
        ({"mem": "much"}, "slurm.mem: --mem is much; it must be a size such as 4G"),
        ({"mem": "0G"}, "slurm.mem: --mem is 0G;"),
        ({"partition": "a b"}, "slurm.partition: --partition is 'a b'; it must be one word"),
        ({"partition": ""}, "slurm.partition: --partition is '';"),
        ({"setup": [1]}, "slurm.setup: --setup is 1; it must be text"),
        ({"setup": {}}, "slurm.setup: --setup is dict;"),
        ({"sbatch": "account=x"}, "slurm.sbatch: --sbatch is 'account=x'; it must be a table"),
        ({"sbatch": {"account": ["x"]}}, "slurm.sbatch: --sbatch is account=['x']; it must be NAME=VALUE"),
        ({"sbatch": {"--account": "x"}}, "slurm.sbatch: --sbatch is --account=x; it must be NAME=VALUE"),
        ({"sbatch": {"comment": "a\nrm -r ~"}}, "it must be NAME=VALUE"),
        ({"sbatch": {"exclusive": False}}, "it must be NAME=VALUE"),
    ],
)
def test_bad_settings_in_the_file(table, message):
    with pytest.raises(InputError, match=re.escape(message)):
        settings(table)


@pytest.mark.parametrize("size", ["4G", "500M", "1t", "16384", "8GB"])
def test_sizes(size):
    assert settings({"mem": size}).mem == size


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
        (["--sbatch", "account"], "--sbatch is account=; it must be NAME=VALUE"),
        (["--sbatch", "=x"], "--sbatch is =x;"),
        (["--sbatch", "A B=x"], "--sbatch is A B=x;"),
        (["--mem", "4 G"], "--mem is '4 G'; it must be one word"),
        (["--settle", "inf"], "--settle is inf;"),
        (["--target-minutes", "inf"], "--target-minutes is inf;"),
        (["--detach"], "--detach does not go with --engine local"),
        (["--detach", "--engine", "none"], "--detach does not go with --engine none"),
        (["--time", "0"], "--time is 0;"),
        (["--scheduler", "tcp://x:1"], "--scheduler does not go with --engine local"),
        (["--engine", "pbs"], "--engine is pbs; it must be one of local, slurm, dask, none"),
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
    assert result.status == 2
    assert result.err.startswith("error: s.toml: slurm.time: --time is 1h;")


def test_a_dry_run_prints_the_line_of_sbatch_also_where_there_is_no_slurm(cli, file, monkeypatch):
    monkeypatch.setenv("PATH", "")
    result = cli("sweep", "s.toml", "--dry-run", "--engine", "slurm", "--mem", "3G", "--array-limit", 7)
    assert result.status == 0
    line = result.out.splitlines()[-1]
    assert line == "sbatch --array=0-0%7 --time=60 --mem=3G --nodes=1 --ntasks=1 --cpus-per-task=1"
    assert [p.name for p in file.parent.iterdir()] == ["s.toml"]


@pytest.mark.parametrize("command", [["sweep", "s.toml"], ["reproduce", "fig-2-1"]])
def test_without_slurm_the_error_names_what_is_missing(cli, file, monkeypatch, command):
    monkeypatch.setenv("PATH", "/nonexistent")
    monkeypatch.setattr(Checkout, "is_here", True)
    result = cli(*command, "--engine", "slurm")
    assert (result.status, result.out) == (2, "")
    assert result.err.startswith("error: no Slurm on this host (sbatch, squeue, srun, scontrol not found)")
    assert result.err.count("\n") == 1
    assert [p.name for p in file.parent.iterdir()] == ["s.toml"]


def test_without_submitit_the_error_says_what_to_install(cli, file, monkeypatch):
    monkeypatch.setattr(slurm.shutil, "which", lambda name: f"/usr/bin/{name}")
    monkeypatch.setitem(sys.modules, "submitit", None)
    result = cli("sweep", "s.toml", "--engine", "slurm")
    assert result.status == 2
    assert "pip install submitit" in result.err


def test_engines():
    local = cluster.engine(EngineRequest(jobs=3), JobSettings(retries=5))
    assert isinstance(local, LocalEngine)
    assert (local.jobs, local.retries) == (3, 5)
    assert isinstance(cluster.engine(EngineRequest(engine="none"), JobSettings()), NoEngine)


def test_an_engine_for_arrays_has_the_settings(monkeypatch):
    pytest.importorskip("submitit")
    monkeypatch.setattr(slurm.shutil, "which", lambda name: f"/usr/bin/{name}")
    given = JobSettings(time=5, array_limit=4, target_minutes=2.5, retries=7, settle=9.0)
    made = cluster.engine(EngineRequest(engine="slurm", detach=True), given)
    assert (made.parallel, made.target_minutes, made.retries, made.settle, made.detach) == (4, 2.5, 7, 9.0, True)
    assert made.cluster.request.minutes == 5


def test_a_queue_that_does_not_answer_is_warned_of(monkeypatch, caplog):
    monkeypatch.setattr(slurm, "queue", lambda: None)
    assert cluster.queue() == {}
    assert "Slurm does not answer" in caplog.text
    monkeypatch.setattr(slurm, "queue", lambda: {"a": {0: "RUNNING"}})
    assert cluster.queue() == {"a": {0: "RUNNING"}}
