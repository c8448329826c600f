"""Debian's real HIP runtime on a machine without a device: every row's result is the same with and without us."""
import os
import pathlib
import re
import unittest

from harness import PROGRAMS
from scripted import ScriptCase

PROGRAM = PROGRAMS / "hip_real"
ROWS = {"hipMalloc": 3, "hipFree": 3, "hipMemGetInfo": 1, "hipMallocManaged": 1, "hipHostMalloc": 1, "hipHostFree": 2,
        "hipDeviceReset": 1}


@unittest.skipUnless(PROGRAM.exists(), "Debian's libamdhip64 is not installed")
class RealRuntime(ScriptCase):
    def real(self, **variables):
        """No LD_LIBRARY_PATH: the system's own library."""
        return self.run_in([str(PROGRAM)], self.environment(LD_LIBRARY_PATH=None, **variables))

    @unittest.skipIf(pathlib.Path("/dev/kfd").exists(), "this machine has an AMD device")
    def test_same_results(self):
        alone = self.real(preload=False)
        self.assertEqual(alone.returncode, 0, alone.stderr)
        self.assertRegex(alone.stdout, r"hipMalloc hipError(InvalidDevice|NoDevice) ")
        for variables in ({}, {"SPILL_MODE": "observe"}, {"SPILL": "0"}, {"SPILL_DEVICE_LIMIT": "1MiB"}):
            with self.subTest(variables):
                done = self.real(**variables)
                self.assertEqual((done.returncode, done.stdout, done.stderr),
                                 (alone.returncode, alone.stdout, alone.stderr))
                self.assertFalse(self.log.exists(), "no device, no memory call that was served, no log")

    def test_versioned_symbols_are_bound_to_us(self):
        done = self.real(LD_DEBUG="bindings", LD_BIND_NOW="1")
        bound = re.findall(r"binding file \S*/hip_real \[0\] to (\S+) \[0\]: normal symbol `(\w+)' \[(\w[\w.]*)\]",
                           done.stderr)
        libraries = {symbol: (pathlib.Path(library).name, node) for library, symbol, node in bound}
        for symbol in ROWS:
            library, node = libraries[symbol]
            self.assertEqual(library, "libspill.so", symbol)
            self.assertTrue(node.startswith("hip_"), node)
        self.assertTrue(libraries["hipGetErrorName"][0].startswith("libamdhip64.so"))

    def test_hits_are_counted(self):
        """The same program on the simulated runtime, whose symbols have the same versions, with a device and a log."""
        done = self.run_in([str(PROGRAM)], self.environment())
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(done.stdout, self.run_in([str(PROGRAM)], self.environment(preload=False)).stdout)
        hits = {(h["symbol"], h["way"]): h["count"] for h in self.checked_records()[-1]["hits"]}
        self.assertEqual(hits, {(symbol, "link"): count for symbol, count in ROWS.items()})


if __name__ == "__main__":
    assert os.environ["LIBSPILL"]
    unittest.main(verbosity=2)
