"""A control group with a limit of memory for tests, of the version that this machine has."""
import contextlib
import os
import pathlib

# By version: the file of the limit, files that keep swap out of it (None: the limit), where the kernel tells how often it has killed, and what is used.
FILES = {1: ("memory.limit_in_bytes", {"memory.memsw.limit_in_bytes": None, "memory.swappiness": 0}, "memory.oom_control", "memory.usage_in_bytes"),
         2: ("memory.max", {"memory.swap.max": 0}, "memory.events", "memory.current")}


def own_group():
    """Version, mount and folder of this process's group of the memory controller, or None: as cgroups(7) says, not as the library does it."""
    with open("/proc/self/cgroup", encoding="ascii") as file:
        paths = {controllers: path for _, controllers, path in (line.rstrip("\n").split(":", 2) for line in file)}
    with open("/proc/self/mountinfo", encoding="ascii") as file:
        mounts = [line.split() for line in file]
    for fields in mounts:
        kind = fields[fields.index("-") + 1:]
        if kind[0] == "cgroup" and "memory" in kind[2].split(","):
            version, path = 1, next(path for controllers, path in paths.items() if "memory" in controllers.split(","))
        elif kind[0] == "cgroup2" and "" in paths:
            version, path = 2, paths[""]
        else:
            continue
        folder = pathlib.Path(fields[4] + path.removeprefix(fields[3].rstrip("/")))
        if (folder / "cgroup.procs").exists() and (version == 1 or has_controller(folder / "cgroup.controllers")):
            return version, pathlib.Path(fields[4]), folder
    return None


def has_controller(file):
    return "memory" in file.read_text(encoding="ascii").split()


class ControlGroup:
    """
    Made below the group of the test `case`, which is skipped where that cannot be; without processes, and gone with the case. `limit`: bytes of
    memory, none of it in swap.
    """

    def __init__(self, case, limit):
        found = own_group()
        if not found:
            case.skipTest("no memory controller is mounted here")
        version, self.mount, self.parent = found
        name, without_swap, self.events, self.usage = FILES[version]
        try:
            if version == 2:
                self.limits_below(case)
            self.folder = self.parent / f"spill-test-{os.getpid()}"
            self.folder.mkdir()
        except OSError as error:
            case.skipTest(f"no control group with a limit can be made here: {error.strerror}")
        case.addCleanup(self.folder.rmdir)
        (self.folder / name).write_text(str(limit))
        for file, value in without_swap.items():
            with contextlib.suppress(OSError):  # not without swap accounting
                (self.folder / file).write_text(str(limit if value is None else value))

    def limits_below(self, case):
        """Version 2: only a group without processes, or the root, has groups with limits below it. The nearest one of those above."""
        above = [self.parent, *self.parent.parents]
        for folder in above[:above.index(self.mount) + 1]:
            if has_controller(folder / "cgroup.subtree_control"):
                self.parent = folder
                return
        below = self.parent / "cgroup.subtree_control"
        below.write_text("+memory")
        case.addCleanup(below.write_text, "-memory")

    def killed(self):
        """How often the kernel has killed in the group."""
        words = (self.folder / self.events).read_text(encoding="ascii").split()
        return int(words[words.index("oom_kill") + 1])

    def used(self):
        return int((self.folder / self.usage).read_text(encoding="ascii"))
