"""Changes random lines of the product, one at a time, and looks whether a test fails. What no test notices is printed.

usage: mutants.py TREE FOLDER [--seed N] [--minutes N] [--without-storms] [--most SECONDS] [--longest SECONDS] [FILE…]
TREE: the project. FOLDER: for a copy of it and its builds, which are used again. FILE: take lines of these only.
A change is valid if it compiles and changes the machine code. Only tests that may run the line are run, the quickest first
(coverage.py). --most: for each change, no more tests than take so long together on the unchanged product. --longest: no test that
takes longer than this. --without-storms: they take minutes, and are what notices a missing lock. It uses the processors that it may
run on (taskset). Exit status 1 if fewer than 95 % of the valid ones were noticed.
"""
import argparse
import collections
import concurrent.futures
import hashlib
import itertools
import json
import os
import pathlib
import random
import re
import signal
import subprocess
import sys
import threading
import time

sys.dont_write_bytecode = True
import mutate
from coverage import PRODUCT, Coverage

HERE = pathlib.Path(__file__).resolve().parent
SHARE = 95  # percent
STORMS = "tests/storm/"
FREES = re.compile(r"^\s*(\w+_)?free\(")  # the command ends soon: what it leaves behind is scripts/check asan's to find
SKIPPED = 77


def run(command, **more):
    return subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False, **more)


class Tree:
    """A copy of the project, built twice: as it is, and with gcov."""

    def __init__(self, top, folder):
        self.top, self.source = top, folder / "tree"
        self.build, self.covered = self.source / "build", self.source / "build-covered"
        self.source.mkdir(parents=True, exist_ok=True)
        names = run(["git", "-C", top, "ls-files", "-co", "--exclude-standard"]).stdout.splitlines()
        self.names = [name for name in names if (top / name).is_file()]
        for name in self.names:
            self.restore(name)
        self.set_up(self.build, {})
        self.targets = self.introspect(self.build, "--targets")
        self.tests = self.introspect(self.build, "--tests")
        self.commands = json.loads((self.build / "compile_commands.json").read_text(encoding="utf-8"))
        self.plain = [name for target in self.targets if target["build_by_default"] for name in self.outputs(target)
                      if not name.startswith(STORMS)]
        self.must(["ninja", "-C", self.build, *self.plain])
        self.codes = {}

    def set_up(self, build, variables):
        if not (build / "build.ninja").exists():
            self.must(["meson", "setup", build, self.source], env=os.environ | variables)

    def build_covered(self):
        """Its tests."""
        self.set_up(self.covered, {"CC": str(HERE / "covered_cc"), "REAL_CC": os.environ.get("CC", "cc")})
        self.must(["ninja", "-C", self.covered, *self.plain])
        return self.introspect(self.covered, "--tests")

    @staticmethod
    def introspect(build, what):
        return json.loads(run(["meson", "introspect", build, what]).stdout)

    def outputs(self, target):
        return [str(pathlib.Path(name).relative_to(self.build)) for name in target["filename"]]

    @staticmethod
    def must(command, **more):
        done = run(command, **more)
        if done.returncode:
            sys.exit(done.stdout[-4000:])

    def restore(self, name):
        """As in the project. An equal file keeps its time, so that nothing is built again."""
        new, old = self.top / name, self.source / name
        if not old.exists() or old.read_bytes() != new.read_bytes():
            old.parent.mkdir(parents=True, exist_ok=True)
            old.write_bytes(new.read_bytes())
            old.chmod(new.stat().st_mode & 0o777)

    def change(self, name, number, line):
        lines = (self.top / name).read_text(encoding="utf-8").split("\n")
        lines[number - 1] = line
        (self.source / name).write_text("\n".join(lines), encoding="utf-8")

    def objects(self, name):
        source = self.source / name
        return [command["output"] for command in self.commands
                if (self.build / command["file"]).resolve() == source.resolve() and not command["output"].startswith(STORMS)
                and (self.build / command["output"]).exists()]

    def code(self, name):
        """What distinguishes the machine code of a source's objects; None if it does not compile."""
        sums = []
        if not self.make(self.objects(name)):
            return None
        for made in self.objects(name):
            bare = self.build / "bare.o"
            self.must(["objcopy", "--strip-debug", self.build / made, bare])
            sums.append(hashlib.sha256(bare.read_bytes()).hexdigest())
        return sums

    def own_code(self, name):
        """That of the unchanged source. Other sources may still be built as they were changed before."""
        if name not in self.codes:
            self.codes[name] = self.code(name)
        return self.codes[name]

    def make(self, names):
        return not names or run(["ninja", "-C", self.build, *names]).returncode == 0

    def make_for(self, tests):
        """What the tests need. A unit test names it all. Others also start programs that they do not name."""
        ids = {one for test in tests for one in test["depends"]}
        names = {name for target in self.targets if target["id"] in ids for name in self.outputs(target)}
        if any(suite(test) != "unit" for test in tests):
            names.update(name for name in self.plain if not name.startswith("tests/unit/"))
        return self.make(sorted(names))


