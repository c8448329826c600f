"""Other preloads, allocators, debuggers and ASan beside libspill, as Debian has them: coexist.py

The main job runs with each, in either order where there is one: it finishes, its data is right, memory spilled, and `spill report`
finds the log whole. The build folder comes in BUILD. Needs no GPU.
"""
import glob
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

BUILD = pathlib.Path(os.environ["BUILD"]).resolve()
SOURCE = pathlib.Path(__file__).resolve().parents[2]
LIBRARY = BUILD / "libspill.so"
SIM = ":".join(str(BUILD / "tests/sim" / name) for name in ("", "cudart"))
JOB = [str(BUILD / "tests/preload/prog_runtime"), "--kernels", str(BUILD / "tests/sim/kernels.so"), "--count", "5", "--mib", "6"]
DEBIAN = "/usr/lib/*-linux-gnu/"

# What each wraps decides how it could meet us.
PRELOADS = {
    "jemalloc": "libjemalloc.so.2", "mimalloc": "libmimalloc.so.2", "tcmalloc": "libtcmalloc_minimal.so.4",  # malloc
    "tcmalloc debug": "libtcmalloc_minimal_debug.so.4",
    "eatmydata": "libeatmydata.so", "fakeroot": "libfakeroot/libfakeroot-sysv.so",  # open, fsync, stat
    "faketime": "faketime/libfaketime.so.1", "faketime with threads": "faketime/libfaketimeMT.so.1",  # clocks, dlsym
}


def found(name):
    """Its path; a missing package is a failure, since the step installs it."""
    paths = glob.glob(DEBIAN + name)
    assert paths, f"{name} is not installed"
    return paths[0]


class Coexist(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="spill-coexist-")
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.log = self.folder / "log.jsonl"

    def environment(self, preload, **variables):
        environment = {"PATH": os.environ["PATH"], "HOME": str(self.folder), "LD_LIBRARY_PATH": SIM, "SPILL_SIM_VRAM": "20MiB",
                       "SPILL_LOG": str(self.log), "SPILL_HOST_SHARE": "no", **variables}
        return environment | ({"LD_PRELOAD": str(preload)} if preload else {})

    def run_it(self, command, environment):
        self.log.unlink(missing_ok=True)
        return subprocess.run(command, env=environment, cwd=self.folder, capture_output=True, text=True, timeout=60, check=False, stdin=subprocess.DEVNULL)

    def check_log(self, done):
        self.assertTrue(self.log.exists(), done.stdout + done.stderr)
        report = subprocess.run([BUILD / "spill", "report", "--json", self.log], capture_output=True, text=True, check=False)
        (run,) = json.loads(report.stdout)["runs"]
        self.assertEqual((run["differences"], run["bad_lines"], run["exited"]), ([], 0, True))
        self.assertGreater(run["totals"]["peak"]["host_bytes"], 0)

    def served(self, command, preload, **variables):
        done = self.run_it(command, self.environment(preload, **variables))
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertIn("all data right", done.stdout)
        self.check_log(done)
        return done


class Preloads(Coexist):
    def test_either_order(self):
        for name, file in PRELOADS.items():
            other = found(file)
            for order in (f"{other}:{LIBRARY}", f"{LIBRARY}:{other}"):
                with self.subTest(name, order=order):
                    self.served(JOB, order)

    def test_all_at_once(self):
        names = ("jemalloc", "eatmydata", "fakeroot")  # jemalloc and faketime alone wait for each other
        others = ":".join(found(PRELOADS[name]) for name in names)
        for order in (f"{others}:{LIBRARY}", f"{LIBRARY}:{others}"):
            with self.subTest(order=order):
                self.served(JOB, order)

    def test_programs_without_a_gpu(self):
        for name, file in PRELOADS.items():
            other = found(file)
            alone = self.run_it(["python3", "-c", "import threading; print(threading.active_count())"], self.environment(other))
            for order in (f"{other}:{LIBRARY}", f"{LIBRARY}:{other}"):
                with self.subTest(name, order=order):
                    done = self.run_it(["python3", "-c", "import threading; print(threading.active_count())"], self.environment(order))
                    self.assertEqual((done.returncode, done.stdout, done.stderr), (alone.returncode, alone.stdout, alone.stderr))
                    self.assertFalse(self.log.exists())


