"""Tests in a build with sanitizers are built before they run: a name that ninja does not know would leave all of them out."""
import pathlib
import tempfile
import types
import unittest

import sanitized


class Makes(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        build = pathlib.Path(folder.name).resolve() / "build-asan"
        build.mkdir()
        (build / "build.ninja").write_text("rule make\n command = touch $out\nrule fail\n command = false\n"
                                           "build tests/good: make\nbuild tests/bad: fail\n", encoding="utf-8")
        self.one = sanitized.Sanitized(types.SimpleNamespace(source=build.parent))
        self.one.outputs = sanitized.names_of([{"id": name, "filename": [str(build / "tests" / name)]} for name in ("good", "bad", "none")],
                                              build)

    def makes(self, *names):
        return self.one.makes([{"depends": [name]} for name in names])

    def test_what_a_test_needs_is_built(self):
        self.assertTrue(self.makes("good"))
        self.assertTrue((self.one.build / "tests/good").exists())
        self.assertTrue(self.one.makes([{"depends": []}]))

    def test_a_change_that_cannot_be_built(self):
        self.assertFalse(self.makes("good", "bad"))

    def test_an_unknown_name_is_no_change(self):
        with self.assertRaisesRegex(SystemExit, "unknown target"):
            self.makes("none")


if __name__ == "__main__":
    unittest.main()
