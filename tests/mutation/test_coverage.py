"""Which lines covered_cc and coverage.py say were run."""
import os
import pathlib
import subprocess
import tempfile
import unittest

import coverage

HERE = pathlib.Path(__file__).resolve().parent
PRODUCT = "int twice(int a)\n{\n\tif (a < 0)\n\t\treturn 0;\n\treturn 2 * a;\n}\n"
TEST = """#include <sys/wait.h>
#include <unistd.h>
int twice(int a);
int main(int count, char **words)
{
	if (count > 2 && fork() == 0)
		_exit(twice(-1));
	if (count > 3 && vfork() == 0)
		_exit(0);
	while (wait(0) > 0)
		;
	return twice(count == 2 ? -1 : 0);
}
"""


class Lines(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.source = pathlib.Path(folder.name).resolve()
        self.build = self.source / "build"
        for name, text in (("src/twice.c", PRODUCT), ("tests/test.c", TEST)):
            (self.source / name).parent.mkdir()
            (self.source / name).write_text(text, encoding="utf-8")
        (self.build / "tests/unit").mkdir(parents=True)
        for words in (["-c", "../src/twice.c", "-o", "twice.o"], ["-c", "../tests/test.c", "-o", "test.o"], ["twice.o", "test.o", "-o", "tests/unit/test"]):
            subprocess.run([HERE / "covered_cc", *words], cwd=self.build, env=os.environ | {"REAL_CC": "gcc"}, check=True)

    def run_test(self, *words):
        subprocess.run([self.build / "tests/unit/test", *words], check=True)

    def test_lines_of_the_product_since_the_last_call(self):
        self.run_test()
        self.assertEqual(coverage.lines_run(self.build, self.source), {"src/twice.c": [1, 3, 5]})
        self.run_test("negative")
        self.assertEqual(coverage.lines_run(self.build, self.source), {"src/twice.c": [1, 3, 4]})
        self.assertEqual(coverage.lines_run(self.build, self.source), {})
        self.assertEqual(coverage.lines_counted(self.build, self.source), {"src/twice.c": [1, 3, 4, 5]})

    def test_children_that_end_by_exit(self):
        """And one by vfork, which has the memory of its parent."""
        for words in (["fork", "it"], ["fork", "and", "vfork"]):
            self.run_test(*words)
            self.assertEqual(coverage.lines_run(self.build, self.source), {"src/twice.c": [1, 3, 4, 5]})

    def test_what_tests_run(self):
        known = coverage.Coverage(self.source, self.build)
        seconds = {"positive": 1, "failing": None, "silent": 1}

        def run(test):
            if test["name"] == "positive":
                self.run_test()
            return seconds[test["name"]] and {"seconds": seconds[test["name"]]}

        known.measure([{"name": name} for name in seconds], run)
        again = coverage.Coverage(self.source, self.build)
        for line, runs in (3, True), (4, None), (5, True), (6, True):
            self.assertIs(again.runs("positive", "src/twice.c", line), runs)
            self.assertIsNone(again.runs("failing", "src/twice.c", line))
            self.assertIsNone(again.runs("silent", "src/twice.c", line))
        known.measure([{"name": "negative"}], lambda test: self.run_test("negative") or {"seconds": 1})
        again = coverage.Coverage(self.source, self.build)
        self.assertIs(again.runs("positive", "src/twice.c", 4), False, "now a test is known to run it")
        self.assertIs(again.runs("negative", "src/twice.c", 4), True)
        self.assertIs(again.runs("negative", "src/twice.c", 5), False)
        (self.source / "src/twice.c").write_text("\n" + PRODUCT, encoding="utf-8")
        self.assertIsNone(again.runs("positive", "src/twice.c", 4), "the lines are other ones by now")

    def test_one_who_stops_the_tests_goes_on_there(self):
        def run(test):
            if test["name"] == coverage.PART + 1:
                raise KeyboardInterrupt
            self.run_test()
            return {"seconds": 1}

        with self.assertRaises(KeyboardInterrupt):
            coverage.Coverage(self.source, self.build).measure([{"name": number} for number in range(coverage.PART + 2)], run)
        known = coverage.Coverage(self.source, self.build)
        self.assertEqual(len(known.tests), coverage.PART)
        self.assertTrue(known.runs("0", "src/twice.c", 3))

    def test_a_script_that_has_changed(self):
        script = self.source / "test.py"
        test = {"name": "a script", "cmd": ["python3", str(script)]}
        script.write_text("1\n", encoding="utf-8")
        known = coverage.Coverage(self.source, self.build)
        self.assertFalse(known.is_known(test))
        known.measure([test], lambda test: {"seconds": 1})
        known = coverage.Coverage(self.source, self.build)
        self.assertTrue(known.is_known(test))
        script.write_text("2\n", encoding="utf-8")
        self.assertFalse(known.is_known(test))


if __name__ == "__main__":
    unittest.main()
