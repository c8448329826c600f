"""How tests are run: skipped ones pass, what takes too long fails and is ended with all that it started."""
import os
import pathlib
import subprocess
import tempfile
import unittest

import runner

PROCESSOR = "import time\nuntil = time.process_time() + 0.2\nwhile time.process_time() < until:\n    pass\n"


def test(name, script):
    return {"name": name, "cmd": ["sh", "-c", script], "env": {"OF_THE_TEST": "1"}, "workdir": None}


class Runs(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name).resolve()

    def passes(self, script, limit=60):
        return runner.Runner(self.folder).passes(test("one", script), limit)

    def test_its_status_says_it(self):
        self.assertTrue(self.passes("exit 0"))
        self.assertTrue(self.passes(f"exit {runner.SKIPPED}"))
        self.assertFalse(self.passes("exit 1"))

    def test_as_meson_runs_it(self):
        os.environ["LD_PRELOAD"] = "/nothing"
        self.addCleanup(os.environ.pop, "LD_PRELOAD")
        self.assertTrue(self.passes(f'[ -z "$LD_PRELOAD" ] && [ "$OF_THE_TEST$MALLOC_PERTURB_" = 1181 ] && [ "$(pwd)" = {self.folder} ]'))

    def test_what_takes_too_long_fails(self):
        self.assertFalse(self.passes("sleep 1000", limit=0.01))

    def test_a_test_ends_with_its_children(self):
        # The child holds the pipe: it ends when the child has ended.
        process = subprocess.Popen(["sh", "-c", "sleep 1000 & echo begun; wait"], stdout=subprocess.PIPE, start_new_session=True)
        self.assertEqual(process.stdout.readline(), b"begun\n")
        runner.end(process)
        self.assertEqual(process.stdout.read(), b"")
        process.stdout.close()
        process.wait()
        runner.end(process)  # again: nothing is left

    def test_the_time_of_a_processor(self):
        took = runner.time_of(test("one", f"exec python3 -c '{PROCESSOR}'"), self.folder, 60)
        self.assertTrue(0.2 <= took["seconds"] < 60 and took["clock"] >= 0.2)
        self.assertIsNone(runner.time_of(test("one", "exit 1"), self.folder, 60))

    def test_the_first_to_fail(self):
        tests = [test("good", "exit 0"), test("bad", "exit 1"), test("better", "exit 0")]
        limits = {one["name"]: 60 for one in tests}
        self.assertEqual(runner.first_to_fail(tests, limits, self.folder)["name"], "bad")
        self.assertIsNone(runner.first_to_fail(tests[:1], limits, self.folder))


if __name__ == "__main__":
    unittest.main()
