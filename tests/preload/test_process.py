"""Forks, threads, ends of every kind, plug-ins, and other preloaded libraries: nothing is lost, nothing hangs."""
import ctypes
import os
import re
import shutil
import signal
import unittest

import harness
from harness import LIBRARY, MIB, PROGRAMS, held, program, without_files
from scripted import MOVED, ScriptCase


PR_SET_CHILD_SUBREAPER = 36


def adopts():
    """For a process that waits for its children's children, too. The new program keeps it (prctl(2))."""
    if ctypes.CDLL(None, use_errno=True).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0):
        raise OSError(ctypes.get_errno(), "PR_SET_CHILD_SUBREAPER")


class ProcessCase(ScriptCase):
    movable = "off"

    def setUp(self):
        super().setUp()
        self.logs = self.folder / "logs"
        self.logs.mkdir()

    # What the processes of a class run with, and what must then be said of five allocations of 4 MiB.
    with_variables = {}
    places, moved = ["device"] * 3 + ["split"] * 2, []

    def run_process(self, ending, *, how=None, **variables):
        return self.run_in([str(PROGRAMS / "process"), ending],
                           self.environment(SPILL_LOG=self.logs, **self.with_variables, **variables), how)

    def took_five(self, records, whole=True):
        """`whole`: the end was told; else what came behind the last spill or move may be lost."""
        allocs = [r for r in records if r["kind"] == "alloc"]
        least = len(self.places) - (0 if whole else bool(self.moved))
        self.assertGreaterEqual(len(allocs), least)
        self.assertEqual([r["place"] for r in allocs], self.places[:max(least, len(allocs))])
        self.assertEqual(self.moves(records), self.moved)

    def alone(self, how):
        return self.run_in([str(PROGRAMS / "process"), how], self.environment(preload=False))

    def by_pid(self):
        """The records of each log, by the pid in its name; each log is that process's own."""
        found = {}
        for path in self.logs.iterdir():
            pid = int(path.stem.rsplit("-", 1)[1])
            lines = self.all_lines(path)
            self.check_files(lines)
            found[pid] = without_files(lines)
            starts = [r for r in found[pid] if r["kind"] == "start"]
            self.assertEqual({r["pid"] for r in starts}, {pid})
        return found


