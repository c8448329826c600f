"""Every row of the table by every way in, on the simulator: the program's answers are the same with and without
libspill, and the exit line counts each call under its row and way. Prints how much of the table that covers."""
import collections
import os
import pathlib
import re
import unittest

from harness import Case

ROWS = pathlib.Path(os.environ["ROWS"])
VENDOR_HIP = os.environ["VENDOR_HIP"]
HIP = dict(zip("567", os.environ["SIM_HIP_PATHS"].split(":")))

LOADER = {"link": ["link"], "local": ["link"]}
# Program of tests/rows → ways to try, each with its arguments. `local` is `link` of a plug-in, loaded RTLD_LOCAL.
PROGRAMS = {
    "driver": LOADER | {"dlsym": ["dlsym", "libcuda.so.1"], "proc1": ["proc1"], "proc2": ["proc2"]},
    "entry": {way: [way] for way in ("entry", "entry_ptsz", "version", "version_ptsz")},
    "deep": {way: [way] for way in ("entry_deep", "version_deep")},
    "runtime": LOADER | {"dlsym": ["dlsym", "libcudart.so.13"]},
    "hip_5": LOADER | {"dlsym": ["dlsym", "libamdhip64.so.5"]},
    "hip_6": LOADER | {"dlsym": ["dlsym", "libamdhip64.so.6"], "proc": ["proc"]},
    "hip_7": LOADER | {"dlsym": ["dlsym", "libamdhip64.so.7"], "proc": ["proc"], "proc_spt": ["proc_spt"]},
    "nvml": LOADER | {"dlsym": ["dlsym", "libnvidia-ml.so.1"]},
}
# What these ways cannot give: a function's older forms.
PARTIAL = {"entry", "entry_ptsz", "entry_deep"}


class Rows(Case):
    def tell(self, name, way, arguments, **variables):
        """The program's lines."""
        if name.startswith("hip_"):
            variables["LD_LIBRARY_PATH"] = HIP[name[-1]]
        command = [str(ROWS / f"rows_{name}")]
        if way == "local":
            command = [str(ROWS / "rows_plugin"), str(ROWS / f"plugin_{name}.so")]
        self.log.unlink(missing_ok=True)
        done = self.run_program(command + arguments, **variables)
        self.assertEqual(done.returncode, 0, f"{name} {way}: {done.stderr}")
        return done.stdout.splitlines()

    def reached(self, lines):
        """Calls by symbol and way as libspill has to count them, of the program's lines."""
        return collections.Counter(tuple(line.split()[1:3]) for line in lines if line.startswith("row "))

    def check(self, name, way, arguments):
        """The rows that the way reaches, every one of them seen by libspill and answered as without it."""
        alone = self.tell(name, way, arguments, preload=False)
        self.assertEqual(alone[0], "begin 0")
        reached = self.reached(alone)
        for variables in ({}, {"SPILL_MODE": "observe"}, {"SPILL": "0"}):
            with_us = self.tell(name, way, arguments, **variables)
            self.assertEqual(list(self.called(with_us, alone)), list(self.called(alone, alone)), (name, way, variables))
            if variables.get("SPILL") != "0":
                hits = {(hit["symbol"], hit["way"]): hit["count"] for hit in self.checked_records()[-1]["hits"]}
                unseen = [row for row, count in reached.items() if hits.get(row, 0) < count]
                self.assertEqual(unseen, [], f"{name} {way}: called and not counted")
        return {symbol for symbol, _ in reached}

    def called(self, lines, alone):
        """Answers of the rows that the library has: of others our own stub is found, which says that there is none."""
        absent = {line.split()[1] for line in alone if line.startswith("none ")}
        return (line for line in lines if line.split()[1] not in absent)

    def test_all(self):
        table, ways, possible = {}, collections.Counter(), collections.Counter()
        seen = collections.defaultdict(set)
        for name, program_ways in PROGRAMS.items():
            rows = [line.split()[0] for line in self.tell(name, "list", ["list"], preload=False)]
            table |= {row: name for row in rows}
            for way, arguments in program_ways.items():
                with self.subTest(program=name, way=way):
                    reached = self.check(name, way, arguments)
                    seen[name].update((row, way) for row in reached)
                    ways[f"{name} {way}"] = len(reached)
        by_row = collections.defaultdict(set)
        for name, pairs in seen.items():
            for row, way in pairs:
                by_row[row].add(way)
        wanted = self.wanted(table)
        missing = sorted((row, way) for row, ways_of in wanted.items() for way in ways_of - by_row[row])
        count = sum(len(ways_of) for ways_of in wanted.values())
        for name, reached in sorted(ways.items()):
            print(f"{name}: {reached} rows")
        print(f"{sum(1 for row in table if by_row[row])} of {len(table)} rows, "
              f"{count - len(missing)} of {count} row-ways")
        self.assertEqual(missing, [], "row-ways that nothing reached")

    def wanted(self, table):
        """Every way that some library has for the row."""
        wanted = {}
        for row in table:
            wanted[row] = {"link", "local", "dlsym"}
            if row.startswith("hip"):
                wanted[row] |= {"proc", "proc_spt"}
            elif not row.startswith(("cuda", "nvml")):
                wanted[row] |= {"proc1", "proc2", "version", "version_ptsz", "version_deep"}
                if row not in OLDER and row not in LATER:
                    wanted[row] |= PARTIAL
        return wanted


