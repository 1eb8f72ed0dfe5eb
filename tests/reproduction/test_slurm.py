"""Slurm, its commands simulated by scripts that log their arguments; and the work of one job."""

import pickle
import shlex
import signal
import subprocess
import sys
from dataclasses import dataclass

import pytest

from tests.conftest import ROOT
from thesis_cli.base.errors import InputError
from thesis_cli.reproduction import arrays, slurm
from thesis_cli.reproduction.arrays import HELD, Array, Refused
from thesis_cli.reproduction.slurm import JobRequest, JobTasks, Slurm
from thesis_cli.reproduction.tasks import TaskFile, TaskSpec

COMMANDS = ("sbatch", "squeue", "scontrol", "sacct", "srun", "scancel")


class Commands:
    """A folder of scripts, the only one that programs are looked for in."""

    def __init__(self, folder):
        self.folder = folder
        folder.mkdir()
        for name in COMMANDS:
            self.says(name)

    def says(self, name, out="", err="", status=0, first=""):
        """What a command answers from now on."""
        script = f'#!/bin/sh\necho {name} "$*" >> {self.folder}/log\n{first}\nprintf %s {shlex.quote(out)}\n'
        (self.folder / name).write_text(f"{script}printf %s {shlex.quote(err)} >&2\nexit {status}\n")
        (self.folder / name).chmod(0o755)

    def lacks(self, *names):
        for name in names:
            (self.folder / name).unlink()

    @property
    def log(self):
        return (self.folder / "log").read_text().splitlines()


@pytest.fixture
def commands(tmp_path, monkeypatch):
    commands = Commands(tmp_path / "bin")
    monkeypatch.setenv("PATH", str(commands.folder))
    return commands


@dataclass(frozen=True)
class Doubles:
    """Twice k; fails where k is negative."""

    version: int = 1

    def code(self, task):
        return "code"

    def run(self, task):
        k = task.parameters["k"]
        if k < 0:
            raise ValueError("made to fail")
        return f"k\n{2 * k}\n"


@pytest.fixture
def tasks(tmp_path):
    return TaskFile.write(tmp_path / "tasks.json", [TaskSpec("toy", {"k": k}, 0) for k in range(6)], Doubles())


def array(tasks, groups, parallel=0, job_id=""):
    made = Array(tasks.path.with_suffix(".jobs") / "thesis-cli-0123", tasks.path.parent, groups, parallel)
    made.save(tasks)
    made.note(job_id)
    return made


def submitted(commands, tasks, request, groups, parallel=0):
    """The id of an array, and the lines of the script that sbatch is given."""
    pytest.importorskip("submitit")
    commands.says("sbatch", "Submitted batch job 4711\n", first=f'/bin/cat "$1" > {tasks.path}.sh')
    made = array(tasks, groups, parallel)
    found = Slurm(request).submit(made, tasks.work)
    return found, made, tasks.path.with_name("tasks.json.sh").read_text().splitlines()


def test_a_request_reaches_the_script(commands, tasks):
    request = JobRequest(7, "3G", 2, ("module load python", "cd /scratch"), {"partition": "long", "account": "me"})
    found, made, lines = submitted(commands, tasks, request, [[0, 3], [1, 4], [2, 5]], parallel=2)
    assert found == "4711"
    options = {line.removeprefix("#SBATCH --") for line in lines if line.startswith("#SBATCH")}
    assert options >= {
        "time=7",
        "mem=3G",
        "cpus-per-task=2",
        "nodes=1",
        "ntasks=1",
        "partition=long",
        "account=me",
        "array=0-2%2",
        "job-name=thesis-cli-0123",
        "signal=USR2@90",
        "open-mode=append",
        f"output={made.folder}/%A_%a_0_log.out",
    }
    threads = [f"export {name}_NUM_THREADS=2" for name in ("OMP", "OPENBLAS", "MKL", "NUMBA")]
    start = lines.index(threads[0])
    setup = "\n".join(lines[:start])
    assert setup.index("{ module load python\n}") < setup.index("{ cd /scratch\n}")
    assert lines[start : start + 4] == threads
    assert any(line.startswith("srun ") and sys.executable in line for line in lines[start + 4 :])


