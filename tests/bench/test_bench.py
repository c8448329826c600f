"""The benchmarks themselves, in small on the simulated GPU: they end well and their data is right. No figure is judged."""
import pathlib
import subprocess
import sys
import unittest

TOP = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(TOP / "tests/bench"))
import benchlib  # noqa: E402
import table_decode  # noqa: E402
import table_follow  # noqa: E402


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


class FollowedRuns(unittest.TestCase):
    """What is read of a job's output, also if it was cut off."""

    def measured(self, times, answers, status=0, enough=None):
        steps = "".join(f"step {i} {ms}\n" for i, ms in enumerate(times))
        done = subprocess.CompletedProcess([], status, "\n".join(answers), f"a warning\n{steps}peak 7\n")
        return table_follow.Measured(benchlib.Run(done, TOP / "no-such-log"), enough)

    def test_first_steps_do_not_count(self):
        run = self.measured([90, 80, 70, 3, 1, 2], ["a"])
        self.assertEqual((run.ms, run.least, run.most, run.steps, run.value("peak")), (2, 1, 3, 6, 7))

    def test_cut_off_before_any_counts(self):
        run = self.measured([90, 80], ["a"], 124)
        self.assertEqual((run.ms, run.steps), (80, 2))
        self.assertIsNone(self.measured([], [], 124).ms)

    def test_verdicts(self):
        enough = self.measured([1] * 4, ["a", "b", "c"])
        for answers, status, verdict in ((["a", "b"], 0, "equal"), (["a", "x", "c"], 0, "DIFFERENT in step 1"),
                                         (["a", "b"], 124, "cut off; 2 equal"), ([], 124, "cut off; none"), ([], 0, "NOTHING")):
            with self.subTest(verdict):
                self.assertEqual(self.measured([5], answers, status, enough).verdict(), verdict)

    def test_cells_of_a_run_without_a_step(self):
        enough = self.measured([1] * 4, ["a"])
        self.assertEqual(self.measured([], [], 124, enough).cells(), ("", "", "", "0", "0", "", "cut off; none"))


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

    def test_decide(self):
        done = subprocess.run([sys.executable, str(TOP / "scripts/bench"), "--decide", "--rounds", "1"], capture_output=True,
                              text=True, timeout=120, check=False)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertIn("| 0 rules | 32 rules |", done.stdout)
        self.assertRegex(done.stdout, r"(?m)^\| [\d.]+ \([\d.]+ to [\d.]+\) \| [\d.]+ \([\d.]+ to [\d.]+\) \|$")

    def test_report(self):
        done = subprocess.run([sys.executable, str(TOP / "scripts/bench"), "--report", "3000", "--rounds", "1"], capture_output=True,
                              text=True, timeout=120, check=False)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        for form in ("text", "--json", "--html"):
            self.assertRegex(done.stdout, rf"(?m)^\| {form} \| [\d.]+ \([\d.]+ to [\d.]+\) \|")
        self.assertRegex(done.stdout, r"the page has \d+ KiB")

    def test_replay(self):
        done = subprocess.run([sys.executable, str(TOP / "scripts/bench"), "--replay", "3000", "--rounds", "1"], capture_output=True,
                              text=True, timeout=120, check=False)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        for name in ("wc -l", "report", "replay", "replay, a quarter too small"):
            self.assertRegex(done.stdout, rf"(?m)^\| {name} \| [\d.]+ \([\d.]+ to [\d.]+\) \|")


if __name__ == "__main__":
    unittest.main()