class Runner:
    """Runs tests side by side until one fails."""

    def __init__(self, folder):
        self.folder, self.lock = folder, threading.Lock()
        self.running, self.ended = set(), False

    def passes(self, test, limit):
        """True if it passed or was skipped, or was stopped as another one failed."""
        environment = {name: value for name, value in os.environ.items() if name not in ("LD_PRELOAD", "LD_LIBRARY_PATH")} | test["env"]
        with self.lock:
            if self.ended:
                return True
            process = subprocess.Popen(test["cmd"], env=environment, cwd=test["workdir"] or self.folder, stdin=subprocess.DEVNULL,
                                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True)
            self.running.add(process)
        try:
            status = process.wait(limit)
        except subprocess.TimeoutExpired:
            status = None
        with self.lock:
            self.running.discard(process)
            end(process)
            return self.ended or status in (0, SKIPPED)

    def stop(self):
        with self.lock:
            self.ended = True
            for process in self.running:
                end(process)


def end(process):
    """With all that it started."""
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass


def first_to_fail(tests, limits, folder):
    runner = Runner(folder)

    def one(test):
        if runner.passes(test, limits[test["name"]]):
            return None
        runner.stop()
        return test

    with concurrent.futures.ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        return next((test for test in pool.map(one, tests) if test), None)


def portions(tests):
    """1, 2, 4, … of them: most changes are noticed by one of the first, and what the others need is not built then."""
    first, size = 0, 1
    while first < len(tests):
        yield tests[first:first + size]
        first, size = first + size, 2 * size


def suite(test):
    return test["suite"][0].split(":")[-1]


