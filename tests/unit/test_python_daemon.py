"""Python workers are forked from a process that has imported what they need."""

import subprocess
import sys

COUNTED = """
import os
from penstock.spark.cluster import daemon
daemon.preload()
print(len(os.listdir("/proc/self/task")), daemon.PRELOADED[-1] in __import__("sys").modules)
"""


def test_it_has_no_thread_that_could_hold_a_lock_when_it_forks() -> None:
    """What such a thread has locked stays locked in the worker, which then waits for ever."""
    done = subprocess.run(
        [sys.executable, "-c", COUNTED], capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == ["1", "True"]
