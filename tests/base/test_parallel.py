import threading
import time

import pytest

from thesis_cli.base.parallel import Threads


@pytest.mark.parametrize("jobs", [1, 3])
def test_results_come_in_order_and_are_counted(jobs):
    def work(k, word):
        time.sleep(0.001 * (k % 3))
        return k + len(word)

    done = []
    with Threads(jobs) as threads:
        assert list(threads.map(work, range(100), ["a"] * 100)) == [k + 1 for k in range(100)]
        threads.run(work, range(5), ["bc"] * 5, progress=done.append)
    assert done == [2, 3, 4, 5, 6]
    assert not threads.stopped


@pytest.mark.parametrize("jobs", [1, 2])
def test_after_an_exception_no_further_call_starts(jobs):
    begun = []

    def work(k):
        begun.append(k)
        if k == 3:
            raise KeyboardInterrupt
        time.sleep(0.001)

    threads = Threads(jobs)
    with pytest.raises(KeyboardInterrupt), threads:
        list(threads.map(work, range(1000)))
    assert threads.stopped
    assert len(begun) < 50


def test_several_threads_work_at_once():
    both = threading.Barrier(2, timeout=20)
    with Threads(2) as threads:
        assert len(list(threads.map(lambda _: both.wait(), range(2)))) == 2


def test_arguments_of_different_lengths_are_an_error():
    with Threads(1) as threads, pytest.raises(ValueError, match="shorter"):
        list(threads.map(lambda a, b: None, range(2), range(1)))
