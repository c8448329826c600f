"""Which tests run which lines of the product, from one run of all tests in a build with gcov."""
import hashlib
import json
import os
import subprocess

PRODUCT = ("src/", "policy/", "shim/")


def sum_of(file):
    return hashlib.sha256(file.read_bytes()).hexdigest()


def lines_run(build, source):
    """The lines by file that ran since the last call. Programs that are killed, or end by _exit, note nothing."""
    notes = [str(note) for note in build.rglob("*.gcda")]
    found = {}
    for first in range(0, len(notes), 200):
        command = ["gcov", "--json-format", "--stdout", *notes[first:first + 200]]
        told = subprocess.run(command, cwd=build, capture_output=True, text=True, check=False).stdout
        for file in (file for part in told.splitlines() if part.startswith("{") for file in json.loads(part)["files"]):
            name = os.path.relpath(os.path.join(build, file["file"]), source)
            if name.startswith(PRODUCT):
                found.setdefault(name, set()).update(line["line_number"] for line in file["lines"] if line["count"])
    for note in notes:
        os.unlink(note)
    return {name: sorted(lines) for name, lines in found.items() if lines}


class Coverage:
    """Of tests that passed. A test that failed with gcov, or of which nothing was noted, may run any line."""

    def __init__(self, source, build):
        """What is known is kept in the build."""
        self.source, self.build, self.kept = source, build, build / "coverage.json"
        known = json.loads(self.kept.read_text(encoding="utf-8")) if self.kept.exists() else {"tests": {}, "sums": {}}
        self.tests, self.sums = known["tests"], known["sums"]

    def measure(self, tests, run):
        """run(test): the seconds that it took, or None if it failed."""
        lines_run(self.build, self.source)
        for test in tests:
            seconds = run(test)
            self.tests[test["name"]] = {"seconds": seconds, "lines": lines_run(self.build, self.source)}
        for name in {name for test in self.tests.values() for name in test["lines"]}:
            self.sums.setdefault(name, sum_of(self.source / name))
        self.kept.write_text(json.dumps({"tests": self.tests, "sums": self.sums}), encoding="utf-8")

    def runs(self, test, name, line):
        """None: not known, as in a file that has changed since. pre: the file is as in the project"""
        known = self.tests[test]
        if known["seconds"] is None or not known["lines"] or self.sums.get(name) != sum_of(self.source / name):
            return None
        return line in known["lines"].get(name, ())