def test_each_job_finds_its_group(commands, tasks):
    _, made, _ = submitted(commands, tasks, JobRequest(), [[0, 3], [1, 4], [2, 5]])
    for job, group in enumerate(made.groups):
        delayed = pickle.loads((made.folder / f"4711_{job}_submitted.pkl").read_bytes())
        assert delayed.args == (group,)
        delayed.result()
        assert set(group) <= set(tasks.indices(tasks.finished()))
        assert all(tasks.store.result(tasks.keys[i]).text == f"k\n{2 * i}\n" for i in group)
        assert pickle.loads(pickle.dumps(delayed.function.checkpoint(group))).args == (group,)


def test_no_limit_on_jobs_is_none(commands, tasks):
    _, _, lines = submitted(commands, tasks, JobRequest(), [[i] for i in range(6)])
    assert "#SBATCH --array=0-5%6" in lines


def test_an_array_of_one_is_a_plain_job(commands, tasks):
    found, made, lines = submitted(commands, tasks, JobRequest(1), [[0, 1]])
    assert found == "4711"
    assert not any("--array" in line for line in lines)
    assert "#SBATCH --signal=USR2@15" in lines
    assert (made.folder / "4711_submitted.pkl").exists()


def test_a_refusal_is_one_line_of_sbatch(commands, tasks, capfd):
    pytest.importorskip("submitit")
    commands.says("sbatch", err="sbatch: error: AssocMaxSubmitJobLimit\nsbatch: error: not submitted\n", status=1)
    with pytest.raises(Refused, match=r"^sbatch: error: AssocMaxSubmitJobLimit; sbatch: error: not submitted$"):
        Slurm(JobRequest()).submit(array(tasks, [[0], [1]]), tasks.work)
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize(("setting", "most"), [("MaxArraySize            = 40", 40), ("nothing", 1001), ("", 1001)])
def test_the_site_limits_arrays(commands, setting, most):
    commands.says("scontrol", f"Configuration data as of now\nMaxJobCount = 10\n{setting}\nSchedulerParameters=a=1\n")
    system = Slurm(JobRequest())
    assert [system.most_jobs, system.most_jobs] == [most, most]
    assert commands.log == ["scontrol show config"]


def test_a_controller_that_is_away_does_not_set_the_limit(commands):
    commands.says("scontrol", err="no contact", status=1)
    system = Slurm(JobRequest())
    assert system.most_jobs == 1001
    commands.says("scontrol", "MaxArraySize = 40\n")
    assert system.most_jobs == 40


QUEUE = """\
12_0|RUNNING|thesis-cli-a|None
12_3|PENDING|thesis-cli-a|JobArrayTaskLimit
13|COMPLETING|thesis-cli-b|None
14_1|PENDING|thesis-cli-c|launch failed requeued held
14_2|PENDING|thesis-cli-c|JobHeldAdmin
14_4|PENDING|thesis-cli-c|Nodes required for job are DOWN, DRAINED or reserved for jobs in higher priority partitions
15|RUNNING|a|b|c|None
16|PENDING|thesis-cli-d|JobHeldUser
"""


def test_the_queue_is_read(commands, caplog):
    commands.says("squeue", QUEUE)
    found = Slurm(JobRequest()).queue()
    assert {name: jobs for name, jobs in found.items() if name.startswith("thesis-cli")} == {
        "thesis-cli-a": {0: "RUNNING", 3: "PENDING"},
        "thesis-cli-b": {0: "COMPLETING"},
        "thesis-cli-c": {1: HELD, 2: HELD, 4: "PENDING"},
        "thesis-cli-d": {0: "PENDING"},
    }
    assert caplog.text == ""
    assert commands.log == ["squeue --me --noheader --array --format=%i|%T|%j|%r"]


def test_jobs_that_can_never_start_are_marked(commands):
    commands.says("squeue", "12_0|PENDING|thesis-cli-a|PartitionTimeLimit\n13|RUNNING|thesis-cli-b|None\n")
    assert slurm.queue() == {"thesis-cli-a": {0: "STUCK (PartitionTimeLimit)"}, "thesis-cli-b": {0: "RUNNING"}}


