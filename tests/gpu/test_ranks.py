"""Ranks of torchrun with NCCL, and NCCL's own tests, on several GPUs under real pressure. Run by scripts/gpu-test.

NCCL_TESTS: a build of NVIDIA's nccl-tests; without it they are skipped.
"""
import contextlib
import json
import os
import pathlib
import shutil
import subprocess
import sys
import unittest

from hog import Hog
from real import GPU, HERE, devices, tell
from test_frameworks import needs
from test_late_code import CONTEXT_MIB, NO_MULTICAST, STEPS, Training
from test_moves import MOVING, Moving, within

from harness import SPILL

NCCL_MIB = 1500  # of each process, of NCCL's buffers
COUNTS = [count for count in (2, 4) if count <= devices()]


@needs("torch")
@unittest.skipUnless(COUNTS, "needs two GPUs")
class Ranks(Training):
    logs = "ranks/"  # named by libspill

    def ranks(self, mode, counts=COUNTS, **variables):
        for count in counts:
            with self.subTest(count, **variables):
                torchrun = [sys.executable, "-m", "torch.distributed.run", f"--nproc-per-node={count}",
                            "--master-addr=127.0.0.1", f"--master-port={29510 + count}"]
                self.train(torchrun + self.job(mode)[1:], count, CONTEXT_MIB + NCCL_MIB, **variables)
                self.reported(count)

    def reported(self, count):
        """One log a rank, named by it, and one report of all."""
        folder = self.folder / "ranks"
        names = sorted(path.name for path in folder.iterdir())
        tell(" ".join(names))
        self.assertEqual(len(names), count)
        text = subprocess.run([SPILL, "report", folder], capture_output=True, text=True, check=True).stdout
        for line in text.splitlines()[:20]:
            tell(line)
        report = json.loads(subprocess.run([SPILL, "report", "--json", folder], capture_output=True, text=True,
                                           check=True).stdout)
        self.assertEqual(len(report["runs"]), count)
        shutil.rmtree(folder)

    def test_data_parallel(self):
        self.ranks("ddp")

    def test_sharded(self):
        self.ranks("fsdp")

    def test_other_allocators(self):
        for value in ("expandable_segments:True", "backend:cudaMallocAsync"):
            self.ranks("ddp", COUNTS[:1], PYTORCH_ALLOC_CONF=value)

    @needs("jax")
    def test_jax_on_two_devices(self):
        """In one process, with NCCL's sums."""
        self.train([sys.executable, HERE / "jax_train_job.py", 512, STEPS, 2], 2, CONTEXT_MIB + NCCL_MIB)


@unittest.skipUnless("NCCL_TESTS" in os.environ, "no NCCL_TESTS")
@unittest.skipUnless(COUNTS, "needs two GPUs")
class Nccl(Moving):
    """One process with several devices. Its buffers have 12 GiB a device; half of that is free. NCCL checks all data."""

    follow = None
    level = None

    LARGEST_MIB, LEFT_MIB = 4096, 6144 + CONTEXT_MIB + NCCL_MIB

    def collective(self, name):
        for count in COUNTS:
            for threads in (1, count):
                with self.subTest(count=count, threads=threads), contextlib.ExitStack() as pressure:
                    for device in range(count):
                        pressure.enter_context(Hog(GPU.parent.parent, self.LEFT_MIB, os.environ["SIM_PATH"], device))
                    command = within(90, [pathlib.Path(os.environ["NCCL_TESTS"]) / name, "-b", "64M", "-e", f"{self.LARGEST_MIB}M",
                                          "-f", "8", "-n", "3", "-w", "1", "-c", "1", "-t", threads, "-g", count // threads])
                    done = self.run_program(command, SPILL_OOM_CHAIN=MOVING, SPILL_LOG=f"{self.folder}/{name}-{count}-{threads}.jsonl",
                                            LD_LIBRARY_PATH=f"{os.environ['LD_LIBRARY_PATH']}:{os.environ['SIM_PATH']}",
                                            **NO_MULTICAST)
                    tell(f"{count} devices, {threads} threads: " + " | ".join(done.stdout.splitlines()[-8:-6]) + done.stderr[-300:])
                    self.good(done)
                    self.assertRegex(done.stdout, r"Out of bounds values : 0 OK")

    def test_all_reduce(self):
        self.collective("all_reduce_perf")

    def test_all_gather(self):
        self.collective("all_gather_perf")

    def test_alltoall(self):
        self.collective("alltoall_perf")
