"""In a container: the main job where the root is read-only, where there is no /proc or no /dev/shm, and where a seccomp profile denies system calls."""
import os
import shutil
import subprocess
import unittest

from harness import MIB, PROGRAMS, Case, apart, before_end, held, program

# What Docker's default profile denies a process without capabilities, as far as a library or a C library might call it (moby/profiles,
# seccomp/default.json). 38 is ENOSYS, upon which glibc makes threads by clone.
DOCKER = ["bpf", "clone3=38", "get_mempolicy", "io_uring_setup", "kcmp", "mbind", "mount", "move_pages", "perf_event_open", "pidfd_getfd",
          "set_mempolicy", "unshare", "userfaultfd"]

# What other profiles deny besides: those of older releases, and of sandboxes that list what they know.
STRICT = DOCKER + ["membarrier=38", "process_vm_readv", "process_vm_writev", "ptrace"]

# /proc is empty, but for the program's open files: the simulated GPU loads its kernels by them. No process is named there.
NO_PROC = ("mkdir '{0}/proc' && mount -t tmpfs none '{0}/proc' && mkdir -p '{0}/proc/self/fd' && "
           "mount --bind /proc/$$/fd '{0}/proc/self/fd' && mount --rbind '{0}/proc' /proc && ")
# /dev has what programs need, and no shm.
NO_SHM = ("mkdir -p '{0}/dev' && mount -t tmpfs none '{0}/dev' && for d in null zero urandom; do touch '{0}/dev/'$d && "
          "mount --bind /dev/$d '{0}/dev/'$d || exit; done && mount --rbind '{0}/dev' /dev && test ! -e /dev/shm && ")
READ_ONLY = "mount --bind '{0}' '{0}' && mount -o remount,bind,ro / && mount -t tmpfs none /dev/shm && "
NO_WRITE = READ_ONLY + "mount -o remount,bind,ro '{0}' && mount -o remount,ro /dev/shm && "


class Confined(Case):
    vram = "20MiB"

    def setUp(self):
        super().setUp()
        self.unshare = ["unshare", "-m"] if os.geteuid() == 0 else ["unshare", "-r", "-m"]

    def mounted(self, mounts):
        """The words that run a command with such mounts; skips the test where these cannot be made."""
        prefix = [*self.unshare, "sh", "-c", mounts.format(self.folder) + "exec \"$@\"", "sh"]
        if not shutil.which("unshare") or subprocess.run([*prefix, "true"], check=False, capture_output=True).returncode:
            self.skipTest("no such mounts can be made here")
        shutil.rmtree(self.folder / "proc", ignore_errors=True)
        return prefix

    def job(self, prefix, **variables):
        """The main job behind the words, after which all data is right and what moved is known."""
        done = self.run_program([*prefix, *program("prog_runtime")], SPILL_MOVABLE_CHUNK="2MiB", SPILL_DEVICE_RESERVE="0",
                                SPILL_MOVABLE_WAIT="60s", **variables)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertIn("all data right", done.stdout)
        return done

    def check_moved(self):
        records = self.checked_records()
        self.assertEqual(records[0]["program"], "prog_runtime")
        data = [r for r in records if r["kind"] == "alloc" and r["bytes"] == 6 * MIB]
        self.assertEqual([r["place"] for r in data], ["device"] + ["movable"] * 7)
        self.assertTrue(any(r["kind"] == "move" for r in records))
        self.assertTrue(all(r["caller"].startswith("prog_runtime+0x") for r in data))
        return records

    def test_read_only_root(self):
        """The log's folder is a volume, as with docker run --read-only -v."""
        self.job(self.mounted(READ_ONLY), SPILL_HOST_SHARE="yes")
        self.check_moved()

    def test_nothing_can_be_written(self):
        """Neither a log nor the file of host.share: the job is done all the same, and a line tells that there is no log."""
        done = self.job(self.mounted(NO_WRITE), SPILL_HOST_SHARE="yes")
        self.assertFalse(self.log.exists())
        rest, _ = apart(before_end(done.stderr))
        told = [line for line in rest.splitlines() if "log.jsonl" in line]
        self.assertEqual(len(told), 1, done.stderr)
        self.assertIn("Read-only file system", told[0])

    def test_without_shared_memory(self):
        """The process counts for itself, and its log says so."""
        self.job(self.mounted(NO_SHM), SPILL_HOST_SHARE="yes")
        records = self.check_moved()
        self.assertIn("host-share", [record.get("code") for record in records])

    def test_without_proc(self):
        prefix = self.mounted(NO_PROC)
        self.job(prefix)
        self.check_moved()

    def test_without_proc_host_memory_is_guarded(self):
        """What is free is asked of the kernel: a reserve beyond it leaves nothing to spill."""
        prefix = self.mounted(NO_PROC)
        done = self.run_program([*prefix, *program("prog_runtime")], SPILL_HOST_RESERVE=str(1 << 60), SPILL_OOM_CHAIN="host")
        self.assertNotEqual(done.returncode, 0, done.stdout)
        records = self.checked_records()
        self.assertEqual({r["refused_by"] for r in records if r["kind"] == "oom"}, {"host.reserve"})
        self.assertEqual([r for r in records if r["kind"] == "alloc" and r["bytes"] == 6 * MIB and held(r)["host"]], [])

    def test_seccomp(self):
        for denied in (DOCKER, STRICT):
            with self.subTest(denied=denied):
                self.log.unlink(missing_ok=True)
                prefix = [str(PROGRAMS / "confine"), *denied, "--"]
                seen = subprocess.run([*prefix, "sed", "-n", "s/^Seccomp:[^0-9]*//p", "/proc/self/status"], check=False,
                                      capture_output=True, text=True)
                if seen.returncode == 69:
                    self.skipTest("no filter of system calls can be set here")
                self.assertEqual(seen.stdout, "2\n", seen.stderr)
                self.job(prefix, SPILL_HOST_NUMA="0")
                self.check_moved()


if __name__ == "__main__":
    unittest.main()
