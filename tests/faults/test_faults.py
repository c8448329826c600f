"""Each function that libspill calls fails once, the injector does what it is told, and the judge finds what is wrong.

scripts/check faults disturbs every call (run.py).
"""
import concurrent.futures
import dataclasses
import os
import pathlib
import re
import subprocess
import tempfile
import types
import unittest

import faults
import programs
from harness import LIBRARY, MIB

TABLE = (pathlib.Path(__file__).resolve().parent / "libc_calls.def").read_text(encoding="utf-8")
FOLDER = tempfile.TemporaryDirectory(prefix="spill-faults-")
STUBS = pathlib.Path(FOLDER.name) / "stubs"
PROGRAMS = {program.name: program for program in programs.all_programs()}
BACKENDS = pathlib.Path(__file__).resolve().parents[2] / "src/vendor"


def setUpModule():
    faults.write_stubs(STUBS)


def tearDownModule():
    FOLDER.cleanup()


class Table(unittest.TestCase):
    def test_every_import_is_in_one_list(self):
        named = re.findall(r"^(?:FAILS|NEVER)\((\w+),", TABLE, re.MULTILINE)
        self.assertEqual(sorted(set(named)), sorted(named), "no name twice")
        listing = subprocess.run(["nm", "-D", "--undefined-only", LIBRARY], capture_output=True, text=True, check=True).stdout
        imports = {line.split()[-1].split("@")[0] for line in listing.splitlines()}
        self.assertGreater(len(imports), 100)
        self.assertEqual(imports - set(named), set(), "a new import: add it to tests/faults/libc_calls.def")


class Injector(unittest.TestCase):
    """Programs that are told nothing of it."""

    def run_with(self, name, *plan):
        return faults.Run(PROGRAMS[name], plan, STUBS)

    def test_only_libspills_calls_are_seen(self):
        """The stubs make the program's calls: of all its allocations, none is libspill's. Its own frees are."""
        report = self.run_with("hip").report
        seen = {place.name for place in report.places if place.side == "vendor"}
        self.assertLessEqual({"hipHostMalloc", "hipHostFree", "hipMemGetInfo"}, seen)
        self.assertFalse({"hipMalloc", "hipFree", "hipModuleLoad", "hipMallocPitch", "hipMallocManaged", "hipLaunchKernel"} & seen, seen)
        self.assertLessEqual(seen, self.vendor_functions() | {"hipFuncGetAttributes"})

    @staticmethod
    def vendor_functions():
        text = "".join(path.read_text(encoding="utf-8") for path in BACKENDS.glob("backend_*.def"))
        return set(re.findall(r"^FUNCTION\(\w+, [^,]+, (\w+),", text, re.MULTILINE))

    def test_a_fault_comes_at_its_call_and_once(self):
        usual = self.run_with("managed").report
        place = next(place for place in usual.places if place.name == "cuMemAdvise_v2" and place.count >= 2)
        for fault, count in (faults.Fault("vendor", place.name, place.offset, 2, 999), 1), \
                            (faults.Fault("vendor", place.name, "", 2, 999, True), self.calls(usual, place.name) - 1), \
                            (faults.Fault("vendor", "vendor", "", 1, 999), 1), (faults.Fault("libc", "libc", "", 1, 0), 1), \
                            (faults.Fault("vendor", place.name, place.offset, place.count + 1, 999), 0):
            with self.subTest(str(fault)):
                self.assertEqual(len(self.run_with("managed", fault).report.met), count)

    @staticmethod
    def calls(report, name):
        return sum(place.count for place in report.places if place.name == name)

    def test_half_a_write_is_a_write(self):
        """libspill writes the rest: one call more, and the same log."""
        usual = self.run_with("managed")
        run = self.run_with("managed", faults.Fault("libc", "write", "", 1, -1))
        self.assertEqual(self.calls(run.report, "write"), self.calls(usual.report, "write") + 1)
        self.assertEqual(run.log.count(b"\n"), usual.log.count(b"\n"))
        self.assertEqual(run.reader, "")

    def test_nothing_is_left_behind_a_reset(self):
        """Neither on devices nor on the host: what libspill keeps for later goes with a device's last context."""
        for name, ways in ("mixed", {"SPILL_MOVABLE_ENABLE": "on"}), ("mixed", {"SPILL_MOVABLE_ENABLE": "off"}), ("hip", {}):
            with self.subTest(name, **ways):
                program = dataclasses.replace(PROGRAMS[name], variables=PROGRAMS[name].variables | ways)
                left = faults.Run(program, [], STUBS).report.left
                self.assertEqual({kind: left[kind] for kind in ("device", "host", "handles", "contexts", "streams", "events", "modules", "arrays")},
                                 dict.fromkeys(("device", "host", "handles", "contexts", "streams", "events", "modules", "arrays"), 0))

    def test_what_is_left_is_told(self):
        """A block that cannot be given back stays on the simulated device, and in the report."""
        usual = self.run_with("mixed").report.left
        left = self.run_with("mixed", faults.Fault("vendor", "cuMemRelease", "", 1, 999)).report.left
        self.assertEqual((usual["host"], usual["device"], usual["handles"]), (0, 0, 0))
        self.assertEqual((left["host"] + left["device"], left["handles"]), (2 * MIB, 1))


