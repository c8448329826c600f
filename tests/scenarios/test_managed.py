"""Scenario 3 on the simulated GPU."""
import os
import pathlib
import unittest

from managed import DEVICE, KV, SIZES, WEIGHTS, Managed
from scenario import Limited, Scenario


class Coherent(Managed, Scenario):
    CAPS = ""

    def run_it(self, *given, **variables):
        return self.with_policy(self.program(), DEVICE, self.policy(*given), SPILL_DEVICE_RESERVE="0", **variables)

    def test_looking_at_it_moves_nothing(self):
        done, _ = self.run_it()
        self.assertEqual(self.used(done, "behind the host"), self.used(done, "behind the work"))
        self.assertLessEqual(self.used(done, "behind the work"), DEVICE)
        self.assertGreater(sum(SIZES), DEVICE)

    def test_a_prefetch_that_fails_is_no_error(self):
        self.good(*self.run_it(SPILL_SIM_FAIL="cuMemPrefetchAsync_v2:1+:2"), "cuMemAlloc_v2", prefetched=0)

    def test_advice_that_fails_is_no_error(self):
        done, records = self.run_it(SPILL_SIM_FAIL="cuMemAdvise_v2:1+:801")
        self.right(done)
        self.assertEqual(records[-1]["peak"]["managed_bytes"], sum(SIZES))

    def test_what_is_not_below_is_not_brought(self):
        done, records = self.run_it(("prefetch_below = 2GiB", f"prefetch_below = {WEIGHTS}"))
        self.good(done, records, "cuMemAlloc_v2", prefetched=0)

    def test_drivers_before_12_2(self):
        """Which know a device where later ones take a location: the simulator without the later names."""
        folder = self.folder / "old"
        folder.mkdir()
        path, = [pathlib.Path(one) for one in os.environ["SIM_PATH"].split(":") if (pathlib.Path(one) / "libcuda.so.1").exists()]
        driver = (path / "libcuda.so.1").read_bytes()
        for name in b"cuMemAdvise_v2", b"cuMemPrefetchAsync_v2":
            self.assertIn(b"\0" + name + b"\0", driver)
            driver = driver.replace(b"\0" + name + b"\0", b"\0xx" + name[2:] + b"\0")
        (folder / "libcuda.so.1").write_bytes(driver)
        trace = self.folder / "trace"
        for old, suffix in (True, ""), (False, "_v2"):
            trace.unlink(missing_ok=True)
            first = f"{folder}:" if old else ""
            done, records = self.run_it(LD_LIBRARY_PATH=first + os.environ["SIM_PATH"], SPILL_SIM_TRACE=trace)
            self.good(done, records, "cuMemAlloc_v2")
            calls = {call for call in trace.read_text(encoding="utf-8").split() if "Advise" in call or "Prefetch" in call}
            self.assertEqual(calls, {f"cuMemAdvise{suffix}", f"cuMemPrefetchAsync{suffix}"})


class WithinALimit(Managed, Limited):
    """As on a real GPU: managed memory is not what the limit is about, but what is brought to the device is."""


if __name__ == "__main__":
    unittest.main(verbosity=2)
