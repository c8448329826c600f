"""Changes random lines of the product, one at a time, and looks whether a test fails. What no test notices is printed.

usage: mutants.py TREE FOLDER [--seed N] [--skip N] [--minutes N] [--without-storms] [--most SECONDS] [--again SECONDS]
                  [--longest SECONDS] [--kinds KIND,…] [FILE…]
TREE: the project. FOLDER: for a copy of it and its builds, which are used again. FILE: take lines of these only. KIND: of mutate.py.
--skip: of the same sample, those that were judged before.
A change is valid if it compiles without a warning, changes the machine code, and is not in equivalent.txt. Only tests that may run
the line are run, the quickest first (coverage.py). --most: for each change, no more tests than take so long together on the unchanged
product. A change that none of these notices meets others that run the line, for --again SECONDS (all), and then sanitizers.
--longest: no test that takes longer than this. Seconds are a processor's, so they do not depend on what else the machine does.
--without-storms: those under sanitizers take minutes, and are what notices a lock that is neither taken nor given back. It uses the
processors that it may run on (taskset). Exit status 1 if fewer than 95 % of the valid ones were noticed.
"""
import argparse
import collections
import itertools
import json
import os
import pathlib
import random
import re
import signal
import sys
import time

sys.dont_write_bytecode = True
import equivalent
import mutate
import runner
from coverage import PRODUCT, Coverage
from sanitized import Sanitized
from tree import Tree, suite

SHARE = 95  # percent
FREES = re.compile(r"^\s*(\w+_)?free\(")  # the command ends soon: what it leaves behind is scripts/check asan's to find
SPECIAL = ("lock", "atomic", "order")  # only storms notice many of these
QUICK = 1  # seconds of a static test that every change may meet
# What a test gets of the clock's time: a machine can be many times as busy as when the tests were measured.
LEAST_LIMIT, LIMIT = 120, 20


def portions(tests):
    """1, 2, 4, … of them: most changes are noticed by one of the first, and what the others need is not built then."""
    first, size = 0, 1
    while first < len(tests):
        yield tests[first:first + size]
        first, size = first + size, 2 * size


class Mutants:
    def __init__(self, tree, with_storms, most, again, longest):
        self.tree, self.most, self.again, self.longest, self.sanitized = tree, most, again, longest, Sanitized(tree)
        # The simulator's own tests run nothing of the product.
        tree.tests = [test for test in tree.tests if suite(test) != "sim"]
        tests = [test for test in tree.tests if suite(test) != "storm"]
        self.coverage = self.cover(tests)
        took = self.measure(tree.tests if with_storms else tests)
        self.seconds = {name: test["seconds"] for name, test in took.items() if test["seconds"] <= longest}
        self.limits = {name: LEAST_LIMIT + LIMIT * test["clock"] for name, test in took.items()}
        tests = [test for test in tree.tests if test["name"] in self.seconds]
        tree.tests = [test for test in tests if not self.is_of_texts(test)]
        self.texts = [test for test in tests if self.is_of_texts(test) and self.seconds[test["name"]] <= QUICK]

    def is_of_texts(self, test):
        """A static test in which nothing of the product ran looks at tables, documents and sources."""
        known = self.coverage.tests.get(test["name"])
        return suite(test) == "static" and known and known["took"] is not None and not known["lines"]

    def cover(self, tests):
        """One test after the other: what each runs is noted in the same files."""
        tree = self.tree
        coverage = Coverage(tree.source, tree.covered)
        names = {test["name"] for test in tests if not coverage.is_known(test)}
        if names:
            print("the lines that each test runs", flush=True)
            # The script of a test has the same path in both builds.
            covered = [test for test in tree.build_covered() if test["name"] in names]
            coverage.measure(covered, lambda test: runner.time_of(test, tree.covered, self.longest_clock()))
        return coverage

    def longest_clock(self):
        return LEAST_LIMIT + LIMIT * min(self.longest, 60)

    def measure(self, tests):
        """What each test takes on the unchanged product, if it passes there."""
        kept = self.tree.build / "took.json"
        took = json.loads(kept.read_text(encoding="utf-8")) if kept.exists() else {}
        known = {name: test["took"] for name, test in self.coverage.tests.items()}
        for test in tests:
            name = test["name"]
            if took.get(name):
                continue
            if known.get(name) is None:
                self.tree.make_for([test])
            took[name] = known.get(name) or runner.time_of(test, self.tree.build, self.longest_clock())
            if took[name] is None:
                print(f"left out, as it fails without a change: {name}", flush=True)
        kept.write_text(json.dumps(took), encoding="utf-8")
        return {test["name"]: took[test["name"]] for test in tests if took[test["name"]]}

    def affected(self, name, number):
        """Tests in four lists, the quick ones first in each: unit tests that run the line or may run it, others that do, and the
        other unit tests. Some of these have children that end by _exit, which gcov does not see. The fourth: those that run the line
        for which there is no time at first. pre: the file is unchanged"""
        runs = {test["name"]: self.coverage.runs(test["name"], name, number) for test in self.tree.tests if suite(test) != "storm"}
        tests = [test for test in self.tree.tests if runs.get(test["name"], False) is not False or test["name"] in runs and suite(test) == "unit"]
        tests.sort(key=lambda test: (-1 if runs[test["name"]] else runs[test["name"]] is False, self.seconds[test["name"]]))
        sums = itertools.accumulate(self.seconds[test["name"]] for test in tests)
        lists, left = ([], [], [], []), self.again
        for test, seconds in zip(tests, sums):
            if seconds <= self.most:
                lists[2 if runs[test["name"]] is False else suite(test) != "unit"].append(test)
            elif runs[test["name"]] and self.seconds[test["name"]] <= left:
                left -= self.seconds[test["name"]]
                lists[3].append(test)
        return lists

    def fails(self, tests):
        """The first test that fails twice. One that fails once may be a victim of a busy machine."""
        while tests:
            test = runner.first_to_fail(tests, self.limits, self.tree.build)
            if not test or runner.first_to_fail([test], self.limits, self.tree.build):
                return test
            tests = tests[tests.index(test) + 1:]
        return None

    def noticed(self, tests, rebuilt=False):
        """The first that fails; the build counts as one. `rebuilt`: only of programs that are built anew."""
        times = {test["name"]: os.stat(test["cmd"][0]).st_mtime_ns for test in tests}
        for part in portions(tests):
            if not self.tree.make_for(part):
                return {"name": "the build"}
            test = self.fails([test for test in part if not rebuilt or os.stat(test["cmd"][0]).st_mtime_ns != times[test["name"]]])
            if test:
                return test
        return None

    def judge(self, name, number, line, kind):
        """None: not valid. Else the name of the test that notices it, or "". Storms are built for it, so they come last, but they
        are what notices a lock that is missing."""
        tree = self.tree
        quick, others, children, late = self.affected(name, number)
        try:
            if not tree.is_valid(name, number, line, kind):
                return None
            test = self.noticed(quick)
            storms = [test for test in tree.tests if suite(test) == "storm"]
            for more in (storms, others) if kind in SPECIAL else (others, storms):
                test = test or self.noticed(more)
            test = test or self.noticed(children, rebuilt=True) or self.noticed(self.texts) or self.noticed(late)
            if test:
                return test["name"]
            found = self.sanitized.first_to_fail([test["name"] for test in quick + others + late], self.limits, lambda: tree.restore(name))
            return f"{found}, with sanitizers" if found else ""
        finally:
            tree.restore(name)