class Undone(unittest.TestCase):
    """A mapping of chunks without a record: the program gets an out of memory, and all is as if it had not tried."""
    WORDS = "create:a:24m map:a fill:a create:b:24m map:b fill:b create:c:24m map:c fill:c side:a side:b side:c verify:a verify:b verify:c".split()

    def run_of(self, words, *plan):
        program = programs.Program("mapped", [programs.PROGRAMS / "vmm", programs.KERNELS, *words], {"SPILL_SIM_VRAM": "64MiB", **programs.MOVES})
        return faults.Run(program, plan, STUBS)

    def test_it_can_be_made_again(self):
        usual = self.run_of(self.WORDS)
        self.assertIn("side a ddddddddhhhh", usual.stdout)
        refused = 0
        for nth in range(1, sum(place.count for place in usual.report.places if place.name == "tsearch") + 1):
            fault = faults.Fault("libc", "tsearch", "", nth, 12)
            failed = re.search(r"^(map:\w) CUDA_ERROR_OUT_OF_MEMORY$", self.run_of(self.WORDS, fault).stdout, re.MULTILINE)
            if not failed:
                continue
            refused += 1
            at = self.WORDS.index(failed[1])
            again = self.run_of(self.WORDS[:at] + [failed[1]] + self.WORDS[at:], fault)
            self.assertEqual((again.status, again.stdout.replace(f"{failed[0]}\n", "", 1)), (0, usual.stdout))
        self.assertEqual(refused, 3)


class Judge(unittest.TestCase):
    """Each thing that a run may not do."""

    @classmethod
    def setUpClass(cls):
        cls.usual = faults.usual(PROGRAMS["hip"], STUBS, 1)

    def complaints(self, **changed):
        usual = self.usual
        run = types.SimpleNamespace(**vars(usual))
        run.faults = [faults.Fault("vendor", "hipHostMalloc", "", 1, 801)]
        report = changed.pop("report", None)
        vars(run).update(changed)
        if report:
            run.report = faults.Report("".join(f"{line}\n" for line in report))
            run.report.left = usual.report.left | run.report.left
        return " ".join(faults.judge(run, usual))

    def test_a_run_that_is_right(self):
        self.assertEqual(self.complaints(), "")
        self.assertEqual(self.complaints(status=2, stdout="open on 0 hipErrorOutOfMemory\n"), "")
        self.assertEqual(self.complaints(stdout="late on 0 hipErrorNotSupported\nall data right\n"), "")

    def test_a_run_that_is_wrong(self):
        lines = self.usual.log
        for wrong, changed in (
                ("it does not end", {"status": None}), ("state has changed", {"stdout": "CHANGED: the device of the thread on 1\n"}),
                ("data is wrong", {"stdout": "plain on 1: 7 words wrong\n"}),
                ("exit status -11", {"status": -11}), ("without an error", {"status": 2, "stdout": ""}),
                ("the program got hipErrorUnknown", {"stdout": "free on 0 hipErrorUnknown\n"}),
                ("files: ['core']", {"files": ["core"]}), ("there is no log", {"log": None}), ("not whole", {"log": lines[:-1]}),
                ("schema", {"log": lines.replace(b'"kind":"exit"', b'"kind":"end"')}), ("spill log: bad", {"reader": "bad"}),
                ("would break a capture: cuMemFree_v2@30", {"report": ["strict cuMemFree_v2 30"]}),
                ("left: {'host'", {"report": ["left host 99999999"]}), ("left: {'malloc in", {"report": ["block 30000"]}),
                ("the ledger has {'host_bytes'", {"log": lines.replace(b'"host_bytes":0,', b'"host_bytes":17,')})):
            with self.subTest(wrong):
                self.assertIn(wrong, self.complaints(**changed))



class Sample(unittest.TestCase):
    """The first call of each function, in the quickest program that has it; the errors take turns."""

    # Libspill calls these only while it waits for a thread or for work, which may have ended; the time of a launch is asked for
    # once that has passed, which may be after the program's last look.
    waits = {"nanosleep", "sched_yield", "sem_clockwait", "pthread_mutex_trylock", "pthread_mutex_clocklock",
             "pthread_rwlock_clockwrlock", "pthread_tryjoin_np", "cuEventQuery", "hipEventQuery", "cuEventElapsedTime_v2"}

    def plans(self, usual):
        quickest = sorted(usual, key=lambda name: sum(place.count for place in usual[name].report.places))
        chosen, used = {}, {}
        for name in quickest:
            for place in usual[name].report.places:
                if place.name not in faults.NEVER_FAIL:
                    chosen.setdefault(place.name, (name, place))
        for index, (function, (name, place)) in enumerate(sorted(chosen.items())):
            errors = faults.errors_of(place, usual[name].report)
            fresh = [error for error in errors if (place.side, error) not in used]
            error = (fresh or errors)[0 if fresh else index % len(errors)]
            used[place.side, error] = function
            yield name, faults.Fault(place.side, function, "", 1, error)

    @staticmethod
    def run_until_it_comes(plan):
        """Which thread makes a call first is not the same in each run."""
        for _ in range(3):
            run = faults.Run(PROGRAMS[plan[0]], [plan[1]], STUBS)
            if run.report is None or run.report.met:
                break
        return run

    def test_each_function_fails(self):
        with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
            usual = dict(zip(PROGRAMS, pool.map(lambda program: faults.usual(program, STUBS, 1), PROGRAMS.values())))
            plans = list(self.plans(usual))
            runs = list(pool.map(self.run_until_it_comes, plans))
        self.assertGreater(len(plans), 100)
        for (name, fault), run in zip(plans, runs):
            with self.subTest(f"{name}: {fault}"):
                self.assertEqual(faults.judge(run, usual[name]), [], run.stdout[-500:] + run.stderr[-500:])
                self.assertTrue(run.report is None or run.report.met or fault.name in self.waits, "the fault came")


if __name__ == "__main__":
    unittest.main(verbosity=2)