def test_slurms_own_words_are_logged_once(commands, caplog):
    slurm._warn.cache_clear()
    commands.says("squeue", err="slurm_load_jobs error: Unable to contact slurm controller\n", status=1)
    assert (slurm.queue(), slurm.queue()) == (None, None)
    assert [r.message for r in caplog.records] == ["slurm_load_jobs error: Unable to contact slurm controller"]


@pytest.mark.parametrize("line", ["false", "nosuchcommand", "cd /nowhere; cd /nowhere", "exit 3", "false # why"])
def test_work_does_not_begin_where_a_line_of_setup_fails(line):
    script = "\n".join([slurm._or_end("X='a b'; export X"), slurm._or_end(line), "echo begun"])
    done = subprocess.run(["bash", "-c", script], capture_output=True, text=True, check=False)
    assert done.returncode
    assert "begun" not in done.stdout
    assert f"setup failed: {line}" in done.stdout or line == "exit 3"


def test_an_empty_queue_and_none_are_told_apart(commands, monkeypatch):
    assert slurm.queue() == {}
    commands.says("squeue", "12_0|RUNNING|thesis-cli-a|None\n", status=1)
    assert slurm.queue() is None
    monkeypatch.setattr(slurm, "PATIENCE", 0.2)
    commands.says("squeue", first="exec /bin/sleep 60")
    assert slurm.queue() is None
    commands.lacks("squeue")
    assert slurm.queue() == {}


def test_jobs_are_cancelled_by_number(commands, tasks):
    system = Slurm(JobRequest())
    made = array(tasks, [[0], [1]], job_id="4711")
    system.cancel(made, 1)
    single = Array(made.folder, made.results, [[0, 1]])
    system.cancel(single, 0)
    made.note("")
    system.cancel(made, 0)
    assert commands.log == ["scancel 4711_1", "scancel 4711", f"scancel --me --name={made.name}"]


def test_a_job_has_a_story(commands, tasks):
    system, made = Slurm(JobRequest()), array(tasks, [[0], [1]], job_id="4711")
    assert system.story(made, 1) == ", without any output"
    log_of_end = made.folder / f"{made.id()}_0_0_log.out"
    word = "slurmstepd: error: *** STEP 7.0 ON a CANCELLED AT 2026-01-01T00:00:00 DUE TO TIME LIMIT ***"
    log_of_end.write_text("\n".join([word, *map(str, range(20))]))
    assert system.story(made, 0).splitlines()[-2:] == ["19", word]
    log = made.folder / "4711_1_0_log.out"
    log.write_text("".join(f"line {i}\n" for i in range(30)) + "Out of memory\n")
    tail = "\n".join([*(f"line {i}" for i in range(19, 30)), "Out of memory"])
    assert system.story(made, 1) == f"; its last lines ({log}):\n{tail}"
    commands.says("sacct", "OUT_OF_MEMORY\n")
    assert system.story(made, 1) == f" (OUT_OF_MEMORY); its last lines ({log}):\n{tail}"
    assert commands.log[-1] == "sacct -X -n -P -j 4711_1 -o State"
    commands.says("sacct", err="Slurm accounting storage is disabled", status=1)
    assert system.story(made, 1).startswith("; its last")
    commands.lacks("sacct")
    assert system.story(made, 1).startswith("; its last")


def test_what_is_missing_is_named(commands, monkeypatch):
    monkeypatch.setitem(sys.modules, "submitit", None)
    with pytest.raises(InputError, match="submitit is not installed; run pip install submitit"):
        Slurm(JobRequest())
    commands.lacks("sbatch", "squeue")
    with pytest.raises(InputError, match=r"no Slurm on this host \(sbatch, squeue not found\); log in where"):
        Slurm(JobRequest())
    monkeypatch.undo()


def test_the_line_of_a_dry_run():
    request = JobRequest(7, "3G", 2, sbatch={"partition": "long"})
    options = "--time=7 --mem=3G --nodes=1 --ntasks=1 --cpus-per-task=2 --partition=long"
    assert request.line(40, 0) == f"sbatch --array=0-39 {options}"
    assert request.line(40, 5) == f"sbatch --array=0-39%5 {options}"


