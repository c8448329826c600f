"""Changes random lines of the product, one at a time, and looks whether a test fails. What no test notices is printed.

usage: mutants.py TREE FOLDER [--seed N] [--minutes N] [FILE…]
TREE: the project. FOLDER: for a copy of it and its build, which are used again. FILE: take lines of these only.
A change is valid if it compiles and changes the machine code. Exit status 1 if fewer than 95 % of the valid ones were noticed.
"""
import argparse
import collections
import concurrent.futures
import hashlib
import json
import os
import pathlib
import random
import signal
import subprocess
import sys
import threading
import time

sys.dont_write_bytecode = True
import mutate

PRODUCT = ("src/", "policy/", "shim/")
ORDER = ["unit", "property", "static", "preload", "cli", "scenarios", "docs", "bench", "sim", "storm"]
SHARE = 95  # percent
SKIPPED = 77


def run(command, **more):
    return subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False, **more)


class Tree:
    """A copy of the project, built."""

    def __init__(self, top, folder):
        self.top, self.source, self.build = top, folder / "tree", folder / "build"
        self.source.mkdir(parents=True, exist_ok=True)
        names = run(["git", "-C", top, "ls-files", "-co", "--exclude-standard"]).stdout.splitlines()
        self.names = [name for name in names if (top / name).is_file()]
        for name in self.names:
            self.restore(name)
        if not (self.build / "build.ninja").exists():
            self.must(["meson", "setup", self.build, self.source])
        introspect = lambda what: json.loads(run(["meson", "introspect", self.build, what]).stdout)
        self.must(["ninja", "-C", self.build])
        self.targets = {target["id"]: [pathlib.Path(name) for name in target["filename"]] for target in introspect("--targets")}
        self.tests = introspect("--tests")
        self.commands = json.loads((self.build / "compile_commands.json").read_text(encoding="utf-8"))
        self.plain = [str(name.relative_to(self.build)) for names in self.targets.values() for name in names
                      if name.exists() and "storm" not in str(name.relative_to(self.build))]

    @staticmethod
    def must(command):
        done = run(command)
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

    def code(self, name):
        """What distinguishes the machine code of a source's objects."""
        source, sums = self.source / name, []
        for command in self.commands:
            made = self.build / command["output"]
            if (self.build / command["file"]).resolve() == source.resolve() and "storm" not in command["output"] and made.exists():
                bare = self.build / "bare.o"
                self.must(["objcopy", "--strip-debug", made, bare])
                sums.append(hashlib.sha256(bare.read_bytes()).hexdigest())
        return sums

    def times(self):
        return {name: name.stat().st_mtime_ns for names in self.targets.values() for name in names if name.exists()}

    def make(self, with_storm=False):
        return run(["ninja", "-C", self.build, *([] if with_storm else self.plain)]).returncode == 0


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

    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        return next((test for test in pool.map(one, tests) if test), None)


def suite(test):
    return test["suite"][0].split(":")[-1]


class Mutants:
    def __init__(self, tree):
        self.tree = tree
        self.seconds = self.measure()
        tree.tests = [test for test in tree.tests if test["name"] in self.seconds]
        self.limits = {name: 30 + 6 * seconds for name, seconds in self.seconds.items()}

    def measure(self):
        """How long each test takes on the unchanged product, if it passes there."""
        kept = self.tree.build / "seconds.json"
        if kept.exists():
            return json.loads(kept.read_text(encoding="utf-8"))
        print("the tests of the unchanged product", flush=True)

        def one(test):
            began = time.monotonic()
            if not Runner(self.tree.build).passes(test, 600):
                print(f"left out, as it fails without a change: {test['name']}", flush=True)
                return None
            return test["name"], time.monotonic() - began

        with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
            seconds = dict(filter(None, pool.map(one, self.tree.tests)))
        kept.write_text(json.dumps(seconds), encoding="utf-8")
        return seconds

    def affected(self, before):
        """Tests that use a target that was built anew, the quick ones first."""
        changed = {name for name, at in self.tree.times().items() if before.get(name) != at}
        words = {str(name) for name in changed}
        ids = {one for one, names in self.tree.targets.items() if changed & set(names)}
        tests = [test for test in self.tree.tests if ids & set(test["depends"]) or words & {str(word) for word in test["cmd"]}]
        return sorted(tests, key=lambda test: (ORDER.index(suite(test)) if suite(test) in ORDER else len(ORDER), self.seconds[test["name"]]))

    def fails(self, tests):
        """The first test that fails twice. One that fails once may be a victim of a busy machine."""
        while tests:
            test = first_to_fail(tests, self.limits, self.tree.build)
            if not test or first_to_fail([test], self.limits, self.tree.build):
                return test
            tests = tests[tests.index(test) + 1:]
        return None

    def judge(self, name, number, line, kind):
        """None: not valid. Else the name of the test that notices it, or "". Storms are built for it, so they come last, but they
        are what notices a lock that is missing."""
        tree = self.tree
        before, code = tree.times(), tree.code(name)
        tree.change(name, number, line)
        try:
            if not tree.make() or tree.code(name) == code:
                return None
            plain = [test for test in self.affected(before) if suite(test) != "storm"]
            quick = [test for test in plain if suite(test) == "unit"] if kind in ("lock", "atomic") else plain
            test = self.fails(quick)
            if not test and tree.make(with_storm=True):
                test = self.fails([test for test in self.affected(before) if suite(test) == "storm"])
            test = test or self.fails([test for test in plain if test not in quick])
            return test["name"] if test else ""
        finally:
            tree.restore(name)
            tree.make(with_storm=True)


def candidates(tree, files):
    """The changes by line, so that each line is as likely as any other."""
    lines = collections.defaultdict(list)
    for name in tree.names:
        if name.startswith(PRODUCT) and name.endswith(".c") and "/gen_" not in name and (not files or name in files):
            for kind, number, line in mutate.of_file((tree.top / name).read_text(encoding="utf-8")):
                lines[name, number].append((kind, line))
    return lines


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("tree", type=pathlib.Path)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--minutes", type=float, default=30)
    parser.add_argument("files", nargs="*")
    given = parser.parse_intermixed_args()
    tree = Tree(given.tree.resolve(), given.folder.resolve())
    mutants = Mutants(tree)
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
