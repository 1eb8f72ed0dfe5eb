"""The array engine on a simulated batch system and clock: whatever happens, all tasks are done."""

import json
import logging
import os
from collections import Counter
from dataclasses import dataclass, field
from types import SimpleNamespace

import pytest

from thesis_cli.base.errors import WorkFailed
from thesis_cli.reproduction import arrays
from thesis_cli.reproduction.arrays import HELD, STUCK, ArrayEngine, Refused, arrays_of
from thesis_cli.reproduction.engines import SUBMITTED
from thesis_cli.reproduction.tasks import Store, TaskFile, TaskSpec, read_tasks, task_key

SETTLE = 20.0


@dataclass(frozen=True)
class Toy:
    """Work that the cluster below plays; nobody runs it."""

    version: int = 1


class Killed(BaseException):
    """The driver dies."""


@dataclass
class Clock:
    now: float = 0.0
    due: list = field(default_factory=list)

    def monotonic(self):
        return self.now

    def sleep(self, seconds):
        self.now += seconds
        ready, self.due = [e for e in self.due if e[0] <= self.now], [e for e in self.due if e[0] > self.now]
        for _, event in ready:
            event()

    def after(self, seconds, event):
        self.due.append((self.now + seconds, event))


@dataclass
class Cluster:
    """A batch system. At each look at the queue, waiting jobs start and running jobs end.

    The words of `fates[k]` are the ends of task k at each try, the last word at all further tries:
    done, late (seconds until the result is visible), error, dies (the job's later tasks do not
    begin), requeue.
    """

    clock: Clock
    most_jobs: int = 1000
    seconds: float = 600.0
    fates: dict = field(default_factory=dict)
    frozen: bool = False
    deaf: bool = False
    answers: list = field(default_factory=list)
    replies: list = field(default_factory=list)
    submitted: list = field(default_factory=list)
    jobs: dict = field(default_factory=dict)
    tries: Counter = field(default_factory=Counter)
    cancelled: list = field(default_factory=list)
    looks: int = 0
    left: int = 0

    def submit(self, array, work):
        reply = self.replies.pop(0) if self.replies else None
        if isinstance(reply, Refused):
            raise reply
        self.submitted.append(array)
        self.jobs |= {(array.name, job): "PENDING" for job in range(len(array.groups))}
        if reply:
            raise reply
        return f"{100 + len(self.submitted)}"

    def queue(self):
        self.looks += 1
        if self.answers:
            return self.answers.pop(0)
        assert self.looks < 5000
        if not self.frozen:
            for (name, job), state in list(self.jobs.items()):
                if state == "PENDING":
                    self.jobs[name, job] = "RUNNING"
                elif state == "RUNNING":
                    del self.jobs[name, job]
                    self._play(next(a for a in self.submitted if a.name == name), job)
        found = {}
        for (name, job), state in self.jobs.items():
            found.setdefault(name, {})[job] = state
        return found

    def cancel(self, array, job):
        self.cancelled.append((array.name, job))
        for other in [job] if array.id() else range(len(array.groups)):
            if not self.deaf:
                self.jobs.pop((array.name, other), None)

    def story(self, array, job):
        return f": job {array.id()}_{job}"

    def _play(self, array, job):
        if not array.tasks.exists():
            return
        store = Store(array.results)
        store.look()
        for task in read_tasks(array.tasks, Toy(), array.groups[job], array.results):
            if task.key in store.results:
                continue
            k = task.parameters["k"]
            words = self.fates.get(k, ["done"])
            fate, delay = words[min(self.tries[k], len(words) - 1)], 0.0
            self.tries[k] += 1
            if isinstance(fate, float):
                fate, delay = "done", fate
            if fate == "done" and delay:
                self.clock.after(delay, lambda t=task: finish(t, self.seconds))
            elif fate == "done":
                finish(task, self.seconds)
            elif fate == "error":
                task.save(f"{k} is bad\n", "", 1.0)
            else:
                if fate == "requeue":
                    self.clock.after(10.0, lambda: self.jobs.update({(array.name, job): "PENDING"}))
                return

    @property
    def values(self):
        """Of the tasks, in the jobs of the arrays that were submitted."""
        return [[[place for place in group] for group in array.groups] for array in self.submitted]


def finish(task, seconds=600.0):
    task.save(f"k\n{task.parameters['k']}\n", "code", seconds)


