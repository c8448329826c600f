"""Which tests run which lines of the product, from one run of all tests in a build with gcov."""
import hashlib
import json
import os
import pathlib
import subprocess

PRODUCT = ("src/", "policy/", "shim/")
PART = 20  # tests


def sum_of(file):
    return hashlib.sha256(file.read_bytes()).hexdigest()


def gcov(build, source, notes):
    """(file of the product, line, how often it ran) of gcov's notes, several times for a file that is in several programs."""
    for first in range(0, len(notes), 200):
        command = ["gcov", "--json-format", "--stdout", *notes[first:first + 200]]
        told = subprocess.run(command, cwd=build, capture_output=True, text=True, check=False).stdout
        for file in (file for part in told.splitlines() if part.startswith("{") for file in json.loads(part)["files"]):
            name = os.path.relpath(os.path.join(build, file["file"]), source)
            if name.startswith(PRODUCT):
                yield from ((name, line["line_number"], line["count"]) for line in file["lines"])


def by_file(lines):
    found = {}
    for name, line in lines:
        found.setdefault(name, set()).add(line)
    return {name: sorted(lines) for name, lines in found.items()}


def lines_run(build, source):
    """The lines by file that ran since the last call. Programs that are killed, or end by _exit, note nothing."""
    notes = [str(note) for note in build.rglob("*.gcda")]
    found = by_file((name, line) for name, line, count in gcov(build, source, notes) if count)
    for note in notes:
        os.unlink(note)
    return found


def lines_counted(build, source):
    """The lines by file of which gcov tells. A line that gcc makes one with its caller's is none. pre: no test ran since lines_run"""
    return by_file((name, line) for name, line, _ in gcov(build, source, [str(note) for note in build.rglob("*.gcno")]))


def script_of(test, source):
    """The sum of a test's script, if it is one. A script that has changed may run other lines."""
    words = [os.path.realpath(word) for word in test.get("cmd", ())[1:]]
    scripts = [word for word in words if word.startswith(f"{source}/") and os.path.isfile(word)]
    return "".join(sum_of(pathlib.Path(script)) for script in scripts)


class Coverage:
    """Of tests that passed. A test that failed with gcov, or of which nothing was noted, may run any line."""

    def __init__(self, source, build):
        """What is known is kept in the build."""
        self.source, self.build, self.kept = source, build, build / "coverage.json"
        known = json.loads(self.kept.read_text(encoding="utf-8")) if self.kept.exists() else {"tests": {}, "sums": {}, "counted": {}}
        self.tests, self.sums, self.counted, self.reached = known["tests"], known["sums"], known["counted"], None

    def measure(self, tests, run):
        """run(test): what it took ("seconds" and more), or None if it failed. What is known is kept now and then: all tests take long, and
        one who stops them goes on there the next time."""
        lines_run(self.build, self.source)
        for first in range(0, len(tests), PART):
            for test in tests[first:first + PART]:
                took = run(test)
                self.tests[test["name"]] = {"took": took, "lines": lines_run(self.build, self.source), "script": script_of(test, self.source)}
            self.keep()

    def keep(self):
        """pre: no test ran since lines_run"""
        for name in {name for test in self.tests.values() for name in test["lines"]}:
            self.sums.setdefault(name, sum_of(self.source / name))
        self.counted, self.reached = lines_counted(self.build, self.source), None
        self.kept.write_text(json.dumps({"tests": self.tests, "sums": self.sums, "counted": self.counted}), encoding="utf-8")

    def is_known(self, test):
        known = self.tests.get(test["name"])
        return known is not None and known["script"] == script_of(test, self.source)

    def is_reached(self, name, line):
        """By any test."""
        if self.reached is None:
            self.reached = {(name, line) for test in self.tests.values() for name, lines in test["lines"].items() for line in lines}
        return (name, line) in self.reached

    def runs(self, test, name, line):
        """None: not known, as in a file that has changed since. A line that is not counted runs with any of its file. One that no test
        runs may do so in a process that notes nothing, with any of its file. pre: the file is as in the project"""
        known = self.tests[test]
        if known["took"] is None or not known["lines"] or self.sums.get(name) != sum_of(self.source / name):
            return None
        ran = known["lines"].get(name, ())
        if line not in self.counted.get(name, ()):
            return bool(ran)
        return line in ran if self.is_reached(name, line) else None if ran else False