# Rows whose base has a newer form: only a look-up that names a version gives them.
OLDER = {"cuMemHostRegister", "cuIpcOpenMemHandle", "cuGraphAddNode", "cuStreamBeginCapture", "cuStreamBeginCapture_ptsz", "cuStreamDestroy",
         "cuCtxDestroy", "cuDevicePrimaryCtxRelease", "cuDevicePrimaryCtxReset", "cuGetProcAddress",
         "cuCtxCreate", "cuCtxCreate_v2", "cuCtxCreate_v3", "cuGraphInstantiate",
         "cuGraphExecUpdate", "cuGraphExecKernelNodeSetParams", "cuCtxSynchronize"} | {
             name + variant for name in ("cuMemcpyBatchAsync", "cuMemcpy3DBatchAsync", "cuStreamWaitValue32",
                                         "cuStreamWaitValue64", "cuStreamWriteValue32", "cuStreamWriteValue64",
                                         "cuStreamBatchMemOp") for variant in ("", "_ptsz")}
# Rows of a driver that is newer than the simulated runtime, which asks for none of them.
LATER = {name + variant for name in ("cuMemcpyWithAttributesAsync", "cuMemcpy3DWithAttributesAsync")
         for variant in ("", "_ptsz")} | {"cuMulticastBindMem_v2", "cuMulticastBindAddr_v2", "cuLogicalEndpointBindMem",
                                          "cuLogicalEndpointBindAddr"}


class Threads(Case):
    def test_every_call_is_counted(self):
        """Rows that submit work are counted by thread: also of threads that have ended, and of those that have not."""
        done = self.run_program([str(ROWS / "hits")])
        self.assertEqual(done.returncode, 0, done.stderr)
        made = {tuple(line.split()[:2]): int(line.split()[2]) for line in done.stdout.splitlines()}
        hits = {(hit["symbol"], hit["way"]): hit["count"] for hit in self.checked_records()[-1]["hits"]}
        self.assertEqual({call: hits.get(call) for call in made}, made)
        self.assertEqual(len(made), 3)


class Unknown(Case):
    def noted(self, library, *names):
        """Reasons why nothing moves, of a program that looks the names up there by dlsym."""
        self.log.unlink(missing_ok=True)
        lines = {}
        for preload in (False, True):
            done = self.run_program([str(ROWS / "unknown"), library, *names], preload=preload)
            self.assertEqual(done.returncode, 0, done.stderr)
            lines[preload] = done.stdout
        self.assertEqual(lines[True], lines[False])
        return [record["text"] for record in self.records() if record.get("code") == "movable"]

    def test_work_of_a_newer_driver(self):
        """By dlsym, too: what a driver has and the table has not passes the gate by, so nothing moves any more."""
        newer, other = str(ROWS / "libcuda.so.99.module"), str(ROWS / "libhelper.so.99.module")
        self.assertIn("submits work", self.noted(newer, "cuLaunchTomorrow")[0])
        for library, *names in ((newer, "cuTomorrow", "cuLaunchNever"), (other, "cuLaunchTomorrow"),
                                ("libcuda.so.1", "cuLaunchNever", "cuMemcpyHtoD", "cuLaunchHostFunc", "cuLaunchKernel")):
            self.assertEqual(self.noted(library, *names), [], (library, names))

    def test_decompression(self):
        """It cannot use chunks: who gets at it has nothing made movable."""
        for name in ("cuMemBatchDecompressAsync", "cuMemBatchDecompressAsync_ptsz"):
            self.assertIn("decompress", self.noted("libcuda.so.1", name)[0])
        self.log.unlink()
        self.run_program([str(ROWS / "rows_driver"), "link"])
        notes = [record["text"] for record in self.records() if "decompress" in record.get("text", "")]
        self.assertEqual(len(notes), 1, "linked, it is known by its first call")


