"""Memory that another process uses, too, by legacy IPC handles (torch.multiprocessing), with little or too little memory.

Run by scripts/gpu-test. Movable memory has no such handle from the driver: libspill hands it on itself.
"""
import contextlib
import os
import sys
import unittest

from hog import Hog
from real import GPU, HERE, devices, tell
from test_frameworks import needs
from test_moves import LEFT, MOVING, Moving, within


@needs("torch")
class Share(Moving):
    follow = None

    def both(self, mib, count):
        """With memory enough, and with LEFT MiB for both processes. The tensors are the same."""
        command = within(100, [sys.executable, HERE / "share_job.py", mib, count])
        enough = self.good(self.run_program(command, preload=False))
        with Hog(GPU.parent.parent, LEFT, os.environ["SIM_PATH"]):
            done = self.run_program(command, SPILL_OOM_CHAIN=MOVING, SPILL_LOG=f"{self.folder}/log-%p.jsonl")
        self.assertEqual(done.stdout, enough.stdout, done.stderr[-3000:])
        self.good(done)
        logs = [(path, self.all_lines(path)) for path in self.folder.glob("log-*.jsonl")]
        for path, lines in logs:
            moved = sum(line["bytes"] for line in lines if line["kind"] == "move") >> 20
            tell(f"{path.name}: {moved} MiB moved, {sum(line['kind'] == 'note' and line['code'] == 'export' for line in lines)} notes")
        return [line for _, lines in logs for line in lines]

    def test_what_fits_is_shared(self):
        lines = self.both(256, 12)
        self.assertEqual([line for line in lines if line["kind"] == "move"], [])

    def test_what_does_not_fit_is_shared(self):
        lines = self.both(256, 36)
        self.assertNotEqual([line for line in lines if line["kind"] == "move"], [])

    @needs("cupy")
    @unittest.skipIf(devices() < 2, "needs two GPUs")
    def test_buffers_that_other_devices_read(self):
        for fill in (4, 30):
            with self.subTest(fill), contextlib.ExitStack() as pressure:
                command = within(100, [sys.executable, HERE / "reduce_job.py", 256, fill, 2])
                enough = self.good(self.run_program(command, preload=False))
                for device in range(2):
                    pressure.enter_context(Hog(GPU.parent.parent, LEFT, os.environ["SIM_PATH"], device))
                done = self.run_program(command, SPILL_OOM_CHAIN=MOVING, SPILL_LOG=f"{self.folder}/reduce-{fill}-%p.jsonl")
                self.good(done)
                self.assertEqual(sorted(done.stdout.splitlines()), sorted(enough.stdout.splitlines()))
                tell(f"{fill}: equal; {done.stderr[-300:]}")