class Fork(ProcessCase):
    def children_with_a_gpu_of_their_own(self, how):
        done = self.run_process(how)
        self.assertEqual(done.stdout.count("status 0"), 2, done.stdout)
        self.assertNotRegex(done.stdout, "child .* CUDA_ERROR")
        logs = self.by_pid()
        self.assertEqual(len(logs), 2)
        for records in logs.values():
            harness.check_log(self, records)
            self.took_five(records)
            self.assertEqual(records[-1]["frees"], 5)
            self.assertEqual(records[-1]["live"]["host_bytes"], 0)

    def test_before_any_gpu_call(self):
        self.children_with_a_gpu_of_their_own("fork-fresh")

    def test_after_a_call_that_had_no_gpu_yet(self):
        """libspill has started in the parent and is forked with it; each child begins a log of its own."""
        self.children_with_a_gpu_of_their_own("fork-early")

    def test_a_child_of_a_process_with_a_gpu_has_none(self):
        done, alone = self.run_process("fork-after"), self.alone("fork-after")
        self.assertEqual(done.returncode, 0)

        def childs(run):
            return [line for line in run.stdout.splitlines() if line.startswith(("child", "status"))]

        self.assertEqual(childs(done), childs(alone))
        self.assertIn("ERROR", childs(done)[1])
        self.assertNotIn("parent alloc CUDA_ERROR", done.stdout)
        self.assertNotIn("parent free CUDA_ERROR", done.stdout)
        # The child neither wrote to the parent's log nor, without memory of its own, began one that says otherwise.
        parent, = [r for r in self.by_pid().values() if any(line["kind"] == "alloc" for line in r)]
        harness.check_log(self, parent)
        self.assertEqual(parent[-1]["frees"], 10)

    def test_no_lock_is_inherited(self):
        done = self.run_process("fork-threads")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("children 200 of 200, failed calls 0", done.stdout)

    def test_within_the_loader(self):
        """A look of ours that waits for the loader keeps nobody waiting who is in it: no close, and no fork."""
        done, alone = self.run_process("loader"), self.alone("loader")
        self.assertEqual((done.returncode, done.stdout), (0, " start CUDA_SUCCESS\nclose 0\nstatus 0\n"))
        self.assertEqual((done.returncode, done.stdout), (alone.returncode, alone.stdout))

    def given_back(self, done):
        return int(re.search(r"child: descriptors (\S+), pages [-+]", done.stdout)[1])

    # 100,000 in scripts/check forks.
    FORKS = int(os.environ.get("FORKS", "300"))

    def test_many(self):
        """One after the other, and each the child of the last: no descriptor, no memory, no line of the log is left behind."""
        done = self.run_process(f"forks-{self.FORKS}", how={"timeout": 60 + self.FORKS // 100, "preexec_fn": adopts})
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("parent: descriptors +0, pages +0\n", done.stdout)
        self.assertIn("last: descriptors +0, pages +0\n", done.stdout)
        # What a child gives back, and of that the log.
        given = self.given_back(done)
        self.assertEqual(self.given_back(self.run_in([str(PROGRAMS / "process"), "forks-2"], self.environment(
            SPILL_LOG="off", **self.with_variables))), given + 1)
        self.assertIn(f"children {2 * self.FORKS}\n", done.stdout)
        (records,) = self.by_pid().values()
        harness.check_log(self, records)
        self.assertEqual(len(records), len([r for r in records if r["kind"] == "move"]) + 12)


class Moved:
    """The same while chunks are on host: the older make way."""

    movable = "on"
    with_variables = MOVED
    places, moved = ["movable"] * 5, [(0, 2), (0, 2), (1, 2)]


class MovedFork(Moved, Fork):
    pass


class Threads(ScriptCase):
    movable = "off"

    LIMIT = 10 * MIB

    def threads(self, *arguments, **variables):
        done = self.run_in([str(PROGRAMS / "threads"), *map(str, arguments)],
                           self.environment(**{"SPILL_DEVICE_RESERVE": "0", **variables}))
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        return self.records()

    def test_around_the_limit(self):
        for chain in ("split", "managed", "host"):
            with self.subTest(chain):
                self.log.unlink(missing_ok=True)
                records = self.threads(8, 30, SPILL_DEVICE_LIMIT="10MiB", SPILL_OOM_CHAIN=chain)
                self.check_sums(records)
                self.never_over(records, self.LIMIT)

    def test_around_the_end_of_the_device(self):
        records = self.threads(8, 30)
        # No history of the device's own bytes: what one thread has freed another may have before the line is written.
        self.check_sums(records)

    def test_around_the_end_of_the_device_where_memory_moves(self):
        """As many threads ask for room, move each other's memory and free what another moves."""
        *_, last = records = self.threads(8, 30, **{**MOVED, "SPILL_OOM_CHAIN": "trim, demote, split"})
        self.assertEqual((last["allocs"], last["frees"], last["ooms"]), (240, 240, 0))
        self.assertEqual(set(last["live"].values()), {0})
        self.assertEqual(last["demotions"] + last["promotions"], sum(r["kind"] == "move" for r in records))
        self.assertGreater(last["demoted_bytes"], 4 * MIB)

    def test_many_small_ones(self):
        """Little work between the calls: the ledger, the shared chunks and the log are what the threads meet in."""
        records = self.threads(8, 1500, "small", SPILL_DEVICE_LIMIT="64KiB", SPILL_OOM_CHAIN="host")
        self.check_sums(records, 8 * 1500)
        self.never_over(records, 64 << 10)

    def check_sums(self, records, count=240):
        """All but the peaks, which follow from the lines of one thread only."""
        *_, last = records
        self.assertEqual(last["kind"], "exit")
        allocs = {r["seq"]: r for r in records if r["kind"] == "alloc"}
        frees = [r for r in records if r["kind"] == "free"]
        self.assertEqual((last["allocs"], last["frees"], last["ooms"]), (count, count, 0))
        self.assertEqual(sorted(allocs), sorted(r["seq"] for r in frees))
        self.assertEqual(set(last["live"].values()), {0})
        # A split of which by then all fits on the device is none.
        spilled = [r for r in allocs.values() if r["place"] != "device" and held(r)["host"] + held(r)["managed"]]
        self.assertGreater(len(spilled), 10)
        self.assertEqual(last["spills"], len(spilled))
        for kind in ("host", "managed"):
            self.assertEqual(last["spilled"][f"{kind}_bytes"], sum(held(r)[kind] for r in spilled))
        times = [r["t"] for r in records]
        self.assertEqual(len(times), len(allocs) + len(frees) + 2)

    def never_over(self, records, limit):
        """By the lines in their order the device never holds more than the limit."""
        live, now, most = {}, 0, 0
        for record in records:
            if record["kind"] == "alloc":
                live[record["seq"]] = held(record)["device"]
                now += live[record["seq"]]
            elif record["kind"] == "free":
                now -= live.pop(record["seq"])
            most = max(most, now)
        self.assertLessEqual(most, limit)
        self.assertGreater(most, limit // 2)


class End(ProcessCase):
    """The log is whole up to the last spill however the process ends, and how it ends is as without us."""

    def test_ways_to_end(self):
        for how, says in (("return", "exit"), ("exit", "exit"), ("_exit", "_exit"), ("_Exit", "_Exit"),
                          ("abort", "abort"), ("assert", "assert"), ("terminate", "abort"), ("thread-exit", "exit"), ("signal", "_exit"),
                          ("quick_exit", "quick_exit"), ("segv", None), ("kill", None)):
            with self.subTest(how):
                for path in self.logs.iterdir():
                    path.unlink()
                alone, done = self.alone(how), self.run_process(how, SPILL_LOG_STDERR="off")
                # Without the library the fourth and fifth allocation fail, and nothing else differs.
                self.assertEqual(done.returncode, alone.returncode)
                self.assertEqual(done.stderr, alone.stderr)
                self.assertEqual(done.stdout, alone.stdout.replace("CUDA_ERROR_OUT_OF_MEMORY", "CUDA_SUCCESS"))
                records, = self.by_pid().values()
                self.took_five(records, says is not None)
                if says:
                    self.assertEqual(records[-1]["kind"], "exit")
                    self.assertEqual(records[-1]["how"], says)
                    harness.check_log(self, records)
                else:
                    self.assertEqual(len([r for r in records if r["kind"] == "exit"]), 0)
                    # What it did can be told all the same.
                    run = self.reported(*self.logs.iterdir())
                    self.assertFalse(run["exited"])
                    self.assertEqual(run["totals"]["allocs"], len([r for r in records if r["kind"] == "alloc"]))
                    self.assertGreater(run["totals"]["peak"]["host_bytes"], 0)

    def test_killed_behind_an_out_of_memory_and_a_note(self):
        """What the file has to have: an out of memory, a note, and all that was before them."""
        done = self.run_process("kill", SPILL_OOM_CHAIN="", SPILL_MODEL="spill")
        self.assertEqual(done.returncode, -signal.SIGKILL)
        (records,) = self.by_pid().values()
        self.assertEqual([r["kind"] for r in records if r["kind"] != "note"], ["start"] + ["alloc"] * 3 + ["oom"] * 2)
        self.assertIn("environment", [r.get("code") for r in records])

    def test_statuses(self):
        # That the test above compares something: the program ends as it was told.
        for how, status in (("_exit", 5), ("signal", 7), ("thread-exit", 9), ("kill", -signal.SIGKILL),
                            ("abort", -signal.SIGABRT), ("assert", -signal.SIGABRT)):
            self.assertEqual(self.run_process(how).returncode, status)

    def test_a_handler_that_leaves_at_any_moment(self):
        """It interrupts allocations, frees and the log's writes, whatever locks those hold: no hang, no torn line."""
        for microseconds in range(200, 3000, 93):
            with self.subTest(microseconds):
                for path in self.logs.iterdir():
                    path.unlink()
                # Of two runs the log of one is past log.max.
                done = self.run_process(f"busy-{microseconds}", SPILL_LOG_STDERR="off", SPILL_DEVICE_LIMIT="1MiB",
                                        SPILL_LOG_MAX=("0", "64MiB")[microseconds % 2])
                self.assertEqual((done.returncode, done.stderr), (7, ""))
                for path in self.logs.iterdir():
                    # Empty if it was interrupted before the first line; never torn.
                    if path.stat().st_size:
                        self.assertEqual(self.records(path)[0]["kind"], "start")

    def test_exec(self):
        """The new program is the same process: its run begins with a start line of its own in the same file."""
        done = self.run_process("exec")
        self.assertEqual(done.returncode, 3)
        self.assertNotIn("ERROR", done.stdout)
        records, = self.by_pid().values()
        starts = [i for i, r in enumerate(records) if r["kind"] == "start"]
        self.assertEqual(len(starts), 2)
        self.took_five(records[:starts[1]], whole=False)
        self.took_five(records[starts[1]:])
        harness.check_log(self, records[starts[1]:])


class MovedEnd(Moved, End):
    pass


class SmallStacks(ScriptCase):
    """The smallest stack that a thread can have is enough for a process's first call, the log's beginning, a spill, and an out of
    memory; and an alternate stack for what is told at the end."""

    movable = "off"
    ALWAYS = {"SPILL_DEVICE_RESERVE": "0", "SPILL_HOST_RESERVE": "0"}
    # Nothing spills; one of six allocations does, which is looked up in the control groups, and the last two find no room there either.
    NOTHING, HOST = {"SPILL_OOM_CHAIN": ""}, {"SPILL_OOM_CHAIN": "host", "SPILL_HOST_LIMIT": "5MiB"}

    def small_stack(self, how, **variables):
        return self.run_in([str(PROGRAMS / "small_stack"), how], self.environment(**self.ALWAYS, **variables))

    def in_small_thread(self, ooms, **variables):
        """Without SPILL_LOG the log is the first in its folder, beside which finished ones are looked for."""
        if "SPILL_LOG" in variables:
            shutil.rmtree(self.folder / ".local", ignore_errors=True)
        self.log.unlink(missing_ok=True)
        done = self.small_stack("thread", **variables)
        self.assertEqual((done.returncode, done.stdout), (0, "alloc 0\n" * (6 - ooms) + "alloc 2\n" * ooms), done.stderr)
        self.assertIn("small_stack: out of memory: 4.00 MiB", done.stderr)
        path = next(self.folder.glob(".local/state/spill/*.jsonl")) if "SPILL_LOG" in variables else None
        self.assertEqual(self.checked_records(path)[-1]["ooms"], ooms)

    def test_in_the_smallest_thread(self):
        policy = self.folder / "some.conf"
        policy.write_text("[log]\nmax = 1GiB\n[host]\nnuma = 0\n[rule large]\nsize = 1GiB..\nplace = device\n", encoding="utf-8")
        for ooms, variables in ((3, self.NOTHING), (3, {"SPILL_MODE": "observe"}), (2, self.HOST),
                                (2, self.HOST | {"SPILL_POLICY": str(policy)})):
            for more in ({}, {"SPILL_LOG_STDERR": "all"}, {"SPILL_LOG": None}):
                with self.subTest(variables | more):
                    self.in_small_thread(ooms, **variables, **more)

    def test_in_the_smallest_thread_with_metrics(self):
        for path in (self.folder / "x.prom", "/nonexistent/x.prom"):
            self.in_small_thread(3, **self.NOTHING, SPILL_LOG_METRICS=path)
        self.assertIn('\nspill_process_running{', (self.folder / "x.prom").read_text(encoding="utf-8"))

    def test_the_end_in_a_handler_on_its_own_stack(self):
        for path in ("/nonexistent/x.prom", self.folder / "x.prom"):
            self.log.unlink(missing_ok=True)
            done = self.small_stack("handler", SPILL_LOG_STDERR="all", SPILL_LOG_METRICS=path)
            self.assertEqual(done.returncode, 7, done.stderr)
        self.assertTrue((self.folder / "x.prom").exists())
        self.assertIn("small_stack: ended (_exit)", done.stderr)
        self.assertEqual(self.checked_records()[-1]["how"], "_exit")


class OtherLibraries(ScriptCase):
    movable = "off"

    def test_plugins(self):
        """RTLD_LOCAL plug-ins with the runtime, one after the other unloaded, the second at the first's place."""
        plugins = [str(PROGRAMS / name) for name in ("plugin_a.so", "plugin_b.so", "plugin_a.so")]
        done = self.run_in([str(PROGRAMS / "plugin_host"), *plugins], self.environment())
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(done.stdout.splitlines(), [f"run 0 again 0 place {place} unload 0" for place in ("new", "same", "same")])
        records = self.checked_records()
        allocs = [r for r in records if r["kind"] == "alloc" and r["bytes"] == 4 * MIB]
        self.assertEqual({r["api"] for r in allocs}, {"cudaMalloc"})
        callers = [r["caller"].split("+")[0] for r in allocs]
        self.assertEqual(callers, ["plugin_a.so"] * 10 + ["plugin_b.so"] * 10 + ["plugin_a.so"] * 10)
        files = {r["name"]: r["path"] for r in self.files()}
        self.assertEqual([files["plugin_a.so"], files["plugin_b.so"]], plugins[:2])
        hits = {(h["symbol"], h["way"]): h["count"] for h in records[-1]["hits"]}
        self.assertEqual(hits["cudaMalloc", "link"], 30)
        self.assertEqual([r["place"] for r in allocs], (["device"] * 3 + ["split"] * 2) * 6)

    # One that also defines dlsym and cuMemAlloc_v2.
    SMALL = ("--count", "4", "--mib", "6")
    ALL = ("prog_driver_link", "prog_driver_dlsym", "prog_driver_proc2", "prog_runtime", "prog_runtime_static")

    def with_second(self, name, order):
        count = self.folder / "second"
        self.log.unlink(missing_ok=True)
        done = self.run_program(program(name, *self.SMALL), vram="20MiB", LD_PRELOAD=order, SECOND=count, SPILL_DEVICE_RESERVE="0")
        return done, int(count.read_text())

    def direct_hits(self):
        records = self.checked_records()
        self.assertIn("split", {r.get("place") for r in records})
        return sum(h["count"] for h in records[-1]["hits"] if h["symbol"] == "cuMemAlloc_v2")

    def test_a_second_preload_behind_us(self):
        for name in self.ALL:
            with self.subTest(name):
                done, allocated = self.with_second(name, f"{LIBRARY}:{PROGRAMS}/second.so")
                self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
                self.assertIn("all data right", done.stdout)
                # Each call passes both once: it is neither skipped nor does it go round in a circle.
                self.assertEqual(allocated, self.direct_hits())

    def test_a_second_preload_before_us(self):
        for name in self.ALL:
            with self.subTest(name):
                done, allocated = self.with_second(name, f"{PROGRAMS}/second.so:{LIBRARY}")
                if name in ("prog_driver_link", "prog_driver_proc2"):
                    self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
                    self.assertIn("all data right", done.stdout)
                    self.assertEqual(allocated, self.direct_hits() if name == "prog_driver_link" else 0)
                else:
                    # Its dlsym takes the look-ups past us, which nobody can help: the program is as it is alone.
                    alone = self.run_program(program(name, *self.SMALL), vram="20MiB", preload=False)
                    self.assertEqual((done.returncode, done.stdout), (alone.returncode, alone.stdout))


if __name__ == "__main__":
    unittest.main(verbosity=2)
