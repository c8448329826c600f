"""What the test files for a real GPU share."""
import os
import pathlib
import shutil
import subprocess
import sys
import threading

from figure import used_mib

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "preload"))
from harness import MIB, Case, program  # noqa: E402

HERE = pathlib.Path(__file__).resolve().parent
GPU = pathlib.Path(os.environ["GPU_PROGRAMS"])


def devices():
    return len(subprocess.run(["nvidia-smi", "-L"], capture_output=True, text=True, check=True).stdout.splitlines())


class Peak:
    """The highest figure of used_mib while the block runs, less what was used before it."""

    def __enter__(self):
        self.before, self.mib, self.done = used_mib(), 0, threading.Event()
        self.thread = threading.Thread(target=self.watch)
        self.thread.start()
        return self

    def watch(self):
        while not self.done.is_set():
            self.mib = max(self.mib, used_mib() - self.before)

    def __exit__(self, *_):
        self.done.set()
        self.thread.join()


def tell(text):
    print(f"    {text}", flush=True)


class RealGpu(Case):
    def setUp(self):
        super().setUp()
        if "TESTS_KEEP" in os.environ:  # a folder for the logs
            self.addCleanup(self.keep, pathlib.Path(os.environ["TESTS_KEEP"]))

    def keep(self, folder):
        for path in self.folder.rglob("*"):
            if path.is_file():
                shutil.copy(path, folder / f"{self.id()}.{path.name}")

    def tell_hits(self, records):
        hits = ", ".join(f"{h['symbol']} by {h['way']} {h['count']}" for h in records[-1]["hits"])
        tell(f"hits: {hits}")

    def device_peak_mib(self, records):
        return records[-1]["peak"]["device_bytes"] // MIB

    def context_mib(self):
        """What a process costs beside its allocations: the peak of one that allocates next to nothing."""
        with Peak() as peak:
            self.run_program(program("prog_runtime", "--count", "3", "--mib", "2"), preload=False)
        return peak.mib