class Mutants:
    def __init__(self, tree, with_storms, most, longest):
        self.tree, self.most, self.longest = tree, most, longest
        # The simulator's own tests run nothing of the product.
        tree.tests = [test for test in tree.tests if suite(test) != "sim"]
        tests = [test for test in tree.tests if suite(test) != "storm"]
        self.coverage = self.cover({test["name"] for test in tests})
        self.seconds = self.measure(tree.tests if with_storms else tests)
        tree.tests = [test for test in tree.tests if test["name"] in self.seconds and not self.is_of_texts(test)]
        self.limits = {name: 30 + 6 * seconds for name, seconds in self.seconds.items()}

    def time_of(self, test, folder):
        """None if it fails, or takes longer than any test that is run with a change."""
        began = time.monotonic()
        passed = Runner(folder).passes(test, self.longest)
        return time.monotonic() - began if passed else None

    def is_of_texts(self, test):
        """A static test in which nothing of the product ran looks at tables and documents."""
        known = self.coverage.tests.get(test["name"])
        return suite(test) == "static" and known and known["seconds"] is not None and not known["lines"]

    def cover(self, names):
        """One test after the other: what each runs is noted in the same files."""
        tree = self.tree
        coverage = Coverage(tree.source, tree.covered)
        names -= set(coverage.tests)
        if names:
            print("the lines that each test runs", flush=True)
            tests = [test for test in tree.build_covered() if test["name"] in names]
            coverage.measure(tests, lambda test: self.time_of(test, tree.covered))
        return coverage

    def measure(self, tests):
        """How long each test takes on the unchanged product, if it passes there."""
        kept = self.tree.build / f"seconds-{self.longest:g}.json"
        seconds = json.loads(kept.read_text(encoding="utf-8")) if kept.exists() else {}
        known = {name: test["seconds"] for name, test in self.coverage.tests.items()}
        for test in tests:
            name = test["name"]
            if name in seconds:
                continue
            if known.get(name) is None:
                self.tree.make_for([test])
            seconds[name] = known.get(name) or self.time_of(test, self.tree.build)
            if seconds[name] is None:
                print(f"left out, as it fails without a change or takes too long: {name}", flush=True)
        kept.write_text(json.dumps(seconds), encoding="utf-8")
        return {name: took for name, took in seconds.items() if took is not None}

    def affected(self, name, number):
        """Tests in three lists, the quick ones first in each: unit tests that run the line or may run it, others that do, and the
        other unit tests. Some of these have children that end by _exit, which gcov does not see. pre: the file is unchanged"""
        runs = {test["name"]: self.coverage.runs(test["name"], name, number) for test in self.tree.tests if suite(test) != "storm"}
        tests = [test for test in self.tree.tests if runs.get(test["name"], False) is not False or test["name"] in runs and suite(test) == "unit"]
        tests.sort(key=lambda test: (-1 if runs[test["name"]] else runs[test["name"]] is False, self.seconds[test["name"]]))
        sums = itertools.accumulate(self.seconds[test["name"]] for test in tests)
        lists = [], [], []
        for test, seconds in zip(tests, sums):
            if seconds <= self.most:
                lists[2 if runs[test["name"]] is False else suite(test) != "unit"].append(test)
        return lists

    def fails(self, tests):
        """The first test that fails twice. One that fails once may be a victim of a busy machine."""
        while tests:
            test = first_to_fail(tests, self.limits, self.tree.build)
            if not test or first_to_fail([test], self.limits, self.tree.build):
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
        (quick, others, children), code = self.affected(name, number), tree.own_code(name)
        tree.change(name, number, line)
        try:
            if tree.code(name) in (None, code):
                return None
            test = self.noticed(quick)
            storms = [test for test in tree.tests if suite(test) == "storm"]
            for more in (storms, others) if kind in ("lock", "atomic") else (others, storms):
                test = test or self.noticed(more)
            test = test or self.noticed(children, rebuilt=True)
            return test["name"] if test else ""
        finally:
            tree.restore(name)


def candidates(tree, files):
    """The changes by line, so that each line is as likely as any other."""
    lines = collections.defaultdict(list)
    for name in tree.names:
        if name.startswith(PRODUCT) and name.endswith(".c") and "/gen_" not in name and (not files or name in files):
            text = (tree.top / name).read_text(encoding="utf-8")
            for kind, number, line in mutate.of_file(text):
                if not (name.startswith("src/cli/") and FREES.search(text.split("\n")[number - 1])):
                    lines[name, number].append((kind, line))
    return lines


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("tree", type=pathlib.Path)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--minutes", type=float, default=30)
    parser.add_argument("--without-storms", action="store_true")
    parser.add_argument("--most", type=float, default=float("inf"))
    parser.add_argument("--longest", type=float, default=600)
    parser.add_argument("files", nargs="*")
    given = parser.parse_intermixed_args()
    tree = Tree(given.tree.resolve(), given.folder.resolve())
    mutants = Mutants(tree, not given.without_storms, given.most, given.longest)
    lines = candidates(tree, given.files)
    chosen = sorted(lines)
    chance = random.Random(given.seed)
    chance.shuffle(chosen)
    print(f"seed {given.seed}, {len(chosen)} lines that can be changed", flush=True)
    until, figures, survivors = time.monotonic() + 60 * given.minutes, collections.Counter(), []
    for name, number in chosen:
        if time.monotonic() > until:
            break
        kind, line = chance.choice(lines[name, number])
        old = (tree.top / name).read_text(encoding="utf-8").split("\n")[number - 1]
        began = time.monotonic()
        test = mutants.judge(name, number, line, kind)
        word = "not valid" if test is None else f"noticed by {test}" if test else "NOT NOTICED"
        figures[word.split(" by ")[0]] += 1
        told = f"{name}:{number} {kind}: {old.strip()} -> {line.strip()}"
        print(f"{word} ({time.monotonic() - began:.0f} s): {told}", flush=True)
        survivors += [told] if test == "" else []
    valid = figures["noticed"] + figures["NOT NOTICED"]
    print(f"{figures['noticed']} of {valid} noticed, {figures['not valid']} not valid", *survivors, sep="\n")
    return 100 * figures["noticed"] < SHARE * valid


if __name__ == "__main__":
    sys.exit(main())