class Tools(Coexist):
    def test_heaptrack(self):
        self.served(["heaptrack", "-o", str(self.folder / "heap"), *JOB], LIBRARY)
        (record,) = self.folder.glob("heap.*")
        self.assertGreater(record.stat().st_size, 0)

    def test_fakeroot(self):
        self.served(["fakeroot", *JOB], LIBRARY)

    def test_strace(self):
        self.served(["strace", "-f", "-o", "/dev/null", *JOB], LIBRARY)

    # Of gdb and a usual valgrind the simulated GPU asks too much: these programs call a driver that does nothing. memcheck.py has others.
    GATE = [str(BUILD / "tests/bench/gate"), "1", "1000"]

    def on_no_driver(self, command, preload):
        return self.run_it(command, self.environment(preload, LD_LIBRARY_PATH=str(BUILD / "tests/bench")))

    def gdb(self, *commands, preload=None):
        words = [word for command in commands for word in ("-ex", command)]
        done = self.on_no_driver(["gdb", "-nx", "--batch", *words, "--args", *self.GATE], preload)
        self.assertIn("exited normally", done.stdout, done.stderr)
        return done

    def test_gdb(self):
        """The program stops in a stub, and goes on from there; the backtrace names the program's call."""
        done = self.gdb("set breakpoint pending on", f"set environment LD_PRELOAD {LIBRARY}", "tbreak cuMemcpyAsync",
                        "run", "backtrace", "continue")
        self.assertRegex(done.stdout, r"#0 +(0x\w+ in )?cuMemcpy")
        self.assertRegex(done.stdout, r"#\d+ .*main")

    def test_gdb_that_is_preloaded_itself(self):
        self.gdb("run", preload=LIBRARY)

    def test_valgrind(self):
        """No error is ours, and nothing is lost."""
        command = ["valgrind", "-q", "--error-exitcode=9", "--leak-check=full", "--errors-for-leak-kinds=definite"]
        for program in (["true"], ["ls", "/"], self.GATE):
            with self.subTest(program):
                done = self.on_no_driver([*command, *program], LIBRARY)
                self.assertEqual((done.returncode, done.stderr), (0, ""))


class Sanitized(Coexist):
    """Programs that are built with ASan, of crowd.c."""

    def build(self, compiler, *flags):
        program = self.folder / "sanitized"
        command = [compiler, "-g", "-fsanitize=address", *flags, "-D_GNU_SOURCE", "-I", SOURCE / "tests/sim/cuda", "-I", SOURCE / "tests/sim/core"]
        for folder in [SOURCE / "src/vendor", SOURCE / "src/base", *SOURCE.glob("tests/sim/*/")]:
            command += ["-I", folder]
        subprocess.run([*command, SOURCE / "tests/preload/crowd.c", "-o", program, "-pthread", "-ldl"], check=True)
        return program

    def served_by(self, program, preload, **variables):
        done = self.run_it([program, "reopen"], self.environment(preload, SPILL_SIM_VRAM="14MiB", **variables))
        self.assertEqual((done.returncode, done.stderr.count("AddressSanitizer")), (0, 0), done.stdout + done.stderr)
        self.assertEqual((done.stdout.count("alloc 0"), done.stdout.count("free 0")), (15, 15))
        self.check_log(done)

    def test_static_runtime(self):
        self.served_by(self.build("gcc", "-static-libasan"), LIBRARY)
        self.served_by(self.build("clang"), LIBRARY)

    def test_shared_runtime(self):
        """It wants to be the first library. It says so itself if it is not."""
        program = self.build("gcc")
        runtime = subprocess.run(["gcc", "-print-file-name=libasan.so"], capture_output=True, text=True, check=True).stdout.strip()
        self.served_by(program, f"{os.path.realpath(runtime)}:{LIBRARY}")
        self.served_by(program, LIBRARY, ASAN_OPTIONS="verify_asan_link_order=0")
        done = self.run_it([program, "reopen"], self.environment(LIBRARY))
        self.assertIn("ASan runtime does not come first", done.stderr)


if __name__ == "__main__":
    sys.exit(unittest.main(verbosity=1))
