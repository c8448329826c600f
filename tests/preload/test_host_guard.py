"""In a real control group, of the version that this machine has: who spills without looking is killed for it, the host guard refuses in
time."""
import contextlib
import os
import pathlib
import shutil
import subprocess
import tempfile
import unittest

from harness import KERNELS, MIB, PROGRAMS, decided, held
from scripted import ScriptCase

LIMIT, RESERVE, SIZE, COUNT = 192 * MIB, 32 * MIB, 8 * MIB, 40
WORDS = f"retain:0 alloc:a:{SIZE // MIB}m:{COUNT} fill:a verify:a free:a info".split()
# By version: the file of the limit, files that keep swap out of it, and where the kernel tells how often it has killed.
FILES = {1: ("memory.limit_in_bytes", {"memory.memsw.limit_in_bytes": LIMIT, "memory.swappiness": 0}, "memory.oom_control"),
         2: ("memory.max", {"memory.swap.max": 0}, "memory.events")}


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


class Group(ScriptCase):
    movable = "off"

    def setUp(self):
        super().setUp()
        found = own_group()
        if not found:
            self.skipTest("no memory controller is mounted here")
        version, self.mount, self.parent = found
        limit, without_swap, self.events = FILES[version]
        try:
            if version == 2:
                self.enable()
            self.group = self.parent / f"spill-test-{os.getpid()}"
            self.group.mkdir()
        except OSError as error:
            self.skipTest(f"no control group with a limit can be made here: {error.strerror}")
        self.addCleanup(self.group.rmdir)
        if not shutil.which("unshare") or subprocess.run(["unshare", "-m", "true"], check=False, capture_output=True).returncode:
            self.skipTest("no mount namespace can be made here")
        (self.group / limit).write_text(str(LIMIT))
        for name, value in without_swap.items():
            with contextlib.suppress(OSError):  # not without swap accounting
                (self.group / name).write_text(str(value))

    def enable(self):
        """Version 2: the groups below have limits. Refused where processes are in this one, unless it is the root."""
        below = self.parent / "cgroup.subtree_control"
        if not has_controller(below):
            below.write_text("+memory")
            self.addCleanup(below.write_text, "-memory")

    def inside(self, *, blind, words=tuple(WORDS), **variables):
        """The words, by a program in the group. blind: the group's files are hidden from it."""
        hide = f"mount -t tmpfs none '{self.mount}' || exit 65;" if blind else ""
        command = ["unshare", "-m", "sh", "-c", f"echo $$ >'{self.group}/cgroup.procs' || exit 66; {hide} exec \"$@\"", "sh",
                   str(PROGRAMS / "script"), KERNELS, *words]
        return self.run_in(command, self.environment(SPILL_HOST_LIMIT="100%", SPILL_HOST_RESERVE=RESERVE, **variables))

    def killed(self):
        """How often the kernel has killed in the group."""
        words = (self.group / self.events).read_text(encoding="ascii").split()
        return int(words[words.index("oom_kill") + 1])

    def test_refused_in_time(self):
        for chain in ("split", "managed", "host"):
            with self.subTest(chain):
                self.log.unlink(missing_ok=True)
                done = self.inside(blind=False, SPILL_OOM_CHAIN=chain)
                self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
                self.assertIn("CUDA_ERROR_OUT_OF_MEMORY", done.stdout)
                self.assertEqual([word for word, result in self.results(done) if result != "CUDA_SUCCESS"],
                                 [f"alloc:a:{SIZE // MIB}m:{COUNT}"], "what was given can be used")
                self.assertEqual(self.killed(), 0)
                records = self.checked_records()
                oom, = [r for r in records if r["kind"] == "oom"]
                self.assertEqual(oom["refused_by"], "host.reserve")
                spilled = sum(held(r)["host"] + held(r)["managed"] for r in decided(records))
                self.assertGreater(spilled, LIMIT // 2, "and not before it must")
                self.assertLess(spilled, LIMIT - RESERVE)

    def test_chunks_count_beside_what_others_take(self):
        """
        No group counts a driver's physical memory, so ours is taken off the room of the group, which somebody else fills meanwhile. The
        simulator's is in memory files, which the kernel counts as soon as it is written: there would be a kill if we did not.
        """
        taken = LIMIT // 3
        with tempfile.NamedTemporaryFile(dir="/dev/shm") as file:
            grow = self.folder / "grow"
            grow.write_text(f"#!/bin/sh\nexec head -c {taken} /dev/zero >{file.name}\n")
            grow.chmod(0o755)
            done = self.inside(blind=False, words=f"retain:0 alloc:a:8m child:{grow} alloc:b:8m:{COUNT} fill:b verify:b".split(),
                               SPILL_OOM_CHAIN="split")
            self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
            self.assertEqual(os.path.getsize(file.name), taken)
        self.assertEqual(self.killed(), 0)
        spilled = sum(held(r)["host"] for r in decided(self.checked_records()))
        self.assertGreater(spilled, (LIMIT - taken) // 2, "and not before it must")
        self.assertLess(spilled, LIMIT - taken - RESERVE)

    def test_killed_without_looking(self):
        """The same program and library, but nothing tells of the limit: so the test above is of something."""
        done = self.inside(blind=True, SPILL_OOM_CHAIN="host")
        self.assertEqual(done.returncode, -9, done.stdout + done.stderr)
        self.assertGreater(self.killed(), 0)
        self.assertEqual(len(decided(self.records())), COUNT, "every request was served")


if __name__ == "__main__":
    unittest.main(verbosity=2)
