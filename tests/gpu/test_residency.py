"""Residency that follows use, on a real GPU, within a device.limit: answers stay the same. Run by scripts/gpu-test.

What is fast is measured by scripts/bench --follow, not here.
"""
import sys

from real import HERE, tell
from test_frameworks import needs
from test_moves import MOVING, Moving, within


@needs("torch")
class Follows(Moving):
    def follow(self, limit_mib, script, *arguments):
        """Runs with enough memory and with each movable.follow. Returns the MiB that came back, by movable.follow."""
        command = within(60, [sys.executable, HERE / script, *arguments])
        enough = self.good(self.run_program(command, preload=False))
        promoted = {}
        for way in ("off", "auto", "on"):
            self.log.unlink(missing_ok=True)
            done = self.good(self.run_program(command, SPILL_OOM_CHAIN=MOVING, SPILL_MOVABLE_ENABLE="on",
                                              SPILL_MOVABLE_FOLLOW=way, SPILL_DEVICE_LIMIT=f"{limit_mib}MiB"))
            tell(f"follow = {way}: {' '.join(done.stderr.split()[-10:])}")
            self.assertEqual(done.stdout, enough.stdout, f"follow = {way}")
            records = self.checked_records()
            self.assertGreater(self.moved(records, "demote"), 0)
            promoted[way] = self.moved(records, "promote")
            self.assertLessEqual(self.device_peak_mib(records), limit_mib)
        return promoted

    def test_products_are_the_same(self):
        """More than 1 GiB of 8 is on the host, and each weight is used once a step: that much must come in each."""
        steps = 5
        promoted = self.follow(7168, "matmul_job.py", 512, steps)
        self.assertGreaterEqual(promoted["on"] - promoted["off"], 1024 * (steps - 1))

    def test_training_gives_the_same_losses(self):
        """The peak is 8.5 GiB: each step uses 2 GiB more than there is room for, so at least half of that must come in each."""
        steps = 4
        promoted = self.follow(6144, "train_job.py", 8, steps)
        self.assertGreaterEqual(promoted["on"] - promoted["off"], 1024 * (steps - 1))