@pytest.fixture
def undisturbed():
    """The handler of SIGUSR2 is what it was, afterwards."""
    before = signal.getsignal(signal.SIGUSR2)
    yield
    signal.signal(signal.SIGUSR2, before)


@pytest.mark.usefixtures("undisturbed")
def test_a_job_passes_over_what_is_finished(tasks):
    tasks[2].save("k\nold\n", "code", 1.0)
    tasks[4].save("failed, an hour ago", "", 1.0)
    JobTasks(tasks.path, tasks.path.parent, tasks.work)([0, 2, 4])
    assert tasks.finished() == {tasks.keys[i] for i in (0, 2, 4)}
    assert [tasks.store.result(tasks.keys[i]).text for i in (0, 2, 4)] == ["k\n0\n", "k\nold\n", "k\n8\n"]
    assert tasks.failed() == set()


@pytest.mark.usefixtures("undisturbed")
def test_a_task_that_fails_stops_no_other(tmp_path):
    tasks = TaskFile.write(tmp_path / "tasks.json", [TaskSpec("toy", {"k": k}, 0) for k in (1, -1, 2)], Doubles())
    JobTasks(tasks.path, tmp_path, tasks.work)([0, 1, 2])
    assert tasks.finished() == {tasks.keys[0], tasks.keys[2]}
    assert tasks.failed() == {tasks.keys[1]}
    assert "made to fail" in tasks.store.error(tasks.keys[1])


@pytest.mark.usefixtures("undisturbed")
def test_results_go_where_they_belong_whatever_file_is_read(tasks):
    made = array(tasks, [[1]], job_id="1")
    JobTasks(made.tasks, made.results, tasks.work)([1])
    assert tasks.finished() == {tasks.keys[1]}


JOB = """
import os, signal, sys
from dataclasses import dataclass
from pathlib import Path
from thesis_cli.base.files import atomic
from thesis_cli.reproduction.slurm import JobTasks

folder, when, ending = Path(sys.argv[1]), int(sys.argv[2]), sys.argv[3]

@dataclass(frozen=True)
class Work:
    version: int = 1

    def code(self, task):
        return "code"

    def run(self, task):
        k = task.parameters["k"]
        print("begun", k)
        with atomic(folder / f"half-{k}"):
            if k == when:
                os.kill(os.getpid(), signal.SIGUSR2)
        return f"k\\n{k}\\n"

def requeue(signum, frame):
    print("requeued")
    if ending == "fails":
        raise OSError("no contact")
    sys.exit(-1)

signal.signal(signal.SIGUSR2, requeue)
sys.stdout.reconfigure(line_buffering=True)
JobTasks(folder / "tasks.json", folder, Work())([0, 1, 2])
print("all done")
"""


@pytest.mark.parametrize("ending", ["exits", "fails"])
@pytest.mark.parametrize(("when", "said", "done"), [(0, [0], [0]), (1, [0, 1], [0]), (2, [0, 1, 2], [0, 1])])
def test_a_preempted_job_leaves_what_it_has_done(tasks, tmp_path, when, said, done, ending):
    """In its first task it ends that task first, or the next job would get no further."""
    folder = tmp_path
    job = subprocess.run(
        [sys.executable, "-c", JOB, folder, str(when), ending], capture_output=True, text=True, cwd=ROOT, check=False
    )
    assert (job.returncode, job.stderr) == (1, "")
    assert job.stdout.splitlines() == [*(f"begun {k}" for k in said), "requeued"]
    assert tasks.finished() == {tasks.keys[i] for i in done}
    assert tasks.failed() == set()
    assert not [path for path in folder.rglob(".*")]
    assert {path.name for path in folder.glob("half-*")} == {f"half-{k}" for k in done}


def test_a_job_that_nobody_disturbs_ends(tasks, tmp_path):
    job = subprocess.run(
        [sys.executable, "-c", JOB, tmp_path, "9", "exits"], capture_output=True, text=True, cwd=ROOT, check=False
    )
    assert (job.returncode, job.stdout.splitlines()[-1]) == (0, "all done")


def test_the_home_of_jobs_is_beside_the_task_file(tasks):
    made = array(tasks, [[0]], job_id="1")
    assert arrays.arrays_of(tasks) == [made]