@pytest.fixture
def clock(monkeypatch):
    clock = Clock()
    monkeypatch.setattr(arrays, "time", SimpleNamespace(monotonic=clock.monotonic, sleep=clock.sleep))
    return clock


@pytest.fixture
def cluster(clock):
    return Cluster(clock)


@pytest.fixture
def write(tmp_path):
    def write(values):
        return TaskFile.write(tmp_path / "tasks.json", [TaskSpec("toy", {"k": k}, 0) for k in values], Toy())

    return write


def drive(cluster, tasks, **options):
    """A driver from its start to its end: the errors, by k."""
    done = tasks.finished()
    missing = [i for i, key in enumerate(tasks.keys) if key not in done]
    ticks = []
    errors = ArrayEngine(cluster, **{"settle": SETTLE, **options}).run(tasks, missing, ticks.append)
    if not options.get("detach"):
        assert sum(ticks) == len(missing) - sum(error.startswith("its job ended") for error in errors.values())
    return {tasks[i].parameters["k"]: error for i, error in errors.items()}


def complete(tasks):
    return set(tasks.keys) <= tasks.finished()


def sizes(cluster):
    return [[len(group) for group in array.groups] for array in cluster.submitted]


def folders(tasks):
    return sorted(path.name for path in tasks.path.with_suffix(".jobs").glob("*"))


def test_a_pilot_goes_first_and_the_rest_by_its_times(cluster, write):
    tasks, cluster.seconds = write(range(100)), 30.0
    assert drive(cluster, tasks, target_minutes=10) == {}
    assert complete(tasks)
    assert sizes(cluster) == [[1] * 10, [18] * 5]
    pilot, rest = cluster.values
    assert pilot == [[k] for k in range(0, 100, 10)]
    assert rest[0][:3] == [1, 6, 12]  # far apart, as neighbours take alike
    assert set(cluster.tries.values()) == {1}
    assert folders(tasks) == []


@pytest.mark.parametrize(("count", "first"), [(1, 1), (4, 4), (5, 3), (40, 6), (450, 20)])
def test_of_many_tasks_few_go_first(cluster, write, count, first):
    tasks = write(range(count))
    assert drive(cluster, tasks) == {}
    assert sizes(cluster)[0] == [1] * first
    assert complete(tasks)


@pytest.mark.parametrize(("seconds", "minutes", "jobs"), [(60, 10, 5), (600, 1, 50), (1e-9, 1e9, 1), (40, 1, 25)])
def test_jobs_are_as_long_as_planned(cluster, write, seconds, minutes, jobs):
    tasks = write(range(51))
    finish(tasks[7], seconds)
    assert drive(cluster, tasks, target_minutes=minutes) == {}
    assert len(sizes(cluster)[0]) == jobs
    assert max(sizes(cluster)[0]) - min(sizes(cluster)[0]) <= 1
    assert sorted(i for group in cluster.values[0] for i in group) == [i for i in range(51) if i != 7]


def test_times_are_a_mean_of_results(cluster, write):
    tasks = write(range(64))
    for k, seconds in enumerate([30, 90, 60, 60]):
        finish(tasks[k], seconds)
    drive(cluster, tasks, target_minutes=10)
    assert sizes(cluster) == [[10] * 6]


def test_a_pilot_that_fails_does_not_hold_up_the_rest(cluster, write):
    tasks = write(range(100))
    cluster.fates = {k: ["error"] for k in range(0, 100, 5)}
    assert sorted(drive(cluster, tasks)) == list(range(0, 100, 5))
    assert len(tasks.finished()) == 80
    assert [len(groups) for groups in sizes(cluster)[:2]] == [10, 18]


def cancel_all(cluster):
    cluster.jobs.clear()
    cluster.frozen = False


def test_after_a_mass_cancel_few_tasks_are_measured_again(cluster, clock, write):
    tasks, cluster.seconds, cluster.frozen = write(range(40)), 30.0, True
    clock.after(5.0, lambda: cancel_all(cluster))
    assert drive(cluster, tasks, target_minutes=10) == {}
    assert complete(tasks)
    assert [len(groups) for groups in sizes(cluster)] == [6, 10, 3]
    assert cluster.values[2][0] == [7, 14, 21, 35]  # the jobs of these have died


def test_after_a_mass_cancel_of_groups_their_first_tasks_are_grouped(cluster, clock, write):
    tasks, cluster.seconds = write(range(40)), 300.0
    finish(tasks[0], 300.0)
    cluster.frozen = True
    clock.after(5.0, lambda: cancel_all(cluster))
    assert drive(cluster, tasks, target_minutes=10) == {}
    assert sizes(cluster) == [[2] * 19 + [1], [2] * 19 + [1]]
    assert set(cluster.tries.values()) == {1}


