"""Scenario 2 on the simulated GPU."""
import unittest

from growing_pool import DEVICE, GROWN, KV, PLAIN, SCALE, SIZES, WEIGHTS, GrowingPool
from scenario import Limited, Scenario, decided, profile, surfaced, up


class Managed(GrowingPool, Scenario):
    def test_the_block_in_use_is_on_the_device(self):
        done, _ = self.in_profile()
        used, = [int(line.split()[-1]) for line in done.stdout.splitlines() if line.startswith("used behind the prompt")]
        self.assertGreaterEqual(used, self.taken([WEIGHTS, KV, *PLAIN]) + up(GROWN[-1]))
        self.assertLessEqual(used, DEVICE)

    def test_nothing_is_brought_ahead(self):
        """Where there is room, too: what nobody uses would be on the device instead of what is in use."""
        done, records = self.with_policy(self.program(), 2 * DEVICE, profile("growing-pool", SCALE))
        self.check_profile(done, records)

    def test_a_dead_block_that_is_still_written(self):
        """Each block is asked for while the device writes to the one before, whose words are all there afterwards."""
        self.check_profile(*self.in_profile("hold"))


class WithinALimit(GrowingPool, Limited):
    """As on a real GPU."""


class Movable(GrowingPool, Scenario):
    """A device with virtual memory management: no profile is needed."""

    CAPS = ""

    def in_profile(self, *words, **variables):
        size = DEVICE + self.taken([size for size in SIZES if size < up(1)])  # movable.min
        return self.logged(self.program(*words), size, SPILL_DEVICE_RESERVE="0", SPILL_MOVABLE_WAIT="30s", **variables)

    def check_profile(self, done, records):
        """Only blocks that the pool has left behind move, and there is room for all of what is in use."""
        self.right(done)
        self.assertEqual(surfaced(records), [])
        asked = decided(records)
        self.assertEqual([r["bytes"] for r in asked], [WEIGHTS, KV, *SIZES])
        self.assertEqual({r["place"] for r in asked} - {"device", "movable"}, set())
        seqs = {r["seq"]: n for n, r in enumerate(asked)}
        newest, moved = 0, 0
        for record in records:
            if record["kind"] == "alloc":
                newest = max(newest, seqs.get(record["seq"], 0))
            elif record["kind"] == "move" and record["what"] == "demote":
                self.assertGreaterEqual(seqs[record["seq"]], 2, "a block of the pool")
                self.assertLessEqual(seqs[record["seq"]], newest, "that was left behind")
                moved += record["bytes"]
        self.assertGreater(moved, 0)

    def check_decode(self, done, records):
        lines = done.stdout.splitlines()
        self.assertEqual([line for line in lines[lines.index("-- decode"):] if line.startswith("alloc")], [])


if __name__ == "__main__":
    unittest.main(verbosity=2)
