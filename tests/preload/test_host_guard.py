"""In a real control group, of the version that this machine has: who spills without looking is killed for it, the host guard refuses in
time."""
import os
import re
import shutil
import subprocess
import tempfile
import unittest

from control_group import ControlGroup
from harness import KERNELS, MIB, PROGRAMS, decided, held
from scripted import ScriptCase

# ROOM is for what is spilled. The group's limit has the program's own memory beside it, which is much under an emulator.
ROOM, RESERVE, SIZE, COUNT = 192 * MIB, 32 * MIB, 8 * MIB, 40
WORDS = f"retain:0 alloc:a:{SIZE // MIB}m:{COUNT} fill:a verify:a free:a info".split()


class Group(ScriptCase):
    movable = "off"

    def setUp(self):
        super().setUp()
        self.limit = ROOM + self.own_memory()
        self.group = ControlGroup(self, self.limit)
        if not shutil.which("unshare") or subprocess.run(["unshare", "-m", "true"], check=False, capture_output=True).returncode:
            self.skipTest("no mount namespace can be made here")

    def own_memory(self):
        """The most that the program had in memory where it asks for little."""
        words = ["retain:0", "alloc:a:1m", "child:grep VmHWM /proc/$PPID/status"]
        done = self.run_in([str(PROGRAMS / "script"), KERNELS, *words], self.environment(SPILL_LOG="off"))
        return int(re.search(r"^VmHWM:\s+(\d+) kB$", done.stdout, re.MULTILINE)[1]) << 10

    def inside(self, *, blind, words=tuple(WORDS), **variables):
        """The words, by a program in the group. blind: the group's files are hidden from it."""
        hide = f"mount -t tmpfs none '{self.group.mount}' || exit 65;" if blind else ""
        command = ["unshare", "-m", "sh", "-c", f"echo $$ >'{self.group.folder}/cgroup.procs' || exit 66; {hide} exec \"$@\"", "sh",
                   str(PROGRAMS / "script"), KERNELS, *words]
        return self.run_in(command, self.environment(SPILL_HOST_LIMIT="100%", SPILL_HOST_RESERVE=RESERVE, **variables))

    def test_refused_in_time(self):
        for chain in ("split", "managed", "host"):
            with self.subTest(chain):
                self.log.unlink(missing_ok=True)
                done = self.inside(blind=False, SPILL_OOM_CHAIN=chain)
                self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
                self.assertIn("CUDA_ERROR_OUT_OF_MEMORY", done.stdout)
                self.assertEqual([word for word, result in self.results(done) if result != "CUDA_SUCCESS"],
                                 [f"alloc:a:{SIZE // MIB}m:{COUNT}"], "what was given can be used")
                self.assertEqual(self.group.killed(), 0)
                records = self.checked_records()
                oom, = [r for r in records if r["kind"] == "oom"]
                self.assertEqual(oom["refused_by"], "host.reserve")
                spilled = sum(held(r)["host"] + held(r)["managed"] for r in decided(records))
                self.assertGreater(spilled, ROOM // 2, "and not before it must")
                self.assertLess(spilled, self.limit - RESERVE)

    def test_chunks_count_beside_what_others_take(self):
        """
        No group counts a driver's physical memory, so ours is taken off the room of the group, which somebody else fills meanwhile. The
        simulator's is in memory files, which the kernel counts as soon as it is written: there would be a kill if we did not.
        """
        taken = ROOM // 3
        with tempfile.NamedTemporaryFile(dir="/dev/shm") as file:
            grow = self.folder / "grow"
            grow.write_text(f"#!/bin/sh\nexec head -c {taken} /dev/zero >{file.name}\n")
            grow.chmod(0o755)
            done = self.inside(blind=False, words=f"retain:0 alloc:a:8m child:{grow} alloc:b:8m:{COUNT} fill:b verify:b".split(),
                               SPILL_OOM_CHAIN="split")
            self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
            self.assertEqual(os.path.getsize(file.name), taken)
        self.assertEqual(self.group.killed(), 0)
        spilled = sum(held(r)["host"] for r in decided(self.checked_records()))
        self.assertGreater(spilled, (ROOM - taken) // 2, "and not before it must")
        self.assertLess(spilled, self.limit - taken - RESERVE)

    def test_killed_without_looking(self):
        """The same program and library, but nothing tells of the limit: so the test above is of something."""
        done = self.inside(blind=True, SPILL_OOM_CHAIN="host")
        self.assertEqual(done.returncode, -9, done.stdout + done.stderr)
        self.assertGreater(self.group.killed(), 0)
        self.assertEqual(len(decided(self.records())), COUNT, "every request was served")


if __name__ == "__main__":
    unittest.main(verbosity=2)
