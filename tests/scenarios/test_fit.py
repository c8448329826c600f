"""Scenario 5 on the simulated GPU, with three devices."""
import unittest

from fit import COUNTS, PROJECTED, REST, TOTALS, Fit, LimitedFit, scaled
from scenario import MIB, Limited, Scenario


class ThreeDevices(Fit, Scenario):
    CAPS = ""

    def small(self, size, **variables):
        sizes = ",".join(str(scaled(total)) for total in TOTALS)
        return {"SPILL_SIM_VRAM": sizes, "SPILL_SIM_DEVICES": "3", "SPILL_SIM_CAPS": self.CAPS, **variables}

    def test_alone_it_ends(self):
        self.failed(self.alone(self.program(), None), 0)

    def test_alone_the_second_kv_cache_fails(self):
        """After the first device's took its part."""
        done = self.alone(self.program(self.WRONG), None)
        self.assertEqual(self.failed(done, 1), "kv")
        self.assertIn("alloc kv 0", done.stdout)

    def test_the_devices(self):
        self.assertEqual([row["total"] // scaled(1) for row in self.table([])], list(TOTALS))
        self.assertEqual([self.dense(n) + REST + COUNTS[n] * 1000 for n in range(3)], [34519, 31328, 60000])
        self.assertGreater(min(PROJECTED), max(TOTALS))
        _, records = self.run_it(self.WRONG)
        self.assertEqual([device["bytes"] // MIB // 2 for device in records[0]["devices"]],
                         [scaled(total) // MIB // 2 for total in TOTALS])


class WithinALimit(LimitedFit, Limited):
    """As on real GPUs."""

    DEVICES = 3

    def small(self, size, **variables):
        return {"SPILL_SIM_VRAM": "8GiB", "SPILL_SIM_DEVICES": "3", **variables}


if __name__ == "__main__":
    unittest.main(verbosity=2)