def test_the_first_few_are_all_waited_for(cluster, clock, write):
    tasks, cluster.frozen = write(range(36)), True
    for k in range(0, 36, 6):
        clock.after(20.0 + 2 * k, lambda k=k: finish(tasks[k], 30.0 + 10 * k))
    submitted = []
    clock.after(78.0, lambda: submitted.append(len(cluster.submitted)))
    clock.after(200.0, lambda: setattr(cluster, "frozen", False))
    assert drive(cluster, tasks, target_minutes=10) == {}
    assert submitted == [1]
    assert sizes(cluster)[1] == [3] * 10  # by the median of 30, 90, ..., 330 seconds


def test_tasks_that_run_longer_than_a_job_is_planned_hold_up_no_others(cluster, clock, write):
    tasks, submitted = write(range(40)), []
    clock.after(1.0, lambda: setattr(cluster, "frozen", True))  # the first few run
    for moment in (50.0, 90.0):
        clock.after(moment, lambda: submitted.append(len(cluster.submitted)))
    clock.after(200.0, lambda: setattr(cluster, "frozen", False))
    assert drive(cluster, tasks, target_minutes=1) == {}
    assert submitted == [1, 2]
    assert sizes(cluster)[1] == [1] * 34


def test_arrays_are_no_larger_than_the_site_allows(cluster, write):
    tasks, cluster.most_jobs = write(range(101)), 7
    finish(tasks[0])
    assert drive(cluster, tasks, parallel=31) == {}
    assert sizes(cluster) == [[1] * 7] * 14 + [[1] * 2]
    assert [array.parallel for array in cluster.submitted] == [2] * 15
    assert set(cluster.tries.values()) == {1}


@pytest.mark.parametrize(("parallel", "share"), [(0, 0), (1, 1), (3, 1), (4, 2), (6, 3)])
def test_the_limit_on_jobs_is_divided_among_arrays(cluster, write, parallel, share):
    tasks, cluster.most_jobs = write(range(9)), 4
    finish(tasks[0])
    drive(cluster, tasks, parallel=parallel)
    assert [array.parallel for array in cluster.submitted] == [share] * 2


def test_without_times_a_detached_driver_fills_one_array(cluster, write):
    tasks, cluster.most_jobs = write(range(100)), 7
    assert set(drive(cluster, tasks, detach=True).values()) == {SUBMITTED}
    assert sizes(cluster) == [[15, 15, 14, 14, 14, 14, 14]]


def test_a_detached_driver_submits_once(cluster, write):
    tasks = write(range(10))
    cluster.frozen = True
    for _ in range(3):
        assert drive(cluster, tasks, detach=True) == dict.fromkeys(range(10), SUBMITTED)
    assert len(cluster.submitted) == 1
    cluster.frozen = False
    assert drive(cluster, tasks) == {}
    assert (len(cluster.submitted), set(cluster.tries.values())) == (1, {1})
    assert folders(tasks) == []


def test_a_second_driver_adds_what_nobody_does(cluster, write):
    tasks = write(range(10))
    cluster.frozen = True
    drive(cluster, tasks, detach=True)
    first = cluster.submitted[0].name
    for job in (2, 5):
        del cluster.jobs[first, job]
    cluster.frozen = False
    assert drive(cluster, tasks) == {}
    assert cluster.values[1] == [[2], [5]]
    assert set(cluster.tries.values()) == {1}


def test_places_of_jobs_follow_a_task_file_that_changes(cluster, write):
    cluster.frozen = True
    drive(cluster, write(range(10)), detach=True)
    tasks = write([77, *(k for k in reversed(range(10)) if k != 3), 78])
    cluster.frozen = False
    assert drive(cluster, tasks) == {}
    assert complete(tasks)
    assert cluster.values[1] == [[0], [10]]
    assert cluster.tries == dict.fromkeys([*range(10), 77, 78], 1)


def test_jobs_of_a_driver_killed_before_it_knows_the_id_are_replaced(cluster, write):
    """Their work may not lie where they look for it."""
    tasks = write(range(4))
    cluster.replies = [Killed()]
    with pytest.raises(Killed):
        drive(cluster, tasks)
    assert drive(cluster, tasks) == {}
    assert cluster.cancelled == [(cluster.submitted[0].name, 0)]
    assert (len(cluster.submitted), set(cluster.tries.values())) == (2, {1})
    assert folders(tasks) == []


