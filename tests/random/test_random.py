"""Random programs in short: a few of fixed seeds, all that are kept, and that a wrong run is noticed and shrunk."""
import os
import pathlib
import re
import tempfile
import unittest
from concurrent.futures import ThreadPoolExecutor

import judge
import shrink

KEPT = sorted((pathlib.Path(__file__).parent / "kept").glob("*.txt"))
LINES = int(os.environ.get("RANDOM_LINES", "900"))
OPERATIONS = re.findall(r"^OPERATION\((\w+),", (pathlib.Path(__file__).parent / "operations.def").read_text(encoding="utf-8"), re.M)
DRAWN = ["driver moves", "driver stays", "runtime moves", "hip 5", "hip 7"]
TWELVE_MIB = "".join(f"0 plain {slot} 3000000 0 {slot + 1}\n" for slot in range(4))


class Random(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="spill-random-")
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def equal(self, path):
        verdict, plain, spilled = judge.try_program(path, judge.variant_of(path))
        return path.name, verdict and verdict.text, plain, spilled

    def all_equal(self, paths):
        with ThreadPoolExecutor(os.cpu_count()) as pool:
            done = list(pool.map(self.equal, paths))
        self.assertEqual([(name, text) for name, text, _, _ in done if text], [])
        return done

    def test_programs_of_fixed_seeds(self):
        paths = [self.folder / f"{name}.txt" for name in DRAWN]
        for seed, (name, path) in enumerate(zip(DRAWN, paths), 1):
            judge.draw(name, seed, LINES, 8, path)
        done = self.all_equal(paths)
        for name, _, plain, spilled in done:
            with self.subTest(name):
                self.assertGreater(len(plain.lines), LINES // 4, "most lines find something to do")
                self.assertGreater(spilled.exit["spills"], 0)
        done_somewhere = {line.split()[0] for _, _, plain, _ in done for line in plain.lines.values()}
        self.assertEqual(set(OPERATIONS) - done_somewhere, set(), "each operation finds something to do in one of them")
        shared = sum(line == "share done 0 0" for *_, spilled in done for line in spilled.lines.values())
        self.assertGreater(shared, 0, "another process has had a block")
        # Memory moves. Whether some comes back in so short a run depends on the machine: 0 to 8 promotions were seen.
        self.assertGreater(sum(spilled.exit["demotions"] for *_, spilled in done), 0)

    def test_kept_programs(self):
        self.assertGreater(len(KEPT), 0)
        self.all_equal(KEPT)

    def failing(self, text):
        """A program whose run under a policy that spills nothing cannot be equal."""
        path = self.folder / "failing.txt"
        path.write_text(f"# driver nothing\n{text}", encoding="utf-8")
        judge.VARIANTS["driver nothing"] = judge.Variant("random_driver", {"SPILL_OOM_CHAIN": ""})
        self.addCleanup(judge.VARIANTS.pop, "driver nothing")
        return path

    def test_a_failing_program_is_shrunk(self):
        path = self.failing("0 info\n0 pinned 6 100 0 1\n0 plain 7 100 0 1\n0 check_copy 7 0\n" + TWELVE_MIB + "0 check_copy 7 0\n")
        verdict = shrink.first_failure(path)
        self.assertEqual(verdict.kind, "result of plain")
        target, lines, _ = shrink.shrink_file(path, verdict.kind, 20)
        self.assertLessEqual(lines, 4, "four blocks of 3 MiB are more than a device of 10 MiB can hold")
        self.assertEqual(shrink.first_failure(target).kind, verdict.kind)

    def test_wrong_data_and_losses_are_noticed(self):
        right = {0: "fill done 0 0", 1: "export done 0 0"}
        cases = {"WRONG": {0: "fill WRONG 8", 1: right[1]}, "changed": {0: "fill done 0 0 changed 1", 1: right[1]}, "left out": {1: right[1]},
                 "other error": {0: "fill done 1 0", 1: right[1]}, "export that changes the thread": {0: right[0], 1: "export done 1 1 changed 1"},
                 "other error of an export": {0: right[0], 1: "export done 1 0"}}

        def run(lines, status=0, end=("free 0 0",), log=()):
            made = judge.Run.__new__(judge.Run)
            made.status, made.lines, made.end, made.log = status, lines, list(end), list(log)
            return made

        def verdict(spilled, plain=right):
            return judge.judge(run(plain), spilled, ["0", "0"])

        self.assertIsNone(verdict(run(right)))
        self.assertIsNone(verdict(run(right | {1: "export done 1 1"})), "an export may be refused")
        for what, lines in cases.items():
            with self.subTest(what):
                self.assertIsNotNone(verdict(run(lines)))
        self.assertIsNotNone(verdict(run(right, status=-11)))
        self.assertIsNotNone(verdict(run(right, end=["free 0 4096"])))
        self.assertIsNotNone(verdict(run(right, log=["alive at the end"])))


if __name__ == "__main__":
    unittest.main()
