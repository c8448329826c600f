"""A process that makes no GPU call, or has libspill off, is as it would be without: no file, line, thread, descriptor."""
import os
import unittest

from harness import LIBRARY, PROGRAMS
from scripted import ScriptCase

# What the process itself sees of descriptors and threads.
LOOK = "import os, threading; print(sorted(os.listdir('/proc/self/fd')), len(os.listdir('/proc/self/task')))"
FULL = "retain:0 tasks alloc:a:4m:3 tasks free:a tasks"


class NothingWithoutGpu(ScriptCase):
    def setUp(self):
        super().setUp()
        # The defaults: a folder below HOME, which must not come into being.
        self.home = self.folder / "home"
        self.home.mkdir()

    def both(self, command, **variables):
        """The same with and without the library, and HOME stays empty."""
        variables |= {"HOME": self.home, "SPILL_LOG": None}
        alone = self.run_in(command, self.environment(preload=False, **variables))
        with_it = self.run_in(command, self.environment(**variables))
        self.assertEqual((with_it.returncode, with_it.stdout, with_it.stderr),
                         (alone.returncode, alone.stdout, alone.stderr))
        self.assertEqual(list(self.home.rglob("*")), [])
        return with_it

    def test_programs_without_a_gpu(self):
        for command in (["ls", "-a", str(self.home)], ["sh", "-c", "echo one; (exit 3)"],
                        ["python3", "-c", LOOK], ["python3", "-c", "import os; os.abort()"],
                        ["python3", "-c", "import os; os._exit(5)"], ["sh", "-c", "kill -9 $$"]):
            with self.subTest(command):
                self.both(command)

    def test_they_start_and_end_quickly(self):
        """Page faults are what a preload costs a process. libm stands for a library that does nothing for the program."""
        least = {}
        for library in ("libm.so.6", LIBRARY):
            faults = []
            for _ in range(8):
                child = os.posix_spawn("/bin/true", ["true"], {"LD_PRELOAD": library})
                _, status, usage = os.wait4(child, 0)
                self.assertEqual(status, 0)
                faults.append(usage.ru_minflt)
            least[library] = min(faults)
        self.assertLessEqual(least[LIBRARY], least["libm.so.6"] + 10, least)

    def test_a_broken_policy_is_no_matter_for_them(self):
        self.both(["sh", "-c", "echo one"], SPILL_POLICY="/nowhere", SPILL_NONSENSE="1", SPILL_MODE="nonsense")

    def test_a_monitor(self):
        """NVML is no GPU call: what the vendor says, whatever the settings, and no driver is loaded or asked."""
        trace = self.folder / "trace"
        words = ["first:0", "second:0", "later:0", "odd", "child:0"]
        done = self.both([str(PROGRAMS / "nvml_only"), *words], SPILL_POLICY="/nowhere", SPILL_NONSENSE="1", SPILL_MODE="nonsense",
                         SPILL_MEMINFO_REPORT="limit", SPILL_DEVICE_LIMIT="8MiB", SPILL_SIM_TRACE=trace)
        self.assertEqual(done.stdout.splitlines()[0], f"first:0 0 {14 << 20} {14 << 20} 0")
        calls = trace.read_text(encoding="utf-8").split()
        self.assertEqual(calls[:len(calls) // 2], calls[len(calls) // 2:])
        self.assertEqual([call for call in calls if not call.startswith("nvml")], [])

    def test_the_children_of_a_gpu_program(self):
        folder = self.folder / "logs"
        folder.mkdir()
        done = self.good(self.script(f"{FULL} child:ls child:true alloc:b:4m:5", SPILL_LOG=folder, HOME=self.home))
        self.assertEqual(done.stdout.count("status 0"), 2)
        log, = folder.iterdir()
        self.assertTrue(log.name.startswith("script-"))
        self.assertEqual([r["program"] for r in self.checked_records(log) if r["kind"] == "start"], ["script"])

    def test_a_gpu_program_that_only_asks(self):
        """No log before the first memory call: cuInit, contexts and free memory are none."""
        done = self.both([str(PROGRAMS / "script"), "none", "retain:0", "info", "tasks", "release:0"])
        self.assertIn("info CUDA_SUCCESS", done.stdout)

    def test_off(self):
        for word in ("0", "off", "no", "false"):
            with self.subTest(word):
                done = self.both([str(PROGRAMS / "script"), "none", *FULL.split(), "alloc:b:4m:5"], SPILL=word,
                                 SPILL_POLICY="/nowhere")
                self.assertIn("alloc:b:4m:5 CUDA_ERROR_OUT_OF_MEMORY", done.stdout)

    def test_off_by_mode(self):
        done = self.both([str(PROGRAMS / "script"), "none", *FULL.split(), "alloc:b:4m:5"], SPILL_MODE="off")
        self.assertIn("alloc:b:4m:5 CUDA_ERROR_OUT_OF_MEMORY", done.stdout)

    def test_working_costs_two_descriptors_and_no_thread(self):
        words = [str(PROGRAMS / "script"), "none", *FULL.split()]
        counts = []
        for preload in (False, True):
            # A stream of ours, for moves, is a thread of the simulated GPU.
            done = self.good(self.run_in(words, {**self.environment(preload=preload), "SPILL_MOVABLE_ENABLE": "off"}))
            counts.append([[int(n) for n in line.split()[1::2]] for line in done.stdout.splitlines()
                           if line.startswith("descriptors")])
        alone, with_it = counts
        for (descriptors, threads), (more, as_many) in zip(alone, with_it, strict=True):
            self.assertEqual(threads, as_many)
            self.assertIn(more - descriptors, (0, 2))  # the log, and the counters for `spill top`


class Weak(ScriptCase):
    """A program without HIP sees our exports as if it had it (pitfall 3a): a call says "not initialised", no more."""

    def test_what_it_sees(self):
        alone = self.run_in([str(PROGRAMS / "weak")], self.environment(preload=False))
        self.assertEqual(alone.stdout.count("weak absent dlsym absent handle absent"), 4)
        done = self.run_in([str(PROGRAMS / "weak")], self.environment())
        self.assertEqual(done.returncode, 0, done.stderr)
        lines = done.stdout.splitlines()
        # hipErrorNotInitialized, cudaErrorInitializationError, CUDA_ERROR_NOT_INITIALIZED, NVML_ERROR_UNINITIALIZED
        for i, (name, error) in enumerate({"hipMalloc": 3, "cudaMalloc": 3, "cuMemAlloc_v2": 3,
                                           "nvmlDeviceGetMemoryInfo": 1}.items()):
            self.assertTrue(lines[2 * i].startswith(f"{name} weak there dlsym there"), lines[2 * i])
            self.assertEqual(lines[2 * i + 1], f"weak call {error} dlsym call {error} pointer untouched")
        self.assertEqual(lines[-1], "unknown absent error")
        self.assertEqual(done.stderr, "")
        self.assertFalse(self.log.exists())


if __name__ == "__main__":
    unittest.main(verbosity=2)
