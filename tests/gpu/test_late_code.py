"""Room for code on a full card, on a real GPU under real pressure: training that loads kernels late, where little or nothing can move.

Run by scripts/gpu-test. Each of these died with the reserve used up ("CUDA error: unknown error", cuDNN internal errors).
"""
import contextlib
import os
import re
import sys
import unittest

from hog import Hog
from real import GPU, HERE, devices, tell
from test_frameworks import needs
from test_moves import MOVING, Moving, within

STEPS = 5
SHORT = 145  # per cent of the memory that there is
CONTEXT_MIB = 500  # of each process, beside what PyTorch reserves
# NVLink multicast can put a shared host's GPUs out of service. The harness gives a bare environment, so this is said again.
NO_MULTICAST = {"NCCL_NVLS_ENABLE": "0", "TORCH_SYMM_MEM_DISABLE_MULTICAST": "1", "NVSHMEM_DISABLE_NVLS": "1"}


class Training(Moving):
    """With what people run: followed, and with the log's sums."""

    follow = None
    level = None
    logs = "log-%p.jsonl"

    def train(self, command, short_devices, more_mib=CONTEXT_MIB, **variables):
        """With enough memory, then with so little that the peak is 1.45 times that. The losses are the same."""
        command, variables = within(150, command), variables | NO_MULTICAST
        enough = self.good(self.run_program(command, preload=False, **variables))
        peak = int(re.search(r"^peak (\d+)$", enough.stderr, re.MULTILINE)[1])
        with contextlib.ExitStack() as pressure:
            for device in range(short_devices):
                pressure.enter_context(Hog(GPU.parent.parent, peak * 100 // SHORT + more_mib, os.environ["SIM_PATH"], device))
            done = self.run_program(command, SPILL_OOM_CHAIN=MOVING, SPILL_LOG=f"{self.folder}/{self.logs}", **variables)
        times = [re.search(r"^ms ([\d.]+)$", run.stderr, re.MULTILINE) for run in (enough, done)]
        tell("ms a step: " + ", ".join(f"{name} {time[1] if time else '?'}" for name, time in zip(("enough", "short"), times))
             + f"; peak {peak} MiB")
        (self.folder / "stderr.txt").write_text(done.stderr, encoding="utf-8")
        self.good(done)
        self.assertEqual(done.stdout, enough.stdout)
        self.assertEqual(len(done.stdout.split()), STEPS)

    def job(self, mode):
        return [sys.executable, HERE / "late_code_job.py", mode, STEPS]


@needs("torch")
class LateCode(Training):
    def test_expandable_segments(self):
        self.train(self.job("one"), 1, PYTORCH_CUDA_ALLOC_CONF="expandable_segments:True")

    def test_stream_ordered_memory(self):
        self.train(self.job("one"), 1, PYTORCH_CUDA_ALLOC_CONF="backend:cudaMallocAsync")

    @unittest.skipIf(devices() < 2, "needs two GPUs")
    def test_two_devices(self):
        self.train(self.job("two"), 2)