@pytest.mark.parametrize("moment", range(1, 10))
def test_a_driver_killed_at_any_time_is_followed(cluster, clock, write, monkeypatch, moment):
    tasks = write(range(100))
    cluster.seconds, cluster.fates = 30.0, {33: ["dies", "done"]}
    sleep, calls = clock.sleep, Counter()

    def killed(seconds):
        calls["sleep"] += 1
        if calls["sleep"] == moment:
            raise Killed
        sleep(seconds)

    monkeypatch.setattr(arrays.time, "sleep", killed)
    with pytest.raises(Killed):
        drive(cluster, tasks, settle=5)
    assert drive(cluster, tasks, settle=5) == {}
    assert complete(tasks)
    assert {k: n for k, n in cluster.tries.items() if n > 1} == {33: 2}
    assert folders(tasks) == []


def groups_of_ten(cluster, write):
    """21 tasks in two jobs, of odd and of even k, after one that is finished."""
    tasks, cluster.seconds = write(range(21)), 60.0
    finish(tasks[0], 60.0)
    return tasks


def test_of_tasks_that_vanish_the_first_is_charged(cluster, write):
    tasks = groups_of_ten(cluster, write)
    cluster.fates = {5: ["dies", "dies", "done"]}
    assert drive(cluster, tasks, retries=3) == {}
    assert complete(tasks)
    assert cluster.values[1] == [[5], [7, 9, 11, 13, 15, 17, 19]]
    assert cluster.values[2] == [[5]]
    assert {k: n for k, n in cluster.tries.items() if n > 1} == {5: 3}


@pytest.mark.parametrize("retries", [1, 3])
def test_a_task_that_kills_its_jobs_is_given_up_with_their_story(cluster, write, retries):
    tasks = groups_of_ten(cluster, write)
    cluster.fates = {5: ["dies"]}
    errors = drive(cluster, tasks, retries=retries)
    last = f"{100 + retries}_0"
    assert errors == {5: f"its job ended without a result ({retries} of {retries} tries): job {last}"}
    assert cluster.tries[5] == retries
    assert len(tasks.finished()) == 20
    kept = [array.name for array in arrays_of(tasks)]
    assert cluster.submitted[retries - 1].name in kept  # its logs are pointed at
    assert drive(cluster, tasks, retries=1)  # starts again without the old errors
    assert not set(kept) & set(folders(tasks))


def test_a_task_that_raises_is_not_tried_again(cluster, write, caplog):
    tasks = groups_of_ten(cluster, write)
    cluster.fates = {5: ["error", "done"], 6: ["error"]}
    assert drive(cluster, tasks) == {5: "5 is bad\n", 6: "6 is bad\n"}
    assert len(cluster.submitted) == 1
    assert set(cluster.tries.values()) == {1}
    assert drive(cluster, tasks) == {6: "6 is bad\n"}  # but by the next driver
    assert (cluster.tries[5], cluster.tries[6]) == (2, 2)
    assert tasks.failed() == {tasks.keys[6]}


def test_a_system_that_does_not_answer_is_asked_again(cluster, write, caplog):
    tasks = write(range(4))
    cluster.answers = [None, None, None]
    assert drive(cluster, tasks) == {}
    assert cluster.answers == []
    assert caplog.text.count("does not answer") == 1
    assert len(cluster.submitted) == 1


def test_silence_is_not_taken_for_an_empty_queue(cluster, clock, write):
    tasks = write(range(10))
    cluster.frozen = True
    drive(cluster, tasks, detach=True)
    cluster.answers, cluster.frozen = [None] * 50, False
    assert drive(cluster, tasks) == {}
    assert clock.now > 10 * SETTLE
    assert (len(cluster.submitted), set(cluster.tries.values())) == (1, {1})


def test_what_is_refused_goes_later(cluster, write):
    tasks, cluster.most_jobs = write(range(9)), 4
    finish(tasks[0])
    cluster.replies = [None, Refused("enough"), Refused("enough")]
    assert drive(cluster, tasks) == {}
    assert sizes(cluster) == [[1] * 4] * 2
    assert set(cluster.tries.values()) == {1}
    assert folders(tasks) == []