def candidates(tree, files, kinds):
    """The changes by line, so that each line is as likely as any other."""
    lines = collections.defaultdict(list)
    for name in tree.names:
        if name.startswith(PRODUCT) and name.endswith((".c", ".h")) and "/gen_" not in name and (not files or name in files):
            text = (tree.top / name).read_text(encoding="utf-8")
            for kind, number, line in mutate.of_file(text):
                free = name.startswith("src/cli/") and FREES.search(text.split("\n")[number - 1])
                if not free and (not kinds or kind in kinds):
                    lines[name, number].append((kind, line))
    return lines


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("tree", type=pathlib.Path)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--minutes", type=float, default=30)
    parser.add_argument("--skip", type=int, default=0)
    parser.add_argument("--without-storms", action="store_true")
    parser.add_argument("--most", type=float, default=float("inf"))
    parser.add_argument("--again", type=float, default=float("inf"))
    parser.add_argument("--longest", type=float, default=600)
    parser.add_argument("--kinds", type=lambda text: text.split(","), default=[])
    parser.add_argument("files", nargs="*")
    given = parser.parse_intermixed_args()
    # A shell lets its background jobs ignore Ctrl-C, and a test that sends it to its own children would wait for ever.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    # Debian's python3 before any other, as in scripts/test: it has the modules that tests need.
    os.environ["PATH"] = f"/usr/bin:{os.environ['PATH']}"
    tree = Tree(given.tree.resolve(), given.folder.resolve())
    mutants = Mutants(tree, not given.without_storms, given.most, given.again, given.longest)
    lines, known = candidates(tree, given.files, given.kinds), equivalent.read()
    chosen = sorted(lines)
    chance = random.Random(given.seed)
    chance.shuffle(chosen)
    print(f"seed {given.seed}, {len(chosen)} lines that can be changed", flush=True)
    until, figures, survivors = time.monotonic() + 60 * given.minutes, collections.Counter(), []
    for place, (name, number) in enumerate(chosen):
        if time.monotonic() > until:
            break
        kind, line = chance.choice(lines[name, number])
        if place < given.skip:
            continue
        old = (tree.top / name).read_text(encoding="utf-8").split("\n")[number - 1]
        began, used = time.monotonic(), runner.processor_seconds()
        reason = known.get((name, old.strip(), line.strip()))
        test = None if reason else mutants.judge(name, number, line, kind)
        word = "equivalent" if reason else "not valid" if test is None else f"noticed by {test}" if test else "NOT NOTICED"
        figures[word.split(" by ")[0]] += 1
        told = f"{name}:{number} {kind}: {old.strip()} -> {line.strip()}"
        took = f"{time.monotonic() - began:.0f} s, {runner.processor_seconds() - used:.0f} s of a processor"
        print(f"{word} ({took}): {told}", flush=True)
        survivors += [told] if test == "" else []
    valid = figures["noticed"] + figures["NOT NOTICED"]
    print(f"{figures['noticed']} of {valid} noticed, {figures['equivalent']} equivalent, {figures['not valid']} not valid", *survivors, sep="\n")
    return 100 * figures["noticed"] < SHARE * valid


if __name__ == "__main__":
    sys.exit(main())
