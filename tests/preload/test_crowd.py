"""A process with 64 threads in the driver: its children, its threads' ends and its own end; and what a process does to its world."""
import os
import subprocess
import unittest

import harness
from harness import PROGRAMS
from scripted import ScriptCase


class CrowdCase(ScriptCase):
    movable = "off"
    level = None  # 64 threads make many allocations: by sums, as by default

    def crowd(self, *words, prefix=(), preload=True, **variables):
        command = [*prefix, str(PROGRAMS / "crowd"), *map(str, words)]
        return self.run_in(command, self.environment(preload=preload, **variables), {"timeout": 200})


class Threads(CrowdCase):
    ROUNDS = 4

    def test_children(self):
        """fork, vfork, posix_spawn, bare clones, threads that end and threads that are cancelled."""
        done = self.crowd("children", self.ROUNDS)
        self.assertEqual((done.returncode, done.stdout), (0, f"children {6 * self.ROUNDS}, cancelled {self.ROUNDS}, failed calls 0\n"), done.stderr)
        records = self.checked_records()
        last = records[-1]
        # Where a thread was cancelled between two calls, it took its memory along.
        self.assertLessEqual(last["allocs"] - last["frees"], self.ROUNDS)
        self.assertGreater(last["allocs"], 64)

    def test_the_end_while_they_allocate(self):
        for how in ("exit", "_exit", "quick_exit", "return"):
            with self.subTest(how):
                self.log.unlink(missing_ok=True)
                done = self.crowd(how)
                self.assertEqual((done.returncode, done.stdout, done.stderr), (4, "", ""))
                kinds = [record["kind"] for record in self.records()]
                self.assertEqual((kinds[0], kinds.count("exit")), ("start", 1))


class World(CrowdCase):
    level = "each"

    def same_but_served(self, *words, prefix=()):
        """As alone, but that no allocation fails."""
        alone, done = (self.crowd(*words, prefix=prefix, preload=preload) for preload in (False, True))
        self.assertEqual((alone.returncode, done.returncode), (0, 0), done.stdout + done.stderr)
        self.assertIn("alloc 2", alone.stdout)
        self.assertNotIn("alloc 2", done.stdout)
        allocs, frees = done.stdout.count("alloc 0"), done.stdout.count("free 0")
        self.assertEqual(allocs, frees)
        rest = [[line for line in run.stdout.splitlines() if not line.startswith(("alloc", "free"))] for run in (alone, done)]
        self.assertEqual(*rest)
        return allocs

    def root(self):
        prefix = [] if os.geteuid() == 0 else ["unshare", "-r"]
        if subprocess.run([*prefix, "unshare", "-m", "true"], capture_output=True, check=False).returncode:
            self.skipTest("no root and no namespaces here")
        return prefix

    def test_the_driver_is_closed_and_opened_again(self):
        self.assertEqual(self.same_but_served("reopen"), 15)
        self.assertEqual(sum(record["kind"] == "alloc" for record in self.checked_records()), 15)

    def test_another_root(self):
        """Neither /proc nor /dev is there any more, nor the log's folder; the log is open."""
        (self.folder / "root").mkdir()
        self.assertEqual(self.same_but_served("chroot", self.folder / "root", prefix=self.root()), 10)
        self.assertEqual(sum(record["kind"] == "alloc" for record in self.checked_records()), 10)
        self.assertEqual(list((self.folder / "root").iterdir()), [])

    def test_other_namespaces(self):
        self.assertEqual(self.same_but_served("unshare", prefix=self.root()), 15)
        harness.check_log(self, self.records())

    def test_no_more_addresses(self):
        """RLIMIT_AS: a request is served or out of memory, and when there are addresses again all is well."""
        self.assertEqual(self.same_but_served("no-room"), 10)
        self.checked_records()


if __name__ == "__main__":
    unittest.main(verbosity=2)
