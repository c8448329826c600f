"""Unit tests and those of the command in a build with ASan and UBSan, as in scripts/check asan: for changes that no other test notices,
which read or write past an end, or lose memory."""
import pathlib
import sys

import runner
from tree import run, suite

OPTIONS = {"ASAN_OPTIONS": "use_sigaltstack=0:detect_stack_use_after_return=1", "UBSAN_OPTIONS": "halt_on_error=1"}
LEFT_OUT = ("cli run",)  # an instrumented library cannot be preloaded into a plain program


def names_of(targets, build):
    """The files of each target, as ninja knows them."""
    return {target["id"]: [str(pathlib.Path(name).relative_to(build)) for name in target["filename"]] for target in targets}


class Sanitized:
    """Built when it is first needed, and only what is needed."""

    def __init__(self, tree):
        self.tree, self.build, self.tests, self.outputs = tree, tree.source / "build-asan", None, {}

    def set_up(self):
        self.tree.set_up(self.build, {}, "-Db_sanitize=address,undefined", "-Db_lundef=false")
        self.tests = {test["name"]: test | {"env": test["env"] | OPTIONS} for test in self.tree.introspect(self.build, "--tests")
                      if suite(test) in ("unit", "cli") and test["name"] not in LEFT_OUT}
        self.outputs = names_of(self.tree.introspect(self.build, "--targets"), self.build)

    def makes(self, tests):
        names = sorted({name for test in tests for one in test["depends"] for name in self.outputs[one]})
        done = run(["ninja", "-C", self.build, *names]) if names else None
        if done and "unknown target" in done.stdout:
            sys.exit(done.stdout)  # no test would ever run
        return not done or done.returncode == 0

    def first_to_fail(self, names, limits, restore):
        """The name of the first of these tests that fails with the change, and passes behind restore(). None: there is none."""
        if self.tests is None:
            self.set_up()
        tests = [self.tests[name] for name in names if name in self.tests]
        # A sanitizer takes several times as long, and here one that fails needs no haste.
        limits = {name: 5 * limits[name] for name in names}
        failed = []
        for test in tests:
            if self.makes([test]) and runner.first_to_fail([test], limits, self.build):
                failed.append(test)
                break
        restore()
        if failed and self.makes(failed) and not runner.first_to_fail(failed, limits, self.build):
            return failed[0]["name"]
        return None