def test_a_refusal_with_no_job_in_the_queue_is_an_error(cluster, write):
    tasks = write(range(9))
    cluster.replies = [Refused("no such account")]
    with pytest.raises(WorkFailed, match=r"^no such account$"):
        drive(cluster, tasks)
    assert folders(tasks) == []


def test_a_refusal_while_the_system_is_away_is_none(cluster, write):
    tasks = write(range(9))
    cluster.replies, cluster.answers = [Refused("no contact"), Refused("no contact")], [{}, {}, None, {}, None]
    assert drive(cluster, tasks) == {}
    assert cluster.answers == cluster.replies == []


def test_refusals_are_not_answered_with_haste(cluster, clock, write):
    tasks, cluster.most_jobs = write(range(9)), 4
    finish(tasks[0])
    cluster.replies, cluster.frozen = [None, *[Refused("enough")] * 500], True

    def thaw():
        cluster.frozen, cluster.left = False, len(cluster.replies)
        cluster.replies.clear()

    clock.after(3000.0, thaw)
    assert drive(cluster, tasks, longest_pause=15) == {}
    assert 500 - cluster.left < 1.1 * 3000 / 15


@pytest.mark.parametrize("deaf", [False, True])
def test_a_job_that_is_held_is_cancelled_and_replaced(cluster, clock, write, deaf):
    tasks, cluster.deaf = write(range(3)), deaf
    clock.after(0.1, lambda: cluster.jobs.update({(cluster.submitted[0].name, 1): HELD}))
    assert drive(cluster, tasks) == {}
    assert cluster.cancelled[0] == (cluster.submitted[0].name, 1)
    assert cluster.values[1] == [[1]]
    assert set(cluster.tries.values()) == {1}


def test_jobs_that_can_never_start_are_warned_of_once(cluster, clock, write, caplog):
    tasks, cluster.frozen = write(range(3)), True
    clock.after(0.1, lambda: cluster.jobs.update(dict.fromkeys(cluster.jobs, f"{STUCK} (PartitionTimeLimit)")))
    clock.after(100.0, lambda: (cluster.jobs.clear(), vars(cluster).update(frozen=False)))
    assert drive(cluster, tasks, retries=2) == {}
    (warning,) = [record.message for record in caplog.records if "never" in record.message]
    assert warning.startswith("jobs 101 can never start: STUCK (PartitionTimeLimit)")


def test_jobs_that_wait_for_tasks_of_an_earlier_sweep_are_cancelled(cluster, clock, write):
    cluster.frozen = True
    drive(cluster, write(range(6)), detach=True)
    name = cluster.submitted[0].name
    cluster.jobs[name, 5] = "RUNNING"
    clock.after(0.1, lambda: vars(cluster).update(frozen=False))
    assert drive(cluster, write(range(2, 5))) == {}
    assert cluster.cancelled == [(name, 0), (name, 1)]
    assert len(cluster.submitted) == 1


def test_one_slow_task_does_not_spoil_the_groups(cluster, write):
    tasks = write(range(53))
    for place, seconds in enumerate((5000.0, 60.0, 60.0)):  # the first compiled code
        finish(tasks[place], seconds)
    assert drive(cluster, tasks) == {}
    assert [len(groups) for groups in cluster.values] == [5]


def test_held_jobs_of_a_driver_that_died_are_cancelled(cluster, write):
    tasks = write(range(3))
    cluster.frozen = True
    drive(cluster, tasks, detach=True)
    name = cluster.submitted[0].name
    cluster.jobs, cluster.frozen = dict.fromkeys(cluster.jobs, HELD), False
    assert drive(cluster, tasks) == {}
    assert set(cluster.cancelled) == {(name, job) for job in range(3)}
    assert cluster.jobs == {}
    assert folders(tasks) == []


def test_a_requeued_job_is_waited_for(cluster, write):
    tasks = write(range(3))
    cluster.fates = {1: ["requeue", "requeue", "done"]}
    assert drive(cluster, tasks, retries=1) == {}
    assert (len(cluster.submitted), cluster.tries[1]) == (1, 3)


@pytest.mark.parametrize(("delay", "arrays"), [(SETTLE - 5, 1), (SETTLE + 15, 2)])
def test_a_result_may_be_seen_late(cluster, write, delay, arrays):
    tasks = write(range(3))
    cluster.fates = {1: [delay, "done"]}
    assert drive(cluster, tasks, longest_pause=1) == {}
    assert len(cluster.submitted) == arrays


