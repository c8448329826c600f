"""log.max: the log stops growing, and the totals still follow from its lines and the sums of what was left out."""
import unittest

from harness import KERNELS, PROGRAMS, report
from scripted import MOVED, ScriptCase

KIB = 1 << 10
# The device holds three of these; what is freed and taken again moves others out and back, where it can be moved.
ROUND = " alloc:a:4m:5 fill:a verify:a free:a"
MANY = "retain:0" + ROUND + " alloc:a:4m:5 free:a" * 39
TOTALS = ("allocs", "frees", "spills", "ooms", "demotions", "promotions", "demoted_bytes", "promoted_bytes", "live", "peak",
          "spilled")


class LogMax(ScriptCase):
    movable = "off"

    def drops(self, records):
        return [record for record in records if record["kind"] == "drop"]

    def totals(self, words, **variables):
        """The exit line's totals, and the log, which was checked."""
        self.log.unlink(missing_ok=True)
        self.good(self.script(words, **variables))
        records = self.checked_records()
        return {name: records[-1][name] for name in TOTALS}, records

    def same_totals(self, words, size, **variables):
        """One thread, so that two runs do the same: the peaks, too, which the checks above take from the sums."""
        whole, records = self.totals(words, **variables)
        self.assertEqual(self.drops(records), [])
        short, records = self.totals(words, SPILL_LOG_MAX=size, **variables)
        self.assertEqual(short, whole)
        return records

    def left_out(self, records):
        """How many lines by what they were, over all drop lines."""
        counts = {}
        for record in self.drops(records):
            for what, figures in record.items():
                if isinstance(figures, dict) and "count" in figures:
                    counts[what] = counts.get(what, 0) + figures["count"]
        return counts

    def test_spills(self):
        records = self.same_totals(MANY, "16KiB")
        self.assertEqual([records[-2]["kind"], records[-1]["kind"]], ["drop", "exit"])
        self.assertEqual(len([r for r in records if r.get("code") == "log-max"]), 1)
        counts = self.left_out(records)
        self.assertEqual(set(counts), {"alloc", "spill", "free"})
        self.assertGreater(min(counts.values()), 20)

    def test_the_file_is_no_larger(self):
        _, records = self.totals(MANY, SPILL_LOG_MAX="16KiB")
        lines = self.log.read_text().splitlines(keepends=True)
        routine = "".join(line for line, record in zip(lines, records) if record["kind"] in ("start", "alloc", "free", "move"))
        self.assertLessEqual(len(routine), 16 * KIB)
        self.assertGreater(len(routine), 15 * KIB)
        self.assertLess(len(lines) - len(routine.splitlines()), 5)

    def test_moves(self):
        words = "retain:0" + " alloc:a:4m:3 alloc:b:4m:2 free:a free:b alloc:c:4m:5 free:c" * 20
        records = self.same_totals(words, "10KiB", **MOVED)
        self.assertGreater(self.left_out(records).get("demote", 0), 5)
        self.assertGreater(records[-1]["demotions"], self.left_out(records)["demote"], "some of them are lines")

    def test_moves_back(self):
        """How many there are follows from times, so that two runs differ; the figures of one must agree."""
        words = "early:a:40m fill:a" + " grow:p:4m:10 fill:p free:p back:a verify:a" * 3 + " free:a"
        variables = MOVED | {"SPILL_LOG_MAX": "0"}
        done = self.run_program([str(PROGRAMS / "movable"), KERNELS, *words.split()], **variables)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        counts = self.left_out(self.checked_records())
        self.assertGreater(min(counts.get("demote", 0), counts.get("promote", 0)), 0, counts)

    def test_nothing_but_sums(self):
        records = self.same_totals(MANY, "0")
        self.assertEqual([record["kind"] for record in records], ["start", "note", "drop", "exit"])

    def test_out_of_memory_is_told_and_what_led_there(self):
        """The sums are there before each, and say what its `live` says."""
        words = "retain:0" + (" alloc:a:4m:3" + " alloc:b:8m:1" * 3 + " free:a") * 3
        variables = {"SPILL_OOM_CHAIN": "", "SPILL_OOM_HONEST_FIRST": "off"}
        self.script(words, SPILL_LOG_MAX="0", **variables)
        records = self.checked_records()
        self.assertEqual([record["kind"] for record in records],
                         ["start", "note"] + ["drop", "oom", "oom", "oom"] * 3 + ["drop", "exit"])
        live = 0
        for record in records:
            if record["kind"] == "drop":
                live += record["alloc"]["device_bytes"] if "alloc" in record else 0
                live -= record["free"]["device_bytes"] if "free" in record else 0
            if record["kind"] == "oom":
                self.assertEqual(record["live"]["device_bytes"], live)
                self.assertEqual(len(record["holders"]), 3)

    def test_many_threads(self):
        for size in ("0", "64KiB"):
            with self.subTest(size):
                self.log.unlink(missing_ok=True)
                done = self.run_program([str(PROGRAMS / "threads"), "8", "100"], vram="32MiB", SPILL_LOG_MAX=size)
                self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
                counts = self.left_out(self.checked_records())
                self.assertGreater(counts["alloc"] + counts["spill"], 400)

    def test_all_kinds_of_memory(self):
        """Pools, physical memory, arrays, pinned and managed memory, in stream order and not, on eight threads."""
        for movable in ("off", "on"):
            with self.subTest(movable):
                self.log.unlink(missing_ok=True)
                done = self.run_program([str(PROGRAMS / "storm"), KERNELS, "1", "4000", "8", "1024"], vram="96MiB",
                                        SPILL_LOG_MAX="64KiB", SPILL_MOVABLE_ENABLE=movable)
                self.assertEqual(done.returncode, 0, done.stdout[-2000:] + done.stderr[-2000:])
                records = self.checked_records()
                self.assertGreater(sum(self.left_out(records).values()), 500)
                self.assertEqual(set(records[-1]["live"].values()), {0})

    def test_log_level_spills(self):
        """What it does not tell is not in the sums either."""
        self.log.unlink(missing_ok=True)
        self.good(self.script(MANY, SPILL_LOG_LEVEL="spills", SPILL_LOG_MAX="0"))
        counts = self.left_out(self.records())
        self.assertEqual(counts, {"spill": 80, "free": 80})

    def test_stderr(self):
        for how, times in (("first", 0), ("all", 1), ("off", 0)):
            done = self.good(self.script("retain:0 alloc:a:1m:3 free:a", SPILL_LOG_MAX="0", SPILL_LOG_STDERR=how))
            self.assertEqual(done.stderr.count("log.max"), times, how)

    def test_ways_to_end(self):
        for how, says in (("exit", "exit"), ("_exit", "_exit"), ("abort", "abort"), ("assert", "assert"), ("quick_exit", "quick_exit")):
            with self.subTest(how):
                self.log.unlink(missing_ok=True)
                self.run_in([str(PROGRAMS / "process"), how], self.environment(SPILL_LOG_MAX="0", SPILL_LOG_STDERR="off"))
                records = self.checked_records()
                self.assertEqual([record["kind"] for record in records], ["start", "note", "drop", "exit"])
                self.assertEqual(records[-1]["how"], says)

    def test_a_name_used_again(self):
        """Each run is told for itself: one past its log.max, one that was killed, one with all the room there is."""
        self.script("retain:0" + ROUND, SPILL_LOG_MAX="0")
        self.run_in([str(PROGRAMS / "process"), "kill"], self.environment(SPILL_LOG_STDERR="off"))
        self.script("retain:0" + ROUND * 2)
        records = self.all_lines()
        starts = [number for number, record in enumerate(records) if record["kind"] == "start"]
        self.assertEqual([records[number].get("continues") for number in starts], [None] * 3)
        ends = [r for r in records if r["kind"] == "exit"]
        runs, done = report(self.log)
        self.assertEqual(([run["line"] for run in runs], done.stderr), ([number + 1 for number in starts], ""))
        self.assertEqual([run["exited"] for run in runs], [True, False, True])
        self.assertEqual([(run["differences"], run["missing_lines"]) for run in runs], [([], 0)] * 3)
        self.assertEqual([run["totals"]["allocs"] for run in runs], [ends[0]["allocs"], 5, ends[1]["allocs"]])
        self.assertEqual([run["left_out"] for run in runs], [ends[0]["allocs"], 0, 0])

    def test_forks(self):
        """A child's log has sums of its own, and as much room."""
        logs = self.folder / "logs"
        logs.mkdir()
        self.run_in([str(PROGRAMS / "process"), "fork-fresh"], self.environment(SPILL_LOG_MAX="0", SPILL_LOG=logs))
        self.assertEqual(len(list(logs.iterdir())), 2)
        for path in logs.iterdir():
            records = self.checked_records(path)
            self.assertEqual([record["kind"] for record in records], ["start", "note", "drop", "exit"])


if __name__ == "__main__":
    unittest.main(verbosity=2)
