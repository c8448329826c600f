"""In a real control group (version 1): who spills without looking is killed for it, the host guard refuses in time."""
import contextlib
import os
import pathlib
import shutil
import subprocess
import unittest

from harness import KERNELS, MIB, PROGRAMS, decided, held
from scripted import ScriptCase

LIMIT, RESERVE, SIZE, COUNT = 192 * MIB, 32 * MIB, 8 * MIB, 40
WORDS = f"retain:0 alloc:a:{SIZE // MIB}m:{COUNT} fill:a verify:a free:a info".split()


def own_group():
    """The folder of this process's group of the memory controller, or None: found as cgroups(7) says, not as the library does."""
    with open("/proc/self/cgroup", encoding="ascii") as file:
        paths = [line.rstrip("\n").split(":", 2) for line in file]
    with open("/proc/self/mountinfo", encoding="ascii") as file:
        mounts = [line.split() for line in file]
    for fields in mounts:
        kind = fields[fields.index("-") + 1:]
        if kind[0] != "cgroup" or "memory" not in kind[2].split(","):
            continue
        path, = [path for _, controllers, path in paths if "memory" in controllers.split(",")]
        folder = pathlib.Path(fields[4] + path.removeprefix(fields[3].rstrip("/")))
        if (folder / "cgroup.procs").exists():
            return pathlib.Path(fields[4]), folder
    return None


class Group(ScriptCase):
    movable = "off"

    def setUp(self):
        super().setUp()
        found = own_group()
        if not found:
            self.skipTest("no memory controller of version 1")
        self.mount, parent = found
        self.group = parent / f"spill-test-{os.getpid()}"
        try:
            self.group.mkdir()
        except OSError as error:
            self.skipTest(f"no control group can be made here: {error.strerror}")
        self.addCleanup(self.group.rmdir)
        if not shutil.which("unshare") or subprocess.run(["unshare", "-m", "true"], check=False, capture_output=True).returncode:
            self.skipTest("no mount namespace can be made here")
        (self.group / "memory.limit_in_bytes").write_text(str(LIMIT))
        with contextlib.suppress(OSError):  # not without swap accounting
            (self.group / "memory.memsw.limit_in_bytes").write_text(str(LIMIT))
        (self.group / "memory.swappiness").write_text("0")

    def inside(self, *, blind, **variables):
        """The words, by a program in the group. blind: the group's files are hidden from it."""
        hide = f"mount -t tmpfs none '{self.mount}' || exit 65;" if blind else ""
        command = ["unshare", "-m", "sh", "-c", f"echo $$ >'{self.group}/cgroup.procs' || exit 66; {hide} exec \"$@\"", "sh",
                   str(PROGRAMS / "script"), KERNELS, *WORDS]
        return self.run_in(command, self.environment(SPILL_HOST_LIMIT="100%", SPILL_HOST_RESERVE=RESERVE, **variables))

    def killed(self):
        """How often the kernel has killed in the group."""
        words = (self.group / "memory.oom_control").read_text(encoding="ascii").split()
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

    def test_killed_without_looking(self):
        """The same program and library, but nothing tells of the limit: so the test above is of something."""
        done = self.inside(blind=True, SPILL_OOM_CHAIN="host")
        self.assertEqual(done.returncode, -9, done.stdout + done.stderr)
        self.assertGreater(self.killed(), 0)
        self.assertEqual(len(decided(self.records())), COUNT, "every request was served")


if __name__ == "__main__":
    unittest.main(verbosity=2)
