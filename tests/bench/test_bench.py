"""The benchmarks themselves, in small on the simulated GPU: they end well and their data is right. No figure is judged."""
import pathlib
import subprocess
import sys
import unittest

TOP = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(TOP / "tests/bench"))
import table_decode  # noqa: E402


class Limit(unittest.TestCase):
    """The least time of a step, by hand: 1 GB/s from the host, 1000 from the device."""

    RUN = {"weights": 4e9, "buffer": 2e9, "times": 4, "scratch": 1e9}

    def limit(self, free):
        return table_decode.limit_us(self.RUN, free, (1.0, 1000.0))

    def test_all_on_the_device(self):
        self.assertEqual(self.limit(7e9), (4e3 + 8e3 + 2e3, 0))

    def test_the_least_read_goes_first(self):
        us, host = self.limit(5e9)
        self.assertAlmostEqual(us, 2e6 + 2e3 + 8e3 + 2e3)
        self.assertEqual(host, 2e9)

    def test_then_the_scratch_then_the_buffer(self):
        us, host = self.limit(1e9)
        self.assertAlmostEqual(us, 4e6 + 2 * 1e6 + 4 * 1e6 + 4e3)
        self.assertEqual(host, 4e9 + 2e9 + 4e9)


class InSmall(unittest.TestCase):
    def bench(self, *arguments):
        command = [sys.executable, str(TOP / "scripts/bench"), "--simulated", *arguments]
        done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertIn("SIMULATED", done.stdout)
        return done.stdout

    def test_decode(self):
        text = self.bench("--decode")
        self.assertIn("out of memory", text)
        self.assertNotIn("WRONG", text)
        self.assertIn("times as fast", text)

    def test_moves(self):
        text = self.bench("--moves")
        self.assertIn("it moved 32 MiB, and 32 with chunks ahead", text)
        self.assertNotIn("nan", text)

    def test_gate(self):
        done = subprocess.run([sys.executable, str(TOP / "scripts/bench"), "--gate", "--rounds", "1"], capture_output=True,
                              text=True, timeout=120, check=False)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertRegex(done.stdout, r"(?m)^\| cuLaunchKernel \| [^|]+ \| [^|]+ \| [^|]+ \|$")


if __name__ == "__main__":
    unittest.main()
