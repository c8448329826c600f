"""A copy of the project, in which single lines of the product are changed and built."""
import hashlib
import json
import os
import pathlib
import re
import shlex
import subprocess
import sys

from coverage import PRODUCT

HERE = pathlib.Path(__file__).resolve().parent
SANITIZED = re.compile(r"^tests/storm/[^/]*_[at]san\b")
OTHER_MACHINE = "aarch64-linux-gnu-gcc"


def run(command, **more):
    return subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False, **more)


def suite(test):
    return test["suite"][0].split(":")[-1]


def sum_of_code(object_file, objcopy, bare):
    """What distinguishes the machine code, without names of lines."""
    Tree.must([objcopy, "--strip-debug", object_file, bare])
    return hashlib.sha256(bare.read_bytes()).hexdigest()


class Tree:
    """Built twice: as it is, and with gcov. Warnings are errors, as where the project is developed."""

    def __init__(self, top, folder):
        self.top, self.source = top, folder / "tree"
        self.build, self.covered = self.source / "build", self.source / "build-covered"
        self.source.mkdir(parents=True, exist_ok=True)
        names = run(["git", "-C", top, "ls-files", "-co", "--exclude-standard"]).stdout.splitlines()
        self.names = [name for name in names if (top / name).is_file()]
        for name in self.names:
            self.restore(name)
        self.set_up(self.build, {}, "--werror")
        self.targets = self.introspect(self.build, "--targets")
        self.tests = self.introspect(self.build, "--tests")
        self.commands = json.loads((self.build / "compile_commands.json").read_text(encoding="utf-8"))
        self.plain = [name for target in self.targets if target["build_by_default"] for name in self.outputs(target)
                      if not SANITIZED.match(name)]
        self.must(["ninja", "-C", self.build, *self.plain])
        self.codes, self.users = {}, None

    def set_up(self, build, variables, *options):
        if not (build / "build.ninja").exists():
            self.must(["meson", "setup", *options, build, self.source], env=os.environ | variables)

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

    # -- the objects of a file, and their machine code

    def read_users(self):
        """For each header of the product, the product's objects that include it."""
        self.users, made = {}, None
        for line in run(["ninja", "-C", self.build, "-t", "deps"]).stdout.splitlines():
            if line and not line[0].isspace():
                made = line.split(":")[0]
            elif line and made:
                used = os.path.relpath(self.build / line.strip(), self.source)
                if used.endswith(".h") and used.startswith(PRODUCT):
                    self.users.setdefault(used, set()).add(made)

    def commands_of(self, name):
        """Compilations of the product that a change of the file changes."""
        if name.endswith(".h") and self.users is None:
            self.read_users()
        for command in self.commands:
            made, file = command["output"], os.path.relpath(self.build / command["file"], self.source)
            uses = made in self.users.get(name, ()) if name.endswith(".h") else file == name
            if uses and file.startswith(PRODUCT) and not SANITIZED.match(made) and (self.build / made).exists():
                yield command

    def code(self, name):
        """None if it does not compile."""
        objects = sorted(command["output"] for command in self.commands_of(name))
        if not self.make(objects):
            return None
        return [sum_of_code(self.build / made, "objcopy", self.build / "bare.o") for made in objects]

    def other_code(self, name):
        """That of another machine, where each memory order is an instruction of its own. Nothing without a compiler for it."""
        sums = []
        for command in self.commands_of(name):
            words = [word for word in shlex.split(command["command"]) if not word.startswith("-fcf-protection")]
            words = words[next(place for place, word in enumerate(words) if word.startswith("-")):]
            made = self.build / "other.o"
            words[words.index("-o") + 1] = made.name
            for option in "-MF", "-MQ":
                del words[words.index(option):words.index(option) + 2]
            words.remove("-MD")
            if run([OTHER_MACHINE, *words], cwd=self.build).returncode == 0:
                sums.append(sum_of_code(made, "aarch64-linux-gnu-objcopy", self.build / "bare.o"))
        return sums

    def own_code(self, name, other=False):
        """That of the unchanged source. Other sources may still be built as they were changed before."""
        key = name, other
        if key not in self.codes:
            self.codes[key] = self.other_code(name) if other else self.code(name)
        return self.codes[key]

    def is_valid(self, name, number, line, kind):
        """Changes the file. Does it compile to other machine code then?"""
        order, own = kind == "order", self.own_code(name)
        other = self.own_code(name, True) if order else None
        self.change(name, number, line)
        code = self.code(name)
        return code is not None and (code != own or (order and self.other_code(name) != other))

    # -- what tests need

    def make(self, names):
        return not names or run(["ninja", "-C", self.build, *names]).returncode == 0

    def make_for(self, tests):
        """What the tests need. A unit test names it all. Others also start programs that they do not name."""
        ids = {one for test in tests for one in test["depends"]}
        names = {name for target in self.targets if target["id"] in ids for name in self.outputs(target)}
        if any(suite(test) != "unit" for test in tests):
            names.update(name for name in self.plain if not name.startswith("tests/unit/"))
        return self.make(sorted(names))