class NoVendor(Case):
    def test_not_initialised(self):
        """Our exports are all that such a program finds: a call says "not initialised", and does nothing else."""
        for domain, error in (("CUDA_DRIVER", 3), ("CUDA_RUNTIME", 3), ("HIP", 3), ("NVML", 1)):
            command = [str(ROWS / f"rows_none_{domain}")]
            alone = self.run_program([*command, "link"], preload=False)
            self.assertEqual({line.split()[0] for line in alone.stdout.splitlines()}, {"begin", "none"})
            done = self.run_program([*command, "link"])
            calls = [line for line in done.stdout.splitlines() if line != "begin 0"]
            self.assertEqual(len(calls), alone.stdout.count("none "))
            self.assertEqual([line for line in calls if not line.endswith(f" link {error} last 0")], [])
            self.assertEqual((done.returncode, done.stderr), (0, ""))
            self.assertFalse(self.log.exists())


class TwoRuntimes(Case):
    def test_each_call_goes_to_its_own(self):
        """ROCm 6 and ROCm 7 in one process; `bare` plug-ins are not linked with theirs but load it themselves."""
        for name, way in (("two", "link"), ("two", "dlsym"), ("two", "proc"), ("two_bare", "dlsym"),
                          ("two_bare", "proc")):
            for order in (("6", "7"), ("7", "6")):
                with self.subTest(plugin=name, way=way, order=order):
                    command = [str(ROWS / "two"), *(str(ROWS / f"{name}_{release}.so") for release in order), way]
                    path = f"{HIP['6']}:{HIP['7']}"
                    alone = self.run_program(command, preload=False, LD_LIBRARY_PATH=path)
                    self.assertEqual(alone.stdout, "results 0 0 0\ntaken 20 8 MiB\n", alone.stderr)
                    done = self.run_program(command, LD_LIBRARY_PATH=path)
                    self.assertEqual((done.returncode, done.stdout), (0, alone.stdout), done.stderr)
                    hits = {(hit["symbol"], hit["way"]): hit["count"] for hit in self.records()[-1]["hits"]}
                    self.assertEqual(hits.get(("hipMalloc", way)), 3)
                    self.log.unlink()


@unittest.skipUnless(pathlib.Path(VENDOR_HIP).exists(), "Debian's libamdhip64 is not installed")
@unittest.skipIf(pathlib.Path("/dev/kfd").exists(), "this machine has an AMD device")
class RealHip(Rows):
    """Debian's own runtime, without a device: the program that is linked with the simulated one runs on it, too."""
    test_all = None

    def tell(self, name, way, arguments, **variables):
        done = self.run_program([str(ROWS / f"rows_{name}"), *arguments], LD_LIBRARY_PATH="", **variables)
        self.assertEqual(done.returncode, 0, f"{name} {way}: {done.stderr}")
        return done.stdout.splitlines()

    def test_same_results(self):
        for way, arguments in {"link": ["link"], "dlsym": ["dlsym", VENDOR_HIP]}.items():
            alone = self.tell("hip_5", way, arguments, preload=False)
            self.assertNotEqual(alone[0], "begin 0", "there is no device")
            calls = self.reached(alone)
            for variables in ({}, {"SPILL_MODE": "observe"}, {"SPILL": "0"}):
                with_us = self.tell("hip_5", way, arguments, **variables)
                self.assertEqual(list(self.called(with_us, alone)), list(self.called(alone, alone)), (way, variables))
            self.assertFalse(self.log.exists(), "no memory call was served, no log")
            print(f"Debian's libamdhip64 by {way}: {len(calls)} rows, the same with and without libspill")

    def test_every_row_is_interposed(self):
        alone = self.reached(self.tell("hip_5", "link", ["link"], preload=False))
        done = self.run_program([str(ROWS / "rows_hip_5"), "link"], LD_LIBRARY_PATH="", LD_DEBUG="bindings",
                                LD_BIND_NOW="1")
        found = re.findall(r"binding file \S*/rows_hip_5 \[0\] to (\S+) \[0\]: normal symbol `(\w+)'", done.stderr)
        libraries = {symbol: pathlib.Path(library).name for library, symbol in found}
        self.assertEqual({symbol for symbol, _ in alone if libraries.get(symbol) != "libspill.so"}, set())
        self.assertGreater(len(alone), 60)


if __name__ == "__main__":
    unittest.main(verbosity=2)
