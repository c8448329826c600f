"""host.limit of several processes of one user: two programs together get what one alone would, and the dead hold nothing."""
import os
import shutil
import subprocess
import unittest

from control_group import ControlGroup
from harness import KERNELS, MIB, PROGRAMS, decided, held
from scripted import ScriptCase

LIMIT = 40 * MIB
FULL = "retain:0 alloc:a:4m:20 fill:a verify:a free:a info"  # 12 MiB on the device, and what the limit gives

# Until all its threads are gone: the last takes the locks along. A shell may be between it and us.
KILL_FIRST = """pid=$$
while [ "$(cat /proc/$pid/comm)" != script ]; do pid=$(cut -d' ' -f4 /proc/$pid/stat); done
kill -9 $pid
while [ -e /proc/$pid ] && ! { grep -q zombie /proc/$pid/status && [ "$(ls /proc/$pid/task)" = $pid ]; }; do :; done
"""


class Share(ScriptCase):
    movable = "off"
    share = None  # the default

    def setUp(self):
        super().setUp()
        self.unshare = ["unshare", "-m"] if os.geteuid() == 0 else ["unshare", "-r", "-m"]
        if not shutil.which("unshare") or subprocess.run([*self.unshare, "sh", "-c", "mount -t tmpfs none /dev/shm"], check=False,
                                                         capture_output=True).returncode:
            self.skipTest("no /dev/shm of its own can be made here")

    def run_both(self, first, second, group=None, **variables):
        """
        The first program's words, of which `child:` is a shell script; `script` in it runs further words. Both in a /dev/shm that
        nobody else uses. Their logs, by name: the library makes one a process. `group`: the first program's control group.
        """
        child = self.folder / "child"
        child.write_text(f"#!/bin/sh\nscript() {{ SPILL_LOG='{self.folder}/second.jsonl' '{PROGRAMS}/script' '{KERNELS}' \"$@\"; }}\n"
                         f"{second}\n", encoding="ascii")
        child.chmod(0o700)
        enter = f"echo $$ >'{group}/cgroup.procs' && " if group else ""
        command = [*self.unshare, "sh", "-c", f"{enter}mount -t tmpfs none /dev/shm && exec \"$@\"", "sh", str(PROGRAMS / "script"), KERNELS,
                   *first.replace("child:", f"child:{child}").split()]
        return self.run_in(command, self.environment(**{"SPILL_HOST_LIMIT": LIMIT, "SPILL_OOM_CHAIN": "host", **variables}))

    def spilled(self, name):
        """What a process spilled at most, and what refused it."""
        records = self.checked_records(self.folder / name)
        refused = [r["refused_by"] for r in records if r["kind"] == "oom"]
        return sum(held(r)["host"] for r in decided(records)), refused

    def test_two_get_one_limit(self):
        done = self.run_both("retain:0 alloc:a:4m:8 child: free:a alloc:b:4m:20 fill:b verify:b free:b", f"script {FULL}")
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertEqual(self.spilled("second.jsonl"), (LIMIT - 20 * MIB, ["host.limit"]))
        # The second is gone: all is the first one's.
        self.assertEqual(self.spilled("log.jsonl"), (20 * MIB + LIMIT, ["host.limit"]))

    def job(self, tasks):
        """The control group of a job, with a limit, and those of its tasks, without: as Slurm makes them."""
        folder = ControlGroup(self, 1 << 30).folder
        for number in range(tasks):
            task = folder / f"task_{number}"
            task.mkdir()
            self.addCleanup(task.rmdir)
        return folder

    def test_ranks_of_a_job_get_one_limit(self):
        job = self.job(2)
        done = self.run_both("retain:0 alloc:a:4m:8 child: free:a", f"echo $$ >'{job}/task_1/cgroup.procs'; script {FULL}", job / "task_0",
                             SPILL_HOST_RESERVE="0")
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertEqual(self.spilled("second.jsonl"), (LIMIT - 20 * MIB, ["host.limit"]))

    def test_another_job_has_a_limit_of_its_own(self):
        """Before, a user's second job on a node got nothing while the first one held much."""
        job = self.job(1)
        done = self.run_both("retain:0 alloc:a:4m:8 child: free:a", f"echo $$ >'{job}/task_0/cgroup.procs'; script {FULL}", SPILL_HOST_RESERVE="0")
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertEqual(self.spilled("second.jsonl"), (LIMIT, ["host.limit"]))

    def test_the_dead_hold_nothing(self):
        self.run_both("retain:0 alloc:a:4m:8 child:", f"{KILL_FIRST}script {FULL}")
        self.assertEqual(self.spilled("second.jsonl"), (LIMIT, ["host.limit"]))
        records = self.records()
        self.assertEqual(sum(held(r)["host"] for r in decided(records)), 20 * MIB)
        self.assertNotIn("exit", [r["kind"] for r in records])

    def test_each_alone_if_told_so(self):
        done = self.run_both("retain:0 alloc:a:4m:8 child: free:a", f"script {FULL}; ls /dev/shm >'{self.folder}/files'",
                             SPILL_HOST_SHARE="no")
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertEqual(self.spilled("second.jsonl"), (LIMIT, ["host.limit"]))
        self.assertEqual((self.folder / "files").read_text(encoding="ascii"), "")

    def test_made_by_the_first_spill_only(self):
        look = "stat -c '%n %a %u %s' /dev/shm/*"
        for count, expected in ((3, "stat: cannot statx '/dev/shm/*': No such file or directory\n"), (4, "/dev/shm/spill-0 600 0 0\n")):
            done = self.run_both(f"retain:0 alloc:a:4m:{count} child: free:a", f"{look} >'{self.folder}/files' 2>&1")
            self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
            self.assertEqual((self.folder / "files").read_text(encoding="ascii"), expected)

    def test_not_made_where_nothing_is_spilled(self):
        for variables in ({"SPILL": "0"}, {"SPILL_MODE": "off"}, {"SPILL_MODE": "observe"}, {"SPILL_OOM_CHAIN": ""}):
            with self.subTest(**variables):
                files = self.folder / "files"
                files.unlink(missing_ok=True)
                done = self.run_both("retain:0 alloc:a:4m:8 child: free:a", f"ls /dev/shm >'{files}'", **variables)
                self.assertIn(("alloc:a:4m:8", "CUDA_ERROR_OUT_OF_MEMORY"), self.results(done), done.stdout + done.stderr)
                self.assertEqual(files.read_text(encoding="ascii"), "")

    def test_whatever_is_done_to_the_file(self):
        """Written to, truncated, replaced and gone while it is in use: the first program goes on, and its data is right."""
        words = "retain:0 alloc:a:4m:5 fill:a {} free:a alloc:c:4m:5 fill:c verify:c free:c"
        for harm in ("echo x >$file", "truncate -s 1m $file; : >$file", "rm $file", "rm $file; mkfifo $file", "rm $file; mkdir $file",
                     "rm $file; ln -s /etc/passwd $file", "ln $file $file.2", "chmod 0 $file", "mount -o remount,size=4k /dev/shm"):
            with self.subTest(harm):
                self.log.unlink(missing_ok=True)
                done = self.run_both(words.format("child: alloc:b:4m:2 fill:b verify:a verify:b free:b"), f"file=/dev/shm/spill-0; {harm}")
                self.good(done)
                records = self.checked_records()
                self.assertEqual(sum(held(r)["host"] for r in decided(records)), 8 * MIB + 8 * MIB + 8 * MIB)

    def test_what_is_in_its_place(self):
        """Something else in its place is left alone; the process counts for itself, and its log says so once."""
        done = self.run_both("child: retain:0 alloc:a:4m:8 child: free:a", f"ln -sf '{self.folder}/target' /dev/shm/spill-0")
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertFalse((self.folder / "target").exists())
        note, = [r for r in self.checked_records() if r["kind"] == "note" and r["code"] == "host-share"]
        self.assertIn("/dev/shm/spill-0 cannot be used: the file is a symbolic link", note["text"])

    def test_no_lock_while_a_file_is_opened(self):
        """The program's own open() makes a request in another thread, at every file that one opens, and waits for it."""
        command = [*self.unshare, "sh", "-c", "mount -t tmpfs none /dev/shm && exec \"$@\"", "sh", str(PROGRAMS / "corner"),
                   "beside", str(1 << 62)]
        done = self.run_in(command, self.environment(SPILL_HOST_LIMIT="8MiB", SPILL_OOM_CHAIN="host", SPILL_LOG_STDERR="off"))
        *rest, last = done.stdout.splitlines()
        self.assertEqual(last, "huge CUDA_ERROR_OUT_OF_MEMORY")
        self.assertEqual(set(rest), {"fill CUDA_SUCCESS", "beside CUDA_SUCCESS", "free CUDA_SUCCESS"}, done.stdout)


if __name__ == "__main__":
    unittest.main(verbosity=2)
