"""Runs tests as meson does, side by side, until one fails."""
import concurrent.futures
import os
import resource
import signal
import subprocess
import threading
import time

SKIPPED = 77
# Meson has memory of malloc filled, by a number that changes. One that stays is the same for each change.
FILLED = {"MALLOC_PERTURB_": "181"}


class Runner:
    def __init__(self, folder):
        self.folder, self.lock = folder, threading.Lock()
        self.running, self.ended = set(), False

    def passes(self, test, limit):
        """True if it passed or was skipped, or was stopped as another one failed."""
        environment = {name: value for name, value in os.environ.items() if name not in ("LD_PRELOAD", "LD_LIBRARY_PATH")} | FILLED | test["env"]
        with self.lock:
            if self.ended:
                return True
            process = subprocess.Popen(test["cmd"], env=environment, cwd=test["workdir"] or self.folder, stdin=subprocess.DEVNULL,
                                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True)
            self.running.add(process)
        try:
            status = process.wait(limit)
        except subprocess.TimeoutExpired:
            status = None
        with self.lock:
            self.running.discard(process)
            end(process)
            process.wait()
            return self.ended or status in (0, SKIPPED)

    def stop(self):
        with self.lock:
            self.ended = True
            for process in self.running:
                end(process)


def end(process):
    """With all that it started."""
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass


def processor_seconds():
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def time_of(test, folder, limit):
    """Seconds of a processor, and of the clock; None if it fails. pre: no other test runs"""
    began, used = time.monotonic(), processor_seconds()
    passed = Runner(folder).passes(test, limit)
    return {"seconds": processor_seconds() - used, "clock": time.monotonic() - began} if passed else None


def first_to_fail(tests, limits, folder):
    runner = Runner(folder)

    def one(test):
        if runner.passes(test, limits[test["name"]]):
            return None
        runner.stop()
        return test

    with concurrent.futures.ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        return next((test for test in pool.map(one, tests) if test), None)
