"""Bad input: each is one clear line or an honest pass-through; the program's own results never change."""
import os
import subprocess
import unittest

from harness import KERNELS, PROGRAMS, SMALL, apart, before_end, program
from scripted import FULL, ScriptCase


# Uses all its descriptors, then the device: what the policy allows is one number on stdout.
NO_DESCRIPTOR_LEFT = """
import ctypes, os, resource
cuda = ctypes.CDLL("libcuda.so.1")
resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))
try:
    while True:
        os.dup(0)
except OSError:
    pass
context, pointer = ctypes.c_void_p(), ctypes.c_uint64()
assert cuda.cuInit(0) == 0 and cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0) == 0
assert cuda.cuCtxSetCurrent(context) == 0
print(sum(cuda.cuMemAlloc_v2(ctypes.byref(pointer), ctypes.c_size_t(4 << 20)) == 0 for i in range(10)))
"""


class Policy(ScriptCase):
    """A policy that cannot be trusted or understood is refused whole: one line, and nothing is changed."""

    movable = "off"

    def write(self, text, name="policy.conf"):
        path = self.folder / name
        path.write_text(text, encoding="utf-8")
        path.chmod(0o600)
        return path

    def refused(self, where, *words, **variables):
        """One line on stderr that begins with `where` and has the words; results as without preload; it observes."""
        alone = self.script(FULL, preload=False)
        done = self.script(FULL, **variables)
        self.assertEqual(done.stdout, alone.stdout)
        self.assertIn("alloc:a:4m:5 CUDA_ERROR_OUT_OF_MEMORY", done.stdout)
        self.assertEqual(done.returncode, alone.returncode)
        rest, blocks = apart(done.stderr)
        self.assertEqual(len(blocks), 1, "of the out of memory that the program saw")
        lines = rest.splitlines()
        self.assertEqual(len(lines), 1, done.stderr)
        self.assertTrue(lines[0].startswith(f"spill: {where}: "), lines[0])
        for word in (*words, "nothing is spilled, libspill only observes"):
            self.assertIn(word, lines[0])
        records = self.checked_records()
        self.assertEqual(self.policy(records)["spill.mode"], "observe")
        self.assertEqual([r["text"] for r in records if r["kind"] == "note"], [lines[0].removeprefix("spill: ")])
        return records

    def test_with_all_descriptors_in_use_it_holds(self):
        path = self.write("[device]\nlimit = 4MiB\n[host]\nlimit = 8MiB\nreserve = 0\n")
        done = self.run_in(["python3", "-c", NO_DESCRIPTOR_LEFT], self.environment(SPILL_POLICY=path, SPILL_LOG="off"))
        self.assertNotIn("observes", done.stderr)
        self.assertEqual(done.stdout, "3\n", done.stderr)

    def test_in_the_file(self):
        for name, text, line, column, words in (
            ("unknown key", "[device]\nlimit = 5MiB\nlimmit = 1GiB\n", 3, 1, ["limmit", "limit"]),
            ("bad size", "[host]\n\nlimit = 3Gib\n", 3, 10, ["3Gib"]),
            ("unknown step", "[oom]\nchain = promote, split\n", 2, 9, ["promote", "it must be one of trim, demote, "]),
            ("unknown section", "[devices]\nlimit = 1GiB\n", 1, 2, ["devices", "device"]),
            ("duplicate", "[host]\nlimit = 1GiB\nlimit = 2GiB\n", 3, 1, ["limit"]),
        ):
            with self.subTest(name):
                self.log.unlink(missing_ok=True)
                path = self.write(text)
                records = self.refused(f"{path}:{line}:{column}", *words, SPILL_POLICY=path)
                # Refused whole: what was right in the file holds as little as what was wrong.
                self.assertEqual(self.policy(records)["device.limit"], "none")

    def test_by_the_environment(self):
        for variable, value, words in (("SPILL_DEVICE_LIMIT", "12 apples", ["12 apples"]),
                                       ("SPILL_OOM_CHAIN", "promote", ["promote", "it must be one of trim, demote, "]),
                                       ("SPILL_MODE", "spil", ["spil", "spill"])):
            with self.subTest(variable):
                self.log.unlink(missing_ok=True)
                self.refused(variable, *words, **{variable: value})

    def test_missing(self):
        path = self.folder / "nowhere.conf"
        self.refused(path, "no such file", SPILL_POLICY=path)

    def test_a_folder(self):
        self.refused(self.folder, "folder", SPILL_POLICY=self.folder)

    def test_writable_by_others(self):
        path = self.write("[device]\nlimit = 5MiB\n")
        path.chmod(0o622)
        self.refused(path, "others can write it", SPILL_POLICY=path)

    @unittest.skipIf(os.geteuid() != 0, "only root can give a file away")
    def test_foreign_owned(self):
        path = self.write("[device]\nlimit = 5MiB\n")
        # To root a foreign owner is any other; to that other, root's file is one it may have.
        os.chown(path, 65534, 65534)
        self.refused(path, "belongs to another user", SPILL_POLICY=path)

    def test_unreadable(self):
        path = self.write("[device]\nlimit = 5MiB\n")
        if os.geteuid() != 0:
            path.chmod(0)
            self.refused(path, "permission denied", SPILL_POLICY=path)
            return
        # Root may read everything, so another user runs the program, on root's policy.
        os.chmod(self.folder, 0o755)
        private = self.folder / "private"
        private.mkdir()
        os.chown(private, 65534, 65534)
        reachable = subprocess.run(["test", "-x", str(PROGRAMS / "script")], user=65534, check=False).returncode == 0
        if not reachable:
            self.skipTest("another user cannot reach the programs of this checkout")
        self.log = private / "log.jsonl"
        environment = self.environment(SPILL_POLICY=path)
        command = [str(PROGRAMS / "script"), KERNELS, *FULL.split()]
        done = self.run_in(command, environment, {"user": 65534, "group": 65534})
        self.assertEqual(apart(done.stderr)[0], f"spill: {path}: permission denied; nothing is spilled, libspill only observes\n")
        self.assertEqual(self.policy(self.checked_records())["spill.mode"], "observe")
        self.assertEqual(done.stdout, self.script(FULL, preload=False).stdout)

    def test_every_unknown_variable_is_named(self):
        done = self.good(self.script(FULL, SPILL_DEVICE_LIMMIT="5MiB", SPILL_OOM_CHIAN="host"))
        *warnings, loud = before_end(done.stderr).splitlines()
        self.assertEqual(sorted(warnings), [
            "spill: SPILL_DEVICE_LIMMIT: unknown variable; the nearest is SPILL_DEVICE_LIMIT",
            "spill: SPILL_OOM_CHIAN: unknown variable; the nearest is SPILL_OOM_CHAIN"])
        notes = [r["text"] for r in self.checked_records() if r["kind"] == "note"]
        self.assertEqual(sorted(notes), sorted(line.removeprefix("spill: ") for line in warnings))
        self.assertIn("placed in host memory", loud)

    def test_unknown_variable_is_named_and_changes_nothing(self):
        done = self.good(self.script(FULL, SPILL_DEVICE_LIMMIT="5MiB"))
        warning, loud = before_end(done.stderr).splitlines()
        self.assertEqual(warning, "spill: SPILL_DEVICE_LIMMIT: unknown variable; the nearest is SPILL_DEVICE_LIMIT")
        self.assertIn("placed in host memory", loud)

    def test_exit_status_is_the_programs(self):
        path = self.write("[nonsense\n")
        for name, status in (("prog_runtime", 2), ("prog_hip", 2)):
            with self.subTest(name):
                done = self.run_program(program(name), vram=SMALL, SPILL_POLICY=path)
                self.assertEqual(done.returncode, status)
                self.assertEqual(done.stdout, self.run_program(program(name), preload=False, vram=SMALL).stdout)


if __name__ == "__main__":
    unittest.main(verbosity=2)