def test_an_interrupt_leaves_jobs_and_names_them(cluster, clock, write, caplog):
    tasks, cluster.most_jobs = write(range(9)), 4
    finish(tasks[0])

    def interrupt():
        raise KeyboardInterrupt

    clock.after(0.1, interrupt)
    with pytest.raises(KeyboardInterrupt):
        drive(cluster, tasks)
    assert "jobs continue: 101 102;" in caplog.text
    assert len(cluster.jobs) == 8
    assert cluster.cancelled == []
    assert drive(cluster, tasks) == {}
    assert (len(cluster.submitted), set(cluster.tries.values())) == (2, {1})


@pytest.mark.parametrize("record", ["", "[]", '{"groups": ', "{}"])
def test_a_damaged_record_of_jobs_costs_their_work_at_most(cluster, write, record):
    tasks = write(range(3))
    cluster.frozen = True
    drive(cluster, tasks, detach=True)
    (cluster.submitted[0].folder / "array.json").write_text(record)
    cluster.frozen = False
    assert drive(cluster, tasks) == {}
    assert complete(tasks)


def test_what_a_driver_left_that_died_while_it_cleaned_is_removed(cluster, write):
    tasks = write(range(3))
    cluster.frozen = True
    drive(cluster, tasks, detach=True)
    cluster.submitted[0].tasks.unlink()
    half = tasks.path.with_suffix(".jobs") / "thesis-cli-half"
    half.mkdir()
    cluster.frozen = False
    assert drive(cluster, tasks) == {}
    assert complete(tasks)
    assert half.name not in folders(tasks)


def test_a_file_system_without_links_has_copies(cluster, write, monkeypatch):
    def refuse(*paths):
        raise OSError("no links here")

    monkeypatch.setattr(os, "link", refuse)
    cluster.frozen = True
    tasks = write(range(5))
    drive(cluster, tasks, detach=True)
    copy = cluster.submitted[0].tasks
    assert not copy.samefile(tasks.path)
    assert copy.read_bytes() == tasks.path.read_bytes()
    cluster.frozen = False
    assert drive(cluster, tasks) == {}
    assert len(cluster.submitted) == 1


def test_the_queue_is_not_looked_at_more_often_than_is_polite(cluster, clock, write):
    tasks = write(range(200))
    finish(tasks[0])
    cluster.frozen = True
    for k in range(1, 200):  # one result every 30 seconds, for over an hour and a half
        clock.after(30.0 * k, lambda k=k: finish(tasks[k]))
    assert drive(cluster, tasks, longest_pause=15) == {}
    assert cluster.looks < 1.1 * clock.now / 15


def test_a_file_is_read_as_it_was_written(tmp_path):
    shared = {"k": 1, "b": [1, 'x, "seed": 3}']}
    entries = [TaskSpec("toy", shared, seed) for seed in (0, 1, None, 12, 12)]
    entries += [
        TaskSpec("toy", {"k": 1}, 12),
        TaskSpec("other", {"k": 1}, 12),
        TaskSpec("toy", {}, None),
        TaskSpec("toy", shared, 5),
    ]
    entries += [
        TaskSpec("toy", {"seed": 5}, 6),
        TaskSpec("toy", {"seed": 5}, 7),
        TaskSpec("toy", {"\u00e9": 2.5e-300}, 2**70),
    ]
    tasks = TaskFile.write(tmp_path / "tasks.json", entries, Toy())
    again = TaskFile(tmp_path / "tasks.json", Toy())
    assert list(tasks) == list(again)
    assert [TaskSpec(t.command, t.parameters, t.seed) for t in again] == entries
    assert again.keys == [task_key(e.command, 1, e.parameters, e.seed) for e in entries]
    assert [e._asdict() for e in entries] == json.loads(tasks.path.read_text())


def test_takeovers_are_told(cluster, write, caplog):
    tasks = write(range(5))
    cluster.frozen = True
    drive(cluster, tasks, detach=True)
    cluster.frozen = False
    with caplog.at_level(logging.INFO, "thesis_cli"):
        drive(cluster, tasks)
    assert "5 jobs of an earlier run taken over" in caplog.text


def test_the_record_of_an_array_is_readable(cluster, write):
    tasks = write(range(3))
    drive(cluster, tasks, detach=True)
    (array,) = arrays_of(tasks)
    record = json.loads((array.folder / "array.json").read_text())
    assert set(record) == {"groups", "id", "submitted"}
    assert (record["groups"], array.id()) == ([[0], [1], [2]], "101")
